// SPDX-License-Identifier: Apache-2.0
// A witnessed source gives the same bytes as its file, and refuses those that changed after their first read.
#include "core/model/view.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "support/random.h"
#include "support/thrown.h"
#include "weighbridge/source.h"

namespace weighbridge::core {
namespace {

TEST(Witness, GivesTheBytesOfTheFileAtAnyOffset) {
  for (const std::size_t size : {0U, 1U, 65535U, 65536U, 65537U, 300000U}) {
    const std::vector<std::byte> bytes = test::noise(size);
    const auto source = witnessed(memory_source({bytes, nullptr}));
    for (const std::size_t offset : {0U, 1U, 65535U, 65536U, 131072U, 262144U, 299999U})
      for (const std::size_t length : {0U, 1U, 100U, 65536U, 65537U, 200000U}) {
        if (offset > size || length > size - offset) continue;
        std::vector<std::byte> out(length);
        source->read_at(offset, out);
        EXPECT_TRUE(std::equal(out.begin(), out.end(), bytes.begin() + static_cast<std::ptrdiff_t>(offset)))
            << size << " " << offset << " " << length;
      }
  }
}

TEST(Witness, BytesThatChangedAfterTheirFirstReadAreRefused) {
  std::vector<std::byte> bytes = test::noise(300000);
  const auto source = witnessed(memory_source({bytes, nullptr}, "file"));
  std::vector<std::byte> out(bytes.size());
  source->read_at(0, out);
  bytes[200000] ^= std::byte{1};
  const Finding found = test::thrown([&] { source->read_at(0, out); });
  EXPECT_EQ(found.rule, "io/changed");
  EXPECT_EQ(found.file.name, "file");
  EXPECT_EQ(test::thrown([&] { source->read_at(200001, std::span(out).first(1)); }).rule, "io/changed");
  bytes[200000] ^= std::byte{1};
  source->read_at(0, out);
}

}  // namespace
}  // namespace weighbridge::core
