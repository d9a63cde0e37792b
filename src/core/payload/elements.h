// SPDX-License-Identifier: Apache-2.0
// Random access to the elements of a tensor or a part: one interface for every way in which they are stored or
// computed.
//
//   class           whose elements                                    what read() costs
//   StoredElements  parts: raw, strided, seekable zstd                the elements, or the frames that hold them
//                   other encoded parts, parts among others (Cut),    all before them, too: at_once() is count()
//                   computed parts that are only made in order
//   SparseElements  sparse tensors, zeros included                    all of them
//   BlockElements   every type in the table of block types            their blocks; if a part is not raw, as a stream
//   MadeElements    computed parts, by a function                     what the function reads
//   MappedElements  any of these in units that a function converts:   as the elements that it converts
//                   casts, blocks of a quantization, sums of LoRA
//   HeadElements    any of these with the rows of heads rearranged    as the elements that it rearranges
#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>

#include "codecs/blocks.h"
#include "codecs/cast.h"
#include "weighbridge/model.h"

namespace weighbridge::core {

// The bytes of so many elements, and the whole elements in so many bytes.
std::size_t bytes_of(DType, std::uint64_t n);
std::uint64_t elements_in(std::uint64_t bytes, DType) noexcept;

// Returns whether to continue.
using ElementSink = std::function<bool(std::span<const std::byte>)>;

class Elements {
 public:
  static constexpr std::uint64_t kAtOnce = std::uint64_t{1} << 16;  // with their results, these fit into the cache

  virtual ~Elements() = default;
  DType dtype() const noexcept { return dtype_; }
  std::uint64_t count() const noexcept { return count_; }
  // How many elements are computed together: reading one of them computes all, so ranges should begin and end at
  // multiples.
  virtual std::uint64_t granularity() const noexcept { return 1; }
  // How many elements a read should have: with fewer, neighboring reads repeat work; more only take memory. count() if
  // each read begins with the first element.
  virtual std::uint64_t at_once() const noexcept { return kAtOnce; }
  // [reads] Fills `out` with the elements [first, first + n), which begin and end at whole bytes. Adds the effects of
  // casts to the tally, if one is given. Throws Error{io}, Error{malformed}, Error{misuse} for a value that the dtype
  // lacks. Threads may read at the same time.
  virtual void read(std::uint64_t first, std::uint64_t n, std::span<std::byte> out, const Context&,
                    codecs::CastTally* tally = nullptr) const = 0;
  // [reads] Passes all elements to the sink in order, in pieces of at most about kPiece bytes, each of whole bytes.
  virtual void stream(const Context&, const ElementSink&, codecs::CastTally* tally = nullptr) const;

 protected:
  Elements(DType dtype, std::uint64_t count) : dtype_(dtype), count_(count) {}
  // read() by stream(), for elements that are made in order.
  void read_in_order(std::uint64_t first, std::uint64_t n, std::span<std::byte> out, const Context&,
                     codecs::CastTally*) const;

 private:
  DType dtype_;
  std::uint64_t count_;
};

using ElementsPtr = std::shared_ptr<const Elements>;

// Of the dense form in that dtype. Throws what Tensor::stream_dense() throws before it reads: Error{unsupported} if the
// tensor has no dense form, Error{misuse} for a cast that does not exist, and as require_castable().
ElementsPtr elements_of(const Tensor&, DType);
// Of a part of any layout, in its own dtype.
ElementsPtr elements_of(const Part&);
// Of the tensor's own, in another dtype. Throws Error{misuse} for a cast that does not exist.
ElementsPtr cast_of(const Tensor&, ElementsPtr own, DType);
// Whether reads of at least so many bytes repeat no work and can begin at any multiple of that, so that threads can
// divide the elements.
bool divides(const Elements&, std::uint64_t bytes) noexcept;
// The same for elements_of() of the tensor; false if it throws.
bool divides(const Tensor&, DType, std::uint64_t bytes) noexcept;

// Calls make() for the elements of each read, from several threads.
using MakeElements =
    std::function<void(std::uint64_t first, std::uint64_t n, std::span<std::byte> out, const Context&)>;
ElementsPtr made_elements(DType, std::uint64_t count, MakeElements make);
// Elements that are held in memory.
ElementsPtr held_elements(DType, std::uint64_t count, Bytes);

// Elements that are made from those of another, each unit of `to` elements from one of `from`. make() converts units,
// of which the first is number `first`, and may be called from several threads. Not for packed dtypes unless both units
// are one element.
struct Mapping {
  DType dtype = DType::unknown;
  std::uint64_t from = 1, to = 1;
  std::function<void(std::uint64_t first, std::span<const std::byte> in, std::span<std::byte> out, const Context&,
                     codecs::CastTally*)>
      make{};
};
ElementsPtr mapped(ElementsPtr from, Mapping);

// The length of the ranges in which a conversion reads a payload that can be read in any order.
inline constexpr std::uint64_t kPayloadRange = std::uint64_t{1} << 20;

// The integers of a part as u64: each with its sign. Throws Error{unsupported} for other types.
ElementsPtr widened(const Part&);

// How the rows of heads are rearranged. Sizes are in elements.
struct Heads {
  std::uint64_t head = 0;         // of one head, whole rows; 0: the elements stay as they are
  std::uint64_t times = 1;        // copies of each head, one after the other
  std::uint64_t row = 0;          // of one row, if rows i and i + half of a head become neighbors; else 0
  std::uint64_t added_zeros = 0;  // after the last head
};
ElementsPtr with_heads(ElementsPtr from, const Heads&);

// Throws Error{unsupported} for codes of a scheme, which cannot be cast.
void require_castable(const Tensor&);
// Throws Error{misuse} unless the cast succeeded. `first`: the index in the tensor where the cast began.
void require_cast(const Tensor&, DType from, DType to, const codecs::CastResult&, std::uint64_t first);

// Tensors whose elements are blocks: their parameters and their dense form, for every row of the table of block types.

// The parameters of such a tensor, not validated: see codecs::block_problem(). `dtypes` are those of its parts in the
// order of the type's roles.
codecs::BlockForm block_form(const BlockTypeInfo&, Shape, std::span<const Value::Entry> attributes,
                             std::span<const DType> dtypes);
// For a tensor with a block_type(); a missing part has DType::unknown.
codecs::BlockForm block_form(const Tensor&);
// Nothing unless the tensor can be read: a known block type, valid parameters, and parts of the right sizes.
std::optional<codecs::BlockForm> readable_blocks(const Tensor&);

// The f32 dense form of a quantized tensor. Decodes the blocks of the requested elements only, if all parts are stored
// uncompressed. Else it streams the main part, and holds the others within limits.decoded. Throws Error{unsupported} if
// this build cannot decode the blocks, Error{malformed} if parts have wrong sizes.
ElementsPtr block_elements(const Tensor&);

}  // namespace weighbridge::core
