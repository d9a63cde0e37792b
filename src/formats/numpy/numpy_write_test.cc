// SPDX-License-Identifier: Apache-2.0
// What the writers of npy and npz keep, lose and refuse. tests/interop/test_numpy.py compares their files with NumPy's.
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "core/writing/layout.h"
#include "formats/numpy/format.h"
#include "formats/numpy/header.h"
#include "support/format_testing.h"
#include "support/thrown.h"
#include "weighbridge/model.h"

namespace weighbridge::numpy {
namespace {

using Texts = std::vector<std::string>;

Texts text_of(const std::vector<Item>& items) {
  Texts out;
  for (const Item& item : items) out.push_back(item.subject + ": " + item.from + " -> " + item.to);
  return out;
}

Bytes zeros(std::size_t bytes) {
  const auto kept = std::make_shared<std::vector<std::byte>>(bytes);
  return {std::span(*kept), kept};
}

Model one(DType dtype, std::vector<std::uint64_t> shape, std::size_t bytes, const char* name = "array") {
  Builder builder;
  builder.tensor(name, dtype, std::move(shape), zeros(bytes));
  return builder.build();
}

Model named(const std::vector<std::string>& names) {
  Builder builder;
  for (const std::string& name : names) builder.tensor(name, DType::u8, {2}, zeros(2));
  return builder.build();
}

Options deflated() {
  Options options;
  options.encoding = "deflate";
  return options;
}

TEST(NumpyWrite, WhatWasReadIsWrittenBackByteForByte) {
  for (const core::CorpusCase& one : npy_cases()) {
    if (!one.name.starts_with("valid-dtype-") && one.name != "valid-scalar" && one.name != "valid-empty") continue;
    const Model model = test::walk(kNpy, one.bytes).model;
    ASSERT_EQ(model.size(), 1U) << one.name;
    const core::WriteLayout made = layout_npy(model, {});
    EXPECT_TRUE(made.losses.empty()) << one.name;
    const Model back = test::walk(kNpy, test::render(made)).model;
    ASSERT_EQ(back.size(), 1U) << one.name;
    EXPECT_EQ(test::dense_bytes(back[0]), test::dense_bytes(model[0])) << one.name;
  }
}

TEST(NumpyWrite, AnArchiveReadsBack) {
  Builder builder;
  builder.tensor("a", DType::f32, {2, 3}, zeros(24));
  builder.tensor("none", DType::f64, {0, 3}, zeros(0));
  builder.tensor("scalar", DType::i64, {}, zeros(8));
  const Model model = builder.build();
  for (const Options& options : {Options{}, deflated()}) {
    const core::WriteLayout made = layout_npz(model, options);
    EXPECT_TRUE(made.losses.empty());
    const std::string bytes = test::render(made);
    const test::Outcome back = test::walk(kNpz, bytes);
    EXPECT_EQ(back.report.findings().size(), 0U);
    ASSERT_EQ(back.model.size(), 3U);
    for (std::uint32_t i = 0; i < 3; ++i) {
      EXPECT_EQ(back.model.name(i), model.name(i));
      EXPECT_EQ(test::dense_bytes(back.model[i]), test::dense_bytes(model[i]));
      const Part part = back.model[i].main();
      if (part.encoding() == Encoding::raw && options.encoding.empty()) {
        EXPECT_EQ(part.extent()->offset % 64, 0U);
      }
    }
    EXPECT_EQ(test::render(layout_npz(back.model, options)), bytes);
  }
}

TEST(NumpyWrite, AnArchiveWithoutTensorsIsItsEnd) {
  const core::WriteLayout made = layout_npz(Model(), {});
  EXPECT_EQ(made.size, 22U);
  EXPECT_EQ(test::walk(kNpz, test::render(made)).model.size(), 0U);
}

TEST(NumpyWrite, AnArrayHasNoName) {
  const core::WriteLayout made = layout_npy(one(DType::u8, {2}, 2, "w"), {});
  ASSERT_EQ(made.losses.size(), 1U);
  EXPECT_EQ(made.losses[0].kind, LossKind::name);
  EXPECT_TRUE(layout_npy(one(DType::u8, {2}, 2), {}).losses.empty());
}

TEST(NumpyWrite, AnArrayFileHoldsExactlyOneTensor) {
  for (const Model& model : {Model(), named({"a", "b"})}) {
    const core::WriteLayout made = layout_npy(model, {});
    ASSERT_EQ(made.blockers.size(), 1U);
    EXPECT_NE(made.blockers[0].to.find("write an npz"), std::string::npos);
  }
}

TEST(NumpyWrite, TypesThatNumpyLacksAreVoid) {
  const core::WriteLayout made = layout_npy(one(DType::bf16, {2}, 4), {});
  EXPECT_EQ(text_of(made.losses),
            (Texts{"tensors[\"array\"]: bf16 -> <V2, as ml_dtypes saves bfloat16: NumPy reads void "
                   "items of 2 bytes until they are viewed as ml_dtypes.bfloat16"}));
  EXPECT_EQ(made.losses[0].kind, LossKind::dtype);
  EXPECT_TRUE(made.tensors[0].opaque);
  EXPECT_EQ(layout_npy(one(DType::f4, {2}, 1), {}).blockers.size(), 1U);
  Options cast;
  cast.cast = DType::f32;
  EXPECT_TRUE(layout_npy(one(DType::f4, {2}, 1), cast).blockers.empty());
}

TEST(NumpyWrite, MetadataAreLosses) {
  Builder builder;
  builder.attribute("k", Value::text("v"));
  builder.tensor("a", DType::u8, {1}, zeros(1));
  const core::WriteLayout made = layout_npz(builder.build(), {});
  ASSERT_EQ(made.losses.size(), 1U);
  EXPECT_EQ(made.losses[0].kind, LossKind::attribute);
}

TEST(NumpyWrite, NamesThatAnArchiveCannotHaveAreBlockers) {
  using namespace std::string_literals;
  for (const std::string& name :
       {"../x"s, "/x"s, "a/../x"s, ".."s + "/y", "a\\b"s, "C:x"s, "a\0b"s, std::string(65'531, 'n')}) {
    const core::WriteLayout made = layout_npz(named({name}), {});
    ASSERT_EQ(made.blockers.size(), 1U) << name.substr(0, 20);
    EXPECT_EQ(made.blockers[0].kind, LossKind::name);
  }
  for (const std::string& name : {"a/b"s, "x.npy"s, "..x"s, "é"s, std::string(65'530, 'n')}) {
    const Model back = test::walk(kNpz, test::render(layout_npz(named({name}), {}))).model;
    ASSERT_EQ(back.size(), 1U);
    EXPECT_EQ(back.name(0), name);
  }
}

TEST(NumpyWrite, NamesThatNumpyWouldMixUpAreBlockers) {
  EXPECT_EQ(layout_npz(named({"x", "x.npy"}), {}).blockers.size(), 1U);
  EXPECT_EQ(layout_npz(named({"x", "X", "y.npy"}), {}).blockers.size(), 0U);
}

TEST(NumpyWrite, ShapesBeyondNumpyAreBlockers) {
  EXPECT_EQ(layout_npz(one(DType::f64, {0, std::uint64_t{1} << 61}, 0), {}).blockers.size(), 1U);
}

TEST(NumpyWrite, OptionsThatNumpyLacksAreMisuse) {
  Options options;
  options.encoding = "zstd";
  EXPECT_THROW(core::check_written(kNpz, options), Error);
  EXPECT_THROW(core::check_written(kNpy, deflated()), Error);
  options = {};
  options.digest = "sha256";
  EXPECT_THROW(core::check_written(kNpz, options), Error);
  options = {};
  options.quantize = "q8_0";
  EXPECT_THROW(core::check_written(kNpz, options), Error);
  options = {};
  options.version = "2.0";
  EXPECT_THROW(core::check_written(kNpy, options), Error);
  options = {};
  options.cast = DType::f4;
  EXPECT_THROW(core::check_written(kNpz, options), Error);
}

}  // namespace
}  // namespace weighbridge::numpy
