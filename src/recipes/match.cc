// SPDX-License-Identifier: Apache-2.0
// Weights with scales: FP8, int8, MX and NV formats, compressed-tensors, gpt-oss.
#include "recipes/match.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <optional>
#include <utility>

#include "base/checked.h"
#include "codecs/cast.h"
#include "core/reading/rules.h"
#include "recipes/matcher.h"
#include "wire/json_reader.h"

namespace weighbridge::recipes {
namespace {

// Magnitudes of NVFP4's global scale: a factor is the largest weight / 2688, and a divisor 2688 / that.
constexpr float kLeastDivisor = 1, kMostFactor = 8;

float rounded_to(float value, DType to) {
  std::array<std::byte, 2> narrow{};
  codecs::cast(DType::f32, std::as_bytes(std::span(&value, 1)), to, narrow, 1);
  codecs::cast(to, narrow, DType::f32, std::as_writable_bytes(std::span(&value, 1)), 1);
  return value;
}

std::string text_of(float value) {
  std::string out = std::to_string(value);
  return std::abs(value) < 1e-3F && value != 0 ? "less than 0.001" : out.substr(0, out.find('.') + 4);
}

// "128x128". nullopt: not two numbers.
std::optional<std::vector<std::uint64_t>> block_of(std::string_view text) {
  const std::size_t by = text.find('x');
  if (by == text.npos) return std::nullopt;
  const auto rows = wire::as_u64(text.substr(0, by)), columns = wire::as_u64(text.substr(by + 1));
  if (!rows || !columns) return std::nullopt;
  return std::vector{*rows, *columns};
}

}  // namespace

// FP8, int8, NVFP4, MXFP4 and MXFP8 under the name of the weight itself.
void Matcher::scaled(const Tensor& t, const std::string& name) {
  const DType d = t.dtype();
  if ((!is_fp8(d) && d != DType::i8 && d != DType::u8) || t.shape().size() < 2) return;
  const bool weight = name.ends_with(".weight");
  const auto inverse = take(name + "_scale_inv");
  auto scale = inverse ? inverse : take(name + "_scale");
  if (!scale && weight) scale = take(name.substr(0, name.size() - 6) + "scale");
  const auto factor = take(name + "_scale_2");
  if (!scale && factor) return missing(t, name, "there is no weight_scale for its codes");
  if (!scale) return;
  const DType s = scale->dtype();
  if (d == DType::u8 || (d == DType::i8 && s == DType::f8_e8m0)) return pairs(t, name, *scale, factor);
  if (find(name + "_zero_point"))
    return unsupported(t, name, "it has zero points that are not packed, which no recipe has");

  auto r = std::make_shared<Recipe>();
  set_shape(*r, t.shape(), t.shape()[t.shape().size() - 2], t.shape().back());
  r->codes = stored_elements(t.main());
  r->value = d == DType::i8 ? twos_complement() : floats(d);
  if (s == DType::u8) {
    const auto grid = grid_of(*r, scale->shape(), 1, 32);
    if (!grid || d == DType::i8) return misfit(t, name, "its exponents do not fit blocks of 32");
    r->scale = *grid;
    r->scale.values = by_code(scale->main(), exponents());
    r->id = "mxfp8";
    r->result = result_of(DType::bf16);
    return finish(t, name, std::move(r));
  }
  if (!is_real(s) && s != DType::f8_e8m0)
    return unsupported(t, name,
                       "its scales have the type " + std::string(weighbridge::name(s)) + ", which no recipe has");
  const std::string& algorithm = settings().algorithm;
  const bool modelopt = method() == "modelopt" || algorithm.starts_with("FP8") || algorithm.starts_with("fp8");
  const Shape given = scale->shape();
  const std::uint64_t count = count_of(*scale);
  if (count != 1 && count == r->lead && r->rows > 1)
    return unsupported(t, name, "it has one scale for each of its matrices, which no recipe has");
  std::uint64_t block_rows = 1, block_columns = r->columns;  // one scale a row
  const bool blocks =
      inverse.has_value() || given.size() >= 3 || (given.size() == 2 && given.back() != 1) || s == DType::f8_e8m0;
  if (blocks && count != 1) {
    // What is said, then what the config says; never what the grid suggests, which is wrong where edges
    // are ragged: only MX groups of 32 show themselves.
    auto block = block_of(answer("fp8", "block"));
    if (!block && settings().block.size() == 2) block = settings().block;
    if (!block && s == DType::f8_e8m0 && grid_of(*r, given, 1, 32)) block = std::vector<std::uint64_t>{1, 32};
    if (!block && modelopt) block = std::vector<std::uint64_t>{128, 128};
    if (!block && settings().strategy == "group" && settings().group > 0)
      block = std::vector<std::uint64_t>{1, settings().group};
    if (!block || (*block)[0] == 0 || (*block)[1] == 0) {
      const bool usual = grid_of(*r, given, 128, 128).has_value();
      const std::string& odd = settings().odd;
      return ask(
          t, name,
          odd.empty() ? "nothing states the size of its blocks" : "its config says a " + odd + " that is not positive",
          usual ? "fp8:block=128x128" : "fp8:block=RxC");
    }
    block_rows = (*block)[0];
    block_columns = (*block)[1];
  }
  const bool alone = count == 1 && inverse && settings().block.size() == 2 &&
                     settings().odd.empty();  // of blocks, so there can be only one
  const bool fits = !alone || (r->lead == 1 && settings().block[0] >= r->rows && settings().block[1] >= r->columns);
  const auto grid = grid_of(*r, given, block_rows, block_columns);
  if (!grid || !fits)
    return misfit(
        t, name,
        !fits ? "it has one scale, and more than one block"
        : block_columns == r->columns && block_rows == 1
            ? "it has neither one scale nor one for each row"
            : "its scales do not fit blocks of " + std::to_string(block_rows) + " x " + std::to_string(block_columns));
  r->scale = *grid;
  r->scale.values = as_f32(scale->main());
  r->id = d == DType::i8 ? "int8" : "fp8";
  if (d == DType::i8 && settings().symmetric == false)
    return missing(t, name, "its config is not symmetric, and there are no zero points");
  r->result = modelopt || inverse || s == DType::f8_e8m0 ? result_of(DType::bf16) : s;
  if (modelopt) r->rounded_scale = r->result;
  finish(t, name, std::move(r));
}

// Two codes of 4 bits in a byte: ModelOpt's NVFP4 and MXFP4, DeepSeek's experts.
void Matcher::pairs(const Tensor& t, const std::string& name, const Tensor& scale,
                    const std::optional<Tensor>& factor) {
  const DType s = scale.dtype();
  const Shape shape = t.shape();
  const bool nv = s == DType::f8_e4m3;
  auto r = std::make_shared<Recipe>();
  if (is_real(s))
    return unsupported(t, name,
                       "its scales are numbers, as of ModelOpt's W4A16_AWQ, which no library decodes on a CPU");
  if (!nv && s != DType::u8 && s != DType::f8_e8m0)
    return unsupported(t, name,
                       "no scheme is known for u8 codes with scales of the type " + std::string(weighbridge::name(s)));
  set_shape(*r, shape, shape[shape.size() - 2], shape.back() * 2);
  r->packing = Packing::stream;
  r->bits = 4;
  r->row_bytes = shape.back();
  r->codes = stored_elements(t.main());
  r->value = e2m1(!nv);  // ModelOpt decodes code 8 of NVFP4 to +0, and of MXFP4 to -0
  const auto grid = grid_of(*r, scale.shape(), 1, nv ? 16 : 32);
  if (!grid) return misfit(t, name, "its scales do not fit blocks of " + std::string(nv ? "16" : "32"));
  r->scale = *grid;
  r->id = nv ? "nvfp4" : "mxfp4";
  r->result = result_of(DType::bf16);
  if (nv) {
    if (!factor) return missing(t, name, "there is no weight_scale_2 for its NVFP4 codes");
    if (count_of(*factor) != 1 || !is_real(factor->dtype()))
      return misfit(t, name, "its weight_scale_2 is not one number");
    const float by = number_of(*factor);
    if (by > kMostFactor) note(core::rules::kQuantizedDirection, *factor, "a factor, which is small", text_of(by));
    auto values = floats(s);
    for (float& each : values) each *= by;
    r->scale.values = by_code(scale.main(), values);
    r->nvfp4 = {.bytes = stored_elements(scale.main()), .global = by};
  } else {
    r->scale.values = s == DType::u8 ? by_code(scale.main(), exponents()) : as_f32(scale.main());
  }
  finish(t, name, std::move(r));
}

// compressed-tensors: NAME.weight_packed.
void Matcher::packed(const Tensor& t, const std::string& name) {
  const auto scale = take(name + "_scale"), stated = take(name + "_shape"), zero = take(name + "_zero_point"),
             global = take(name + "_global_scale"), groups = take(name + "_g_idx");
  if (!scale) return missing(t, name, "there is no weight_scale for its codes");
  if (t.shape().size() < 2) return misfit(t, name, "its codes are not a matrix");
  if (t.dtype() == DType::u8) return packed_floats(t, name, *scale, global);
  if (t.dtype() != DType::i32 || !is_real(scale->dtype()))
    return unsupported(t, name, "its codes or scales have types that compressed-tensors does not write");
  if (!stated) return missing(t, name, "there is no weight_shape");
  const Shape shape = t.shape();
  const std::uint64_t rows = shape[shape.size() - 2], last = shape.back();
  const auto dims = integers_of(*stated);
  const auto state = [&](std::string text) { malformed(core::rules::kQuantizedState, t, name, std::move(text)); };
  if (dims.size() < 2 || dims.back() == 0 || dims.back() > last * 32)
    return state("its weight_shape is not the shape of its codes");
  if (dims[dims.size() - 2] != rows) return state("its weight_shape has another number of rows");
  const std::uint64_t columns = dims.back();

  // The width of a row tells the bits, and whether codes were padded to words (compressed-tensors before 0.18).
  struct Width {
    std::uint64_t bits;
    bool padded;
  };
  std::vector<Width> fitting;
  for (std::uint64_t bits = 2; bits <= 8; ++bits) {
    const bool dense = quotient_up(columns * bits, 32) == last, padded = quotient_up(columns, 32 / bits) == last;
    if (dense) fitting.push_back({bits, false});
    if (padded && (32 % bits != 0 || !dense)) fitting.push_back({bits, true});
  }
  if (fitting.empty()) return state("its weight_shape does not fit its codes at any width");
  const auto keep = [&](auto may) {
    std::vector<Width> kept;
    std::copy_if(fitting.begin(), fitting.end(), std::back_inserter(kept), may);
    if (!kept.empty()) fitting = std::move(kept);
  };
  const std::uint64_t said = number_answer("compressed-tensors", "bits");
  const std::string_view packing = answer("compressed-tensors", "packing");
  if (said > 0) {
    keep([&](const Width& each) { return each.bits == said; });
    if (fitting[0].bits != said) return state("its codes do not have " + std::to_string(said) + " bits");
  }
  if (settings().bits > 0) keep([&](const Width& each) { return each.bits == settings().bits; });
  const auto& all = layers_.widths();
  keep([&](const Width& each) { return std::ranges::find(all, each.bits) != all.end(); });
  if (!packing.empty()) {
    keep([&](const Width& each) { return each.padded == (packing == "padded"); });
  } else if (const std::string& v = settings().version; !v.empty()) {
    const std::size_t dot = v.find('.');
    const auto minor = dot == v.npos ? std::nullopt : wire::as_u64(v.substr(dot + 1, v.find('.', dot + 1) - dot - 1));
    const bool before = v.starts_with("0.") && minor && *minor < 18;
    keep([&](const Width& each) { return each.padded == before; });
  }
  if (fitting.size() > 1) {
    if (fitting[0].bits != fitting[1].bits)
      return ask(t, name, "nothing states the bits of its codes", "compressed-tensors:bits=N");
    return ask(t, name, "nothing states whether its codes are padded to words",
               "compressed-tensors:packing=" + std::string(fitting[0].padded ? "padded" : "dense"));
  }
  auto r = std::make_shared<Recipe>();
  r->codes = stored_elements(t.main());
  r->packing = fitting[0].padded ? Packing::padded : Packing::stream;
  r->row_bytes = last * 4;
  r->bits = static_cast<std::uint32_t>(fitting[0].bits);
  set_shape(*r, shape, rows, columns);
  r->value = integers(r->bits, 1 << (r->bits - 1));
  const std::uint64_t across = scale->shape().empty() || count_of(*scale) == 1 ? 1 : scale->shape().back();
  const std::uint64_t group = settings().group;
  if (across == 0 || columns % across != 0 ||
      (group > 0 && across > 1 && quotient_up(columns, group) == across && columns % group != 0))
    return misfit(t, name, "its groups do not divide its columns");
  if (settings().symmetric == false && !zero)
    return missing(t, name, "its config is not symmetric, and there is no weight_zero_point");
  const auto grid = grid_of(*r, scale->shape(), 1, columns / across);
  if (!grid) return misfit(t, name, "its scales do not fit its codes");
  r->scale = *grid;
  r->scale.values = as_f32(scale->main());
  if (groups && !read_groups(*r, *groups, across, true))
    return refuse(t, name, Refused::malformed, "its weight_g_idx names groups that are not there");
  if (zero) {
    const std::uint64_t down = count_of(*zero) / across;
    if (zero->dtype() != DType::i32 || down * across != count_of(*zero) || down != quotient_up(rows * r->bits, 32) ||
        down == rows || r->lead != 1)
      return unsupported(t, name, "its zero points are not packed, as those of compressed-tensors up to 0.9.3 are not");
    auto z = std::make_shared<Recipe>();  // packed along the rows: a column of words is a stream
    z->rows = across;
    z->columns = rows;
    z->packing = Packing::columns;
    z->bits = r->bits;
    z->codes = stored_elements(zero->main());
    z->value = r->value;
    r->step = Step::subtract;
    r->zero = r->scale;
    r->zero.values = elements_of(std::move(z), false);
    r->zero.rows = 1;
    r->zero.row_step = 1;
    r->zero.column_step = rows;
  }
  r->id = "compressed-tensors";
  r->result = scale->dtype();
  finish(t, name, std::move(r));
}

// compressed-tensors' NVFP4, MXFP4 and MXFP6.
void Matcher::packed_floats(const Tensor& t, const std::string& name, const Tensor& scale,
                            const std::optional<Tensor>& global) {
  const bool nv = scale.dtype() == DType::f8_e4m3;
  if (!nv && scale.dtype() != DType::u8)
    return unsupported(
        t, name,
        "no scheme is known for packed bytes with scales of the type " + std::string(weighbridge::name(scale.dtype())));
  auto r = std::make_shared<Recipe>();
  const Shape shape = t.shape();
  const std::uint64_t last = shape.back(), group = nv ? 16 : 32;
  const std::uint64_t columns = (scale.shape().empty() ? 0 : scale.shape().back()) * group;
  r->bits = columns * 6 == last * 8 ? 6 : 4;
  if (columns * r->bits != last * 8) return misfit(t, name, "its scales do not fit its codes");
  r->codes = stored_elements(t.main());
  r->packing = Packing::stream;
  r->row_bytes = last;
  set_shape(*r, shape, shape[shape.size() - 2], columns);
  const auto grid = grid_of(*r, scale.shape(), 1, group);
  if (!grid || (r->bits == 6 && nv)) return misfit(t, name, "its scales do not fit its codes");
  r->scale = *grid;
  r->value = r->bits == 6 ? e2m3() : e2m1(true);
  r->result = DType::bf16;
  if (nv) {
    if (!global) return missing(t, name, "there is no weight_global_scale for its NVFP4 codes");
    if (count_of(*global) != 1 || !is_real(global->dtype()))
      return misfit(t, name, "its weight_global_scale is not one number");
    const float by = number_of(*global);
    const bool scalar = global->shape().empty();
    if (by < kLeastDivisor) note(core::rules::kQuantizedDirection, *global, "a divisor, which is large", text_of(by));
    auto values = floats(scale.dtype());
    for (float& each : values) each = scalar ? rounded_to(each / by, DType::bf16) : each / by;
    r->scale.values = by_code(scale.main(), values);
    r->nvfp4 = {.bytes = stored_elements(scale.main()), .global = by, .divides = true, .rounds = scalar};
    r->id = "nvfp4";
  } else {
    auto values = exponents();
    for (float& each : values) each = rounded_to(each, DType::bf16);
    r->scale.values = by_code(scale.main(), values);
    r->id = r->bits == 6 ? "mxfp6" : "mxfp4";
  }
  finish(t, name, std::move(r));
}

// gpt-oss: NAME_blocks [experts, rows, groups, 16] and NAME_scales; transformers has [experts, columns, rows].
void Matcher::gpt_oss(const Tensor& t, const std::string& name) {
  const auto scale = take(name + "_scales");
  if (t.dtype() != DType::u8 || t.shape()[3] != 16) return;
  if (!scale) return missing(t, name, "there are no scales for its blocks");
  if (scale->dtype() != DType::u8) return misfit(t, name, "its scales are not exponents");
  auto r = std::make_shared<Recipe>();
  const Shape shape = t.shape();
  r->lead = shape[0];
  r->rows = shape[1];
  r->columns = shape[2] * 32;
  r->transposed = true;
  r->shape = {shape[0], r->columns, r->rows};
  r->packing = Packing::stream;
  r->bits = 4;
  r->row_bytes = shape[2] * 16;
  r->codes = stored_elements(t.main());
  r->value = e2m1(true);
  const auto grid = grid_of(*r, scale->shape(), 1, 32);
  if (!grid) return misfit(t, name, "its scales do not fit its blocks");
  r->scale = *grid;
  // 2^128 is beyond f32: half of it, twice.
  auto halves = exponents();
  for (int e = 0; e < 256; ++e) halves[static_cast<std::size_t>(e)] = std::ldexp(1.0F, e - 128);
  r->scale.values = by_code(scale->main(), halves);
  r->factor = 2;
  r->id = "mxfp4";
  r->result = DType::bf16;
  finish(t, name, std::move(r));
}

std::vector<Match> matches_of(const Model& model, const Context& context, Look look) {
  return Matcher(model, context, look).run();
}

}  // namespace weighbridge::recipes
