// SPDX-License-Identifier: Apache-2.0
// Reading Y11. GPTQ (AutoGPTQ, GPTQModel) stores a linear layer of `in` x `out` with codes of b bits, n = 32 / b to a
// word, as
//   NAME.qweight i32 [in / n, out]      word w of column c has rows w*n .. w*n+n-1, least significant bits first
//   NAME.qzeros  i32 [groups, out / n]  word w of a group has columns w*n .. w*n+n-1, likewise
//   NAME.scales  f16 [groups, out]
//   NAME.g_idx   i32 [in]               the group of each row; absent, or row / group_size unless act-order was used
// so that qweight and scales are bit for bit what quantized_group has as packed_weight and scales. Its zeros are
// numbers: f16, as in the specification's example, which holds all of 0 .. 256. checkpoint_format "gptq" (v1) stores
// zero - 1 in qzeros, "gptq_v2" the zero itself. In v1 the largest code means 2^b, as AutoGPTQ computes it.
#include "convert/derived.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <map>
#include <span>
#include <utility>

#include "base/checked.h"
#include "base/endian.h"
#include "base/fail.h"
#include "codecs/cast.h"
#include "core/model/draft.h"
#include "core/model/plan_text.h"
#include "core/payload/elements.h"
#include "core/payload/work.h"
#include "io/read.h"
#include "wire/json_reader.h"

namespace weighbridge::convert {
namespace {

using core::subject;

constexpr std::string_view kQweight = ".qweight", kQzeros = ".qzeros", kScales = ".scales", kGroups = ".g_idx";
// Attributes of the quantized_group: the facts that its parts do not show.
constexpr std::string_view kFormatKey = "gptq.checkpoint_format", kGroupsKey = "gptq.g_idx";
constexpr std::string_view kV1 = "gptq", kV2 = "gptq_v2";
constexpr std::string_view kConfig = "hf.quantization_config", kConfigFile = "quantize_config.json";
constexpr std::uint64_t kMaxConfig = 1 << 20;  // bytes of quantize_config.json; far more than real ones have
constexpr std::uint32_t kWordBits = 32;

// The settings in quantization_config or quantize_config.json.
struct Config {
  std::string format;  // checkpoint_format; empty if there is no config
  std::optional<std::uint64_t> bits, group_size;
};

Config parse_config(const std::string& text) {
  Config out{.format = std::string(kV1), .bits = {}, .group_size = {}};  // AutoGPTQ wrote no checkpoint_format at first
  wire::JsonReader in(text);
  if (!in.enter_object()) return {};
  for (wire::JsonString key; in.next_key(key);) {
    std::uint64_t number = 0;
    wire::JsonString word;
    if (key.raw == "checkpoint_format" && in.read_string(word))
      out.format = word.raw;
    else if (key.raw == "bits" && in.read_u64(number))
      out.bits = number;
    else if (key.raw == "group_size" && in.read_u64(number))
      out.group_size = number;
    else if (!in.skip_value())  // a group_size of -1 is one group
      break;
  }
  return in.ok() ? out : Config{};
}

Config config_of(const Model& model) {
  if (const Value* const value = model.attribute(kConfig)) return parse_config(value->to_text());
  for (const core::FolderFile& file : core::folder_files(model)) {
    if (file.name != kConfigFile) continue;
    const auto source = core::open_folder_file(model, file.name);
    if (!source || source->size() > kMaxConfig) break;
    return parse_config(io::text_of(*source));
  }
  return {};
}

// The checkpoint_format to assume: that of the caller, else `said`.
std::string_view format_of(std::string_view asked, std::string_view said) {
  if (asked == "v1") return kV1;
  if (asked == "v2") return kV2;
  if (said == kV1 || said == kV2) return said == kV1 ? kV1 : kV2;
  if (said.empty())
    base::misuse("gptq",
                 "nothing says how GPTQ's zeros are stored, minus one (v1, checkpoint_format gptq) or as they are (v2, "
                 "gptq_v2)",
                 base::option_hint("gptq", "v1 or v2"));
  base::misuse("gptq", fmt::format("the checkpoint_format {} is neither gptq (v1) nor gptq_v2",
                                   core::quoted(core::excerpt(said))));
}

// qzeros as f16.
core::ElementsPtr zeros_of(const Part& qzeros, std::uint32_t bits, std::uint32_t added) {
  std::array<float, 256> values{};
  std::array<std::uint16_t, 256> halves{};
  for (std::uint32_t code = 0; code < 1U << bits; ++code) values[code] = static_cast<float>(code + added);
  codecs::cast(DType::f32, std::as_bytes(std::span(values)), DType::f16, std::as_writable_bytes(std::span(halves)),
               values.size());
  const auto make = [bits, halves](std::uint64_t, std::span<const std::byte> in, std::span<std::byte> out,
                                   const Context&, codecs::CastTally*) {
    for (std::byte* to = out.data(); !in.empty(); in = in.subspan(4))
      for (std::uint32_t word = base::load_le<std::uint32_t>(in.data()), at = 0; at < kWordBits; at += bits, to += 2)
        std::memcpy(to, &halves[word >> at & ((1U << bits) - 1)], 2);
  };
  return core::mapped(core::elements_of(qzeros), {.dtype = DType::f16, .to = kWordBits / bits, .make = make});
}

[[noreturn]] void refuse_zero(const Tensor& tensor, double zero, std::uint32_t bits, bool v1) {
  base::malformed("convert/gptq-zeros",
                  fmt::format("GPTQ's qzeros cannot store a zero of {} in {} bits{}; nothing was written", zero, bits,
                              v1 ? " minus one (v1)" : " as it is (v2)"),
                  tensor.name(), base::option_hint("gptq", v1 ? "v2" : "v1"));
}

// The part `zeros` as qzeros.
core::ElementsPtr qzeros_of(const Tensor& tensor, std::uint32_t bits, bool v1) {
  const Part zeros = *tensor.part("zeros");
  const auto make = [tensor, bits, v1, dtype = zeros.dtype()](std::uint64_t, std::span<const std::byte> in,
                                                              std::span<std::byte> out, const Context&,
                                                              codecs::CastTally*) {
    const std::size_t per_word = kWordBits / bits;
    const double added = v1 ? 1 : 0, maximum = static_cast<double>((1U << bits) - 1) + added;
    std::vector<double> values(out.size() / 4 * per_word);
    codecs::cast(dtype, in, DType::f64, std::as_writable_bytes(std::span(values)), values.size());
    for (std::size_t i = 0; i < out.size() / 4; ++i) {
      std::uint32_t word = 0;
      for (std::size_t k = 0; k < per_word; ++k) {
        const double zero = values[i * per_word + k];
        if (!(zero >= added && zero <= maximum) || zero != std::floor(zero)) refuse_zero(tensor, zero, bits, v1);
        word |= static_cast<std::uint32_t>(zero - added) << k * bits;
      }
      base::store_le(out.data() + 4 * i, word);
    }
  };
  return core::mapped(core::elements_of(zeros), {.dtype = DType::i32, .from = kWordBits / bits, .make = make});
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

class Grouping {
 public:
  Grouping(const Model& model, std::string_view zeros) : model_(model), zeros_(zeros), config_(config_of(model)) {}

  core::Derived run() {
    for (const Tensor& tensor : model_) find_layer(tensor);
    if (!any_) base::misuse("gptq", "no tensors are named as GPTQ's: there is no NAME.qweight with NAME.qzeros");
    read_groups();
    core::Draft draft;
    draft.begin_view(model_);
    for (const Tensor& tensor : model_) {
      const auto at = owner_.find(tensor.index());
      const Layer* const layer = at == owner_.end() ? nullptr : &layers_[at->second];
      if (layer == nullptr || !layer->problem.empty())
        draft.adopt(tensor.name(), tensor);
      else if (tensor.index() == layer->qweight.index())
        add(draft, *layer);
    }
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
    std::uint32_t bits = 0;
    std::uint64_t rows = 0, group = 0;
    std::string problem{};
  };

  std::optional<Tensor> find(const std::string& layer, std::string_view end) const {
    const auto found = model_.find(layer + std::string(end));
    return found ? std::optional<Tensor>(*found) : std::nullopt;
  }

  void find_layer(const Tensor& qweight) {
    const std::string_view name = qweight.name();
    if (!name.ends_with(kQweight) || name.size() == kQweight.size()) return;
    Layer layer;
    layer.name = name.substr(0, name.size() - kQweight.size());
    const auto qzeros = find(layer.name, kQzeros), scales = find(layer.name, kScales);
    if (!qzeros || !scales) return;
    any_ = true;
    layer.qweight = qweight;
    layer.qzeros = *qzeros;
    layer.scales = *scales;
    layer.g_idx = find(layer.name, kGroups);
    layer.problem = measure(layer);
    for (const Tensor* const part : {&layer.qweight, &layer.qzeros, &layer.scales})
      owner_[part->index()] = layers_.size();
    if (layer.g_idx) owner_[layer.g_idx->index()] = layers_.size();
    layers_.push_back(std::move(layer));
  }

  // Fills in bits, rows and group size from the shapes. Returns a sentence if a quantized_group cannot hold this layer.
  std::string measure(Layer& layer) const {
    if (model_.find(layer.name)) return "there is a tensor of the name that the layer would have";
    if (!is_plain(layer.qweight) || !is_plain(layer.qzeros) || !is_plain(layer.scales) ||
        (layer.g_idx && !is_plain(*layer.g_idx)))
      return "a tensor of the layer is not plain: dense, without attributes of its own";
    const Shape words = layer.qweight.shape(), zeros = layer.qzeros.shape(), scales = layer.scales.shape();
    const DType scale = layer.scales.dtype();
    if (layer.qweight.dtype() != DType::i32 || layer.qzeros.dtype() != DType::i32 ||
        (layer.g_idx && layer.g_idx->dtype() != DType::i32))
      return "qweight, qzeros and g_idx of GPTQ are i32";
    if (scale != DType::f16 && scale != DType::bf16 && scale != DType::f32)
      return "scales of GPTQ are f16, bf16 or f32";
    if (words.size() != 2 || zeros.size() != 2 || scales.size() != 2 || words[1] != scales[1] ||
        zeros[0] != scales[0] || words[0] == 0 || words[1] == 0 || zeros[0] == 0)
      return "its shapes are not those of GPTQ";
    const auto bits = base::checked_mul(zeros[1], kWordBits);
    if (!bits || *bits % words[1] != 0 || *bits / words[1] == 0 || *bits / words[1] > kWordBits)
      return "its shapes are not those of GPTQ";
    layer.bits = static_cast<std::uint32_t>(*bits / words[1]);
    if (layer.bits != 2 && layer.bits != 4 && layer.bits != 8)
      return fmt::format("codes of {} bits: a quantized_group packs those of 2, 4 or 8", layer.bits);
    if (config_.bits && *config_.bits != layer.bits)
      return fmt::format("codes of {} bits, and its config says {}", layer.bits, *config_.bits);
    const auto rows = base::checked_mul(words[0], kWordBits / layer.bits);
    if (!rows || *rows > UINT32_MAX || (layer.g_idx && !std::ranges::equal(layer.g_idx->shape(), std::span(&*rows, 1))))
      return "its shapes are not those of GPTQ";
    layer.rows = *rows;
    layer.group = *rows / zeros[0];
    if (*rows % zeros[0] != 0 ||
        (config_.group_size && *config_.group_size > 0 && zeros[0] > 1 && *config_.group_size != layer.group))
      return fmt::format("its {} rows are not {} groups of one size", *rows, zeros[0]);
    return {};
  }

  // A layer whose g_idx is not row / group_size is not converted: its rows were quantized in the order of their
  // activations.
  void read_groups() {
    core::Work work;
    for (const Layer& layer : layers_)
      if (layer.g_idx && layer.problem.empty()) work.add(layer.g_idx->main());
    work.require({});
    for (Layer& layer : layers_) {
      if (layer.problem.empty() && layer.g_idx && !in_order(layer)) {
        layer.problem = "its g_idx is not row / group_size (desc_act): a quantized_group has its groups in order";
      }
      if (!layer.problem.empty())
        out_.changes.push_back(
            {LossKind::layout, subject(layer.qweight), "GPTQ", "left as plain tensors: " + layer.problem});
    }
  }

  static bool in_order(const Layer& layer) {
    std::uint64_t row = 0;
    bool good = true;
    layer.g_idx->main().stream({}, [&](std::span<const std::byte> piece) {
      for (; good && piece.size() >= 4; piece = piece.subspan(4), ++row)
        good = base::load_le<std::uint32_t>(piece.data()) == row / layer.group;
      return good;
    });
    return good;
  }

  void add(core::Draft& draft, const Layer& layer) {
    const std::uint64_t shape[] = {layer.rows, layer.qweight.shape()[1]};
    const std::uint32_t t = draft.add_tensor(layer.name, Layout::quantized_group, DType::f32, shape);
    const std::string_view format = format_of(zeros_, config_.format);
    draft.tensor(t)
        .block_type(find_block_type(Layout::quantized_group, {}))
        .attributes({{"bits", Value::integer(std::uint64_t{layer.bits})},
                     {"group_size", Value::integer(layer.group)},
                     {"packing", Value::text(fmt::format("{}_per_i32", kWordBits / layer.bits))},
                     {std::string(kFormatKey), Value::text(std::string(format))},
                     {std::string(kGroupsKey), Value::boolean(layer.g_idx.has_value())}});
    share(draft, "packed_weight", layer.qweight.main());
    share(draft, "scales", layer.scales.main());
    const Shape groups = layer.scales.shape();
    const auto part = draft.add_part("zeros", DType::f16, groups, Encoding::computed, {},
                                     *packed_size(DType::f16, *base::element_count(groups)));
    draft.part(part).elements(zeros_of(layer.qzeros.main(), layer.bits, format == kV1 ? 1U : 0U));
    out_.changes.push_back({LossKind::layout, core::indexed("tensors", layer.name),
                            fmt::format("GPTQ, {} bits", layer.bits),
                            fmt::format("a quantized_group, with zeros that were stored {}",
                                        format == kV1 ? "minus one (v1)" : "as they are (v2)")});
  }

  const Model& model_;
  const std::string_view zeros_;
  const Config config_;
  core::Derived out_;
  bool any_ = false;
  std::vector<Layer> layers_;
  std::map<std::uint32_t, std::size_t> owner_;  // tensor to layer
};

class Splitting {
 public:
  Splitting(const Model& model, std::string_view zeros) : model_(model), zeros_(zeros), config_(config_of(model)) {}

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
      const std::string problem = why_not(tensor);
      if (problem.empty()) {
        add(draft, tensor);
      } else {
        out_.changes.push_back({LossKind::layout, subject(tensor), "quantized_group", "not made GPTQ's: " + problem});
        draft.adopt(tensor.name(), tensor);
      }
    }
    if (!any) base::misuse("gptq", "no tensor is a quantized_group, from which GPTQ's tensors could be made");
    draft.index_names();
    draft.set_attributes({model_.attributes().begin(), model_.attributes().end()});
    out_.model = draft.finish();
    return std::move(out_);
  }

 private:
  std::string why_not(const Tensor& tensor) const {
    const auto form = core::readable_blocks(tensor);
    if (!form) return "it cannot be read";
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

  void add(core::Draft& draft, const Tensor& tensor) {
    const codecs::BlockForm form = *core::readable_blocks(tensor);
    const std::string name(tensor.name());
    const Attributes attributes = tensor.attributes();
    const Value *const said = attributes.find(kFormatKey), *const groups = attributes.find(kGroupsKey);
    const bool v1 = format_of(zeros_, said ? said->to_text() : config_.format) == kV1;
    add_shared(draft, name + std::string(kQweight), *tensor.part("packed_weight"));
    const std::uint64_t shape[] = {form.rows / form.group, form.columns / form.packing.codes_per_word};
    add_made(draft, name + std::string(kQzeros), shape).elements(qzeros_of(tensor, form.bits, v1));
    add_shared(draft, name + std::string(kScales), *tensor.part("scales"));
    if (!groups || groups->as_bool().value_or(true)) {
      const std::uint64_t rows[] = {form.rows};
      add_made(draft, name + std::string(kGroups), rows).elements(groups_of(form.rows, form.group));
    }
    out_.changes.push_back({LossKind::layout, subject(tensor), "quantized_group",
                            fmt::format("GPTQ, with zeros stored {}", v1 ? "minus one (v1)" : "as they are (v2)")});
  }

  const Model& model_;
  const std::string_view zeros_;
  const Config config_;
  core::Derived out_;
};

}  // namespace

core::Derived group_gptq(const Model& model, std::string_view zeros) { return Grouping(model, zeros).run(); }
core::Derived split_gptq(const Model& model, std::string_view zeros) { return Splitting(model, zeros).run(); }

}  // namespace weighbridge::convert
