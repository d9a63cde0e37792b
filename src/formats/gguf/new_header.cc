// SPDX-License-Identifier: Apache-2.0
// A new header for tensors that are not moved: version, order and tensor infos come from the file, names and metadata
// from the edited model. Zeros fill up to the alignment, and the key kPadding fills any further room.
#include <algorithm>
#include <memory>
#include <set>
#include <string>
#include <utility>

#include "base/checked.h"
#include "base/endian.h"
#include "core/writing/layout.h"
#include "formats/gguf/format.h"
#include "formats/gguf/layout.h"
#include "formats/gguf/write_metadata.h"

namespace weighbridge::gguf {
namespace {

// kPadding with an empty text: length and bytes of the key, type, length of the text.
constexpr std::uint64_t kMinPadding = 8 + kPadding.size() + 4 + 8;

struct Parts {
  std::string start;  // up to the number of values
  std::uint64_t values = 0;
  std::string metadata, infos;
  std::uint64_t alignment = kDefaultAlignment;

  std::uint64_t size() const { return start.size() + 8 + metadata.size() + infos.size(); }
  std::string spell(std::uint64_t values_now, const MetadataOut& padding) const {
    std::string out = start;
    char count[8];
    base::store_le<std::uint64_t>(count, values_now);
    out.append(count, sizeof count);
    out += metadata;
    out += padding.bytes();
    return out += infos;
  }
  // After its last info, the header has fewer zeros than the alignment.
  std::string make(std::uint64_t length) const {
    const std::uint64_t room = length - size();
    MetadataOut padding;
    if (room >= alignment) {
      if (room < kMinPadding) return {};
      padding.add(kPadding, Value::text(std::string(base::to_size(room - kMinPadding), ' ')));
    }
    std::string out = spell(values + padding.count(), padding);
    out.resize(base::to_size(length), '\0');
    return out;
  }
};

// Whether the tensors that are left out are the last ones in the file, or have the bytes of others: llama.cpp refuses a
// hole between tensors, and reads a file with bytes after the last one (U11, U12).
bool leaves_no_hole(const Model& original, const Model& edited, std::span<const std::uint32_t> kept) {
  std::uint64_t end = 0;
  std::set<std::pair<std::uint64_t, std::uint64_t>> ranges;
  for (const Tensor& tensor : edited)
    for (std::uint32_t i = 0; i < tensor.part_count(); ++i)
      if (const auto extent = tensor.part(i).extent()) {
        end = std::max(end, extent->offset + extent->length);
        ranges.emplace(extent->offset, extent->length);
      }
  for (std::uint32_t t = 0; t < original.size(); ++t) {
    if (std::binary_search(kept.begin(), kept.end(), t)) continue;
    for (std::uint32_t i = 0; i < original[t].part_count(); ++i) {
      const auto extent = original[t].part(i).extent();
      if (!extent || (extent->length > 0 && extent->offset < end && !ranges.contains({extent->offset, extent->length})))
        return false;
    }
  }
  return true;
}

}  // namespace

std::optional<core::NewHeader> new_header(const Model& original, const Model& edited,
                                          std::span<const std::uint32_t> kept) {
  const std::string_view header = core::retained_header(original);
  if (header.size() < kHeaderSize || (base::load_le<std::uint32_t>(header.data() + kMagic.size()) & 0xFFFF) == 0)
    return std::nullopt;  // a big-endian file; we write only little-endian
  const auto parts = std::make_shared<Parts>();
  if (kept.size() != original.size() && !leaves_no_hole(original, edited, kept))
    return core::NewHeader{.refusal = "llama.cpp refuses a hole between tensors, so only the last ones can go"};
  parts->start = header.substr(0, kHeaderSize - 8);
  base::store_le<std::uint64_t>(parts->start.data() + kMagic.size() + 4, edited.size());
  core::WriteLayout judged;
  core::PlanItems plan_items(judged);
  MetadataOut metadata;
  for (const auto& [key, value] : edited.attributes()) metadata.add(key, value, plan_items);
  if (!judged.losses.empty()) return std::nullopt;
  parts->metadata = metadata.bytes();
  parts->values = metadata.count();
  if (const Value* const stated = original.attribute(kAlignment))
    parts->alignment = stated->as_u64().value_or(kDefaultAlignment);
  if (parts->alignment > kMaxAlignment) return std::nullopt;  // the header would have to be padded to it
  const auto room = base::align_up(header.size(), parts->alignment);
  const std::less_equal<const char*> before;
  for (std::uint32_t i = 0; i < edited.size(); ++i) {
    // The walker's names point into the header, and the rest of each info follows its name.
    const std::string_view name = original.name(kept[i]);
    const char* const end = name.data() + name.size();
    if (!before(header.data(), name.data()) || !before(end + 4, header.data() + header.size())) return std::nullopt;
    const std::uint64_t rest = 4 + 8 * std::uint64_t{base::load_le<std::uint32_t>(end)} + 4 + 8;
    const auto at = static_cast<std::uint64_t>(end - header.data());
    if (!base::fits(at, rest, header.size())) return std::nullopt;
    append_text(parts->infos, edited.name(i));
    parts->infos += header.substr(base::to_size(at), base::to_size(rest));
  }
  if (!room || edited.size() == 0) return std::nullopt;  // without data the file may end with its header
  core::NewHeader out{.room = *room, .step = parts->alignment};
  out.minimum = base::align_up(parts->size(), parts->alignment).value_or(UINT64_MAX);
  out.make = [parts](std::uint64_t length) { return parts->make(length); };
  return out;
}

}  // namespace weighbridge::gguf
