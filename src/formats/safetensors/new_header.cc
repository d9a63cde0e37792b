// SPDX-License-Identifier: Apache-2.0
// A new header for tensors that are not moved: entries keep the file's order, dtypes, offsets and unknown keys, and
// spaces fill the room (T5).
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/checked.h"
#include "base/endian.h"
#include "core/writing/layout.h"
#include "formats/safetensors/format.h"
#include "formats/safetensors/layout.h"

namespace weighbridge::safetensors {
std::optional<core::NewHeader> new_header(const Model& original, const Model& edited,
                                          std::span<const std::uint32_t> kept) {
  if (kept.size() != original.size())
    return core::NewHeader{.refusal = "safetensors allows no bytes that belong to no tensor"};
  const std::uint64_t room = kLengthSize + core::retained_header(original).size();
  std::vector<std::pair<std::string_view, std::string>> texts;
  for (const auto& [key, value] : edited.attributes()) {
    const auto text = value.as_text();
    if (!text) return std::nullopt;
    texts.emplace_back(key, *text);
  }
  auto json = std::make_shared<std::string>("{");
  append_metadata(*json, texts);
  for (const Tensor& tensor : edited) {
    if (tensor.name() == kMetadata || !tensor.has_shape() || tensor.part_count() != 1) return std::nullopt;
    const Part data = tensor.part(0);
    const auto extent = data.extent();
    if (!extent || extent->source != 0 || extent->offset < room) return std::nullopt;
    const std::size_t rank = dtype_rank(tensor.dtype());
    const std::uint64_t begin = extent->offset - room;
    append_entry(*json, tensor, rank < kDTypeRanks ? kDTypes[rank].name : data.dtype_name(), begin,
                 begin + extent->length);
  }
  *json += '}';
  core::NewHeader out{.room = room, .minimum = kLengthSize + json->size(), .step = kHeaderAlignment};
  out.maximum = kLengthSize + kMaxHeader;
  out.make = [json](std::uint64_t length) {
    std::string head(kLengthSize, '\0');
    base::store_le<std::uint64_t>(head.data(), length - kLengthSize);
    head += *json;
    head.resize(base::to_size(length), ' ');
    return head;
  };
  return out;
}

}  // namespace weighbridge::safetensors
