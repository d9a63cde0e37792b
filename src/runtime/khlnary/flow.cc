// SPDX-License-Identifier: Apache-2.0
#include "runtime/khlnary/module.h"

#include <algorithm>

namespace weighbridge::khlnary::internal {
namespace {

bool is_bracket(std::uint32_t word) {
  return glyph_of(word) == Glyph::Id::func_def || glyph_of(word) == Glyph::Id::func_end;
}

}  // namespace

std::vector<std::uint32_t> match_functions(std::span<const std::uint32_t> words) {
  if (std::ranges::none_of(words, is_bracket)) return {};
  std::vector<std::uint32_t> other(words.size(), kNowhere), open;
  for (std::uint32_t i = 0; i < words.size(); ++i) {
    const Glyph::Id glyph = glyph_of(words[i]);
    if (glyph == Glyph::Id::func_def) open.push_back(i);
    if (glyph != Glyph::Id::func_end || open.empty()) continue;
    other[open.back()] = i;
    other[i] = open.back();
    open.pop_back();
  }
  return other;
}

std::optional<std::size_t> jump_target(std::size_t index, std::uint8_t payload, std::size_t count) noexcept {
  const std::int64_t target = static_cast<std::int64_t>(index) + signed_payload(payload);
  if (target < 0 || static_cast<std::uint64_t>(target) >= count) return std::nullopt;
  return static_cast<std::size_t>(target);  // below count
}

}  // namespace weighbridge::khlnary::internal
