// SPDX-License-Identifier: Apache-2.0
// Shared bytes against a plain count of every byte, on ranges of all kinds.
#include "core/payload/extents.h"
#include "core/writing/layout.h"

#include <gtest/gtest.h>

#include <map>
#include <random>
#include <string>

#include "core/model/draft.h"
#include "core/writing/plan_items.h"

namespace weighbridge::core {
namespace {

struct Visited {
  std::uint32_t item;
  Relation relation;
  std::uint32_t furthest;
  bool operator==(const Visited&) const = default;
};
std::vector<Visited> walk(std::vector<Range> ranges) {
  std::vector<Visited> out;
  Extents(std::move(ranges)).walk([&](const Range& range, Relation relation, const Range* furthest) {
    out.push_back({range.item, relation, furthest ? furthest->item : kNone});
  });
  return out;
}

TEST(Extents, TellAliasesFromOverlapsInTheOrderOfTheFile) {
  // A wide range, two equal ranges inside it, one that only touches it, one in another source.
  EXPECT_EQ(walk({{0, 50, 10, 3}, {0, 0, 100, 0}, {0, 50, 10, 1}, {0, 100, 5, 2}, {1, 60, 5, 4}, {0, 70, 0, 5}}),
            (std::vector<Visited>{{0, Relation::separate, kNone},
                                  {1, Relation::overlap, 0},
                                  {3, Relation::alias, 0},
                                  {2, Relation::separate, 0},
                                  {4, Relation::separate, kNone}}));
  // The range that ends last counts, not the previous one.
  EXPECT_EQ(
      walk({{0, 0, 100, 0}, {0, 10, 5, 1}, {0, 90, 20, 2}}),
      (std::vector<Visited>{{0, Relation::separate, kNone}, {1, Relation::overlap, 0}, {2, Relation::overlap, 0}}));
}

TEST(Extents, AgreeWithACountOfEveryByte) {
  std::mt19937 random(5);
  for (int round = 0; round < 2000; ++round) {
    std::vector<Range> ranges;
    for (std::uint32_t i = 0; i < 6; ++i)
      ranges.push_back({static_cast<std::uint32_t>(random() % 2), random() % 20, random() % 6, i});
    std::map<std::pair<std::uint32_t, std::uint64_t>, std::uint32_t> covered;
    const Extents extents(ranges);
    extents.walk([&](const Range& range, Relation relation, const Range*) {
      bool shares = false, same = false;
      for (std::uint64_t at = range.offset; at < range.end(); ++at) shares |= covered[{range.source, at}]++ > 0;
      for (const Range& other : ranges) same |= other.item < range.item && other.same_bytes(range);
      EXPECT_EQ(relation == Relation::separate, !shares);
      EXPECT_EQ(relation == Relation::alias, same);
    });
    std::uint64_t bytes = 0;
    for (const auto& [at, count] : covered) bytes += count > 0 ? 1 : 0;
    EXPECT_EQ(extents.distinct_bytes(), bytes);
  }
}

TEST(Extents, AliasesAreTheFirstPartWithTheSameExtent) {
  EXPECT_TRUE(sharing(Model()).first.empty());
  const std::string bytes = "abcd";
  const auto span = std::as_bytes(std::span(bytes));
  Builder stored;
  stored.tensor("x", DType::u8, {4}, {span, nullptr});
  stored.tensor("y", DType::u8, {2}, {span.first(2), nullptr});
  stored.tensor("empty", DType::u8, {0}, Bytes{});
  const Model from = stored.build();
  Builder adopted;
  adopted.tensor("a", from["x"]).tensor("b", from["y"]).tensor("c", from["x"]);
  adopted.tensor("d", from["empty"]).tensor("e", from["empty"]);
  const Model model = adopted.build();
  EXPECT_EQ(sharing(model).first, (std::vector<std::uint32_t>{0, 1, 0, 3, 4}));
}

// Regression: a conversion stored two tensors once although one was big-endian.
TEST(Extents, AliasesOfAnotherByteOrderOrAxisOrderAreOtherElements) {
  const std::string bytes(16, 'x');
  const std::uint64_t square[] = {2, 2}, flat[] = {4}, wide[] = {1, 4};
  Draft draft;
  const std::uint32_t source = draft.add_source(memory_source({std::as_bytes(std::span(bytes)), nullptr}));
  const auto add = [&](const char* name, DType dtype, Shape shape) {
    draft.add_tensor(name, Layout::dense, dtype, shape);
    return draft.add_part("data", dtype, shape, Encoding::raw, {source, 0, 16}, 16);
  };
  add("row", DType::f32, square);
  add("flat", DType::f32, flat);
  draft.part(add("big", DType::f32, square)).order(Order::big);
  draft.part(add("column", DType::f32, square)).strides({1, 2});
  draft.part(add("same column", DType::f32, square)).strides({1, 2});
  draft.part(add("other shape", DType::f32, wide)).strides({1, 2});
  add("integer", DType::i32, square);
  draft.index_names();
  const Model model = draft.finish();
  const auto same = [&](const char* x, const char* y) { return same_elements(model[x].main(), model[y].main()); };
  EXPECT_TRUE(same("row", "flat"));
  EXPECT_TRUE(same("column", "same column"));
  for (const char* const other : {"big", "column", "integer"}) EXPECT_FALSE(same("row", other)) << other;
  EXPECT_FALSE(same("column", "other shape"));
}

// Views of one storage: each is a part of a buffer that overlaps another.
Model views(std::uint32_t count, std::uint64_t size) {
  const auto memory = std::make_shared<std::vector<std::byte>>(size + count);
  Draft draft;
  const std::uint32_t source = draft.add_source(memory_source({*memory, memory}));
  const std::uint64_t dims[] = {size};
  for (std::uint32_t i = 0; i < count; ++i) {
    draft.add_tensor("view" + std::to_string(i), Layout::dense, DType::u8, dims);
    draft.add_part("data", DType::u8, dims, Encoding::raw, {source, i, size}, size);
  }
  draft.index_names();
  return draft.finish();
}

TEST(Extents, OverlapsAreKnownOfAModel) {
  const Sharing shared = sharing(views(3, 100));
  EXPECT_EQ(shared.first, (std::vector<std::uint32_t>{0, 1, 2}));
  EXPECT_EQ(shared.partly, (std::vector<std::uint32_t>{kNone, 0, 1}));
  EXPECT_EQ(shared.tensor, (std::vector<std::uint32_t>{0, 1, 2}));
  EXPECT_EQ(Extents::of(views(3, 100)).distinct_bytes(), 102U);
}

TEST(Extents, WritersNameThePartialCopies) {
  const Model model = views(3, 100);
  WriteLayout out;
  name_copies(PlanItems(out), model);
  ASSERT_EQ(out.losses.size(), 2U);
  EXPECT_EQ(out.losses[0].kind, LossKind::alias);
  EXPECT_EQ(out.losses[0].from, "some of the bytes of tensors[\"view0\"]");
  EXPECT_EQ(out.losses[1].to, "a copy of them");
}

}  // namespace
}  // namespace weighbridge::core
