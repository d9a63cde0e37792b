// SPDX-License-Identifier: Apache-2.0
// Renaming by a pattern, "s/PATTERN/REPLACEMENT/", with "g" at its end for every match. The patterns are JavaScript's
// regular expressions without back-references and lookaround assertions, which cannot be matched in time linear in the
// name. The memory for a match does not depend on the length of the name.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace weighbridge::core {

class Pattern {
 public:
  // Whether the text has this form. A name may begin with "s/" without having it.
  static bool is_one(std::string_view text);
  // Throws Error{misuse} that says what is wrong with it.
  explicit Pattern(std::string_view text);

  // The name with the first match, or all, replaced: $1 to $9 are the groups, $& is the match. nullopt: no match.
  std::optional<std::string> apply(std::string_view name) const;

 private:
  struct Step {
    enum class Kind : std::uint8_t { any, set, begin, end, word, no_word, split, jump, save, match } kind;
    std::uint32_t a = 0, b = 0;  // where to go on (split: first a), a set of sets_, or a slot to save
  };
  struct Set {
    std::vector<std::pair<char32_t, char32_t>> ranges{};
    bool inverted = false;
    bool holds(char32_t c) const noexcept;
  };
  static constexpr std::size_t kGroups = 10;
  using Slots = std::vector<std::size_t>;

  friend class PatternParser;
  // The leftmost match from `from` on; its slots are offsets in the name. Uses one step of `left` for each character.
  std::optional<Slots> find(std::string_view name, std::size_t from, std::uint64_t& left) const;

  std::vector<Step> steps_;
  std::vector<Set> sets_;
  std::string replacement_;
  bool all_ = false, anchored_ = false;
  std::size_t slots_ = 2;
};

// Both sides of the first `divider`. nullopt: there is none, or nothing before it.
std::optional<std::pair<std::string, std::string>> divided(std::string_view text, char divider = '=');

}  // namespace weighbridge::core
