// SPDX-License-Identifier: Apache-2.0
// What the writer of GGUF keeps, changes and refuses.
#include <gtest/gtest.h>

#include <memory>
#include <numeric>
#include <string>
#include <vector>

#include "core/writing/layout.h"
#include "formats/gguf/format.h"
#include "formats/gguf/layout.h"
#include "support/format_testing.h"
#include "support/thrown.h"

namespace weighbridge::gguf {
namespace {

Bytes floats(std::size_t count) {
  const auto kept = std::make_shared<std::vector<float>>(count);
  std::iota(kept->begin(), kept->end(), -3.0F);
  return {std::as_bytes(std::span(*kept)), kept};
}

Model read_back(const core::WriteLayout& layout) {
  test::Outcome out = test::walk(kFormat, test::render(layout));
  EXPECT_EQ(out.report.findings().size(), 0U);
  return out.model;
}

std::vector<std::string> text_of(const std::vector<Item>& items) {
  std::vector<std::string> out;
  for (const Item& item : items) out.push_back(item.subject + ": " + item.from + " -> " + item.to);
  return out;
}

TEST(GgufWrite, WhatWasReadIsWrittenBackByteForByte) {
  for (const core::CorpusCase& one : cases()) {
    // Those of version 3 and little-endian, whose data end with the padding.
    if (one.name != "valid-values" && one.name != "valid-two-tensors" && one.name != "valid-blocks") continue;
    const Model model = test::walk(kFormat, one.bytes).model;
    const core::WriteLayout made = layout(model, {});
    EXPECT_EQ(test::render(made), one.bytes) << one.name;
    EXPECT_TRUE(made.losses.empty()) << one.name;
  }
}

TEST(GgufWrite, MetadataBecomeWhatGgufHas) {
  Builder builder;
  builder.attribute("list of texts", Value::list({Value::text("a"), Value::text("b")}));
  builder.attribute("list of numbers",
                    Value::list({Value::integer(std::int64_t{1}), Value::integer(std::int64_t{-2})}));
  builder.attribute("mixed", Value::list({Value::text("a"), Value::boolean(true)}));
  builder.attribute("map", Value::map({{"k", Value::integer(std::int64_t{1})}}));
  builder.attribute("null", Value());
  builder.attribute("bytes", Value::bytes({std::byte{1}}));
  builder.attribute("half", Value::real(0.5, DType::f16));
  const Model model = builder.build();
  const core::WriteLayout made = layout(model, {});
  const Model back = read_back(made);
  ASSERT_NE(back.attribute("list of texts")->texts(), nullptr);
  EXPECT_EQ(back.attribute("list of numbers")->type(), DType::i64);
  EXPECT_EQ(back.attribute("mixed")->as_text(), R"(["a",true])");
  EXPECT_EQ(back.attribute("map")->as_text(), R"({"k":1})");
  EXPECT_EQ(back.attribute("bytes")->as_text(), "AQ==");
  EXPECT_EQ(back.attribute("half")->as_text(), "0.5");
  EXPECT_EQ(text_of(made.losses),
            (std::vector<std::string>{R"(attributes["mixed"]: list -> text)", R"(attributes["map"]: map -> text)",
                                      R"(attributes["null"]: null -> text)", R"(attributes["bytes"]: bytes -> text)",
                                      R"(attributes["half"]: f16 -> text)"}));
}

TEST(GgufWrite, TheAlignmentIsUsedIfItCanBe) {
  for (const char* stated : {"64", "48", "x"}) {
    Builder builder;
    builder.attribute("general.alignment", Value::text(stated));
    builder.tensor("a", DType::f32, {3}, floats(3));
    builder.tensor("b", DType::f32, {3}, floats(3));
    const core::WriteLayout made = layout(builder.build(), {});
    const Model back = read_back(made);
    const bool used = std::string_view(stated) == "64";
    EXPECT_EQ(made.losses.size(), used ? 0U : 1U);
    EXPECT_EQ(back["b"].main().extent()->offset - back["a"].main().extent()->offset, used ? 64U : 32U);
  }
}

// A plan for a file of 90 bytes took 2 GiB of memory.
TEST(GgufWrite, ALargeAlignmentTakesNoMemoryAndIsNotWritten) {
  for (const std::uint64_t stated : {std::uint64_t{1} << 20, std::uint64_t{1} << 21, std::uint64_t{1} << 31}) {
    Builder builder;
    builder.attribute("general.alignment", Value::integer(stated, DType::u32));
    builder.tensor("none", DType::f32, {0}, floats(0));
    builder.tensor("a", DType::f32, {3}, floats(3));
    const Model model = builder.build();
    const core::WriteLayout made = layout(model, {});
    EXPECT_LT(made.head.size(), 1024U);
    const bool used = stated == kMaxAlignment;
    EXPECT_EQ(made.losses.size(), used ? 0U : 1U);
    EXPECT_EQ(made.size, used ? 2 * kMaxAlignment : 128U);
    const Model back = read_back(made);
    EXPECT_EQ(back["a"].main().extent()->offset, used ? kMaxAlignment : 96U);
    Options small;
    small.shards.max_size = 1;
    const core::WriteLayout shards = layout(model, small);
    for (const core::OutFile& file : shards.folder->payloads) EXPECT_LT(file.layout.head.size(), 1024U);
  }
}

TEST(GgufWrite, WhatGgufHasNoTypeForIsABlocker) {
  const auto flag = std::make_shared<const std::vector<std::byte>>(4, std::byte{1});
  Builder builder;
  builder.tensor("flags", DType::boolean, {4}, {*flag, flag});
  builder.tensor("deep", DType::f32, {1, 1, 1, 1, 2}, floats(2));
  const core::WriteLayout made = layout(builder.build(), {});
  EXPECT_EQ(text_of(made.blockers),
            (std::vector<std::string>{R"(tensors["flags"]: bool -> no element type of GGUF)",
                                      R"(tensors["deep"]: [1, 1, 1, 1, 2] -> GGUF has at most 4 dimensions)"}));
}

TEST(GgufWrite, QuantizationIsOfMatrices) {
  Builder builder;
  builder.tensor("matrix", DType::f32, {2, 32}, floats(64));
  builder.tensor("vector", DType::f32, {32}, floats(32));
  builder.tensor("odd", DType::f32, {2, 31}, floats(62));
  Options options;
  options.quantize = "q8_0";
  const core::WriteLayout made = layout(builder.build(), options);
  const Model back = read_back(made);
  const char* const expected[] = {"q8_0", "f32", "f32"};
  for (std::uint32_t i = 0; i < 3; ++i) {
    const Tensor tensor = back[i];
    EXPECT_EQ(tensor.type_name(), expected[i]);
  }
  EXPECT_EQ(made.losses.size(), 1U);
  EXPECT_EQ(made.changes.size(), 1U);
}

// From blocks to other blocks: precision is lost, and no tensor becomes dense.
TEST(GgufWrite, BlocksThatBecomeOtherBlocksStayQuantized) {
  Builder builder;
  builder.tensor("matrix", DType::f32, {2, 32}, floats(64));
  Options options;
  options.quantize = "q8_0";
  const Model blocks = read_back(layout(builder.build(), options));
  options.quantize = "q4_0";
  const core::WriteLayout made = layout(blocks, options);
  EXPECT_EQ(text_of(made.losses), (std::vector<std::string>{R"(tensors["matrix"]: q8_0 -> q4_0)"}));
  const Model back = read_back(made);
  const Tensor matrix = back[0];
  EXPECT_EQ(matrix.type_name(), "q4_0");
}

TEST(GgufWrite, OptionsThatItLacksAreRefused) {
  const auto refused = [](auto change) {
    Options options;
    change(options);
    return test::thrown([&] { core::check_written(kFormat, options); }).rule;
  };
  EXPECT_EQ(refused([](Options& o) { o.encoding = "zstd"; }), "misuse/encoding");
  EXPECT_EQ(refused([](Options& o) { o.digest = "sha256"; }), "misuse/digest");
  EXPECT_EQ(refused([](Options& o) { o.version = "2"; }), "misuse/version");
  EXPECT_EQ(refused([](Options& o) { o.quantize = "iq1_s"; }), "misuse/quantize");
  EXPECT_EQ(refused([](Options& o) { o.cast = DType::f8_e4m3; }), "misuse/cast");
}

}  // namespace
}  // namespace weighbridge::gguf
