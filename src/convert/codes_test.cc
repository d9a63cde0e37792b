// SPDX-License-Identifier: Apache-2.0
// Codes of a scheme in the library's own calls. tests/cli/test_schemes.py has every layout.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "support/convert_testing.h"
#include "support/temporary_folder.h"
#include "support/thrown.h"
#include "weighbridge/convert.h"
#include "weighbridge/join.h"
#include "weighbridge/lora.h"
#include "weighbridge/open.h"
#include "weighbridge/scheme.h"
#include "weighbridge/view.h"

namespace weighbridge {
namespace {

using convert::testing::pattern;
using test::thrown;

// With four scales, nothing states the size of their blocks.
Model built(bool codes, bool scale, std::uint64_t scales = 1) {
  Builder builder;
  if (codes) builder.tensor("x.weight", DType::f8_e4m3, {2, 4}, pattern(8));
  if (scale) builder.tensor("x.weight_scale", DType::f32, {scales, scales}, pattern(4 * scales * scales));
  builder.tensor(codes ? "norm.weight" : "other.weight", DType::f32, {2}, pattern(8));
  return builder.build();
}

std::vector<std::string> names(const Model& model) {
  std::vector<std::string> out;
  for (const ModelScheme& scheme : schemes_of(model)) out.push_back(scheme.name);
  return out;
}

// FP8 weights were cast without their scales, with "every value kept".
TEST(Codes, APlanThatNeedsTheirValuesHasABlockerThatNamesTheScheme) {
  const Model model = built(true, true, 2);
  EXPECT_EQ(names(model), std::vector<std::string>{"FP8 with scales"});
  for (const Options& options : {Options{.cast = DType::f32}, Options{.dequantize = DType::f16}}) {
    const Plan refused = plan(model, "safetensors", options);
    ASSERT_EQ(refused.blockers().size(), 1U);
    EXPECT_EQ(refused.blockers()[0].kind, LossKind::unsupported);
    EXPECT_EQ(refused.blockers()[0].from, "FP8 with scales");
    EXPECT_TRUE(refused.losses().empty());
  }
  EXPECT_EQ(plan(model, "gguf").blockers()[0].from, "FP8 with scales");
  EXPECT_EQ(plan(model, "gguf", {.quantize = "q8_0"}).blockers()[0].from, "FP8 with scales");
  EXPECT_TRUE(plan(model, "safetensors").possible());
}

TEST(Codes, APlanThatNeedsTheirValuesDecodesThem) {
  const Model model = built(true, true);
  for (const Options& options : {Options{.cast = DType::f32}, Options{.dequantize = DType::f32}})
    EXPECT_TRUE(plan(model, "safetensors", options).blockers().empty());
  const Model numbers = logical(model);
  EXPECT_EQ(numbers.size(), 2U);
  EXPECT_EQ(numbers["x.weight"].dtype(), DType::f32);
}

TEST(Codes, NoViewMakesValuesOfThem) {
  const Model whole = built(true, true);
  const Model part = view(whole, {.only = {"x.weight"}, .patterns = {"s/x/y/"}});
  EXPECT_EQ(scheme_of(part["y.weight"])->name, "FP8 with scales");
  EXPECT_FALSE(plan(part, "safetensors", {.cast = DType::f32}).blockers().empty());
  const Plan alone = plan(part, "safetensors");
  ASSERT_EQ(alone.refused().size(), 1U);
  EXPECT_EQ(alone.refused()[0].kind, LossKind::layout);
  EXPECT_TRUE(plan(view(whole, {.only = {"norm.weight"}}), "safetensors", {.cast = DType::f16}).possible());
  EXPECT_TRUE(plan(built(true, false), "safetensors", {.cast = DType::f16}).possible());
}

TEST(Codes, ScalesOfAnotherModelCompleteThem) {
  const Model models[] = {built(true, false), built(false, true)};
  EXPECT_TRUE(names(models[0]).empty() && names(models[1]).empty());
  EXPECT_EQ(names(join(models)), std::vector<std::string>{"FP8 with scales"});
}

TEST(Codes, AreReadAsTheyAreStoredAndNotCast) {
  const Model model = built(true, true);
  const Tensor codes = model["x.weight"];
  EXPECT_EQ(codes.to_dense().dtype, DType::f8_e4m3);
  EXPECT_EQ(thrown([&] { codes.to_dense(DType::f32); }).rule, "unsupported/scheme");
  std::vector<std::byte> room(16);
  EXPECT_EQ(thrown([&] { codes.rows_into(0, 1, DType::f32, room); }).rule, "unsupported/scheme");
  EXPECT_EQ(model["x.weight_scale"].to_dense(DType::f64).size, 8U);  // a scale is a number
}

TEST(Codes, ACopyIsRecognizedAgain) {
  const test::TemporaryFolder folder;
  for (const std::string name : {"a.safetensors", "a.zt", "a.pt"}) {
    save(built(true, true), folder / name);
    EXPECT_EQ(names(open(folder / name)), std::vector<std::string>{"FP8 with scales"}) << name;
  }
}

TEST(Dequantize, OfAModelWithoutQuantizedTensorsWritesNothing) {
  EXPECT_EQ(thrown([] { plan(built(true, false), "safetensors", {.dequantize = DType::f16}); }).rule,
            "convert/nothing-quantized");
}

}  // namespace
}  // namespace weighbridge
