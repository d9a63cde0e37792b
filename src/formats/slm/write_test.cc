// SPDX-License-Identifier: Apache-2.0
// Writing: bytes, known sizes, quantization, grouped queries, blockers and losses.
#include <gtest/gtest.h>

#include <cmath>

#include "codecs/quantize.h"
#include "core/payload/compare.h"
#include "core/writing/layout.h"
#include "support/items.h"
#include "support/slm_testing.h"
#include "support/thrown.h"

namespace weighbridge::slm_format {
namespace {

using test::names;
using testing::corpus_case;
using testing::header_of;
using testing::ModelShape;
using testing::render;
using testing::tiny;
using testing::values_of;
using testing::walk;

Options quantized(std::string kind, bool norms = false) {
  Options options;
  options.quantize = std::move(kind);
  options.slm.quantize_norms = norms;
  return options;
}

// These files of the corpus are laid out by hand as the writer would, so each is reproduced byte for byte.
TEST(SlmWrite, SlmToSlmIsByteIdentical) {
  for (const char* name :
       {"valid-tied", "valid-tied-with-output", "valid-untied", "valid-q8_0", "valid-q4_0", "valid-mixed", "valid-bpe1",
        "valid-bpe1-no-tokens", "valid-bpe1-ids-in-order", "valid-longer-header", "valid-grouped-query",
        "valid-two-layers", "valid-another-order", "valid-unknown-tensors", "repeated-merge"}) {
    SCOPED_TRACE(name);
    const std::string& bytes = corpus_case(name).bytes;
    const core::WriteLayout made = layout(walk(bytes).model, {});
    EXPECT_TRUE(made.blockers.empty());
    EXPECT_TRUE(made.losses.empty());
    EXPECT_TRUE(made.changes.empty());
    EXPECT_TRUE(render(made) == bytes);
  }
}

TEST(SlmWrite, TheSizesOfTheOriginalsModelComeOut) {
  const ModelShape shape{.vocab = 260, .hidden = 512, .layers = 4, .heads = 8, .ffn = 2048, .context = 512};
  const Header h = header_of(shape);
  Builder builder;
  testing::add_hyperparameters(builder, h);
  builder.tokenizer(byte_tokenizer());
  std::uint64_t parameters = 0;
  for (auto& [name, dims] : testing::required(h)) {
    std::uint64_t count = 1;
    for (const std::uint64_t d : dims) count *= d;
    parameters += count;
    builder.tensor(name, DType::f32, dims, [](std::uint64_t, std::span<std::byte>) -> std::size_t { return 0; });
  }
  const Model model = builder.build();
  EXPECT_EQ(model.size(), 39U);
  EXPECT_EQ(parameters, 17'048'064U);
  EXPECT_EQ(layout(model, {}).size, 68'194'944U);
  EXPECT_EQ(layout(model, quantized("q8_0", true)).size, 17'160'000U);
  EXPECT_EQ(layout(model, quantized("q4_0", true)).size, 10'657'728U);
}

TEST(SlmWrite, TheTinyFixturesHaveTheirParameters) {
  for (const auto& [tied, tensors, parameters] : {std::tuple{false, 12U, 4'824U}, {true, 11U, 2'744U}}) {
    const Model model = walk(render(layout(tiny({.tied = tied}).build(), {}))).model;
    EXPECT_EQ(model.size(), tensors);
    std::uint64_t count = 0;
    for (std::uint32_t i = 0; i < model.size(); ++i) count += model[i].main().count();
    EXPECT_EQ(count, parameters);
  }
}

TEST(SlmWrite, HyperparametersComeBack) {
  const Model in = tiny({.layers = 3, .tied = true}).build();
  const auto [report, out] = walk(render(layout(in, {})));
  EXPECT_EQ(report.total(), 0U);
  EXPECT_TRUE(core::compare(in, out).empty() || out.size() == in.size());
  for (std::uint32_t i = 0; i < in.size(); ++i) EXPECT_EQ(values_of(in[i]), values_of(out[in.name(i)]));
  EXPECT_EQ(out.attribute("slm.layer_count")->as_u64(), 3U);
  EXPECT_EQ(out.attribute("slm.flags")->as_u64(), 1U);
  EXPECT_EQ(out.attribute("slm.head_dim")->as_u64(), 4U);
  EXPECT_EQ(out.attribute("slm.ffn_size")->as_u64(), 16U);
}

std::vector<float> requantized(const std::vector<float>& values, std::size_t group, bool nibbles) {
  std::vector<float> out(values.size());
  std::vector<std::byte> codes(group);
  for (std::size_t at = 0; at < values.size(); at += group) {
    const auto one = std::span(values).subspan(at, group);
    const float largest = codecs::largest_magnitude(one);
    if (nibbles) {
      codecs::q4_encode(one, codecs::q4_scale(largest), codes.data());
      codecs::q4_decode(std::span(codes).first(group / 2), codecs::q4_scale(largest), out.data() + at);
    } else {
      codecs::q8_encode(one, codecs::q8_scale(largest), codes.data());
      codecs::q8_decode(codes, codecs::q8_scale(largest), out.data() + at);
    }
  }
  return out;
}

TEST(SlmWrite, QuantizesRowsAndBlocks) {
  const Model in = tiny({.hidden = 8, .ffn = 172}).build();
  for (const bool nibbles : {false, true}) {
    const core::WriteLayout made = layout(in, quantized(nibbles ? "q4_0" : "q8_0"));
    EXPECT_TRUE(made.blockers.empty());
    EXPECT_EQ(made.losses.size(), in.size() - 3);  // all except the norms
    for (const Item& loss : made.losses) EXPECT_EQ(loss.kind, LossKind::precision);
    const auto [report, out] = walk(render(made));
    EXPECT_EQ(report.total(), 0U);
    EXPECT_EQ(out.dtype_label(), "mixed");
    EXPECT_EQ(values_of(out["norm.weight"]), values_of(in["norm.weight"]));
    const Tensor w2 = out["layers.0.w2.weight"];  // [8, 172]
    EXPECT_EQ(w2.attribute("block_size")->as_u64(), nibbles ? 4U : 172U);
    EXPECT_EQ(values_of(w2), requantized(values_of(in["layers.0.w2.weight"]), nibbles ? 4 : 172, nibbles));
    EXPECT_EQ(values_of(out["tok_embeddings.weight"]), requantized(values_of(in["tok_embeddings.weight"]), 8, nibbles));
  }
  const auto norms = walk(render(layout(in, quantized("q8_0", true))));
  EXPECT_EQ(norms.model.dtype_label(), "q8_0");
  EXPECT_EQ(values_of(norms.model["norm.weight"]), requantized(values_of(in["norm.weight"]), 8, false));
}

TEST(SlmWrite, OddColumnsBecomeQ8) {
  const Model in = tiny({.hidden = 7, .heads = 7, .ffn = 9}).build();
  const auto [report, out] = walk(render(layout(in, quantized("q4_0", true))));
  EXPECT_EQ(report.total(), 0U);
  EXPECT_EQ(out.dtype_label(), "q8_0");
}

// A row has one scale, so it is held as a whole.
TEST(SlmWrite, LongRowsAreQuantized) {
  const std::uint64_t columns = (1U << 20) + 3;
  Builder builder = tiny();
  builder.tensor("#00000000000000cc", DType::f32, {2, columns}, testing::pattern(2 * columns, 77));
  const Model in = builder.build();
  const auto [report, out] = walk(render(layout(in, quantized("q4_0"))));
  EXPECT_EQ(report.total(), 0U);
  const auto expected = requantized(values_of(in["#00000000000000cc"]), static_cast<std::size_t>(columns), false);
  EXPECT_TRUE(values_of(out["#00000000000000cc"]) == expected);
}

TEST(SlmWrite, QuantizedTensorsGoOverAsTheyAreUnlessAskedOtherwise) {
  const Model q8 = walk(render(layout(tiny().build(), quantized("q8_0", true)))).model;
  const std::string same = render(layout(q8, {}));
  EXPECT_TRUE(render(layout(q8, quantized("q8_0"))) == same);
  const core::WriteLayout q4 = layout(q8, quantized("q4_0"));
  EXPECT_FALSE(q4.losses.empty());
  const Model out = walk(render(q4)).model;
  const Tensor wq = out["layers.0.wq.weight"], norm = out["norm.weight"];
  EXPECT_EQ(wq.type_name(), "q4_0");
  EXPECT_EQ(values_of(wq), requantized(values_of(q8["layers.0.wq.weight"]), 8, true));
  EXPECT_EQ(norm.type_name(), "q8_0");
  Options dense;
  dense.cast = DType::f32;
  const core::WriteLayout f32 = layout(q8, dense);
  EXPECT_EQ(f32.losses.size(), q8.size());
  EXPECT_EQ(f32.losses[0].kind, LossKind::layout);
  const Model back = walk(render(f32)).model;
  EXPECT_EQ(back.dtype_label(), "f32");
}

TEST(SlmWrite, OtherFloatsBecomeF32) {
  Builder builder;
  const Header h = header_of({});
  testing::add_hyperparameters(builder, h);
  builder.tokenizer(byte_tokenizer());
  const std::uint16_t half[] = {0x3c00, 0xc000, 1, 0x7bff, 0, 0x8000, 0x3555, 0x0400};
  const double wide[] = {0.1, 2, 3, 4, 5, 6, 7, 8};
  std::uint64_t seed = 0;
  for (auto& [name, dims] : testing::required(h)) {
    if (name == "norm.weight")
      builder.tensor(name, DType::f16, dims, Bytes{std::as_bytes(std::span(half)), nullptr});
    else if (name == "layers.0.ffn_norm.weight")
      builder.tensor(name, DType::f64, dims, Bytes{std::as_bytes(std::span(wide)), nullptr});
    else
      builder.tensor(name, DType::f32, dims, testing::pattern(dims.size() > 1 ? dims[0] * dims[1] : dims[0], ++seed));
  }
  const Model in = builder.build();
  const core::WriteLayout made = layout(in, {});
  ASSERT_EQ(made.changes.size(), 1U);
  EXPECT_EQ(made.changes[0].subject, "tensors[\"norm.weight\"]");
  ASSERT_EQ(made.losses.size(), 1U);
  EXPECT_EQ(made.losses[0].kind, LossKind::precision);
  const Model out = walk(render(made)).model;
  EXPECT_EQ(values_of(out["norm.weight"]), values_of(in["norm.weight"]));
  EXPECT_EQ(values_of(out["layers.0.ffn_norm.weight"])[0], 0.1F);
}

// Two key and value heads for four query heads, head_dim 2: reading M8.
Model grouped() {
  Builder builder;
  Header h = header_of({.heads = 4});
  testing::add_hyperparameters(builder, h);
  builder.tokenizer(byte_tokenizer());
  std::uint64_t seed = 0;
  for (auto& [name, dims] : testing::required(h)) {
    if (name.ends_with("wk.weight") || name.ends_with("wv.weight")) dims[0] = 4;
    builder.tensor(name, DType::f32, dims, testing::pattern(dims.size() > 1 ? dims[0] * dims[1] : dims[0], ++seed));
  }
  return builder.build();
}

TEST(SlmWrite, GroupedQueriesAreRepeatedOrKept) {
  const Model in = grouped();
  const auto from = values_of(in["layers.0.wk.weight"]);
  const core::WriteLayout made = layout(in, {});
  EXPECT_TRUE(made.blockers.empty());
  EXPECT_TRUE(names(made.changes, "attributes[\"slm.kv_head_count\"]"));
  const auto [report, out] = walk(render(made));
  EXPECT_EQ(report.total(), 0U);
  EXPECT_EQ(out.attribute("slm.kv_head_count")->as_u64(), 4U);
  const auto repeated = values_of(out["layers.0.wk.weight"]);
  ASSERT_EQ(repeated.size(), 64U);
  for (std::size_t row = 0; row < 8; ++row)
    for (std::size_t c = 0; c < 8; ++c)  // query head q = row / 2 reads kv head q / 2
      EXPECT_EQ(repeated[row * 8 + c], from[(row / 4 * 2 + row % 2) * 8 + c]) << row << " " << c;

  Options keep;
  keep.slm.keep_gqa = true;
  const core::WriteLayout kept = layout(in, keep);
  EXPECT_FALSE(kept.changes.empty());
  const auto padded = walk(render(kept));
  EXPECT_EQ(padded.report.total(), 0U);
  EXPECT_EQ(padded.model.attribute("slm.kv_head_count")->as_u64(), 2U);
  auto expected = from;
  expected.resize(64);
  EXPECT_EQ(values_of(padded.model["layers.0.wk.weight"]), expected);

  Options both = quantized("q8_0");
  const auto small = walk(render(layout(in, both)));
  EXPECT_EQ(small.report.total(), 0U);
  EXPECT_EQ(values_of(small.model["layers.0.wk.weight"]), requantized(repeated, 8, false));
}

TEST(SlmWrite, NamesWhatIsMissing) {
  Builder builder;
  builder.tensor("tok_embeddings.weight", DType::f32, {260, 8}, testing::pattern(2080, 1));
  builder.tensor("layers.0.w1.weight", DType::f32, {16, 8}, testing::pattern(128, 2));
  const core::WriteLayout made = layout(builder.build(), {});
  for (const char* subject :
       {"tokenizer", "attributes[\"slm.head_count\"]", "attributes[\"slm.max_context\"]",
        "attributes[\"slm.rope_theta\"]", "attributes[\"slm.rms_norm_epsilon\"]", "tensors[\"norm.weight\"]",
        "tensors[\"output.weight\"]", "tensors[\"layers.0.attention_norm.weight\"]", "tensors[\"layers.0.w3.weight\"]"})
    EXPECT_TRUE(names(made.blockers, subject)) << subject;
  EXPECT_FALSE(names(made.blockers, "tensors[\"layers.0.w1.weight\"]"));
  EXPECT_FALSE(layout(Model(), {}).blockers.empty());
}

TEST(SlmWrite, RefusesWhatAnSlmCannotHold) {
  const auto blocked = [](auto change) {
    Builder builder = tiny();
    change(builder);
    return layout(builder.build(), {}).blockers;
  };
  const Bytes eight{std::as_bytes(std::span("\0\0\0\0\0\0\0")), nullptr};
  EXPECT_TRUE(names(blocked([&](Builder& b) { b.tensor("i", DType::u8, {8}, eight); }), "tensors[\"i\"]"));
  EXPECT_TRUE(names(blocked([&](Builder& b) { b.tensor("z", DType::f32, {0}, Bytes{}); }), "tensors[\"z\"]"));
  EXPECT_TRUE(
      names(blocked([&](Builder& b) { b.tensor("s", DType::f32, {}, testing::pattern(1, 1)); }), "tensors[\"s\"]"));
  EXPECT_TRUE(names(blocked([&](Builder& b) { b.tensor("r", DType::f32, {1, 1, 1, 1, 2}, eight); }), "tensors[\"r\"]"));
  EXPECT_TRUE(names(blocked([&](Builder& b) { b.attribute("slm.hidden_size", Value::text("nine")); }),
                    "attributes[\"slm.hidden_size\"]"));
  EXPECT_TRUE(
      names(blocked([&](Builder& b) { b.attribute("slm.layer_count", Value::integer(std::uint64_t{4000000000})); }),
            "attributes[\"slm.layer_count\"]"));
  EXPECT_TRUE(names(blocked([&](Builder& b) { b.attribute("slm.hidden_size", Value::integer(std::int64_t{16})); }),
                    "tensors[\"tok_embeddings.weight\"]"));
  // Two names with the same hash.
  EXPECT_FALSE(blocked([&](Builder& b) {
                 b.tensor("x", DType::f32, {2}, testing::pattern(2, 1));
                 b.tensor(spell_hash(name_hash("x")), DType::f32, {2}, testing::pattern(2, 1));
               }).empty());
  EXPECT_FALSE(blocked([&](Builder& b) {
                 b.tensor("layers.0.attn_norm.weight", DType::f32, {8}, testing::pattern(8, 1));
               }).empty());
  Options zstd;
  zstd.encoding = "zstd";
  EXPECT_EQ(test::thrown([&] { core::check_written(kFormat, zstd); }).kind, Kind::misuse);
  EXPECT_EQ(test::thrown([&] { core::check_written(kFormat, quantized("q5_0")); }).kind, Kind::misuse);
}

TEST(SlmWrite, NamesWhatIsLost) {
  Builder builder = tiny();
  builder.attribute("general.author", Value::text("somebody"));
  builder.tensor("lm_head.bias", DType::f32, {3}, testing::pattern(3, 9));
  const core::WriteLayout made = layout(builder.build(), {});
  EXPECT_TRUE(made.blockers.empty());
  ASSERT_EQ(made.losses.size(), 2U);
  EXPECT_EQ(made.losses[0].kind, LossKind::attribute);
  EXPECT_EQ(made.losses[1].kind, LossKind::name);
  EXPECT_EQ(made.losses[1].to, spell_hash(name_hash("lm_head.bias")) + ": an .slm keeps hashes only");
  EXPECT_TRUE(walk(render(made)).model.find(spell_hash(name_hash("lm_head.bias"))).has_value());
}

TEST(SlmWrite, TheAliasIsWrittenByItsOwnName) {
  const core::WriteLayout made = layout(walk(corpus_case("attn-norm").bytes).model, {});
  EXPECT_TRUE(made.losses.empty());
  const auto [report, out] = walk(render(made));
  EXPECT_EQ(report.total(), 0U);
  EXPECT_EQ(out["layers.0.attention_norm.weight"].id(), name_hash("layers.0.attention_norm.weight"));
}

TEST(SlmWrite, ValuesThatAreNotFiniteAreRefusedBeforeTheFileIsPublished) {
  Builder builder = tiny();
  builder.tensor("#00000000000000dd", DType::f32, {1, 4}, testing::floats({1, 2, NAN, 4}));
  const Model in = builder.build();
  const Finding sealed = test::thrown([&] { render(layout(in, {})); });
  EXPECT_EQ(sealed.rule, "slm/not-finite");
  EXPECT_EQ(sealed.kind, Kind::malformed);
  EXPECT_EQ(sealed.tensor, "#00000000000000dd");
  EXPECT_EQ(test::thrown([&] { render(layout(in, quantized("q8_0"))); }).rule, "slm/not-finite");
}

}  // namespace
}  // namespace weighbridge::slm_format
