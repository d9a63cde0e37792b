// SPDX-License-Identifier: Apache-2.0
// Texts of findings, the budget of a walk, and the fields that a cursor notes.
#include "core/reading/findings.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "base/order.h"
#include "core/reading/budget.h"
#include "core/reading/field_notes.h"

namespace weighbridge::core {
namespace {

constexpr Rule kRule{"test/rule", Rule::Reach::file, Severity::error, "1", "the file is not as it should be"};

TEST(Findings, PiecesReadAsOneText) {
  const std::vector<std::uint64_t> shape{2, 3};
  const std::string key = "a key", name(60, 'n');
  const Finding made = Findings::make(kRule, {.offset = 4}, {"a shape ", of_shape(shape), " in ", in_bytes(1)},
                                      {in_quotes(key), " at ", -5, ", not ", UINT64_MAX}, excerpted(name));
  EXPECT_EQ(made.expected, "a shape [2, 3] in 1 byte");
  EXPECT_EQ(made.found, "\"a key\" at -5, not 18446744073709551615");
  EXPECT_EQ(made.message, std::string(kRule.sentence) + ": " + std::string(40, 'n') + "... (expected " + made.expected +
                              ", found " + made.found + ")");
  EXPECT_EQ(at_most(in_bytes(7), " of names").text(), "at most 7 bytes of names");
  EXPECT_EQ(at_least(7).text(), "at least 7");
  EXPECT_EQ(multiple_of(8, " bytes").text(), "a multiple of 8 bytes");
}

TEST(Findings, WhatIsKeptOutlivesTheTextThatItWasMadeOf) {
  std::string name = "a name that is longer than what a string holds in itself";
  const Said kept = Said("the tensor ", name).keep();
  name.assign(name.size(), 'x');
  EXPECT_EQ(kept.text(), "the tensor a name that is longer than what a string holds in itself");
}

// The text of this shape has twenty million characters: making it for each of these findings would take hours.
TEST(Findings, TextsAreMadeOnlyForFindingsThatAreKept) {
  Report report;
  Findings findings(report, Findings::Mode::all);
  for (std::size_t i = 0; i < Report::kMaxFindings; ++i) findings.report(kRule, {}, i);
  const std::vector<std::uint64_t> shape(std::size_t{1} << 22, 100);
  for (int i = 0; i < 100'000; ++i) findings.report(kRule, {}, of_shape(shape), {of_shape(shape), " again"});
  EXPECT_EQ(report.errors(), Report::kMaxFindings + 100'000);
}

TEST(Budget, TakesNothingIfThereIsTooLittle) {
  Budget budget(100);
  EXPECT_TRUE(budget.take(3, 30));
  EXPECT_FALSE(budget.take(1, 11));
  EXPECT_FALSE(budget.take(UINT64_MAX / 2, 8)) << "the product has more than 64 bits";
  EXPECT_EQ(budget.left(), 10U);
  budget.give_back(2, 30);
  EXPECT_TRUE(budget.take(70));
  EXPECT_EQ(budget.said(" of names").text(), "at most 100 bytes of names");

  Report report;
  Findings findings(report, Findings::Mode::all);
  EXPECT_FALSE(budget.keep(findings, {.offset = 7}, 1, 1, "there are too many"));
  ASSERT_EQ(report.findings().size(), 1U);
  EXPECT_EQ(report.findings()[0].rule, rules::kLimitMemory.id);
  EXPECT_EQ(report.findings()[0].offset, 7U);
  EXPECT_EQ(report.findings()[0].expected, "at most 100 bytes");
}

TEST(FieldNotes, AStructureIsShownWithItsFieldsOrNotAtAll) {
  Report report;
  Findings findings(report, Findings::Mode::all);
  Spans spans(110, 130, 100);
  findings.keep_spans(&spans);
  FieldNotes notes(findings, 100);
  notes.add("unwanted", 0, 4, 1U);
  notes.add("number", 8, 12, 5U);
  notes.add("text", 12, 20, "words");
  EXPECT_TRUE(Spans(110, 130, 100).take().empty());
  notes.report(Span::Kind::entry, "entry", 8, 20);
  const std::vector<Span> all = spans.take();
  ASSERT_EQ(all.size(), 3U);
  EXPECT_EQ(all[0].what, "entry");
  EXPECT_EQ(all[1].what, "number");
  EXPECT_EQ(all[1].offset, 108U);
  EXPECT_EQ(all[2].value, "words");
}

TEST(Order, RepeatedNamesTheFirstOfEach) {
  const std::vector<std::string> words{"b", "a", "b", "c", "a", "b"};
  const auto key = [&](std::uint32_t i) { return std::string_view(words[i]); };
  EXPECT_EQ(base::order_by(words.size(), key), (std::vector<std::uint32_t>{1, 4, 0, 2, 5, 3}));
  using Pairs = std::vector<std::pair<std::uint32_t, std::uint32_t>>;
  EXPECT_EQ(base::repeated(words.size(), key), (Pairs{{2, 0}, {4, 1}, {5, 0}}));
}

}  // namespace
}  // namespace weighbridge::core
