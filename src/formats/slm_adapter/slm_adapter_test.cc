// SPDX-License-Identifier: Apache-2.0
// Adapter packages: what the reader makes of each kind, and that a shared payload is one.
#include <gtest/gtest.h>

#include "formats/slm_adapter/format.h"
#include "support/format_testing.h"

namespace weighbridge::slm_adapter {
namespace {

test::Outcome walk(std::string_view name) { return test::walk(kFormat, test::case_of(cases(), name).bytes); }

TEST(SlmAdapter, ADenseDeltaIsADenseTensor) {
  const auto out = walk("valid-dense");
  EXPECT_EQ(out.report.total(), 0U);
  ASSERT_EQ(out.model.size(), 1U);
  const Tensor tensor = out.model[0U];
  EXPECT_EQ(tensor.name(), "#000000000000aaaa");
  EXPECT_EQ(tensor.id(), 0xaaaaU);
  EXPECT_EQ(tensor.layout(), Layout::dense);
  EXPECT_EQ(tensor.main().size(), 16U);
}

TEST(SlmAdapter, SparseAndLowRankDeltasKeepTheirParts) {
  const auto sparse = walk("valid-sparse"), low_rank = walk("valid-low-rank");
  EXPECT_EQ(sparse.model[0U].layout_name(), kSparseLayout);
  EXPECT_EQ(sparse.model[0U].part(kIndices)->count(), 2U);
  EXPECT_EQ(low_rank.model[0U].layout_name(), kLowRankLayout);
  EXPECT_EQ(low_rank.model[0U].part(kA)->shape()[0], 3U);
  EXPECT_EQ(low_rank.model[0U].part(kB)->shape()[1], 2U);
}

TEST(SlmAdapter, TheIdentityOfTheBaseStandsInAttributes) {
  const auto out = walk("valid-dense");
  const auto number = [&](const char* key) { return out.model.attributes().find(key)->as_u64(); };
  EXPECT_EQ(number("slm-adapter.base_tensor_count"), 12U);
  EXPECT_EQ(number("slm-adapter.base_parameter_count"), 4824U);
  EXPECT_EQ(number("slm-adapter.base_directory_identity"), 0x3333U);
  EXPECT_EQ(out.model.checksums().size(), 2U);
}

TEST(SlmAdapter, EqualRangesAreOnePayload) {
  const auto out = walk("valid-shared");
  EXPECT_EQ(out.report.total(), 0U);
  EXPECT_EQ(out.model[0U].main().extent(), out.model[1U].main().extent());
}

}  // namespace
}  // namespace weighbridge::slm_adapter
