// SPDX-License-Identifier: Apache-2.0
// A header for tensors that stay where they are: entries keep the file's order, dtypes, offsets and unknown keys, and
// spaces fill the room (T5).
#include <memory>
#include <string>
#include <utility>

#include "base/checked.h"
#include "base/endian.h"
#include "formats/safetensors/format.h"
#include "formats/safetensors/layout.h"
#include "wire/json_writer.h"

namespace weighbridge::safetensors {
namespace {

// False if a value is not text.
bool append_metadata(std::string& json, const Model& model) {
  if (model.attributes().empty()) return true;
  wire::append_json_string(json, kMetadata);
  char between = '{';
  json += ':';
  for (const auto& [key, value] : model.attributes()) {
    const auto text = value.as_text();
    if (!text) return false;
    json += std::exchange(between, ',');
    wire::append_json_string(json, key);
    json += ':';
    wire::append_json_string(json, *text);
  }
  json += '}';
  return true;
}

// False if the entry cannot be made from the model.
bool append_entry(std::string& json, const Tensor& tensor, std::uint64_t data_start) {
  if (tensor.name() == kMetadata || !tensor.has_shape() || tensor.part_count() != 1) return false;
  const Part data = tensor.part(0);
  const auto extent = data.extent();
  if (!extent || extent->source != 0 || extent->offset < data_start) return false;
  const std::size_t rank = dtype_rank(tensor.dtype());
  wire::append_json_string(json, tensor.name());
  json += ":{\"dtype\":";
  wire::append_json_string(json, rank < kDTypeRanks ? kDTypes[rank].name : data.dtype_name());
  json += ",\"shape\":[";
  bool first = true;
  for (const std::uint64_t dim : tensor.shape()) {
    if (!std::exchange(first, false)) json += ',';
    append_number(json, dim);
  }
  json += "],\"data_offsets\":[";
  append_number(json, extent->offset - data_start);
  json += ',';
  append_number(json, extent->offset - data_start + extent->length);
  json += ']';
  for (const auto& [key, value] : tensor.extra()) {
    const auto raw = value.bytes();
    json += ',';
    wire::append_json_string(json, key);
    json += ':';
    json.append(reinterpret_cast<const char*>(raw.data()), raw.size());
  }
  json += '}';
  return true;
}

}  // namespace

std::optional<core::NewHeader> new_header(const Model& original, const Model& edited,
                                          std::span<const std::uint32_t> kept) {
  if (kept.size() != original.size())
    return core::NewHeader{.refusal = "safetensors allows no bytes that belong to no tensor"};
  const std::uint64_t room = kLengthSize + core::retained_header(original).size();
  auto json = std::make_shared<std::string>("{");
  if (!append_metadata(*json, edited)) return std::nullopt;
  for (const Tensor& tensor : edited) {
    if (json->size() > 1) *json += ',';
    if (!append_entry(*json, tensor, room)) return std::nullopt;
  }
  *json += '}';
  core::NewHeader out{.room = room, .least = kLengthSize + json->size(), .step = kHeaderAlignment};
  out.most = kLengthSize + kMaxHeader;
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
