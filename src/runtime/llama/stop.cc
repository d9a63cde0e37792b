// SPDX-License-Identifier: Apache-2.0
// Searches for stop texts piece by piece.
#include "runtime/llama/sampler.h"

#include <algorithm>
#include <utility>

#include "base/fail.h"

namespace weighbridge::llama {

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
