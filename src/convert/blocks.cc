// SPDX-License-Identifier: Apache-2.0
// Layers whose codes are those of a block type of GGML: the same codes and scales, in its order. Nothing is decoded and
// quantized again. The definitions of the blocks are in codecs/ggml.inc.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/checked.h"
#include "base/endian.h"
#include "codecs/cast.h"
#include "convert/derived.h"
#include "convert/llama_cpp.h"
#include "core/model/coded.h"
#include "core/model/draft.h"
#include "core/model/plan_text.h"
#include "core/payload/elements.h"
#include "core/payload/work.h"
#include "recipes/match.h"

namespace weighbridge::convert {
namespace {

using core::subject;
using recipes::Grid, recipes::Match, recipes::Recipe;

constexpr std::string_view kFactorEnd = ".scale";  // of llama.cpp, in place of kWeight

// ---- blocks ----

std::byte nibbles(float low, float high) {
  return static_cast<std::byte>(static_cast<unsigned>(low) | static_cast<unsigned>(high) << 4);
}
// The first half in the low bits.
void store_halves(const float* codes, std::size_t half, std::byte* out) {
  for (std::size_t i = 0; i < half; ++i) out[i] = nibbles(codes[i], codes[i + half]);
}
std::uint16_t half_of(float value) {
  std::uint16_t out = 0;
  codecs::cast(DType::f32, std::as_bytes(std::span(&value, 1)), DType::f16, std::as_writable_bytes(std::span(&out, 1)),
               1);
  return out;
}
bool is_half(float value) {
  const std::uint16_t half = half_of(value);
  float again = 0;
  codecs::cast(DType::f16, std::as_bytes(std::span(&half, 1)), DType::f32, std::as_writable_bytes(std::span(&again, 1)),
               1);
  return std::isfinite(value) && again == value;
}
bool is_exponent(float value) {
  int ignored = 0;
  return std::isfinite(value) && std::frexp(value, &ignored) == 0.5F;
}

// A block type: its codes, `unit` of which share a scale.
struct Form {
  std::string_view block;
  std::size_t unit;
  int lowest, highest;         // integers that its codes stand for; both 0: they are e2m1
  bool (*holds)(float scale);  // a scale as `encode` takes it
  std::string_view otherwise;  // what is said of one that it does not hold
  void (*encode)(const float* codes, const float* scales, std::byte* out);
};
constexpr std::string_view kNotHalf = "a scale is not finite, or not exact in f16";
constexpr Form kForms[] = {
    {"ggml.mxfp4", 32, 0, 0, is_exponent, "an exponent is 255, which is no number",
     [](const float* codes, const float* scales, std::byte* out) {
       out[0] = static_cast<std::byte>(std::ilogb(scales[0]) + 127);
       store_halves(codes, 16, out + 1);
     }},
    {"ggml.nvfp4", 16, 0, 0, [](float byte) { return byte <= 0x7e; }, "the scale of a block is negative or NaN",
     [](const float* codes, const float* scales, std::byte* out) {
       for (std::size_t k = 0; k < 4; ++k) {
         out[k] = static_cast<std::byte>(scales[k]);
         store_halves(codes + 16 * k, 8, out + 4 + 8 * k);
       }
     }},
    {"ggml.q4_0", 32, -8, 7, is_half, kNotHalf,
     [](const float* codes, const float* scales, std::byte* out) {
       base::store_le(out, half_of(scales[0]));
       store_halves(codes, 16, out + 2);
     }},
    {"ggml.q8_0", 32, -128, 127, is_half, kNotHalf,
     [](const float* codes, const float* scales, std::byte* out) {
       base::store_le(out, half_of(scales[0]));
       for (std::size_t i = 0; i < 32; ++i) out[2 + i] = static_cast<std::byte>(static_cast<int>(codes[i]));
     }},
};

// ---- which ----

// A matrix of the same size whose elements are those of `recipe` before anything is done to them.
Recipe matrix_of(const Recipe& recipe) {
  Recipe out{.id = recipe.id, .lead = recipe.lead, .rows = recipe.rows, .columns = recipe.columns};
  out.result = DType::f32;
  return out;
}

bool all_of(const core::Elements& values, const Context& context, const std::function<bool(float)>& good) {
  bool out = true;
  values.stream(context, [&](std::span<const std::byte> piece) {
    for (; out && piece.size() >= sizeof(float); piece = piece.subspan(sizeof(float))) {
      float value;
      std::memcpy(&value, piece.data(), sizeof value);
      out = good(value);
    }
    return out;
  });
  return out;
}

// What a layer becomes; `why` says why it cannot.
struct Route {
  std::string why{};
  const Form* form = nullptr;
  const BlockTypeInfo* block = nullptr;
  std::array<float, 256> stored{};  // what a block stores for each code
  Grid scale{};                     // as Form::encode takes it
  float factor = 1;
};

class Routing {
 public:
  Routing(const Recipe& recipe, const Context& context) : r_(recipe), context_(context) {}

  Route run() {
    if (!choose() || !fits()) out_.form = nullptr;
    return std::move(out_);
  }

 private:
  bool no(std::string why) {
    out_.why = std::move(why);
    return false;
  }

  bool fits() {
    out_.block = find_block_type(out_.form->block);
    if (!r_.groups.empty()) return no("its groups are in another order than its columns (act order)");
    if (r_.columns % out_.block->block_elements != 0)
      return no("its rows of " + std::to_string(r_.columns) + " elements do not divide into blocks of " +
                std::to_string(out_.block->block_elements));
    const std::uint64_t group = out_.scale.columns;
    if (group < r_.columns && group % out_.form->unit != 0)
      return no("its groups of " + std::to_string(group) + " do not divide into those of " +
                std::to_string(out_.form->unit));
    return all_of(*out_.scale.values, context_, out_.form->holds) || no(std::string(out_.form->otherwise));
  }

  bool choose() {
    out_.scale = r_.scale;
    if (r_.bits == 4 && r_.id == "nvfp4" && r_.nvfp4.bytes) return as_e2m1(kForms[1]) && take_factor();
    if (r_.bits == 4 && r_.id == "mxfp4") return as_e2m1(kForms[0]);
    return as_integers();
  }

  bool as_e2m1(const Form& form) {
    out_.form = &form;
    out_.stored = recipes::integers(4, 0);
    const auto each = [&](core::ElementsPtr from, std::function<float(const std::byte*)> make) {
      out_.scale.values =
          core::mapped(std::move(from), {.dtype = DType::f32,
                                         .make = [make](std::uint64_t, std::span<const std::byte> in,
                                                        std::span<std::byte> out, const Context&, codecs::CastTally*) {
                                           const std::size_t n = out.size() / sizeof(float), width = in.size() / n;
                                           for (std::size_t i = 0; i < n; ++i) {
                                             const float value = make(in.data() + i * width);
                                             std::memcpy(out.data() + i * sizeof value, &value, sizeof value);
                                           }
                                         }});
    };
    if (r_.nvfp4.bytes)
      each(r_.nvfp4.bytes, [](const std::byte* in) { return static_cast<float>(*in); });
    else if (r_.factor != 1)
      each(r_.scale.values, [by = r_.factor](const std::byte* in) {
        float value;
        std::memcpy(&value, in, sizeof value);
        return value * by;
      });
    return true;
  }

  bool take_factor() {
    out_.factor = r_.nvfp4.divides ? 1 / r_.nvfp4.global : r_.nvfp4.global;
    return (std::isfinite(out_.factor) && out_.factor > 0) || no("its global scale is zero, negative or not finite");
  }

  bool as_integers() {
    const bool plain = r_.scale.values && r_.factor == 1 && !r_.keeps_rounding && r_.step != recipes::Step::add &&
                       r_.rounded_scale == DType::unknown;
    const std::size_t codes = std::size_t{1} << r_.bits;
    for (std::size_t c = 0; c < codes; ++c)
      if (!plain || r_.value[c] != std::floor(r_.value[c])) return no("GGUF has no such blocks");
    out_.form = r_.bits <= 4 ? &kForms[2] : &kForms[3];
    const int offset = r_.bits <= 4 ? 8 : 0;
    float zero = 0;
    if (r_.zero.values) {
      r_.zero.values->read(0, 1, std::as_writable_bytes(std::span(&zero, 1)), context_);
      if (!all_of(*r_.zero.values, context_, [zero](float each) { return each == zero; }))
        return no("its zeros differ: it is not symmetric");
    }
    for (std::size_t c = 0; c < codes; ++c) {
      const float value = r_.value[c] - zero;
      if (!(value >= static_cast<float>(out_.form->lowest) && value <= static_cast<float>(out_.form->highest)))
        return no("its zeros are not " + std::to_string(1 << (r_.bits - 1)) + ": it is not symmetric");
      out_.stored[c] = value + static_cast<float>(offset);
    }
    return true;
  }

  const Recipe& r_;
  const Context& context_;
  Route out_;
};

// The bytes of the blocks.
core::ElementsPtr blocks_of(const Recipe& r, const Route& route) {
  auto codes = std::make_shared<Recipe>(matrix_of(r));
  codes->packing = r.packing;
  codes->bits = r.bits;
  codes->codes = r.codes;
  codes->row_bytes = r.row_bytes;
  codes->part_rows = r.part_rows;
  codes->first_high = r.first_high;
  codes->value = route.stored;
  // One scale for each unit: the elements of a matrix whose codes all are 1.
  const std::uint64_t unit = route.form->unit;
  auto scales = std::make_shared<Recipe>(matrix_of(r));
  scales->columns = r.columns / unit;
  scales->codes = core::made_elements(DType::u8, r.lead * r.rows * scales->columns,
                                      [](std::uint64_t, std::uint64_t, std::span<std::byte> out, const Context&) {
                                        std::ranges::fill(out, std::byte{});
                                      });
  scales->value[0] = 1;
  scales->scale = route.scale;
  scales->scale.columns = (route.scale.columns + unit - 1) / unit;
  const std::size_t elements = route.block->block_elements, bytes = route.block->block_bytes;
  const auto make = [=, encode = route.form->encode, of = recipes::elements_of(std::move(scales), false)](
                        std::uint64_t first, std::span<const std::byte> in, std::span<std::byte> out,
                        const Context& context, codecs::CastTally*) {
    const std::size_t n = out.size() / bytes, each = elements / static_cast<std::size_t>(unit);
    std::vector<float> some(n * each);
    of->read(first * each, some.size(), std::as_writable_bytes(std::span(some)), context);
    for (std::size_t i = 0; i < n; ++i)
      encode(reinterpret_cast<const float*>(in.data()) + i * elements, &some[i * each], out.data() + i * bytes);
  };
  return core::mapped(recipes::elements_of(std::move(codes), false),
                      {.dtype = DType::u8, .from = elements, .to = bytes, .make = make});
}

class Blocks {
 public:
  Blocks(const Model& model, const Options& options, const Context& context)
      : model_(model), options_(options), context_(context), matches_(recipes::matches_of(model, context)) {}

  core::Derived run() {
    core::Work work;
    for (const Match& match : matches_)
      for (std::size_t i = 1; i < match.tensors.size(); ++i) work.add(model_[match.tensors[i]].main());
    work.require(context_.limits);
    for (const Match& match : matches_) take(match);
    if (routes_.empty()) {
      out_.model = model_;
      return std::move(out_);
    }
    bool all = true;  // codes have become blocks
    for (const Tensor& tensor : model_) all = all && (!core::is_codes(tensor) || parts_.contains(tensor.index()));
    core::Draft draft;
    draft.begin_view(model_);
    for (const Tensor& tensor : model_) {
      if (const auto at = routes_.find(tensor.index()); at != routes_.end()) {
        add(draft, *at->second.first, at->second.second);
      } else if (!parts_.contains(tensor.index())) {
        if (const core::Coded* const mark = all ? core::coded(tensor) : nullptr)
          out_.changes.push_back({LossKind::layout, subject(tensor), mark->name, std::string(recipes::kOtherScale)});
        else
          draft.adopt(tensor.name(), tensor);
      }
    }
    draft.index_names();
    draft.set_attributes(all ? recipes::without_configs(model_, out_.changes)
                             : std::vector<Value::Entry>(model_.attributes().begin(), model_.attributes().end()));
    out_.model = draft.finish();
    return std::move(out_);
  }

 private:
  std::string name_of_factor(const Match& match) const {
    return match.name.substr(0, match.name.size() - kWeight.size()) + std::string(kFactorEnd);
  }
  bool is_taken(const Match& match, const std::string& name) {
    const auto other = model_.find(name);
    return (other && std::ranges::find(match.tensors, other->index()) == match.tensors.end()) ||
           !names_.insert(name).second;
  }

  void take(const Match& match) {
    const std::string scheme = name_of(match);
    Route route{.why = match.refusal};
    if (match.recipe) route = Routing(*match.recipe, context_).run();
    const bool factor = route.factor != 1;
    if (route.form && factor && !match.name.ends_with(kWeight))
      route.why = "it has a factor, and its name does not end in .weight";
    else if (route.form && (is_taken(match, match.name) || (factor && is_taken(match, name_of_factor(match)))))
      route.why = "there is a tensor of the name that it would have";
    // llama.cpp's names are those of matrices, and a quantization is of the numbers.
    const bool other = factor && !options_.gguf.naming.empty();
    if (route.form && !options_.quantize.empty() && route.form->block != "ggml." + options_.quantize) return;
    if (route.why.empty() && !other) {
      parts_.insert(match.tensors.begin(), match.tensors.end());
      routes_.emplace(match.tensors.front(), std::pair(&match, std::move(route)));
    } else if (!needs_values(options_, "gguf")) {
      out_.changes.push_back({LossKind::layout, subject(model_[match.tensors.front()]), scheme,
                              "left in " + std::to_string(match.tensors.size()) + " tensors: " + route.why +
                                  "; dequantizing makes it dense"});
    }
  }

  std::string name_of(const Match& match) const {
    const core::Coded* const mark = core::coded(model_[match.tensors.front()]);
    return mark ? mark->name : "codes";
  }

  void add(core::Draft& draft, const Match& match, const Route& route) {
    const Recipe& r = *match.recipe;
    std::vector<std::uint64_t> shape = r.shape;
    if (r.transposed) std::swap(shape.end()[-1], shape.end()[-2]);
    const core::ElementsPtr bytes = blocks_of(r, route);
    draft.tensor(draft.add_tensor(match.name, route.block->layout, DType::f32, shape))
        .block_type(route.block)
        .attribute("type", Value::text(std::string(route.block->type_attribute)));
    const std::uint64_t size[] = {bytes->count()};
    draft.part(draft.add_part("data", DType::u8, size, Encoding::computed, {}, size[0])).elements(bytes);
    const std::string from = subject(model_[match.tensors.front()]);
    std::string to = std::string(route.block->name) + " with the same codes and scales";
    if (r.transposed) to += ", as " + core::shape_text(shape);
    if (std::signbit(r.value[8]) && r.value[8] == 0) to += "; code 8 is -0 there and +0 in GGUF";
    if (route.factor != 1) {
      add_values(draft, name_of_factor(match), {route.factor});
      to += "; the factor is " + core::quoted(name_of_factor(match));
    }
    if (r.nvfp4.rounds)
      out_.losses.push_back({LossKind::precision, from, "scales that are divided and rounded to bf16", "not rounded"});
    else if (r.nvfp4.divides && 1 / route.factor != r.nvfp4.global)
      out_.losses.push_back({LossKind::precision, from, "a divisor of its scales", "a factor, rounded"});
    out_.changes.push_back({LossKind::layout, from, name_of(match), std::move(to)});
  }

  const Model& model_;
  const Options& options_;
  const Context& context_;
  const std::vector<Match> matches_;
  core::Derived out_;
  std::map<std::uint32_t, std::pair<const Match*, Route>> routes_;  // by the tensor with the codes
  std::set<std::uint32_t> parts_;
  std::set<std::string> names_;
};

}  // namespace

core::Derived blocks_for_gguf(const Model& model, const Options& options, const Context& context) {
  return Blocks(model, options, context).run();
}

}  // namespace weighbridge::convert
