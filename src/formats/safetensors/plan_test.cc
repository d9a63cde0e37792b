// SPDX-License-Identifier: Apache-2.0
// Sizes that no safetensors file can have.
#include <gtest/gtest.h>

#include "base/checked.h"
#include "core/writing/layout.h"
#include "formats/safetensors/format.h"
#include "formats/safetensors/layout.h"
#include "support/items.h"
#include "support/thrown.h"

namespace weighbridge::safetensors {
namespace {

using test::text_of;
std::size_t none(std::uint64_t, std::span<std::byte>) { return 0; }

TEST(SafetensorsPlan, SizesPast2To64AreBlockers) {
  Builder bits;
  bits.tensor("x", DType::u8, {std::uint64_t{1} << 61}, none);
  EXPECT_EQ(text_of(layout(bits.build(), {}).blockers), "tensors[\"x\"]: its shape -> more than 2^64 - 1 bits\n");
  Builder sum;
  for (char name = 'a'; name < 'j'; ++name)
    sum.tensor(std::string(1, name), DType::u8, {(std::uint64_t{1} << 61) - 1}, none);
  EXPECT_EQ(text_of(layout(sum.build(), {}).blockers), "tensors[\"h\"]: its size -> more than 2^64 - 1 bytes in all\n");
}

TEST(SafetensorsPlan, AHeaderPastItsLimitIsABlocker) {
  Builder builder;
  builder.attribute("long", Value::text(std::string(base::to_size(kMaxHeader), 'x')));
  const core::WriteLayout made = layout(builder.build(), {});
  ASSERT_EQ(made.blockers.size(), 1U);
  EXPECT_EQ(made.blockers[0].subject, "tensors");
  EXPECT_EQ(made.blockers[0].to, "more than the 100000000 that safetensors allows");
  EXPECT_TRUE(made.head.empty());
}

TEST(SafetensorsPlan, CastsToIntegersAndToUnknownFloatsAreMisuse) {
  Options options;
  options.cast = DType::i8;
  EXPECT_EQ(test::thrown([&] { core::check_written(kFormat, options); }).rule, "misuse/cast");
}

}  // namespace
}  // namespace weighbridge::safetensors
