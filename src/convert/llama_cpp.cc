// SPDX-License-Identifier: Apache-2.0
// Reorders rows, and computes the frequency factors of a rotation.
#include "convert/llama_cpp.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <numbers>

#include "base/checked.h"
#include "base/fail.h"
#include "core/model/words.h"
#include "core/payload/elements.h"
#include "wire/json_reader.h"

namespace weighbridge::convert {
std::string in_block(std::uint64_t layer, std::string_view name, std::string_view tail) {
  return fmt::format("blk.{}.{}{}", layer, name, tail);
}

RopeScaling parse_rope_scaling(const std::string& json) {
  RopeScaling out;
  std::string type = "default";
  wire::JsonReader in(json);
  if (!in.enter_object()) return out;
  for (wire::JsonString key; in.next_key(key);) {
    wire::JsonString text;
    wire::JsonNumber number;
    if (in.read_string(text)) {
      if (key.raw == "rope_type" || key.raw == "type") type = text.raw;
      continue;
    }
    if (!in.read_number(number)) {
      if (!in.skip_value()) return out;
      continue;
    }
    const double value = wire::as_double(number.raw).value_or(0);
    if (key.raw == "factor") out.factor = value;
    if (key.raw == "low_freq_factor") out.low = value;
    if (key.raw == "high_freq_factor") out.high = value;
    if (key.raw == "original_max_position_embeddings") out.original = value;
    if (key.raw == "rope_theta") out.theta = value;
  }
  const bool scales = out.factor >= 1 && std::isfinite(out.factor);
  if (!in.ok())
    out.kind = RopeScaling::Kind::other;
  else if (type == "default")
    out.kind = RopeScaling::Kind::none;
  else if (type == "linear" && scales)
    out.kind = RopeScaling::Kind::linear;
  else if (type == "llama3" && scales && out.low > 0 && out.high > out.low && out.original > 0)
    out.kind = RopeScaling::Kind::llama3;
  return out;
}

std::optional<RopeScaling> stated_rotation(const Model& model, double otherwise) {
  const auto same = [](const RopeScaling& a, const RopeScaling& b) {
    using Kind = RopeScaling::Kind;
    if (a.kind != b.kind || *a.theta != *b.theta || a.kind == Kind::other) return false;
    if (a.kind != Kind::none && a.factor != b.factor) return false;
    return a.kind != Kind::llama3 || (a.low == b.low && a.high == b.high && a.original == b.original);
  };
  std::optional<RopeScaling> out;
  for (const std::string_view key : kRotations) {
    const Value* const value = model.attribute(key);
    if (!value || value->to_text() == "null" || value->to_text() == "{}") continue;
    RopeScaling scaling = parse_rope_scaling(value->to_text());
    if (!scaling.theta) scaling.theta = otherwise;
    scaling.value_text = core::quoted(core::excerpt(value->to_text(), 80));
    if (out && !same(*out, scaling)) {
      out->kind = RopeScaling::Kind::other;
      out->value_text +=
          " in rope_scaling and by " + scaling.value_text + " in rope_parameters, which must say the same";
    } else {
      out = std::move(scaling);
    }
  }
  return out;
}

std::vector<float> rope_factors(const RopeScaling& scaling, double theta, std::uint64_t head) {
  std::vector<float> out;
  for (std::uint64_t i = 0; i < head / 2; ++i) {
    const double wave = 2 * std::numbers::pi * std::pow(theta, 2 * static_cast<double>(i) / static_cast<double>(head));
    const double smooth = std::clamp((scaling.original / wave - scaling.low) / (scaling.high - scaling.low), 0.0, 1.0);
    out.push_back(static_cast<float>(1 / (smooth + (1 - smooth) / scaling.factor)));
  }
  return out;
}

void add_values(core::Draft& draft, std::string_view name, const std::vector<float>& values) {
  const std::uint64_t shape[] = {values.size()};
  const auto kept = std::make_shared<const std::vector<float>>(values);
  draft.add_tensor(name, Layout::dense, DType::f32, shape);
  draft.part(draft.add_part("data", DType::f32, shape, Encoding::computed, {}, values.size() * sizeof(float)))
      .elements(core::held_elements(DType::f32, kept->size(), {std::as_bytes(std::span(*kept)), kept}));
}

bool has_rows_to_pair(const Tensor& tensor, std::uint64_t head) {
  const BlockTypeInfo* const block = tensor.block_type();
  const bool whole = block ? block->block_bytes != 0 && core::readable_blocks(tensor).has_value()
                           : tensor.layout() == Layout::dense && info(tensor.dtype()).bits % 8 == 0;
  return whole && !tensor.unsupported() && tensor.has_shape() && tensor.shape().size() == 2 && head % 2 == 0 &&
         head > 0 && tensor.shape()[0] % head == 0;
}

void add_paired_rows(core::Draft& draft, const std::string& name, const Tensor& tensor, std::uint64_t head) {
  const Part from = tensor.main();
  const std::uint64_t row = base::element_count(from.shape()).value_or(0) / tensor.shape()[0];  // elements, or bytes
  const std::uint32_t t = draft.add_tensor(name, tensor.layout(), tensor.dtype(), tensor.shape());
  if (const DType decided = core::write_as(tensor); decided != DType::unknown) draft.tensor(t).write_as(decided);
  if (tensor.block_type()) {
    const Attributes attributes = tensor.attributes();
    draft.tensor(t).block_type(tensor.block_type()).attributes({attributes.begin(), attributes.end()});
  }
  draft.part(draft.add_part("data", from.dtype(), from.shape(), Encoding::computed, {}, from.size()))
      .elements(core::with_heads(core::elements_of(from), {.head = head * row, .row = row}));
}

}  // namespace weighbridge::convert
