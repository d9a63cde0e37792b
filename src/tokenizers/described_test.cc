// SPDX-License-Identifier: Apache-2.0
// Tokenizers that metadata describe, and descriptions that are wrong. tests/interop/test_gguf_tokens.py reads the real
// vocabularies of llama.cpp.
#include "tokenizers/described.h"

#include <gtest/gtest.h>

#include <cstring>
#include <utility>
#include <vector>

#include "support/thrown.h"

namespace weighbridge::tokenizers {
namespace {

using Ids = std::vector<std::uint32_t>;
using Strings = std::vector<std::string>;
using test::thrown;

template <class T> Value numbers(DType dtype, const std::vector<T>& values) {
  std::vector<std::byte> bytes(values.size() * sizeof(T));
  std::memcpy(bytes.data(), values.data(), bytes.size());
  return Value::numbers(dtype, std::move(bytes));
}
Value texts(const Strings& all) {
  Texts out;
  for (const std::string& one : all) out.push_back(one);
  return Value::texts(std::move(out));
}

struct Description {
  std::string model = "llama";
  Strings tokens{};
  std::vector<float> scores{};
  std::vector<std::int32_t> types{};
  Strings merges{};
  std::vector<std::pair<std::string, Value>> more{};

  Model build() const {
    Builder builder;
    const auto add = [&](const std::string& key, Value value) {
      builder.attribute("tokenizer.ggml." + key, std::move(value));
    };
    add("model", Value::text(model));
    add("tokens", texts(tokens));
    if (!scores.empty()) add("scores", numbers(DType::f32, scores));
    if (!types.empty()) add("token_type", numbers(DType::i32, types));
    if (!merges.empty()) add("merges", texts(merges));
    for (const auto& [key, value] : more) add(key, value);
    return builder.build();
  }
};

// <unk> <s> </s>, the bytes, U+2581, a, b, ab and U+2581ab.
Description pieces() {
  Description out{.tokens = {"<unk>", "<s>", "</s>"}, .scores = {0, 0, 0}, .types = {2, 3, 3}};
  for (int b = 0; b < 256; ++b) {
    char text[8];
    std::snprintf(text, sizeof text, "<0x%02X>", b);
    out.tokens.emplace_back(text);
    out.scores.push_back(0);
    out.types.push_back(6);
  }
  for (const char* const text : {"\u2581", "a", "b", "ab", "\u2581ab"}) {
    out.tokens.emplace_back(text);
    out.scores.push_back(static_cast<float>(-static_cast<int>(out.scores.size())));
    out.types.push_back(1);
  }
  return out;
}

Ids encoded(const Model& model, std::string_view text) {
  const Described described = describe(model);
  return BytePair(*described.tokenizer, described.options).encode(text);
}

TEST(Described, Sentencepiece) {
  const Model model = pieces().build();
  EXPECT_EQ(encoded(model, "ab b"), (Ids{1, 263, 259, 261}));
  EXPECT_EQ(encoded(model, "\n"), (Ids{1, 259, 3 + '\n'}));
  Description other = pieces();
  other.more = {{"add_space_prefix", Value::boolean(false)}, {"add_bos_token", Value::boolean(false)}};
  EXPECT_EQ(encoded(other.build(), "ab"), Ids{262});
}

TEST(Described, TokensOfTheUserAreFoundFirstTheLongestFirst) {
  Description with = pieces();
  for (const char* const text : {"<x>", "<x>>", "b<"}) {
    with.tokens.emplace_back(text);
    with.scores.push_back(0);
    with.types.push_back(4);
  }
  with.more = {{"add_space_prefix", Value::boolean(false)}};
  EXPECT_EQ(encoded(with.build(), "ab<x>>a"), (Ids{1, 262, 265, 260}));
  EXPECT_EQ(encoded(with.build(), "b<"), (Ids{1, 266}));
}

TEST(Described, ByteLevel) {
  // U+0120 is a space, U+00C3 and U+00A9 are the bytes of U+00E9.
  const Description gpt2{.model = "gpt2",
                         .tokens = {"a", "b", "\u0120", "\u00c3", "\u00a9", "ab", "\u0120a", "\u00c3\u00a9", "<|end|>"},
                         .types = {1, 1, 1, 1, 1, 1, 1, 1, 3},
                         .merges = {"\u0120 a", "a b", "\u00c3 \u00a9"},
                         .more = {{"pre", Value::text("gpt-2")}, {"eos_token_id", Value::integer(std::uint64_t{8})}}};
  const Model model = gpt2.build();
  EXPECT_EQ(encoded(model, "ab ab\u00e9"), (Ids{5, 6, 1, 7}));
  const Described described = describe(model);
  EXPECT_EQ(BytePair(*described.tokenizer, described.options).decode(Ids{5, 6, 1, 7, 8}), "ab ab\u00e9");
}

// A token of a whole character that no merge makes was taken for it; llama.cpp merges bytes only.
TEST(Described, ACharacterOfAByteLevelVocabularyBeginsAsItsBytes) {
  const Description gpt2{.model = "gpt2",
                         .tokens = {"\u00c3", "\u00a9", "\u00c3\u00a9", "<|end|>"},
                         .types = {1, 1, 1, 3},
                         .merges = {"\u00a9 \u00a9"},
                         .more = {{"pre", Value::text("gpt-2")}, {"eos_token_id", Value::integer(std::uint64_t{3})}}};
  EXPECT_EQ(encoded(gpt2.build(), "\u00e9"), (Ids{0, 1}));
}

TEST(Described, TheEndsOfATextAreThoseThatTheMetadataName) {
  Description with = pieces();
  with.more = {{"eot_token_id", Value::integer(std::uint64_t{261})},
               {"eom_token_id", Value::integer(std::uint64_t{262})},
               {"add_eos_token", Value::boolean(true)}};
  const Described described = describe(with.build());
  const BytePair tokenizer(*described.tokenizer, described.options);
  EXPECT_TRUE(tokenizer.ends(2) && tokenizer.ends(261) && tokenizer.ends(262));
  EXPECT_FALSE(tokenizer.ends(1));
  EXPECT_TRUE(tokenizer.adds_bos() && tokenizer.adds_eos());
  const TextTokenizer whole(with.build());
  EXPECT_EQ(whole("ab").ids, (Ids{1, 263, 2}));
  const TextTokenizer cut(with.build(), {.max_length = 2}), bare(with.build(), {.special = false});
  EXPECT_EQ(cut("ab ab").ids, (Ids{1, 2}));
  EXPECT_TRUE(cut("ab ab").truncated);
  EXPECT_EQ(bare("ab").ids, Ids{263});
  with.more = {{"eot_token_id", Value::integer(std::uint64_t{264})}};
  EXPECT_EQ(thrown([&] { describe(with.build()); }).rule, "tokenizer/special");
}

// The vocabulary of a folder with the rules beside it.
struct Ruled {
  std::vector<std::pair<std::uint32_t, std::string>> tokens;
  std::string rules;
  std::vector<Tokenizer::Merge> merges{};
};
Ids encoded(const Ruled& from, std::string_view text) {
  Tokenizer tokenizer;
  tokenizer.kind = Tokenizer::Kind::bpe;
  tokenizer.vocab_size = 400;
  for (int b = 0; b < 256; ++b) tokenizer.tokens.push_back(std::string(1, static_cast<char>(b)));
  for (std::uint32_t id = 0; id < 256; ++id) tokenizer.ids.push_back(id);
  for (const auto& [id, spelled] : from.tokens) {
    tokenizer.tokens.push_back(spelled);
    tokenizer.ids.push_back(id);
  }
  tokenizer.merges = from.merges;
  tokenizer.special = {{"bos", 390}, {"eos", 391}, {"unk", 391}};
  Builder builder;
  builder.tokenizer(tokenizer);
  builder.attribute("tokenizer_rules", Value::text(from.rules));
  return encoded(builder.build(), text);
}

TEST(Described, AddedTokensOfAFolderAreFoundFromLeftToRight) {
  const Ruled from{.tokens = {{300, "l<"}, {301, "<x>"}, {302, "<x>>"}, {303, "|<x>|"}},
                   .rules = R"({"byte_level":true,"bos":false,"control":[303],"found":[300,301,302]})"};
  EXPECT_EQ(encoded(from, "l<x>"), (Ids{300, 'x', '>'}));
  EXPECT_EQ(encoded(from, "a<x>>"), (Ids{'a', 302}));
  EXPECT_EQ(encoded(from, "|<x>|<x>"), (Ids{'|', '<', 'x', '>', '|', 301}));  // what a control token spells is text
}

TEST(Described, NoTextBecomesAControlToken) {
  const Ruled from{.tokens = {{300, "pad"}, {301, "ab"}},
                   .rules =
                       R"({"byte_level":true,"whole_words":true,"bos":true,"control":[300],"words":["\\p{N}",)"
                       R"("'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+| ?[^\\s\\p{L}\\p{N}]+|\\s+(?!\\S)|\\s+"]})"};
  EXPECT_EQ(encoded(from, "pad7"), (Ids{390, 'p', 'a', 'd', '7'}));
  EXPECT_EQ(encoded(from, "ab7"), (Ids{390, 301, '7'}));
}

TEST(Described, ContractionsOfALlama3FolderFoldTheLongS) {
  const std::string words =
      R"(["(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}{1,3}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|)"
      R"(\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+"])";
  const Ruled from{.tokens = {{300, "xy"}, {301, "\u017fx"}},
                   .rules = R"({"byte_level":true,"bos":false,"words":)" + words + "}",
                   .merges = {{'x', 'y', 300, 0}}};
  EXPECT_EQ(encoded(from, "'\u017fxy"), (Ids{'\'', 0xC5, 0xBF, 300}));
}

TEST(Described, AnUnknownExpressionIsRefusedByName) {
  const Finding found =
      thrown([] { encoded(Ruled{.tokens = {}, .rules = R"({"byte_level":true,"words":["a+b"]})"}, "x"); });
  EXPECT_EQ(found.rule, "tokenizer/words");
  EXPECT_EQ(found.kind, Kind::unsupported);
  EXPECT_NE(found.message.find("a+b"), std::string::npos);
  EXPECT_EQ(thrown([] { encoded(Ruled{.tokens = {}, .rules = "{}x"}, "x"); }).rule, "tokenizer/rules");
}

TEST(Described, TokensThatTextsAreSearchedForHaveABound) {
  Ruled from{.tokens = {{300, std::string(256, 'a')}}, .rules = R"({"byte_level":true,"bos":false,"found":[300]})"};
  EXPECT_EQ(encoded(from, std::string(257, 'a')), (Ids{300, 'a'}));
  from.tokens[0].second += 'a';
  EXPECT_EQ(thrown([&] { encoded(from, "a"); }).rule, "tokenizer/token");
}

// A tokenizer whose normalizer is not implemented here once gave ids as if it had none.
TEST(Described, WhatIsNotEvenARuleIsRefused) {
  Tokenizer tokenizer;
  tokenizer.kind = Tokenizer::Kind::byte;
  Builder builder;
  builder.tokenizer(tokenizer);
  builder.attribute("tokenizer_unheld", Value::text("its normalizer NFC changes texts"));
  const Finding found = thrown([&] { describe(builder.build()); });
  EXPECT_EQ(found.rule, "tokenizer/unheld");
  EXPECT_EQ(found.kind, Kind::unsupported);
  EXPECT_NE(found.message.find("NFC"), std::string::npos);
}

TEST(Described, WordPieceWithoutItsMarks) {
  const Description bert{.model = "bert",
                         .tokens = {"[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "\u2581un", "able"},
                         .types = {3, 3, 3, 3, 3, 1, 1},
                         .more = {{"unknown_token_id", Value::integer(std::uint64_t{1})},
                                  {"cls_token_id", Value::integer(std::uint64_t{2})},
                                  {"seperator_token_id", Value::integer(std::uint64_t{3})},
                                  {"padding_token_id", Value::integer(std::uint64_t{0})},
                                  {"mask_token_id", Value::integer(std::uint64_t{4})}}};
  EXPECT_EQ(WordPiece(*describe(bert.build()).tokenizer).encode("Unable"), (Ids{2, 5, 6, 3}));
}

// A cased vocabulary of llama.cpp's converter was read in lower case.
TEST(Described, TheCaseOfAWordPieceIsWhatTheMetadataSay) {
  const auto options = [](std::vector<Value::Entry> more) {
    return word_piece_options(
        Description{.model = "bert", .tokens = {"a"}, .types = {1}, .more = std::move(more)}.build(), false, {});
  };
  EXPECT_TRUE(options({}).lower_case);
  const WordPieceOptions cased =
      options({{"normalizer.lowercase", Value::boolean(false)}, {"normalizer.strip_accents", Value::boolean(true)}});
  EXPECT_FALSE(cased.lower_case);
  EXPECT_EQ(cased.strip_accents, true);
}

TEST(Described, WhatIsWrongIsRefused) {
  const auto rule = [](Description description) {
    return thrown([&] {
             const Described described = describe(description.build());
             BytePair(*described.tokenizer, described.options);
           })
        .rule;
  };
  Description scores = pieces();
  scores.scores.pop_back();
  EXPECT_EQ(rule(scores), "tokenizer/scores");
  scores.scores.clear();
  EXPECT_EQ(rule(scores), "tokenizer/scores");
  scores = pieces();
  scores.scores.back() = std::numeric_limits<float>::quiet_NaN();
  EXPECT_EQ(rule(scores), "tokenizer/scores");
  Description types = pieces();
  types.types.pop_back();
  EXPECT_EQ(rule(types), "tokenizer/types");
  Description byte = pieces();
  byte.tokens[4] = "<0xZZ>";
  EXPECT_EQ(rule(byte), "tokenizer/tokens");
  Description id = pieces();
  id.more = {{"bos_token_id", Value::integer(std::uint64_t{264})}};
  EXPECT_EQ(rule(id), "tokenizer/special");
  Description token = pieces();
  token.tokens.back() = std::string(300, 'x');
  EXPECT_EQ(rule(token), "tokenizer/token");
  EXPECT_EQ(rule({.model = "llama"}), "tokenizer/tokens");
  EXPECT_EQ(rule({.model = "rwkv", .tokens = {"a"}}), "tokenizer/model");
  EXPECT_EQ(rule({.model = "gpt2", .tokens = {"a"}, .more = {{"pre", Value::text("other")}}}), "tokenizer/words");
  EXPECT_EQ(rule({.model = "gpt2", .tokens = {"a"}}), "tokenizer/merges");
  EXPECT_EQ(rule({.model = "gpt2", .tokens = {"a"}, .merges = {"ab"}}), "tokenizer/merges");
}

// Tokens with one long prefix in common took a step for each pair of their characters.
TEST(Described, AVocabularyOfLongPrefixesIsReadInTime) {
  Description long_ones = pieces();
  for (std::size_t i = 0; i < 20'000; ++i) {
    long_ones.tokens.push_back(std::string(200, 'a') + std::to_string(i));
    long_ones.scores.push_back(-1);
    long_ones.types.push_back(1);
  }
  EXPECT_EQ(encoded(long_ones.build(), "ab"), (Ids{1, 263}));
}

}  // namespace
}  // namespace weighbridge::tokenizers
