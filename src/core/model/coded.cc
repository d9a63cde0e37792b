// SPDX-License-Identifier: Apache-2.0
// Marks tensors by the table of schemes.
#include "core/model/coded.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <span>
#include <utility>

#include "base/checked.h"
#include "base/endian.h"
#include "base/fail.h"
#include "core/model/draft.h"
#include "core/model/state.h"
#include "core/model/words.h"
#include "io/read.h"
#include "weighbridge/scheme.h"
#include "wire/json_reader.h"

namespace weighbridge::core {
namespace {

constexpr std::uint64_t kMaxShape = 64 << 10;  // bytes; a tensor that states a shape is far smaller

constexpr std::uint64_t kMaxConfigFile = 4 << 20;

// Not for ONNX: its graph says how each initializer is used.
constexpr std::string_view kOnnx = "onnx";

schemes::Config config_of(const State& state) {
  schemes::Config out;
  for (const auto& [key, value] : state.attributes.all)
    if (schemes::may_hold_config(key)) schemes::read_config(key, value.to_text(), out);
  return out;
}

schemes::Recognized recognize(const State& state) {
  const schemes::Config config = config_of(state);
  const auto may_be_codes = [](const TensorRecord& record) {
    return record.layout == Layout::dense && schemes::holds(schemes::kCodes, record.dtype);
  };
  if (state.format == kOnnx || (!config.stated && std::ranges::none_of(state.tensors, may_be_codes))) return {};
  const schemes::Listing listing{
      static_cast<std::uint32_t>(state.by_name.size()), [&](std::uint32_t position) {
        const std::uint32_t i = state.by_name[position];
        const TensorRecord& record = state.tensors[i];
        const bool readable = record.side == kNone || !state.tensor_sides[record.side].unsupported;
        return schemes::Entry{
            state.tensor_name(i), record.dtype, std::span(state.dims).subspan(record.dims, record.rank),
            record.layout == Layout::dense && record.has_shape && readable && record.dtype != DType::unknown};
      }};
  return schemes::recognize(listing, config);
}

std::string refusal(const Tensor& tensor, const Coded& coded, std::string_view what) {
  return fmt::format("tensor {} {} {}: {}{}{}", quoted(tensor.name()),
                     coded.codes ? "holds codes of" : "completes codes of", coded.name, what,
                     coded.why.empty() ? "" : "; ", coded.why);
}

// The product of the shape that a tensor states, as integers or as the JSON of bitsandbytes.
std::optional<std::uint64_t> stated_product(const Coded& coded) {
  if (coded.shape_length > kMaxShape) return std::nullopt;
  const std::string bytes = io::text_of(*coded.shape_source, coded.shape_offset, coded.shape_length);
  std::vector<std::uint64_t> dims;
  const std::size_t width = info(coded.shape_dtype).bits / 8;
  if (coded.shape_dtype == DType::u8) {
    wire::JsonReader in(bytes);
    if (!in.enter_object()) return std::nullopt;
    for (wire::JsonString key; in.next_key(key);) {
      if (key.raw == "shape" && in.enter_array()) {
        for (std::uint64_t dim = 0; in.next_element() && in.read_u64(dim);) dims.push_back(dim);
        break;
      }
      if (!in.skip_value()) return std::nullopt;
    }
  } else {
    for (std::size_t at = 0; width >= 4 && at + width <= bytes.size(); at += width) {
      const auto* const from = reinterpret_cast<const std::byte*>(bytes.data() + at);
      dims.push_back(width == 8 ? base::load_le<std::uint64_t>(from) : base::load_le<std::uint32_t>(from));
    }
  }
  return dims.empty() ? std::nullopt : base::element_count(dims);
}

}  // namespace

std::span<const schemes::Answer> answers_of(const Model& model) noexcept {
  const State* const state = Access::state(model);
  return state ? std::span(state->answers) : std::span<const schemes::Answer>();
}

schemes::Config quantization_of(const Model& model) {
  const State* const state = Access::state(model);
  schemes::Config out = state ? config_of(*state) : schemes::Config();
  // The files in which AutoGPTQ and ModelOpt wrote it first. A key that holds configs, as text_config does, stands for
  // ModelOpt's file.
  for (const auto& [file, key] :
       {std::pair{"quantize_config.json", "quantization_config"}, std::pair{"hf_quant_config.json", "text_config"}}) {
    const bool open = out.method == "gptq";  // it may say how zeros are stored
    if ((out.stated && !open) || !state || !state->place) break;
    const auto source = open_folder_file(model, file);
    if (!source || source->size() > kMaxConfigFile) continue;
    if (open) {
      schemes::Config other;
      schemes::read_config(key, io::text_of(*source), other);
      if (out.all.format.empty())
        out.all.format = other.all.format;
      else if (other.all.format != out.all.format)
        out.other_format = other.all.format;
      break;
    }
    schemes::read_config(key, io::text_of(*source), out);
    if (out.method == "mlx") out.method = "gptq";  // AutoGPTQ's file names no method either
  }
  return out;
}

const Coded* coded(const Tensor& tensor) noexcept {
  const State& state = Access::state(tensor);
  const TensorRecord& record = Access::record(tensor);
  return record.side == kNone ? nullptr : state.tensor_sides[record.side].coded.get();
}

bool is_codes(const Tensor& tensor) noexcept {
  const Coded* const mark = coded(tensor);
  if (mark == nullptr) return false;
  return mark->codes || info(tensor.dtype()).kind != DTypeKind::real;
}

void require_values(const Tensor& tensor, std::string_view what) {
  if (const Coded* const mark = coded(tensor); mark != nullptr && is_codes(tensor))
    base::unsupported("unsupported/scheme", refusal(tensor, *mark, what), mark->hint);
}

void require_values(const Model& model, std::string_view what, std::string_view rule) {
  std::optional<std::uint32_t> found;
  for (const Tensor& tensor : model)
    if (const Coded* const mark = coded(tensor); mark != nullptr && (!found || mark->codes)) {
      found = tensor.index();
      if (mark->codes) break;
    }
  if (!found) return;
  const Tensor tensor = model[*found];
  base::unsupported(std::string(rule) + "/scheme", refusal(tensor, *coded(tensor), what), coded(tensor)->hint);
}

std::uint64_t parameters_of(const Coded& coded) {
  if (coded.shape_source)
    if (const auto stated = stated_product(coded)) return *stated;
  return coded.parameters;
}

namespace {

// If the model is one file of several, scales of FP8 may be in another file.
void mark_lone_codes(State& state) {
  for (TensorRecord& record : state.tensors) {
    const DType dtype = record.dtype;
    const bool fp8 = dtype == DType::f8_e4m3 || dtype == DType::f8_e5m2 || dtype == DType::f8_e4m3fnuz ||
                     dtype == DType::f8_e5m2fnuz;
    if (!fp8 || (record.side != kNone && state.tensor_sides[record.side].coded)) continue;
    if (record.side == kNone) {
      record.side = static_cast<std::uint32_t>(state.tensor_sides.size());
      state.tensor_sides.emplace_back();
    }
    const auto count = base::element_count(std::span(state.dims).subspan(record.dims, record.rank));
    state.tensor_sides[record.side].coded =
        std::make_shared<const Coded>(Coded{.id = "fp8-part",
                                            .name = "FP8 whose scales may be in another file",
                                            .codes = true,
                                            .parameters = count.value_or(0)});
  }
}

}  // namespace

void mark_codes(State& state) {
  const schemes::Recognized found = recognize(state);
  std::vector<std::shared_ptr<const Coded>> companions;  // one for each scheme
  for (const schemes::Named& named : found.schemes)
    companions.push_back(std::make_shared<const Coded>(Coded{.id = named.id, .name = named.name}));
  // Layers are alike, so most codes can share one mark.
  std::map<std::pair<std::uint32_t, std::uint64_t>, std::shared_ptr<const Coded>> alike;
  const auto mark_of = [&](const schemes::Found& each) {
    if (!each.codes) return companions[each.scheme];
    const auto make = [&] {
      auto made = std::make_shared<Coded>(*companions[each.scheme]);
      made->codes = true;
      made->parameters = each.parameters;
      return made;
    };
    if (each.says_shape == schemes::Found::kNone) {
      auto& mark = alike[{each.scheme, each.parameters}];
      if (!mark) mark = make();
      return mark;
    }
    const auto made = make();
    const TensorRecord& says = state.tensors[state.by_name[each.says_shape]];
    const PartRecord* const part = says.part_count == 1 ? &state.parts[says.first_part] : nullptr;
    if (part != nullptr && part->has_extent && part->encoding == Encoding::raw && part->order == Order::little) {
      made->shape_source = state.sources[part->source];
      made->shape_offset = part->offset;
      made->shape_length = part->stored_length;
      made->shape_dtype = says.dtype;
    }
    return std::shared_ptr<const Coded>(made);
  };
  for (const schemes::Found& each : found.tensors) {
    TensorRecord& record = state.tensors[state.by_name[each.position]];
    if (record.side == kNone) {
      record.side = static_cast<std::uint32_t>(state.tensor_sides.size());
      state.tensor_sides.emplace_back();
    }
    state.tensor_sides[record.side].coded = mark_of(each);
  }
  // Scales of FP8 beside FP8 without them, or without their codes: the others are in another file.
  const bool some = std::ranges::any_of(found.schemes, [](const schemes::Named& each) { return each.id == "fp8"; });
  const auto is_stray = [&](std::uint32_t i) {
    return state.tensor_name(i).ends_with(".weight_scale_inv") &&
           (state.tensors[i].side == kNone || !state.tensor_sides[state.tensors[i].side].coded);
  };
  if (some || state.incomplete || std::ranges::any_of(state.by_name, is_stray)) mark_lone_codes(state);
}

std::vector<CodedUse> uses_of_codes(const Model& model) {
  const State* const state = Access::state(model);
  if (state == nullptr) return {};
  std::vector<CodedUse> out;
  std::vector<bool> seen(state->tensors.size());
  const auto add = [&](std::uint32_t i, const std::string& scheme, bool codes) {
    if (seen[i]) return;
    seen[i] = true;
    auto at = std::ranges::find(out, scheme, &CodedUse::scheme);
    if (at == out.end()) at = out.insert(at, {.scheme = scheme, .first = std::string(state->tensor_name(i))});
    if (codes && at->tensors > 0 && !at->codes) at->first = state->tensor_name(i);
    at->codes = at->codes || codes;
    ++at->tensors;
  };
  for (std::uint32_t i = 0; i < seen.size(); ++i)
    if (const std::uint32_t side = state->tensors[i].side; side != kNone && state->tensor_sides[side].coded)
      add(i, state->tensor_sides[side].coded->name, state->tensor_sides[side].coded->codes);
  const schemes::Recognized found = recognize(*state);
  for (const schemes::Found& each : found.tensors)
    add(state->by_name[each.position], found.schemes[each.scheme].name, each.codes);
  return out;
}

void for_each_forgotten(const Model& model, const std::function<void(const Tensor&)>& take) {
  const State* const state = Access::state(model);
  if (state == nullptr) return;
  std::vector<bool> codes(state->tensors.size());
  bool any = false;
  for (std::uint32_t i = 0; i < state->tensors.size(); ++i) {
    const std::uint32_t side = state->tensors[i].side;
    codes[i] = side != kNone && state->tensor_sides[side].coded && state->tensor_sides[side].coded->codes;
    any = any || codes[i];
  }
  if (!any) return;
  for (const schemes::Found& each : recognize(*state).tensors)
    if (each.codes) codes[state->by_name[each.position]] = false;
  for (std::uint32_t i = 0; i < codes.size(); ++i)
    if (codes[i]) take(model[i]);
}

}  // namespace weighbridge::core

namespace weighbridge {

std::optional<TensorScheme> scheme_of(const Tensor& tensor) {
  const core::Coded* const mark = core::coded(tensor);
  if (mark == nullptr) return std::nullopt;
  return TensorScheme{std::string(mark->id), mark->name, mark->codes, core::is_codes(tensor)};
}

const StoredWeight* stored_weight(const Tensor& tensor) noexcept {
  const core::State& state = core::Access::state(tensor);
  const std::uint32_t side = core::Access::record(tensor).side;
  return side == core::kNone ? nullptr : state.tensor_sides[side].stored.get();
}

std::vector<ModelScheme> schemes_of(const Model& model) {
  std::vector<ModelScheme> out;
  for (const Tensor& tensor : model) {
    const core::Coded* const mark = core::coded(tensor);
    if (mark == nullptr) continue;
    auto at = std::ranges::find(out, mark->name, &ModelScheme::name);
    if (at == out.end()) at = out.insert(at, {.id = std::string(mark->id), .name = mark->name});
    ++(mark->codes ? at->codes : at->companions);
  }
  std::ranges::stable_sort(out, std::greater{}, &ModelScheme::codes);
  return out;
}

}  // namespace weighbridge
