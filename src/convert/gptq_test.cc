// SPDX-License-Identifier: Apache-2.0
// GPTQ's tensors as quantized_group and back. tests/interop/test_gptq_numbers.py checks the numbers against numpy.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <fstream>
#include <string>
#include <vector>

#include "support/convert_testing.h"
#include "support/temporary_folder.h"
#include "support/thrown.h"
#include "weighbridge/convert.h"
#include "weighbridge/hash.h"
#include "weighbridge/open.h"

namespace weighbridge {
namespace {

using convert::testing::keep;
using test::thrown;
using Folder = test::TemporaryFolder;

Bytes words(const std::vector<std::uint32_t>& all) {
  const auto bytes = std::as_bytes(std::span(all));
  return keep({bytes.begin(), bytes.end()});
}

// 16 rows of 8 columns in groups of 8 rows, with 4 bits: zeros 0 .. 15 stored, codes that repeat, scales of 1.
struct Layer {
  std::vector<std::uint32_t> qweight = std::vector<std::uint32_t>(16, 0x76543210U);
  std::vector<std::uint32_t> qzeros{0x76543210U, 0xfedcba98U};
  std::vector<std::uint32_t> g_idx{0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1, 1, 1};
};

void add(Builder& to, const std::string& name, const Layer& layer = {}) {
  to.tensor(name + ".qweight", DType::i32, {2, 8}, words(layer.qweight));
  to.tensor(name + ".qzeros", DType::i32, {2, 1}, words(layer.qzeros));
  to.tensor(name + ".scales", DType::f16, {2, 8}, words(std::vector<std::uint32_t>(8, 0x3c003c00U)));
  if (!layer.g_idx.empty()) to.tensor(name + ".g_idx", DType::i32, {layer.g_idx.size()}, words(layer.g_idx));
}

Model one_layer(const Layer& layer = {}) {
  Builder out;
  add(out, "a", layer);
  return out.build();
}

float value(const Model& model, std::size_t row, std::size_t column) {
  const Array all = model["a"].to_dense();
  float out = 0;
  std::memcpy(&out, all.data.get() + (row * 8 + column) * sizeof out, sizeof out);
  return out;
}

TEST(Gptq, StoredZerosAreMinusOneInV1AndAsTheyAreInV2) {
  for (const bool v1 : {true, false}) {
    const Folder folder;
    save(one_layer(), folder / "a.zt", {.gptq = v1 ? "v1" : "v2"});
    const Model model = open(folder / "a.zt");
    const float added = v1 ? 1 : 0;
    EXPECT_EQ(value(model, 0, 0), 0 - added);         // code 0, zero 0
    EXPECT_EQ(value(model, 3, 5), 3 - (5 + added));   // code 3, zero 5
    EXPECT_EQ(value(model, 9, 7), 1 - (15 + added));  // code 1, zero 15: 16 in v1
    const Attributes attributes = model["a"].attributes();
    EXPECT_EQ(attributes.find("packing")->to_text(), "8_per_i32");
    EXPECT_EQ(attributes.find("group_size")->to_text(), "8");
  }
}

TEST(Gptq, TensorsComeBackBitForBit) {
  for (const bool g_idx : {true, false})
    for (const char* const encoding : {"raw", "zstd"}) {
      Layer layer;
      if (!g_idx) layer.g_idx.clear();
      const Model before = one_layer(layer);
      const Folder folder;
      save(before, folder / "a.zt", {.encoding = encoding, .digest = "sha256", .gptq = "v1"});
      const Model there = open(folder / "a.zt");
      EXPECT_EQ(there.size(), 1U);
      save(there, folder / "a.safetensors", {.gptq = "auto"});
      EXPECT_EQ(content_digest(open(folder / "a.safetensors")), content_digest(before)) << g_idx << encoding;
    }
}

// The reason in the change that says so; empty if the layer is grouped.
std::string why_left(const Model& model, const std::string& zeros = "v1") {
  const Plan made = plan(model, "zt", {.gptq = zeros});
  EXPECT_TRUE(made.possible());
  for (const Item& change : made.changes())
    if (change.subject == "tensors[\"a.qweight\"]") {
      EXPECT_EQ(made.tensors(), model.size());
      return change.to;
    }
  return {};
}

TEST(Gptq, LayersThatAQuantizedGroupCannotHoldStayAsTheyAre) {
  EXPECT_EQ(why_left(one_layer()), "");
  Layer layer;
  std::ranges::reverse(layer.g_idx);
  EXPECT_NE(why_left(one_layer(layer)).find("desc_act"), std::string::npos);
  Builder named;
  add(named, "a");
  named.tensor("a", DType::i32, {1}, words({1}));
  EXPECT_NE(why_left(named.build()).find("of the name"), std::string::npos);
  layer = {};
  layer.g_idx.resize(8);
  EXPECT_NE(why_left(one_layer(layer)).find("shapes"), std::string::npos);
  // AWQ packs qweight along the other dimension.
  Builder awq;
  awq.tensor("a.qweight", DType::i32, {8, 1}, words(std::vector<std::uint32_t>(8)));
  awq.tensor("a.qzeros", DType::i32, {2, 1}, words({1, 2}));
  awq.tensor("a.scales", DType::f16, {2, 8}, words(std::vector<std::uint32_t>(8)));
  EXPECT_NE(why_left(awq.build()).find("shapes"), std::string::npos);
  Builder three;
  three.tensor("a.qweight", DType::i32, {3, 32}, words(std::vector<std::uint32_t>(96)));
  three.tensor("a.qzeros", DType::i32, {1, 3}, words({1, 2, 3}));
  three.tensor("a.scales", DType::f16, {1, 32}, words(std::vector<std::uint32_t>(16)));
  EXPECT_NE(why_left(three.build()).find("3 bits"), std::string::npos);
}

TEST(Gptq, ConfigSaysBitsAndGroups) {
  const auto with = [](const std::string& config) {
    Builder out;
    add(out, "a", {.g_idx = {}});
    out.attribute("hf.quantization_config", Value::text(config));
    return out.build();
  };
  EXPECT_EQ(why_left(with(R"({"bits": 4, "group_size": 8, "sym": true, "other": [{}]})"), "auto"), "");
  EXPECT_EQ(why_left(with(R"({"bits": 4, "group_size": 8, "checkpoint_format": "gptq_v2"})"), "auto"), "");
  EXPECT_NE(why_left(with(R"({"bits": 8, "group_size": 8})"), "auto").find("config says 8"), std::string::npos);
  EXPECT_NE(why_left(with(R"({"bits": 4, "group_size": 12})"), "auto").find("groups of one size"), std::string::npos);
  for (const char* const config : {"", "[]", R"({"bits": 4)", R"({"checkpoint_format": "marlin"})"})
    EXPECT_EQ(thrown([&] { plan(with(config), "zt", {.gptq = "auto"}); }).rule, "misuse/gptq") << config;
}

TEST(Gptq, WhatIsNotThereIsAUsageError) {
  Builder plain;
  plain.tensor("a", DType::i32, {1}, words({1}));
  const Model model = plain.build();
  EXPECT_EQ(thrown([&] { plan(model, "zt", {.gptq = "v1"}); }).rule, "misuse/gptq");
  EXPECT_EQ(thrown([&] { plan(model, "safetensors", {.gptq = "v1"}); }).rule, "misuse/gptq");
  EXPECT_EQ(thrown([&] { plan(one_layer(), "zt", {.gptq = "auto"}); }).rule, "misuse/gptq");
  EXPECT_EQ(thrown([&] { plan(one_layer(), "zt", {.gptq = "v3"}); }).kind, Kind::misuse);
}

TEST(Gptq, AZeroThatDoesNotFitIsAnErrorAndPublishesNothing) {
  const Folder folder;
  save(one_layer(), folder / "a.zt", {.gptq = "v1"});  // 1 .. 16
  const Model model = open(folder / "a.zt");
  const Finding found = thrown([&] { save(model, folder / "b.safetensors", {.gptq = "v2"}); });
  EXPECT_EQ(found.rule, "convert/gptq-zeros");
  EXPECT_EQ(found.tensor, "a");
  EXPECT_EQ(folder.entries().size(), 1U);
}

// The parts that are computed have no digest of their own, those that they come from do.
TEST(Gptq, DigestsOfTheInputAreChecked) {
  const Folder folder;
  save(one_layer(), folder / "a.zt", {.digest = "sha256", .gptq = "v1"});
  {
    const Model model = open(folder / "a.zt");
    const Tensor tensor = model["a"];
    Extent extent;
    for (const Part& part : tensor.parts())
      if (part.role() == "zeros") extent = *part.extent();
    std::fstream file(folder / "a.zt", std::ios::binary | std::ios::in | std::ios::out);
    file.seekp(static_cast<std::streamoff>(extent.offset));
    file.put(1);
  }
  const Model model = open(folder / "a.zt");
  EXPECT_EQ(thrown([&] { save(model, folder / "b.safetensors", {.gptq = "auto"}); }).kind, Kind::malformed);
  EXPECT_EQ(folder.entries().size(), 1U);
}

// A small file can name one g_idx for many layers.
TEST(Gptq, ReadingGroupsIsBoundedByTheData) {
  constexpr std::uint64_t kRows = 1 << 18;
  Builder first;
  first.tensor("qweight", DType::i32, {kRows / 8, 8}, words(std::vector<std::uint32_t>(kRows)));
  first.tensor("qzeros", DType::i32, {1, 1}, words({0}));
  first.tensor("scales", DType::f16, {1, 8}, words(std::vector<std::uint32_t>(4)));
  first.tensor("g_idx", DType::i32, {kRows}, words(std::vector<std::uint32_t>(kRows)));
  const Model shared = first.build();
  Builder many;
  for (int i = 0; i < 400; ++i)
    for (const Tensor& tensor : shared) many.tensor(std::to_string(i) + "." + std::string(tensor.name()), tensor);
  const Model model = many.build();
  EXPECT_EQ(thrown([&] { plan(model, "zt", {.gptq = "v1"}); }).rule, "limit/work");
}

}  // namespace
}  // namespace weighbridge
