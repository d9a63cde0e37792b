// SPDX-License-Identifier: Apache-2.0
// Elements of two tensors side by side: streams of bytes, the differences of a pair, hashes by which a tensor or its
// rows are found again.
#pragma once
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "codecs/checksum.h"
#include "codecs/pairs.h"
#include "core/payload/elements.h"
#include "core/payload/work.h"
#include "weighbridge/context.h"
#include "weighbridge/model.h"

namespace weighbridge::comparison {

using Sink = std::function<bool(std::span<const std::byte>)>;

// Bytes that can be read in order.
struct Stream {
  std::function<void(const Context&, const Sink&)> produce{};
  core::ElementsPtr direct{};  // if they can be read in any order
  std::uint64_t size = 0;
};
Stream stream_of(const Part&);

// A tensor whose elements can be read, as a row of `count` elements of one dtype.
struct Elements {
  Tensor tensor;
  DType dtype = DType::unknown;
  std::uint64_t count = 0;
  std::vector<std::uint64_t> shape{};
  Stream stream{};
};
// Of a tensor without unsupported().
Elements elements_of(const Tensor&);
// If both are matrices whose rows have the same length, as of two vocabularies, leaves the rows that both have, and
// returns how many; else 0. The pair then is two tensors of the same shape.
std::uint64_t keep_common_rows(Elements& a, Elements& b);
// Empty without a shape.
std::vector<std::uint64_t> shape_of(const Tensor&);
// Whether it is sparse and its dense form, which is held to be compared, takes more than Limits::memory.
bool is_too_sparse(const Elements&, const Limits&) noexcept;
// Adds what reading the elements takes: a small sparse tensor can claim any dense form.
void add_work(core::Work&, const Elements&);

// What a comparison found out.
struct Compared {
  codecs::PairDifferences values{};
  bool same_bits = true;  // of elements of the same dtype
};

// Counts bytes that were read.
using Did = std::function<void(std::uint64_t bytes)>;

// [reads] Whether both streams deliver the same bytes.
bool same_bytes(const Stream&, const Stream&, const Context&);
// [reads] The elements of a with those of b, which has as many, in order: take(bytes of a, bytes of b, elements), in
// pieces of whole bytes. `take` returns false to stop.
using TakePairs = std::function<bool(std::span<const std::byte>, std::span<const std::byte>, std::uint64_t)>;
void read_pairs(const Elements& a, const Elements& b, const Context&, const TakePairs& take);

// [reads] The elements of a with those of b, in order; both have the same count.
Compared compare(const Elements& a, const Elements& b, codecs::Tolerance, const Context&, const Did&);
// [reads] Element (row, column) of a with element (column, row) of b, which is held in memory; both have rank 2, and
// b's shape is that of a reversed.
Compared compare_transposed(const Elements& a, const Elements& b, codecs::Tolerance, const Context&);
// [reads] Whether two tensors that this build cannot read are stored with the same layout and bytes.
bool same_stored(const Tensor& a, const Tensor& b, const Context&);

// [reads] A hash of the values in order: equal for zeros of both signs, for all NaNs, and for the same values in any
// dtype up to f64, except integers of 64 bits.
codecs::Hash128 hash_values(const Elements&, const Context&);
// What hash_values() hashes; only tensors with the same form can have the same hash.
DType hashed_as(DType) noexcept;

// [reads] Whether b has the rows of a, which has the same shape and at least rank 2, in another order, and which order
// that is, if it is one that a rotation needs; empty if it is any other.
struct RowOrder {
  bool permuted = false;
  std::string name{};
};
RowOrder find_row_order(const Elements& a, const Elements& b, const Context&);
// [reads] A hash that is equal for the same rows in any order, of a tensor of at least rank 2 whose rows are whole
// bytes.
codecs::Hash128 hash_of_rows(const Elements&, const Context&);
bool has_rows(const Elements&) noexcept;  // what hash_of_rows() takes, and at least two of them

}  // namespace weighbridge::comparison
