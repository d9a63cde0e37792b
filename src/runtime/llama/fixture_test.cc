// SPDX-License-Identifier: Apache-2.0
// Fixtures have the published counts and sizes (reading M19).
#include <gtest/gtest.h>

#include "support/temporary_folder.h"
#include "weighbridge/slm.h"
#include "weighbridge/verify.h"

namespace weighbridge::slm {
namespace {

std::uint64_t parameters(const Model& model) {
  std::uint64_t out = 0;
  for (std::uint32_t i = 0; i < model.size(); ++i) out += model[i].main().count();
  return out;
}

std::uint64_t planned_size(Fixture kind, const std::string& quantize) {
  Options options;
  options.quantize = quantize;
  options.slm.quantize_norms = true;
  const Plan p = plan(fixture(kind), "slm", options);
  EXPECT_TRUE(p.blockers().empty());
  EXPECT_TRUE(p.output_size_exact());
  return p.output_size();
}

TEST(Fixture, HasThePublishedCounts) {
  EXPECT_EQ(fixture(Fixture::tiny).size(), 12U);
  EXPECT_EQ(parameters(fixture(Fixture::tiny)), 4824U);
  const Tensor embeddings = fixture(Fixture::tiny)["tok_embeddings.weight"];
  EXPECT_EQ(embeddings.shape()[0], 260U);
  EXPECT_EQ(fixture(Fixture::tiny_tied).size(), 11U);
  EXPECT_EQ(parameters(fixture(Fixture::tiny_tied)), 2744U);
  EXPECT_EQ(fixture(Fixture::tinylm16m).size(), 39U);
  EXPECT_EQ(parameters(fixture(Fixture::tinylm16m)), 17'048'064U);
}

TEST(Fixture, HasThePublishedSizes) {
  EXPECT_EQ(planned_size(Fixture::tinylm16m, ""), 68'194'944U);
  EXPECT_EQ(planned_size(Fixture::tinylm16m, "q8_0"), 17'160'000U);
  EXPECT_EQ(planned_size(Fixture::tinylm16m, "q4_0"), 10'657'728U);
}

TEST(Fixture, IsSoundAndTheSameEachTime) {
  for (const Fixture kind : {Fixture::tiny, Fixture::tiny_tied, Fixture::tiny_bpe}) {
    const test::TemporaryFolder folder;
    for (const char* quantize : {"", "q8_0", "q4_0"}) {
      Options options;
      options.quantize = quantize;
      options.slm.quantize_norms = true;
      options.replace = true;
      plan(fixture(kind), "slm", options).execute(folder / "a.slm");
      plan(fixture(kind), "slm", options).execute(folder / "b.slm");
      EXPECT_EQ(test::read_file(folder / "a.slm"), test::read_file(folder / "b.slm"));
      const Verdict verdict = verify(folder / "a.slm");
      EXPECT_EQ(verdict.report.total(), 0U) << name(kind) << " " << quantize;
    }
  }
}

TEST(Fixture, IsKnownByItsName) {
  EXPECT_EQ(fixture_from_name("tiny-tied"), Fixture::tiny_tied);
  EXPECT_EQ(fixture_from_name("tinier"), std::nullopt);
}

}  // namespace
}  // namespace weighbridge::slm
