// SPDX-License-Identifier: Apache-2.0
// Copies of models with other elements: in place, and from fields of numbers at any depth.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "core/writing/layout.h"
#include "formats/onnx/format.h"
#include "support/format_testing.h"
#include "support/thrown.h"

namespace weighbridge::onnx {
namespace {

std::string bytes_of_case(std::string_view name) {
  static const std::vector<core::CorpusCase> all = cases();
  return test::case_of(all, name).bytes;
}
Options into(const std::string& model) {
  Options options;
  options.onnx.into = memory_source(test::bytes_of(model), "model.onnx");
  return options;
}
// Every tensor of the model with other bytes.
Model changed(const Model& model) {
  Builder builder;
  for (const Tensor& tensor : model) {
    std::string data = test::logical_bytes(tensor.main());
    for (char& c : data) c = static_cast<char>(c ^ (tensor.dtype() == DType::boolean ? 1 : 0x11));
    const std::uint64_t bits = info(tensor.dtype()).bits, used = tensor.main().count() * bits % 8;
    if (bits < 8 && used != 0) data.back() = static_cast<char>(data.back() & ((1 << used) - 1));
    const auto kept = test::bytes_of(data);
    builder.tensor(std::string(tensor.name()), tensor.dtype(), {tensor.shape().begin(), tensor.shape().end()}, kept);
  }
  return builder.build();
}

TEST(OnnxInto, EveryTensorOfEveryModelCanBeReplaced) {
  for (const core::CorpusCase& c : cases()) {
    if (!c.rule.empty() || c.sidecar || !c.extension.empty() || c.name.find("sparse") != c.name.npos) continue;
    const Model base = test::walk(kFormat, c.bytes).model;
    std::vector<std::string> names;
    if (c.name == "valid-constants") continue;  // value_float and the like are not tensors
    const Model other = changed(base);
    const core::WriteLayout layout = onnx::layout(other, into(c.bytes));
    ASSERT_TRUE(layout.blockers.empty()) << c.name << layout.blockers[0].to;
    const std::string bytes = test::render(layout);
    const test::Outcome out = test::walk(kFormat, bytes);
    EXPECT_TRUE(out.report.valid()) << c.name;
    ASSERT_EQ(out.model.size(), base.size());
    for (std::uint32_t i = 0; i < base.size(); ++i) {
      const Tensor made = out.model[i], there = base[i];
      EXPECT_EQ(made.name(), there.name());
      EXPECT_TRUE(std::ranges::equal(made.shape(), there.shape())) << c.name;
      EXPECT_EQ(test::logical_bytes(out.model[i].main()), test::logical_bytes(other[i].main())) << c.name;
    }
    // The way back: the elements are what they were.
    const Model original = test::walk(kFormat, test::render(onnx::layout(base, into(bytes)))).model;
    for (std::uint32_t i = 0; i < base.size(); ++i)
      EXPECT_EQ(test::logical_bytes(original[i].main()), test::logical_bytes(base[i].main())) << c.name;
  }
}

TEST(OnnxInto, WhatTheInputLacksStaysByteForByte) {
  for (const core::CorpusCase& c : cases())
    if (c.rule.empty() && !c.sidecar) {
      const core::WriteLayout layout = onnx::layout(Builder().build(), into(c.bytes));
      EXPECT_TRUE(layout.blockers.empty()) << c.name;
      EXPECT_EQ(test::render(layout), c.bytes) << c.name;
      EXPECT_EQ(layout.changes.size(), test::walk(kFormat, c.bytes).model.size() > 0 ? 1U : 0U);
    }
}

// Replaced in place, only the elements differ.
TEST(OnnxInto, TheRestOfTheFileStays) {
  const std::string before = bytes_of_case("valid-metadata");
  const std::string after = test::render(onnx::layout(changed(test::walk(kFormat, before).model), into(before)));
  ASSERT_EQ(after.size(), before.size());
  std::size_t different = 0;
  for (std::size_t i = 0; i < before.size(); ++i) different += before[i] != after[i];
  EXPECT_EQ(different, 8U);
}

// The model to copy was read with default limits and without the hook, whatever the caller of plan() had set.
TEST(OnnxInto, IsReadWithTheLimitsAndTheHookOfThePlan) {
  const Options options = into(bytes_of_case("valid-raw"));
  Context context;
  context.limits.tensors = 0;
  EXPECT_EQ(test::thrown([&] { layout(Builder().build(), options, context); }).rule, "limit/tensors");
  context = {};
  std::size_t asked = 0;
  context.progress = [&](std::uint64_t, std::uint64_t) { return ++asked > 1; };
  EXPECT_THROW(layout(Builder().build(), options, context), Cancelled);
  EXPECT_EQ(asked, 1U);
}

TEST(OnnxInto, RefusesWhatDoesNotFit) {
  const std::string base = bytes_of_case("valid-raw");
  const auto blocker = [&](const Model& model) {
    const core::WriteLayout layout = onnx::layout(model, into(base));
    return layout.blockers.empty() ? std::string("none") : layout.blockers[0].to;
  };
  const auto one = [](const std::string& name, DType dtype, std::vector<std::uint64_t> shape, std::size_t bytes) {
    Builder builder;
    builder.tensor(name, dtype, std::move(shape), test::bytes_of(std::string(bytes, '\1')));
    return builder.build();
  };
  EXPECT_EQ(blocker(one("w", DType::f32, {2}, 8)), "none");
  EXPECT_EQ(blocker(one("v", DType::f32, {2}, 8)),
            "the ONNX model has no tensor of this name: rename the tensor, or leave it out");
  EXPECT_EQ(blocker(one("w", DType::i32, {2}, 8)), "the ONNX model has f32");
  EXPECT_EQ(blocker(one("w", DType::f32, {1, 2}, 8)), "the ONNX model has [2]");
  EXPECT_EQ(onnx::layout(one("w", DType::f32, {2}, 8), {}).blockers[0].subject, "graph");
  // Weights in other types can be cast to those of the model.
  Options cast = into(base);
  cast.cast = DType::f32;
  EXPECT_TRUE(onnx::layout(one("w", DType::f16, {2}, 4), cast).blockers.empty());
  EXPECT_EQ(onnx::layout(one("s", DType::f32, {2, 3}, 24), into(bytes_of_case("valid-sparse-linear"))).blockers[0].kind,
            LossKind::layout);
}

TEST(OnnxInto, ABrokenModelIsNamed) {
  try {
    onnx::layout(Builder().build(), into(bytes_of_case("repeated-field")));
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.finding().rule, "onnx/repeated-field");
    EXPECT_EQ(error.finding().file.name, "model.onnx");
  }
}

}  // namespace
}  // namespace weighbridge::onnx
