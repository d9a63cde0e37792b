// SPDX-License-Identifier: Apache-2.0
// Tests every case with one byte changed, at every position: no crash, no exception other than Error, open and verify
// agree, and the bounds of reading G13 hold.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <ctime>
#include <stdexcept>
#include <string>
#include <vector>

#include "corpus/all_cases.h"
#include "registry/registry.h"
#include "support/agreement.h"
#include "support/peak_memory.h"
#include "support/rounds.h"
#include "weighbridge/open.h"
#include "weighbridge/verify.h"

namespace weighbridge::test {
namespace {

// Large cases are sampled: at most this many places of a case, and this many bytes that are read for all of them, since
// a check reads the whole file.
const std::size_t kPlaces = rounds<std::size_t>(100);
const std::size_t kBytes = kThorough ? SIZE_MAX : rounds(std::size_t{1} << 18);

// A source over the bytes of the case, which must outlive it.
std::shared_ptr<const Source> source_of(const core::CorpusCase& c, const std::string& name) {
  auto source = memory_source({std::as_bytes(std::span(c.bytes)), nullptr}, name);
  return c.sidecar ? with_sidecar(std::move(source), *c.sidecar) : source;
}

void check(const core::CorpusCase& c, const std::string& path) {
  Context context;
  context.limits = c.limits;
  const std::clock_t start = std::clock();  // processor time: other jobs of the machine do not count
  const Verdict verdict = verify(source_of(c, path), context);
  EXPECT_LT(std::clock() - start, CLOCKS_PER_SEC);
  Report opened;
  const bool opens = open(source_of(c, path), opened, context).has_value();
  EXPECT_EQ(disagreement(opens ? nullptr : opened.first_error(), verdict.report), "");
  EXPECT_EQ(opens, opened.valid());
  for (const Finding& finding : verdict.report.findings())
    if (finding.offset) {
      EXPECT_LE(*finding.offset, finding.file.empty() ? c.bytes.size() : c.sidecar->bytes.size()) << finding.message;
    }
}

// Where to change or cut a text: everywhere, except inside padding, whose bytes are all alike.
std::vector<std::size_t> places_of(const std::string& text) {
  constexpr std::size_t kApart = 32, kInPadding = 512;
  std::vector<std::size_t> out;
  std::size_t zeros = 0;
  for (std::size_t at = 0; at < text.size(); ++at) {
    zeros = text[at] == '\0' ? zeros + 1 : 0;
    const bool padding = zeros > kApart && at + kApart < text.size() && text.find_first_not_of('\0', at) > at + kApart;
    if (!padding || at % kInPadding == 0) out.push_back(at);
  }
  const std::size_t maximum = std::min(kPlaces, kBytes / std::max<std::size_t>(2, text.size()) + 1);
  const std::size_t step = (out.size() + maximum - 1) / maximum;
  std::vector<std::size_t> sampled;
  for (std::size_t i = 0; i < out.size(); i += step) sampled.push_back(out[i]);
  return sampled;
}

// Checks `c` with a change at each position of `text`, which is part of it.
void check_changes(const core::CorpusCase& c, std::string& text, const std::string& path) {
  for (const std::size_t at : places_of(text)) {
    const char was = text[at];
    // A flipped low and high bit, the extremes, and the bytes that structure is made of.
    const std::array<char, 6> values = {
        static_cast<char>(was ^ 1), static_cast<char>(was ^ '\x80'), '\0', '\xFF', '"', '9'};
    for (const char value : values) {
      if (value == was) continue;
      text[at] = value;
      SCOPED_TRACE(path + " byte " + std::to_string(at) + " = " + std::to_string(static_cast<unsigned char>(value)));
      check(c, path);
      if (testing::Test::HasFatalFailure()) return;
    }
    text[at] = was;
  }
}

// One test per format, so that they run in parallel. The cases are made when a test runs, because they use static
// objects of other files that may not be initialized while tests are registered.
class Mutations : public ::testing::TestWithParam<std::string> {
 protected:
  static const FormatCorpus& corpus() {
    for (const FormatCorpus& each : all_cases())
      if (each.format->info.name == GetParam()) return each;
    throw std::out_of_range("no cases for " + GetParam());
  }
};

std::vector<std::string> format_names() {
  std::vector<std::string> out;
  for (const core::Format* format : registry::formats())
    if (!format->info.folder) out.emplace_back(format->info.name);
  return out;
}

TEST_P(Mutations, OfOneByteNeverCrashAndOpenAgreesWithVerify) {
  const std::uint64_t before = restart_peak_memory();
  for (const core::CorpusCase& c : corpus().cases) {
    core::CorpusCase changed = c;
    check_changes(changed, changed.bytes, corpus().path(c));
    if (changed.sidecar) check_changes(changed, changed.sidecar->bytes, corpus().path(c));
    if (HasFatalFailure()) return;
  }
  if (!test::kSanitized) {
    EXPECT_LT(peak_memory(), before + (std::uint64_t{64} << 20));
  }
}

TEST_P(Mutations, FilesCutOffAnywhereAreMalformedOrValidButNeverMore) {
  for (const core::CorpusCase& c : corpus().cases) {
    core::CorpusCase cut = c;
    for (const std::size_t size : places_of(c.bytes)) {
      SCOPED_TRACE(corpus().path(c) + " cut to " + std::to_string(size));
      cut.bytes = c.bytes.substr(0, size);
      check(cut, corpus().path(c));
      if (HasFatalFailure()) return;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Formats, Mutations, ::testing::ValuesIn(format_names()), [](const auto& format) {
  std::string name = format.param;
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
});

}  // namespace
}  // namespace weighbridge::test
