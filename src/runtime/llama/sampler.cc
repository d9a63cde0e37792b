// SPDX-License-Identifier: Apache-2.0
// Keeps the top k in one pass over the logits, then works only on those. Computes in f64 with the functions of
// numbers.h, so that a seed gives the same text on every machine.
#include "runtime/llama/sampler.h"

#include <algorithm>
#include <cmath>

#include "base/fail.h"
#include "runtime/llama/numbers.h"

namespace weighbridge::llama {
namespace {

constexpr std::uint32_t kMaxTopK = 1024;  // reading M20

using Candidate = std::pair<float, std::uint32_t>;
// The likelier candidate first; of equal ones the lower id.
bool before(const Candidate& a, const Candidate& b) noexcept {
  return a.first != b.first ? a.first > b.first : a.second < b.second;
}

}  // namespace

void check_sampling(const Sampling& s) {
  if (!(s.temperature >= 0) || !std::isfinite(s.temperature))
    base::misuse("temperature", "a temperature has to be 0 or more, and finite");
  if (s.top_k > kMaxTopK)
    base::misuse("top-k", "a top-k of " + std::to_string(s.top_k) + " is more than " + std::to_string(kMaxTopK));
  if (!(s.top_p > 0 && s.top_p <= 1)) base::misuse("top-p", "top-p has to be above 0 and at most 1");
}

Sampler::Sampler(const Sampling& sampling) : sampling_(sampling), state_(sampling.seed) {
  if (sampling_.top_k == 0) sampling_.top_k = sampling_.temperature == 0 ? 1 : kMaxTopK;
}

// splitmix64 (Steele, Lea and Flood, 2014).
double Sampler::uniform() noexcept {
  std::uint64_t x = state_ += 0x9e3779b97f4a7c15U;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9U;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebU;
  return static_cast<double>((x ^ (x >> 31)) >> 11) * 0x1p-53;
}

std::uint32_t Sampler::draw(std::span<const float> logits) {
  // A heap with the least likely candidate in front.
  kept_.clear();
  for (std::uint32_t id = 0; id < logits.size(); ++id) {
    const Candidate one{logits[id], id};
    if (std::isnan(one.first)) continue;
    if (kept_.size() < sampling_.top_k) {
      kept_.push_back(one);
      std::push_heap(kept_.begin(), kept_.end(), before);
    } else if (before(one, kept_.front())) {
      std::pop_heap(kept_.begin(), kept_.end(), before);
      kept_.back() = one;
      std::push_heap(kept_.begin(), kept_.end(), before);
    }
  }
  if (kept_.empty()) return 0;
  std::sort_heap(kept_.begin(), kept_.end(), before);

  weights_.clear();
  const double maximum = static_cast<double>(kept_.front().first);
  double total = 0;
  for (const Candidate& one : kept_) {
    const double under = maximum - static_cast<double>(one.first);
    weights_.push_back(under == 0 ? 1 : exponential(-under / sampling_.temperature));
    total += weights_.back();
  }
  double cut = 0;
  std::size_t count = 0;
  while (count < weights_.size() && (count == 0 || cut < sampling_.top_p * total)) cut += weights_[count++];
  double left = uniform() * cut;
  for (std::size_t i = 0; i < count; ++i) {
    left -= weights_[i];
    if (left < 0) return kept_[i].second;
  }
  return kept_[count - 1].second;
}

// Searches for stop texts piece by piece.

StopTexts::StopTexts(std::vector<std::string> texts) : texts_(std::move(texts)) {
  for (const std::string& text : texts_)
    if (text.empty()) base::misuse("stop", "a stop text is empty");
}

std::string StopTexts::push(std::string_view piece) {
  if (found_) return {};
  held_ += piece;
  std::size_t end = std::string::npos;
  for (const std::string& text : texts_) end = std::min(end, held_.find(text));
  if (end != std::string::npos) {
    found_ = true;
    held_.resize(end);
    return std::exchange(held_, {});
  }
  // Hold back the longest suffix that begins a stop text.
  std::size_t keep = 0;
  for (const std::string& text : texts_)
    for (std::size_t length = std::min(text.size() - 1, held_.size()); length > keep; --length)
      if (held_.ends_with(std::string_view(text).substr(0, length))) keep = length;
  std::string out = held_.substr(0, held_.size() - keep);
  held_.erase(0, out.size());
  return out;
}

std::string StopTexts::finish() { return std::exchange(held_, {}); }

}  // namespace weighbridge::llama
