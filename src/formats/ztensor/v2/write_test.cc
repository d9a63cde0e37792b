// SPDX-License-Identifier: Apache-2.0
// What the writer keeps, loses and refuses. tests/interop/test_ztensor2.py opens its files with the published package.
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "core/writing/layout.h"
#include "formats/ztensor/v2/format.h"
#include "formats/ztensor/v2/layout.h"
#include "support/format_testing.h"
#include "support/thrown.h"

namespace weighbridge::ztensor2 {
namespace {

Bytes filled(std::size_t size, unsigned char value) {
  const auto kept = std::make_shared<std::vector<std::byte>>(size, std::byte{value});
  return {std::span(*kept), kept};
}
std::string written(const Model& model, const Options& options = {}) { return test::render(layout(model, options)); }
Model read_back(const std::string& bytes) {
  const auto [report, model] = test::walk(kFormat, bytes);
  EXPECT_TRUE(report.valid());
  return model;
}

TEST(Ztensor2Write, WhatWasReadIsWrittenBack) {
  for (const core::CorpusCase& one : cases()) {
    if (!one.rule.empty() || one.sidecar || one.name == "valid-seekable") continue;
    const Model model = test::walk(kFormat, one.bytes).model;
    const core::WriteLayout made = layout(model, {});
    EXPECT_TRUE(made.blockers.empty() && made.losses.empty()) << one.name;
    const std::string bytes = test::render(made);
    EXPECT_EQ(bytes.size(), made.size) << one.name;
    const Model back = read_back(bytes);
    ASSERT_EQ(back.size(), model.size()) << one.name;
    for (const Tensor& tensor : model) {
      const Tensor again = back[tensor.name()];
      EXPECT_EQ(again.layout(), tensor.layout()) << one.name;
      for (const Part& part : tensor.parts())
        EXPECT_EQ(test::logical_bytes(again.part(part.role()).value()), test::logical_bytes(part)) << one.name;
    }
    EXPECT_EQ(written(back), bytes) << one.name;
  }
}

TEST(Ztensor2Write, BlobsAreWhereCanonicalFilesHaveThem) {
  Builder builder;
  builder.tensor("b", DType::u8, {8}, filled(8, 1)).tensor("aa", DType::f32, {2}, filled(8, 2));
  const Model model = read_back(written(builder.build()));
  EXPECT_EQ(model["aa"].main().extent()->offset, kPlacement);
  EXPECT_EQ(model["b"].main().extent()->offset, 2 * kPlacement);
  const Part part = model["b"].main();
  EXPECT_TRUE(part.digest().starts_with("xxh3:"));
}

TEST(Ztensor2Write, CanonicalFilesHaveOneBlobForEqualContent) {
  Builder builder;
  builder.tensor("a", DType::u8, {8}, filled(8, 1)).tensor("b", DType::f32, {2}, filled(8, 1));
  builder.tensor("c", DType::u8, {8}, filled(8, 2));
  const Model model = builder.build();
  Options options;
  const Model plain = read_back(written(model, options));
  EXPECT_NE(plain["a"].main().extent(), plain["b"].main().extent());
  options.canonical = true;
  const Model canonical = read_back(written(model, options));
  EXPECT_EQ(canonical["a"].main().extent(), canonical["b"].main().extent());
  EXPECT_NE(canonical["a"].main().extent(), canonical["c"].main().extent());
  options.digest = "sha256";
  EXPECT_EQ(test::thrown([&] { layout(model, options); }).rule, "misuse/digest");
  options.digest = "";
  options.encoding = "zstd";
  EXPECT_EQ(test::thrown([&] { layout(model, options); }).rule, "misuse/encoding");
}

TEST(Ztensor2Write, IndicesBecomeUnsignedAndMustRise) {
  const auto sparse = [](std::vector<std::int32_t> indices) {
    const auto kept = std::make_shared<std::vector<std::int32_t>>(std::move(indices));
    const auto rows = std::make_shared<std::vector<std::int32_t>>(std::vector<std::int32_t>{0, 2});
    Builder builder;
    builder.object("s", Layout::sparse_csr, {1, 4}, {},
                   {{"values", DType::u8, {2}, filled(2, 1)},
                    {"indices", DType::i32, {2}, {std::as_bytes(std::span(*kept)), kept}},
                    {"indptr", DType::i32, {2}, {std::as_bytes(std::span(*rows)), rows}}});
    return builder.build();
  };
  const Model model = read_back(written(sparse({1, 3})));
  EXPECT_EQ(model["s"].part("indices").value().dtype(), DType::u64);
  EXPECT_EQ(test::thrown([&] { written(sparse({3, 1})); }).rule, "misuse/sparse-order");
  EXPECT_EQ(test::thrown([&] { written(sparse({1, 1})); }).rule, "misuse/sparse-order");
}

TEST(Ztensor2Write, NamesMustFit) {
  Builder builder;
  builder.tensor(std::string(1025, 'n'), DType::u8, {1}, filled(1, 0));
  const core::WriteLayout made = layout(builder.build(), {});
  ASSERT_EQ(made.blockers.size(), 1U);
  EXPECT_EQ(made.blockers[0].kind, LossKind::name);
}

}  // namespace
}  // namespace weighbridge::ztensor2
