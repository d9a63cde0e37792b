// SPDX-License-Identifier: Apache-2.0
// Codes whose settings are stored as tensors or JSON: bitsandbytes, HQQ. Quanto, whose shape is not stored.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <utility>

#include "base/checked.h"
#include "core/reading/rules.h"
#include "recipes/matcher.h"
#include "wire/json_reader.h"

namespace weighbridge::recipes {
namespace {

// bitsandbytes' maps, whose zeros have either sign.
constexpr std::array<float, 16> kNf4{-1.0F,
                                     -0.6961928009986877F,
                                     -0.5250730514526367F,
                                     -0.39491748809814453F,
                                     -0.28444138169288635F,
                                     -0.18477343022823334F,
                                     -0.09105003625154495F,
                                     0.0F,
                                     0.07958029955625534F,
                                     0.16093020141124725F,
                                     0.24611230194568634F,
                                     0.33791524171829224F,
                                     0.44070982933044434F,
                                     0.5626170039176941F,
                                     0.7229568362236023F,
                                     1.0F};
constexpr std::array<float, 16> kFp4{
    0, 0.0052083334885537624F,  0.6666666865348816F,  1,  0.3333333432674408F,  0.5F,  0.1666666716337204F,  0.25F,
    0, -0.0052083334885537624F, -0.6666666865348816F, -1, -0.3333333432674408F, -0.5F, -0.1666666716337204F, -0.25F};

struct State {
  std::uint64_t blocksize = 0, nested_blocksize = 0;
  double offset = 0;
  std::string type, dtype;
  std::vector<std::uint64_t> shape;
  bool good = false;
};

State state_of(std::string_view text) {
  State out;
  wire::JsonReader in(text);
  std::string scratch;
  std::uint64_t number = 0;
  if (!in.enter_object()) return out;
  for (wire::JsonString key; in.next_key(key);) {
    wire::JsonString word;
    wire::JsonNumber value;
    if (key.raw == "blocksize" && in.read_u64(number))
      out.blocksize = number;
    else if (key.raw == "nested_blocksize" && in.read_u64(number))
      out.nested_blocksize = number;
    else if (key.raw == "nested_offset" && in.read_number(value))
      out.offset = wire::as_double(value.raw).value_or(std::nan(""));
    else if (key.raw == "dtype" && in.read_string(word))
      out.dtype = wire::json_text(word, scratch);
    else if (key.raw == "quant_type" && in.read_string(word))
      out.type = wire::json_text(word, scratch);
    else if (key.raw == "shape" && in.enter_array())
      while (in.next_element()) {
        if (in.read_u64(number))
          out.shape.push_back(number);
        else
          in.skip_value();
      }
    else if (!in.skip_value())
      break;
  }
  out.good = in.ok() && in.finish() && out.blocksize > 0 && !out.shape.empty() && std::isfinite(out.offset);
  return out;
}

}  // namespace

// bitsandbytes in 4 bits.
void Matcher::nibbles(const Tensor& t, const Tensor& state, const std::string& kind) {
  const std::string name(t.name());
  used_.push_back(state.index());
  const auto absmax = take(name + ".absmax"), map = take(name + ".quant_map"), nested = take(name + ".nested_absmax"),
             nested_map = take(name + ".nested_quant_map");
  if (!absmax) return missing(t, name, "its absmax is missing");
  if (!map) return missing(t, name, "its quant_map is missing");
  if (count_of(*map) != 16 || !is_real(map->dtype())) return misfit(t, name, "its quant_map is not 16 numbers");
  const std::vector<std::byte> bytes = whole(state);
  const State says = state_of({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
  const auto result = dtype_from_name(short_dtype_name(says.dtype));
  const auto count = base::element_count(says.shape);
  const auto lies = [&](std::string text) { malformed(core::rules::kQuantizedState, t, name, std::move(text)); };
  if (!says.good || !count || *count == 0 || !result || !is_real(*result))
    return lies("its quant_state is not what bitsandbytes writes");
  if (!says.type.empty() && says.type != kind) return lies("its quant_state says another type than its name");
  if (t.main().size() != quotient_up(*count, 2)) {
    const std::uint64_t width = info(t.dtype()).bits / 8;  // of elements that hold the bytes
    if (t.main().size() != quotient_up(quotient_up(*count, 2), width) * width)
      return lies("its quant_state has a shape of " + std::to_string(*count) + " elements, and there are " +
                  std::to_string(t.main().size()) + " bytes of codes");
  }
  const std::uint64_t blocks = quotient_up(*count, says.blocksize);
  if (count_of(*absmax) != blocks)
    return misfit(t, name,
                  "it has " + std::to_string(count_of(*absmax)) + " absmax for " + std::to_string(blocks) + " blocks");
  auto r = std::make_shared<Recipe>();
  r->id = kind == "nf4" ? "bitsandbytes-nf4" : "bitsandbytes-fp4";
  r->shape = says.shape;
  r->rows = 1;
  r->columns = *count;
  r->packing = Packing::nibbles;
  r->bits = 4;
  r->codes = stored_elements(t.main());
  r->result = *result;
  std::array<float, 16> values{};
  as_f32(map->main())->read(0, 16, std::as_writable_bytes(std::span(values)), context_);
  std::ranges::copy(values, r->value.begin());
  const auto& standard = kind == "nf4" ? kNf4 : kFp4;
  for (std::size_t i = 0; i < 16; ++i)
    if (std::abs(values[i] - standard[i]) > 1e-6F || std::isnan(values[i])) {
      note(core::rules::kQuantizedMap, *map, std::to_string(standard[i]), std::to_string(values[i]),
           "at " + std::to_string(i));
      break;
    }
  r->scale = {.rows = 1, .columns = says.blocksize, .row_step = blocks, .column_step = 1};
  if (absmax->dtype() == DType::u8) {
    if (!nested || !nested_map || says.nested_blocksize == 0)
      return missing(t, name, "its absmax is nested, and its nested_absmax or nested_quant_map is missing");
    if (count_of(*nested) != quotient_up(blocks, says.nested_blocksize) || count_of(*nested_map) != 256 ||
        !is_real(nested->dtype()) || !is_real(nested_map->dtype()))
      return misfit(t, name, "its nested absmax does not fit its blocks");
    auto n = std::make_shared<Recipe>();
    n->rows = 1;
    n->columns = blocks;
    n->codes = stored_elements(absmax->main());
    as_f32(nested_map->main())->read(0, 256, std::as_writable_bytes(std::span(n->value)), context_);
    n->scale = {.values = as_f32(nested->main()), .rows = 1, .columns = says.nested_blocksize, .column_step = 1};
    const auto shift = static_cast<float>(says.offset);
    r->scale.values = changed(elements_of(std::move(n), false), [shift](float v) { return v + shift; });
  } else if (is_real(absmax->dtype())) {
    r->scale.values = as_f32(absmax->main());
  } else {
    return misfit(t, name, "its absmax are not numbers");
  }
  finish(t, name, std::move(r));
}

void Matcher::int8(const Tensor& t, const std::string& stem) {
  const std::string name = stem + "weight";
  const auto scb = take(stem + "SCB"), format = take(stem + "weight_format");
  if (!scb || t.shape().size() != 2) return misfit(t, name, "its codes are not a matrix");
  if (format && integer_of(format).value_or(1) != 0)
    return unsupported(t, name, "its weight_format is not that of rows, which no recipe has");
  auto r = std::make_shared<Recipe>();
  set_shape(*r, t.shape(), t.shape()[0], t.shape()[1]);
  if (count_of(*scb) != r->rows || !is_real(scb->dtype())) return misfit(t, name, "its SCB has not one scale a row");
  r->codes = stored_elements(t.main());
  r->value = twos_complement();
  r->scale = {.values = as_f32(scb->main()), .rows = 1, .columns = r->columns, .row_step = 1, .column_step = 1};
  r->factor = 7.874015718698502e-3F;
  r->id = "bitsandbytes-int8";
  r->result = DType::f32;
  finish(t, name, std::move(r));
}

void Matcher::hqq(const Tensor& t, const std::string& name) {
  const auto scale = take(name + ".scale"), zero = take(name + ".zero"), shape = take(name + ".shape"),
             axis = take(name + ".axis"), nbits = take(name + ".nbits"), group = take(name + ".group_size");
  const std::string weight = name + ".weight";
  // Tensors that say how scales and zeros are stored; only false is decoded.
  for (const char* const each : {"quant_scale", "quant_zero", "view_as_float"})
    if (const auto flag = take(name + "." + each); flag && integer_of(flag).value_or(1) != 0)
      return unsupported(t, weight, std::string("HQQ's ") + each + " is not decoded");
  for (const char* const each : {"channel_wise", "compute_dtype", "encoded_state_dict", "offload_meta", "optimize",
                                 "packing", "round_zero", "stores_quant_config", "unpack_view_dtype"})
    take(name + "." + each);
  if (find(name + ".zero_q") || find(name + ".scale_q"))
    return unsupported(t, weight, "HQQ's quant_zero and quant_scale are not decoded");
  if (!scale || !zero) return missing(t, weight, "its scale or its zero is missing");
  if (!shape || !axis || !nbits || !group)
    return unsupported(t, weight, "its settings are not stored as tensors, as those of HQQ in safetensors are");
  auto r = std::make_shared<Recipe>();
  r->shape = integers_of(*shape);
  const auto count = base::element_count(r->shape);
  const std::uint64_t g = integer_of(group).value_or(0), a = integer_of(axis).value_or(2),
                      bits = integer_of(nbits).value_or(0);
  const bool words = t.dtype() == DType::i32;
  const bool fits = words ? bits == 3 : t.dtype() == DType::u8 && (bits == 8 || bits == 4 || bits == 2 || bits == 1);
  const auto lies = [&](std::string text) { malformed(core::rules::kQuantizedState, t, weight, std::move(text)); };
  if (!count || *count == 0 || g == 0 || *count % g != 0 || a > 1 || !fits || t.shape().size() != 2)
    return lies("its shape, axis, nbits and group_size are not those of HQQ");
  r->bits = static_cast<std::uint32_t>(bits);
  r->rows = a == 1 ? *count / g : g;
  r->columns = a == 1 ? g : *count / g;
  r->packing = r->bits == 8 ? Packing::elements : Packing::parts;
  r->first_high = true;
  r->part_rows = t.shape()[0];
  const std::uint64_t parts = words ? 10 : 8 / bits;
  if (t.shape()[1] != r->columns || r->part_rows != quotient_up(r->rows, parts))
    return lies("its codes do not fit its shape");
  const std::uint64_t groups = a == 1 ? r->rows : r->columns;
  if (count_of(*scale) != groups || count_of(*zero) != groups || !is_real(scale->dtype()) || !is_real(zero->dtype()))
    return misfit(t, weight, "its scales and zeros do not fit its groups");
  r->codes = stored_elements(t.main());
  r->value = integers(r->bits, 0);
  r->scale = {.values = as_f32(scale->main()),
              .rows = a == 1 ? 1 : r->rows,
              .columns = a == 1 ? r->columns : 1,
              .row_step = a == 1 ? 1U : 0U,
              .column_step = a == 1 ? 0U : 1U};
  r->zero = r->scale;
  r->zero.values = as_f32(zero->main());
  r->step = Step::subtract;
  r->rounded = r->result = scale->dtype();
  r->keeps_rounding = true;
  r->id = "hqq";
  finish(t, weight, std::move(r));
}

void Matcher::quanto(const Tensor& t, const std::string& before) {
  const bool inner = before.ends_with("._data");
  const std::string name = inner ? before.substr(0, before.size() - 6) : before;
  const auto scale = take(name + "._scale"), shift = take(name + "._shift");
  if (!scale) return missing(t, name, "there is no scale for its codes");
  if (t.shape().size() != 2 || !is_real(scale->dtype())) return misfit(t, name, "its scales do not fit its codes");
  auto r = std::make_shared<Recipe>();
  r->codes = stored_elements(t.main());
  r->id = "quanto";
  r->rounded = r->result = scale->dtype();
  r->keeps_rounding = true;
  r->scale = {.values = as_f32(scale->main()), .rows = 1, .columns = t.shape()[1], .row_step = 1};
  if (!inner) {
    if (t.dtype() == DType::u8) return unsupported(t, name, "Quanto's u8 codes are not decoded");
    set_shape(*r, t.shape(), t.shape()[0], t.shape()[1]);
    r->value = t.dtype() == DType::i8 ? twos_complement() : floats(t.dtype());
    const auto grid = grid_of(*r, scale->shape(), 1, r->columns);
    if (!grid) return misfit(t, name, "its scales do not fit its codes");
    r->scale = *grid;
    r->scale.values = as_f32(scale->main());
    return finish(t, name, std::move(r));
  }
  const std::uint64_t rows = count_of(*scale), stored = t.shape()[0];
  if (!shift) return missing(t, name, "its shifts are missing");
  const std::uint64_t parts = rows == 0 ? 0 : quotient_up(rows, stored);
  if (t.dtype() != DType::u8 || (parts != 2 && parts != 4) || count_of(*shift) != rows || !is_real(shift->dtype()))
    return misfit(t, name, "its codes do not fit its scales and shifts");
  r->rows = rows;
  r->columns = t.shape()[1];
  // A row is a group; how many of them a row of the weight has is not stored.
  const std::uint64_t columns = number_answer("quanto", "columns");
  if (columns == 0) return ask(t, name, "nothing states how many columns it has", "quanto:columns=N");
  if (columns % r->columns != 0 || rows % (columns / r->columns) != 0)
    return misfit(t, name, "its groups do not make rows of " + std::to_string(columns));
  r->shape = {rows / (columns / r->columns), columns};
  r->packing = Packing::parts;
  r->bits = static_cast<std::uint32_t>(8 / parts);
  r->part_rows = stored;
  r->value = integers(r->bits, 0);
  r->zero = r->scale;
  r->zero.values = changed(as_f32(shift->main()), [](float v) { return -v; });
  r->step = Step::add;
  finish(t, name, std::move(r));
}

}  // namespace weighbridge::recipes
