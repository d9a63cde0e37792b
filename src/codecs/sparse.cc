// SPDX-License-Identifier: Apache-2.0
// Makes sparse tensors dense. sparse_check.cc checks the content rules; here the first fault stops the work.
#include "codecs/sparse.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "base/checked.h"
#include "base/endian.h"
#include "codecs/cast.h"

namespace weighbridge::codecs {

namespace sparse_detail {

bool is_index(DType dtype) noexcept {
  const DTypeKind kind = info(dtype).kind;
  return kind == DTypeKind::unsigned_integer || kind == DTypeKind::signed_integer;
}

bool load_index(DType dtype, const std::byte* data, std::uint64_t i, std::uint64_t& value) noexcept {
  const bool is_signed = info(dtype).kind == DTypeKind::signed_integer;
  switch (info(dtype).bits) {
    case 8: value = std::to_integer<std::uint64_t>(data[i]); break;
    case 16: value = base::load_le<std::uint16_t>(data + 2 * i); break;
    case 32: value = base::load_le<std::uint32_t>(data + 4 * i); break;
    default: value = base::load_le<std::uint64_t>(data + 8 * i); break;
  }
  if (!is_signed || (value >> (info(dtype).bits - 1) & 1) == 0) return true;
  if (info(dtype).bits < 64) value |= ~std::uint64_t{0} << info(dtype).bits;
  return false;
}

}  // namespace sparse_detail

namespace {

using sparse_detail::is_index, sparse_detail::load_index;

template <class Word, class Real> void add_real(std::byte* to, const std::byte* from) noexcept {
  const Real sum = std::bit_cast<Real>(base::load_le<Word>(to)) + std::bit_cast<Real>(base::load_le<Word>(from));
  base::store_le(to, std::bit_cast<Word>(sum));
}
template <class Word> void add_whole(std::byte* to, const std::byte* from) noexcept {
  base::store_le(to, static_cast<Word>(base::load_le<Word>(to) + base::load_le<Word>(from)));
}

// f16, bf16, f8: f32 has at least twice their bits plus two, so rounding the f32 sum again gives the correctly rounded
// result.
void add_narrow(DType dtype, std::byte* to, const std::byte* from) noexcept {
  const std::size_t bytes = info(dtype).bits / 8;
  std::byte a[4], b[4];
  cast(dtype, {to, bytes}, DType::f32, a, 1);
  cast(dtype, {from, bytes}, DType::f32, b, 1);
  add_real<std::uint32_t, float>(a, b);
  cast(DType::f32, a, dtype, {to, bytes}, 1);
}

void add(DType dtype, std::byte* to, const std::byte* from) noexcept {
  const std::size_t bytes = info(dtype).bits / 8;
  if (dtype == DType::boolean) {
    if (*from != std::byte{0}) *to = std::byte{1};
    return;
  }
  if (std::all_of(to, to + bytes, [](std::byte b) { return b == std::byte{0}; })) {
    std::memcpy(to, from, bytes);
    return;
  }
  switch (dtype) {
    case DType::u8:
    case DType::i8: return add_whole<std::uint8_t>(to, from);
    case DType::u16:
    case DType::i16: return add_whole<std::uint16_t>(to, from);
    case DType::u32:
    case DType::i32: return add_whole<std::uint32_t>(to, from);
    case DType::u64:
    case DType::i64: return add_whole<std::uint64_t>(to, from);
    case DType::f32: return add_real<std::uint32_t, float>(to, from);
    case DType::f64: return add_real<std::uint64_t, double>(to, from);
    case DType::complex64:
      add_real<std::uint32_t, float>(to, from);
      return add_real<std::uint32_t, float>(to + 4, from + 4);
    case DType::complex128:
      add_real<std::uint64_t, double>(to, from);
      return add_real<std::uint64_t, double>(to + 8, from + 8);
    default: return add_narrow(dtype, to, from);
  }
}

// Whether data has exactly a * b values of `bytes` bytes.
bool is_size(std::span<const std::byte> data, std::uint64_t a, std::uint64_t b, std::uint64_t bytes) noexcept {
  const auto elements = base::checked_mul(a, b);
  return elements && base::checked_mul(*elements, bytes) == data.size();
}

}  // namespace

bool can_be_sparse(DType value) noexcept { return info(value).bits >= 8 && value != DType::f8_e8m0; }

SparseResult csr_to_dense(DType value, std::uint64_t cols, DType indptr_dtype, std::span<const std::byte> indptr,
                          DType index_dtype, std::span<const std::byte> indices, std::span<const std::byte> values,
                          std::span<std::byte> out) {
  if (!can_be_sparse(value) || !is_index(indptr_dtype) || !is_index(index_dtype)) return {SparseFault::dtype};
  const std::size_t bytes = info(value).bits / 8, bound_bytes = info(indptr_dtype).bits / 8,
                    index_bytes = info(index_dtype).bits / 8;
  const std::uint64_t bounds = indptr.size() / bound_bytes, entries = indices.size() / index_bytes;
  if (bounds == 0 || indptr.size() % bound_bytes != 0 || indices.size() % index_bytes != 0 ||
      !is_size(values, entries, 1, bytes) || !is_size(out, bounds - 1, cols, bytes))
    return {SparseFault::size};
  std::uint64_t base = 0, begin = 0;
  if (!load_index(indptr_dtype, indptr.data(), 0, base)) return {SparseFault::indptr_order, 0};
  begin = base;
  for (std::uint64_t row = 0; row + 1 < bounds; ++row) {
    std::uint64_t end = 0;
    if (!load_index(indptr_dtype, indptr.data(), row + 1, end) || end < begin)
      return {SparseFault::indptr_order, row + 1};
    if (end - base > entries) return {SparseFault::indptr_end, row + 1};
    std::byte* to = out.data() + row * cols * bytes;
    for (std::uint64_t i = begin - base; i < end - base; ++i) {
      std::uint64_t col = 0;
      if (!load_index(index_dtype, indices.data(), i, col) || col >= cols) return {SparseFault::index_range, i};
      add(value, to + col * bytes, values.data() + i * bytes);
    }
    begin = end;
  }
  if (begin - base != entries) return {SparseFault::indptr_end, bounds - 1};
  return {};
}

SparseResult coo_to_dense(DType value, std::span<const std::uint64_t> shape, DType index_dtype,
                          std::span<const std::span<const std::byte>> coords, std::span<const std::byte> values,
                          std::uint64_t first_row, std::uint64_t rows, std::span<std::byte> out) {
  if (!can_be_sparse(value) || !is_index(index_dtype)) return {SparseFault::dtype};
  const std::size_t bytes = info(value).bits / 8, index_bytes = info(index_dtype).bits / 8;
  if (shape.empty() || coords.size() != shape.size() || values.size() % bytes != 0 ||
      !base::fits(first_row, rows, shape[0]))
    return {SparseFault::size};
  const std::uint64_t entries = values.size() / bytes;
  for (const auto& dimension : coords)
    if (!is_size(dimension, entries, 1, index_bytes)) return {SparseFault::size};
  const auto inner = base::element_count(shape.subspan(1));
  if (!inner || !is_size(out, rows, *inner, bytes)) return {SparseFault::size};
  for (std::uint64_t i = 0; i < entries; ++i) {
    std::uint64_t at = 0, row = 0;
    for (std::size_t d = 0; d < shape.size(); ++d) {
      std::uint64_t index = 0;
      if (!load_index(index_dtype, coords[d].data(), i, index) || index >= shape[d])
        return {SparseFault::index_range, i};
      if (d == 0)
        row = index;
      else
        at = at * shape[d] + index;
    }
    if (row < first_row || row - first_row >= rows) continue;
    add(value, out.data() + ((row - first_row) * *inner + at) * bytes, values.data() + i * bytes);
  }
  return {};
}

}  // namespace weighbridge::codecs
