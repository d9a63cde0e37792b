// SPDX-License-Identifier: Apache-2.0
// The small parts of the runtime: elementary functions, sampling, stop texts.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <vector>

#include "runtime/llama/numbers.h"
#include "runtime/llama/sampler.h"
#include "weighbridge/error.h"

namespace weighbridge::llama {
namespace {

TEST(Numbers, AreWithinAFewUnitsInTheLastPlace) {
  for (double x = -690; x < 600; x += 0.7371) EXPECT_NEAR(exponential(x) / std::exp(x), 1, 1e-14) << x;
  for (double x = 1e-300; x < 1e300; x *= 37.31)
    EXPECT_NEAR(logarithm(x), std::log(x), 1e-15 * std::max(1.0, std::fabs(std::log(x)))) << x;
  for (double x = 0; x < 1e6; x += 0.11 + x / 977) {
    EXPECT_NEAR(turn(x).cosine, std::cos(x), 1e-15) << x;
    EXPECT_NEAR(turn(x).sine, std::sin(x), 1e-15) << x;
  }
  EXPECT_EQ(exponential(0), 1);
  EXPECT_EQ(exponential(-1000), 0);
  EXPECT_EQ(logarithm(1), 0);
  EXPECT_EQ(turn(0).cosine, 1);
  EXPECT_EQ(turn(0).sine, 0);
}

// The share of each id in `draws` draws.
std::map<std::uint32_t, double> shares(const std::vector<float>& logits, Sampling sampling, int draws = 20000) {
  Sampler sampler(sampling);
  std::map<std::uint32_t, double> out;
  for (int i = 0; i < draws; ++i) out[sampler.draw(logits)] += 1.0 / draws;
  return out;
}

TEST(Sampler, DrawsInProportionToWhatTheTemperatureMakesOfTheLogits) {
  const std::vector<float> logits{0.0F, std::log(2.0F), std::log(5.0F)};
  auto plain = shares(logits, {.temperature = 1});
  EXPECT_NEAR(plain[0], 1.0 / 8, 0.01);
  EXPECT_NEAR(plain[1], 2.0 / 8, 0.01);
  EXPECT_NEAR(plain[2], 5.0 / 8, 0.01);
  auto cool = shares(logits, {.temperature = 0.5});
  EXPECT_NEAR(cool[2], 25.0 / 30, 0.01);
}

TEST(Sampler, KeepsTheTopKThenCutsAtTopP) {
  const std::vector<float> logits{0.0F, std::log(2.0F), std::log(5.0F), std::log(5.0F)};
  auto two = shares(logits, {.temperature = 1, .top_k = 2});
  EXPECT_EQ(two.size(), 2U);
  EXPECT_NEAR(two[2], 0.5, 0.02);
  // 5/13 is less than 0.4, so top_p needs the second likeliest too.
  EXPECT_EQ(shares(logits, {.temperature = 1, .top_p = 0.4}).size(), 2U);
  EXPECT_EQ(shares(logits, {.temperature = 1, .top_p = 0.01}).size(), 1U);
  EXPECT_EQ(shares(logits, {.temperature = 1, .top_p = 1}).size(), 4U);
  EXPECT_EQ(shares(logits, {.temperature = 1e-300}).size(), 2U);
}

TEST(Sampler, OfEqualOnesTheLowestIdIsTheLikeliest) {
  const std::vector<float> logits{1.0F, 3.0F, 3.0F, 2.0F};
  EXPECT_EQ(Sampler({}).draw(logits), 1U);
  EXPECT_EQ(Sampler({.temperature = 1, .top_k = 1}).draw(logits), 1U);
}

TEST(Sampler, OneSeedDrawsTheSame) {
  const std::vector<float> logits(300, 0.0F);
  Sampler a({.temperature = 1, .seed = 7}), b({.temperature = 1, .seed = 7}), c({.temperature = 1, .seed = 8});
  std::vector<std::uint32_t> of_a, of_b, of_c;
  for (int i = 0; i < 50; ++i) {
    of_a.push_back(a.draw(logits));
    of_b.push_back(b.draw(logits));
    of_c.push_back(c.draw(logits));
  }
  EXPECT_EQ(of_a, of_b);
  EXPECT_NE(of_a, of_c);
}

TEST(Sampler, NoLogitThatIsANumberGivesId0) {
  EXPECT_EQ(Sampler({.temperature = 1}).draw(std::vector<float>(3, std::numeric_limits<float>::quiet_NaN())), 0U);
}

TEST(Sampler, BoundsAreMisuse) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  for (const Sampling& bad : {Sampling{.temperature = -1}, Sampling{.temperature = nan}, Sampling{.top_k = 1025},
                              Sampling{.top_p = 0}, Sampling{.top_p = 1.01}, Sampling{.top_p = nan}})
    EXPECT_THROW(check_sampling(bad), Error);
  EXPECT_NO_THROW(check_sampling({.temperature = 2, .top_k = 1024, .top_p = 1}));
}

TEST(StopTexts, HoldBackWhatMayBeTheBeginningOfOne) {
  StopTexts stop({"END", "\n\n"});
  EXPECT_EQ(stop.push("one E"), "one ");
  EXPECT_EQ(stop.push("N"), "");
  EXPECT_EQ(stop.push("E"), "EN");
  EXPECT_EQ(stop.push("ND\n"), "");
  EXPECT_TRUE(stop.found());
  EXPECT_EQ(stop.push("more"), "");
  EXPECT_EQ(stop.finish(), "");
}

TEST(StopTexts, TheFirstOfSeveralCounts) {
  StopTexts stop({"bc", "b"});
  EXPECT_EQ(stop.push("aabc"), "aa");
  EXPECT_TRUE(stop.found());
}

TEST(StopTexts, WhatWasHeldBackComesAtTheEnd) {
  StopTexts stop({"xyz"});
  EXPECT_EQ(stop.push("abxy"), "ab");
  EXPECT_EQ(stop.finish(), "xy");
  EXPECT_FALSE(stop.found());
  EXPECT_THROW(StopTexts({""}), Error);
}

}  // namespace
}  // namespace weighbridge::llama
