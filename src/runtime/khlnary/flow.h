// SPDX-License-Identifier: Apache-2.0
// Where a module's words lead: targets of jumps, and which FUNC_END belongs to which FUNC_DEF. Owns no judgment about
// what is reached: run.cc follows what happens, verify.cc all that could.
#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace weighbridge::khlnary {

inline constexpr std::uint32_t kNowhere = UINT32_MAX;

// For each word: of a FUNC_DEF the place of its FUNC_END, of a FUNC_END the place of its FUNC_DEF, else, and where
// there is none, kNowhere. Empty when the module has neither glyph. Definitions may be nested. Linear.
std::vector<std::uint32_t> match_functions(std::span<const std::uint32_t> words);

// Where the jump at `index` leads; nothing when that is outside of a module of `count` words (the place behind the last
// word is outside).
std::optional<std::size_t> jump_target(std::size_t index, std::uint8_t payload, std::size_t count) noexcept;

}  // namespace weighbridge::khlnary
