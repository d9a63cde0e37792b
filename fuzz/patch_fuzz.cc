// SPDX-License-Identifier: Apache-2.0
// Fuzz target: patches. Whatever the index says, a chunk that decodes changes only units of its own, in ascending
// order, and applying it part by part gives the same as at once.
#include <algorithm>

#include "delta/patch.h"
#include "harness.h"
#include "weighbridge/open.h"

namespace weighbridge::fuzz {
namespace {

void expect_applies(const delta::Change& change, const delta::Words& words, std::uint64_t units) {
  for (std::size_t i = 0; i < words.at.size(); ++i)
    expect(words.at[i] < units && (i == 0 || words.at[i - 1] < words.at[i]),
           "a position outside its chunk, or out of order");
  std::vector<std::byte> whole(units * change.width), parts = whole;
  delta::apply(change, words, 0, whole);
  const std::uint64_t half = units / 2;
  delta::apply(change, words, 0, std::span(parts).first(half * change.width));
  delta::apply(change, words, half, std::span(parts).subspan(half * change.width));
  expect(whole == parts, "applying a chunk in two parts gives other bytes");
}

}  // namespace
}  // namespace weighbridge::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace weighbridge;
  Context context;
  context.limits.decoded = std::uint64_t{1} << 24;
  try {
    const Model model = open(fuzz::source_of(data, size), context);
    if (!is_patch(model)) return 0;
    const auto patch = delta::Patch::require(model, context.limits);
    patch->info();
    std::uint64_t left = std::uint64_t{1} << 24;
    for (const delta::Change& change : patch->changes) {
      if (fuzz::is_planted() && change.units > 65537) fuzz::fail("planted bug: a tensor larger than in every seed");
      for (std::uint64_t c = 0; change.op >= delta::Op::sparse && c < change.chunks(); ++c) {
        const std::uint64_t units = change.units_in(c);
        if (units * change.width > left) return 0;
        left -= units * change.width;
        const delta::Words words = patch->decode(change, c, context);
        fuzz::expect_applies(change, words, units);
      }
    }
  } catch (const Error&) {  // refused
  }
  return 0;
}
