// SPDX-License-Identifier: Apache-2.0
// Makes sparse tensors dense and checks their content rules (reading Y4): indptr starts at 0, never decreases and ends
// at nnz; indices are in range; duplicate entries are a warning and add up.
//
// Indices have any integer dtype, little-endian, at any alignment; a negative index is out of range. All functions work
// on pieces.
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "weighbridge/dtype.h"

namespace weighbridge::codecs {

enum class SparseFault : std::uint8_t {
  none,
  dtype,         // values of f6, f4, f8_e8m0 (it has no zero) or unknown dtype; indices that are not integers
  size,          // spans whose sizes do not match
  indptr_start,  // indptr[0] is not 0
  indptr_order,  // indptr decreases
  indptr_end,    // the last indptr is not nnz
  index_range,   // an index outside its dimension
  duplicate,     // a repeated entry; a warning
  order,         // a column index of a CSR matrix below the one before it in its row; only if asked for
};

// `element` is an index into the array at fault: indptr for indptr faults, else indices or coords (coords count through
// all dimensions, as stored). `message` is one lower-case sentence without a final full stop.
struct SparseViolation {
  SparseFault fault = SparseFault::none;
  std::uint64_t element = 0;
  std::string expected, found, message;
};

struct SparseResult {
  SparseFault fault = SparseFault::none;
  std::uint64_t element = 0;  // index into the given array
  bool ok() const noexcept { return fault == SparseFault::none; }
};

// Whether sparse values of this dtype can be made dense, which needs a zero and sums.
bool can_be_sparse(DType value) noexcept;

// Writes rows of a CSR matrix to row-major `out`, which the caller has filled with zeros and which has (indptr elements
// - 1) * cols values. indptr has the row bounds of exactly these rows; indices and values have the entries [indptr
// front, indptr back). An entry is copied to an element whose bytes are all zero, and added to any other, in the
// value's dtype (rounded to nearest even; integers wrap; bool is or). Stops at the first fault.
SparseResult csr_to_dense(DType value, std::uint64_t cols, DType indptr_dtype, std::span<const std::byte> indptr,
                          DType index_dtype, std::span<const std::byte> indices, std::span<const std::byte> values,
                          std::span<std::byte> out);

// Writes a piece of the entries of a COO tensor to rows [first_row, first_row + rows) of the slowest dimension, in
// row-major `out`, which the caller has filled with zeros. coords[d] are the indices of dimension d for these entries;
// entries of other rows are skipped. Adds as csr_to_dense() does. `element` of a fault counts entries. Rank at least 1.
SparseResult coo_to_dense(DType value, std::span<const std::uint64_t> shape, DType index_dtype,
                          std::span<const std::span<const std::byte>> coords, std::span<const std::byte> values,
                          std::uint64_t first_row, std::uint64_t rows, std::span<std::byte> out);

// What a checker found. Keeps at most kMaxViolations, in order of elements within each rule; `total` counts all.
struct SparseReport {
  static constexpr std::size_t kMaxViolations = 1000;
  std::vector<SparseViolation> violations;
  std::uint64_t total = 0;
  bool duplicates_checked = true;  // false if that would exceed the memory budget, or the structure is invalid
  void add(SparseViolation violation);
};

// Checks a CSR matrix in one pass: all of indptr in pieces of whole elements, then all of indices, then finish().
// Memory: the row bounds (8 bytes per row) and the longest row (8 bytes per entry) if they fit the budget, else almost
// none.
class CsrChecker {
 public:
  // `ordered`: a row whose indices do not ascend is a fault; each row is reported once.
  CsrChecker(std::uint64_t rows, std::uint64_t cols, std::uint64_t nnz, DType indptr, DType indices,
             std::uint64_t memory_budget, bool ordered = false);
  void indptr(std::span<const std::byte> piece);
  void indices(std::span<const std::byte> piece);
  SparseReport finish();

 private:
  std::uint64_t bound_of(std::uint64_t row) const;
  void end_indptr();
  void end_row();

  std::uint64_t rows_, cols_, nnz_, budget_;
  DType indptr_dtype_, index_dtype_;
  std::uint64_t bounds_seen_ = 0, last_bound_ = 0, indices_seen_ = 0;
  bool keep_bounds_, ordered_, ended_ = false;
  std::vector<std::uint64_t> bounds_, row_;
  std::uint64_t row_number_ = 0;
  SparseReport report_;
};

// Checks a COO tensor's coords, all of them in stored order (dimension by dimension), in pieces of whole elements, then
// finish(). Memory: 8 bytes per entry, and 16 more if the entries are not in ascending order, if that fits the budget.
class CooChecker {
 public:
  CooChecker(std::vector<std::uint64_t> shape, std::uint64_t nnz, DType coords, std::uint64_t memory_budget);
  void coords(std::span<const std::byte> piece);
  SparseReport finish();

 private:
  void find_duplicates();

  std::vector<std::uint64_t> shape_;
  std::uint64_t nnz_, budget_, seen_ = 0;
  DType dtype_;
  bool keep_keys_;
  std::vector<std::uint64_t> keys_;
  SparseReport report_;
};

namespace sparse_detail {
// Loads integer element i of `data` as u64; false if it is negative (`value` then has its bits).
bool load_index(DType dtype, const std::byte* data, std::uint64_t i, std::uint64_t& value) noexcept;
bool is_index(DType dtype) noexcept;
}  // namespace sparse_detail

}  // namespace weighbridge::codecs
