// SPDX-License-Identifier: Apache-2.0
// Writes the manifest in deterministic CBOR: maps are gathered, sorted by the bytes of their encoded keys, and written.
#include "formats/ztensor/v2/manifest.h"
#include "core/writing/layout.h"

#include <algorithm>

#include "base/checked.h"
#include "base/endian.h"
#include "base/utf8.h"
#include "codecs/checksum.h"
#include "formats/ztensor/cbor_value.h"
#include "formats/ztensor/v2/layout.h"
#include "wire/cbor_writer.h"

namespace weighbridge::ztensor2 {
namespace {

std::string text(std::string_view value) {
  wire::CborWriter out;
  out.text(value);
  return out.take();
}
std::string number(std::uint64_t value) {
  wire::CborWriter out;
  out.u64(value);
  return out.take();
}
std::string map(Items entries) {
  for (auto& entry : entries) entry.first = text(entry.first);
  std::ranges::sort(entries);
  wire::CborWriter out;
  out.map(entries.size());
  for (const auto& [key, value] : entries) {
    out.raw(key);
    out.raw(value);
  }
  return out.take();
}
std::string numbers(std::span<const std::uint64_t> values) {
  wire::CborWriter out;
  out.array(values.size());
  for (const std::uint64_t value : values) out.u64(value);
  return out.take();
}

Items part_items(const OutPart& part, const core::Stored& stored) {
  const std::uint64_t blob[] = {stored.offset, stored.length};
  Items out = part.extra;
  out.emplace_back(kDtype, text(part.dtype));
  if (!part.type.empty()) out.emplace_back(kType, text(part.type));
  out.emplace_back(kBlob, numbers(blob));
  if (!part.shard.empty()) out.emplace_back(kShard, text(part.shard));
  if (!part.encoding.empty()) {
    out.emplace_back(kEncoding, text(part.encoding));
    out.emplace_back(kDecodedLength, number(part.size));
  }
  const std::string& digest = part.keeps_digest ? part.digest : stored.digest;
  if (!digest.empty()) out.emplace_back(kDigest, text(digest));
  return out;
}

}  // namespace

std::string Manifest::cbor(std::span<const core::Stored> stored) const {
  Items all;
  all.reserve(objects.size());
  for (const OutObject& object : objects) {
    Items parts;
    for (const OutPart& part : object.parts) parts.emplace_back(part.name, map(part_items(part, stored[part.payload])));
    Items fields = object.extra;
    fields.emplace_back(kShape, numbers(object.shape));
    fields.emplace_back(kLayout, text(object.layout));
    if (!object.attributes.empty()) fields.emplace_back(kAttributes, object.attributes);
    fields.emplace_back(kParts, map(std::move(parts)));
    all.emplace_back(object.name, map(std::move(fields)));
  }
  Items root = extra;
  root.emplace_back(kObjects, map(std::move(all)));
  if (!attributes.empty()) root.emplace_back(kAttributes, attributes);
  if (!shards.empty()) {
    Items table;
    for (const OutShard& shard : shards)
      table.emplace_back(shard.name,
                         map({{std::string(kSize), number(shard.size)}, {std::string(kDigest), text(shard.digest)}}));
    root.emplace_back(kShards, map(std::move(table)));
  }
  return map(std::move(root));
}

std::string Manifest::tail(std::span<const core::Stored> stored) const {
  std::uint64_t end = kMagicSize;
  if (shards.empty())
    for (const core::Stored& each : stored) end = std::max(end, each.end());
  const std::uint64_t at = base::align_up(end, kPlacement).value_or(end);  // the plan has checked it
  const std::string manifest = cbor(stored);
  std::string out(static_cast<std::size_t>(at - end), '\0');  // below kPlacement
  out += manifest;
  Footer footer{.manifest_offset = at,
                .manifest_length = manifest.size(),
                .manifest_hash = codecs::xxh3_64(std::as_bytes(std::span(manifest))),
                .version = kVersion};
  std::ranges::copy(kMagic, footer.magic);
  base::append_record(out, footer);
  return out;
}

std::optional<std::string> encode_value(const Value& value, std::uint32_t level) {
  if (value.kind() == Value::Kind::foreign && value.grammar() != "cbor") return std::nullopt;
  if (const auto words = value.as_text(); words && !base::is_utf8(*words)) return std::nullopt;
  wire::CborWriter item;
  try {
    ztensor::write_value(item, value, ztensor::Floats::shortest);
  } catch (const Error&) {  // a text inside that is not UTF-8
    return std::nullopt;
  }
  return wire::make_deterministic(item.data(), kMaxDepth - level);
}

std::string encode_attributes(std::span<const Value::Entry> entries, std::uint32_t level,
                              const std::function<void(LossKind, const Value::Entry&, std::string_view to)>& judge) {
  Items out, types;
  for (const Value::Entry& entry : entries) {
    const auto& [key, value] = entry;
    if (key == ztensor::kTypesKey) {  // a reader would confuse it with the one written below
      judge(LossKind::attribute, entry, "dropped: the key is weighbridge's own");
      continue;
    }
    if (!base::is_utf8(key) || !is_name(key)) {
      judge(LossKind::attribute, entry, "dropped: a key has 1 to 1024 bytes of UTF-8, without NUL");
      continue;
    }
    const bool other = value.kind() == Value::Kind::foreign && value.grammar() != "cbor";
    ztensor::Stated stated =
        other ? ztensor::state(value, true) : ztensor::state(value, false, ztensor::Floats::shortest);
    auto item = encode_value(stated.value, level);
    if (!item) {  // tags, levels, or repeated keys that the manifest does not take: its text, with the item beside it
      stated = ztensor::state(value, true);
      item = encode_value(stated.value, level);
    }
    if (!item) {
      judge(LossKind::attribute, entry, "dropped: it is not UTF-8");
      continue;
    }
    if (!stated.exact) judge(LossKind::attribute_type, entry, "a plain value");
    out.emplace_back(key, *std::move(item));
    if (!stated.type.empty()) types.emplace_back(key, text(stated.type));
  }
  if (!types.empty()) out.emplace_back(ztensor::kTypesKey, map(std::move(types)));
  return out.empty() ? std::string() : map(std::move(out));
}

}  // namespace weighbridge::ztensor2
