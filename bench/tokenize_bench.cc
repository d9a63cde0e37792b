// SPDX-License-Identifier: Apache-2.0
// Times tokenizing on one thread: the sentences of STS-B one by one, the same as one text, and other scripts. Checks
// the ids against those of the reference before the clock starts. $WEIGHBRIDGE_TOKENIZE_TEXT names a file that replaces
// the sentences, one text per line, so that a peer can use the same ones.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "weighbridge/tokenize.h"

namespace {

namespace wb = weighbridge;

std::string data(const std::string& relative) {
  const char* named = std::getenv("WEIGHBRIDGE_TEST_DATA");
  std::ifstream file((named != nullptr ? named : "../shared/data") + ("/" + relative), std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

const wb::WordPiece* bert() {
  static const std::string vocabulary = data("wordpiece/bert-base-uncased-vocab.txt");
  static const auto made =
      vocabulary.empty() ? nullptr : std::make_unique<wb::WordPiece>(wb::WordPiece::vocabulary(vocabulary));
  return made.get();
}

std::vector<std::string> lines_of(std::string_view text) {
  std::vector<std::string> out;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    out.emplace_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return out;
}

const std::vector<std::string>& sentences() {
  static const std::vector<std::string> made = [] {
    const char* named = std::getenv("WEIGHBRIDGE_TOKENIZE_TEXT");
    if (named == nullptr) return lines_of(data("stsb/stsb-en-test.csv"));
    std::ifstream file(named, std::ios::binary);
    return lines_of(std::string{std::istreambuf_iterator<char>(file), {}});
  }();
  return made;
}

// Why the benchmarks cannot run, or null.
const char* not_ready() {
  if (bert() == nullptr) return "wordpiece/bert-base-uncased-vocab.txt is not in the test data";
  const std::vector<std::uint32_t> ids = bert()->encode("Unaffable, the [MASK] caf\xC3\xA9!");
  if (ids != std::vector<std::uint32_t>{101, 14477, 20961, 3468, 1010, 1996, 103, 7668, 999, 102}) return "wrong ids";
  return nullptr;
}

void encode_all(benchmark::State& state, const std::vector<std::string>& texts, bool with_spans) {
  if (const char* why = not_ready()) return state.SkipWithError(why);
  std::size_t bytes = 0, longest = 0;
  for (const std::string& text : texts) {
    bytes += text.size();
    longest = std::max(longest, text.size());
  }
  if (bytes == 0) return state.SkipWithError("there is no text");
  std::vector<std::uint32_t> ids(wb::WordPiece::bound(longest));
  std::vector<wb::TokenSpan> spans(with_spans ? ids.size() : 0);
  std::uint64_t tokens = 0;
  for (auto _ : state) {
    tokens = 0;
    for (const std::string& text : texts) tokens += bert()->encode(text, ids, {}, spans).count;
    benchmark::DoNotOptimize(tokens);
  }
  state.SetBytesProcessed(static_cast<std::int64_t>(state.iterations()) * static_cast<std::int64_t>(bytes));
  state.counters["tokens"] = static_cast<double>(tokens);
}

std::vector<std::string> repeated(std::string_view text) {
  std::string out;
  while (out.size() < (std::size_t{1} << 18)) out += text;
  return {out};
}

std::vector<std::string> joined() {
  std::string out;
  for (const std::string& text : sentences()) out += text + " ";
  return {out};
}

BENCHMARK_CAPTURE(encode_all, sentences, sentences(), false);
BENCHMARK_CAPTURE(encode_all, sentences_with_spans, sentences(), true);
BENCHMARK_CAPTURE(encode_all, one_text, joined(), false);
BENCHMARK_CAPTURE(encode_all, french,
                  repeated("L'\xC3\xA9t\xC3\xA9 dernier, le ch\xC3\xA2teau \xC3\xA9tait ferm\xC3\xA9. "), false);
BENCHMARK_CAPTURE(encode_all, russian,
                  repeated("\xD0\x92\xD0\xB5\xD1\x81\xD1\x8B \xD0\xB4\xD0\xBB\xD1\x8F "
                           "\xD0\xB3\xD1\x80\xD1\x83\xD0\xB7\xD0\xBE\xD0\xB2\xD0\xB8\xD0\xBA\xD0\xBE\xD0\xB2. "),
                  false);
BENCHMARK_CAPTURE(encode_all, chinese,
                  repeated("\xE5\x9C\xB0\xE7\xA3\x85\xE6\x98\xAF\xE4\xB8\x80\xE7\xA7\x8D\xE7\xA7\xA4\xE3\x80\x82"),
                  false);
BENCHMARK_CAPTURE(encode_all, one_word, repeated("a"), false);
BENCHMARK_CAPTURE(encode_all, combining_marks, repeated("\xCC\x81"), false);

void prepare_vocabulary(benchmark::State& state) {
  if (const char* why = not_ready()) return state.SkipWithError(why);
  const wb::Tokenizer vocabulary = wb::WordPiece::vocabulary(data("wordpiece/bert-base-uncased-vocab.txt"));
  for (auto _ : state) benchmark::DoNotOptimize(wb::WordPiece(vocabulary).size());
}
BENCHMARK(prepare_vocabulary)->Unit(benchmark::kMillisecond);

}  // namespace
