// SPDX-License-Identifier: Apache-2.0
// Every case with one byte changed, at every place: no crash, no exception but Error, open and verify agree, and the
// bounds of reading G13.
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <algorithm>
#include <array>
#include <ctime>

#include "corpus/all_cases.h"
#include "support/sanitized.h"
#include "weighbridge/open.h"
#include "weighbridge/verify.h"

namespace weighbridge::test {
namespace {

// Large cases are sampled so that one run stays within seconds.
constexpr std::size_t kPlaces = 1500;

std::shared_ptr<const Source> source_of(const std::shared_ptr<std::string>& bytes, const std::string& name) {
  return memory_source({std::as_bytes(std::span(*bytes)), bytes}, name);
}

std::uint64_t peak_memory() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<std::uint64_t>(usage.ru_maxrss) << 10;
}

void check(const std::shared_ptr<std::string>& bytes, const std::string& path, const Context& context) {
  const std::clock_t start = std::clock();  // processor time: other jobs of the machine do not count
  const Verdict verdict = verify(source_of(bytes, path), context);
  EXPECT_LT(std::clock() - start, CLOCKS_PER_SEC);
  try {
    open(source_of(bytes, path), context);
  } catch (const Error& error) {
    ASSERT_NE(verdict.report.first_error(), nullptr) << error.what();
    EXPECT_EQ(error.finding(), *verdict.report.first_error());
  }
  for (const Finding& finding : verdict.report.findings())
    if (finding.offset) {
      EXPECT_LE(*finding.offset, bytes->size()) << finding.message;
    }
}

TEST(Mutations, OfOneByteNeverCrashAndOpenAgreesWithVerify) {
  const std::uint64_t before = peak_memory();
  for (const FormatCorpus& corpus : all_cases()) {
    for (const core::CorpusCase& c : corpus.cases) {
      const std::string path = corpus.path(c);
      Context context;
      context.limits = c.limits;
      const auto bytes = std::make_shared<std::string>(c.bytes);
      const std::size_t step = std::max<std::size_t>(1, bytes->size() / kPlaces);
      for (std::size_t at = 0; at < bytes->size(); at += step) {
        const char was = (*bytes)[at];
        // A flipped low and high bit, the extremes, and the bytes that structure is made of.
        const std::array<char, 6> values = {
            static_cast<char>(was ^ 1), static_cast<char>(was ^ '\x80'), '\0', '\xFF', '"', '9'};
        for (const char value : values) {
          if (value == was) continue;
          (*bytes)[at] = value;
          SCOPED_TRACE(path + " byte " + std::to_string(at) + " = " +
                       std::to_string(static_cast<unsigned char>(value)));
          check(bytes, path, context);
          if (HasFatalFailure()) return;
        }
        (*bytes)[at] = was;
      }
    }
  }
  if (!test::kSanitized) {
    EXPECT_LT(peak_memory() - before, std::uint64_t{64} << 20);
  }
}

TEST(Mutations, FilesCutOffAnywhereAreMalformedOrValidButNeverMore) {
  for (const FormatCorpus& corpus : all_cases()) {
    for (const core::CorpusCase& c : corpus.cases) {
      const std::size_t step = std::max<std::size_t>(1, c.bytes.size() / kPlaces);
      for (std::size_t size = 0; size < c.bytes.size(); size += step) {
        SCOPED_TRACE(corpus.path(c) + " cut to " + std::to_string(size));
        Context context;
        context.limits = c.limits;
        check(std::make_shared<std::string>(c.bytes.substr(0, size)), corpus.path(c), context);
        if (HasFatalFailure()) return;
      }
    }
  }
}

}  // namespace
}  // namespace weighbridge::test
