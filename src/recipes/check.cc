// SPDX-License-Identifier: Apache-2.0
// What verify says of quantized layers. It reads their scales and not their codes, so that its work is a small part of
// the file.
#include <algorithm>
#include <cmath>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "core/model/coded.h"
#include "core/model/draft.h"
#include "core/reading/rules.h"
#include "recipes/matcher.h"

namespace weighbridge::recipes {
namespace {

// Weights of networks are far below; scales that are forgotten or applied the other way give thousands.
constexpr float kImprobable = 1000;

struct Tally {
  std::uint64_t count = 0, infinite = 0, negative = 0, zero = 0;
  float largest = 0;
};

Tally tally_of(const core::Elements& scales, const Context& context) {
  Tally out{.count = scales.count()};
  for_each_number(scales, out.count, context, [&](float each) {
    if (!std::isfinite(each)) ++out.infinite;
    if (each < 0) ++out.negative;
    if (each == 0) ++out.zero;
    if (std::abs(each) > out.largest) out.largest = std::abs(each);
  });
  return out;
}

// The largest number that a code can stand for, before it is scaled.
float largest_code(const Recipe& r) {
  float out = 0;
  for (std::size_t code = 0; code < std::size_t{1} << r.bits; ++code)
    if (std::isfinite(r.value[code])) out = std::max(out, std::abs(r.value[code]));
  return out;
}

void check_scales(const Match& match, const Model& model, const Context& context, core::Findings& findings) {
  const Recipe& r = *match.recipe;
  if (!r.scale.values) return;
  const core::At at{.tensor = model.name(match.tensors.front())};
  const Tally tally = tally_of(*r.scale.values, context);
  const auto report = [&](std::uint64_t n, std::string_view what) {
    if (n > 0) findings.report(core::rules::kQuantizedScale, at, {}, {n, " of ", tally.count, " ", what});
  };
  report(tally.infinite, "are not finite");
  if (r.step != Step::add) report(tally.negative, "are negative");
  if (tally.zero == tally.count) report(tally.zero, "are zero");
  const float largest = tally.largest * largest_code(r) * r.factor;
  if (tally.infinite == 0 && largest > kImprobable)
    findings.report(core::rules::kQuantizedValues, at, {},
                    {"up to ", largest < 1e18F ? static_cast<std::uint64_t>(largest) : UINT64_MAX});
}

}  // namespace

void check_quantized(const Model& model, const Context& context, core::Findings& findings) {
  struct Unread {
    const Match* first = nullptr;
    std::uint64_t count = 0;
  };
  const std::vector<Match> matches = matches_of(model, context, Look::closely);
  std::map<std::string, Unread> unread;  // by the reason: a model has hundreds of such layers
  for (const Match& match : matches) {
    for (const Fault& fault : match.faults)
      findings.report(*fault.rule, {.tensor = model.name(fault.tensor)}, fault.expected, fault.found, fault.detail);
    if (match.recipe) check_scales(match, model, context, findings);
    if (match.refused != Refused::unsupported && match.refused != Refused::question) continue;
    // Its warning asks the question.
    if (std::ranges::find(match.faults, &core::rules::kGptqZeroOverflow, &Fault::rule) != match.faults.end()) continue;
    const core::Coded* const mark = core::coded(model[match.tensors.front()]);
    Unread& of = unread[(mark != nullptr ? " of " + mark->name : "") + " were not examined: " + match.refusal];
    if (of.count++ == 0) of.first = &match;
  }
  if (core::incomplete(model) != nullptr) return;  // what completes the codes may be in another file
  for (const auto& [why, of] : unread) {
    // As a verb says that needs their numbers.
    Finding finding;
    finding.rule = "unsupported/scheme";
    finding.severity = Severity::unsupported;
    finding.kind = Kind::unsupported;
    finding.tensor = model.name(of.first->tensors.front());
    finding.has_tensor = true;
    finding.found = std::to_string(of.count) + (of.count == 1 ? " tensor" : " tensors");
    finding.message = "the codes" + why + " (found " + finding.found + ")";
    finding.hint = of.first->hint;
    findings.report(std::move(finding));
  }
}

}  // namespace weighbridge::recipes
