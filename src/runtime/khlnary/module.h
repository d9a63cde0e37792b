// SPDX-License-Identifier: Apache-2.0
// The contents of an open module: its words, their control flow, and its sidecar if it has one. The public part is
// weighbridge/khlnary.h. Leaves judging the words to check_words() and the files they name to bin_files.h. Also owns
// the rules of modules, as constants.
#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/reading/findings.h"
#include "core/reading/rules.h"
#include "formats/stb/sidecar.h"
#include "weighbridge/khlnary.h"

namespace weighbridge::khlnary::internal {

namespace rules {
#define WB_RULES "runtime/khlnary/rules.def"
#include "core/reading/rules.inc"
}  // namespace rules

// Throws Error with the rule, worded by core::Findings.
[[noreturn]] inline void refuse(const Rule& rule, core::At at, const core::Said& expected = {},
                                const core::Said& found = {}, const core::Said& detail = {}) {
  throw Error(core::Findings::make(rule, at, expected, found, detail));
}

inline constexpr std::uint64_t kWordSize = 4;

// For example "0x0a"; at least `digits` digits.
std::string hex(std::uint32_t value, std::size_t digits);

inline Glyph::Id glyph_of(std::uint32_t word) noexcept { return static_cast<Glyph::Id>(fields(word).glyph); }
// The payload as a constant or the offset of a jump.
constexpr std::int32_t signed_payload(std::uint8_t payload) noexcept { return static_cast<std::int8_t>(payload); }
// The file and the tensor that a LOAD_BIN_TENSOR names (section 6.2).
constexpr std::uint8_t file_of(std::uint8_t payload) noexcept { return payload >> 4; }
constexpr std::uint8_t tensor_of(std::uint8_t payload) noexcept { return payload & 0xF; }

// The control flow of a module: targets of jumps, and which FUNC_END belongs to which FUNC_DEF. Does not judge what is
// reached: run.cc follows one execution, module.cc all possible ones.

inline constexpr std::uint32_t kNowhere = UINT32_MAX;

// For each FUNC_DEF the index of its FUNC_END, for each FUNC_END the index of its FUNC_DEF; kNowhere for all other
// words and for those without a partner. Empty if the module has neither glyph. Definitions may be nested. Linear time.
std::vector<std::uint32_t> match_functions(std::span<const std::uint32_t> words);

// The target of the jump at `index`; nullopt if it is outside a module of `count` words. The place after the last word
// is outside.
std::optional<std::size_t> jump_target(std::size_t index, std::uint8_t payload, std::size_t count) noexcept;

}  // namespace weighbridge::khlnary::internal

namespace weighbridge::khlnary {

struct Module::Rep {
  std::shared_ptr<const Source> source;
  std::vector<std::uint32_t> words;
  std::shared_ptr<const Source> sidecar_source;  // null: there is no sidecar, and `sidecar` is empty
  stb::Sidecar sidecar;
};

namespace internal {

// The default sidecar beside a module; null if there is none.
std::shared_ptr<const Source> find_sidecar(const Source& module);
// Checks each word, then the function table. Must run before anything else looks at the module.
void check_words(const Module::Rep&, unsigned authority, core::Findings&);
// Throws Error{misuse} if it is no authority class.
void require_authority(unsigned authority);

}  // namespace internal
}  // namespace weighbridge::khlnary
