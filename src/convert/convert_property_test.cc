// SPDX-License-Identifier: Apache-2.0
// Checks with random models that a conversion keeps what its plan promises: into each container with its own options,
// and between every pair of containers.
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <string>
#include <vector>

#include "support/properties.h"
#include "support/sample_models.h"

namespace weighbridge {
namespace {

using convert::testing::threads;
using test::a_model;
using test::check_trip;

TEST(ConvertProperty, WhatNoLossNamesComesBackFromSafetensors) {
  EXPECT_TRUE(test::holds([] {
    check_trip(a_model("safetensors"), "safetensors", {}, threads(static_cast<unsigned>(*rc::gen::inRange(0, 4))));
  }));
}

TEST(ConvertProperty, WhatNoLossNamesComesBackFromZt) {
  EXPECT_TRUE(test::holds([] {
    Options options;
    options.encoding = *rc::gen::elementOf(std::vector<std::string>{"", "raw", "zstd"});
    options.digest = *rc::gen::elementOf(std::vector<std::string>{"", "none", "sha256", "crc32c"});
    options.version = *rc::gen::elementOf(std::vector<std::string>{"", "1.1", "1.2"});
    check_trip(a_model("zt"), "zt", options, threads(static_cast<unsigned>(*rc::gen::inRange(0, 4))));
  }));
}

TEST(ConvertProperty, WhatNoLossNamesComesBackFromPyTorch) {
  EXPECT_TRUE(test::holds(
      [] { check_trip(a_model("pytorch"), "pytorch", {}, threads(static_cast<unsigned>(*rc::gen::inRange(0, 4)))); }));
}

// A model that safetensors can hold is unchanged after a conversion to .zt and back.
TEST(ConvertProperty, ZtAfterSafetensorsIsZt) {
  EXPECT_TRUE(test::holds([] {
    const test::TemporaryFolder folder;
    const Model model = a_model("safetensors");
    const Plan there = plan(model, "safetensors", {.allow = test::every_loss()});
    RC_PRE(there.blockers().empty());
    there.execute(folder / "a.safetensors");
    const Model first = open(folder / "a.safetensors");
    const Plan over = plan(first, "zt");
    RC_PRE(over.possible());
    over.execute(folder / "a.zt");
    save(open(folder / "a.zt"), folder / "b.safetensors");
    RC_ASSERT(test::read_file(folder / "a.safetensors") == test::read_file(folder / "b.safetensors"));
  }));
}

constexpr std::string_view kOneTensor = "npy";

// A model that `from` can hold, with the architecture that `to` needs where `from` allows it.
Model a_model_for(std::string_view from, std::string_view to) {
  const auto seed = *rc::gen::inRange<std::uint64_t>(0, 1000);
  if (from == kOneTensor || to == kOneTensor) {
    Builder one;
    test::add_dense(one, from == kOneTensor ? from : to, "array", seed, {});
    return one.build();
  }
  const std::string_view wish = from == "embd" || from == "slm" ? from : to;
  const std::uint32_t heads = *rc::gen::inRange(1U, 4U), width = 2 * *rc::gen::inRange(1U, 4U);
  const std::uint32_t layers = *rc::gen::inRange(1U, 4U);
  const bool flip = *rc::gen::arbitrary<bool>();
  if (wish == "embd") {
    const std::uint64_t wide = width * 3U;
    return test::bert_model({heads * width, layers, heads, wide, 5U + width, 2U + width}, seed).build();
  }
  if (wish == "slm") return test::llama_model({heads * width, layers, heads, width * 3, 16, flip}, seed).build();
  return flip ? test::plain_model(seed).build() : a_model(from);
}

struct Pair {
  std::string from, to;
};
void PrintTo(const Pair& pair, std::ostream* out) { *out << pair.from << " to " << pair.to; }

class EveryPair : public ::testing::TestWithParam<Pair> {};

TEST_P(EveryPair, KeepsWhatNoLossNames) {
  const auto& [from, to] = GetParam();
  EXPECT_TRUE(test::holds(
      [&, from_name = from, to_name = to] {
        const test::TemporaryFolder folder;
        const Model model = a_model_for(from_name, to_name);
        const Plan into = plan(model, from_name, {.allow = test::every_loss()});
        RC_PRE(into.blockers().empty());
        into.execute(folder / "in");
        OpenOptions as;
        as.format = from_name;
        check_trip(open(folder / "in", {}, as), to_name, {}, threads(static_cast<unsigned>(*rc::gen::inRange(0, 3))));
      },
      20));
}

std::vector<Pair> every_pair() {
  std::vector<Pair> out;
  for (const FormatInfo& from : formats())
    for (const FormatInfo& to : formats())
      // No architecture fits into one tensor.
      if (from.writes && from.reads && to.writes && from.name != "hf" && to.name != "hf" &&
          !(from.name == kOneTensor && (to.name == "embd" || to.name == "slm")) &&
          !(to.name == kOneTensor && (from.name == "embd" || from.name == "slm")))
        out.push_back({std::string(from.name), std::string(to.name)});
  return out;
}
INSTANTIATE_TEST_SUITE_P(Formats, EveryPair, ::testing::ValuesIn(every_pair()),
                         [](const auto& pair) { return pair.param.from + "_to_" + pair.param.to; });

}  // namespace
}  // namespace weighbridge
