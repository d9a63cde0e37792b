// SPDX-License-Identifier: Apache-2.0
// The object model over in-memory payload: Builder, names, streaming, strides, dense forms.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <numeric>
#include <random>
#include <set>

#include "base/endian.h"
#include "core/model/draft.h"
#include "core/model/state.h"
#include "core/payload/payload.h"
#include "weighbridge/model.h"

namespace weighbridge {
namespace {

template <class T> Bytes own(std::vector<T> values) {
  const auto kept = std::make_shared<std::vector<T>>(std::move(values));
  return {std::as_bytes(std::span(*kept)), kept};
}

std::vector<std::byte> collect(const Part& part) {
  std::vector<std::byte> all;
  part.stream({}, [&](std::span<const std::byte> piece) {
    EXPECT_LE(piece.size(), core::kPiece);
    all.insert(all.end(), piece.begin(), piece.end());
    return true;
  });
  return all;
}

template <class T> std::vector<T> as_numbers(std::span<const std::byte> bytes) {
  std::vector<T> out(bytes.size() / sizeof(T));
  std::memcpy(out.data(), bytes.data(), out.size() * sizeof(T));
  return out;
}

Kind kind_of(const std::function<void()>& f) {
  try {
    f();
  } catch (const Error& e) {
    return e.kind();
  }
  ADD_FAILURE() << "nothing was thrown";
  return Kind::io;
}

// Names that share long beginnings, end in zero bytes, or are equal: groups that sorting by eight bytes leaves
// together.
TEST(Draft, NamesAreSortedAsTheirBytesAre) {
  std::vector<std::string> names;
  for (int layer = 0; layer < 3; ++layer)
    for (int i = 0; i < 500; ++i)
      names.push_back("model.layers." + std::to_string(layer) + ".mlp.experts." + std::to_string(i * 7919 % 500) +
                      ".w");
  for (int i = 0; i < 100; ++i) {
    names.push_back("same");
    names.push_back("zeros" + std::string(static_cast<std::size_t>((i * 37) % 90), '\0'));
    names.push_back(std::string(static_cast<std::size_t>((i * 61) % 100), 'a'));
    names.push_back("\xFF" + std::to_string(i));
  }
  const std::vector<std::string_view> views(names.begin(), names.end());
  std::vector<std::uint32_t> expected(names.size());
  std::iota(expected.begin(), expected.end(), 0U);
  std::ranges::stable_sort(expected, {}, [&](std::uint32_t i) -> std::string_view { return names[i]; });
  EXPECT_EQ(core::order_of(views), expected);
}

// Shards whose names do not meet, that interleave in long and in short pieces, and that repeat each other's names. The
// index of the merged model is that of sorting all names, and so are the duplicates.
TEST(Draft, OrdersOfAdoptedModelsMergeToTheOrderOfAllNames) {
  std::mt19937 source(7);
  const auto random = [&] { return static_cast<unsigned>(source()); };
  for (int round = 0; round < 200; ++round) {
    core::Draft adopted, added;
    const unsigned models = random() % 6, range = 1 + random() % 400;
    for (unsigned m = 0; m < models; ++m) {
      std::set<std::string> names;
      for (unsigned i = random() % 120; i > 0; --i)
        names.insert(round % 2 != 0 ? "layers." + std::to_string(m) + "." + std::to_string(random() % range)
                                    : std::to_string(random() % range));
      std::vector<std::string> order(names.begin(), names.end());
      std::shuffle(order.begin(), order.end(), source);
      core::Draft one;
      std::vector<bool> marked;
      for (const std::string& name : order) {
        one.add_tensor_without_shape(name, Layout::structural, DType::unknown);
        marked.push_back(random() % 8 != 0);
        if (marked.back()) added.add_tensor_without_shape(name, Layout::structural, DType::unknown);
      }
      one.index_names();
      adopted.adopt_marked(one.finish(), marked);
    }
    const auto expected = added.index_names();
    ASSERT_EQ(adopted.index_names(), expected);
    std::vector<std::uint32_t> again;
    for (const auto& [first, second] : expected) again.push_back(second);
    if (round % 3 == 0) {
      adopted.drop(again);
      added.drop(again);
    }
    const Model a = adopted.finish(), b = added.finish();
    const auto left = core::by_name(a), right = core::by_name(b);
    ASSERT_TRUE(std::ranges::equal(left, right)) << round;
  }
}

// What changes a name or removes a tensor after its model was adopted is not overlooked.
TEST(Draft, AnAdoptedTensorWithANewNameIsFoundByIt) {
  core::Draft one, all;
  one.add_tensor_without_shape("a", Layout::structural, DType::unknown);
  one.add_tensor_without_shape("b", Layout::structural, DType::unknown);
  one.index_names();
  all.adopt_marked(one.finish(), {true, true});
  all.tensor(0).name("c");
  all.index_names();
  EXPECT_EQ(all.find("c"), 0U);
  EXPECT_EQ(all.find("b"), 1U);
}

TEST(Builder, RefusesWhatNoFormatCouldHold) {
  Builder b;
  b.tensor("a", DType::u8, {2}, own<std::uint8_t>({1, 2}));
  EXPECT_EQ(kind_of([&] { b.tensor("b", DType::u8, {3}, own<std::uint8_t>({1, 2})); }), Kind::misuse);
  EXPECT_EQ(kind_of([&] { b.tensor("\xff", DType::u8, {1}, own<std::uint8_t>({1})); }), Kind::misuse);
  EXPECT_EQ(kind_of([&] { b.tensor("c", DType::u8, {UINT64_MAX, 2}, own<std::uint8_t>({1})); }), Kind::misuse);
  b.tensor("a", DType::u8, {0, UINT64_MAX, 7}, Bytes{});
  EXPECT_EQ(kind_of([&] { (void)b.build(); }), Kind::misuse) << "two tensors named a";
}

TEST(Model, FindsNamesAndSuggestsNearOnes) {
  Builder b;
  for (int i = 999; i >= 0; --i) {
    b.tensor("model.layers." + std::to_string(i) + ".weight", DType::u8, {1},
             own<std::uint8_t>({static_cast<std::uint8_t>(i)}));
  }
  b.tensor("", DType::u8, {0}, Bytes{});
  const Model m = b.build();
  ASSERT_EQ(m.size(), 1001U);
  EXPECT_EQ(m.name(0U), "model.layers.999.weight") << "file order";
  for (const int i : {0, 1, 10, 500, 999}) {
    const auto t = m.find("model.layers." + std::to_string(i) + ".weight");
    ASSERT_TRUE(t);
    EXPECT_EQ(t->as<std::uint8_t>()[0], static_cast<std::uint8_t>(i));
  }
  EXPECT_TRUE(m.find(""));
  EXPECT_FALSE(m.find("model.layers"));
  EXPECT_FALSE(m.find("model.layers.1000.weight"));
  const auto near = m.nearest("model.layer.7.weight");
  ASSERT_FALSE(near.empty());
  EXPECT_EQ(near[0], "model.layers.7.weight");
  try {
    (void)m["model.layer.7.weight"];
    FAIL();
  } catch (const Error& e) {
    EXPECT_EQ(e.kind(), Kind::misuse);
    EXPECT_NE(std::string(e.what()).find("model.layers.7.weight"), std::string::npos);
  }
}

TEST(Model, NamesThatShareALongPrefixAreTold) {
  const std::string prefix(300, 'x');
  Builder b;
  b.tensor(prefix + "b", DType::u8, {0}, Bytes{});
  b.tensor(prefix, DType::u8, {0}, Bytes{});
  b.tensor(prefix + "a", DType::u8, {0}, Bytes{});
  b.tensor(prefix + std::string("a\0", 2), DType::u8, {0}, Bytes{});
  const Model m = b.build();
  EXPECT_TRUE(m.find(prefix));
  EXPECT_TRUE(m.find(prefix + "a"));
  EXPECT_TRUE(m.find(prefix + std::string("a\0", 2)));
  EXPECT_FALSE(m.find(prefix + "c"));
}

TEST(Draft, ReportsEachDuplicateWithItsEarlierTwin) {
  core::Draft d;
  for (const char* name : {"b", "a", "b", "c", "a", "a"}) d.add_tensor(name, Layout::dense, DType::u8, {});
  const auto duplicates = d.index_names();
  ASSERT_EQ(duplicates.size(), 3U);
  EXPECT_EQ(duplicates[0], (std::pair<std::uint32_t, std::uint32_t>{0, 2}));
  EXPECT_EQ(duplicates[1].second, 4U);
  EXPECT_EQ(duplicates[2].second, 5U);
  d.drop({2, 4, 5});
  const Model m = d.finish();
  EXPECT_EQ(m.size(), 3U);
  EXPECT_TRUE(m.find("c"));
}

TEST(Part, BigEndianAndBoolComeOutLogical) {
  core::Draft d;
  const auto source = d.add_source(memory_source(own<std::uint8_t>({0, 1, 2, 3, 4, 5, 6, 7, 0, 1, 2, 255})));
  const std::uint64_t two[] = {2}, four[] = {4};
  d.add_tensor("be", Layout::dense, DType::u32, two);
  const auto be = d.add_part("data", DType::u32, two, Encoding::raw, {source, 0, 8}, 8);
  d.part(be).order(Order::big);
  d.add_tensor("bool", Layout::dense, DType::boolean, four);
  d.add_part("data", DType::boolean, four, Encoding::raw, {source, 8, 4}, 4);
  const Model m = d.finish();
  EXPECT_EQ(as_numbers<std::uint32_t>(collect(m["be"].main())), (std::vector<std::uint32_t>{0x00010203, 0x04050607}));
  EXPECT_EQ(m["be"].why_no_view(DType::u32), NoView::byte_order);
  EXPECT_EQ(as_numbers<std::uint8_t>(collect(m["bool"].main())), (std::vector<std::uint8_t>{0, 1, 1, 1}));
}

TEST(Part, StreamsLargeRawPartsInPieces) {
  std::vector<std::uint32_t> values(3'000'000);
  std::iota(values.begin(), values.end(), 7U);
  Builder b;
  b.tensor("w", DType::u32, {3'000'000}, own(values));
  const Model m = b.build();
  EXPECT_EQ(as_numbers<std::uint32_t>(collect(m["w"].main())), values);
  int calls = 0;
  m["w"].main().stream({}, [&](std::span<const std::byte>) { return ++calls < 2; });
  EXPECT_EQ(calls, 2) << "a sink that answers false is not called again";
}

TEST(Part, ComputedPartsComeFromTheirCallback) {
  for (const int gives : {11, 12, 13}) {
    Builder b;
    b.tensor("w", DType::u8, {12}, [gives](std::uint64_t offset, std::span<std::byte> out) {
      std::size_t n =
          std::min<std::size_t>({out.size(), 5,
                                 static_cast<std::size_t>(gives) -
                                     std::min(static_cast<std::size_t>(gives), static_cast<std::size_t>(offset))});
      for (std::size_t i = 0; i < n; ++i) out[i] = static_cast<std::byte>(offset + i);
      return n;
    });
    const Model m = b.build();
    EXPECT_EQ(m["w"].main().why_no_view(), NoView::computed);
    if (gives == 12) {
      for (int twice = 0; twice < 2; ++twice) {
        const auto all = collect(m["w"].main());
        ASSERT_EQ(all.size(), 12U);
        for (std::size_t i = 0; i < 12; ++i) EXPECT_EQ(all[i], static_cast<std::byte>(i));
      }
    } else {
      EXPECT_EQ(kind_of([&] { (void)collect(m["w"].main()); }), Kind::misuse);
    }
  }
}

// Every order of three dimensions, forward and backward, against a plain walk.
TEST(Part, StridedElementsComeOutRowMajor) {
  const std::uint64_t shape[] = {5, 4, 3};
  std::vector<std::uint16_t> stored(60);
  std::iota(stored.begin(), stored.end(), std::uint16_t{0});
  std::vector<std::int64_t> order = {0, 1, 2};
  do {
    for (int flips = 0; flips < 8; ++flips) {
      std::vector<std::int64_t> strides(3);
      std::int64_t step = 1;
      for (std::size_t i = 3; i-- > 0;) {
        const auto d = static_cast<std::size_t>(order[i]);
        strides[d] = step;
        step *= static_cast<std::int64_t>(shape[d]);
      }
      std::int64_t start = 0;
      for (std::size_t i = 0; i < 3; ++i) {
        if (flips >> i & 1) {
          strides[i] = -strides[i];
          start -= strides[i] * static_cast<std::int64_t>(shape[i] - 1);
        }
      }
      core::Draft d;
      const auto source = d.add_source(memory_source(own(stored)));
      d.add_tensor("w", Layout::dense, DType::u16, shape);
      const auto p = d.add_part("data", DType::u16, shape, Encoding::raw, {source, 0, 120}, 120);
      d.part(p).strides(strides);
      const Model m = d.finish();
      std::vector<std::uint16_t> expected;
      for (std::int64_t i = 0; i < 5; ++i)
        for (std::int64_t j = 0; j < 4; ++j)
          for (std::int64_t k = 0; k < 3; ++k)
            expected.push_back(
                stored[static_cast<std::size_t>(start + i * strides[0] + j * strides[1] + k * strides[2])]);
      EXPECT_EQ(as_numbers<std::uint16_t>(collect(m["w"].main())), expected);
      EXPECT_EQ(m["w"].why_no_view(DType::u16), NoView::strided);
    }
  } while (std::next_permutation(order.begin(), order.end()));
}

TEST(Part, ColumnMajorLargerThanAPieceComesOutRowMajor) {
  const std::uint64_t rows = 3000, columns = 1100;
  std::vector<std::uint32_t> stored(rows * columns);
  for (std::uint64_t c = 0; c < columns; ++c)
    for (std::uint64_t r = 0; r < rows; ++r) stored[c * rows + r] = static_cast<std::uint32_t>(r * columns + c);
  core::Draft d;
  const auto source = d.add_source(memory_source(own(stored)));
  const std::uint64_t shape[] = {rows, columns};
  d.add_tensor("w", Layout::dense, DType::u32, shape);
  const auto p =
      d.add_part("data", DType::u32, shape, Encoding::raw, {source, 0, stored.size() * 4}, stored.size() * 4);
  d.part(p).strides({1, static_cast<std::int64_t>(rows)});
  const Model m = d.finish();
  std::vector<std::uint32_t> expected(rows * columns);
  std::iota(expected.begin(), expected.end(), 0U);
  EXPECT_EQ(as_numbers<std::uint32_t>(collect(m["w"].main())), expected);
}

TEST(Part, StridesThatReachPastTheExtentAreMalformed) {
  core::Draft d;
  const auto source = d.add_source(memory_source(own(std::vector<std::uint8_t>(64))));
  const std::uint64_t shape[] = {4, 4};
  d.add_tensor("w", Layout::dense, DType::u8, shape);
  const auto p = d.add_part("data", DType::u8, shape, Encoding::raw, {source, 0, 16}, 16);
  d.part(p).strides({5, 1});
  const Model m = d.finish();
  EXPECT_EQ(kind_of([&] { (void)collect(m["w"].main()); }), Kind::malformed);
}

TEST(Tensor, DenseFormsCast) {
  Builder b;
  b.tensor("w", DType::f32, {2, 3}, own<float>({1.0F, -2.5F, 65504.0F, 1e9F, 0.0F, 3.0F}));
  b.tensor("i", DType::i32, {2}, own<std::int32_t>({7, -7}));
  const Model m = b.build();
  const Array half = m["w"].to_dense(DType::f16);
  EXPECT_EQ(half.size, 12U);
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(half.data.get()) % 64, 0U);
  const auto bits = as_numbers<std::uint16_t>({half.data.get(), half.size});
  EXPECT_EQ(bits, (std::vector<std::uint16_t>{0x3c00, 0xc100, 0x7bff, 0x7c00, 0x0000, 0x4200}));
  EXPECT_EQ(as_numbers<double>({m["i"].to_dense(DType::f64).data.get(), 16}), (std::vector<double>{7, -7}));
  EXPECT_EQ(kind_of([&] { (void)m["w"].to_dense(DType::i32); }), Kind::misuse);
  std::vector<std::byte> row(12);
  m["w"].rows_into(1, 1, DType::f32, row);
  EXPECT_EQ(as_numbers<float>(row), (std::vector<float>{1e9F, 0.0F, 3.0F}));
  EXPECT_EQ(kind_of([&] { m["w"].rows_into(1, 2, DType::f32, row); }), Kind::misuse);
}

TEST(Tensor, SparseAndQuantizedHaveDenseForms) {
  Builder b;
  b.object("csr", Layout::sparse_csr, {2, 3}, {},
           {{"values", DType::f32, {3}, own<float>({1, 2, 3})},
            {"indices", DType::u16, {3}, own<std::uint16_t>({0, 2, 1})},
            {"indptr", DType::u64, {3}, own<std::uint64_t>({0, 2, 3})}});
  b.object("coo", Layout::sparse_coo, {2, 3}, {},
           {{"values", DType::i16, {2}, own<std::int16_t>({5, -6})},
            {"coords", DType::u32, {2, 2}, own<std::uint32_t>({0, 1, 2, 0})}});
  // Reading Y5: rows are packed along dimension 0, least significant bits first.
  b.object("q", Layout::quantized_group, {8, 1},
           {{"bits", Value::integer(std::uint64_t{4})},
            {"group_size", Value::integer(std::uint64_t{4})},
            {"packing", Value::text("8_per_i32")}},
           {{"packed_weight", DType::i32, {1, 1}, own<std::uint32_t>({0x76543210})},
            {"scales", DType::f32, {2, 1}, own<float>({1.0F, 2.0F})},
            {"zeros", DType::f32, {2, 1}, own<float>({0.0F, 4.0F})}});
  const Model m = b.build();
  EXPECT_EQ(as_numbers<float>({m["csr"].to_dense().data.get(), 24}), (std::vector<float>{1, 0, 2, 0, 3, 0}));
  EXPECT_EQ(as_numbers<std::int16_t>({m["coo"].to_dense().data.get(), 12}),
            (std::vector<std::int16_t>{0, 0, 5, -6, 0, 0}));
  EXPECT_EQ(m["q"].dtype(), DType::f32);
  EXPECT_EQ(as_numbers<float>({m["q"].to_dense().data.get(), 32}), (std::vector<float>{0, 1, 2, 3, 0, 2, 4, 6}));
}

TEST(Builder, AdoptsTensorsOfOtherModels) {
  Model kept;
  {
    Builder a;
    a.tensor("w", DType::u8, {3}, own<std::uint8_t>({1, 2, 3}));
    const Model first = a.build();
    Builder b;
    b.tensor("renamed", first["w"]);
    b.attribute("k", Value::text("v"));
    kept = b.build();
  }
  EXPECT_EQ(as_numbers<std::uint8_t>(collect(kept["renamed"].main())), (std::vector<std::uint8_t>{1, 2, 3}));
  EXPECT_EQ(kept.attribute("k")->as_text(), "v");
}

}  // namespace
}  // namespace weighbridge
