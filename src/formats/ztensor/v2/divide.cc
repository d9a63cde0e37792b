// SPDX-License-Identifier: Apache-2.0
// The root is written last: its manifest has the places of all blobs, and the size and the digest of each shard, which
// are known once the shards are written.
#include "formats/ztensor/v2/shards.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "base/checked.h"
#include "core/payload/part_digest.h"
#include "core/reading/shards.h"
#include "core/writing/layout.h"
#include "core/writing/plan_items.h"
#include "formats/ztensor/v2/layout.h"

namespace weighbridge::ztensor2 {
namespace {

constexpr std::string_view kSuffix = ".zt";

// What is known about the shards so far; complete once all are written.
struct Written {
  Manifest root;                     // whose parts number the payloads of all shards
  std::vector<core::Stored> stored;  // by that number

  std::string tail() const { return root.tail(stored); }
};

std::string digest_of(const core::WrittenFile& file, core::PartDigest kind) {
  core::Digester digester(kind);
  constexpr std::uint64_t kPiece = std::uint64_t{1} << 20;
  std::vector<std::byte> piece(base::to_size(std::min(file.size, kPiece)));
  for (std::uint64_t at = 0; at < file.size; at += kPiece) {
    const auto bytes = std::span(piece).first(base::to_size(std::min(file.size - at, kPiece)));
    file.read(at, bytes);
    digester.update(bytes);
  }
  return digester.finish();
}

// For each tensor, the number of the first tensor with which it shares bytes.
class Groups {
 public:
  explicit Groups(std::size_t tensors) : first_(tensors) { std::iota(first_.begin(), first_.end(), 0U); }
  std::uint32_t of(std::uint32_t tensor) {
    while (first_[tensor] != tensor) tensor = first_[tensor] = first_[first_[tensor]];
    return tensor;
  }
  void join(std::uint32_t one, std::uint32_t other) {
    one = of(one);
    other = of(other);
    first_[std::max(one, other)] = std::min(one, other);
  }

 private:
  std::vector<std::uint32_t> first_;
};

// The shard of each tensor.
std::vector<std::uint32_t> assign(const core::WriteLayout& whole, const Manifest& manifest, std::uint64_t maximum) {
  const auto count = static_cast<std::uint32_t>(manifest.objects.size());
  Groups groups(count);
  for (std::uint32_t i = 0; i < count; ++i)
    for (const OutPart& part : manifest.objects[i].parts) groups.join(i, whole.payloads[part.payload].out_tensor);
  std::vector<std::uint64_t> sizes(count);
  for (const core::Payload& p : whole.payloads) {
    std::uint64_t& size = sizes[groups.of(p.out_tensor)];
    size = base::checked_add(size, p.stored_size).value_or(UINT64_MAX);
  }
  std::vector<std::uint32_t> out(count);
  std::uint32_t shard = 0;
  std::uint64_t filled = 0;
  bool empty = true;
  for (std::uint32_t i = 0; i < count; ++i) {
    if (const std::uint32_t first = groups.of(i); first != i) {
      out[i] = out[first];
      continue;
    }
    if (!empty && sizes[i] > maximum - std::min(maximum, filled)) {
      ++shard;
      filled = 0;
    }
    empty = false;
    out[i] = shard;
    filled = base::checked_add(filled, sizes[i]).value_or(UINT64_MAX);
  }
  return out;
}

}  // namespace

core::WriteLayout divide(core::WriteLayout whole, const Manifest& manifest, std::uint64_t maximum,
                         core::PartDigest digest) {
  const std::vector<std::uint32_t> shard_of = assign(whole, manifest, maximum);
  const std::uint32_t count = shard_of.empty() ? 1 : *std::max_element(shard_of.begin(), shard_of.end()) + 1;
  const core::PartDigest kind = digest == core::PartDigest::none ? core::PartDigest::xxh3 : digest;
  const auto written = std::make_shared<Written>();
  written->root = manifest;
  written->stored.resize(whole.payloads.size());
  struct ShardFile {
    std::shared_ptr<Manifest> manifest = std::make_shared<Manifest>();
    std::vector<std::uint32_t> payloads{};  // by their numbers in `whole`
    core::WriteLayout layout{};
    std::string file{}, name{};  // "model-00001-of-00003.zt", and "00001-of-00003" in the table
  };
  std::vector<ShardFile> shards(count);
  for (std::uint32_t k = 0; k < count; ++k) {
    shards[k].file = core::spell_shard_name({kStem, k + 1, count}, kSuffix);
    shards[k].name = shards[k].file.substr(kStem.size() + 1);
    shards[k].name.resize(shards[k].name.size() - kSuffix.size());
  }
  std::vector<std::uint32_t> place(whole.payloads.size()), own(manifest.objects.size());
  core::OutFile root{.name = std::string(kWholeName)};
  root.layout.head = kMagic;
  root.layout.repeats = true;
  for (std::uint32_t i = 0; i < manifest.objects.size(); ++i) {
    ShardFile& shard = shards[shard_of[i]];
    own[i] = static_cast<std::uint32_t>(shard.layout.tensors.size());
    root.layout.tensors.push_back(whole.tensors[i]);
    root.layout.tensors.back().shared_parts = static_cast<std::uint32_t>(manifest.objects[i].parts.size());
    shard.layout.tensors.push_back(std::move(whole.tensors[i]));
    for (OutPart& part : written->root.objects[i].parts) part.shard = shard.name;
  }
  for (std::uint32_t j = 0; j < whole.payloads.size(); ++j) {
    core::Payload& p = whole.payloads[j];
    ShardFile& shard = shards[shard_of[p.out_tensor]];
    place[j] = static_cast<std::uint32_t>(shard.payloads.size());
    shard.payloads.push_back(j);
    p.out_tensor = own[p.out_tensor];
    shard.layout.payloads.push_back(std::move(p));
  }
  for (std::uint32_t i = 0; i < manifest.objects.size(); ++i) {
    OutObject object = manifest.objects[i];
    for (OutPart& part : object.parts) part.payload = place[part.payload];
    shards[shard_of[i]].manifest->objects.push_back(std::move(object));
  }
  core::WriteLayout out;
  out.losses = std::move(whole.losses);
  out.changes = std::move(whole.changes);
  out.uninterpreted = std::move(whole.uninterpreted);
  out.size_exact = whole.size_exact;
  out.owner = std::move(whole.owner);
  out.folder = std::make_shared<core::OutFolder>();
  out.folder->format = "zt2";
  out.folder->last = kWholeName;
  out.folder->stale = [](std::string_view file) {
    const auto name = core::parse_shard_name(file, kSuffix);
    return name && name->stem == kStem;
  };
  for (std::uint32_t k = 0; k < count; ++k) {
    ShardFile& shard = shards[k];
    core::WriteLayout& layout = shard.layout;
    layout.head = kMagic;
    layout.size_exact = whole.size_exact;
    const core::PlannedPayloads planned = core::plan_payloads(layout, layout.head.size());
    for (std::size_t i = 0; i < shard.payloads.size(); ++i) written->stored[shard.payloads[i]] = planned.stored[i];
    layout.size = std::max<std::uint64_t>(planned.end, layout.head.size()) +
                  shard.manifest->tail(planned.stored).size() + (whole.size_exact ? 0 : kPlacement);
    written->root.shards.push_back({std::move(shard.name), layout.size, core::placeholder(kind)});
    layout.tail = [written, own_manifest = shard.manifest,
                   numbers = std::move(shard.payloads)](std::span<const core::Stored> stored) {
      for (std::size_t i = 0; i < numbers.size(); ++i) written->stored[numbers[i]] = stored[i];
      return own_manifest->tail(stored);
    };
    layout.finalize = [written, k, kind](const core::WrittenFile& whole_file) {
      written->root.shards[k].size = whole_file.size;
      written->root.shards[k].digest = digest_of(whole_file, kind);
    };
    out.size += layout.size;
    out.folder->payloads.push_back({std::move(shard.file), std::move(layout)});
  }
  root.layout.size_exact = whole.size_exact;
  root.layout.size = kMagicSize + written->tail().size();
  root.layout.tail = [written](std::span<const core::Stored>) { return written->tail(); };
  out.size += root.layout.size;
  out.folder->payloads.push_back(std::move(root));
  return out;
}

}  // namespace weighbridge::ztensor2
