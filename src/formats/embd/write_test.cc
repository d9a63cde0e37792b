// SPDX-License-Identifier: Apache-2.0
// Writing: the sections, the blockers, losses and changes, and the round trip.
#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>

#include "core/writing/layout.h"
#include "formats/embd/format.h"
#include "support/embd_case_file.h"
#include "support/format_testing.h"
#include "support/items.h"
#include "support/thrown.h"

namespace weighbridge::embd {
namespace {

using test::bytes_of;
using test::logical_bytes;
using test::walk;

// The file that a layout describes, with its checksums.
std::string render(const core::WriteLayout& layout) {
  std::string out = test::render(layout);
  if (!layout.finalize) return out;
  core::WrittenFile file;
  file.size = out.size();
  file.read = [&](std::uint64_t offset, std::span<std::byte> to) {
    std::memcpy(to.data(), out.data() + offset, to.size());
  };
  file.write = [&](std::uint64_t offset, std::span<const std::byte> from) {
    std::memcpy(out.data() + offset, from.data(), from.size());
  };
  layout.finalize(file);
  return out;
}

std::string write(const Model& model, const Options& options = {}) { return render(layout(model, options)); }

using test::text_of;

// The tiny model as another source has it: tensors in memory, and no metadata except the number of heads.
class Source {
 public:
  Source() {
    for (const CaseTensor& tensor : tiny_file().tensors)
      tensors.push_back({tensor.name, DType::f32, {tensor.shape.begin(), tensor.shape.end()}, tensor.data});
    attributes.emplace_back("num_attention_heads", Value::text("1"));
  }

  Model model() const {
    Builder builder;
    for (const auto& [key, value] : attributes) builder.attribute(key, value);
    for (const auto& [name, dtype, shape, data] : tensors) builder.tensor(name, dtype, shape, bytes_of(data));
    if (tokenizer) builder.tokenizer(*tokenizer);
    return builder.build();
  }
  core::WriteLayout layout(const Options& options = {}) const { return embd::layout(model(), options); }

  struct One {
    std::string name;
    DType dtype;
    std::vector<std::uint64_t> shape;
    std::string data;
  };
  std::vector<One> tensors;
  std::vector<Value::Entry> attributes;
  std::optional<Tokenizer> tokenizer;
};

Tokenizer tiny_tokenizer() {
  Tokenizer out;
  out.vocab_size = 5;
  for (const std::string& token : tiny_file().tokens) out.tokens.push_back(token);
  out.special = {{"pad", 0}, {"unk", 1}, {"cls", 2}, {"sep", 3}, {"mask", 4}};
  return out;
}

// The i64 elements 0 to n - 1.
std::string counting(std::uint64_t n) {
  std::string out;
  for (std::uint64_t i = 0; i < n; ++i) base::append_field(out, i);
  return out;
}

class EmbdWrite : public ::testing::Test {
 protected:
  void SetUp() override { unsetenv("SOURCE_DATE_EPOCH"); }
  void TearDown() override { unsetenv("SOURCE_DATE_EPOCH"); }
};

TEST_F(EmbdWrite, AFileOfItsOwnComesBackByteForByte) {
  CaseFile file = tiny_file();
  file.value("layer_norm_eps") = "1e-12";
  file.tensors.push_back({"costarring", 0, {1}, floats(1, 1.5F)});
  file.tensors.push_back({"liquid", 5, {1, 2, 1, 2}, "abcd"});
  for (const std::uint32_t flags : {7U, 6U, 5U, 3U, 0U}) {
    file.flags = flags;
    const std::string bytes = file.bytes();
    const Model model = walk(kFormat, bytes).model;
    const core::WriteLayout layout = embd::layout(model, {});
    EXPECT_EQ(text_of(layout.losses) + text_of(layout.changes), "");
    EXPECT_TRUE(render(layout) == bytes) << flags;
  }
}

TEST_F(EmbdWrite, KeepsANewerMinorVersion) {
  CaseFile file = tiny_file();
  file.minor = 4;
  const std::string bytes = file.bytes();
  EXPECT_TRUE(write(walk(kFormat, bytes).model) == bytes);
}

TEST_F(EmbdWrite, DerivesWhatTheTensorsTell) {
  const core::WriteLayout layout = Source().layout();
  EXPECT_EQ(text_of(layout.blockers) + text_of(layout.losses), "");
  EXPECT_EQ(text_of(layout.changes),
            "attributes[\"model_name\"]: absent -> model\n"
            "attributes[\"model_version\"]: absent -> 1.0.0\n"
            "attributes[\"embedding_dim\"]: absent -> 2\n"
            "attributes[\"vocab_size\"]: absent -> 5\n"
            "attributes[\"num_layers\"]: absent -> 1\n"
            "attributes[\"hidden_size\"]: absent -> 2\n"
            "attributes[\"intermediate_size\"]: absent -> 3\n"
            "attributes[\"max_position_emb\"]: absent -> 4\n"
            "attributes[\"created_at\"]: absent -> 1970-01-01T00:00:00Z\n");
  const auto [report, model] = walk(kFormat, render(layout));
  EXPECT_EQ(report.total(), 0U);
  EXPECT_EQ(model.tokenizer(), nullptr);
  for (const CaseTensor& tensor : tiny_file().tensors)
    EXPECT_EQ(logical_bytes(model[tensor.name].main()), tensor.data) << tensor.name;
}

TEST_F(EmbdWrite, AsksForTheHeadsByName) {
  Source source;
  source.attributes.clear();
  EXPECT_EQ(
      text_of(source.layout().blockers),
      "attributes[\"num_attention_heads\"]: absent -> a key that EMBD requires and that no tensor implies: convert "
      "the model's Hugging Face folder, whose config.json has it\n");
}

TEST_F(EmbdWrite, TakesTheCallersWordFirst) {
  Source source;
  source.attributes.emplace_back("model_name", Value::text("before"));
  source.attributes.emplace_back("created_at", Value::text("2020-01-01"));
  setenv("SOURCE_DATE_EPOCH", "1737028800", 1);
  const Model kept = walk(kFormat, write(source.model())).model;
  EXPECT_EQ(kept.attribute("created_at")->as_text(), "2020-01-01");
  Options options;
  options.metadata.model_name = "after";
  options.metadata.model_version = "2.1";
  options.metadata.created_at = "2026-05-04T03:02:01Z";
  const Model model = walk(kFormat, write(source.model(), options)).model;
  EXPECT_EQ(model.attribute("model_name")->as_text(), "after");
  EXPECT_EQ(model.attribute("model_version")->as_text(), "2.1");
  EXPECT_EQ(model.attribute("created_at")->as_text(), "2026-05-04T03:02:01Z");
  source.attributes.pop_back();
  const Model plain = walk(kFormat, write(source.model())).model;
  EXPECT_EQ(plain.attribute("created_at")->as_text(), "2025-01-16T12:00:00Z");
}

TEST_F(EmbdWrite, RequiredKeysComeFirstThenTheOthersInTheirOrder) {
  Source source;
  source.attributes.insert(source.attributes.begin(), {"z", Value::text("1")});
  source.attributes.emplace_back("a", Value::text("2"));
  const Model model = walk(kFormat, write(source.model())).model;
  std::string keys;
  for (const auto& [key, value] : model.attributes()) keys += key + " ";
  EXPECT_EQ(keys,
            "model_name model_version embedding_dim vocab_size num_layers num_attention_heads hidden_size "
            "intermediate_size max_position_emb created_at z a ");
}

TEST_F(EmbdWrite, AttributesThatAreNotTextAreLosses) {
  Source source;
  source.attributes.emplace_back("steps", Value::integer(std::uint64_t{7}, DType::u32));
  source.attributes.emplace_back("flag", Value::boolean(true));
  source.attributes.emplace_back("long", Value::text(std::string(65'536, 'x')));
  source.attributes.emplace_back("raw", Value::foreign("cbor", {std::byte{1}}));
  const core::WriteLayout layout = source.layout();
  ASSERT_EQ(layout.losses.size(), 4U);
  EXPECT_EQ(layout.losses[0], (Item{LossKind::attribute_type, "attributes[\"steps\"]", "u32", "text"}));
  EXPECT_EQ(layout.losses[1], (Item{LossKind::attribute_type, "attributes[\"flag\"]", "boolean", "text"}));
  EXPECT_EQ(layout.losses[2].to, "dropped: EMBD holds texts of up to 65535 bytes");
  EXPECT_EQ(layout.losses[3].to, "dropped: it cannot be text");
  const Model model = walk(kFormat, render(layout)).model;
  EXPECT_EQ(model.attribute("steps")->as_u64(), 7U);
  EXPECT_EQ(model.attribute("flag")->as_bool(), true);
  EXPECT_EQ(model.attribute("long"), nullptr);
}

TEST_F(EmbdWrite, HoldsAWordpieceTokenizer) {
  Source source;
  source.tokenizer = tiny_tokenizer();
  const auto [report, model] = walk(kFormat, write(source.model()));
  EXPECT_EQ(report.total(), 0U);
  ASSERT_NE(model.tokenizer(), nullptr);
  EXPECT_EQ(*model.tokenizer(), *source.tokenizer);
}

TEST_F(EmbdWrite, FindsSpecialTokensAndPutsIdsInOrder) {
  Source source;
  source.tokenizer = tiny_tokenizer();
  source.tokenizer->special = {{"cls", 0}, {"bos", 1}};
  source.tokenizer->ids = {4, 3, 2, 1, 0};
  const core::WriteLayout layout = source.layout();
  EXPECT_EQ(text_of(layout.losses), "tokenizer.special[\"bos\"]: a special token -> dropped\n");
  const Model model = walk(kFormat, render(layout)).model;
  EXPECT_EQ(model.tokenizer()->tokens[0], "[MASK]");
  const std::vector<std::pair<std::string, std::uint32_t>> special = {
      {"pad", 4}, {"unk", 3}, {"cls", 0}, {"sep", 1}, {"mask", 0}};
  EXPECT_EQ(model.tokenizer()->special, special);
}

TEST_F(EmbdWrite, SaysWhyATokenizerCannotGoAlong) {
  const auto why = [](auto edit) {
    Source source;
    source.tokenizer = tiny_tokenizer();
    edit(*source.tokenizer);
    const core::WriteLayout layout = source.layout();
    EXPECT_TRUE(layout.blockers.empty());
    EXPECT_EQ(walk(kFormat, render(layout)).report.total(), 0U);
    return layout.losses.size() == 1 && layout.losses[0].kind == LossKind::tokenizer ? layout.losses[0].to : "";
  };
  EXPECT_EQ(why([](Tokenizer& t) { t.kind = Tokenizer::Kind::bpe; }),
            "dropped: EMBD holds wordpiece vocabularies, not bpe");
  EXPECT_EQ(why([](Tokenizer& t) {
              t.vocab_size = 6;
              t.tokens.push_back("x");
            }),
            "dropped: it has 6 tokens, vocab_size is 5");
  EXPECT_EQ(why([](Tokenizer& t) { t.ids = {0, 1, 2, 3, 9}; }), "dropped: the ids of the tokens are not 0, 1, 2, ...");
  EXPECT_EQ(why([](Tokenizer& t) { t.merges.push_back({0, 1, 2, 3}); }), "dropped: EMBD has no place for merges");
  EXPECT_EQ(why([](Tokenizer& t) { t.special[4].second = 5; }), "dropped: EMBD requires the special token mask");
}

TEST_F(EmbdWrite, PositionIdsThatCountUpAreImplied) {
  Source source;
  source.tensors.push_back({"embeddings.position_ids", DType::i64, {1, 4}, counting(4)});
  const core::WriteLayout implied = source.layout();
  EXPECT_EQ(text_of(implied.blockers) + text_of(implied.losses), "");
  EXPECT_NE(text_of(implied.changes).find("tensors[\"embeddings.position_ids\"]: i64 [1, 4] -> left out"),
            std::string::npos);
  EXPECT_EQ(walk(kFormat, render(implied)).model.size(), 21U);

  source.tensors.back().data[8] = 2;
  const core::WriteLayout lost = source.layout();
  ASSERT_EQ(lost.losses.size(), 1U);
  EXPECT_EQ(lost.losses[0].kind, LossKind::dtype);
  source.tensors.back() = {"embeddings.position_ids", DType::i64, {4097}, counting(4097)};
  EXPECT_EQ(source.layout().losses.size(), 1U);  // too many to read for a plan
}

TEST_F(EmbdWrite, WhatEmbdCannotHoldIsABlockerByName) {
  const auto blocker = [](Source::One tensor) {
    Source source;
    source.tensors.push_back(std::move(tensor));
    const auto layout = source.layout();
    return layout.blockers.size() == 1 ? text_of(layout.blockers) : text_of(layout.blockers) + "(not one)";
  };
  EXPECT_EQ(blocker({"x", DType::i64, {1}, counting(1)}), "tensors[\"x\"]: i64 -> no dtype of EMBD\n");
  EXPECT_EQ(blocker({"x", DType::f64, {1}, counting(1)}),
            "tensors[\"x\"]: f64 -> no dtype of EMBD: cast it to f32, f16 or bf16\n");
  EXPECT_EQ(blocker({"x", DType::boolean, {1}, "\1"}), "tensors[\"x\"]: bool -> no dtype of EMBD\n");
  EXPECT_EQ(blocker({"x", DType::u8, {}, "x"}), "tensors[\"x\"]: [] -> EMBD has 1 to 4 dimensions\n");
  EXPECT_EQ(blocker({"x", DType::u8, {1, 1, 1, 1, 1}, "x"}),
            "tensors[\"x\"]: [1, 1, 1, 1, 1] -> EMBD has 1 to 4 dimensions\n");
  EXPECT_EQ(blocker({"x", DType::u8, {std::uint64_t{1} << 32, 0}, ""}),
            "tensors[\"x\"]: [4294967296, 0] -> a dimension of EMBD is below 2^32\n");
  EXPECT_NE(blocker({std::string(65'536, 'n'), DType::u8, {1}, "x"}).find("longer than the 65535"), std::string::npos);
}

TEST_F(EmbdWrite, RequiredTensorsThatAreMissingOrOddAreBlockers) {
  Source source;
  source.tensors.erase(source.tensors.begin() + 6);
  source.tensors.push_back({"x", DType::u8, {1}, "x"});
  EXPECT_EQ(text_of(source.layout().blockers),
            "tensors[\"encoder.layer.0.attention.self.query.bias\"]: absent -> a tensor that EMBD requires, [2]\n");
  Source odd;
  odd.tensors[3] = {odd.tensors[3].name, DType::i32, {1, 2}, std::string(8, 'x')};
  EXPECT_EQ(text_of(odd.layout().blockers),
            "tensors[\"embeddings.LayerNorm.weight\"]: [1, 2] -> what EMBD asks for, [2]\n"
            "tensors[\"embeddings.LayerNorm.weight\"]: i32 -> a floating-point dtype, which EMBD requires\n");
  Source layers;
  layers.attributes.emplace_back("num_layers", Value::text("18446744073709551615"));
  EXPECT_EQ(layers.layout().blockers.size(), 1U);
}

TEST_F(EmbdWrite, OtherModelsAreRefusedByName) {
  Builder builder;
  builder.tensor("w", DType::f32, {1}, bytes_of(floats(1, 0)));
  const core::WriteLayout layout = embd::layout(builder.build(), {});
  EXPECT_EQ(layout.blockers.size(), 7U);  // the numbers that no tensor gives
  EXPECT_EQ(layout.blockers[0].to,
            "a key that EMBD requires, and there is no tensor embeddings.word_embeddings.weight that implies it");
}

TEST_F(EmbdWrite, CastsAndNamesTheLoss) {
  Options options;
  options.cast = DType::f16;
  const core::WriteLayout layout = Source().layout(options);
  EXPECT_EQ(layout.losses.size(), 21U);
  EXPECT_EQ(layout.losses[0].kind, LossKind::precision);
  const auto [report, model] = walk(kFormat, render(layout));
  EXPECT_TRUE(report.valid());
  EXPECT_EQ(report.warnings(), 21U);  // not FLOAT32
  EXPECT_EQ(model[0].dtype(), DType::f16);

  Source doubles;
  doubles.tensors.push_back({"x", DType::f64, {1}, counting(1)});
  options.cast = DType::f32;
  EXPECT_TRUE(doubles.layout(options).blockers.empty());
}

TEST_F(EmbdWrite, OptionsThatTheFormatLacksAreMisuse) {
  const auto rule = [](auto set) {
    Options options;
    set(options);
    return test::thrown([&] { core::check_written(kFormat, options), Source().layout(options); }).rule;
  };
  EXPECT_EQ(rule([](Options& o) { o.encoding = "zstd"; }), "misuse/encoding");
  EXPECT_EQ(rule([](Options& o) { o.digest = "sha256"; }), "misuse/digest");
  EXPECT_EQ(rule([](Options& o) { o.quantize = "q8_0"; }), "misuse/quantize");
  EXPECT_EQ(rule([](Options& o) { o.version = "2"; }), "misuse/version");
  EXPECT_EQ(rule([](Options& o) { o.cast = DType::f64; }), "misuse/cast");
  EXPECT_EQ(rule([](Options& o) { o.metadata.model_name = "\xFF"; }), "misuse/metadata");
}

}  // namespace
}  // namespace weighbridge::embd
