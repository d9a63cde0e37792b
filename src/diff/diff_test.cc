// SPDX-License-Identifier: Apache-2.0
// What diff() finds between models from memory: each change alone, their numbers, what counts as equal.
#include "weighbridge/diff.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "core/model/draft.h"
#include "support/last_call.h"
#include "support/option_samples.h"
#include "support/thrown.h"

namespace weighbridge {
namespace {

using test::thrown;
using Verdict = TensorDiff::Verdict;
using Numbers = std::vector<float>;

template <class T> Bytes bytes_of(const std::vector<T>& values) {
  const auto held = std::make_shared<const std::vector<T>>(values);
  return {std::as_bytes(std::span(*held)), held};
}

struct Named {
  std::string name;
  std::vector<std::uint64_t> shape;
  Numbers values;
};
Model model_of(const std::vector<Named>& tensors) {
  Builder builder;
  for (const Named& each : tensors) builder.tensor(each.name, DType::f32, each.shape, bytes_of(each.values));
  return builder.build();
}
Model one(const Numbers& values) { return model_of({{"w", {values.size()}, values}}); }

Numbers random_numbers(std::size_t n, unsigned seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal;
  Numbers out(n);
  for (float& value : out) value = normal(random);
  return out;
}

// Models that produce their bytes when they are read have parts that are not direct.
Model streamed(const std::vector<Named>& tensors) {
  Builder builder;
  for (const Named& each : tensors) {
    const auto held = std::make_shared<const Numbers>(each.values);
    builder.tensor(each.name, DType::f32, each.shape, [held](std::uint64_t offset, std::span<std::byte> out) {
      const auto bytes = std::as_bytes(std::span(*held));
      const auto n = std::min<std::size_t>({out.size(), bytes.size() - static_cast<std::size_t>(offset), 1000});
      if (n > 0) std::memcpy(out.data(), bytes.data() + offset, n);
      return n;
    });
  }
  return builder.build();
}

TEST(Diff, AModelIsEqualToItself) {
  const Model model = model_of({{"a", {2, 3}, {1, 2, 3, 4, 5, 6}}, {"b", {1}, {std::nanf("")}}, {"none", {0}, {}}});
  const Diff found = diff(model, model);
  EXPECT_TRUE(found.equal());
  EXPECT_FALSE(found.differs());
  EXPECT_EQ(found.same, 3u);
  EXPECT_EQ(found.compared, 3u);
  EXPECT_EQ(found.bytes, 28u);
  EXPECT_TRUE(found.tensors.empty());
  EXPECT_TRUE(diff(model, streamed({{"a", {2, 3}, {1, 2, 3, 4, 5, 6}}, {"b", {1}, {std::nanf("")}}, {"none", {0}, {}}}))
                  .equal());
  EXPECT_TRUE(diff(Model(), Model()).equal());
}

TEST(Diff, NumbersOfAChange) {
  const Diff found = diff(one({1, 2, 0, -4}), one({1, 2.5, 0.25, -4}));
  ASSERT_EQ(found.tensors.size(), 1u);
  EXPECT_EQ(found.different, 1u);
  const TensorDiff& t = found.tensors[0];
  EXPECT_EQ(t.verdict, Verdict::different);
  EXPECT_TRUE(t.changed);
  ASSERT_TRUE(t.values);
  EXPECT_EQ(t.values->changed, 2u);
  EXPECT_EQ(t.values->max_abs, 0.5);
  EXPECT_EQ(t.values->max_relative, 0.25);
  EXPECT_DOUBLE_EQ(t.values->rms, std::sqrt(0.3125 / 4));
  EXPECT_DOUBLE_EQ(t.values->relative_rms, std::sqrt(0.3125 / 21));
  EXPECT_DOUBLE_EQ(t.values->cosine, 22 / std::sqrt(21 * (1 + 6.25 + 0.0625 + 16)));
  EXPECT_DOUBLE_EQ(t.values->snr, 10 * std::log10(21 / 0.3125));
  EXPECT_EQ(t.values->first, 1u);
  EXPECT_EQ(t.values->largest, 1u);
}

TEST(Diff, ZerosOfBothSignsAreEqualUnlessBitsDecide) {
  const Model plus = one({0, 1}), minus = one({-0.0F, 1});
  const Diff found = diff(plus, minus);
  EXPECT_TRUE(found.equal());
  ASSERT_EQ(found.tensors.size(), 1u);
  EXPECT_TRUE(found.tensors[0].bits_only);
  EXPECT_EQ(found.same, 0u);
  EXPECT_EQ(diff(plus, minus, {.exact = true}).different, 1u);
}

TEST(Diff, ANaNAgainstANumberIsAChangeThatSpoilsNoNumber) {
  const float nan = std::nanf(""), inf = std::numeric_limits<float>::infinity();
  const Diff found = diff(one({nan, nan, 1, inf}), one({nan, 2, 1.5, -inf}));
  ASSERT_EQ(found.tensors.size(), 1u);
  const ValueDiff& values = *found.tensors[0].values;
  EXPECT_EQ(values.changed, 3u);
  EXPECT_EQ(values.nans, 1u);
  EXPECT_EQ(values.infinite, 1u);
  EXPECT_EQ(values.rms, 0.5);
  EXPECT_EQ(values.first, 1u);
}

TEST(Diff, ARecastWithoutLossIsADifferenceUnlessValuesDecide) {
  Builder builder;
  builder.tensor("w", DType::bf16, {2}, bytes_of(std::vector<std::uint16_t>{0x3f80, 0x4000}));
  const Model half = builder.build(), whole = one({1, 2});
  const Diff found = diff(half, whole);
  ASSERT_EQ(found.different, 1u);
  EXPECT_TRUE(found.tensors[0].recast);
  EXPECT_FALSE(found.tensors[0].changed);
  EXPECT_EQ(found.tensors[0].values->changed, 0u);
  EXPECT_TRUE(diff(half, whole, {.atol = 0.0}).equal());
  EXPECT_FALSE(diff(half, one({1, 2.5}), {.atol = 0.0}).equal());
}

TEST(Diff, WithinATolerance) {
  const Model a = one({1, 100}), b = one({1.01F, 101});
  EXPECT_TRUE(diff(a, b, {.atol = 1.0}).equal());
  EXPECT_TRUE(diff(a, b, {.rtol = 0.01}).equal());
  EXPECT_EQ(diff(a, b, {.rtol = 0.01}).tensors[0].values->beyond, 0u);
  const Diff found = diff(a, b, {.atol = 0.1});
  EXPECT_EQ(found.different, 1u);
  EXPECT_EQ(found.tensors[0].values->beyond, 1u);
  EXPECT_EQ(found.tensors[0].values->changed, 2u);
  EXPECT_EQ(thrown([&] { diff(a, b, {.atol = -1.0}); }).rule, "misuse/option");
  EXPECT_EQ(thrown([&] { diff(a, b, {.atol = 1.0, .exact = true}); }).rule, "misuse/option");
}

TEST(Diff, WhatOnlyOneOfThemHas) {
  const Diff found =
      diff(model_of({{"a", {1}, {1}}, {"c", {2}, {1, 2}}}), model_of({{"a", {1}, {1}}, {"b", {3}, {1, 2, 3}}}));
  EXPECT_EQ(found.different, 2u);
  EXPECT_EQ(found.compared, 1u);
  EXPECT_EQ(found.tensors[0].verdict, Verdict::only_a);
  EXPECT_EQ(found.tensors[0].name_a, "c");
  EXPECT_EQ(found.tensors[1].verdict, Verdict::only_b);
}

TEST(Diff, RenamedByContent) {
  const Diff found = diff(model_of({{"a", {2, 1}, {1, 2}}, {"b", {2, 1}, {3, 4}}}),
                          model_of({{"x", {2, 1}, {3, 4}}, {"y", {2, 1}, {1, 2}}}));
  ASSERT_EQ(found.different, 2u);
  EXPECT_EQ(found.tensors[0].name_b, "y");
  EXPECT_TRUE(found.tensors[0].renamed);
  EXPECT_FALSE(found.tensors[0].changed);
  EXPECT_EQ(found.tensors[0].by, TensorDiff::By::content);
  EXPECT_EQ(diff(model_of({{"a", {1}, {1}}}), model_of({{"x", {1}, {1}}}), {.match = Match::names}).compared, 0u);
}

TEST(Diff, RenamedByAMapIsNoDifference) {
  const Model a = model_of({{"model.a", {1}, {1}}, {"model.b", {1}, {2}}}),
              b = model_of({{"a", {1}, {1}}, {"b", {1}, {2}}});
  DiffOptions options;
  options.add("rename", "s/^model\\.//");
  EXPECT_TRUE(diff(a, b, options).equal());
  DiffOptions names;
  names.add("rename", "model.a=a");
  names.add("rename", "model.b=b");
  EXPECT_TRUE(diff(a, b, names).equal());
  EXPECT_EQ(thrown([&] { names.add("rename", "s/(/x/"); }).rule, "misuse/option");
  DiffOptions nothing;
  nothing.add("rename", "s/nothing/x/");
  EXPECT_EQ(thrown([&] { diff(a, b, nothing); }).rule, "misuse/nothing-matches");
  names.add("rename", "s/x=y");  // a name, not a pattern
  EXPECT_EQ(names.rename.back().from, "s/x");
}

TEST(Diff, GuessedByAPrefixAndSaidSo) {
  const Diff found = diff(model_of({{"model.a", {2}, {1, 2}}, {"model.b", {2}, {3, 4}}, {"c", {1}, {0}}}),
                          model_of({{"a", {2}, {1, 2.5}}, {"b", {2}, {3, 5}}, {"c", {1}, {0}}}));
  ASSERT_EQ(found.different, 2u);
  EXPECT_EQ(found.tensors[0].by, TensorDiff::By::guess);
  EXPECT_EQ(found.tensors[0].name_b, "a");
  EXPECT_TRUE(found.tensors[0].changed);
  EXPECT_EQ(diff(model_of({{"q", {3, 1}, {1, 2, 3}}}), model_of({{"z", {3, 1}, {1, 2, 4}}})).tensors[0].by,
            TensorDiff::By::guess);
}

TEST(Diff, ReshapedAndTransposed) {
  const Diff flat = diff(model_of({{"w", {2, 3}, {1, 2, 3, 4, 5, 6}}}), model_of({{"w", {6}, {1, 2, 3, 4, 5, 6}}}));
  ASSERT_EQ(flat.different, 1u);
  EXPECT_TRUE(flat.tensors[0].reshaped);
  EXPECT_FALSE(flat.tensors[0].changed);
  const Diff turned =
      diff(model_of({{"w", {2, 3}, {1, 2, 3, 4, 5, 6}}}), model_of({{"w", {3, 2}, {1, 4, 2, 5, 3, 6.5}}}));
  ASSERT_EQ(turned.different, 1u);
  EXPECT_TRUE(turned.tensors[0].transposed);
  EXPECT_EQ(turned.tensors[0].values->changed, 1u);
  EXPECT_EQ(turned.tensors[0].values->first, 5u);
  const Diff in_order =
      diff(model_of({{"w", {2, 3}, {1, 2, 3, 4, 5, 6}}}), model_of({{"w", {3, 2}, {1, 2, 3, 4, 5, 6}}}));
  EXPECT_FALSE(in_order.tensors[0].transposed);
  EXPECT_FALSE(in_order.tensors[0].changed);
  const Diff other = diff(model_of({{"w", {2}, {1, 2}}}), model_of({{"w", {3}, {1, 2, 3}}}));
  EXPECT_FALSE(other.tensors[0].values);
  EXPECT_EQ(other.tensors[0].why, "2 elements became 3");
}

TEST(Diff, RowsInTheOrderOfARotationAreFoundWhenAsked) {
  const std::uint64_t heads = 3, head = 8, columns = 5, rows = heads * head;
  const Numbers halves = random_numbers(rows * columns, 5);
  Numbers neighbors(halves.size());
  for (std::uint64_t r = 0; r < rows; ++r) {
    const std::uint64_t in = r % head, to = r - in + 2 * (in % (head / 2)) + in / (head / 2);
    std::copy_n(halves.begin() + static_cast<std::ptrdiff_t>(r * columns), columns,
                neighbors.begin() + static_cast<std::ptrdiff_t>(to * columns));
  }
  const Model a = model_of({{"q", {rows, columns}, halves}}), b = model_of({{"q", {rows, columns}, neighbors}});
  EXPECT_FALSE(diff(a, b).tensors[0].permuted);
  EXPECT_TRUE(diff(a, b).tensors[0].changed);
  const Diff found = diff(a, b, {.permuted = true});
  ASSERT_EQ(found.tensors.size(), 1u);
  EXPECT_TRUE(found.tensors[0].permuted);
  EXPECT_FALSE(found.tensors[0].changed);
  EXPECT_EQ(found.tensors[0].order, "halves of heads of 8 became neighbors");
  EXPECT_EQ(diff(b, a, {.permuted = true}).tensors[0].order, "neighbors in heads of 8 became halves");
  Numbers turned = halves;
  std::rotate(turned.begin(), turned.begin() + columns, turned.end());
  const Diff any = diff(a, model_of({{"q", {rows, columns}, turned}}), {.permuted = true});
  EXPECT_TRUE(any.tensors[0].permuted);
  EXPECT_EQ(any.tensors[0].order, "");
  turned[3] += 1;
  EXPECT_FALSE(diff(a, model_of({{"q", {rows, columns}, turned}}), {.permuted = true}).tensors[0].permuted);
}

TEST(Diff, PermutedRowsAreFoundUnderAnotherNameToo) {
  const std::uint64_t rows = 8, columns = 4;
  const auto turned = [](Numbers values, std::ptrdiff_t by) {
    std::rotate(values.begin(), values.begin() + by * 4, values.end());
    return values;
  };
  const Numbers q = random_numbers(rows * columns, 1), k = random_numbers(rows * columns, 2),
                x = random_numbers(rows * columns, 3), y = random_numbers(rows * columns, 4);
  const std::vector<std::uint64_t> shape{rows, columns};
  const Model a = model_of({{"q", shape, q}, {"k", shape, k}, {"x", shape, x}}),
              b = model_of({{"kk", shape, turned(k, 3)}, {"qq", shape, turned(q, 2)}, {"y", shape, y}});
  EXPECT_EQ(diff(a, b).compared, 0u);
  EXPECT_EQ(diff(a, b, {.match = Match::names, .permuted = true}).compared, 0u) << "asked not to look";
  for (const Match match : {Match::content, Match::guess}) {
    const Diff found = diff(a, b, {.match = match, .permuted = true});
    ASSERT_GE(found.tensors.size(), 3u);
    for (const std::size_t i : {0U, 1U}) {
      EXPECT_EQ(found.tensors[i].name_b, i == 0 ? "qq" : "kk");
      EXPECT_EQ(found.tensors[i].by, TensorDiff::By::content);
      EXPECT_TRUE(found.tensors[i].permuted);
      EXPECT_FALSE(found.tensors[i].changed);
    }
    EXPECT_FALSE(found.tensors[2].permuted);  // x, whose rows no tensor has
  }
}

TEST(Diff, RowsInAnyOrderAreNotLookedForBeyondTheLimitOfWork) {
  Builder a, b;
  const Numbers values = random_numbers(1 << 12, 1);
  const Bytes bytes = bytes_of(values);
  for (int i = 0; i < 64; ++i) {
    const std::string n = std::to_string(i);
    a.tensor("a" + n, DType::f32, std::vector<std::uint64_t>{1 << 6, 1 << 6}, bytes);
    b.tensor("b" + n, DType::f32, std::vector<std::uint64_t>{1 << 6, 1 << 6}, bytes_of(random_numbers(1 << 12, 2)));
  }
  Context context;
  context.limits.work = 1 << 16;
  EXPECT_EQ(thrown([&] { diff(a.build(), b.build(), {.permuted = true}, context); }).rule, "limit/work");
}

TEST(Diff, SquaresThatWereTransposedAndTiedTensorsAreFoundWhenAsked) {
  const Model a = model_of({{"w", {2, 2}, {1, 2, 3, 4}}}), b = model_of({{"w", {2, 2}, {1, 3, 2, 4}}});
  EXPECT_FALSE(diff(a, b).tensors[0].transposed);
  EXPECT_TRUE(diff(a, b, {.permuted = true}).tensors[0].transposed);
  const Model two = model_of({{"embed", {2}, {1, 2}}, {"head", {2}, {1, 2}}}),
              tied = model_of({{"embed", {2}, {1, 2}}});
  EXPECT_EQ(diff(two, tied).tensors[0].tied_to, "");
  EXPECT_EQ(diff(two, tied, {.permuted = true}).tensors[0].tied_to, "embed");
}

TEST(Diff, OfSomeTensors) {
  const Model a = model_of({{"a", {1}, {1}}, {"b", {1}, {2}}}),
              b = model_of({{"a", {1}, {1}}, {"b", {1}, {3}}, {"c", {1}, {1}}});
  EXPECT_TRUE(diff(a, b, {.only = {"a"}}).equal());
  EXPECT_TRUE(diff(a, b, {.without = {"b", "c"}}).equal());
  EXPECT_EQ(thrown([&] { diff(a, b, {.only = {"d"}}); }).rule, "misuse/nothing-matches");
}

TEST(Diff, Metadata) {
  const auto model = [](const char* k, const Value& v) {
    Builder builder;
    builder.attribute("same", Value::integer(std::uint64_t{3}));
    builder.attribute(k, v);
    return builder.build();
  };
  const Diff found = diff(model("k", Value::text("a")), model("k", Value::text("b")));
  EXPECT_FALSE(found.equal());
  ASSERT_EQ(found.metadata.size(), 1u);
  EXPECT_EQ(found.metadata[0].key, "k");
  EXPECT_EQ(found.metadata[0].a, "a");
  const Diff other = diff(model("k", Value::text("a")), model("l", Value::text("a")));
  ASSERT_EQ(other.metadata.size(), 2u);
  EXPECT_TRUE(other.metadata[0].only_a);
  EXPECT_TRUE(other.metadata[1].only_b);
  EXPECT_TRUE(diff(model("k", Value::text("a")), model("l", Value::text("a")), {.metadata = false}).equal());
  const Model number = model("k", Value::integer(std::uint64_t{7})), text = model("k", Value::text("7"));
  EXPECT_TRUE(diff(number, text).equal());
  EXPECT_FALSE(diff(number, text, {.exact = true}).equal());
  Texts many, more;
  for (int i = 0; i < 40; ++i) many.push_back(std::to_string(i)), more.push_back(i == 30 ? "x" : std::to_string(i));
  const Diff lists = diff(model("k", Value::texts(many)), model("k", Value::texts(more)));
  ASSERT_EQ(lists.metadata.size(), 1u);
  EXPECT_EQ(lists.metadata[0].a, "a list of 40 items");
  EXPECT_EQ(lists.metadata[0].first, 30u);
}

TEST(Diff, Tokenizers) {
  const auto model = [](const char* token, std::uint32_t bos) {
    Tokenizer tokenizer;
    tokenizer.vocab_size = 2;
    tokenizer.tokens.push_back("a");
    tokenizer.tokens.push_back(token);
    tokenizer.special = {{"bos", bos}};
    return std::move(Builder().tokenizer(std::move(tokenizer))).build();
  };
  EXPECT_TRUE(diff(model("b", 0), model("b", 0)).equal());
  const Diff found = diff(model("b", 0), model("c", 1));
  ASSERT_EQ(found.tokenizer.size(), 2u);
  EXPECT_EQ(found.tokenizer[0].key, "tokens");
  EXPECT_EQ(found.tokenizer[0].first, 1u);
  EXPECT_EQ(found.tokenizer[1].key, "special.bos");
  EXPECT_EQ(diff(model("b", 0), Model()).tokenizer[0].key, "tokenizer");
}

// 300,000 elements are several chunks of several reads; the change is in the middle of one.
TEST(Diff, NumbersAreTheSameForAnyThreadsAndForStreams) {
  const std::size_t n = 3'000'017;
  const Numbers a = random_numbers(n, 1);
  Numbers b = a;
  for (std::size_t i = 1'200'000; i < 1'300'000; i += 3) b[i] += 0.01F * a[i / 2];
  const Model x = model_of({{"w", {n}, a}, {"v", {2}, {1, 2}}}), y = model_of({{"w", {n}, b}, {"v", {2}, {1, 2}}});
  const ValueDiff alone = *diff(x, y).tensors[0].values;
  EXPECT_EQ(alone.first, 1'200'000u);
  double dd = 0, xx = 0;
  std::uint64_t changed = 0;
  for (std::size_t i = 0; i < n; ++i) {
    const double d = static_cast<double>(b[i]) - static_cast<double>(a[i]);
    dd += d * d;
    xx += static_cast<double>(a[i]) * static_cast<double>(a[i]);
    changed += a[i] != b[i] ? 1U : 0U;
  }
  EXPECT_EQ(alone.changed, changed);
  EXPECT_NEAR(alone.relative_rms, std::sqrt(dd / xx), 1e-12);
  const auto same = [&](const ValueDiff& other) {
    EXPECT_EQ(other.changed, alone.changed);
    EXPECT_EQ(other.rms, alone.rms);
    EXPECT_EQ(other.cosine, alone.cosine);
    EXPECT_EQ(other.snr, alone.snr);
    EXPECT_EQ(other.first, alone.first);
    EXPECT_EQ(other.largest, alone.largest);
    EXPECT_EQ(other.max_relative, alone.max_relative);
  };
  for (const unsigned threads : {2U, 5U}) {
    Context context;
    context.executor = thread_executor(threads);
    same(*diff(x, y, {}, context).tensors[0].values);
  }
  const auto close = [&](const ValueDiff& other) {
    EXPECT_EQ(other.changed, alone.changed);
    EXPECT_EQ(other.first, alone.first);
    EXPECT_NEAR(other.rms, alone.rms, 1e-12);
  };
  const Model s = streamed({{"w", {n}, a}, {"v", {2}, {1, 2}}}), t = streamed({{"w", {n}, b}, {"v", {2}, {1, 2}}});
  close(*diff(s, y).tensors[0].values);
  close(*diff(x, t).tensors[0].values);
  close(*diff(s, t).tensors[0].values);
}

TEST(Diff, CanBeStopped) {
  const Numbers a = random_numbers(8'000'000, 1);
  Context context;
  context.progress = [](std::uint64_t done, std::uint64_t) { return done < 10'000'000; };
  EXPECT_THROW(diff(one(a), one(a), {}, context), Cancelled);
  EXPECT_THROW(diff(streamed({{"w", {a.size()}, a}}), streamed({{"w", {a.size()}, a}}), {}, context), Cancelled);
}

// The hook's "no" to the last report of a finished job threw its result away.
TEST(Diff, ThatIsDoneIsReturnedWhateverTheHookSays) {
  const Model model = one(random_numbers(1000, 1));
  std::uint64_t calls = 0;
  const auto job = [&](const Context& context) { return diff(model, model, {}, context); };
  const Context context = test::stopped_at_the_last_call(job, calls);
  EXPECT_TRUE(job(context).equal());
  EXPECT_GT(calls, 0U);
}

TEST(Diff, WorkIsBounded) {
  Builder builder;
  const Model base = one(random_numbers(1000, 2));
  for (int i = 0; i < 100; ++i) builder.tensor("t" + std::to_string(i), base[0]);
  const Model many = builder.build();
  Context context;
  context.limits.work = 100'000;
  EXPECT_EQ(thrown([&] { diff(many, many, {}, context); }).rule, "limit/work");
}

// A few bytes can claim a dense form of terabytes.
TEST(Diff, ASparseTensorIsComparedWithinTheLimitOfMemory) {
  const auto sparse = [](float value) {
    Builder builder;
    builder.object("s", Layout::sparse_coo, {1 << 20, 1 << 10}, {},
                   {{"values", DType::f32, {1}, bytes_of(Numbers{value})},
                    {"coords", DType::u64, {2, 1}, bytes_of(std::vector<std::uint64_t>{5, 7})}});
    return builder.build();
  };
  EXPECT_TRUE(diff(sparse(1), sparse(1)).equal());
  const Diff found = diff(sparse(1), sparse(2));
  EXPECT_EQ(found.incomparable, 1u);
  EXPECT_NE(found.tensors[0].why.find("the limit of 268435456 for memory"), std::string::npos);
  EXPECT_EQ(diff(sparse(1), model_of({{"x", {1}, {1}}}), {.match = Match::content}).different, 2u);
}

// Sparse tensors that are too large to be dense are compared part by part, and a thread reads ahead in one of the two.
TEST(Diff, TheHookOfASparseComparisonIsCalledByOneThreadAtATime) {
  const auto sparse = [] {
    constexpr std::uint64_t kEntries = 1 << 16, kShape[] = {std::uint64_t{1} << 40, 1}, kCoords[] = {2, kEntries};
    core::Draft draft;
    draft.add_tensor("s", Layout::sparse_coo, DType::f32, kShape);
    const auto part = [&](std::string_view role, DType dtype, Shape shape, std::uint64_t size) {
      const std::uint32_t at = draft.add_part(role, dtype, shape, Encoding::computed, {}, size);
      draft.part(at).pull([size](std::uint64_t offset, std::span<std::byte> out) {
        const auto n = static_cast<std::size_t>(std::min<std::uint64_t>({out.size(), size - offset, 4096}));
        std::memset(out.data(), 0, n);
        return n;
      });
    };
    part("values", DType::f32, std::span(&kEntries, 1), kEntries * 4);
    part("coords", DType::u64, kCoords, kEntries * 16);
    draft.index_names();
    return draft.finish();
  };
  std::atomic<int> inside{0}, maximum{0};
  Context context;
  context.progress = [&](std::uint64_t, std::uint64_t) {
    maximum = std::max(maximum.load(), ++inside);
    std::this_thread::yield();
    --inside;
    return true;
  };
  EXPECT_TRUE(diff(sparse(), sparse(), {}, context).equal());
  EXPECT_EQ(maximum, 1);
}

TEST(Diff, ManyTensorsOfOneContentArePairedInReasonableTime) {
  Builder x, y;
  const Bytes zero = bytes_of(Numbers{0});
  for (int i = 0; i < 20'000; ++i) {
    x.tensor("a" + std::to_string(i), DType::f32, {1}, zero);
    y.tensor("b" + std::to_string(i), DType::f32, {1}, zero);
  }
  const Diff found = diff(x.build(), y.build());
  EXPECT_EQ(found.compared, 20'000u);
  EXPECT_EQ(found.different, 20'000u);
}

TEST(Diff, TensorsInAnotherPlaceAreCounted) {
  const Model a = model_of({{"a", {1}, {1}}, {"b", {1}, {2}}, {"c", {1}, {3}}});
  const Diff found = diff(a, model_of({{"c", {1}, {3}}, {"a", {1}, {1}}, {"b", {1}, {2}}}));
  EXPECT_TRUE(found.equal());
  EXPECT_EQ(found.moved, 1u);
}

TEST(DifferenceMap, BlocksCoverEveryElementOnceAndHoldTheNumbersOfDiff) {
  constexpr std::uint64_t kRows = 37, kColumns = 23;
  const Numbers before = random_numbers(kRows * kColumns, 5);
  Numbers after = before;
  after[3 * kColumns + 20] += 4;  // the largest
  after[36 * kColumns + 22] -= 1;
  after[0] = std::numeric_limits<float>::quiet_NaN();
  const std::vector<Named> a{{"w", {kRows, kColumns}, before}}, b{{"w", {kRows, kColumns}, after}};
  for (const bool stream : {false, true}) {
    const Model x = stream ? streamed(a) : model_of(a), y = stream ? streamed(b) : model_of(b);
    const ValueDiff values = *diff(x, y).tensors.at(0).values;
    for (const auto& [grid_rows, grid_columns] :
         {std::pair(1U, 1U), std::pair(5U, 4U), std::pair(37U, 23U), std::pair(1024U, 7U)}) {
      const DifferenceMap map = difference_map(x, y, {"w", "w"}, grid_rows, grid_columns);
      EXPECT_EQ(map.rows, kRows);
      EXPECT_EQ(map.columns, kColumns);
      EXPECT_EQ(map.grid_rows, std::min<std::uint64_t>(grid_rows, kRows));
      EXPECT_EQ(map.grid_columns, std::min<std::uint64_t>(grid_columns, kColumns));
      ASSERT_EQ(map.blocks.size(), map.grid_rows * map.grid_columns);
      double largest = 0;
      std::uint64_t changed = 0, not_finite = 0;
      for (const DifferenceMap::Block& block : map.blocks) {
        largest = std::max(largest, block.max_abs);
        changed += block.changed;
        not_finite += block.not_finite;
      }
      EXPECT_EQ(largest, values.max_abs);
      EXPECT_EQ(changed, 3U);
      EXPECT_EQ(not_finite, 1U);
      for (std::uint32_t i = 0; i < map.grid_rows; ++i)
        for (std::uint32_t j = 0; j < map.grid_columns; ++j) {
          const bool here = DifferenceMap::begin(i, kRows, map.grid_rows) <= 3 &&
                            3 < DifferenceMap::begin(i + 1, kRows, map.grid_rows) &&
                            DifferenceMap::begin(j, kColumns, map.grid_columns) <= 20 &&
                            20 < DifferenceMap::begin(j + 1, kColumns, map.grid_columns);
          EXPECT_EQ(map.blocks[i * map.grid_columns + j].max_abs == largest, here) << i << ", " << j;
        }
    }
  }
}

TEST(DifferenceMap, EveryShapeIsAMatrix) {
  const auto size = [&](std::vector<std::uint64_t> shape, std::size_t count) {
    const Model model = model_of({{"w", std::move(shape), Numbers(count, 1)}});
    const DifferenceMap map = difference_map(model, model, {"w", "w"}, 8, 8);
    for (const DifferenceMap::Block& block : map.blocks) EXPECT_EQ(block, DifferenceMap::Block{});
    return std::vector<std::uint64_t>{map.rows, map.columns, map.grid_rows, map.grid_columns};
  };
  using Sizes = std::vector<std::uint64_t>;
  EXPECT_EQ(size({}, 1), (Sizes{1, 1, 1, 1}));
  EXPECT_EQ(size({12}, 12), (Sizes{1, 12, 1, 8}));
  EXPECT_EQ(size({2, 3, 2}, 12), (Sizes{6, 2, 6, 2}));
  EXPECT_EQ(size({0, 4}, 0), (Sizes{0, 4, 0, 0}));
  EXPECT_EQ(size({4, 0}, 0), (Sizes{0, 0, 0, 0}));
}

TEST(DifferenceMap, TypesThatShareBytesAndOtherNamesAreCompared) {
  Builder packed;
  packed.tensor("four", DType::u4, {3, 4}, bytes_of(std::vector<std::uint8_t>{0x10, 0x32, 0x54, 0x76, 0x98, 0xba}));
  Numbers numbers(12);
  for (std::size_t i = 0; i < numbers.size(); ++i) numbers[i] = static_cast<float>(i);
  numbers[7] = 9;
  const DifferenceMap map =
      difference_map(packed.build(), model_of({{"wide", {3, 4}, numbers}}), {"four", "wide"}, 3, 4);
  for (std::size_t i = 0; i < map.blocks.size(); ++i) EXPECT_EQ(map.blocks[i].max_abs, i == 7 ? 2 : 0) << i;
  Builder longs;
  longs.tensor("w", DType::i64, {2}, bytes_of(std::vector<std::int64_t>{std::int64_t{1} << 60, 5}));
  Builder others;
  others.tensor("w", DType::i64, {2}, bytes_of(std::vector<std::int64_t>{(std::int64_t{1} << 60) + 1, 5}));
  EXPECT_EQ(difference_map(longs.build(), others.build(), {"w", "w"}, 1, 1).blocks.at(0).changed, 1U);
}

TEST(DifferenceMap, WhatHasNoMapIsRefused) {
  const Model a = one({1, 2}), b = one({1, 2, 3});
  EXPECT_EQ(thrown([&] { difference_map(a, b, {"w", "w"}, 4, 4); }).kind, Kind::misuse);
  EXPECT_EQ(thrown([&] { difference_map(a, a, {"w", "x"}, 4, 4); }).kind, Kind::misuse);
  EXPECT_EQ(thrown([&] { difference_map(a, a, {"w", "w"}, 0, 4); }).kind, Kind::misuse);
  EXPECT_EQ(thrown([&] { difference_map(a, a, {"w", "w"}, 4, 1025); }).kind, Kind::misuse);
}

TEST(Diff, EachOptionOfTheTableIsSetByItsName) {
  test::set_each<DiffOptions>(OptionOf::diff);
  DiffOptions options;
  options.add("rename", "a=b", "c=d");
  options.add("metadata", "false");
  EXPECT_EQ(options.rename, (std::vector<Renaming>{{.from = "a=b", .to = "c=d"}}));
  EXPECT_FALSE(options.metadata);
}

}  // namespace
}  // namespace weighbridge
