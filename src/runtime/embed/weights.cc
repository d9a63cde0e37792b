// SPDX-License-Identifier: Apache-2.0
// Reads, checks and packs the weights matrix by matrix, several in parallel.
#include "runtime/embed/weights.h"

#include <algorithm>
#include <cmath>
#include <string>

#include "base/checked.h"
#include "base/fail.h"
#include "codecs/kernels.h"
#include "core/model/floats.h"
#include "runtime/kernels/half.h"

namespace weighbridge::bert {
namespace {

constexpr std::size_t kLine = 64;

void require_real(const Tensor& tensor) {
  const DType type = tensor.dtype();
  if (type != DType::f32 && type != DType::f16 && type != DType::bf16 && type != DType::f64)
    fail("dtype", tensor.name(),
         "tensor '" + std::string(tensor.name()) + "' holds " + std::string(tensor.type_name()) +
             ", and weights are real numbers");
}

// All elements of a tensor as f32, in place if possible.
core::Floats finite_floats(const Tensor& tensor) {
  require_real(tensor);
  core::Floats out(tensor);
  if (!kernels::kernels().all_finite(out.data(), out.size()))
    fail("not-finite", tensor.name(),
         "tensor '" + std::string(tensor.name()) + "' holds a value that is not a finite number");
  return out;
}

std::vector<float> vector_of(const Model& model, const Config& config, const std::string& name, std::uint64_t size) {
  const core::Floats floats = finite_floats(require(model, config, name, {size}));
  return {floats.data(), floats.data() + floats.size()};
}

Norm norm_of(const Model& model, const Config& config, const std::string& name) {
  return {vector_of(model, config, name + ".weight", config.hidden),
          vector_of(model, config, name + ".bias", config.hidden)};
}

std::size_t packed_bytes(std::size_t n, std::size_t k, Arithmetic arithmetic) {
  switch (arithmetic) {
    case Arithmetic::f32: return kernels::packed_size(n, k) * sizeof(float);
    case Arithmetic::widened: return kernels::packed_size(n, k) * sizeof(std::uint16_t);
    case Arithmetic::half: return kernels::half_packed_size(n, k) * sizeof(std::uint16_t);
    case Arithmetic::bf16: return kernels::packed_size(n, kernels::bf16_depth(k)) * sizeof(kernels::Bf16);
    case Arithmetic::int8: return kernels::packed_size(n, kernels::int8_depth(k));
  }
  return 0;
}

// Half arithmetic could take these weights, but every processor must refuse the same models.
void require_halves(const Tensor& tensor, const core::Floats& weights) {
  constexpr float kFirstPast = 65520;  // rounds to 65536, which f16 cannot hold
  if (std::any_of(weights.data(), weights.data() + weights.size(),
                  [](float weight) { return std::fabs(weight) >= kFirstPast; }))
    fail("not-finite", tensor.name(),
         "tensor '" + std::string(tensor.name()) + "' holds a value past 65504, the largest that f16 has: use f32");
}

void pack_widened(const float* weights, const Linear& out) {
  const std::size_t count = kernels::packed_size(out.n, out.k);
  std::vector<float> panels(count);
  kernels::kernels().pack_f32(weights, out.k, out.n, out.k, panels.data());
  codecs::kernels().from_f32[static_cast<std::size_t>(DType::f16)](panels.data(), out.packed, count);
}

// Fills `out`; its n, k and packed are set.
void pack(const Model& model, const Config& config, const std::string& name, Arithmetic arithmetic, Linear& out) {
  const Tensor tensor = require(model, config, name + ".weight", {out.n, out.k});
  const core::Floats weights = finite_floats(tensor);
  out.bias = vector_of(model, config, name + ".bias", out.n);
  out.bias.resize(kernels::round_up(out.n, kernels::kLanes));
  switch (arithmetic) {
    case Arithmetic::f32:
      return kernels::kernels().pack_f32(weights.data(), out.k, out.n, out.k, reinterpret_cast<float*>(out.packed));
    case Arithmetic::widened: require_halves(tensor, weights); return pack_widened(weights.data(), out);
    case Arithmetic::half:
      require_halves(tensor, weights);
      out.scale.resize(out.bias.size());
      return kernels::half_kernels()->pack(weights.data(), out.n, out.k, reinterpret_cast<std::uint16_t*>(out.packed),
                                           out.scale.data());
    case Arithmetic::bf16:
      out.scale.resize(out.bias.size());
      return kernels::kernels().pack_bf16_pairs(weights.data(), out.n, out.k,
                                                reinterpret_cast<kernels::Bf16*>(out.packed), out.scale.data());
    case Arithmetic::int8:
      out.scale.resize(out.bias.size());
      out.sum.resize(out.bias.size());
      return kernels::kernels().pack_i8(weights.data(), out.n, out.k, reinterpret_cast<std::int8_t*>(out.packed),
                                        out.scale.data(), out.sum.data());
  }
}

// The position embeddings, each plus the embedding of token type 0, which every token has.
std::vector<float> places_of(const Model& model, const Config& config) {
  const core::Floats positions =
      finite_floats(require(model, config, "embeddings.position_embeddings.weight", {config.positions, config.hidden}));
  const std::string types_name = config.prefix + "embeddings.token_type_embeddings.weight";
  const auto types_tensor = model.find(types_name);
  const std::uint64_t types_count =
      types_tensor && types_tensor->has_shape() && !types_tensor->shape().empty() ? types_tensor->shape()[0] : 0;
  const core::Floats types = finite_floats(require(model, config, "embeddings.token_type_embeddings.weight",
                                                   {types_count == 0 ? 2 : types_count, config.hidden}));
  std::vector<float> out(positions.size());
  const auto width = base::to_size(config.hidden);
  for (std::size_t row = 0; row < config.positions; ++row)
    kernels::kernels().add(positions.data() + row * width, types.data(), out.data() + row * width, width);
  return out;
}

// Their sum is 1, as the package divides by it.
std::vector<float> layer_weights_of(const Model& model, const Config& config) {
  const std::string name = config.layers_path + ".layer_weights";
  const std::uint64_t shape[] = {config.layers + 1 - *config.first_layer};
  std::vector<float> out = embed::module_numbers(model, name, shape);
  double sum = 0;
  for (const float weight : out) sum += static_cast<double>(weight);
  if (sum == 0) fail("key", name, "the weights of the layers in tensor '" + name + "' add up to 0");
  for (float& weight : out) weight = static_cast<float>(static_cast<double>(weight) / sum);
  return out;
}

}  // namespace

Arithmetic arithmetic_of(Precision precision) noexcept {
  switch (precision) {
    case Precision::f32: return Arithmetic::f32;
    case Precision::f16: return kernels::half_kernels() != nullptr ? Arithmetic::half : Arithmetic::widened;
    case Precision::bf16: return Arithmetic::bf16;
    case Precision::int8: return Arithmetic::int8;
  }
  return Arithmetic::f32;
}

Table::Table(Tensor tensor, std::size_t width) : tensor_(tensor), width_(width) {
  if (tensor_.why_no_view(DType::f32) == NoView::none) {
    in_place_ = tensor_.as<float>();
  } else if (tensor_.layout() != Layout::dense || tensor_.main().encoding() != Encoding::raw) {
    copy_ = tensor_.to_dense(DType::f32);
    in_place_ = {reinterpret_cast<const float*>(copy_.data.get()), base::to_size(copy_.size / sizeof(float))};
  }
}

const float* Table::row(std::uint32_t id, std::span<float> out) const {
  if (!in_place_.empty()) return in_place_.data() + id * width_;
  tensor_.rows_into(id, 1, DType::f32, std::as_writable_bytes(out));
  return out.data();
}

Weights load_weights(const Model& model, const Config& config, Arithmetic arithmetic, Executor& executor) {
  Weights out;
  const Tensor words = require(model, config, "embeddings.word_embeddings.weight", {config.vocabulary, config.hidden});
  require_real(words);
  out.words = Table(words, base::to_size(config.hidden));
  out.places = places_of(model, config);
  out.embedding_norm = norm_of(model, config, "embeddings.LayerNorm");
  out.layers.resize(base::to_size(config.layers));
  const auto wide = base::to_size(config.hidden), deep = base::to_size(config.intermediate);
  struct Packing {
    Linear* to;
    std::string name;
    std::size_t offset;
  };
  std::vector<Packing> steps;
  std::size_t total = 0;
  for (std::size_t i = 0; i < out.layers.size(); ++i) {
    Layer& layer = out.layers[i];
    const std::string at = "encoder.layer." + std::to_string(i) + ".";
    const auto add = [&](Linear& to, const char* name, std::size_t n, std::size_t k) {
      require(model, config, at + name + ".weight", {n, k});  // before allocating memory for it
      to.n = n;
      to.k = k;
      steps.push_back({&to, at + name, total});
      total += kernels::round_up(packed_bytes(n, k, arithmetic), kLine);
    };
    add(layer.query, "attention.self.query", wide, wide);
    add(layer.key, "attention.self.key", wide, wide);
    add(layer.value, "attention.self.value", wide, wide);
    add(layer.attention_out, "attention.output.dense", wide, wide);
    add(layer.up, "intermediate.dense", deep, wide);
    add(layer.down, "output.dense", wide, deep);
    layer.attention_norm = norm_of(model, config, at + "attention.output.LayerNorm");
    layer.out_norm = norm_of(model, config, at + "output.LayerNorm");
  }
  if (config.first_layer) out.layer_weights = layer_weights_of(model, config);
  out.chain = embed::Chain(model, config.modules, config.hidden * config.pooling.size());
  out.panels = kernels::Block(total);
  for (const Packing& step : steps) step.to->packed = out.panels.as<std::byte>() + step.offset;
  executor.for_each(steps.size(), [&](std::uint64_t i) {
    const Packing& step = steps[base::to_size(i)];
    pack(model, config, step.name, arithmetic, *step.to);
  });
  return out;
}

}  // namespace weighbridge::bert
