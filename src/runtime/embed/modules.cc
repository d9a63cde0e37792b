// SPDX-License-Identifier: Apache-2.0
// Reads the weights of modules, and computes them.
#include "runtime/embed/modules.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "base/checked.h"
#include "base/fail.h"
#include "core/model/floats.h"
#include "core/model/words.h"
#include "runtime/kernels/kernels.h"

namespace weighbridge::embed {
namespace {

using Type = core::SentenceModule::Type;

constexpr float kNormEpsilon = 1e-5F;         // of torch.nn.LayerNorm
constexpr std::uint64_t kMaxNumbers = 65536;  // of a vector

double gelu(double x) { return x * 0.5 * (1 + std::erf(x / std::sqrt(2.0))); }
double sigmoid(double x) { return 1 / (1 + std::exp(-x)); }

void require_width(const core::SentenceModule& module, std::uint64_t wanted, std::uint64_t width) {
  if (wanted != width)
    fail("shape", {},
         "the module " + core::quoted(module.path) + " takes " + std::to_string(wanted) + " numbers, and gets " +
             std::to_string(width));
}

}  // namespace

std::vector<core::SentenceModule> modules_of(const Model& model) {
  const Value* const value = model.attribute(core::kSentenceModules);
  if (value == nullptr) return {};
  auto modules = core::parse_sentence_modules(value->to_text());
  if (!modules) bad_key(core::kSentenceModules, *value, "a list of modules is needed");
  return *std::move(modules);
}

std::vector<float> module_numbers(const Model& model, const std::string& name, std::span<const std::uint64_t> shape) {
  const auto tensor = model.find(name);
  if (!tensor) fail("missing-tensor", name, "the model has no tensor '" + name + "', which a module of it needs");
  if (!tensor->has_shape() || !std::ranges::equal(tensor->shape(), shape))
    fail("shape", name,
         "tensor '" + name + "' has " +
             (tensor->has_shape() ? "the shape " + core::shape_text(tensor->shape()) : "no known shape") + ", where " +
             core::shape_text({shape.data(), shape.size()}) + " is needed");
  if (const Finding* why = tensor->unsupported()) throw Error(*why);
  if (info(tensor->dtype()).kind != DTypeKind::real)
    fail("dtype", name,
         "tensor '" + name + "' holds " + std::string(tensor->type_name()) + ", and weights are real numbers");
  const core::Floats values(*tensor);
  if (!kernels::kernels().all_finite(values.data(), values.size()))
    fail("not-finite", name, "tensor '" + name + "' holds a value that is not a finite number");
  return {values.data(), values.data() + values.size()};
}

std::uint64_t kept_numbers(const Model& model, std::uint64_t all) {
  return std::min(positive(core::kTruncateDim, model.attribute(core::kTruncateDim)).value_or(all), all);
}

Chain::Activation Chain::activation_of(const core::SentenceModule& module) {
  constexpr std::pair<std::string_view, Activation> kKnown[] = {
      {"Identity", Activation::identity}, {"Tanh", Activation::tanh},       {"ReLU", Activation::relu},
      {"GELU", Activation::gelu},         {"Sigmoid", Activation::sigmoid}, {"SiLU", Activation::silu}};
  for (const auto& [name, activation] : kKnown)
    if (name == module.activation) return activation;
  base::unsupported("embed/activation", "the module " + core::quoted(module.path) + " has the activation " +
                                            core::quoted(core::excerpt(module.activation)) +
                                            ", and this build computes Identity, Tanh, ReLU, GELU, Sigmoid and SiLU");
}

// In double, and rounded once: a few thousand numbers of a text, which need no kernel.
void Chain::apply(Activation activation, std::span<float> numbers) {
  const auto each = [&](auto function) {
    for (float& x : numbers) x = static_cast<float>(function(static_cast<double>(x)));
  };
  switch (activation) {
    case Activation::identity: return;
    case Activation::tanh: return each([](double x) { return std::tanh(x); });
    case Activation::relu: return each([](double x) { return x > 0 ? x : 0.0; });
    case Activation::gelu: return each(gelu);
    case Activation::sigmoid: return each(sigmoid);
    case Activation::silu: return each([](double x) { return x * sigmoid(x); });
  }
}

kernels::Block Chain::pack(const Model& model, const std::string& name, std::size_t n, std::size_t k) {
  const std::array<std::uint64_t, 2> shape{n, k};
  const std::vector<float> weights = module_numbers(model, name, shape);
  kernels::Block out(kernels::packed_size(n, k) * sizeof(float));
  kernels::kernels().pack_f32(weights.data(), k, n, k, out.as<float>());
  return out;
}

Chain::Chain(const Model& model, std::span<const core::SentenceModule> modules, std::uint64_t inputs)
    : inputs_(base::to_size(inputs)), outputs_(inputs_), widest_(inputs_) {
  for (const core::SentenceModule& module : modules) {
    const std::string begin = module.path + ".";
    Step step;
    step.type = module.type;
    step.inputs = step.outputs = outputs_;
    const std::array<std::uint64_t, 1> width{outputs_};
    if (module.type == Type::layer_norm) {
      step.gamma = module_numbers(model, begin + "norm.weight", width);
      step.beta = module_numbers(model, begin + "norm.bias", width);
    } else if (module.type == Type::dense) {
      require_width(module, module.inputs, outputs_);
      if (module.outputs == 0 || module.outputs > kMaxNumbers || module.inputs > kMaxNumbers)
        base::unsupported("embed/width", "the module " + core::quoted(module.path) + " has " +
                                             std::to_string(std::max(module.inputs, module.outputs)) +
                                             " columns, and this build computes with 1 to 65,536");
      step.activation = activation_of(module);
      step.outputs = base::to_size(module.outputs);
      step.residual = module.residual;
      step.packed = pack(model, begin + "linear.weight", step.outputs, step.inputs);
      const std::array<std::uint64_t, 1> out{module.outputs};
      if (module.bias) step.beta = module_numbers(model, begin + "linear.bias", out);
      step.beta.resize(kernels::round_up(step.outputs, kernels::kLanes));
      if (module.residual && step.inputs != step.outputs)
        step.projection = pack(model, begin + "residual.weight", step.outputs, step.inputs);
    }
    outputs_ = step.outputs;
    widest_ = std::max(widest_, outputs_);
    steps_.push_back(std::move(step));
  }
  widest_ = kernels::round_up(widest_, kernels::kLanes);
}

// scratch: what comes in and goes out, the product, what the residual becomes.
void Chain::dense(const Step& step, std::span<float> scratch) const {
  float* const in = scratch.data();
  float* const out = in + widest_;
  float* const rest = out + widest_;
  const kernels::Kernels& set = kernels::kernels();
  const auto multiply = [&](const kernels::Block& weights, const float* bias, float* to) {
    const kernels::Product common{.n = step.outputs,
                                  .k = step.inputs,
                                  .bias = bias,
                                  .activation = kernels::Activation::none,
                                  .residual = nullptr,
                                  .residual_stride = 0,
                                  .c = to,
                                  .c_stride = step.outputs};
    set.product_f32({common, in, step.inputs, weights.as<float>()}, {0, 1, 0, kernels::panel_count(step.outputs)});
  };
  multiply(step.packed, step.beta.data(), out);
  apply(step.activation, {out, step.outputs});
  if (step.residual && step.inputs == step.outputs) {
    set.add(out, in, out, step.outputs);
  } else if (step.residual) {
    const std::vector<float> none(step.beta.size());
    multiply(step.projection, none.data(), rest);
    set.add(out, rest, out, step.outputs);
  }
  std::copy_n(out, step.outputs, in);
}

void Chain::run(std::span<float> scratch, std::span<float> out) const {
  const kernels::Kernels& set = kernels::kernels();
  for (const Step& step : steps_) {
    switch (step.type) {
      case Type::dense: dense(step, scratch); break;
      case Type::layer_norm:
        set.layer_norm(scratch.data(), 1, step.outputs, step.gamma.data(), step.beta.data(), kNormEpsilon);
        break;
      case Type::normalize: set.normalize(scratch.data(), step.outputs); break;
      case Type::weighted_layers: break;  // of tokens: the encoder computes it
    }
  }
  std::copy_n(scratch.data(), out.size(), out.data());
}

}  // namespace weighbridge::embed
