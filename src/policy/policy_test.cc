// SPDX-License-Identifier: Apache-2.0
// What policies can say, and how the demands sort what verify finds. tests/cli/test_check.py has a file for each
// demand.
#include "weighbridge/policy.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include "support/thrown.h"

namespace weighbridge {
namespace {

std::string refused(std::string_view json) {
  const Finding found = test::thrown([&] { read_policy(json); });
  EXPECT_EQ(found.rule, "misuse/policy");
  return found.message;
}

TEST(Policy, AnUnknownKeyOrWordNamesTheNearest) {
  EXPECT_EQ(refused("{\n\"dtype\": []}"),
            "line 2 of the policy, at dtype: a policy has no such key; the nearest is \"dtypes\"");
  EXPECT_TRUE(refused(R"({"dtypes": ["f16", "f15"]})")
                  .starts_with("line 1 of the policy, at dtypes[1]: dtypes cannot have \"f15\"; the near"));
  EXPECT_EQ(refused(R"({"limits": {"headr": 1}})"),
            "line 1 of the policy, at limits.headr: there is no such limit; the nearest is \"header\"");
  EXPECT_NE(refused(R"({"colour": "blue"})").find("there are description, limits, globals, code, "), std::string::npos);
  EXPECT_NE(refused(R"({"formats": ["tensorflow"]})").find("; there are safetensors, gguf, "), std::string::npos);
  EXPECT_NE(refused(R"({"code": ["hf/programm"]})").find("\"hf/program\""), std::string::npos);
}

TEST(Policy, WhatIsNoPolicyIsRefused) {
  for (const std::string_view json :
       {"", "[]", "{", "{} x", R"({"code": true})", R"({"code": [1]})", R"({"complete": 1})", R"({"max_nan": -1})",
        R"({"max_size": "5 apples"})", R"({"max_size": 1, "max_size": 1})", R"({"shapes": {"a": [1], "a": [2]}})",
        R"({"shapes": {"a": 1}})", R"({"shapes": {"a": ["1"]}})", R"({"limits": {"depth": 5000}})",
        R"({"sha256": ["AB"]})", R"({"content": ["wb3:00"]})", R"({"description": 3})", "{\"code\": [\"\xff\"]}"})
    EXPECT_TRUE(refused(json).starts_with("line 1 of the policy")) << json;
}

TEST(Policy, AWrongTypeNamesItsPlaceAndWhatIsAllowed) {
  constexpr std::pair<std::string_view, std::string_view> kCases[] = {
      {"[]", ": expected an object, whose keys are demands, found a list"},
      {R"({"code": "hf/program"})", ", at code: expected a list of texts, found a text"},
      {R"({"code": ["hf/program", 1]})", ", at code[1]: expected a text, found a number"},
      {R"({"complete": 1})", ", at complete: expected true or false, found a number"},
      {R"({"description": null})", ", at description: expected a text, found null"},
      {R"({"max_size": [1]})", ", at max_size: expected a whole number, or a size such as \"5GB\", found a list"},
      {R"({"limits": ["header"]})", ", at limits: expected an object of limits, found a list"},
      {R"({"limits": {"header": true}})",
       ", at limits.header: expected a whole number, or a size such as \"5GB\", found true or false"},
      {R"({"shapes": {"a.b": 1}})", ", at shapes[\"a.b\"]: expected a list of dimensions, found a number"},
      {R"({"shapes": {"a": [1, "2"]}})", ", at shapes[\"a\"][1]: expected a whole number, found a text"},
      {R"({"shapes": {"a": [1], "b": [1], "a": [2]}})", ", at shapes[\"a\"]: the key is there twice"},
      {R"({"max_nan": 0, "max_nan": 0})", ", at max_nan: the key is there twice"},
      {R"({"sha256": ["AB"]})", ", at sha256[0]: expected 64 lower-case hexadecimal digits, found \"AB\""},
  };
  for (const auto& [json, said] : kCases) EXPECT_EQ(refused(json), "line 1 of the policy" + std::string(said));
}

TEST(Policy, DemandsAreInTheOrderOfTheTableAndAToggleThatIsFalseIsNone) {
  const Policy policy = read_policy(R"({"$schema": "x", "description": "d", "max_nan": 0, "code": [], "complete": false,
                                       "limits": {"header": "2KiB", "tensors": 7}})");
  ASSERT_EQ(policy.demands.size(), 3U);
  EXPECT_EQ(policy.demands[0].key, "limits");
  EXPECT_EQ(policy.demands[0].numbers[0].second, std::vector<std::uint64_t>{2048});
  EXPECT_EQ(policy.demands[1].key, "code");
  EXPECT_EQ(policy.demands[2].key, "max_nan");
  EXPECT_EQ(policy.description, "d");
}

TEST(Policy, PublishTakesAHeaderOfAtMost100MB) {
  const Policy policy = read_policy(ready_policy("publish"));
  const auto limits = std::ranges::find(policy.demands, std::string_view("limits"), &Demand::key);
  ASSERT_NE(limits, policy.demands.end());
  EXPECT_EQ(limits->numbers[0].first, "header");
  EXPECT_EQ(limits->numbers[0].second, std::vector<std::uint64_t>{100'000'000});
}

TEST(Policy, TheReadyOnesAreReadAndEachDemandsWhatTheOneBeforeDoes) {
  std::set<std::string_view> before;
  for (const std::string_view name : ready_policies()) {
    std::set<std::string_view> keys;
    for (const Demand& each : read_policy(ready_policy(name)).demands) keys.insert(each.key);
    EXPECT_TRUE(std::ranges::includes(keys, before)) << name;
    before = keys;
  }
  EXPECT_EQ(ready_policy("nothing"), "");
}

TEST(Policy, AModelWithMoreTensorsThanAReportKeepsIsCounted) {
  std::string header = "{";
  for (int i = 0; i < 1500; ++i)
    header += (i == 0 ? "\"t" : ",\"t") + std::to_string(i) + R"(":{"dtype":"U8","shape":[0],"data_offsets":[0,0]})";
  header += "}";
  std::string file(8, '\0');
  for (std::size_t i = 0; i < 8; ++i) file[i] = static_cast<char>(header.size() >> (8 * i));
  file += header;
  const auto place = place_of(memory_source({std::as_bytes(std::span(file)), nullptr}, "m.safetensors"));
  const PolicyVerdict found = check(place, read_policy(R"({"dtypes": ["f16"]})"));
  EXPECT_EQ(found.breached, 1500U);
  EXPECT_EQ(found.breaches.size(), Report::kMaxFindings);
  EXPECT_TRUE(check(place, read_policy(R"({"dtypes": ["u8"]})")).passed());
  EXPECT_TRUE(check(place, read_policy("{}")).passed());
}

}  // namespace
}  // namespace weighbridge
