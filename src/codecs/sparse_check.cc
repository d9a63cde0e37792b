// SPDX-License-Identifier: Apache-2.0
// Checks the content rules of sparse tensors, in pieces and bounded memory.
#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <utility>

#include "base/checked.h"
#include "codecs/sparse.h"

namespace weighbridge::codecs {
namespace {

using sparse_detail::is_index, sparse_detail::load_index;

std::string spell(bool non_negative, std::uint64_t value) {
  return non_negative ? fmt::format("{}", value) : fmt::format("{}", static_cast<std::int64_t>(value));
}

SparseViolation violation(SparseFault fault, std::uint64_t element, std::string expected, std::string found,
                          std::string message) {
  return {fault, element, std::move(expected), std::move(found), std::move(message)};
}

using Repeats = std::vector<std::pair<std::uint64_t, std::uint64_t>>;

// Repeated keys as (position, earlier position), ordered by position. Returns at most as many as a report keeps; `more`
// counts the rest. Keys in ascending order, as most writers produce, need no sorting.
Repeats find_repeated(const std::vector<std::uint64_t>& keys, std::uint64_t& more) {
  Repeats found;
  if (std::adjacent_find(keys.begin(), keys.end(), std::greater_equal<>()) == keys.end()) return found;
  std::vector<std::pair<std::uint64_t, std::uint64_t>> places(keys.size());
  for (std::size_t i = 0; i < keys.size(); ++i) places[i] = {keys[i], i};
  std::sort(places.begin(), places.end());
  for (std::size_t i = 1; i < places.size(); ++i) {
    if (places[i].first != places[i - 1].first) continue;
    if (found.size() < SparseReport::kMaxViolations)
      found.emplace_back(places[i].second, places[i - 1].second);
    else
      ++more;
  }
  std::sort(found.begin(), found.end());
  return found;
}

}  // namespace

void SparseReport::add(SparseViolation v) {
  ++total;
  if (violations.size() < kMaxViolations) violations.push_back(std::move(v));
}

CsrChecker::CsrChecker(std::uint64_t rows, std::uint64_t cols, std::uint64_t nnz, DType indptr, DType indices,
                       std::uint64_t memory_budget, bool ordered)
    : rows_(rows),
      cols_(cols),
      nnz_(nnz),
      budget_(memory_budget / 8),
      indptr_dtype_(indptr),
      index_dtype_(indices),
      keep_bounds_(is_index(indptr) && is_index(indices) && rows < budget_),
      ordered_(ordered) {
  if (!is_index(indptr) || !is_index(indices))
    report_.add(violation(SparseFault::dtype, 0, "an integer dtype",
                          std::string(name(is_index(indptr) ? indices : indptr)),
                          "row bounds and column indices are of integer dtypes"));
}

void CsrChecker::indptr(std::span<const std::byte> piece) {
  if (!is_index(indptr_dtype_) || !is_index(index_dtype_)) return;
  const std::uint64_t count = piece.size() / (info(indptr_dtype_).bits / 8);
  for (std::uint64_t i = 0; i < count; ++i, ++bounds_seen_) {
    std::uint64_t bound = 0;
    const bool good = load_index(indptr_dtype_, piece.data(), i, bound);
    if (bounds_seen_ == 0 && (!good || bound != 0))
      report_.add(violation(SparseFault::indptr_start, 0, "0", spell(good, bound),
                            fmt::format("indptr begins with {}, it must begin with 0", spell(good, bound))));
    else if (bounds_seen_ > 0 && (!good || bound < last_bound_))
      report_.add(violation(
          SparseFault::indptr_order, bounds_seen_, fmt::format("at least {}", last_bound_), spell(good, bound),
          fmt::format("indptr[{}] is {}, less than the {} before it", bounds_seen_, spell(good, bound), last_bound_)));
    if (good) last_bound_ = bound;
    if (keep_bounds_ && bounds_seen_ <= rows_) bounds_.push_back(last_bound_);
  }
}

// At the end of indptr, compares its last element with nnz and decides whether rows can be separated.
void CsrChecker::end_indptr() {
  if (std::exchange(ended_, true)) return;
  if (!is_index(indptr_dtype_) || !is_index(index_dtype_)) return;
  if (bounds_seen_ != rows_ + 1) {
    report_.add(violation(SparseFault::size, bounds_seen_, fmt::format("{}", rows_ + 1),
                          fmt::format("{}", bounds_seen_),
                          fmt::format("indptr has {} elements, {} rows need {}", bounds_seen_, rows_, rows_ + 1)));
  } else if (last_bound_ != nnz_) {
    report_.add(violation(SparseFault::indptr_end, rows_, fmt::format("{}", nnz_), fmt::format("{}", last_bound_),
                          fmt::format("indptr ends with {}, there are {} values", last_bound_, nnz_)));
  }
  keep_bounds_ = keep_bounds_ && report_.total == 0;
  if (!keep_bounds_) {
    report_.duplicates_checked = false;
    bounds_ = {};
  }
}

void CsrChecker::indices(std::span<const std::byte> piece) {
  end_indptr();
  if (!is_index(indptr_dtype_) || !is_index(index_dtype_)) return;
  const std::uint64_t count = piece.size() / (info(index_dtype_).bits / 8);
  for (std::uint64_t i = 0; i < count; ++i, ++indices_seen_) {
    while (keep_bounds_ && row_number_ < rows_ && indices_seen_ >= bound_of(row_number_ + 1)) end_row();
    std::uint64_t col = 0;
    const bool good = load_index(index_dtype_, piece.data(), i, col);
    if (!good || col >= cols_)
      report_.add(violation(SparseFault::index_range, indices_seen_, fmt::format("less than {}", cols_),
                            spell(good, col),
                            fmt::format("column index {} of entry {} is outside the {} columns", spell(good, col),
                                        indices_seen_, cols_)));
    if (!keep_bounds_) continue;
    if (rows_ + 1 + 4 * (row_.size() + 1) > budget_) {  // a vector grows by doubling, and sorting needs pairs
      keep_bounds_ = report_.duplicates_checked = false;
      bounds_ = {};
      row_ = {};
      continue;
    }
    row_.push_back(col);
  }
}

std::uint64_t CsrChecker::bound_of(std::uint64_t row) const { return bounds_[base::to_size(row)]; }

// Finds duplicates among the collected indices of one row.
void CsrChecker::end_row() {
  if (ordered_) {
    const auto fall = std::adjacent_find(row_.begin(), row_.end(), std::greater<>());
    if (fall != row_.end()) {
      const auto entry = bound_of(row_number_) + static_cast<std::uint64_t>(fall - row_.begin()) + 1;
      report_.add(violation(SparseFault::order, entry, fmt::format("more than {}", *fall),
                            fmt::format("{}", *std::next(fall)),
                            fmt::format("the column indices of row {} do not rise", row_number_)));
    }
  }
  std::uint64_t total = 0;
  for (const auto& [entry, before] : find_repeated(row_, total))
    report_.add(violation(
        SparseFault::duplicate, bound_of(row_number_) + entry, "one", "two",
        fmt::format("entry {} repeats row {}, column {} of entry {}; the values add up", bound_of(row_number_) + entry,
                    row_number_, row_[base::to_size(entry)], bound_of(row_number_) + before)));
  report_.total += total;
  row_.clear();
  ++row_number_;
}

SparseReport CsrChecker::finish() {
  end_indptr();
  if (keep_bounds_)
    while (row_number_ < rows_) end_row();
  if (is_index(index_dtype_) && is_index(indptr_dtype_) && indices_seen_ != nnz_)
    report_.add(violation(SparseFault::size, indices_seen_, fmt::format("{}", nnz_), fmt::format("{}", indices_seen_),
                          fmt::format("there are {} indices and {} values", indices_seen_, nnz_)));
  return std::move(report_);
}

CooChecker::CooChecker(std::vector<std::uint64_t> shape, std::uint64_t nnz, DType coords, std::uint64_t memory_budget)
    : shape_(std::move(shape)),
      nnz_(nnz),
      budget_(memory_budget),
      dtype_(coords),
      keep_keys_(is_index(coords) && nnz <= memory_budget / 16 && base::element_count(shape_).has_value()) {
  if (!is_index(coords))
    report_.add(violation(SparseFault::dtype, 0, "an integer dtype", std::string(name(coords)),
                          "coords are of an integer dtype"));
  report_.duplicates_checked = keep_keys_;
}

void CooChecker::coords(std::span<const std::byte> piece) {
  if (!is_index(dtype_) || nnz_ == 0) return;
  const std::uint64_t count = piece.size() / (info(dtype_).bits / 8);
  for (std::uint64_t i = 0; i < count; ++i, ++seen_) {
    const std::uint64_t dimension = seen_ / nnz_, entry = seen_ % nnz_;
    if (dimension >= shape_.size()) continue;  // finish() reports the count
    const std::uint64_t size = shape_[base::to_size(dimension)];
    std::uint64_t index = 0;
    const bool good = load_index(dtype_, piece.data(), i, index);
    if (!good || index >= size) {
      report_.add(violation(SparseFault::index_range, seen_, fmt::format("less than {}", size), spell(good, index),
                            fmt::format("coordinate {} of entry {} is outside dimension {}, which has {}",
                                        spell(good, index), entry, dimension, size)));
      keep_keys_ = report_.duplicates_checked = false;
      keys_ = {};
    }
    if (!keep_keys_) continue;
    if (dimension == 0)
      keys_.push_back(index);
    else
      keys_[base::to_size(entry)] = keys_[base::to_size(entry)] * size + index;
  }
}

void CooChecker::find_duplicates() {
  const bool ascending = std::adjacent_find(keys_.begin(), keys_.end(), std::greater_equal<>()) == keys_.end();
  if (!ascending && nnz_ > budget_ / 32) {  // 16 bytes per key in a vector that grows by doubling, 16 per position
    report_.duplicates_checked = false;
    return;
  }
  std::uint64_t more = 0;
  for (const auto& [entry, before] : find_repeated(keys_, more))
    report_.add(violation(SparseFault::duplicate, entry, "one", "two",
                          fmt::format("entry {} has the coordinates of entry {}; the values add up", entry, before)));
  report_.total += more;
}

SparseReport CooChecker::finish() {
  const auto expected = base::checked_mul(nnz_, shape_.size());
  const bool complete = nnz_ == 0 || (expected && seen_ == *expected);
  if (is_index(dtype_) && !complete) {
    report_.add(violation(SparseFault::size, seen_, fmt::format("{} x {}", shape_.size(), nnz_),
                          fmt::format("{}", seen_),
                          fmt::format("there are {} coordinates, {} values of {} dimensions need another number", seen_,
                                      nnz_, shape_.size())));
    report_.duplicates_checked = false;
  } else if (keep_keys_) {
    find_duplicates();
  }
  return std::move(report_);
}

}  // namespace weighbridge::codecs
