// SPDX-License-Identifier: Apache-2.0
// Reading Y11. Layers that are exactly a quantized_group: GPTQ's (AutoGPTQ, GPTQModel) and AWQ's gemm. Of `in` x `out`
// elements with codes of b bits, n = 32 / b to a word:
//
//          GPTQ                                      AWQ, b = 4
//   qweight  i32 [in / n, out]: a word has n rows of   i32 [in, out / n]: a word has n columns of a row, in the order
//            a column, least significant bits first    0 2 4 6 1 3 5 7
//   qzeros   i32 [groups, out / n]: n columns          likewise, in that order
//   scales   f16 [groups, out]                         likewise
//   g_idx    i32 [in]: the group of each row; absent,  none
//            or row / group_size unless act-order
//
// so that scales, and GPTQ's qweight, are bit for bit what quantized_group has; AWQ's codes change places. Its zeros
// are numbers: f16, as in the specification's example, which holds all of 0 .. 256. GPTQ's checkpoint_format "gptq"
// (v1) stores zero - 1 in qzeros, "gptq_v2" the zero itself, as AWQ does. In v1 the largest code means 2^b, as AutoGPTQ
// computes it.
#include "convert/derived.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <map>
#include <set>
#include <span>
#include <utility>

#include "base/checked.h"
#include "base/endian.h"
#include "base/fail.h"
#include "codecs/cast.h"
#include "core/model/coded.h"
#include "core/model/draft.h"
#include "core/model/plan_text.h"
#include "core/payload/elements.h"
#include "core/payload/work.h"
#include "recipes/match.h"

namespace weighbridge::convert {
namespace {

using core::subject;

constexpr std::string_view kQweight = ".qweight", kQzeros = ".qzeros", kScales = ".scales", kGroups = ".g_idx";
// Attributes of the quantized_group: the facts that its parts do not show.
constexpr std::string_view kFormatKey = "gptq.checkpoint_format", kGroupsKey = "gptq.g_idx", kAwqKey = "awq.version";
constexpr std::string_view kV1 = "gptq", kV2 = "gptq_v2", kGemm = "gemm", kAwq = "awq";
constexpr std::uint32_t kWordBits = 32;
// Columns of a layer of AWQ: eight rows of words, which are made together, then have at most 16 MiB.
constexpr std::uint64_t kMaxColumns = std::uint64_t{1} << 22;

// The bit at which code k of a word begins.
using Places = std::array<std::uint32_t, kWordBits / 2>;
Places places(std::uint32_t bits, bool awq) {
  if (awq) return {0, 16, 4, 20, 8, 24, 12, 28};
  Places out{};
  for (std::uint32_t k = 0; k < kWordBits / bits; ++k) out[k] = k * bits;
  return out;
}

// The checkpoint_format of GPTQ to restore: that of the caller, else `said`; v1 if a config says nothing.
std::string_view format_of(std::string_view asked, std::string_view said) {
  if (asked == "v1") return kV1;
  if (asked == "v2") return kV2;
  if (said == kV1 || said == kV2) return said == kV1 ? kV1 : kV2;
  if (said.empty())
    base::misuse("gptq",
                 "nothing says how GPTQ's zeros are stored, minus one (v1, checkpoint_format gptq) or as they are (v2, "
                 "gptq_v2)",
                 base::option_hint("scheme", "gptq:zeros=v1 or gptq:zeros=v2"));
  base::misuse("gptq", fmt::format("the checkpoint_format {} is neither gptq (v1) nor gptq_v2",
                                   core::quoted(core::excerpt(said))));
}

// qzeros as f16.
core::ElementsPtr zeros_of(const Part& qzeros, std::uint32_t bits, std::uint32_t added, bool awq) {
  std::array<float, 256> values{};
  std::array<std::uint16_t, 256> halves{};
  const std::uint32_t mask = (1U << bits) - 1;
  for (std::uint32_t code = 0; code <= mask; ++code) values[code] = static_cast<float>((code + added) & mask);
  codecs::cast(DType::f32, std::as_bytes(std::span(values)), DType::f16, std::as_writable_bytes(std::span(halves)),
               values.size());
  const auto make = [bits, halves, at = places(bits, awq)](std::uint64_t, std::span<const std::byte> in,
                                                           std::span<std::byte> out, const Context&,
                                                           codecs::CastTally*) {
    for (std::byte* to = out.data(); !in.empty(); in = in.subspan(4)) {
      const auto word = base::load_le<std::uint32_t>(in.data());
      for (std::uint32_t k = 0; k < kWordBits / bits; ++k, to += 2)
        std::memcpy(to, &halves[word >> at[k] & ((1U << bits) - 1)], 2);
    }
  };
  return core::mapped(core::elements_of(qzeros), {.dtype = DType::f16, .to = kWordBits / bits, .make = make});
}

// How a scheme stores zeros.
struct Zeros {
  bool awq = false, v1 = false;
  std::string text() const {
    return awq ? "AWQ" : std::string("GPTQ, with zeros stored ") + (v1 ? "minus one (v1)" : "as they are (v2)");
  }
};

[[noreturn]] void refuse_zero(const Tensor& tensor, double zero, std::uint32_t bits, Zeros as) {
  base::malformed(as.awq ? "convert/awq-zeros" : "convert/gptq-zeros",
                  fmt::format("the qzeros of {} cannot store a zero of {} in {} bits{}; nothing was written",
                              as.awq ? "AWQ" : "GPTQ", zero, bits, as.v1 ? " minus one (v1)" : " as it is"),
                  tensor.name(),
                  as.awq ? Hint{} : base::option_hint("scheme", as.v1 ? "gptq:zeros=v2" : "gptq:zeros=v1"));
}

// The part `zeros` as qzeros.
core::ElementsPtr qzeros_of(const Tensor& tensor, std::uint32_t bits, Zeros as) {
  const Part zeros = *tensor.part("zeros");
  const auto make = [tensor, bits, as, at = places(bits, as.awq), dtype = zeros.dtype()](
                        std::uint64_t, std::span<const std::byte> in, std::span<std::byte> out, const Context&,
                        codecs::CastTally*) {
    const std::size_t per_word = kWordBits / bits;
    const double added = as.v1 ? 1 : 0, maximum = static_cast<double>((1U << bits) - 1) + added;
    std::vector<double> values(out.size() / 4 * per_word);
    codecs::cast(dtype, in, DType::f64, std::as_writable_bytes(std::span(values)), values.size());
    for (std::size_t i = 0; i < out.size() / 4; ++i) {
      std::uint32_t word = 0;
      for (std::size_t k = 0; k < per_word; ++k) {
        const double zero = values[i * per_word + k];
        if (!(zero >= 0 && zero <= maximum) || zero != std::floor(zero)) refuse_zero(tensor, zero, bits, as);
        word |= ((static_cast<std::uint32_t>(zero) - (as.v1 ? 1U : 0U)) & ((1U << bits) - 1)) << at[k];
      }
      base::store_le(out.data() + 4 * i, word);
    }
  };
  return core::mapped(core::elements_of(zeros), {.dtype = DType::i32, .from = kWordBits / bits, .make = make});
}

// Eight rows at a time of AWQ's qweight as packed_weight; with `back`, the reverse.
core::ElementsPtr turned(const Part& words, std::uint64_t columns, bool back) {
  const auto make = [columns = base::to_size(columns), back, at = places(4, true)](
                        std::uint64_t, std::span<const std::byte> in, std::span<std::byte> out, const Context&,
                        codecs::CastTally*) {
    std::ranges::fill(out, std::byte{});
    for (; !in.empty(); in = in.subspan(4 * columns), out = out.subspan(4 * columns))
      for (std::size_t row = 0; row < 8; ++row)
        for (std::size_t c = 0; c < columns; ++c) {
          const std::size_t awq = row * (columns / 8) + c / 8;  // the words with this code
          const auto from = static_cast<unsigned>(back ? 4 * row : at[c % 8]),
                     to = static_cast<unsigned>(back ? at[c % 8] : 4 * row);
          const std::uint32_t code = base::load_le<std::uint32_t>(&in[4 * (back ? c : awq)]) >> from & 15;
          std::byte* const word = &out[4 * (back ? awq : c)];
          base::store_le(word, base::load_le<std::uint32_t>(word) | code << to);
        }
  };
  return core::mapped(core::elements_of(words), {.dtype = DType::i32, .from = columns, .to = columns, .make = make});
}

core::ElementsPtr groups_of(std::uint64_t rows, std::uint64_t group) {
  return core::made_elements(
      DType::i32, rows, [group](std::uint64_t first, std::uint64_t n, std::span<std::byte> out, const Context&) {
        for (std::uint64_t i = 0; i < n; ++i)
          base::store_le(out.data() + 4 * base::to_size(i), static_cast<std::uint32_t>((first + i) / group));
      });
}

// Adds a part with the stored bytes of another.
void share(core::Draft& draft, std::string_view role, const Part& from) {
  const auto part = draft.add_part(role, from.dtype(), from.shape(), from.encoding(), *from.extent(), from.size());
  draft.part(part).order(from.order()).digest(from.digest());
}

// Whether the tensor is dense, with one part whose bytes are in a file, and has nothing that a quantized_group would
// lose.
bool is_plain(const Tensor& tensor) {
  if (tensor.layout() != Layout::dense || tensor.unsupported() || !tensor.has_shape() || tensor.part_count() != 1 ||
      !tensor.attributes().empty() || !tensor.extra().empty())
    return false;
  const Part part = tensor.main();
  return part.extra().empty() && part.extent() && part.strides().empty();
}

const LayerScheme* find(std::span<const LayerScheme> all, std::string_view id) {
  const auto at = std::ranges::find(all, id, &LayerScheme::id);
  return at == all.end() ? nullptr : &*at;
}
std::string names_of(std::span<const LayerScheme> all) {
  std::string out;
  for (const LayerScheme& each : all)
    out += (out.empty() ? "" : " or ") + std::string(each.id == kAwq ? "AWQ" : "GPTQ");
  return out;
}

class Grouping {
 public:
  Grouping(const Model& model, std::span<const LayerScheme> asked, const Context& context)
      : model_(model), asked_(asked), context_(context) {}

  core::Derived run() {
    core::Work work;
    for (const Tensor& tensor : model_)
      if (tensor.name().ends_with(kGroups)) work.add(tensor.main());
    work.require(context_.limits);
    for (recipes::Match& match : recipes::matches_of(model_, context_, recipes::Look::copying)) find_layer(match);
    if (!any_)
      base::misuse("gptq", "no tensors are named as those of " + names_of(asked_) +
                               ": there is no NAME.qweight with NAME.qzeros");
    core::Draft draft;
    draft.begin_view(model_);
    for (const Tensor& tensor : model_)
      if (const auto at = layers_.find(tensor.index()); at != layers_.end())
        add(draft, at->second);
      else if (!parts_.contains(tensor.index()))
        draft.adopt(tensor.name(), tensor);
    draft.index_names();
    draft.set_attributes({model_.attributes().begin(), model_.attributes().end()});
    out_.model = draft.finish();
    return std::move(out_);
  }

 private:
  struct Layer {
    std::string name;
    Tensor qweight, qzeros, scales;
    std::optional<Tensor> g_idx;
    std::shared_ptr<const recipes::Recipe> recipe;
    const LayerScheme* scheme = nullptr;
  };

  std::optional<Tensor> find_tensor(const std::string& layer, std::string_view end) const {
    const auto found = model_.find(layer + std::string(end));
    return found ? std::optional<Tensor>(*found) : std::nullopt;
  }

  void find_layer(const recipes::Match& match) {
    const Tensor qweight = model_[match.tensors.front()];
    const std::string_view name = qweight.name();
    if (!name.ends_with(kQweight) || name.size() == kQweight.size()) return;
    Layer layer;
    layer.name = name.substr(0, name.size() - kQweight.size());
    const auto qzeros = find_tensor(layer.name, kQzeros), scales = find_tensor(layer.name, kScales);
    const core::Coded* const mark = core::coded(qweight);
    layer.scheme = find(asked_, match.recipe ? match.recipe->id : mark ? mark->id : std::string_view{});
    if (!qzeros || !scales || (match.recipe && !layer.scheme)) return;
    any_ = true;
    if (match.refused == recipes::Refused::question) base::misuse("gptq", match.refusal, match.hint);
    layer.qweight = qweight;
    layer.qzeros = *qzeros;
    layer.scales = *scales;
    layer.g_idx = find_tensor(layer.name, kGroups);
    layer.recipe = match.recipe;
    const std::string problem = match.recipe ? why_not(layer) : match.refusal;
    if (!problem.empty())
      return out_.changes.push_back(
          {LossKind::layout, subject(qweight), mark ? mark->name : "codes", "left as plain tensors: " + problem});
    parts_.insert(match.tensors.begin(), match.tensors.end());
    layers_.emplace(qweight.index(), std::move(layer));
  }

  // A sentence if a quantized_group cannot hold this layer.
  std::string why_not(const Layer& layer) const {
    const recipes::Recipe& r = *layer.recipe;
    const bool awq = layer.scheme->id == kAwq;
    const std::uint64_t count = layer.scales.shape()[0];
    if (model_.find(layer.name)) return "there is a tensor of the name that the layer would have";
    if (!is_plain(layer.qweight) || !is_plain(layer.qzeros) || !is_plain(layer.scales) ||
        (layer.g_idx && !is_plain(*layer.g_idx)))
      return "a tensor of the layer is not plain: dense, without attributes of its own";
    if (layer.qweight.dtype() != DType::i32 || layer.qzeros.dtype() != DType::i32 ||
        (layer.g_idx && layer.g_idx->dtype() != DType::i32))
      return "qweight, qzeros and g_idx are not i32";
    if (r.result != DType::f16 && r.result != DType::bf16 && r.result != DType::f32)
      return "its scales are not f16, bf16 or f32";
    if (r.packing != (awq ? recipes::Packing::awq : recipes::Packing::columns))
      return awq ? "its codes are not packed as those of AWQ's gemm" : "its codes are packed in planes (gptq_p)";
    if (r.bits != 2 && r.bits != 4 && r.bits != 8)
      return fmt::format("codes of {} bits: a quantized_group packs those of 2, 4 or 8", r.bits);
    if (!r.groups.empty())
      return "its g_idx is not row / group_size (desc_act): a quantized_group has its groups in order";
    const std::uint32_t per_word = kWordBits / r.bits;
    if (r.rows == 0 || r.columns == 0 || count == 0 || r.columns > UINT32_MAX || r.rows % per_word != 0 ||
        r.columns % per_word != 0 || (awq && r.rows > kMaxColumns))
      return fmt::format("its shape is not one of whole words of {} codes", per_word);
    if (r.columns % count != 0) return fmt::format("its {} rows are not {} groups of one size", r.columns, count);
    return {};
  }

  void add(core::Draft& draft, const Layer& layer) {
    const recipes::Recipe& r = *layer.recipe;
    const std::uint64_t shape[] = {r.columns, r.rows};
    const std::uint32_t t = draft.add_tensor(layer.name, Layout::quantized_group, DType::f32, shape);
    Zeros as{.awq = layer.scheme->id == kAwq};
    as.v1 = !as.awq && r.minus_one;
    const std::string_view format = as.awq ? kGemm : as.v1 ? kV1 : kV2;
    const Shape groups = layer.scales.shape();
    draft.tensor(t)
        .block_type(find_block_type(Layout::quantized_group, {}))
        .attributes({{"bits", Value::integer(std::uint64_t{r.bits})},
                     {"group_size", Value::integer(r.columns / groups[0])},
                     {"packing", Value::text(fmt::format("{}_per_i32", kWordBits / r.bits))},
                     {std::string(as.awq ? kAwqKey : kFormatKey), Value::text(std::string(format))}});
    if (as.awq) {
      const std::uint64_t words[] = {r.columns / 8, r.rows};
      draft
          .part(draft.add_part("packed_weight", DType::i32, words, Encoding::computed, {}, layer.qweight.main().size()))
          .elements(turned(layer.qweight.main(), r.rows, false));
    } else {
      draft.tensor(t).attribute(kGroupsKey, Value::boolean(layer.g_idx.has_value()));
      share(draft, "packed_weight", layer.qweight.main());
    }
    share(draft, "scales", layer.scales.main());
    const auto part = draft.add_part("zeros", DType::f16, groups, Encoding::computed, {},
                                     *packed_size(DType::f16, *base::element_count(groups)));
    draft.part(part).elements(zeros_of(layer.qzeros.main(), r.bits, as.v1 ? 1U : 0U, as.awq));
    out_.changes.push_back({LossKind::layout, core::indexed("tensors", layer.name),
                            fmt::format("{}, {} bits", as.awq ? "AWQ" : "GPTQ", r.bits),
                            as.awq ? std::string("a quantized_group, with the same codes in its order")
                                   : fmt::format("a quantized_group, with zeros that were stored {}",
                                                 as.v1 ? "minus one (v1)" : "as they are (v2)")});
  }

  const Model& model_;
  const std::span<const LayerScheme> asked_;
  const Context& context_;
  core::Derived out_;
  bool any_ = false;
  std::map<std::uint32_t, Layer> layers_;  // by qweight
  std::set<std::uint32_t> parts_;
};

class Splitting {
 public:
  Splitting(const Model& model, std::span<const LayerScheme> asked) : model_(model), asked_(asked) {
    const schemes::Config config = core::quantization_of(model);
    if (config.stated) format_ = config.all.format.empty() ? std::string(kV1) : config.all.format;
  }

  core::Derived run() {
    bool any = false;
    core::Draft draft;
    draft.begin_view(model_);
    for (const Tensor& tensor : model_) {
      if (tensor.layout() != Layout::quantized_group) {
        draft.adopt(tensor.name(), tensor);
        continue;
      }
      any = true;
      const LayerScheme& scheme = scheme_of(tensor);
      const bool awq = scheme.id == kAwq;
      const std::string problem = why_not(tensor, awq);
      if (problem.empty()) {
        add(draft, tensor, scheme);
      } else {
        out_.changes.push_back({LossKind::layout, subject(tensor), "quantized_group",
                                fmt::format("not made {}'s: {}", awq ? "AWQ" : "GPTQ", problem)});
        draft.adopt(tensor.name(), tensor);
      }
    }
    if (!any)
      base::misuse("gptq",
                   "no tensor is a quantized_group, from which tensors of " + names_of(asked_) + " could be made");
    draft.index_names();
    draft.set_attributes({model_.attributes().begin(), model_.attributes().end()});
    out_.model = draft.finish();
    return std::move(out_);
  }

 private:
  // The scheme that the tensor says it had, if it is asked for.
  const LayerScheme& scheme_of(const Tensor& tensor) const {
    const Attributes attributes = tensor.attributes();
    const LayerScheme* const said = find(asked_, attributes.find(kAwqKey) ? kAwq : kV1);
    return said ? *said : asked_.front();
  }

  std::string why_not(const Tensor& tensor, bool awq) const {
    const auto form = core::readable_blocks(tensor);
    if (!form) return "it cannot be read";
    if (awq && (form->bits != 4 || form->columns > kMaxColumns)) return "its codes are not of 4 bits";
    if (form->packing.word != DType::i32) return "its words are not i32";
    const std::uint64_t n = form->packing.codes_per_word;
    if (form->rows == 0 || form->columns == 0 || form->rows % n != 0 || form->columns % n != 0 ||
        form->rows > UINT32_MAX)
      return fmt::format("its shape does not fill words of {} codes", n);
    for (const Part& part : tensor.parts())
      if (!part.strides().empty() || (part.role() != "zeros" && !part.extent())) return "its parts are not plain";
    for (const std::string_view end : {kQweight, kQzeros, kScales, kGroups})
      if (model_.find(std::string(tensor.name()) + std::string(end)))
        return "there is a tensor of the name " + std::string(tensor.name()) + std::string(end);
    return {};
  }

  static void add_shared(core::Draft& draft, const std::string& name, const Part& part) {
    draft.add_tensor(name, Layout::dense, part.dtype(), part.shape());
    share(draft, "data", part);
  }
  static core::PartDraft add_made(core::Draft& draft, const std::string& name, Shape shape) {
    draft.add_tensor(name, Layout::dense, DType::i32, shape);
    return draft.part(draft.add_part("data", DType::i32, shape, Encoding::computed, {},
                                     *packed_size(DType::i32, *base::element_count(shape))));
  }

  void add(core::Draft& draft, const Tensor& tensor, const LayerScheme& scheme) {
    const codecs::BlockForm form = *core::readable_blocks(tensor);
    const std::string name(tensor.name());
    const Attributes attributes = tensor.attributes();
    const Value *const said = attributes.find(kFormatKey), *const groups = attributes.find(kGroupsKey);
    Zeros as{.awq = scheme.id == kAwq};
    as.v1 = !as.awq && format_of(scheme.zeros, said ? said->to_text() : format_) == kV1;
    const Part codes = *tensor.part("packed_weight");
    if (as.awq) {
      const std::uint64_t words[] = {form.rows, form.columns / 8};
      add_made(draft, name + std::string(kQweight), words).elements(turned(codes, form.columns, true));
    } else {
      add_shared(draft, name + std::string(kQweight), codes);
    }
    const std::uint64_t shape[] = {form.rows / form.group, form.columns / form.packing.codes_per_word};
    add_made(draft, name + std::string(kQzeros), shape).elements(qzeros_of(tensor, form.bits, as));
    add_shared(draft, name + std::string(kScales), *tensor.part("scales"));
    if (!as.awq && (!groups || groups->as_bool().value_or(true))) {
      const std::uint64_t rows[] = {form.rows};
      add_made(draft, name + std::string(kGroups), rows).elements(groups_of(form.rows, form.group));
    }
    out_.changes.push_back({LossKind::layout, subject(tensor), "quantized_group", as.text()});
  }

  const Model& model_;
  const std::span<const LayerScheme> asked_;
  std::string format_;  // what the config says; empty: nothing
  core::Derived out_;
};

}  // namespace

core::Derived groups_of_layers(const Model& model, std::span<const LayerScheme> asked, const Context& context) {
  return Grouping(model, asked, context).run();
}
core::Derived layers_of_groups(const Model& model, std::span<const LayerScheme> asked) {
  return Splitting(model, asked).run();
}

}  // namespace weighbridge::convert
