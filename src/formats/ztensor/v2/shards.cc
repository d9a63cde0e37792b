// SPDX-License-Identifier: Apache-2.0
#include "formats/ztensor/v2/shards.h"

#include <algorithm>
#include <utility>

#include "core/payload/part_digest.h"
#include "formats/ztensor/v2/format.h"
#include "weighbridge/place.h"

namespace weighbridge::ztensor2 {

std::string shard_file(std::string_view root, std::string_view shard) {
  if (root.ends_with(".zt")) root.remove_suffix(3);
  return std::string(root) + "-" + std::string(shard) + ".zt";
}

std::string Shards::file_of(std::string_view name) const { return shard_file(root_.file_name(), name); }

std::optional<std::uint32_t> Shards::find(std::string_view name) const noexcept {
  const auto before = [](const Shard& shard, std::string_view wanted) {
    return shard.name.size() != wanted.size() ? shard.name.size() < wanted.size() : shard.name < wanted;
  };
  const auto at = std::lower_bound(table_.begin(), table_.end(), name, before);
  if (at == table_.end() || at->name != name) return std::nullopt;
  return static_cast<std::uint32_t>(at - table_.begin());
}

std::shared_ptr<const Source> Shards::find_file(const Shard& shard, std::string& why) const {
  why = file_of(shard.name);
  try {
    if (const auto place = root_.place()) return place->open(why);
  } catch (const Error& error) {  // a link that leads out, a folder, a file that may not be read
    why += ": " + error.finding().message;
  }
  return nullptr;
}

const Shard& Shards::open(std::uint32_t i) {
  Shard& shard = table_[i];
  if (shard.state != Shard::State::unread) return shard;
  std::string why;
  if (auto source = find_file(shard, why)) {
    check(shard, std::move(source));
    return shard;
  }
  shard.state = Shard::State::missing;
  shard.missing_why = core::Findings::make(rules::kShardMissing, {.offset = shard.at}, {shard.size, " bytes"}, {}, why);
  findings_.report(*shard.missing_why);
  return shard;
}

void Shards::open_unused() {
  std::string why;
  for (Shard& shard : table_)
    if (shard.state == Shard::State::unread)
      if (auto source = find_file(shard, why)) check(shard, std::move(source));
}

void Shards::check(Shard& shard, std::shared_ptr<const Source> source) {
  shard.state = Shard::State::broken;
  shard.source = draft_.add_source(source);  // findings name it
  core::Findings in = findings_.in(source);
  if (source->size() != shard.size)
    in.report(rules::kShardSize, {}, {shard.size, " bytes"}, source->size());
  else if (!is_container(*source))
    in.report(rules::kShardFile, {});
  else
    shard.state = Shard::State::open;
  if (core::parse_decoded_digest(shard.digest).kind != core::PartDigest::none)
    draft_.add_checksum(std::string(core::kFileChecksum) + file_of(shard.name), std::string(shard.digest));
}

}  // namespace weighbridge::ztensor2
