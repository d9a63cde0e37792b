// SPDX-License-Identifier: Apache-2.0
// Sparse tensors: made dense, and their content rules (reading Y4): indptr starts at 0, never decreases, ends at nnz;
// indices lie in range; an entry that occurs twice is worth a warning and adds up.
//
// Index dtypes are any integers, little-endian, at any alignment; a negative index is out of range. Everything works on
// pieces.
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
  dtype,         // values of f6, f4, f8_e8m0 (it has no zero) or unknown; indices that are no integers
  size,          // spans whose sizes do not agree
  indptr_start,  // indptr[0] is not 0
  indptr_order,  // indptr decreases
  indptr_end,    // the last indptr is not nnz
  index_range,   // an index outside its dimension
  duplicate,     // an entry that occurred before; a warning
};

// `element` counts within the array to blame (indptr for the indptr faults, indices or coords otherwise; coords count
// through all dimensions, as they are stored). `message` is one lower-case sentence without a final full stop.
struct SparseViolation {
  SparseFault fault = SparseFault::none;
  std::uint64_t element = 0;
  std::string expected, found, message;
};

struct SparseResult {
  SparseFault fault = SparseFault::none;
  std::uint64_t element = 0;  // counts within the array handed in
  bool ok() const noexcept { return fault == SparseFault::none; }
};

// Whether sparse values of this dtype can be made dense: background zero, sums.
bool can_be_sparse(DType value) noexcept;

// Rows of a CSR matrix into row-major `out`, which the caller filled with zeros: out has (indptr elements - 1) * cols
// values. indptr holds the row bounds of exactly these rows, indices and values the entries [indptr front, indptr
// back). An entry on an element whose bytes are all zero is copied; on any other it is added in the value's dtype
// (rounded to nearest even; integers wrap; bool is or). Stops at the first fault.
SparseResult csr_to_dense(DType value, std::uint64_t cols, DType indptr_dtype, std::span<const std::byte> indptr,
                          DType index_dtype, std::span<const std::byte> indices, std::span<const std::byte> values,
                          std::span<std::byte> out);

// Entries of a COO tensor into the rows [first_row, first_row + rows) of the slowest dimension, which `out` holds
// row-major and the caller filled with zeros. coords[d] are the indices of dimension d of these entries; entries of
// other rows are passed over. Called for piece after piece of entries. Adding as in csr_to_dense. `element` of a fault
// counts entries. Rank at least 1.
SparseResult coo_to_dense(DType value, std::span<const std::uint64_t> shape, DType index_dtype,
                          std::span<const std::span<const std::byte>> coords, std::span<const std::byte> values,
                          std::uint64_t first_row, std::uint64_t rows, std::span<std::byte> out);

// What a checker found. At most kMaxViolations are kept, in order of elements within each rule; `total` counts all.
struct SparseReport {
  static constexpr std::size_t kMaxViolations = 1000;
  std::vector<SparseViolation> violations;
  std::uint64_t total = 0;
  bool duplicates_checked = true;  // false: it would have taken more than the memory budget, or the structure is broken
  void add(SparseViolation violation);
};

// Checks a CSR matrix in one pass: all of indptr in pieces of whole elements, then all of indices, then finish().
// Memory: the row bounds (8 bytes a row) and the longest row (8 bytes an entry), as long as they fit the budget;
// otherwise none to speak of.
class CsrChecker {
 public:
  CsrChecker(std::uint64_t rows, std::uint64_t cols, std::uint64_t nnz, DType indptr, DType indices,
             std::uint64_t memory_budget);
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
  bool keep_bounds_, ended_ = false;
  std::vector<std::uint64_t> bounds_, row_;
  std::uint64_t row_number_ = 0;
  SparseReport report_;
};
SparseReport check_csr(std::uint64_t rows, std::uint64_t cols, std::uint64_t nnz, DType indptr_dtype,
                       std::span<const std::byte> indptr, DType index_dtype, std::span<const std::byte> indices,
                       std::uint64_t memory_budget);

// Checks a COO tensor's coords, all of them in stored order (dimension by dimension), in pieces of whole elements, then
// finish(). Memory: 8 bytes an entry, and 16 more when the entries are not in ascending order, if that fits the budget.
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
SparseReport check_coo(std::span<const std::uint64_t> shape, std::uint64_t nnz, DType dtype,
                       std::span<const std::byte> coords, std::uint64_t memory_budget);

namespace sparse_detail {
// Integer element i of `data` as u64; false for a negative one (then `value` is its bits).
bool load_index(DType dtype, const std::byte* data, std::uint64_t i, std::uint64_t& value) noexcept;
bool is_index(DType dtype) noexcept;
}  // namespace sparse_detail

}  // namespace weighbridge::codecs
