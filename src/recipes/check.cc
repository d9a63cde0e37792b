// SPDX-License-Identifier: Apache-2.0
// What verify says of quantized layers. It reads their scales and not their codes, so that its work is a small part of
// the file.
#include <algorithm>
#include <cmath>

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
  for (const Match& match : matches_of(model, context, Look::closely)) {
    for (const Fault& fault : match.faults)
      findings.report(*fault.rule, {.tensor = model.name(fault.tensor)}, fault.expected, fault.found, fault.detail);
    if (match.recipe) check_scales(match, model, context, findings);
  }
}

}  // namespace weighbridge::recipes
