// SPDX-License-Identifier: Apache-2.0
// What a build says of itself has the form that it promises, and names what the kernels themselves chose.
#include "weighbridge/version.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>

#include "runtime/kernels/half.h"
#include "runtime/kernels/kernels.h"

namespace weighbridge {
namespace {

std::string taken(std::string_view of) {
  for (const CpuPath& path : cpu_paths())
    if (path.of == of) return std::string(path.taken);
  return "not listed";
}

TEST(Version, IsThreeNumbers) {
  EXPECT_EQ(std::count(version().begin(), version().end(), '.'), 2);
  EXPECT_EQ(version().find_first_not_of("0123456789."), std::string_view::npos);
}

TEST(Version, NamesACommitOrSaysThatItIsUnknown) {
  if (commit() == "unknown") return;
  EXPECT_EQ(commit().size(), 40U);
  EXPECT_EQ(commit().find_first_not_of("0123456789abcdef"), std::string_view::npos);
}

TEST(Version, ListsEachPathOnceWithWhatWasChosen) {
  std::set<std::string_view> seen;
  for (const CpuPath& path : cpu_paths()) {
    EXPECT_TRUE(seen.insert(path.of).second) << path.of;
    EXPECT_FALSE(path.taken.empty()) << path.of;
  }
  EXPECT_EQ(taken("kernels"), kernels::kernels().name);
  EXPECT_EQ(taken("half") == "none", kernels::half_kernels() == nullptr);
  EXPECT_FALSE(compiler().empty());
}

TEST(Version, ListsTheLibrariesInsideWithVersionsOfTheirOwn) {
  std::set<std::string_view> seen;
  for (const Library& library : libraries()) {
    EXPECT_TRUE(seen.insert(library.name).second) << library.name;
    EXPECT_EQ(library.version.find_first_not_of("0123456789."), std::string_view::npos) << library.version;
  }
  for (const std::string_view name : {"OpenSSL", "zstd", "zlib", "xxHash", "fmt", "fast_float"})
    EXPECT_TRUE(seen.contains(name)) << name;
}

// An instruction set is whole or absent: a processor that hashes sixteen messages at once copies with AVX-512, too.
TEST(Version, PathsOfOneProcessorAgree) {
  if (taken("sha256-lanes") == "avx512") {
    EXPECT_EQ(taken("xxh3"), "avx512");
  }
  if (taken("half") == "avx512fp16") {
    EXPECT_TRUE(taken("kernels").starts_with("avx512")) << taken("kernels");
  }
}

}  // namespace
}  // namespace weighbridge
