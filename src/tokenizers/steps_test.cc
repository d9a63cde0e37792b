// SPDX-License-Identifier: Apache-2.0
// WordPiece by other steps than BERT's, and that the way for all steps gives what the way for BERT's gives. The ids are
// those of the package tokenizers 0.23, which tests/interop/test_wordpiece.py asks about many more.
#include "tokenizers/steps.h"

#include <gtest/gtest.h>

#include <random>

#include "support/thrown.h"

namespace weighbridge {
namespace {

using Ids = std::vector<std::uint32_t>;
using test::thrown;

// 0 to 4 are the special tokens.
const std::vector<std::string_view> kWords = {"[PAD]",
                                              "[UNK]",
                                              "[CLS]",
                                              "[SEP]",
                                              "[MASK]",
                                              "cafe",
                                              "caf\xC3\xA9",
                                              "\xE4\xB8\xAD",
                                              "\xE6\x96\x87",
                                              "\xE4\xB8\xAD\xE6\x96\x87",
                                              "foo",
                                              "##bar",
                                              "##ium",
                                              "a",
                                              "the",
                                              "cafe\xCC\x81",
                                              "A",
                                              "!",
                                              "a!",
                                              "x",
                                              "bar",
                                              "[ENT]"};

Tokenizer vocabulary() {
  Tokenizer out;
  for (const std::string_view word : kWords) out.tokens.push_back(word);
  out.vocab_size = static_cast<std::uint32_t>(kWords.size());
  return out;
}

Ids encode(std::string rules, std::string_view text, WordPieceOptions options = {}) {
  options.rules = std::move(rules);
  return WordPiece(vocabulary(), options).encode(text);
}

TEST(Steps, FollowTheNormalizer) {
  EXPECT_EQ(encode(R"({"normalizer":null})", "caf\xC3\xA9 A"), (Ids{2, 6, 16, 3}));
  EXPECT_EQ(encode(R"({"normalizer":{"type":"NFD"}})", "caf\xC3\xA9"), (Ids{2, 15, 3}));
  EXPECT_EQ(encode(R"({"normalizer":{"type":"NFC"}})", "cafe\xCC\x81"), (Ids{2, 6, 3}));
  EXPECT_EQ(encode(R"({"normalizer":{"type":"Sequence","normalizers":[{"type":"NFD"},{"type":"StripAccents"}]}})",
                   "caf\xC3\xA9"),
            (Ids{2, 5, 3}));
  EXPECT_EQ(encode(R"({"normalizer":{"type":"Prepend","prepend":"foo"}})", "bar a"), (Ids{2, 10, 11, 13, 3}));
  EXPECT_EQ(encode(R"({"normalizer":{"type":"Replace","pattern":{"String":"xx"},"content":"a!"}})", "xxx"),
            (Ids{2, 13, 17, 19, 3}));
}

TEST(Steps, FollowThePreTokenizer) {
  EXPECT_EQ(encode(R"({"pre_tokenizer":{"type":"WhitespaceSplit"}})", "a! a !"), (Ids{2, 18, 13, 17, 3}));
  EXPECT_EQ(encode(R"({"pre_tokenizer":{"type":"Whitespace"}})", "a! a!!"), (Ids{2, 13, 17, 13, 1, 3}));
  EXPECT_EQ(encode(R"({"pre_tokenizer":null})", "a!"), (Ids{2, 18, 3}));
  EXPECT_EQ(encode(R"({"pre_tokenizer":{"type":"Punctuation","behavior":"MergedWithPrevious"}})", "a!x"),
            (Ids{2, 18, 19, 3}));
  EXPECT_EQ(encode(R"({"pre_tokenizer":{"type":"CharDelimiterSplit","delimiter":"x"}})", "axa!xx"),
            (Ids{2, 13, 18, 3}));
}

TEST(Steps, FindAddedTokensByTheirFlags) {
  // Bits: single_word, lstrip, rstrip, normalized, in the vocabulary.
  EXPECT_EQ(encode(R"({"added":[[21,0]]})", "the [ENT]"), (Ids{2, 14, 21, 3}));
  EXPECT_EQ(encode(R"({"added":[[21,8]]})", "the [Ent]"), (Ids{2, 14, 21, 3}));
  EXPECT_EQ(encode(R"({"added":[[21,0]]})", "the [Ent]"), (Ids{2, 14, 1, 1, 1, 3}));
  EXPECT_EQ(encode(R"({"added":[[10,17]]})", "foo foobar"), (Ids{2, 10, 10, 11, 3}));
  EXPECT_EQ(encode(R"({"added":[[19,16]]})", "axa"), (Ids{2, 13, 19, 13, 3}));
  EXPECT_EQ(encode(R"({"added":[[20,0]]})", "BAR bar"), (Ids{2, 1, 20, 3})) << "no word has it";
  const WordPiece strips(vocabulary(), {.rules = R"({"added":[[19,22]]})"});
  std::vector<std::uint32_t> ids;
  std::vector<TokenSpan> spans;
  strips.encode_all("a  x  a", ids, {}, &spans);
  EXPECT_EQ(ids, (Ids{2, 13, 19, 13, 3}));
  EXPECT_EQ(spans[2], (TokenSpan{1, 6}));
}

TEST(Steps, FollowTheFrameAndTheModel) {
  EXPECT_EQ(encode(R"({"frame":[[],[]]})", "a"), Ids{13});
  EXPECT_EQ(encode(R"({"frame":[[4],[3,3]]})", "a"), (Ids{4, 13, 3, 3}));
  EXPECT_EQ(encode(R"({"word_limit":3})", "the foobar"), (Ids{2, 14, 1, 3}));
  EXPECT_EQ(encode(R"({"word_limit":0})", "a"), (Ids{2, 1, 3}));
  EXPECT_EQ(encode(R"({"prefix":""})", "foobar"), (Ids{2, 10, 20, 3}));
  EXPECT_EQ(encode(R"({"frame":[[4],[3,3]]})", "a a a", {}).size(), 6U);
  const WordPiece framed(vocabulary(), {.rules = R"({"frame":[[4],[3,3]]})"});
  EXPECT_EQ(framed.encode("a a a", {.max_length = 4}), (Ids{4, 13, 3, 3}));
  EXPECT_EQ(thrown([&] { framed.encode("a", {.max_length = 2}); }).rule, "misuse/max-length");
}

TEST(Steps, RefuseByName) {
  EXPECT_EQ(thrown([&] { encode(R"({"normalizer":{"type":"NFKC"}})", "a"); }).rule, "tokenizer/setting");
  EXPECT_EQ(encode(R"({"normalizer":{"type":"NFKC"}})", "a", {.ignore_settings = {"normalizer.type"}}),
            (Ids{2, 13, 3}));
  EXPECT_EQ(thrown([&] { encode(R"({"word_limit":1001})", "a"); }).rule, "tokenizer/word-limit");
  EXPECT_EQ(thrown([&] { encode(R"({"frame":[[99],[]]})", "a"); }).rule, "tokenizer/special");
  EXPECT_EQ(thrown([&] { encode(R"({"added":[[99,0]]})", "a"); }).rule, "tokenizer/added");
  EXPECT_EQ(thrown([&] {
              encode(R"({"normalizer":{"type":"StripAccents"},"added":[[21,8]]})" + std::string("x"), "a");
            }).rule,
            "tokenizer/rules");
}

TEST(Steps, RefuseAddedTokensThatTheNormalizerMakesEqualOrDeletes) {
  EXPECT_EQ(thrown([] { encode(R"({"added":[[13,24],[16,24]]})", "a"); }).rule, "tokenizer/added");
  EXPECT_EQ(encode(R"({"added":[[13,24],[16,16]]})", "A a"), (Ids{2, 16, 13, 3}));
  EXPECT_EQ(thrown([] {
              encode(R"({"normalizer":{"type":"Replace","pattern":{"String":"x"},"content":""},"added":[[19,24]]})",
                     "a");
            }).rule,
            "tokenizer/added");
}

TEST(Steps, BoundHowMuchATextMayGrow) {
  const std::string long_text(200, 'b');
  const WordPiece grows(
      vocabulary(),
      {.rules = R"({"normalizer":{"type":"Replace","pattern":{"String":"a"},"content":")" + long_text + R"("}})"});
  EXPECT_EQ(grows.encode("a").size(), 3U);
  EXPECT_EQ(thrown([&] { grows.encode(std::string(10'000, 'a')); }).rule, "limit/memory");
}

// The two ways of the library, for BERT's own steps.
TEST(Steps, AgreeWithTheWayForBert) {
  constexpr std::string_view kParts[] = {
      "a", "the",      " ",  "cafe", "caf\xC3\xA9",  "\xCC\x81", "\xE4\xB8\xAD", "!",        "[SEP]", "[MASK]",
      "A", "\xC4\xB0", "\n", "\xFF", "\xEF\xBF\xBD", "foobar",   "foo",          "\xCC\xA7", "\x01",  "\xED\x95\x9C"};
  std::mt19937 random(5);
  for (int round = 0; round < 400; ++round) {
    std::string text;
    for (auto n = random() % 12; n-- > 0;) text += kParts[random() % std::size(kParts)];
    for (const bool lower : {true, false})
      for (const std::optional<bool> accents : {std::optional<bool>(), std::optional(true), std::optional(false)}) {
        const WordPieceOptions options{.lower_case = lower, .strip_accents = accents, .space_chinese = round % 2 == 0};
        // A limit that no word reaches, and that BERT's way does not have.
        EXPECT_EQ(encode(R"({"word_limit":900})", text, options), encode("", text, options)) << text;
      }
  }
}

}  // namespace
}  // namespace weighbridge
