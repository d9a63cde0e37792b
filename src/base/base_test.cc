// SPDX-License-Identifier: Apache-2.0
// Tests of base: the dtype table, checked arithmetic, byte order, UTF-8, reports and errors. Executors:
// executor_test.cc; display text: display_test.cc.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <limits>
#include <set>
#include <span>
#include <type_traits>
#include <vector>

#include "base/checked.h"
#include "base/endian.h"
#include "base/fail.h"
#include "base/os.h"
#include "base/utf8.h"
#include "support/thrown.h"
#include "weighbridge/dtype.h"
#include "weighbridge/error.h"

namespace weighbridge {
namespace {

using test::thrown;

constexpr std::uint64_t kMax = std::numeric_limits<std::uint64_t>::max();

TEST(DTypeTable, NamesGoBothWaysAndAreDistinct) {
  std::set<std::string_view> seen;
  for (const DTypeInfo& row : all_dtypes()) {
    EXPECT_TRUE(seen.insert(row.name).second) << row.name;
    EXPECT_EQ(dtype_from_name(row.name), row.dtype);
    EXPECT_EQ(name(row.dtype), row.name);
    EXPECT_GT(row.bits, 0U);
    EXPECT_EQ(row.bits % (row.swap_bytes * 8) == 0 || row.swap_bytes == 1, true) << row.name;
  }
  EXPECT_EQ(seen.size(), kDTypeCount - 1);
}

TEST(DTypeTable, UnknownIsNoNameAndCaseCounts) {
  EXPECT_EQ(dtype_from_name("unknown"), std::nullopt);
  EXPECT_EQ(dtype_from_name(""), std::nullopt);
  EXPECT_EQ(dtype_from_name("F32"), std::nullopt);
  EXPECT_EQ(info(DType::unknown).bits, 0U);
}

TEST(DTypeTable, AValueBeyondTheEnumeratorsIsUnknown) {
  for (const auto beyond : {static_cast<DType>(kDTypeCount), static_cast<DType>(0xFF)}) {
    EXPECT_EQ(info(beyond).dtype, DType::unknown);
    EXPECT_EQ(name(beyond), "unknown");
    EXPECT_EQ(packed_size(beyond, 1), std::nullopt);
  }
}

TEST(DTypeTable, ComplexNumbersSwapEachHalf) {
  EXPECT_EQ(info(DType::complex64).bits, 64U);
  EXPECT_EQ(info(DType::complex64).swap_bytes, 4U);
  EXPECT_EQ(info(DType::complex128).bits, 128U);
  EXPECT_EQ(info(DType::complex128).swap_bytes, 8U);
}

TEST(PackedSize, RoundsBitsUpToBytes) {
  EXPECT_EQ(packed_size(DType::f32, 3), 12U);
  EXPECT_EQ(packed_size(DType::f4, 0), 0U);
  EXPECT_EQ(packed_size(DType::f4, 1), 1U);
  EXPECT_EQ(packed_size(DType::f4, 2), 1U);
  EXPECT_EQ(packed_size(DType::f4, 3), 2U);
  EXPECT_EQ(packed_size(DType::f6_e2m3, 4), 3U);
  EXPECT_EQ(packed_size(DType::f6_e3m2, 5), 4U);
  EXPECT_EQ(packed_size(DType::f6_e3m2, 9), 7U);
}

TEST(PackedSize, StaysExactWhereTheCountOfBitsWouldWrap) {
  EXPECT_EQ(packed_size(DType::u8, kMax), kMax);
  EXPECT_EQ(packed_size(DType::f4, kMax), kMax / 2 + 1);
  EXPECT_EQ(packed_size(DType::u16, kMax / 2), kMax - 1);
  EXPECT_EQ(packed_size(DType::u16, kMax / 2 + 1), std::nullopt);
  EXPECT_EQ(packed_size(DType::complex128, kMax / 16 + 1), std::nullopt);
  EXPECT_EQ(packed_size(DType::unknown, 1), std::nullopt);
}

TEST(Checked, FitsCannotWrap) {
  EXPECT_TRUE(base::fits(0, 0, 0));
  EXPECT_TRUE(base::fits(4, 6, 10));
  EXPECT_FALSE(base::fits(4, 7, 10));
  EXPECT_FALSE(base::fits(11, 0, 10));
  EXPECT_FALSE(base::fits(kMax, 2, 10));
  EXPECT_FALSE(base::fits(2, kMax, 10));
  EXPECT_TRUE(base::fits(0, kMax, kMax));
}

TEST(Checked, ElementCountLetsZeroWinOverOverflow) {
  const std::vector<std::uint64_t> scalar, zero{kMax, kMax, 0}, big{1ULL << 32, 1ULL << 32}, plain{2, 3, 4};
  EXPECT_EQ(base::element_count(scalar), 1U);
  EXPECT_EQ(base::element_count(zero), 0U);
  EXPECT_EQ(base::element_count(big), std::nullopt);
  EXPECT_EQ(base::element_count(plain), 24U);
}

TEST(Checked, SumsProductsAndAlignmentReportOverflow) {
  EXPECT_EQ(base::checked_add(kMax, 1), std::nullopt);
  EXPECT_EQ(base::checked_add(kMax, 0), kMax);
  EXPECT_EQ(base::checked_mul(1ULL << 33, 1ULL << 31), std::nullopt);
  EXPECT_EQ(base::align_up(65, 64), 128U);
  EXPECT_EQ(base::align_up(64, 64), 64U);
  EXPECT_EQ(base::align_up(kMax, 64), std::nullopt);
}

TEST(Endian, LoadsAndStoresAtAnyAddress) {
  std::array<unsigned char, 12> bytes{0xFF, 1, 2, 3, 4, 5, 6, 7, 8};
  EXPECT_EQ(base::load_le<std::uint32_t>(bytes.data() + 1), 0x04030201U);
  EXPECT_EQ(base::load_be<std::uint32_t>(bytes.data() + 1), 0x01020304U);
  EXPECT_EQ(base::load_le<std::uint64_t>(bytes.data() + 1), 0x0807060504030201U);
  base::store_be<std::uint16_t>(bytes.data() + 3, 0xABCD);
  EXPECT_EQ(bytes[3], 0xAB);
  EXPECT_EQ(base::load_be<std::uint16_t>(bytes.data() + 3), 0xABCDU);
  base::store_le<std::uint16_t>(bytes.data() + 3, 0xABCD);
  EXPECT_EQ(bytes[3], 0xCD);
}

TEST(Endian, SwapUnitsReversesEachGroup) {
  for (const std::uint32_t unit : {1U, 2U, 4U, 8U}) {
    for (std::size_t groups = 0; groups < 40; ++groups) {
      std::vector<std::byte> data(groups * unit + 1), expected(data.size());
      for (std::size_t i = 0; i < data.size(); ++i) data[i] = static_cast<std::byte>(i * 7 + 1);
      expected = data;
      for (std::size_t g = 0; g < groups; ++g)
        for (std::size_t i = 0; i < unit; ++i) expected[1 + g * unit + i] = data[1 + g * unit + (unit - 1 - i)];
      base::swap_units(std::span(data).subspan(1), unit);  // from an odd address
      EXPECT_EQ(data, expected) << unit << " x " << groups;
    }
  }
}

TEST(Utf8, EveryScalarValueGoesBothWays) {
  for (char32_t code_point = 0; code_point <= 0x10FFFF; ++code_point) {
    if (code_point == 0xD800) code_point = 0xE000;
    std::string text;
    base::append_utf8(text, code_point);
    const base::Decoded decoded = base::decode_utf8(text, 0);
    ASSERT_TRUE(decoded.valid) << static_cast<std::uint32_t>(code_point);
    ASSERT_EQ(decoded.code_point, code_point);
    ASSERT_EQ(decoded.length, text.size());
  }
}

TEST(Utf8, NamesTheFirstInvalidByte) {
  const std::pair<std::string, std::size_t> cases[] = {{"\xff", 0},
                                                       {"a\x80", 1},
                                                       {"\xc0\xaf", 0},
                                                       {"\xe0\x9f\xbf", 0},
                                                       {"\xf0\x8f\xbf\xbf", 0},
                                                       {"\xed\xa0\x80", 0},
                                                       {"\xf4\x90\x80\x80", 0},
                                                       {"\xf5\x80\x80\x80", 0},
                                                       {"ok\xe2\x82", 2},
                                                       {"12345678\xc3", 8},
                                                       {"1234567\xc3\xa9\xfe", 9},
                                                       {std::string("123456789012345\0\xc1\x80", 18), 16}};
  for (const auto& [text, at] : cases) {
    EXPECT_EQ(base::find_invalid_utf8(text), at) << testing::PrintToString(text);
    EXPECT_FALSE(base::is_utf8(text));
    EXPECT_FALSE(base::decode_utf8(text, at).valid);
    EXPECT_EQ(base::decode_utf8(text, at).length, 1U);
  }
}

TEST(Utf8, AcceptsTheBoundsAndNul) {
  for (const std::string_view text : {std::string_view(""), std::string_view("\0", 1), std::string_view("\x7f"),
                                      std::string_view("\xc2\x80"), std::string_view("\xed\x9f\xbf\xee\x80\x80"),
                                      std::string_view("\xf4\x8f\xbf\xbf"), std::string_view("plain ascii, and long")})
    EXPECT_TRUE(base::is_utf8(text)) << testing::PrintToString(text);
}

Finding finding(std::string rule, Severity severity) {
  Finding out;
  out.rule = std::move(rule);
  out.severity = severity;
  return out;
}

TEST(Report, CountsBySeverityAndKeepsTheFirstError) {
  Report report;
  EXPECT_TRUE(report.valid());
  report.add(finding("a/note", Severity::warning));
  report.add(finding("a/layout", Severity::unsupported));
  EXPECT_TRUE(report.valid());
  EXPECT_EQ(report.first_error(), nullptr);
  report.add(finding("a/first", Severity::error));
  report.add(finding("a/second", Severity::error));
  EXPECT_FALSE(report.valid());
  EXPECT_EQ(report.first_error()->rule, "a/first");
  EXPECT_EQ(report.total(), 4U);
  EXPECT_EQ(report.errors(), 2U);
  EXPECT_EQ(report.warnings(), 1U);
  EXPECT_EQ(report.unsupported(), 1U);
}

TEST(Report, KeepsAThousandFindingsAndCountsTheRest) {
  Report report;
  for (std::size_t i = 0; i < Report::kMaxFindings; ++i) report.add(finding("a/note", Severity::warning));
  report.add(finding("a/late", Severity::error));
  EXPECT_EQ(report.findings().size(), Report::kMaxFindings);
  EXPECT_EQ(report.total(), Report::kMaxFindings + 1);
  ASSERT_NE(report.first_error(), nullptr);
  EXPECT_EQ(report.first_error()->rule, "a/late");
}

TEST(Report, AppendAddsCountsAndStopsAtTheCap) {
  Report one, two;
  for (int i = 0; i < 999; ++i) one.add(finding("a/note", Severity::warning));
  for (int i = 0; i < 1500; ++i) two.add(finding("b/broken", Severity::error));
  one.append(two);
  EXPECT_EQ(one.findings().size(), Report::kMaxFindings);
  EXPECT_EQ(one.findings().back().rule, "b/broken");
  EXPECT_EQ(one.total(), 2499U);
  EXPECT_EQ(one.errors(), 1500U);
  EXPECT_EQ(one.first_error()->rule, "b/broken");
}

TEST(Report, AppendKeepsItsOwnFirstErrorAndAFullOneOnlyCounts) {
  Report one, two;
  one.add(finding("a/first", Severity::error));
  for (std::size_t i = 1; i < Report::kMaxFindings; ++i) one.add(finding("a/note", Severity::warning));
  two.add(finding("b/broken", Severity::error));
  two.add(finding("b/layout", Severity::unsupported));
  one.append(two);
  EXPECT_EQ(one.first_error()->rule, "a/first");
  EXPECT_EQ(one.findings().size(), Report::kMaxFindings);
  EXPECT_EQ(one.findings().back().rule, "a/note");
  EXPECT_EQ(one.total(), Report::kMaxFindings + 2);
  EXPECT_EQ(one.errors(), 2U);
  EXPECT_EQ(one.unsupported(), 1U);
}

TEST(Fail, EachKindHasItsRuleAndSeverity) {
  const Finding misuse = thrown([] { base::misuse("no-such-tensor", "no tensor 'x'"); });
  EXPECT_EQ(misuse.rule, "misuse/no-such-tensor");
  EXPECT_EQ(misuse.kind, Kind::misuse);
  EXPECT_EQ(misuse.hint, Hint{});
  const Finding helped = thrown([] { base::misuse_of("x", "no-heads", "no heads", base::option_hint("heads")); });
  EXPECT_EQ(helped.file.name, "x");
  EXPECT_EQ(helped.hint, (Hint{Hint::What::option, "heads", ""}));
  const Finding io = thrown([] { base::io_error_of("x", "open", "cannot be opened", ENOENT); });
  EXPECT_EQ(io.file.name, "x");
  EXPECT_EQ(io.rule, "io/open");
  EXPECT_EQ(io.kind, Kind::io);
  EXPECT_EQ(io.message, "cannot be opened: No such file or directory");
  EXPECT_EQ(thrown([] { base::io_error("read", "gone"); }).message, "gone");
  const Finding unsupported = thrown([] { base::unsupported("ztensor/layout", "unknown layout"); });
  EXPECT_EQ(unsupported.rule, "ztensor/layout");
  EXPECT_EQ(unsupported.severity, Severity::unsupported);
  EXPECT_EQ(unsupported.kind, Kind::unsupported);
  EXPECT_EQ(thrown([] { base::malformed("stb/size", "short"); }).kind, Kind::malformed);
  const Finding beyond = thrown([] { base::beyond_address_space(std::uint64_t{1} << 40); });
  EXPECT_EQ(beyond.rule, "limit/address-space");
  EXPECT_EQ(beyond.kind, Kind::limit);
  const Finding limit = thrown([] { base::over_limit("memory", "too much", 7); });
  EXPECT_EQ(limit.rule, "limit/memory");
  EXPECT_EQ(limit.kind, Kind::limit);
  EXPECT_EQ(limit.hint, (Hint{Hint::What::limit, "memory", "7"}));
  EXPECT_NE(beyond.message.find("1099511627776"), std::string::npos);
}

// Handlers copy caught errors where nothing may throw.
static_assert(std::is_nothrow_copy_constructible_v<Error> && std::is_nothrow_copy_assignable_v<Error>);
static_assert(std::is_nothrow_move_constructible_v<Error> && std::is_nothrow_move_assignable_v<Error>);

TEST(Errors, CopiesShareOneFindingAndStayWhole) {
  Finding finding;
  finding.rule = "stb/size";
  finding.message = "short";
  const Error first(finding);
  Error copy = first;
  EXPECT_EQ(&copy.finding(), &first.finding());
  const Error taken = std::move(copy);
  EXPECT_EQ(copy.finding().rule, "stb/size");  // NOLINT(bugprone-use-after-move): a move is a copy
  EXPECT_STREQ(taken.what(), "short");
}

TEST(Errors, InNamesTheFileOnceAndWhatBeginsWithIt) {
  Finding finding;
  finding.message = "short";
  const Error named = Error(finding).in("a.stb");
  EXPECT_EQ(named.finding().file.name, "a.stb");
  EXPECT_EQ(named.finding().message, "short");
  EXPECT_STREQ(named.what(), "a.stb: short");
  EXPECT_EQ(named.in("b.stb").finding().file.name, "a.stb");
}

TEST(Reports, AmendReachesWhatIsKeptAndTheFirstError) {
  Report report;
  report.add(finding("a/first", Severity::error));
  report.amend([](Finding& each) { each.file.name = "x"; });
  EXPECT_EQ(report.findings()[0].file.name, "x");
  EXPECT_EQ(report.first_error()->file.name, "x");
}

TEST(Names, KindsAndSeveritiesAreTheirEnumerators) {
  EXPECT_EQ(name(Kind::malformed), "malformed");
  EXPECT_EQ(name(Kind::unsupported), "unsupported");
  EXPECT_EQ(name(Kind::misuse), "misuse");
  EXPECT_EQ(name(Kind::io), "io");
  EXPECT_EQ(name(Kind::limit), "limit");
  EXPECT_EQ(name(Hint::What::none), "none");
  EXPECT_EQ(name(Hint::What::limit), "limit");
  EXPECT_EQ(name(Hint::What::option), "option");
  EXPECT_EQ(name(Hint::What::size), "size");
  EXPECT_EQ(name(Hint::What::file), "file");
  EXPECT_EQ(name(Severity::error), "error");
  EXPECT_EQ(name(Severity::warning), "warning");
  EXPECT_EQ(name(Severity::unsupported), "unsupported");
}

TEST(Names, AValueBeyondTheEnumeratorsIsTakenForTheWorst) {
  EXPECT_EQ(name(static_cast<Kind>(0xFF)), "malformed");
  EXPECT_EQ(name(static_cast<Severity>(0xFF)), "error");
}

TEST(LargePages, TheHintKeepsTheBytes) {
  for (const std::size_t size : {std::size_t{0}, std::size_t{1}, std::size_t{100'000}, std::size_t{9} << 20}) {
    std::vector<std::byte> memory(size, std::byte{7});
    errno = 5;
    base::use_large_pages(memory);
    EXPECT_EQ(errno, 5);  // it is not an error if the hint is not followed
    base::use_large_pages(std::span(memory).subspan(size / 3));
    EXPECT_EQ(std::count(memory.begin(), memory.end(), std::byte{7}), static_cast<std::ptrdiff_t>(size));
  }
}

}  // namespace
}  // namespace weighbridge
