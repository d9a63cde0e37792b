// SPDX-License-Identifier: Apache-2.0
// Models with Hugging Face's names and hyperparameters: how they are converted, and which ones are refused.
#include <gtest/gtest.h>

#include <algorithm>

#include "core/writing/layout.h"
#include "formats/slm/hyper.h"
#include "support/items.h"
#include "support/slm_testing.h"
#include "support/thrown.h"

namespace weighbridge::slm_format {
namespace {

using test::names;
using testing::header_of;
using testing::ModelShape;
using testing::render;
using testing::values_of;
using testing::walk;

constexpr ModelShape kShape{.hidden = 24, .layers = 2, .heads = 4, .ffn = 10};

std::string folder_name(std::string name) {
  const std::pair<std::string_view, std::string_view> parts[] = {{"tok_embeddings", "embed_tokens"},
                                                                 {"output", "lm_head"},
                                                                 {"attention_norm", "input_layernorm"},
                                                                 {"ffn_norm", "post_attention_layernorm"},
                                                                 {"wq", "self_attn.q_proj"},
                                                                 {"wk", "self_attn.k_proj"},
                                                                 {"wv", "self_attn.v_proj"},
                                                                 {"wo", "self_attn.o_proj"},
                                                                 {"w1", "mlp.gate_proj"},
                                                                 {"w2", "mlp.down_proj"},
                                                                 {"w3", "mlp.up_proj"}};
  for (const auto& [ours, theirs] : parts) {
    const std::string whole = "." + std::string(ours) + ".weight";
    if (name == whole.substr(1)) name = std::string(theirs) + ".weight";
    if (name.ends_with(whole)) name.replace(name.size() - whole.size() + 1, ours.size(), theirs);
  }
  return name == "lm_head.weight" ? name : "model." + name;
}

using Extra = std::vector<std::pair<std::string, std::string>>;

// Attributes as the reader of folders sets them: all are text.
Builder folder(const Extra& changed = {}, std::uint32_t kv_heads = 4) {
  Builder out;
  Extra config = {{"hf.model_type", "llama"},           {"hf.hidden_size", "24"},
                  {"hf.intermediate_size", "10"},       {"hf.num_hidden_layers", "2"},
                  {"hf.num_attention_heads", "4"},      {"hf.num_key_value_heads", std::to_string(kv_heads)},
                  {"hf.max_position_embeddings", "32"}, {"hf.rms_norm_eps", "1e-05"},
                  {"hf.rope_theta", "10000.0"},         {"hf.vocab_size", "260"},
                  {"hf.rope_scaling", "null"},          {"hf.tie_word_embeddings", "false"},
                  {"hf.torch_dtype", "bfloat16"},       {"format", "pt"}};
  for (const auto& [key, value] : changed) {
    const auto known = std::ranges::find(config, key, &Extra::value_type::first);
    if (known == config.end())
      config.emplace_back(key, value);
    else
      known->second = value;
  }
  for (const auto& [key, value] : config)
    if (value != "absent") out.attribute(key, Value::text(value));
  out.tokenizer(byte_tokenizer());
  std::uint64_t seed = 0;
  for (auto& [name, dims] : testing::required(header_of(kShape))) {
    if (name.ends_with("wk.weight") || name.ends_with("wv.weight")) dims[0] = 6 * kv_heads;
    out.tensor(folder_name(name), DType::f32, dims,
               testing::pattern(dims.size() > 1 ? dims[0] * dims[1] : dims[0], ++seed));
  }
  return out;
}

TEST(SlmLlama, NamesAreTold) {
  for (const auto& [name, dims] : testing::required(header_of(kShape))) {
    const auto respelled = from_hugging_face(folder_name(name));
    ASSERT_TRUE(respelled.has_value()) << name;
    EXPECT_EQ(respelled->name, name);
    EXPECT_EQ(respelled->half_split, name.ends_with("wq.weight") || name.ends_with("wk.weight"));
    const auto bare = from_hugging_face(folder_name(name).substr(name == "output.weight" ? 0 : 6));
    ASSERT_TRUE(bare.has_value()) << name;
    EXPECT_EQ(bare->name, name);
  }
  for (const char* other :
       {"", "model.", ".weight", "model.layers.0.weight", "model.layers.0.norm.weight", "model.mlp.up_proj.weight",
        "model.layers.x.mlp.up_proj.weight", "model.layers.01.mlp.up_proj.weight", "model.layers.0.mlp.up_proj.bias",
        "model.layers.99999999999.mlp.up_proj.weight", "layers.0.wq.weight", "model.layers.0"})
    EXPECT_FALSE(from_hugging_face(other).has_value()) << other;
  EXPECT_EQ(layer_of("layers.17.wq.weight"), 17U);
  EXPECT_EQ(layer_of("model.layers.0.x"), 0U);
  EXPECT_EQ(layer_of("layers.17"), std::nullopt);
}

TEST(SlmLlama, AFolderNeedsNoConsent) {
  const Model in = folder().build();
  const core::WriteLayout made = layout(in, {});
  EXPECT_TRUE(made.blockers.empty());
  EXPECT_TRUE(made.losses.empty());
  EXPECT_TRUE(names(made.changes, "attributes[\"hf.torch_dtype\"]"));
  EXPECT_TRUE(names(made.changes, "tensors[\"model.layers.1.self_attn.k_proj.weight\"]"));
  const auto [report, out] = walk(render(made));
  EXPECT_EQ(report.total(), 0U);
  EXPECT_EQ(out.attribute("slm.max_context")->as_u64(), 32U);
  EXPECT_EQ(out.attribute("slm.rope_theta")->as_f64(), 10000.0);
  EXPECT_EQ(out.attribute("slm.flags")->as_u64(), 0U);
  for (const auto& [name, dims] : testing::required(header_of(kShape))) {
    if (name.ends_with("wq.weight") || name.ends_with("wk.weight")) continue;
    EXPECT_EQ(values_of(out[name]), values_of(in[folder_name(name)])) << name;
  }
}

// Reading M9: pair i of a head is rows i and i + 3 in the source, rows 2i and 2i + 1 in an .slm. M8 applies as well.
TEST(SlmLlama, RowsOfTheRotationBecomeNeighbors) {
  for (const std::uint32_t kv_heads : {4U, 2U, 1U}) {
    const Model in = folder({}, kv_heads).build();
    const Model out = walk(render(layout(in, {}))).model;
    for (const auto& [ours, theirs, heads] :
         {std::tuple("layers.1.wq.weight", "model.layers.1.self_attn.q_proj.weight", 4U),
          std::tuple("layers.1.wk.weight", "model.layers.1.self_attn.k_proj.weight", kv_heads)}) {
      const auto to = values_of(out[ours]), from = values_of(in[theirs]);
      ASSERT_EQ(to.size(), 24U * 24U);
      for (std::size_t head = 0; head < 4; ++head)
        for (std::size_t row = 0; row < 6; ++row)
          for (std::size_t c = 0; c < 24; ++c)
            ASSERT_EQ(to[(head * 6 + row) * 24 + c], from[(head * heads / 4 * 6 + row % 2 * 3 + row / 2) * 24 + c])
                << ours << " " << head << " " << row;
    }
    Options quantize;
    quantize.quantize = "q8_0";
    const Model small = walk(render(layout(in, quantize))).model;
    const Model again = walk(render(layout(out, quantize))).model;
    EXPECT_EQ(values_of(small["layers.0.wk.weight"]), values_of(again["layers.0.wk.weight"]));
  }
  Options keep;
  keep.slm.keep_gqa = true;
  const Model whole = walk(render(layout(folder({}, 2).build(), {}))).model;
  const Model kept = walk(render(layout(folder({}, 2).build(), keep))).model;
  auto expected = values_of(whole["layers.0.wk.weight"]);
  const auto second = expected.begin() + 12 * 24;  // heads 0 0 1 1 become 0 1 and zeros
  std::copy(second, second + 6 * 24, expected.begin() + 6 * 24);
  std::fill(second, expected.end(), 0.0F);
  EXPECT_EQ(values_of(kept["layers.0.wk.weight"]), expected);
}

// Heads were held whole; those of a compressed tensor still are, see core's tests.
TEST(SlmLlama, RowsOfAHeadAreReadInParts) {
  const core::WriteLayout made = layout(folder().build(), {});
  Context context;
  context.limits.memory = 6 * 24;  // less than a head
  const auto payload = std::ranges::find_if(
      made.payloads, [](const core::Payload& p) { return p.form == core::Payload::Form::generated; });
  ASSERT_NE(payload, made.payloads.end());
  std::vector<std::byte> out(payload->logical_size);
  EXPECT_NO_THROW(payload->make_range(context, 0, out));
}

TEST(SlmLlama, AnotherArchitectureIsABlocker) {
  for (const auto& [key, value] : Extra{{"hf.model_type", "mistral"},
                                        {"hf.hidden_act", "gelu"},
                                        {"hf.attention_bias", "true"},
                                        {"hf.mlp_bias", "true"},
                                        {"hf.sliding_window", "4096"},
                                        {"hf.rope_scaling", R"({"rope_type":"llama3","factor":8.0})"},
                                        {"hf.rope_parameters", R"({"rope_theta":1e4,"rope_type":"yarn"})"},
                                        {"hf.head_dim", "8"},
                                        {"hf.num_attention_heads", "four"},
                                        {"hf.num_key_value_heads", "3"}}) {
    const core::WriteLayout made = layout(folder({{key, value}}).build(), {});
    ASSERT_FALSE(made.blockers.empty()) << key;
    if (key != "hf.num_key_value_heads") {
      EXPECT_TRUE(names(made.blockers, "attributes[\"" + key + "\"]")) << key;
    }
  }
  for (const auto& fine : Extra{{"hf.hidden_act", "silu"},
                                {"hf.attention_bias", "false"},
                                {"hf.sliding_window", "null"},
                                {"hf.head_dim", "6"},
                                {"hf.bos_token_id", "256"},
                                {"hf.rope_scaling", R"({"type":"default"})"},
                                {"hf.num_key_value_heads", "null"}}) {
    const core::WriteLayout made = layout(folder({fine}).build(), {});
    EXPECT_TRUE(made.blockers.empty()) << fine.first;
    EXPECT_TRUE(made.losses.empty()) << fine.first;
  }
}

TEST(SlmLlama, UnknownKeysAndOtherIdsAreLosses) {
  const core::WriteLayout made = layout(folder({{"hf.logit_scale", "2"}, {"hf.eos_token_id", "7"}}).build(), {});
  ASSERT_EQ(made.losses.size(), 2U);
  EXPECT_TRUE(names(made.losses, "attributes[\"hf.logit_scale\"]"));
  EXPECT_TRUE(names(made.losses, "attributes[\"hf.eos_token_id\"]"));
  const core::WriteLayout unheld = layout(folder({{"tokenizer_unheld", "it splits texts"}}).build(), {});
  ASSERT_EQ(unheld.losses.size(), 1U);
  EXPECT_EQ(unheld.losses[0].kind, LossKind::tokenizer);
  EXPECT_EQ(unheld.losses[0].from, "it splits texts");
}

TEST(SlmLlama, ThetaIsTakenFromWhereItStands) {
  const auto theta = [](const Extra& changed) {
    const Model out = walk(render(layout(folder(changed).build(), {}))).model;
    return out.attribute("slm.rope_theta")->as_f64();
  };
  EXPECT_EQ(theta({{"hf.rope_theta", "5e5"}}), 500000.0);
  EXPECT_EQ(theta({{"hf.rope_theta", "absent"}}), 10000.0);
  EXPECT_EQ(theta({{"hf.rope_theta", "absent"}, {"hf.rope_parameters", R"({"rope_theta":1e6,"rope_type":"default"})"}}),
            1000000.0);
  const auto both = [](std::string_view nested) {
    return layout(folder({{"hf.rope_theta", "10000.0"},
                          {"hf.rope_parameters",
                           R"({"rope_theta":)" + std::string(nested) + R"(,"rope_type":"default"})"}})
                      .build(),
                  {})
        .blockers.size();
  };
  EXPECT_EQ(both("1e4"), 0U);
  EXPECT_EQ(both("5e5"), 1U) << "two that differ";
  const Rotation none = parse_rotation("[1]");
  EXPECT_FALSE(none.plain);
}

TEST(SlmLlama, TiedOutputIsTold) {
  const auto tied = walk(render(layout(folder({{"hf.tie_word_embeddings", "true"}}).build(), {})));
  EXPECT_EQ(tied.report.total(), 0U);
  EXPECT_EQ(tied.model.attribute("slm.flags")->as_u64(), 1U);
}

TEST(SlmLlama, BiasesAreBlockersAndTablesAreLeftOut) {
  Builder builder = folder();
  builder.tensor("model.layers.0.self_attn.q_proj.bias", DType::f32, {24}, testing::pattern(24, 7));
  EXPECT_TRUE(names(layout(builder.build(), {}).blockers, "tensors[\"model.layers.0.self_attn.q_proj.bias\"]"));
  Builder tables = folder();
  for (const char* name : {"model.layers.0.self_attn.rotary_emb.inv_freq", "freq_cis_real", "freq_cis_imag"})
    tables.tensor(name, DType::f32, {3}, testing::pattern(3, 7));
  const core::WriteLayout made = layout(tables.build(), {});
  EXPECT_TRUE(made.losses.empty());
  EXPECT_TRUE(names(made.changes, "tensors[\"freq_cis_imag\"]"));
  EXPECT_EQ(walk(render(made)).model.size(), 21U);
}

// Both names of one tensor.
TEST(SlmLlama, TwoNamesOfOneTensorAreABlocker) {
  Builder builder = folder();
  builder.tensor("layers.0.wv.weight", DType::f32, {24, 24}, testing::pattern(24 * 24, 7));
  EXPECT_FALSE(layout(builder.build(), {}).blockers.empty());
}

// The blockers and losses of one attribute.
std::string said_of(const std::string& key, const Value& value) {
  Builder builder = folder({{key, "absent"}});
  builder.attribute(key, value);
  const core::WriteLayout made = layout(builder.build(), {});
  std::string out;
  for (const auto* items : {&made.blockers, &made.losses})
    for (const Item& item : *items)
      if (item.subject == "attributes[\"" + key + "\"]") out += item.from + " -> " + item.to;
  return out;
}

TEST(SlmLlama, NumbersAreHeldToTheirFields) {
  EXPECT_EQ(said_of("hf.max_position_embeddings", Value::integer(std::uint64_t{1} << 32)),
            "4294967296 -> a whole number below 2^32 is needed");
  EXPECT_EQ(said_of("hf.rms_norm_eps", Value::text("small")), "small -> a number is needed");
  EXPECT_EQ(said_of("hf.rms_norm_eps", Value::list({})), "[] -> a number is needed");
  EXPECT_EQ(said_of("hf.rms_norm_eps", Value::real(0.250000000001)), "0.250000000001 (f64) -> 0.25 (f32)");
  EXPECT_EQ(said_of("hf.rms_norm_eps", Value::real(0.25)), "");
  EXPECT_EQ(said_of("hf.head_dim", Value()), "") << "a null says nothing";
  EXPECT_EQ(said_of("format", Value::text("np")), "np -> dropped: an .slm holds its header's fields only");
}

TEST(SlmLlama, ARotationThatIsNotPlainTellsNoTheta) {
  const core::WriteLayout made = layout(
      folder({{"hf.rope_theta", "absent"}, {"hf.rope_parameters", R"({"rope_theta":5e5,"rope_type":"yarn"})"}}).build(),
      {});
  EXPECT_TRUE(names(made.blockers, "attributes[\"hf.rope_parameters\"]"));
  EXPECT_TRUE(names(made.changes, "attributes[\"hf.rope_theta\"]"));
  const core::WriteLayout silent =
      layout(folder({{"hf.rope_theta", "absent"}, {"hf.rope_parameters", R"({"rope_type":"default"})"}}).build(), {});
  EXPECT_TRUE(silent.blockers.empty());
  EXPECT_TRUE(names(silent.changes, "attributes[\"hf.rope_theta\"]")) << "10000, as transformers takes it";
  for (const char* odd : {"", "{", R"({"rope_type":"default"}x)", R"({"rope_type":"default")", R"({"rope_theta":"x"})",
                          R"({"rope_type":1})", R"({"rope_type":"yarn"})", R"({"factor":2.0})"})
    EXPECT_FALSE(parse_rotation(odd).plain) << odd;
  EXPECT_TRUE(parse_rotation("{}").plain);
}

TEST(SlmLlama, TensorsOfAnotherRankTellNoNumbers) {
  const auto blockers = [](const std::string& name, std::vector<std::uint64_t> dims) {
    Builder builder;
    builder.tokenizer(byte_tokenizer());
    testing::add_hyperparameters(builder, header_of({}));
    builder.tensor(name, DType::f32, std::move(dims), testing::pattern(8, 1));
    return layout(builder.build(), {}).blockers;
  };
  EXPECT_TRUE(names(blockers("tok_embeddings.weight", {8}), "attributes[\"slm.vocab_size\"]"));
  EXPECT_TRUE(names(blockers("tok_embeddings.weight", {2, 2, 2}), "attributes[\"slm.hidden_size\"]"));
  EXPECT_TRUE(names(blockers("layers.0.w1.weight", {8}), "attributes[\"slm.ffn_size\"]"));
  EXPECT_TRUE(names(blockers("layers.7.wk.weight", {8}), "attributes[\"slm.layer_count\"]")) << "eight layers of one";
  EXPECT_TRUE(names(blockers("layers.0.wk.weight", {8}), "attributes[\"slm.hidden_size\"]"));
}

}  // namespace
}  // namespace weighbridge::slm_format
