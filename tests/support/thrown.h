// SPDX-License-Identifier: Apache-2.0
// The finding that a call throws, and the rules of a report, for tests that look at rule and message.
#pragma once
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "weighbridge/error.h"

namespace weighbridge::test {

template <class Call> Finding thrown(Call call) {
  try {
    call();
  } catch (const Error& error) {
    const FileRef& file = error.finding().file;
    EXPECT_STREQ(error.what(), ((file.empty() ? "" : file.name + ": ") + error.finding().message).c_str());
    EXPECT_EQ(error.kind(), error.finding().kind);
    return error.finding();
  }
  ADD_FAILURE() << "no Error was thrown";
  return {};
}

inline std::vector<std::string> rules_of(const Report& report) {
  std::vector<std::string> out;
  for (const Finding& finding : report.findings()) out.push_back(finding.rule);
  return out;
}

}  // namespace weighbridge::test
