// SPDX-License-Identifier: Apache-2.0
// Parts whose elements lie between those of other parts: a container that stores a whole sparse tensor as one blob has
// all of its parts there.
#pragma once
#include <cstdint>
#include <functional>
#include <optional>
#include <span>

#include "weighbridge/model.h"

namespace weighbridge::core {

// Where a part's elements are in its blob. The part's extent and encoding are those of the blob. A part has one row, or
// rank 2. Elements begin at multiples of `swap` and do not overlap. A part with strides is one row in
// Fortran order: the first dimension is the fastest.
struct Cut {
  std::uint64_t whole = 0;  // bytes of the decoded blob
  std::uint64_t first = 0;  // offset of the first element in it
  std::uint64_t step = 0;   // bytes from one element of a row to the next, at least an element
  std::uint64_t row = 0;    // bytes from the first element of a row to that of the next row; 0: it is one row
  std::uint32_t swap = 1;   // the blob's bytes are reversed in units of this many
  bool operator==(const Cut&) const = default;
};

// nullopt: the part has its stored bytes to itself.
std::optional<Cut> cut_of(const Part&) noexcept;
// The bytes to which the part's stored bytes decode: of the blob, or the part itself.
std::uint64_t decoded_size(const Part&) noexcept;
// Offset of the part's element in the blob.
std::uint64_t place_in(const Cut&, const Part&, std::uint64_t element) noexcept;
// How many bytes Part::stream() reads or decodes. Each row needs a pass over the blob, unless the part is small.
std::uint64_t cut_work(const Cut&, const Part&) noexcept;

// [reads] Delivers the part's elements in order, in pieces of any length, little-endian; bools may be any byte.
void stream_cut(const Part&, const Cut&, const Context&, const std::function<bool(std::span<const std::byte>)>& sink);

}  // namespace weighbridge::core
