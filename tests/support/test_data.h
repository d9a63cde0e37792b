// SPDX-License-Identifier: Apache-2.0
// Published models that are not part of the repository, in the folder that WEIGHBRIDGE_TEST_DATA names, or beside the
// checkout in shared/data.
#pragma once
#include <cstdlib>
#include <filesystem>
#include <optional>
#include <string>

namespace weighbridge::test {

// The path of a file or folder of the test data; nullopt if it is missing. Tests run in the root of the sources.
inline std::optional<std::string> test_data(const std::string& relative) {
  const char* named = std::getenv("WEIGHBRIDGE_TEST_DATA");
  const std::filesystem::path root = named != nullptr ? named : "../shared/data";
  std::error_code ignored;
  if (!std::filesystem::exists(root / relative, ignored)) return std::nullopt;
  return (root / relative).string();
}

}  // namespace weighbridge::test

// Skips the test with a reason if the data is missing.
#define WB_REQUIRE_TEST_DATA(variable, relative)                                                            \
  const auto variable##_found = ::weighbridge::test::test_data(relative);                                   \
  if (!variable##_found) GTEST_SKIP() << relative << " is not in ../shared/data or $WEIGHBRIDGE_TEST_DATA"; \
  const std::string& variable = *variable##_found
