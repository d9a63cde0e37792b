// SPDX-License-Identifier: Apache-2.0
// Draws the next token from logits ("Sampling", reading M20).
#pragma once
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "weighbridge/generate.h"

namespace weighbridge::llama {

// Throws a usage error for values out of range.
void check_sampling(const Sampling&);

class Sampler {
 public:
  explicit Sampler(const Sampling&);
  bool greedy() const noexcept { return sampling_.temperature == 0 || sampling_.top_k == 1; }
  std::uint32_t draw(std::span<const float> logits);

 private:
  double uniform() noexcept;  // [0, 1)

  Sampling sampling_;
  std::uint64_t state_;
  std::vector<std::pair<float, std::uint32_t>> kept_;
  std::vector<double> weights_;
};

}  // namespace weighbridge::llama
