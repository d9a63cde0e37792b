// SPDX-License-Identifier: Apache-2.0
// The control flow of a module: targets of jumps, and which FUNC_END belongs to which FUNC_DEF. Does not judge what is
// reached: run.cc follows one execution, verify.cc all possible ones.
#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace weighbridge::khlnary::internal {

inline constexpr std::uint32_t kNowhere = UINT32_MAX;

// For each FUNC_DEF the index of its FUNC_END, for each FUNC_END the index of its FUNC_DEF; kNowhere for all other
// words and for those without a partner. Empty if the module has neither glyph. Definitions may be nested. Linear time.
std::vector<std::uint32_t> match_functions(std::span<const std::uint32_t> words);

// The target of the jump at `index`; nullopt if it is outside a module of `count` words. The place after the last word
// is outside.
std::optional<std::size_t> jump_target(std::size_t index, std::uint8_t payload, std::size_t count) noexcept;

}  // namespace weighbridge::khlnary::internal
