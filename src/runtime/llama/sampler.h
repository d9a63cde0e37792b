// SPDX-License-Identifier: Apache-2.0
// Draws the next token from logits ("Sampling", reading M20). Also finds the texts that end a generation.
#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
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

// Texts that end a generation. Holds back any text that may begin one, so that no part of a stop text is ever shown.

class StopTexts {
 public:
  explicit StopTexts(std::vector<std::string> texts);  // usage error: an empty text
  // Takes the next piece and returns what is certainly not part of a stop text; nothing after one was found.
  std::string push(std::string_view piece);
  std::string finish();  // the text held back
  bool found() const noexcept { return found_; }

 private:
  std::vector<std::string> texts_;
  std::string held_;
  bool found_ = false;
};

}  // namespace weighbridge::llama
