// SPDX-License-Identifier: Apache-2.0
// The table by itself: rows are consistent, configs are read, hostile listings are bounded. tests/cli/test_schemes.py
// has a model of each layout.
#include <gtest/gtest.h>

#include <algorithm>
#include <ctime>
#include <string>
#include <vector>

#include "schemes/recognize.h"
#include "schemes/table.h"
#include "weighbridge/error.h"

namespace weighbridge::schemes {
namespace {

struct Stored {
  std::string name;
  DType dtype;
  std::vector<std::uint64_t> shape;
};

Recognized recognized(std::vector<Stored> all, const Config& config = {}) {
  std::ranges::sort(all, {}, &Stored::name);
  const Listing listing{static_cast<std::uint32_t>(all.size()), [&](std::uint32_t i) {
                          return Entry{all[i].name, all[i].dtype, all[i].shape, true};
                        }};
  return recognize(listing, config);
}

std::string name_of(const Recognized& found) { return found.schemes.empty() ? "" : found.schemes[0].name; }

Config config_of(std::string_view key, std::string_view text) {
  Config out;
  read_config(key, text, out);
  return out;
}

TEST(Schemes, EveryFormHasARowAndCodes) {
  for (const Form& form : all_forms()) {
    EXPECT_EQ(scheme(form.scheme).id, form.scheme);
    EXPECT_NE(form.codes, 0U);
    EXPECT_LE(form.with.size(), 24U);
    const auto decides = [](const Companion& companion) { return companion.need != Need::also; };
    EXPECT_TRUE(std::ranges::any_of(form.with, decides)) << form.scheme;
  }
  EXPECT_EQ(scheme("no such scheme").id, "other");
}

TEST(Schemes, ConfigsOfAllSpellingsAreRead) {
  const std::string fp8 = R"({"quant_method":"FP8","weight_block_size":[128,128]})";
  EXPECT_EQ(config_of("hf.quantization_config", fp8).method, "fp8");
  EXPECT_EQ(config_of("quantization_config", fp8).method, "fp8");
  EXPECT_EQ(config_of("hf.compression_config", fp8).method, "fp8");
  EXPECT_EQ(config_of("hf.text_config", R"({"a":[1],"quantization_config":)" + fp8 + "}").method, "fp8");
  EXPECT_EQ(config_of("hf.quantization", R"({"group_size":32,"bits":4})").method, "mlx");
  EXPECT_EQ(config_of("hf.quantization_config", R"({"load_in_8bit":true})").method, "bitsandbytes");
  EXPECT_EQ(config_of("hf.quantization_config", R"({"quant_algo":"NVFP4"})").method, "modelopt");
  const Config packed = config_of(
      "hf.quantization_config", R"({"config_groups":{"g":{"input_activations":{"num_bits":8},"weights":{"num_bits":4,)"
                                R"("group_size":32}}},"quant_method":"compressed-tensors"})");
  EXPECT_EQ(packed.all.bits, 4U);
  EXPECT_EQ(packed.all.group, 32U);
  for (const std::string_view nothing : {"", "{}", "null", "[1]", "4", "{\"a\":", "no JSON"})
    EXPECT_FALSE(config_of("hf.quantization_config", nothing).stated) << nothing;
  EXPECT_FALSE(may_hold_config("hf.hidden_size"));
}

// What a config says of some layers, in every library's words.
TEST(Schemes, SettingsOfLayersAreRead) {
  using By = LayerSettings::By;
  const auto first = [](std::string_view text, std::string_view key = "hf.quantization_config") {
    const Config config = config_of(key, text);
    return config.layers.empty() ? LayerSettings{} : config.layers[0];
  };
  const LayerSettings group = first(
      R"({"config_groups":{"g":{"targets":["re:.*q_proj"],"format":"int-quantized","weights":{"num_bits":8,)"
      R"("block_structure":[2,3],"symmetric":false},"input_activations":{"num_bits":4}}},"quant_method":"compressed-tensors"})");
  EXPECT_TRUE(group.by == By::regex && group.pattern == ".*q_proj" && group.settings.bits == 8);
  EXPECT_TRUE(group.settings.format == "int-quantized" && group.settings.symmetric == false);
  EXPECT_EQ(group.settings.block, (std::vector<std::uint64_t>{2, 3}));
  const LayerSettings plus = first(R"({"quant_method":"gptq","bits":4,"dynamic":{"+:.*up":{"bits":8}}})");
  EXPECT_TRUE(plus.by == By::regex && plus.pattern == ".*up" && plus.settings.bits == 8 && !plus.excluded);
  EXPECT_TRUE(first(R"({"quant_method":"gptq","bits":4,"dynamic":{"-:.*up":{}}})").excluded);
  EXPECT_TRUE(first(R"({"quant_method":"gptq","bits":4,"lm_head":false})").excluded);
  EXPECT_EQ(
      first(R"({"quant_algo":"MIXED_PRECISION","quantized_layers":{"a.b":{"quant_algo":"FP8"}}})").settings.algorithm,
      "FP8");
  const LayerSettings module =
      first(R"({"bits":4,"group_size":64,"a.b":{"bits":6,"group_size":32}})", "hf.quantization");
  EXPECT_TRUE(module.by == By::name && module.pattern == "a.b" && module.settings.bits == 6);
  EXPECT_TRUE(first(R"({"quant_method":"fp8","ignored_layers":["a.*"]})").by == By::glob);
  EXPECT_TRUE(first(R"({"quant_method":"compressed-tensors","ignore":["Linear"]})").by == By::type);
  const Config file = config_of("text_config", R"({"producer":{"name":"modelopt","version":"0.47.0"},)"
                                               R"("quantization":{"quant_algo":"NVFP4","group_size":16}})");
  EXPECT_TRUE(file.method == "modelopt" && file.all.group == 16);
  EXPECT_EQ(config_of("hf.dtype", "bfloat16").dtype, "bfloat16");
  const Config hqq =
      config_of("hf.quantization_config", R"({"quant_method":"hqq","quant_config":{"weight_quant_params":)"
                                          R"({"nbits":4,"group_size":64}}})");
  EXPECT_TRUE(hqq.all.bits == 4 && hqq.all.group == 64 && hqq.layers.empty());
}

TEST(Schemes, AnUnknownMethodTakesEverythingThatCanBeCodes) {
  const Config config{.stated = true, .method = "fancy9", .all = {.bits = 4}};
  const Recognized found = recognized({{"a.codes", DType::i16, {8}},
                                       {"a.grid", DType::f16, {16}},
                                       {"a.bias", DType::f16, {8}},
                                       {"norm.weight", DType::f32, {8}}},
                                      config);
  EXPECT_EQ(name_of(found), "quant_method fancy9");
  EXPECT_EQ(found.tensors.size(), 2U);
  EXPECT_EQ(found.tensors[0].parameters, 32U);
  const Recognized floats = recognized({{"a.weight", DType::f16, {8, 8}}, {"norm.weight", DType::f32, {8}}}, config);
  EXPECT_EQ(floats.tensors.size(), 1U);
}

TEST(Schemes, AMethodNamesTheSchemeOnlyIfItIsReadable) {
  const Config config{.stated = true, .method = "bad\x1b[31m"};
  EXPECT_EQ(name_of(recognized({{"a.codes", DType::i16, {8}}}, config)), "quantized weights");
}

TEST(Schemes, GptqAndAwqAreToldApartByShapes) {
  const auto layer = [](std::vector<std::uint64_t> words, std::vector<std::uint64_t> scales,
                        const Config& config = {}) {
    return name_of(
        recognized({{"q.qweight", DType::i32, std::move(words)}, {"q.scales", DType::f16, std::move(scales)}}, config));
  };
  EXPECT_EQ(layer({16, 64}, {2, 64}), "GPTQ");
  EXPECT_EQ(layer({128, 8}, {2, 64}), "AWQ");
  EXPECT_EQ(layer({32, 16}, {32, 16}), "AWQ");  // gemv
  EXPECT_EQ(layer({128, 8}, {2, 64}, {.stated = true, .method = "gptq"}), "GPTQ");
  EXPECT_EQ(layer({16, 64}, {2, 64}, {.stated = true, .method = "auto-round"}), "GPTQ (auto-round)");
}

TEST(Schemes, WhatAFileLeavesOpenIsSaidInTheWordsOfTheTable) {
  const Answer all[] = {answer_of("awq"), answer_of("fp8:block=128x64"), answer_of("mlx:mode=affine,group=32")};
  EXPECT_TRUE(all[0].settings.empty());
  EXPECT_EQ(said(all, "fp8", "block"), "128x64");
  EXPECT_EQ(said(all, "mlx", "group"), "32");
  EXPECT_EQ(said(all, "mlx", "bits"), "");
  for (const char* const wrong :
       {"", "other", "gguf", "gptq:zeros=v3", "gptq:zero=v1", "fp8:block=128", "fp8:block=0x8", "mlx:group=-1",
        "mlx:group=", "awq:version", "mxfp4:group=32", "gptq:,zeros=v1"})
    EXPECT_THROW(answer_of(wrong), Error) << wrong;
}

TEST(Schemes, SizesThatOverflowAreNoNumbers) {
  const std::uint64_t huge = std::uint64_t{1} << 62;
  const Recognized found = recognized(
      {{"x_blocks", DType::u8, {huge, 4}}, {"x_scales", DType::u8, {huge, 1}}, {"y_blocks", DType::u8, {huge}}});
  for (const Found& each : found.tensors) EXPECT_EQ(each.parameters, 0U);
}

TEST(Schemes, ATensorWithoutANameIsNoCodes) {
  EXPECT_TRUE(
      recognized({{"", DType::u8, {4, 4}}, {"_scale", DType::f32, {}}, {".scale", DType::f32, {}}}).tensors.empty());
  EXPECT_EQ(recognized({{"weight", DType::i8, {4, 4}}, {"SCB", DType::f32, {4}}}).tensors.size(), 2U);
}

TEST(Schemes, NamesThatBeginAlikeTakeLinearTime) {
  std::vector<Stored> all;
  std::string name = "x";
  for (int i = 0; i < 20000; ++i) all.push_back({name + "." + std::to_string(i) + "_scale", DType::f32, {}});
  for (int i = 0; i < 20000; ++i) all.push_back({name + "." + std::to_string(i) + ".weight", DType::f8_e4m3, {4, 4}});
  for (int i = 0; i < 20000; ++i) all.push_back({"m.w" + std::to_string(i), DType::u8, {4, 4}});
  const std::clock_t begin = std::clock();
  recognized(std::move(all), {.stated = true, .method = "unknown"});
  EXPECT_LT(std::clock() - begin, 20 * CLOCKS_PER_SEC);
}

}  // namespace
}  // namespace weighbridge::schemes
