// SPDX-License-Identifier: Apache-2.0
// Issue 16, A.8: dense tensors as sparse ones and back, and sparse ones in the other layout.
#include "core/model/view.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "base/checked.h"
#include "base/endian.h"
#include "core/model/draft.h"
#include "support/format_testing.h"
#include "support/thrown.h"

namespace weighbridge::core {
namespace {

template <class T> std::string packed(const std::vector<T>& values) {
  std::string out(values.size() * sizeof(T), '\0');
  for (std::size_t i = 0; i < values.size(); ++i) base::store_le(out.data() + i * sizeof(T), values[i]);
  return out;
}
std::string words(const Tensor& tensor, std::string_view role) {
  const std::string bytes = test::logical_bytes(*tensor.part(role));
  std::string out;
  for (std::size_t at = 0; at < bytes.size(); at += 8)
    out += std::to_string(base::load_le<std::uint64_t>(bytes.data() + at)) + " ";
  return out;
}
Model one(DType dtype, std::vector<std::uint64_t> shape, const std::string& bytes) {
  Builder builder;
  builder.tensor("w", dtype, std::move(shape), test::bytes_of(bytes));
  return builder.build();
}
Derived made(const Model& model, Layout layout, double density = 1) {
  return sparsified(model, layout, density, "no digest", {});
}

constexpr std::uint32_t kMinusZero = 0x80000000, kNan = 0x7fc00123;

TEST(Sparsify, LeavesOutOnlyElementsWhoseBitsAreZero) {
  const std::string bytes = packed<std::uint32_t>({0, kMinusZero, 0, kNan, 0, 0, 0, 0, 1, 0, 0, 0});
  const Model dense = one(DType::f32, {3, 4}, bytes);
  const Model csr = made(dense, Layout::sparse_csr).model, coo = made(dense, Layout::sparse_coo).model;
  EXPECT_EQ(csr["w"].layout(), Layout::sparse_csr);
  EXPECT_EQ(words(csr["w"], "indptr"), "0 2 2 3 ");
  EXPECT_EQ(words(csr["w"], "indices"), "1 3 0 ");
  EXPECT_EQ(words(coo["w"], "coords"), "0 0 2 1 3 0 ");
  for (const Model& model : {csr, coo}) {
    EXPECT_EQ(test::logical_bytes(*model["w"].part("values")), packed<std::uint32_t>({kMinusZero, kNan, 1}));
    EXPECT_EQ(test::dense_bytes(model["w"]), bytes);
  }
}

TEST(Sparsify, EveryWidthComesBackDense) {
  for (const DTypeInfo& dtype : all_dtypes()) {
    if (dtype.bits < 8 || dtype.dtype == DType::f8_e8m0) continue;
    SCOPED_TRACE(dtype.name);
    std::string bytes(dtype.bits / 8 * 2 * 3 * 5, '\0');
    // One byte of an element is enough, the first or the last.
    for (const std::size_t element : {0U, 7U, 8U, 29U}) bytes[element * (dtype.bits / 8)] = 1;
    bytes[12 * (dtype.bits / 8) - 1] = 1;
    const Model model = one(dtype.dtype, {2, 3, 5}, bytes);
    const Derived coo = made(model, Layout::sparse_coo);
    const Tensor w = coo.model["w"];
    EXPECT_EQ(w.layout(), Layout::sparse_coo);
    EXPECT_EQ(w.main().count(), 5U);
    EXPECT_EQ(test::dense_bytes(w), bytes);
    ASSERT_EQ(coo.changes.size(), 1U);
    EXPECT_EQ(coo.changes[0].to, "sparse_coo");
    EXPECT_EQ(made(model, Layout::sparse_csr).model["w"].layout(), Layout::dense) << "rank 3";
  }
}

TEST(Sparsify, ByDefaultOnlyWhatGetsSmaller) {
  // f32 [1, 100]: a csr of n values takes 12 n + 16 bytes, a coo 20 n.
  for (const auto& [set, csr, coo] : {std::tuple{31U, true, false}, {32U, false, false}, {19U, true, true}}) {
    std::vector<std::uint32_t> values(100);
    std::fill_n(values.begin(), set, 1U);
    const Model model = one(DType::f32, {1, 100}, packed(values));
    EXPECT_EQ(made(model, Layout::sparse_csr, 0).model["w"].layout() == Layout::sparse_csr, csr) << set;
    EXPECT_EQ(made(model, Layout::sparse_coo, 0).model["w"].layout() == Layout::sparse_coo, coo) << set;
    EXPECT_EQ(made(model, Layout::sparse_coo, set / 100.0).model["w"].layout(), Layout::sparse_coo);
    EXPECT_EQ(made(model, Layout::sparse_coo, set / 100.0 - 0.001).model["w"].layout(), Layout::dense);
  }
}

TEST(Sparsify, CsrAndCooTurnIntoEachOther) {
  // Not sorted, and two entries for one element, whose order decides their sum.
  Builder builder;
  builder.object("w", Layout::sparse_coo, {3, 4}, {{"note", Value::text("kept")}},
                 {{"values", DType::u8, {4}, test::bytes_of("\x01\x02\x03\x04")},
                  {"coords", DType::u16, {2, 4}, test::bytes_of(packed<std::uint16_t>({2, 0, 2, 0, 1, 3, 1, 0}))}});
  const Model coo = builder.build();
  const Model csr = made(coo, Layout::sparse_csr).model, again = made(csr, Layout::sparse_coo).model;
  EXPECT_EQ(words(csr["w"], "indptr"), "0 2 2 4 ");
  EXPECT_EQ(words(csr["w"], "indices"), "3 0 1 1 ");
  EXPECT_EQ(test::logical_bytes(*csr["w"].part("values")), "\x02\x04\x01\x03");
  EXPECT_EQ(words(again["w"], "coords"), "0 0 2 2 3 0 1 1 ");
  const Tensor w = csr["w"];
  EXPECT_EQ(w.attribute("note")->as_text(), "kept");
  EXPECT_EQ(test::dense_bytes(w), test::dense_bytes(coo["w"]));
  EXPECT_EQ(test::dense_bytes(again["w"]), test::dense_bytes(coo["w"]));
  EXPECT_TRUE(made(csr, Layout::sparse_csr).changes.empty());
}

TEST(Sparsify, WhatDoesNotFitStaysAsItIs) {
  const auto stays = [](const Model& model, Layout layout) {
    const Derived out = made(model, layout);
    return out.changes.empty() && out.model[0].layout() == model[0].layout();
  };
  EXPECT_TRUE(stays(one(DType::f32, {}, std::string(4, '\0')), Layout::sparse_coo));
  EXPECT_TRUE(stays(one(DType::f32, {0, 4}, {}), Layout::sparse_csr));
  EXPECT_TRUE(stays(one(DType::f8_e8m0, {2, 2}, std::string(4, '\0')), Layout::sparse_csr));
  EXPECT_TRUE(stays(one(DType::f32, {4}, std::string(16, '\0')), Layout::sparse_csr));
  // Row bounds of 2^40 rows for one entry.
  Builder builder;
  builder.object("w", Layout::sparse_coo, {std::uint64_t{1} << 40, 4}, {},
                 {{"values", DType::u8, {1}, test::bytes_of("\x01")},
                  {"coords", DType::u64, {2, 1}, test::bytes_of(packed<std::uint64_t>({7, 1}))}});
  EXPECT_TRUE(stays(builder.build(), Layout::sparse_csr));
}

TEST(Sparsify, TensorsThatShareTheirBytesGoOnSharingThem) {
  Draft draft;
  draft.add_source(memory_source(test::bytes_of(std::string(4000, '\0'))));
  const std::vector<std::uint64_t> shape{10, 100};
  for (const char* name : {"a", "b"}) {
    draft.add_tensor(name, Layout::dense, DType::f32, shape);
    draft.add_part("data", DType::f32, shape, Encoding::raw, {0, 0, 4000}, 4000);
  }
  draft.index_names();
  EXPECT_TRUE(made(draft.finish(), Layout::sparse_csr, 0).changes.empty());
}

TEST(Sparsify, MoreThanAPieceAndMoreRowsThanEntries) {
  const std::uint64_t rows = 3000, columns = 700;
  std::vector<std::uint32_t> values(rows * columns);
  for (std::size_t i = 5; i < values.size(); i += 9973) values[i] = static_cast<std::uint32_t>(i);
  const std::string bytes = packed(values);
  const Model dense = one(DType::u32, {rows, columns}, bytes);
  for (const Layout layout : {Layout::sparse_csr, Layout::sparse_coo}) {
    const Model sparse = made(dense, layout, 0).model;
    EXPECT_EQ(sparse["w"].layout(), layout);
    EXPECT_EQ(test::dense_bytes(sparse["w"]), bytes);
    const Layout other = layout == Layout::sparse_csr ? Layout::sparse_coo : Layout::sparse_csr;
    EXPECT_EQ(test::dense_bytes(made(sparse, other).model["w"]), bytes);
  }
}

TEST(Sparsify, BrokenIndicesAreRefused) {
  Builder builder;
  builder.object("csr", Layout::sparse_csr, {2, 2}, {},
                 {{"values", DType::u8, {1}, test::bytes_of("\x01")},
                  {"indices", DType::u64, {1}, test::bytes_of(packed<std::uint64_t>({0}))},
                  {"indptr", DType::u64, {3}, test::bytes_of(packed<std::uint64_t>({0, UINT64_MAX, 1}))}});
  builder.object("coo", Layout::sparse_coo, {2, 2}, {},
                 {{"values", DType::u8, {1}, test::bytes_of("\x01")},
                  {"coords", DType::u64, {2, 1}, test::bytes_of(packed<std::uint64_t>({2, 0}))}});
  const Model model = builder.build();
  const Model coo = made(model, Layout::sparse_coo).model, csr = made(model, Layout::sparse_csr).model;
  EXPECT_EQ(test::thrown([&] { test::logical_bytes(*coo["csr"].part("coords")); }).kind, Kind::malformed);
  EXPECT_EQ(test::thrown([&] { test::logical_bytes(*csr["coo"].part("indptr")); }).kind, Kind::malformed);
}

}  // namespace
}  // namespace weighbridge::core
