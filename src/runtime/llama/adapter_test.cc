// SPDX-License-Identifier: Apache-2.0
// Adapters: packages made, read and applied; each part of the identity must match; the base never changes.
#include <gtest/gtest.h>

#include <cstring>
#include <limits>

#include "support/temporary_folder.h"
#include "weighbridge/hash.h"
#include "weighbridge/open.h"
#include "weighbridge/slm.h"
#include "weighbridge/verify.h"

namespace weighbridge::slm {
namespace {

Bytes floats(std::vector<float> values) {
  const auto held = std::make_shared<const std::vector<float>>(std::move(values));
  return {std::as_bytes(std::span(*held)), held};
}

std::vector<float> values_of(const Model& model, std::string_view name) {
  const Array array = model[name].to_dense(DType::f32);
  std::vector<float> out(static_cast<std::size_t>(array.size / sizeof(float)));
  std::memcpy(out.data(), array.data.get(), static_cast<std::size_t>(array.size));
  return out;
}

class Adapters : public ::testing::Test {
 protected:
  void SetUp() override {
    write_base("base.slm", Fixture::tiny, "");
    base_ = open(folder_ / "base.slm");
  }
  void write_base(const std::string& file, Fixture kind, const std::string& quantize) {
    Options options;
    options.quantize = quantize;
    plan(fixture(kind), "slm", options).execute(folder_ / file);
  }
  Model package(const Model& base, const Model& deltas, AdapterKind kind, const std::string& file) {
    plan_adapter(base, deltas, kind).execute(folder_ / file);
    EXPECT_EQ(verify(folder_ / file).report.total(), 0U);
    return open(folder_ / file);
  }
  // A delta that adds `value` to the elements of norm.weight.
  Model norm_delta(float value) {
    Builder out;
    out.tensor("norm.weight", DType::f32, {8}, floats(std::vector<float>(8, value)));
    return out.build();
  }
  std::string rule_of(const Model& base, const Model& adapter) {
    try {
      adapt(base, std::span(&adapter, 1));
    } catch (const Error& error) {
      return error.finding().rule;
    }
    return "";
  }

  test::TemporaryFolder folder_;
  Model base_;
};

TEST_F(Adapters, DenseDeltasAreAdded) {
  const Model adapter = package(base_, norm_delta(0.5F), AdapterKind::dense, "a.adp1");
  const Digest before = content_digest(base_);
  const Model adapted = adapt(base_, std::span(&adapter, 1));
  EXPECT_EQ(values_of(adapted, "norm.weight"), std::vector<float>(8, 1.5F));
  EXPECT_EQ(values_of(adapted, "tok_embeddings.weight"), values_of(base_, "tok_embeddings.weight"));
  EXPECT_EQ(content_digest(base_), before);
}

TEST_F(Adapters, SparseDeltasLeaveTheOtherElementsAlone) {
  std::vector<float> delta(64, 0.0F);
  delta[3] = 1.0F;
  delta[60] = -2.0F;
  Builder deltas;
  deltas.tensor("layers.0.wq.weight", DType::f32, {8, 8}, floats(delta));
  const Model adapter = package(base_, deltas.build(), AdapterKind::sparse, "a.asp1");
  EXPECT_EQ(adapter[0U].part("indices").value().count(), 2U);
  std::vector<float> expected = values_of(base_, "layers.0.wq.weight");
  expected[3] += 1.0F;
  expected[60] += -2.0F;
  EXPECT_EQ(values_of(adapt(base_, std::span(&adapter, 1)), "layers.0.wq.weight"), expected);
}

TEST_F(Adapters, LowRankFactorsAreMultipliedAndAdded) {
  Builder deltas;
  deltas.tensor("layers.0.w1.weight.lora_a", DType::f32, {16, 1}, floats(std::vector<float>(16, 2.0F)));
  deltas.tensor("layers.0.w1.weight.lora_b", DType::f32, {1, 8}, floats(std::vector<float>(8, 0.25F)));
  const Model adapter = package(base_, deltas.build(), AdapterKind::low_rank, "a.alr1");
  std::vector<float> expected = values_of(base_, "layers.0.w1.weight");
  for (float& value : expected) value += 0.5F;
  EXPECT_EQ(values_of(adapt(base_, std::span(&adapter, 1)), "layers.0.w1.weight"), expected);
}

TEST_F(Adapters, SeveralApplyInTheOrderGiven) {
  const Model one = package(base_, norm_delta(0.5F), AdapterKind::dense, "a.adp1");
  const Model two = package(base_, norm_delta(0.25F), AdapterKind::dense, "b.adp1");
  const std::vector<Model> both = {one, two};
  EXPECT_EQ(values_of(adapt(base_, both), "norm.weight"), std::vector<float>(8, 1.75F));
}

TEST_F(Adapters, AQuantizedTensorBecomesF32) {
  write_base("q8.slm", Fixture::tiny, "q8_0");
  const Model base = open(folder_ / "q8.slm");
  Builder deltas;
  deltas.tensor("layers.0.wq.weight", DType::f32, {8, 8}, floats(std::vector<float>(64, 1.0F)));
  const Model adapter = package(base, deltas.build(), AdapterKind::dense, "a.adp1");
  const Model adapted = adapt(base, std::span(&adapter, 1));
  const Tensor wq = adapted["layers.0.wq.weight"], wk = adapted["layers.0.wk.weight"];
  EXPECT_EQ(wq.type_name(), "f32");
  EXPECT_EQ(wk.type_name(), "q8_0");
  std::vector<float> expected = values_of(base, "layers.0.wq.weight");
  for (float& value : expected) value += 1.0F;
  EXPECT_EQ(values_of(adapted, "layers.0.wq.weight"), expected);
  plan(adapted, "slm").execute(folder_ / "adapted.slm");
  const Model again = open(folder_ / "adapted.slm");
  EXPECT_EQ(values_of(again, "layers.0.wq.weight"), expected);
  EXPECT_EQ(again.dtype_label(), "mixed");
}

TEST_F(Adapters, APackageForAnotherModelIsRefused) {
  const Model adapter = package(base_, norm_delta(0.5F), AdapterKind::dense, "a.adp1");
  write_base("tied.slm", Fixture::tiny_tied, "");
  write_base("q8.slm", Fixture::tiny, "q8_0");
  write_base("bpe.slm", Fixture::tiny_bpe, "");
  for (const char* other : {"tied.slm", "q8.slm", "bpe.slm"})
    EXPECT_EQ(rule_of(open(folder_ / other), adapter), "misuse/adapter-identity") << other;
}

TEST_F(Adapters, ABrokenPackageIsRefusedByItsOwnRule) {
  package(base_, norm_delta(0.5F), AdapterKind::dense, "a.adp1");
  std::string bytes = test::read_file(folder_ / "a.adp1");
  bytes.back() = '\1';
  test::write_file(folder_ / "b.adp1", bytes);
  EXPECT_EQ(rule_of(base_, open(folder_ / "b.adp1")), "slm-adapter/payload-checksum");
}

TEST_F(Adapters, ASumThatIsNotFiniteIsRefused) {
  const Model adapter = package(base_, norm_delta(std::numeric_limits<float>::max()), AdapterKind::dense, "a.adp1");
  const std::vector<Model> twice = {adapter, adapter};
  EXPECT_THROW(adapt(base_, twice), Error);
}

TEST_F(Adapters, WhatIsNoPackageOrNoBaseIsMisuse) {
  EXPECT_EQ(rule_of(base_, base_), "misuse/adapter-format");
  const Model adapter = package(base_, norm_delta(0.5F), AdapterKind::dense, "a.adp1");
  EXPECT_EQ(rule_of(fixture(Fixture::tiny), adapter), "misuse/adapter-base");
}

TEST_F(Adapters, DeltasThatAreNotFiniteAsF32AreNotPacked) {
  const auto refused = [&](const Model& deltas, AdapterKind kind) {
    try {
      plan_adapter(base_, deltas, kind);
    } catch (const Error& error) {
      return error.finding().rule;
    }
    return std::string("packed");
  };
  const Model nan = norm_delta(std::numeric_limits<float>::quiet_NaN());
  EXPECT_EQ(refused(nan, AdapterKind::dense), "misuse/adapter-value");
  EXPECT_EQ(refused(nan, AdapterKind::sparse), "misuse/adapter-value");
  Builder large;
  const auto held = std::make_shared<const std::vector<double>>(8, 1e300);
  large.tensor("norm.weight", DType::f64, {8}, {std::as_bytes(std::span(*held)), held});
  EXPECT_EQ(refused(large.build(), AdapterKind::dense), "misuse/adapter-value");
  Builder factors;
  factors.tensor("layers.0.w1.weight.lora_a", DType::f32, {16, 1}, floats(std::vector<float>(16, 1.0F)));
  factors.tensor("layers.0.w1.weight.lora_b", DType::f32, {1, 8},
                 floats(std::vector<float>(8, std::numeric_limits<float>::infinity())));
  EXPECT_EQ(refused(factors.build(), AdapterKind::low_rank), "misuse/adapter-value");
}

// Changed tensors get new bytes, so a package that changes all tensors leaves none in the base's file.
TEST_F(Adapters, NoInputOfAnAdaptedModelMayBeItsOutput) {
  Builder all;
  for (std::uint32_t i = 0; i < base_.size(); ++i) {
    const Tensor tensor = base_[i];
    const Shape shape = tensor.shape();
    std::size_t count = 1;
    for (const std::uint64_t dim : shape) count *= static_cast<std::size_t>(dim);
    all.tensor(std::string(base_.name(i)), DType::f32, {shape.begin(), shape.end()},
               floats(std::vector<float>(count, 0.5F)));
  }
  const Model adapter = package(base_, all.build(), AdapterKind::dense, "all.adp1");
  Options options;
  options.replace = true;
  const Plan adapted = plan(adapt(base_, std::span(&adapter, 1)), "slm", options);
  for (const char* const input : {"base.slm", "all.adp1"}) {
    try {
      adapted.execute(folder_ / input);
      ADD_FAILURE() << input << " was replaced";
    } catch (const Error& error) {
      EXPECT_EQ(error.finding().rule, "misuse/output-is-input");
    }
  }
}

TEST_F(Adapters, DeltasOfOtherNamesAndShapesAreMisuse) {
  Builder name, shape, factor;
  name.tensor("norm.wieght", DType::f32, {8}, floats(std::vector<float>(8)));
  shape.tensor("norm.weight", DType::f32, {4}, floats(std::vector<float>(4)));
  factor.tensor("norm.weight.lora_a", DType::f32, {1, 1}, floats({1.0F}));
  EXPECT_THROW(plan_adapter(base_, name.build(), AdapterKind::dense), Error);
  EXPECT_THROW(plan_adapter(base_, shape.build(), AdapterKind::dense), Error);
  EXPECT_THROW(plan_adapter(base_, factor.build(), AdapterKind::low_rank), Error);
}

}  // namespace
}  // namespace weighbridge::slm
