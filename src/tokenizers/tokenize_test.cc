// SPDX-License-Identifier: Apache-2.0
// WordPiece with a vocabulary of a few tokens. The expected values come from the reference, as do those for whole files
// of texts in wordpiece_data_test.cc.
#include "weighbridge/tokenize.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <set>
#include <string>
#include <vector>

#include "support/thrown.h"
#include "tokenizers/characters.h"
#include "tokenizers/vocabulary.h"

namespace weighbridge {
namespace {

using test::thrown;
using Ids = std::vector<std::uint32_t>;
using Names = std::vector<std::string>;

constexpr std::string_view kVocabulary =
    "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\na\nb\n##a\n##b\nun\n##aff\n##able\nhello\nworld\n!\n,\n#\nc\n##c\n"
    "caf\xC3\xA9\ncafe\n\xE4\xB8\x80\n\xE1\x84\x80\n##\xE1\x85\xA1\ni\n##\xCC\x87\nA\n[\n]\n##mask\nmask\n"
    "averyveryverylongword\nsixteenletterss1\n##1\n1\n\xF0\x9F\x99\x82\nk\n";

const WordPiece& small() {
  static const WordPiece made(WordPiece::vocabulary(kVocabulary));
  return made;
}

Names names(const WordPiece& tokenizer, const Ids& ids) {
  Names out;
  for (const std::uint32_t id : ids) out.emplace_back(tokenizer.token(id).value_or("?"));
  return out;
}

Names plain(std::string_view text, const WordPiece& tokenizer = small()) {
  return names(tokenizer, tokenizer.encode(text, {.special = false}));
}

TEST(WordPiece, FramesAndSplits) {
  EXPECT_EQ(names(small(), small().encode("Hello, world!")), (Names{"[CLS]", "hello", ",", "world", "!", "[SEP]"}));
  EXPECT_EQ(plain("unaffable"), (Names{"un", "##aff", "##able"}));
  EXPECT_EQ(names(small(), small().encode("")), (Names{"[CLS]", "[SEP]"}));
  EXPECT_TRUE(plain(" \t\n ").empty());
}

TEST(WordPiece, OneMissingPieceMakesTheWordUnknown) { EXPECT_EQ(plain("unaffz a"), (Names{"[UNK]", "a"})); }

TEST(WordPiece, WordsOfEveryLengthAroundTheFastPath) {
  EXPECT_EQ(plain("averyveryverylongword sixteenletterss1"), (Names{"averyveryverylongword", "sixteenletterss1"}));
  EXPECT_EQ(plain("sixteenletterss11"), (Names{"sixteenletterss1", "##1"}));
  for (std::size_t length = 1; length < 130; ++length) {
    for (const std::string_view behind : {"", " ", "!", "\xC2\xA0", "\x01", "[MASK]"}) {
      std::string text = std::string(length, 'A');
      text += behind;
      Names expected = length > 100 ? Names{"[UNK]"} : Names(length, "##a");
      if (length <= 100) expected[0] = "a";
      if (behind == "!" || behind == "[MASK]") expected.emplace_back(behind);
      EXPECT_EQ(plain(text), expected) << length << " behind: " << behind;
    }
  }
}

TEST(WordPiece, AccentsGoAndCapitalsFold) {
  EXPECT_EQ(plain("CAF\xC3\x89"), Names{"cafe"});
  EXPECT_EQ(plain("cafe\xCC\x81"), Names{"cafe"});
  EXPECT_EQ(plain("\xC4\xB0"), Names{"i"});                                     // U+0130
  EXPECT_EQ(plain("\xE2\x84\xAA"), Names{"k"});                                 // the Kelvin sign
  EXPECT_EQ(plain("\xEA\xB0\x80"), (Names{"\xE1\x84\x80", "##\xE1\x85\xA1"}));  // a Hangul syllable
}

TEST(WordPiece, AccentsStayWhereAsked) {
  const WordPiece cased(WordPiece::vocabulary(kVocabulary), {.lower_case = false});
  EXPECT_EQ(plain("A a caf\xC3\xA9 Hello", cased), (Names{"A", "a", "caf\xC3\xA9", "[UNK]"}));
  const WordPiece accents(WordPiece::vocabulary(kVocabulary), {.strip_accents = false});
  EXPECT_EQ(plain("CAF\xC3\x89 \xC4\xB0", accents), (Names{"caf\xC3\xA9", "i", "##\xCC\x87"}));
}

TEST(WordPiece, ChineseCharactersStandAlone) {
  EXPECT_EQ(plain("a\xE4\xB8\x80"
                  "b"),
            (Names{"a", "\xE4\xB8\x80", "b"}));
  const WordPiece joined(WordPiece::vocabulary(kVocabulary), {.space_chinese = false});
  EXPECT_EQ(plain("a\xE4\xB8\x80"
                  "b",
                  joined),
            Names{"[UNK]"});
}

TEST(WordPiece, ControlCharactersAndInvalidBytesVanish) {
  using namespace std::string_view_literals;
  for (const std::string_view between :
       {"\0"sv, "\x01"sv, "\x7F"sv, "\xC2\xAD"sv, "\xEF\xBF\xBD"sv, "\xFF"sv, "\xE4\xB8"sv}) {
    const std::string text = "hel" + std::string(between) + "lo";
    EXPECT_EQ(plain(text), Names{"hello"}) << text;
  }
}

TEST(WordPiece, CountsMaximalSubparts) {
  Ids ids(32);
  const auto replaced = [&](std::string_view text) { return small().encode(text, ids).replaced; };
  EXPECT_EQ(replaced("a \xFF\xFE b"), 2U);
  EXPECT_EQ(replaced("\xF0\x9F\x99"), 1U);  // the start of a character
  EXPECT_EQ(replaced("\xED\xA0\x80"), 3U);  // a surrogate
  EXPECT_EQ(replaced("\xC0\xAF"), 2U);      // overlong
  EXPECT_EQ(replaced("\xF0\x9F\x99\x82\x82"), 1U);
  EXPECT_EQ(replaced("a\xE4\xB8z\xF4\x90\x80\x80"), 5U);
  // Invalid bytes after the truncation count, too.
  const Encoded cut = small().encode("a b \xFF\xFE", ids, {.max_length = 3});
  EXPECT_EQ(cut, (Encoded{.count = 3, .replaced = 2, .truncated = true}));
}

TEST(WordPiece, SpecialTokensInTheText) {
  EXPECT_EQ(plain("a[MASK]b [mask] [ [CLS]"), (Names{"a", "[MASK]", "b", "[", "mask", "]", "[", "[CLS]"}));
}

TEST(WordPiece, SpecialTokensOfAnotherSpelling) {
  Tokenizer from = WordPiece::vocabulary("<s>\nun\nb\nab\nabc\nc\n");
  from.special = {{"cls", 0}, {"sep", 0}, {"unk", 1}, {"mask", 3}, {"pad", 4}};
  const WordPiece tokenizer(from);
  EXPECT_EQ(plain("b<s>b", tokenizer), (Names{"b", "<s>", "b"}));
  EXPECT_EQ(plain("babcab c", tokenizer), (Names{"b", "abc", "ab", "c"}));  // the longest special token, inside a word
  EXPECT_EQ(tokenizer.special("mask"), 3U);
}

TEST(WordPiece, Truncates) {
  Ids ids(8, 77);
  EXPECT_EQ(small().encode("a b a b", ids, {.max_length = 4}), (Encoded{.count = 4, .truncated = true}));
  EXPECT_EQ(names(small(), {ids.begin(), ids.begin() + 4}), (Names{"[CLS]", "a", "b", "[SEP]"}));
  EXPECT_EQ(ids[4], 77U);
  EXPECT_EQ(small().encode("a b", ids, {.max_length = 4}).truncated, false);
  EXPECT_EQ(small().encode("a b", ids, {.max_length = 2}), (Encoded{.count = 2, .truncated = true}));
  // The size of the buffer is a limit like any other; a word that does not fit is cut between its pieces.
  EXPECT_EQ(small().encode("unaffable", std::span(ids).first(2), {.special = false}),
            (Encoded{.count = 2, .truncated = true}));
  // A word that becomes [UNK] takes one place, however many pieces matched before.
  EXPECT_EQ(small().encode("unaffz", std::span(ids).first(1), {.special = false}), (Encoded{.count = 1}));
  EXPECT_EQ(ids[0], 1U);
}

TEST(WordPiece, SaysWhereTokensStand) {
  const std::string text =
      " Caf\xC3\xA9, una\xCC\x81"
      "ffable\xF0\x9F\x99\x82 \xFF"
      "a\xEA\xB0\x80[MASK] ";
  Ids ids(32);
  std::vector<TokenSpan> spans(32);
  const Encoded encoded = small().encode(text, ids, {}, spans);
  spans.resize(encoded.count);
  ids.resize(encoded.count);
  EXPECT_EQ(names(small(), ids), (Names{"[CLS]", "cafe", ",", "[UNK]", "[UNK]", "[MASK]", "[SEP]"}));
  EXPECT_EQ(spans, (std::vector<TokenSpan>{{0, 0}, {1, 6}, {6, 7}, {8, 23}, {25, 29}, {29, 35}, {0, 0}}));
  WordPiece::to_code_points(text, spans);
  EXPECT_EQ(spans, (std::vector<TokenSpan>{{0, 0}, {1, 5}, {5, 6}, {7, 18}, {20, 22}, {22, 28}, {0, 0}}));
}

TEST(WordPiece, SpansOfPiecesAndOfOneSyllable) {
  std::vector<TokenSpan> spans(8);
  Ids ids(8);
  small().encode(
      "una\xCC\x81"
      "ffable \xEA\xB0\x80",
      ids, {.special = false}, spans);
  EXPECT_EQ(spans[0], (TokenSpan{0, 2}));
  EXPECT_EQ(spans[1], (TokenSpan{2, 7}));
  EXPECT_EQ(spans[2], (TokenSpan{7, 11}));
  EXPECT_EQ(spans[3], (TokenSpan{12, 15}));
  EXPECT_EQ(spans[4], spans[3]);
}

// U+302E (class 224) and U+1D165 (class 216) survive the stripping of accents and swap places.
TEST(WordPiece, SpacingMarksComeInCanonicalOrder) {
  const std::string tone = "\xE3\x80\xAE", stem = "\xF0\x9D\x85\xA5";
  const WordPiece tokenizer(WordPiece::vocabulary("[UNK]\n[CLS]\n[SEP]\na\n##" + tone + "\n##" + stem + "\n"));
  const Names sorted{"a", "##" + stem, "##" + tone};
  EXPECT_EQ(plain("a" + tone + stem, tokenizer), sorted);
  EXPECT_EQ(plain("a" + tone + "\xCC\x81\xFF\x01" + stem, tokenizer), sorted);
  EXPECT_EQ(plain("a" + tone + "\xCD\x8F" + stem, tokenizer), (Names{"a", sorted[2], sorted[1]}));  // U+034F parts them
  Ids ids(3);
  std::vector<TokenSpan> spans(3);
  EXPECT_EQ(tokenizer.encode("a" + tone + "\xFF" + stem, ids, {.special = false}, spans).replaced, 1U);
  EXPECT_EQ(spans, (std::vector<TokenSpan>{{0, 1}, {1, 4}, {5, 9}}));  // places follow the order of the text
}

TEST(WordPiece, RefusesVocabulariesThatDoNotFit) {
  const auto rule = [](const Tokenizer& from) { return thrown([&] { WordPiece{from}; }).rule; };
  EXPECT_EQ(rule(WordPiece::vocabulary("[UNK]\n[CLS]\n")), "tokenizer/special");
  Tokenizer from = WordPiece::vocabulary(kVocabulary);
  from.kind = Tokenizer::Kind::bpe;
  EXPECT_EQ(rule(from), "tokenizer/kind");
  from = WordPiece::vocabulary(kVocabulary);
  from.ids = {1, 2};
  EXPECT_EQ(rule(from), "tokenizer/ids");
  from = WordPiece::vocabulary("[UNK]\n[CLS]\n[SEP]\n");
  from.ids = {0, 1, 0xFFFFFFFF};
  EXPECT_EQ(rule(from), "tokenizer/ids");
  from = WordPiece::vocabulary("[UNK]\n[CLS]\n[SEP]\n" + std::string(257, 'x'));
  from.special.emplace_back("mask", 3);
  EXPECT_EQ(rule(from), "tokenizer/special");
  EXPECT_EQ(rule({}), "tokenizer/special");
}

TEST(WordPiece, RefusesCallsThatCannotBe) {
  Ids ids(4);
  std::vector<TokenSpan> spans(3);
  EXPECT_EQ(thrown([&] { small().encode("a", std::span(ids).first(1)); }).rule, "misuse/max-length");
  EXPECT_EQ(thrown([&] { small().encode("a", ids, {.max_length = 1}); }).rule, "misuse/max-length");
  EXPECT_EQ(thrown([&] { small().encode("a", ids, {}, spans); }).rule, "misuse/spans");
  EXPECT_EQ(thrown([] { WordPiece(WordPiece::vocabulary(kVocabulary), {.word_limit = 256}); }).rule,
            "misuse/word-limit");
}

TEST(WordPiece, IdsAndTokensInAnyOrder) {
  Tokenizer from = WordPiece::vocabulary("a\n[UNK]\n[CLS]\n[SEP]\r\nb\na");
  from.ids = {40, 3, 2, 1, 7, 9};
  from.special.clear();
  const WordPiece tokenizer(from);
  EXPECT_EQ(tokenizer.size(), 41U);
  EXPECT_EQ(tokenizer.encode("a b x"), (Ids{2, 40, 7, 3, 1}));  // of the two "a" tokens, the larger id
  EXPECT_EQ(tokenizer.token(9), "a");
  EXPECT_EQ(tokenizer.token(8), std::nullopt);
  EXPECT_EQ(tokenizer.special("pad"), std::nullopt);
}

TEST(WordPiece, TokensThatAreNoUtf8MatchNothing) {
  Tokenizer vocabulary;
  for (const char* token : {"[UNK]", "[CLS]", "[SEP]", "\xE4\xB8", "\xE4\xB8\x81"}) vocabulary.tokens.push_back(token);
  vocabulary.vocab_size = 5;
  const WordPiece tokenizer(vocabulary);
  EXPECT_EQ(plain("\xE4\xB8\x80\xE4\xB8\x81", tokenizer), (Names{"[UNK]", "\xE4\xB8\x81"}));
}

TEST(WordPiece, AVocabularyFileThatIsNoUtf8IsRefusedAtItsPlace) {
  const Finding found = thrown([] { WordPiece::vocabulary("[UNK]\n[CLS]\n[SEP]\n\xE4\xB8\n"); });
  EXPECT_EQ(found.rule, "tokenizer/utf8");
  EXPECT_EQ(found.kind, Kind::malformed);
  EXPECT_EQ(found.offset, 18U);
}

// Time is linear in the text: one step per character of a word would take hours for a megabyte.
TEST(WordPiece, AMegabyteOfOneWordIsNoMatter) {
  const auto begin = std::chrono::steady_clock::now();
  const std::string mark = "\xCC\x81", tone = "\xE3\x80\xAE\xF0\x9D\x85\xA5";
  std::string marks = "a", tones = "a";
  while (marks.size() < (1U << 20)) marks += mark;
  while (tones.size() < (1U << 20)) tones += tone;
  EXPECT_EQ(plain(std::string(1U << 20, 'a')), Names{"[UNK]"});
  EXPECT_EQ(plain(marks), Names{"a"});
  EXPECT_EQ(plain(tones), Names{"[UNK]"});
  EXPECT_EQ(plain(std::string(1U << 20, '!')).size(), 1U << 20);
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(20));
}

// A vocabulary whose tokens share a prefix: each lookup goes as deep as the word.
TEST(WordPiece, HostileVocabulariesCostNoMoreThanWordTimesDepth) {
  std::string text = "[UNK]\n[CLS]\n[SEP]\na\n##a\n##" + std::string(100000, 'a') + "b\n";
  for (std::size_t length = 50; length < 1000; ++length) text += "##" + std::string(length, 'a') + "b\n";
  const WordPiece tokenizer(WordPiece::vocabulary(text));
  std::string words;
  for (int i = 0; i < 2000; ++i) words += std::string(100, 'a') + " ";
  EXPECT_EQ(plain(words, tokenizer).size(), 200000U);
}

TEST(Vocabulary, FindsEachOfItsTokens) {
  Names tokens;
  for (int i = 0; i < 3000; ++i) tokens.push_back(std::to_string(i * i));
  std::sort(tokens.begin(), tokens.end());
  tokens.erase(std::unique(tokens.begin(), tokens.end()), tokens.end());
  std::vector<tokenizers::Vocabulary::Entry> entries;
  for (std::uint32_t i = 0; i < tokens.size(); ++i) entries.push_back({tokens[i], i});
  std::reverse(entries.begin(), entries.end());
  const tokenizers::Vocabulary vocabulary(entries);
  const std::set<std::string> known(tokens.begin(), tokens.end());
  for (std::uint32_t i = 0; i < tokens.size(); ++i) {
    const auto whole = vocabulary.longest(tokens[i], false);
    EXPECT_EQ(whole.id, i);
    EXPECT_EQ(whole.length, tokens[i].size());
  }
  for (int i = 0; i < 100000; i += 7) {
    const std::string word = std::to_string(i);
    std::size_t longest = word.size();
    while (longest > 0 && !known.contains(word.substr(0, longest))) --longest;
    EXPECT_EQ(vocabulary.longest(word, false).length, longest) << word;
  }
}

TEST(Characters, CountsInvalidSequencesAsDecodingDoes) {
  std::uint64_t x = 1;
  for (int round = 0; round < 20000; ++round) {
    std::string text;
    for (int i = 0; i < 6; ++i) {
      x = x * 6364136223846793005U + 1442695040888963407U;
      constexpr unsigned char kBytes[] = {0x41, 0x80, 0x8F, 0x90, 0x9F, 0xA0, 0xBF, 0xC1,
                                          0xC2, 0xE0, 0xE4, 0xED, 0xF0, 0xF1, 0xF4, 0xF5};
      text.push_back(static_cast<char>(kBytes[x >> 60]));
    }
    std::uint64_t counted = 0;
    for (std::size_t at = 0; at < text.size();) {
      const auto decoded = tokenizers::decode_replacing(text, at);
      counted += decoded.valid ? 0 : 1;
      at += decoded.length;
    }
    EXPECT_EQ(tokenizers::count_invalid(text), counted);
  }
}

}  // namespace
}  // namespace weighbridge
