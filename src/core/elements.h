// SPDX-License-Identifier: Apache-2.0
// Random access to the elements of a tensor, for every way in which elements are stored or computed: stored   raw
//   parts, strided ones, and frames of seekable zstd: Part::read_range() blocks   of every type in the table of block
//   types, decoded for the requested elements only (core/blocks.h) computed parts whose maker gave their elements
//   (PartDraft::elements()) cast     any of these in another dtype Other tensors (compressed, sparse, computed in
//   order) can only be streamed from the start: elements_of() has nothing for them.
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

class Elements {
 public:
  static constexpr std::uint64_t kAtOnce = std::uint64_t{1} << 16;  // with their results, these fit into the cache

  virtual ~Elements() = default;
  DType dtype() const noexcept { return dtype_; }
  std::uint64_t count() const noexcept { return count_; }
  // How many elements are computed together: reading one of them computes all, so ranges should begin and end at
  // multiples.
  virtual std::uint64_t granularity() const noexcept { return 1; }
  // How many elements a read should have: with fewer, neighboring reads repeat work; more only take memory.
  virtual std::uint64_t at_once() const noexcept { return kAtOnce; }
  // [reads] Fills `out` with the elements [first, first + n), which begin and end at whole bytes. Adds the effects of
  // casts to the tally, if one is given. Throws Error{io}, Error{malformed}, Error{misuse} for a value that the dtype
  // lacks.
  virtual void read(std::uint64_t first, std::uint64_t n, std::span<std::byte> out, const Context&,
                    codecs::CastTally* tally = nullptr) const = 0;

 protected:
  Elements(DType dtype, std::uint64_t count) : dtype_(dtype), count_(count) {}

 private:
  DType dtype_;
  std::uint64_t count_;
};

// Null if the tensor's elements cannot be read in any order. Throws Error{misuse} for a cast that does not exist, and
// as require_castable().
std::shared_ptr<const Elements> elements_of(const Tensor&, DType);
// The elements that the maker of a computed part provides; null if it provides none.
std::shared_ptr<const Elements> computed_elements(const Part&);
// Whether reads of at least so many bytes repeat no work, so that threads can divide the elements.
bool divides(const Elements&, std::uint64_t bytes) noexcept;
// The same for elements_of() of the tensor, where each range of so many bytes must have whole elements. False if the
// tensor has no Elements.
bool divides(const Tensor&, DType, std::uint64_t bytes) noexcept;
// Passes all of them to the sink in order, in pieces of about kPiece bytes. They divide() into such pieces.
void stream(const Elements&, const Context&, const std::function<bool(std::span<const std::byte>)>& sink,
            codecs::CastTally* tally = nullptr);

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

// Decodes the blocks of the requested elements only. Null unless the tensor has readable_blocks() and all its parts are
// stored uncompressed.
std::shared_ptr<const Elements> block_elements(const Tensor&);
// The f32 dense form, in pieces of at most kPiece bytes if the type's decoding unit fits. Streams the main part; reads
// the others in windows if they are stored uncompressed, else holds them within limits.decoded. Throws
// Error{unsupported} if this build cannot decode the blocks, Error{malformed} if parts have wrong sizes.
void stream_blocks(const Tensor&, const Context&, const std::function<bool(std::span<const std::byte>)>& sink);

}  // namespace weighbridge::core
