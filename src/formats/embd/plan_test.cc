// SPDX-License-Identifier: Apache-2.0
// Plans that whole files do not reach: vocabularies that cannot be written, impossible numbers, and sizes beyond the
// format.
#include <gtest/gtest.h>

#include "core/writing/layout.h"
#include "formats/embd/format.h"
#include "formats/embd/vocabulary.h"
#include "support/embd_case_file.h"
#include "support/format_testing.h"
#include "support/items.h"
#include "support/thrown.h"

namespace weighbridge::embd {
namespace {

using test::text_of;

// The layout of the tiny model with one head and the changes of `edit`.
template <class Edit> core::WriteLayout planned(Edit edit, const Options& options = {}) {
  Builder builder;
  for (const CaseTensor& tensor : tiny_file().tensors)
    builder.tensor(tensor.name, DType::f32, {tensor.shape.begin(), tensor.shape.end()}, test::bytes_of(tensor.data));
  edit(builder);
  return layout(builder.build(), options);
}
void one_head(Builder& builder) { builder.attribute("num_attention_heads", Value::text("1")); }

Tokenizer five() {
  Tokenizer out;
  out.vocab_size = 5;
  for (const std::string& token : tiny_file().tokens) out.tokens.push_back(token);
  return out;
}

TEST(EmbdVocabulary, SaysWhichTokenCannotBeHeld) {
  const auto obstacle = [](auto edit) {
    Tokenizer tokenizer = five();
    edit(tokenizer);
    return plan_vocabulary(tokenizer).obstacle;
  };
  EXPECT_EQ(obstacle([](Tokenizer&) {}), "");
  EXPECT_EQ(obstacle([](Tokenizer& t) { t.vocab_size = 6; }), "EMBD needs a token for each of its 6 ids");
  EXPECT_EQ(obstacle([](Tokenizer& t) { t.ids = {0, 1}; }), "EMBD needs a token for each of its 5 ids");
  EXPECT_EQ(obstacle([](Tokenizer& t) { t.ids = {0, 1, 2, 3, 3}; }), "the ids of the tokens are not 0, 1, 2, ...");
  EXPECT_EQ(obstacle([](Tokenizer& t) { t.ids = {0, 1, 2, 3, 5}; }), "the ids of the tokens are not 0, 1, 2, ...");
  const auto with = [&](std::string_view token) {
    return obstacle([&](Tokenizer& t) {
      t.vocab_size = 6;
      t.tokens.push_back(token);
    });
  };
  EXPECT_EQ(with(std::string(65'535, 'x')), "");
  EXPECT_EQ(with(std::string(65'536, 'x')), "a token is longer than 65535 bytes");
  EXPECT_EQ(with("\xff"), "a token is not UTF-8");
  EXPECT_EQ(obstacle([](Tokenizer& t) {
              t.tokens = {};
              for (const char* token : {"[PAD]", "[UNK]", "[CLS]", "[SEP]", "mask"}) t.tokens.push_back(token);
            }),
            "EMBD requires the special token mask");
  EXPECT_EQ(obstacle([](Tokenizer& t) { t.special = {{"unk", 5}}; }), "EMBD requires the special token unk");
}

TEST(EmbdVocabulary, StandsBelow4GiB) {
  const Tokenizer tokenizer = five();
  const VocabularyPlan plan = plan_vocabulary(tokenizer);
  const auto section = encode_vocabulary(tokenizer, plan, 64);
  ASSERT_TRUE(section.has_value());
  const std::uint64_t last = UINT32_MAX - section->size();
  EXPECT_TRUE(encode_vocabulary(tokenizer, plan, last).has_value());
  EXPECT_EQ(encode_vocabulary(tokenizer, plan, last + 1), std::nullopt);
  EXPECT_EQ(encode_vocabulary(tokenizer, plan, UINT64_MAX), std::nullopt);
}

TEST(EmbdVocabulary, OfTooManyTokensIsNotKept) {
  const Tokenizer tokenizer = five();
  const std::string section = encode_vocabulary(tokenizer, plan_vocabulary(tokenizer), 64).value();
  Limits limits;
  limits.memory = 39;  // five tokens take 40 bytes besides their text
  Report report;
  core::Findings findings(report, core::Findings::Mode::all);
  EXPECT_EQ(read_vocabulary(section, 64, limits, findings), std::nullopt);
  ASSERT_GE(report.total(), 1U);
  EXPECT_EQ(report.findings()[0].rule, "limit/memory");
  EXPECT_EQ(report.findings()[0].offset, 64U);
  limits.memory = 40;
  Report sound;
  core::Findings none(sound, core::Findings::Mode::all);
  ASSERT_TRUE(read_vocabulary(section, 64, limits, none).has_value());
  EXPECT_EQ(sound.total(), 0U);
}

TEST(EmbdPlan, NumbersThatCannotBeAreBlockers) {
  const auto blockers = [](std::string key, Value value) {
    return text_of(planned([&](Builder& b) {
                     if (key != "num_attention_heads") one_head(b);
                     b.attribute(key, value);
                   }).blockers);
  };
  EXPECT_EQ(blockers("num_attention_heads", Value::text("two")),
            "attributes[\"num_attention_heads\"]: two -> a positive integer, which EMBD requires\n");
  EXPECT_EQ(blockers("num_attention_heads", Value::text("0")),
            "attributes[\"num_attention_heads\"]: 0 -> a positive integer, which EMBD requires\n");
  EXPECT_EQ(blockers("num_attention_heads", Value::text("3")),
            "attributes[\"num_attention_heads\"]: 3 -> a divisor of hidden_size, 2\n");
  const std::string dim = blockers("embedding_dim", Value::text("4"));
  EXPECT_NE(dim.find("attributes[\"embedding_dim\"]: 4 -> hidden_size, 2: EMBD has no projection\n"), dim.npos) << dim;
}

// Attributes with the names of header values, but with values that no header can have.
TEST(EmbdPlan, FlagsAndVersionsOfNobodyAreAttributes) {
  for (const auto& [key, value] : {std::pair{"embd.flags", Value::integer(std::uint64_t{1} << 31, DType::u32)},
                                   {"embd.flags", Value::integer(std::int64_t{-1})},
                                   {"embd.version_minor", Value::integer(std::uint64_t{65'536}, DType::u32)},
                                   {"embd.version_minor", Value::integer(std::int64_t{-1})}}) {
    const core::WriteLayout made = planned([&](Builder& b) {
      one_head(b);
      b.attribute(key, value);
    });
    ASSERT_EQ(made.losses.size(), 1U) << key;
    EXPECT_EQ(made.losses[0].kind, LossKind::attribute_type) << key;
  }
  const core::WriteLayout made = planned([](Builder& b) {
    one_head(b);
    b.attribute(std::string(65'536, 'k'), Value::text("v"));
  });
  ASSERT_EQ(made.losses.size(), 1U);
  EXPECT_EQ(made.losses[0].to, "dropped: EMBD holds texts of up to 65535 bytes");
}

TEST(EmbdPlan, SizesPast2To64AreBlockers) {
  const auto none = [](std::uint64_t, std::span<std::byte>) -> std::size_t { return 0; };
  constexpr std::uint64_t kHalf = std::uint64_t{1} << 31;
  Options cast;
  cast.cast = DType::f32;
  EXPECT_EQ(text_of(planned(
                        [&](Builder& b) {
                          one_head(b);
                          b.tensor("x", DType::f16, {kHalf, kHalf}, none);
                        },
                        cast)
                        .blockers),
            "tensors[\"x\"]: [2147483648, 2147483648] -> more than 2^64 - 1 bytes\n");
  EXPECT_EQ(text_of(planned([&](Builder& b) {
                      one_head(b);
                      b.tensor("x", DType::u8, {kHalf, kHalf, 2}, none);
                      b.tensor("y", DType::u8, {kHalf, kHalf, 2}, none);
                    }).blockers),
            "tensors[\"y\"]: its size -> more than 2^64 - 1 bytes in all\n");
}

TEST(EmbdPlan, OptionsThatSayWhatItDoesAnywayAreFine) {
  const auto made = [](std::string version) {
    Options options;
    options.encoding = "raw";
    options.digest = "none";
    options.version = std::move(version);
    return planned(one_head, options);
  };
  EXPECT_TRUE(made("1").blockers.empty());
  EXPECT_EQ(made("1.0").size, planned(one_head).size);
  Options integer;
  integer.cast = DType::i8;
  EXPECT_EQ(test::thrown([&] { core::check_written(kFormat, integer); }).rule, "misuse/cast");
}

// With another dtype or layout, position_ids is an ordinary tensor.
TEST(EmbdPlan, OnlyPositionIdsOfI64AreImplied) {
  const core::WriteLayout made = planned([](Builder& b) {
    one_head(b);
    b.tensor("embeddings.position_ids", DType::i32, {1}, test::bytes_of(std::string(4, '\0')));
  });
  EXPECT_TRUE(made.blockers.empty()) << text_of(made.blockers);
  EXPECT_EQ(made.tensors.size(), tiny_file().tensors.size() + 1);
}

}  // namespace
}  // namespace weighbridge::embd
