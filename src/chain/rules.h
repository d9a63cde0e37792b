// SPDX-License-Identifier: Apache-2.0
// The rules of the chain, from rules.def, and a type that names one by its id.
#pragma once
#include <string_view>

#include "core/reading/rules.h"

namespace weighbridge::chain::internal {

namespace rules {

#define WB_RULES "chain/rules.def"
#include "core/reading/rules.inc"

}  // namespace rules

// A rule by its id without "chain/". A literal that is not in rules.def does not compile.
class RuleName {
 public:
  template <std::size_t Size>
  consteval RuleName(const char (&id)[Size]) : rule_(&find(std::string_view(id, Size - 1))) {}
  const Rule& rule() const noexcept { return *rule_; }

 private:
  static consteval const Rule& find(std::string_view id) {
    for (const Rule& rule : rules::kAll)
      if (rule.id.substr(std::string_view("chain/").size()) == id) return rule;
    throw "rules.def has no rule of this id";
  }
  const Rule* rule_;
};

}  // namespace weighbridge::chain::internal
