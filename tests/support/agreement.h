// SPDX-License-Identifier: Apache-2.0
// Checks that open() and verify() agree about a file: the error of open is verify's first error, and a file that open
// accepts breaks no rule that open has to check (Rule::phase).
#pragma once
#include <string>
#include <string_view>

#include "weighbridge/error.h"
#include "weighbridge/formats.h"

namespace weighbridge::test {

// Null for an id that is not a rule of a format: "io/...".
inline const Rule* find_rule(std::string_view id) {
  for (const Rule& rule : common_rules())
    if (rule.id == id) return &rule;
  for (const FormatInfo& format : formats())
    for (const Rule& rule : format.rules)
      if (rule.id == id) return &rule;
  return nullptr;
}

// The finding as open() gives it: without a model, a file has no position in one.
inline Finding without_place(Finding finding) {
  finding.file.source.reset();
  return finding;
}

// The first error that open() has to report too: what is not there, it only warns of.
inline const Finding* first_to_open(const Report& verified) {
  for (const Finding& finding : verified.findings()) {
    const Rule* const rule = find_rule(finding.rule);
    if (finding.severity == Severity::error && (rule == nullptr || rule->phase != Rule::Phase::whole)) return &finding;
  }
  return nullptr;
}

// A message if they disagree, otherwise "". `refused`: the error of open(); null if it returned a model.
inline std::string disagreement(const Finding* refused, const Report& verified) {
  const Finding* first = first_to_open(verified);
  if (refused == nullptr) {
    if (first == nullptr) return {};
    const Rule* rule = find_rule(first->rule);
    if (rule != nullptr && (rule->phase == Rule::Phase::payload || rule->phase == Rule::Phase::either)) return {};
    return "open accepts what breaks " + first->rule +
           ", which needs no payload or is checked on opening: " + first->message;
  }
  if (first == nullptr) return "verify calls valid what does not open: " + refused->message;
  if (without_place(*refused) != without_place(*first))
    return "open says '" + refused->message + "', verify says '" + first->message + "'";
  const Rule* rule = find_rule(refused->rule);
  if (rule != nullptr && rule->phase == Rule::Phase::payload)
    return "open refuses for " + refused->rule + ", whose line in rules.def leaves it to verify";
  return {};
}

}  // namespace weighbridge::test
