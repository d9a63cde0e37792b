// SPDX-License-Identifier: Apache-2.0
// What sentence-transformers computes of a vector after the pooling: Dense, LayerNorm and Normalize, in any order. One
// vector at a time, in f32 whatever the precision of the encoder.
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "core/reading/encoder_settings.h"
#include "runtime/embed/family.h"
#include "runtime/kernels/block.h"
#include "weighbridge/model.h"

namespace weighbridge::embed {

class Chain {
 public:
  Chain() = default;
  // [reads] `inputs` numbers come in. Throws what fail() throws, and Error{unsupported} for an activation.
  Chain(const Model&, std::span<const core::SentenceModule>, std::uint64_t inputs);

  bool empty() const noexcept { return steps_.empty(); }
  std::size_t inputs() const noexcept { return inputs_; }
  std::size_t outputs() const noexcept { return outputs_; }
  std::size_t scratch() const noexcept { return 3 * widest_; }  // floats that run() works in
  // Writes the first numbers of the result. The first inputs() of `scratch` are what comes in.
  void run(std::span<float> scratch, std::span<float> out) const;

 private:
  enum class Activation : std::uint8_t { identity, tanh, relu, gelu, sigmoid, silu };
  struct Step {
    core::SentenceModule::Type type = core::SentenceModule::Type::normalize;
    std::size_t inputs = 0, outputs = 0;
    Activation activation = Activation::identity;
    bool residual = false;              // the input is added to the output
    std::vector<float> gamma, beta;     // beta: the bias of a dense one, padded
    kernels::Block packed, projection;  // the latter of the residual, if its width changes
  };
  static Activation activation_of(const core::SentenceModule&);
  static void apply(Activation, std::span<float>);
  static kernels::Block pack(const Model&, const std::string& name, std::size_t n, std::size_t k);
  void dense(const Step&, std::span<float> scratch) const;

  std::vector<Step> steps_;
  std::size_t inputs_ = 0, outputs_ = 0, widest_ = 0;
};

// The modules that the model states, none if it states none. Throws fail() "key".
std::vector<core::SentenceModule> modules_of(const Model&);
// All elements of the tensor, which has this shape. Throws what fail() throws for another shape, and for a number that
// is not finite.
std::vector<float> module_numbers(const Model&, const std::string& name, std::span<const std::uint64_t> shape);

// How many numbers of a vector are kept; `all` without a setting.
std::uint64_t kept_numbers(const Model&, std::uint64_t all);

}  // namespace weighbridge::embed
