// SPDX-License-Identifier: Apache-2.0
// What each rule means, an example of it, and what to do: `explain RULE`, docs/rules.md and SARIF are made from these
// tables.
#pragma once
#include <span>
#include <string_view>
#include <vector>

#include "weighbridge/formats.h"

namespace weighbridge::cli {

std::string_view name(Rule::Reach) noexcept;  // what a violation makes invalid: "file", "tensor"; "note": nothing

// Rules that belong together.
struct RuleGroup {
  std::string_view title;       // "safetensors", "All formats"
  std::string_view format;      // FormatInfo::name; empty: they belong to no format
  std::span<const Rule> rules;  // of this group
};
// Every rule, the formats in the registry's order, then those of glyph modules and of the chain of .slm models.
std::vector<RuleGroup> rule_groups();
// The rule with this id; null if there is none.
const Rule* find_rule(std::string_view id) noexcept;

// What to do about findings of one kind.
struct RuleAdvice {
  std::string_view about;        // the findings, as a noun phrase
  std::string_view advice;       // what to do, in sentences
  bool (*applies)(const Rule&);  // whether a rule is of this kind
};
// The kinds; the first that applies to a rule is its own, and the last one always applies.
std::span<const RuleAdvice> rule_advice() noexcept;
std::string_view advice(const Rule&) noexcept;  // RuleAdvice::advice of its kind.
// The message of a finding by this rule about a file of the corpus; empty if it is in no such file.
std::string_view example_of(std::string_view rule) noexcept;

// An id that is in no rules.def, because what is wrong is not in a file or is found later.
struct OtherRule {
  std::string_view id;        // "io/open"
  std::string_view sentence;  // what it says, as Rule::sentence
  std::string_view advice;    // what to do; empty: as RuleFamily::advice
};
std::span<const OtherRule> other_rules() noexcept;               // All of them, from other_rules.def.
const OtherRule* find_other_rule(std::string_view id) noexcept;  // null if there is none
std::string_view advice(const OtherRule&) noexcept;              // what to do, never empty

// Such ids that begin alike.
struct RuleFamily {
  std::string_view ids;     // ids, and their beginnings up to "/", separated by blanks
  std::string_view about;   // what they say
  std::string_view page;    // that describes them, with the section
  std::string_view advice;  // what to do; empty: each has its own
};
std::span<const RuleFamily> rule_families() noexcept;              // All of them.
const RuleFamily* find_rule_family(std::string_view id) noexcept;  // null if there is none

}  // namespace weighbridge::cli
