// SPDX-License-Identifier: Apache-2.0
// TextTokenizer with each kind of tokenizer: which one is chosen, its settings, truncation, and the text of ids.
#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "support/temporary_folder.h"
#include "support/thrown.h"
#include "weighbridge/tokenize.h"

namespace weighbridge {
namespace {

using test::thrown;
using Ids = std::vector<std::uint32_t>;
using Tokens = std::vector<std::string_view>;

constexpr std::string_view kLetters = "[UNK]\n[CLS]\n[SEP]\na\nA\nb\n##b\n";

Builder with_word_pieces() {
  Builder out;
  out.tokenizer(WordPiece::vocabulary(kLetters));
  return out;
}

// A model with position embeddings for `places` ids.
Builder with_places(std::uint64_t places) {
  Builder out = with_word_pieces();
  out.tensor("embeddings.position_embeddings.weight", DType::u8, {places, 0}, Bytes{});
  return out;
}

Model of_bytes() {
  Tokenizer tokenizer;
  tokenizer.kind = Tokenizer::Kind::byte;
  tokenizer.vocab_size = 260;
  tokenizer.special = {{"bos", 256}, {"eos", 257}, {"pad", 258}, {"unk", 259}};
  Builder out;
  out.tokenizer(tokenizer);
  return out.build();
}

TEST(Vocabulary, TheLastOfEqualTokensCountsAsSpecialToo) {
  const Tokenizer tokenizer = WordPiece::vocabulary("[UNK]\n[CLS]\n[SEP]\na\n[CLS]\n");
  EXPECT_EQ(WordPiece(tokenizer).special("cls"), 4U);
}

TEST(Vocabulary, OfManyEmptyLinesOrOneLongOneIsRefusedBeforeItCosts) {
  const test::TemporaryFolder folder;
  const std::string path = folder / "vocab.txt";
  test::write_file(path, std::string(100'000, '\n'));
  Limits limits;
  limits.memory = 1 << 20;
  EXPECT_EQ(thrown([&] { WordPiece::vocabulary(*open_file(path), limits); }).rule, "limit/memory");
  test::write_file(path, "a\n" + std::string(4096, 'b') + "\n");
  EXPECT_EQ(WordPiece::vocabulary(*open_file(path)).tokens.size(), 2U);
  test::write_file(path, "a\n" + std::string(4097, 'b') + "\n");
  const Finding long_one = thrown([&] { WordPiece::vocabulary(*open_file(path)); });
  EXPECT_EQ(long_one.rule, "tokenizer/token");
  EXPECT_EQ(long_one.offset, 2U);
}

TEST(TextTokenizer, SpellsWordPieces) {
  const TextTokenizer tokenizer(with_word_pieces().build(), {.offsets = true});
  const TokenizedText text = tokenizer("\xC3\xA9 ab");
  EXPECT_EQ(text.ids, (Ids{1, 0, 3, 6, 2}));
  EXPECT_EQ(text.tokens, (Tokens{"[CLS]", "[UNK]", "a", "##b", "[SEP]"}));
  EXPECT_EQ(text.offsets, (std::vector<TokenSpan>{{0, 0}, {0, 1}, {2, 3}, {3, 4}, {0, 0}}));
  EXPECT_EQ(tokenizer("a\xff").replaced, 1U);
  const TextTokenizer bare(with_word_pieces().build(), {.special = false});
  EXPECT_EQ(bare("ab").ids, (Ids{3, 6}));
  EXPECT_TRUE(bare("ab").offsets.empty());
}

TEST(TextTokenizer, DecodesAndCounts) {
  const TextTokenizer words(with_word_pieces().build());
  EXPECT_EQ(words.size(), 7U);
  EXPECT_EQ(words.decode(Ids{1, 3, 6, 5, 0, 2}), "ab b [UNK]");
  EXPECT_EQ(words.decode(Ids{6, 6}), "##bb");
  EXPECT_EQ(thrown([&] { words.decode(Ids{3, 7}); }).rule, "misuse/token");
  const TextTokenizer bytes(of_bytes());
  EXPECT_EQ(bytes.size(), 260U);
  EXPECT_EQ(bytes.decode(bytes("a b").ids), "a b");
  EXPECT_EQ(thrown([&] { bytes.decode(Ids{260}); }).rule, "misuse/token");
}

TEST(TextTokenizer, LowersAsTheModelSays) {
  EXPECT_EQ(TextTokenizer(with_word_pieces().build())("A").ids, (Ids{1, 3, 2}));
  const Model cased = with_word_pieces().attribute("do_lower_case", Value::boolean(false)).build();
  EXPECT_EQ(TextTokenizer(cased)("A").ids, (Ids{1, 4, 2}));
}

TEST(TextTokenizer, CutsWhereTheEmbedderDoes) {
  std::string text;
  for (int i = 0; i < 600; ++i) text += "a ";
  const auto count = [&](Builder&& builder, std::uint64_t asked) {
    return TextTokenizer(builder.build(), {.max_length = asked})(text).ids.size();
  };
  EXPECT_EQ(count(with_word_pieces(), 0), 602U);
  EXPECT_EQ(count(with_places(512), 0), 256U);
  EXPECT_EQ(count(with_places(100), 0), 100U);
  EXPECT_EQ(count(std::move(with_places(512).attribute("max_seq_length", Value::integer(std::uint64_t{300}))), 0),
            300U);
  EXPECT_EQ(count(with_places(100), 7), 7U);
  const TextTokenizer cut(with_word_pieces().build(), {.max_length = 3});
  EXPECT_TRUE(cut("a a").truncated);
  EXPECT_FALSE(cut("a").truncated);
}

TEST(TextTokenizer, SpellsBytesAndNamesWhatHasNone) {
  const Model model = of_bytes();
  const TextTokenizer whole(model);  // the tokens of a result live as long as this
  const TokenizedText text = whole("hi");
  EXPECT_EQ(text.ids, (Ids{256, 'h', 'i'}));
  EXPECT_EQ(text.tokens, (Tokens{"<bos>", "h", "i"}));
  const TextTokenizer cut(model, {.max_length = 3});
  EXPECT_EQ(cut("xyz").ids, (Ids{256, 'x', 'y'}));
  EXPECT_TRUE(cut("xyz").truncated);
  EXPECT_FALSE(cut("xy").truncated);
  EXPECT_EQ(TextTokenizer(model, {.special = false})("hi").ids, (Ids{'h', 'i'}));
}

TEST(TextTokenizer, TakesAnotherVocabularyWhenGivenOne) {
  const Tokenizer vocabulary = WordPiece::vocabulary(kLetters);
  const TextTokenizer tokenizer(of_bytes(), {.offsets = true, .vocabulary = &vocabulary});
  EXPECT_EQ(tokenizer("a").ids, (Ids{1, 3, 2}));
}

TEST(TextTokenizer, SaysWhatIsMissing) {
  const Finding none = thrown([] { TextTokenizer tokenizer(Builder().build()); });
  EXPECT_EQ(none.rule, "misuse/no-vocabulary");
  EXPECT_EQ(none.kind, Kind::misuse);
  EXPECT_EQ(thrown([] { TextTokenizer tokenizer(of_bytes(), {.offsets = true}); }).rule, "misuse/offsets");
}

TEST(WordPieceVocabulary, IsReadFromAFileWithinTheLimit) {
  const test::TemporaryFolder folder;
  test::write_file(folder / "vocab.txt", std::string(kLetters));
  const auto source = open_file(folder / "vocab.txt");
  EXPECT_EQ(WordPiece::vocabulary(*source).tokens.size(), 7U);
  Limits limits;
  limits.header = kLetters.size() - 1;
  EXPECT_EQ(thrown([&] { WordPiece::vocabulary(*source, limits); }).rule, "limit/header");
}

}  // namespace
}  // namespace weighbridge
