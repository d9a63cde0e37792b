// SPDX-License-Identifier: Apache-2.0
// Parts that lie among others in one blob: every element comes out once and in order, in one pass or in several.
#include "core/payload/payload.h"

#include <gtest/gtest.h>

#include <array>
#include <string>

#include "base/checked.h"
#include "base/endian.h"
#include "core/model/draft.h"
#include "core/payload/extents.h"
#include "support/format_testing.h"
#include "weighbridge/source.h"

namespace weighbridge::core {
namespace {

constexpr std::uint64_t kRank = 3, kRecord = 8 * kRank + 4;

// A blob of records: three u64 and one f32 each. Both parts twice, as two tensors have them.
Model records(std::uint64_t count, bool coded) {
  std::string blob(base::to_size(count * kRecord), '\0');
  for (std::uint64_t i = 0; i < count; ++i) {
    char* const at = blob.data() + i * kRecord;
    for (std::uint64_t d = 0; d < kRank; ++d) base::store_le<std::uint64_t>(at + 8 * d, i * 7 + d);
    base::store_le<std::uint32_t>(at + 8 * kRank, static_cast<std::uint32_t>(i));
  }
  std::string stored = blob;
  if (coded) {
    const auto frame = codecs::encode(codecs::kZstd, std::as_bytes(std::span(blob)));
    stored.assign(reinterpret_cast<const char*>(frame.data()), frame.size());
  }
  Draft draft;
  draft.add_source(memory_source(test::bytes_of(stored)));
  const std::vector<std::uint64_t> values{count}, coords{kRank, count}, shape{count, count, count};
  const Encoding encoding = coded ? Encoding::zstd : Encoding::raw;
  for (const char* name : {"a", "b"}) {
    draft.add_tensor(name, Layout::sparse_coo, DType::f32, shape);
    const std::uint32_t v = draft.add_part("values", DType::f32, values, encoding, {0, 0, stored.size()}, 4 * count);
    draft.part(v).cut({.whole = blob.size(), .first = 8 * kRank, .step = kRecord});
    const std::uint32_t c =
        draft.add_part("coords", DType::u64, coords, encoding, {0, 0, stored.size()}, 8 * kRank * count);
    draft.part(c).cut({.whole = blob.size(), .first = 0, .step = kRecord, .row = 8});
  }
  draft.index_names();
  return draft.finish();
}

class CutOf : public testing::TestWithParam<bool> {};

TEST_P(CutOf, EveryElementComesOutOnceAndInOrder) {
  for (const std::uint64_t count : {std::uint64_t{0}, std::uint64_t{1}, std::uint64_t{1000}, std::uint64_t{300'000}}) {
    SCOPED_TRACE(count);
    const Model model = records(count, GetParam());
    const Part values = *model["a"].part("values"), coords = *model["a"].part("coords");
    if (count == 300'000) {
      EXPECT_GT(coords.size(), kPiece);
      EXPECT_EQ(cut_work(*cut_of(coords), coords), kRank * count * kRecord);
    }
    std::uint64_t at = 0, wrong = 0, total = 0;
    values.stream({}, [&](std::span<const std::byte> piece) {
      for (std::size_t i = 0; i < piece.size(); i += 4)
        wrong += base::load_le<std::uint32_t>(piece.data() + i) == at++ ? 0U : 1U;
      return true;
    });
    EXPECT_EQ(at, count);
    at = 0;
    coords.stream({}, [&](std::span<const std::byte> piece) {
      EXPECT_TRUE(piece.size() % 192 == 0 || total + piece.size() == coords.size());
      total += piece.size();
      for (std::size_t i = 0; i < piece.size(); i += 8, ++at)
        wrong += base::load_le<std::uint64_t>(piece.data() + i) == at % count * 7 + at / count ? 0U : 1U;
      return true;
    });
    EXPECT_EQ(at, kRank * count);
    EXPECT_EQ(wrong, 0U);
    if (count == 0) continue;
    std::array<std::byte, 8> last{};
    coords.read_range(kRank * count - 1, 1, last);
    EXPECT_EQ(base::load_le<std::uint64_t>(last.data()), (count - 1) * 7 + kRank - 1);
    EXPECT_EQ(place_in(*cut_of(coords), coords, count), 8U);  // the second row begins in the first record
  }
}

TEST_P(CutOf, AStreamStopsWhenItsSinkHasEnough) {
  const Model model = records(300'000, GetParam());
  int pieces = 0;
  const Part coords = *model["a"].part("coords");
  coords.stream({}, [&](std::span<const std::byte>) { return ++pieces < 1; });
  EXPECT_EQ(pieces, 1);
}

TEST_P(CutOf, PartsOfOneBlobShareItOnlyWithThoseOfAnotherTensor) {
  const Sharing shared = sharing(records(1000, GetParam()));
  EXPECT_EQ(shared.first, (std::vector<std::uint32_t>{0, 1, 0, 1}));
  EXPECT_EQ(shared.partly, std::vector<std::uint32_t>(4, kNone));
}

TEST_P(CutOf, ATruncatedBlobIsAnError) {
  const Model model = records(1000, GetParam());
  if (!GetParam()) return;
  Draft draft;
  const Bytes whole = model["a"].main().stored();
  draft.add_source(memory_source({whole.span.first(whole.span.size() - 9), whole.keep}));
  draft.add_tensor("a", Layout::sparse_coo, DType::f32, std::vector<std::uint64_t>{1000});
  const std::uint32_t v = draft.add_part("values", DType::f32, std::vector<std::uint64_t>{1000}, Encoding::zstd,
                                         {0, 0, whole.span.size() - 9}, 4000);
  draft.part(v).cut({.whole = 1000 * kRecord, .first = 8 * kRank, .step = kRecord});
  draft.index_names();
  const Model cut = draft.finish();
  EXPECT_THROW(cut["a"].main().stream({}, [](std::span<const std::byte>) { return true; }), Error);
}

INSTANTIATE_TEST_SUITE_P(RawAndCoded, CutOf, testing::Bool());

}  // namespace
}  // namespace weighbridge::core
