// SPDX-License-Identifier: Apache-2.0
// Layers of GPTQ and AWQ as quantized_group and back. tests/interop/test_gptq_numbers.py checks GPTQ's numbers against
// numpy; those of AWQ are in the test data.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <fstream>
#include <string>
#include <vector>

#include "codecs/cast.h"
#include "convert/derived.h"
#include "support/convert_testing.h"
#include "support/temporary_folder.h"
#include "support/test_data.h"
#include "support/thrown.h"
#include "weighbridge/convert.h"
#include "weighbridge/hash.h"
#include "weighbridge/open.h"
#include "weighbridge/scheme.h"

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

Model said(const Model& model, const std::string& zeros) {
  return with_scheme(model, std::vector<std::string>{"gptq:zeros=" + zeros});
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
    save(said(one_layer(), v1 ? "v1" : "v2"), folder / "a.zt");
    const Model model = open(folder / "a.zt");
    const float added = v1 ? 1 : 0;
    EXPECT_EQ(value(model, 0, 0), 0 - added);        // code 0, zero 0
    EXPECT_EQ(value(model, 3, 5), 3 - (5 + added));  // code 3, zero 5
    EXPECT_EQ(value(model, 9, 7), v1 ? 1 : 1 - 15);  // code 1, zero 15: all ones, 0 in v1
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
      save(said(before, "v1"), folder / "a.zt", {.encoding = encoding, .digest = "sha256"});
      const Model there = open(folder / "a.zt");
      EXPECT_EQ(there.size(), 1U);
      save(said(there, "auto"), folder / "a.safetensors");
      EXPECT_EQ(content_digest(open(folder / "a.safetensors")), content_digest(before)) << g_idx << encoding;
    }
}

// The reason in the change that says so; empty if the layer is grouped.
std::string why_left(const Model& model, const std::string& zeros = "v1") {
  const Plan made = plan(said(model, zeros), "zt");
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
  EXPECT_NE(why_left(one_layer(layer)), "");
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
  // The tensors decide about what they show.
  EXPECT_EQ(why_left(with(R"({"bits": 8, "group_size": 8})"), "auto"), "");
  EXPECT_EQ(why_left(with(R"({"bits": 4, "group_size": 12})"), "auto"), "");
  EXPECT_NE(why_left(with(R"({"checkpoint_format": "marlin"})"), "auto").find("marlin"), std::string::npos);
  for (const char* const config : {"", "[]", R"({"bits": 4)"})
    EXPECT_EQ(thrown([&] { plan(said(with(config), "auto"), "zt"); }).rule, "misuse/gptq") << config;
}

TEST(Gptq, WhatIsNotThereIsAUsageError) {
  Builder plain;
  plain.tensor("a", DType::i32, {1}, words({1}));
  const Model model = plain.build();
  EXPECT_EQ(thrown([&] { plan(said(model, "v1"), "zt"); }).rule, "misuse/scheme");
  EXPECT_EQ(thrown([&] { plan(said(model, "v1"), "safetensors"); }).rule, "misuse/scheme");
  EXPECT_EQ(thrown([&] { plan(said(one_layer(), "auto"), "zt"); }).rule, "misuse/gptq");
  EXPECT_EQ(thrown([&] { plan(said(one_layer(), "v3"), "zt"); }).kind, Kind::misuse);
}

// Makes the first zero of a layer 16, as those of v1 were read before.
void put_16(const std::string& path) {
  const Model model = open(path);
  const Maybe<Part> zeros = model["a"].part("zeros");
  const std::uint64_t at = zeros->extent()->offset;
  std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
  file.seekp(static_cast<std::streamoff>(at));
  file.write("\x00\x4c", 2);
}

TEST(Gptq, AZeroThatDoesNotFitIsAnErrorAndPublishesNothing) {
  const Folder folder;
  save(said(one_layer(), "v1"), folder / "a.zt");
  put_16(folder / "a.zt");
  const Model model = open(folder / "a.zt");
  const Finding found = thrown([&] { save(said(model, "v2"), folder / "b.safetensors"); });
  EXPECT_EQ(found.rule, "convert/gptq-zeros");
  EXPECT_EQ(found.tensor, "a");
  EXPECT_EQ(folder.entries().size(), 1U);
}

// 16 rows of 16 columns in groups of 8 rows: codes and zeros of every value.
Model awq_layer() {
  std::vector<std::uint32_t> qweight(32), qzeros(4);
  for (std::uint32_t i = 0; i < 32; ++i) qweight[i] = 0x76543210U * (i + 1) ^ i << 27;
  for (std::uint32_t i = 0; i < 4; ++i) qzeros[i] = 0xfedcba98U * (2 * i + 1);
  Builder out;
  out.tensor("a.qweight", DType::i32, {16, 2}, words(qweight));
  out.tensor("a.qzeros", DType::i32, {2, 2}, words(qzeros));
  out.tensor("a.scales", DType::f16, {2, 16}, words(std::vector<std::uint32_t>(16, 0x38003c00U)));  // 1 and 0.5
  return out.build();
}
constexpr convert::LayerScheme kAwq[] = {{"awq"}};
constexpr convert::LayerScheme kBoth[] = {{"gptq", "v2"}, {"awq"}};

TEST(Awq, CodesAndZerosAreTheInterleavedOnes) {
  const Model before = awq_layer();
  const core::Derived made = convert::groups_of_layers(before, kAwq, {});
  ASSERT_EQ(made.model.size(), 1U);
  const Array all = made.model["a"].to_dense(), stored = before["a.qweight"].to_dense(),
              zeros = before["a.qzeros"].to_dense();
  constexpr std::uint32_t kNibble[] = {0, 4, 1, 5, 2, 6, 3, 7};  // of output i, in facts of AutoAWQ
  const auto word = [](const Array& of, std::size_t at) {
    std::uint32_t out = 0;
    std::memcpy(&out, of.data.get() + 4 * at, 4);
    return out;
  };
  for (std::size_t row = 0; row < 16; ++row)
    for (std::size_t c = 0; c < 16; ++c) {
      const std::uint32_t shift = 4 * kNibble[c % 8];
      const auto code = static_cast<float>(word(stored, row * 2 + c / 8) >> shift & 15),
                 zero = static_cast<float>(word(zeros, row / 8 * 2 + c / 8) >> shift & 15);
      float value = 0;
      std::memcpy(&value, all.data.get() + (row * 16 + c) * 4, 4);
      EXPECT_EQ(value, (code - zero) * (c % 2 == 0 ? 1.0F : 0.5F)) << row << " " << c;
    }
}

TEST(Awq, TensorsComeBackBitForBit) {
  const Model before = awq_layer();
  for (const char* const encoding : {"raw", "zstd"}) {
    const Folder folder;
    save(convert::groups_of_layers(before, kAwq, {}).model, folder / "a.zt",
         {.encoding = encoding, .digest = "sha256"});
    const Model there = open(folder / "a.zt");
    const Attributes attributes = there["a"].attributes();
    EXPECT_EQ(attributes.find("awq.version")->to_text(), "gemm");
    for (const auto& asked :
         {std::span<const convert::LayerScheme>(kAwq), std::span<const convert::LayerScheme>(kBoth)})
      EXPECT_EQ(content_digest(convert::layers_of_groups(there, asked).model), content_digest(before));
  }
}

// With zeros as they are, both libraries store the same numbers.
TEST(Awq, AGroupBecomesTheSchemeThatIsAskedFor) {
  constexpr convert::LayerScheme kV2[] = {{"gptq", "v2"}};
  const Model before = awq_layer();
  const Folder folder;
  save(convert::groups_of_layers(before, kAwq, {}).model, folder / "a.zt");
  save(convert::layers_of_groups(open(folder / "a.zt"), kV2).model, folder / "b.safetensors");
  const Model gptq = open(folder / "b.safetensors");
  EXPECT_EQ(gptq.size(), 4U);
  save(convert::groups_of_layers(said(gptq, "v2"), kBoth, {}).model, folder / "c.zt");
  EXPECT_EQ(content_digest(convert::layers_of_groups(open(folder / "c.zt"), kAwq).model), content_digest(before));
}

TEST(Awq, LayersThatAQuantizedGroupCannotHoldStayAsTheyAre) {
  const auto why = [](Builder builder) {
    const core::Derived made = convert::groups_of_layers(builder.build(), kAwq, {});
    EXPECT_EQ(made.model.size(), 3U);
    return made.changes.empty() ? std::string() : made.changes.front().to;
  };
  Builder few;  // 12 rows are no whole words of a group
  few.tensor("a.qweight", DType::i32, {12, 1}, words(std::vector<std::uint32_t>(12)));
  few.tensor("a.qzeros", DType::i32, {1, 1}, words({1}));
  few.tensor("a.scales", DType::f16, {1, 8}, words(std::vector<std::uint32_t>(4)));
  EXPECT_NE(why(std::move(few)).find("whole words"), std::string::npos);
  Builder lying;
  lying.tensor("a.qweight", DType::i32, {16, 1}, words(std::vector<std::uint32_t>(16)));
  lying.tensor("a.qzeros", DType::i32, {2, 1}, words({1, 2}));
  lying.tensor("a.scales", DType::f16, {3, 8}, words(std::vector<std::uint32_t>(12)));
  EXPECT_NE(why(std::move(lying)).find("shapes"), std::string::npos);
}

TEST(Awq, AZeroThatDoesNotFitIsAnErrorAndPublishesNothing) {
  const Folder folder;
  save(said(one_layer(), "v1"), folder / "a.zt");
  put_16(folder / "a.zt");
  const Model made = convert::layers_of_groups(open(folder / "a.zt"), kAwq).model;
  EXPECT_EQ(thrown([&] { save(made, folder / "b.safetensors"); }).rule, "convert/awq-zeros");
  EXPECT_EQ(folder.entries().size(), 1U);
}

TEST(Awq, ValuesAreThoseOfAutoAwq) {
  for (const char* const name : {"awq_gemm_g32", "awq_gemm_g64", "awq_gemm_codes"}) {
    WB_REQUIRE_TEST_DATA(path, std::string("quantized/") + name);
    const Model before = open(path);
    const std::string layer = before.find("m.qweight") ? "m" : "model.layers.0.mlp.down_proj";
    const Folder folder;
    save(convert::groups_of_layers(before, kAwq, {}).model, folder / "a.zt", {.allow = {LossKind::attribute_type}});
    const Model there = open(folder / "a.zt");
    const Array all = there[layer].to_dense();
    std::vector<std::byte> halves(static_cast<std::size_t>(all.size / 2));
    codecs::cast(DType::f32, {all.data.get(), 2 * halves.size()}, DType::f16, halves, halves.size() / 2);
    const Tensor wanted = open(path + "/expected/" + layer + ".weight.f16.npy")[0];
    const Array right = wanted.to_dense();
    const std::size_t rows = static_cast<std::size_t>(wanted.shape()[0]),
                      columns = static_cast<std::size_t>(wanted.shape()[1]);
    for (std::size_t i = 0; i < rows * columns; ++i)
      ASSERT_EQ(std::memcmp(halves.data() + 2 * (i % columns * rows + i / columns), right.data.get() + 2 * i, 2), 0)
          << name << i;
    const Model back = convert::layers_of_groups(there, kAwq).model;
    EXPECT_EQ(back.size(), before.size());
    for (const Tensor& tensor : before) {
      const Array one = tensor.to_dense(), other = back[tensor.name()].to_dense();
      ASSERT_EQ(one.size, other.size) << tensor.name();
      EXPECT_EQ(std::memcmp(one.data.get(), other.data.get(), static_cast<std::size_t>(one.size)), 0) << tensor.name();
    }
  }
}

// The parts that are computed have no digest of their own, those that they come from do.
TEST(Gptq, DigestsOfTheInputAreChecked) {
  const Folder folder;
  save(said(one_layer(), "v1"), folder / "a.zt", {.digest = "sha256"});
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
  EXPECT_EQ(thrown([&] { save(said(model, "auto"), folder / "b.safetensors"); }).kind, Kind::malformed);
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
  EXPECT_EQ(thrown([&] { plan(said(model, "v1"), "zt"); }).rule, "limit/work");
}

}  // namespace
}  // namespace weighbridge
