// SPDX-License-Identifier: Apache-2.0
// Sparse tensors: conversion to dense against a plain sum, and one violation of each content rule.
#include "codecs/sparse.h"

#include <gtest/gtest.h>

#include <cstring>

#include "codecs/cast.h"

namespace weighbridge::codecs {
namespace {

using Data = std::vector<std::byte>;
using Numbers = std::vector<std::int64_t>;

Data pack(DType dtype, const Numbers& numbers) {
  Data out(numbers.size() * info(dtype).bits / 8);
  EXPECT_TRUE(cast(DType::i64, std::as_bytes(std::span(numbers)), dtype, out, numbers.size()).ok());
  return out;
}
template <class T> std::vector<T> unpack(const Data& data) {
  std::vector<T> out(data.size() / sizeof(T));
  std::memcpy(out.data(), data.data(), data.size());
  return out;
}

SparseReport check_csr(std::uint64_t rows, std::uint64_t cols, std::uint64_t nnz, DType indptr_dtype,
                       std::span<const std::byte> indptr, DType index_dtype, std::span<const std::byte> indices,
                       std::uint64_t memory_budget) {
  CsrChecker checker(rows, cols, nnz, indptr_dtype, index_dtype, memory_budget);
  checker.indptr(indptr);
  checker.indices(indices);
  return checker.finish();
}

SparseReport check_coo(std::span<const std::uint64_t> shape, std::uint64_t nnz, DType dtype,
                       std::span<const std::byte> coords, std::uint64_t memory_budget) {
  CooChecker checker({shape.begin(), shape.end()}, nnz, dtype, memory_budget);
  checker.coords(coords);
  return checker.finish();
}

constexpr DType kIntegers[] = {DType::u8,  DType::i8,  DType::u16, DType::i16,
                               DType::u32, DType::i32, DType::u64, DType::i64};

TEST(Csr, BecomesDenseWithAnyIndexDtype) {
  for (const DType pointer : kIntegers)
    for (const DType index : kIntegers) {
      Data out(3 * 4 * 4);
      const auto result = csr_to_dense(DType::f32, 4, pointer, pack(pointer, {0, 2, 2, 5}), index,
                                       pack(index, {1, 3, 0, 2, 0}), pack(DType::f32, {1, 2, 3, 4, 10}), out);
      EXPECT_TRUE(result.ok());
      EXPECT_EQ(unpack<float>(out), (std::vector<float>{0, 1, 0, 2, 0, 0, 0, 0, 13, 0, 4, 0}));
    }
}

TEST(Csr, TakesRowsFromTheMiddle) {
  Data out(2 * 4);
  const auto result = csr_to_dense(DType::u8, 4, DType::u64, pack(DType::u64, {100, 101, 103}), DType::u8,
                                   pack(DType::u8, {3, 0, 1}), pack(DType::u8, {7, 8, 9}), out);
  EXPECT_TRUE(result.ok());
  EXPECT_EQ(unpack<std::uint8_t>(out), (std::vector<std::uint8_t>{0, 0, 0, 7, 8, 9, 0, 0}));
}

TEST(Csr, DuplicatesAddUpInTheValuesDtype) {
  for (const DTypeInfo& dtype : all_dtypes()) {
    const auto value = dtype.dtype;
    if (!can_be_sparse(value) || dtype.kind == DTypeKind::complex) continue;
    Data out(dtype.bits / 8);
    const bool truth = value == DType::boolean;
    ASSERT_TRUE(csr_to_dense(value, 1, DType::u8, pack(DType::u8, {0, 3}), DType::u8, pack(DType::u8, {0, 0, 0}),
                             pack(value, truth ? Numbers{1, 0, 1} : Numbers{1, 2, 3}), out)
                    .ok());
    EXPECT_EQ(out, pack(value, {truth ? 1 : 6})) << dtype.name;
  }
  Data out(1);
  ASSERT_TRUE(csr_to_dense(DType::u8, 1, DType::u8, pack(DType::u8, {0, 2}), DType::u8, pack(DType::u8, {0, 0}),
                           pack(DType::u8, {200, 100}), out)
                  .ok());
  EXPECT_EQ(std::to_integer<int>(out[0]), 44);
  Data complex(8);
  const std::vector<float> pairs{1, 2, 10, 20};
  ASSERT_TRUE(csr_to_dense(DType::complex64, 1, DType::u8, pack(DType::u8, {0, 2}), DType::u8, pack(DType::u8, {0, 0}),
                           std::as_bytes(std::span(pairs)), complex)
                  .ok());
  EXPECT_EQ(unpack<float>(complex), (std::vector<float>{11, 22}));
}

TEST(Csr, CopiesASingleEntryBitForBit) {
  const Data minus_zero_and_nan{std::byte{0}, std::byte{0x80}, std::byte{1}, std::byte{0x7C}};
  Data out(4);
  ASSERT_TRUE(csr_to_dense(DType::f16, 2, DType::u8, pack(DType::u8, {0, 2}), DType::u8, pack(DType::u8, {0, 1}),
                           minus_zero_and_nan, out)
                  .ok());
  EXPECT_EQ(out, minus_zero_and_nan);
}

TEST(Csr, StopsAtTheFirstFault) {
  const auto fault = [](const Numbers& pointers, const Numbers& indices, std::size_t values, std::size_t out_size,
                        DType value = DType::u8) {
    Data out(out_size);
    const auto r = csr_to_dense(value, 4, DType::i64, pack(DType::i64, pointers), DType::i64, pack(DType::i64, indices),
                                Data(values), out);
    return std::pair{r.fault, r.element};
  };
  using F = SparseFault;
  EXPECT_EQ(fault({0, 1, 2}, {3, 4}, 2, 8), std::pair(F::index_range, std::uint64_t{1}));
  EXPECT_EQ(fault({0, 1, 2}, {-1, 0}, 2, 8), std::pair(F::index_range, std::uint64_t{0}));
  EXPECT_EQ(fault({0, 2, 1}, {0, 0}, 2, 8), std::pair(F::indptr_order, std::uint64_t{2}));
  EXPECT_EQ(fault({-1, 0, 1}, {0, 0}, 2, 8), std::pair(F::indptr_order, std::uint64_t{0}));
  EXPECT_EQ(fault({0, 1, 3}, {0, 0}, 2, 8), std::pair(F::indptr_end, std::uint64_t{2}));
  EXPECT_EQ(fault({0, 1, 1}, {0, 0}, 2, 8), std::pair(F::indptr_end, std::uint64_t{2}));
  EXPECT_EQ(fault({0, 1, 2}, {0, 0}, 3, 8).first, F::size);
  EXPECT_EQ(fault({0, 1, 2}, {0, 0}, 2, 9).first, F::size);
  EXPECT_EQ(fault({}, {}, 0, 0).first, F::size);
  EXPECT_EQ(fault({0, 1}, {0}, 1, 4, DType::f8_e8m0).first, F::dtype);
  EXPECT_EQ(fault({0, 1}, {0}, 1, 4, DType::f4).first, F::dtype);
}

TEST(Coo, BecomesDenseByWindowsAndPieces) {
  const std::uint64_t shape[] = {3, 2, 2};
  for (const DType index : kIntegers) {
    const Data rows = pack(index, {2, 0, 2, 1}), columns = pack(index, {1, 0, 1, 1}),
               depths = pack(index, {0, 1, 0, 1}), values = pack(DType::i32, {5, 6, 7, 8});
    const std::span<const std::byte> coords[] = {rows, columns, depths};
    Data all(12 * 4);
    ASSERT_TRUE(coo_to_dense(DType::i32, shape, index, coords, values, 0, 3, all).ok());
    EXPECT_EQ(unpack<std::int32_t>(all), (std::vector<std::int32_t>{0, 6, 0, 0, 0, 0, 0, 8, 0, 0, 12, 0}));
    for (std::uint64_t row = 0; row < 3; ++row) {
      Data window(4 * 4);
      ASSERT_TRUE(coo_to_dense(DType::i32, shape, index, coords, values, row, 1, window).ok());
      EXPECT_TRUE(std::equal(window.begin(), window.end(), all.begin() + static_cast<std::ptrdiff_t>(row * 16)));
    }
  }
}

TEST(Coo, StopsAtTheFirstFault) {
  const std::uint64_t shape[] = {2, 2};
  const Data good = pack(DType::i8, {0, 1}), high = pack(DType::i8, {0, 2}), low = pack(DType::i8, {-1, 0}), values(2);
  Data out(4);
  const auto fault = [&](const Data& a, const Data& b, std::uint64_t first, std::uint64_t rows) {
    const std::span<const std::byte> coords[] = {a, b};
    const auto r = coo_to_dense(DType::u8, shape, DType::i8, coords, values, first, rows, out);
    return std::pair{r.fault, r.element};
  };
  EXPECT_EQ(fault(good, good, 0, 2).first, SparseFault::none);
  EXPECT_EQ(fault(good, high, 0, 2), std::pair(SparseFault::index_range, std::uint64_t{1}));
  EXPECT_EQ(fault(low, good, 0, 2), std::pair(SparseFault::index_range, std::uint64_t{0}));
  EXPECT_EQ(fault(good, Data(1), 0, 2).first, SparseFault::size);
  EXPECT_EQ(fault(good, good, 1, 2).first, SparseFault::size);
  EXPECT_EQ(fault(good, good, 0, 1).first, SparseFault::size);
}

SparseReport csr(std::uint64_t rows, std::uint64_t cols, std::uint64_t nnz, const Numbers& pointers,
                 const Numbers& indices, std::uint64_t budget = 1 << 20) {
  const Data p = pack(DType::i64, pointers), i = pack(DType::i16, indices);
  const auto report = check_csr(rows, cols, nnz, DType::i64, p, DType::i16, i, budget);
  CsrChecker crumbs(rows, cols, nnz, DType::i64, DType::i16, budget);
  for (std::size_t at = 0; at < p.size(); at += 8) crumbs.indptr(std::span(p).subspan(at, 8));
  for (std::size_t at = 0; at < i.size(); at += 2) crumbs.indices(std::span(i).subspan(at, 2));
  const auto again = crumbs.finish();
  EXPECT_EQ(report.total, again.total);
  EXPECT_EQ(report.duplicates_checked, again.duplicates_checked);
  return report;
}

TEST(CsrCheck, PassesWhatIsSound) {
  const auto report = csr(4, 10, 5, {0, 2, 2, 5, 5}, {9, 0, 1, 2, 3});
  EXPECT_EQ(report.total, 0u);
  EXPECT_TRUE(report.duplicates_checked);
  EXPECT_EQ(csr(0, 10, 0, {0}, {}).total, 0u);
}

TEST(CsrCheck, NamesEachBrokenRule) {
  const auto only = [](const SparseReport& report) {
    EXPECT_EQ(report.total, 1u);
    return report.total > 0 ? std::pair{report.violations[0].fault, report.violations[0].element}
                            : std::pair{SparseFault::none, std::uint64_t{0}};
  };
  using F = SparseFault;
  EXPECT_EQ(only(csr(2, 4, 2, {1, 1, 2}, {0, 1})), std::pair(F::indptr_start, std::uint64_t{0}));
  EXPECT_EQ(only(csr(2, 4, 2, {-1, 1, 2}, {0, 1})), std::pair(F::indptr_start, std::uint64_t{0}));
  EXPECT_EQ(only(csr(3, 4, 2, {0, 2, 1, 2}, {0, 1})), std::pair(F::indptr_order, std::uint64_t{2}));
  EXPECT_EQ(only(csr(2, 4, 2, {0, 1, 3}, {0, 1})), std::pair(F::indptr_end, std::uint64_t{2}));
  EXPECT_EQ(only(csr(2, 4, 2, {0, 2}, {0, 1})), std::pair(F::size, std::uint64_t{2}));
  EXPECT_EQ(only(csr(2, 4, 2, {0, 1, 2}, {0, 4})), std::pair(F::index_range, std::uint64_t{1}));
  EXPECT_EQ(only(csr(2, 4, 2, {0, 1, 2}, {-3, 0})), std::pair(F::index_range, std::uint64_t{0}));
  EXPECT_EQ(only(csr(2, 4, 2, {0, 1, 2}, {0})), std::pair(F::size, std::uint64_t{1}));
  EXPECT_EQ(only(csr(2, 4, 5, {0, 2, 5}, {0, 1, 3, 0, 3})), std::pair(F::duplicate, std::uint64_t{4}));
  EXPECT_EQ(csr(2, 4, 2, {0, 1, 2}, {-3, 0}).violations[0].message,
            "column index -3 of entry 0 is outside the 4 columns");
  EXPECT_EQ(check_csr(1, 1, 0, DType::f32, {}, DType::u8, {}, 1000).violations[0].fault, F::dtype);
}

TEST(CsrCheck, SaysWhenDuplicatesWereNotLookedFor) {
  const auto report = csr(2, 4, 4, {0, 2, 4}, {1, 1, 4, 0}, 16);
  EXPECT_FALSE(report.duplicates_checked);
  EXPECT_EQ(report.total, 1u);  // the range is still checked
  EXPECT_FALSE(csr(3, 4, 2, {0, 2, 1, 2}, {1, 1}).duplicates_checked);
}

TEST(CsrCheck, AHostileRowIsNoQuadraticWork) {
  Numbers indices;
  for (std::int64_t i = 0; i < 300'000; ++i) indices.push_back(i % 30'000);
  const auto report = csr(1, 32'000, 300'000, {0, 300'000}, indices, 1 << 28);
  EXPECT_EQ(report.total, 270'000u);
  EXPECT_EQ(report.violations.size(), SparseReport::kMaxViolations);
}

TEST(CooCheck, FindsRangesDuplicatesAndSizes) {
  const std::uint64_t shape[] = {3, 4};
  const auto check = [&](const Numbers& coords, std::uint64_t nnz, std::uint64_t budget = 1 << 20) {
    const Data data = pack(DType::i32, coords);
    CooChecker crumbs({3, 4}, nnz, DType::i32, budget);
    for (std::size_t at = 0; at < data.size(); at += 4) crumbs.coords(std::span(data).subspan(at, 4));
    const auto report = check_coo(shape, nnz, DType::i32, data, budget);
    EXPECT_EQ(crumbs.finish().total, report.total);
    return report;
  };
  EXPECT_EQ(check({0, 1, 2, 0, 3, 1}, 3).total, 0u);
  EXPECT_EQ(check({2, 1, 0, 0, 3, 1}, 3).total, 0u);
  EXPECT_TRUE(check({}, 0).duplicates_checked);
  const auto range = check({0, 1, 2, 0, 4, 1}, 3);
  ASSERT_EQ(range.total, 1u);
  EXPECT_EQ(range.violations[0].element, 4u);
  EXPECT_EQ(range.violations[0].message, "coordinate 4 of entry 1 is outside dimension 1, which has 4");
  EXPECT_FALSE(range.duplicates_checked);
  const auto twice = check({2, 0, 2, 3, 1, 3}, 3);
  ASSERT_EQ(twice.total, 1u);
  EXPECT_EQ(twice.violations[0].fault, SparseFault::duplicate);
  EXPECT_EQ(twice.violations[0].element, 2u);
  EXPECT_FALSE(check({2, 0, 2, 3, 1, 3}, 3, 47).duplicates_checked);  // no room for keys
  EXPECT_FALSE(check({2, 0, 2, 3, 1, 3}, 3, 64).duplicates_checked);  // room for keys, but not to sort them
  EXPECT_EQ(check({0, 1, 2, 0, 3}, 3).violations[0].fault, SparseFault::size);
  EXPECT_EQ(check({0, 1, 2, 0, 3, 1, 1}, 3).violations[0].fault, SparseFault::size);
}

}  // namespace
}  // namespace weighbridge::codecs
