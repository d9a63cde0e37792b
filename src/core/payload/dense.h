// SPDX-License-Identifier: Apache-2.0
// Dense forms of sparse tensors. For blocks, see core/payload/elements.h.
#pragma once
#include <cstddef>
#include <functional>
#include <memory>
#include <span>
#include <string_view>

#include "codecs/cast.h"
#include "weighbridge/model.h"

namespace weighbridge::core {

class Elements;

// Bytes of the dense form in that dtype. Throws if they exceed limits.decoded, or are out of proportion to the stored
// bytes.
std::uint64_t dense_size(const Tensor&, DType, const Limits&);
// An array of `size` bytes, whose elements the caller fills in.
Array new_array(DType, Shape, std::uint64_t size);
// Tensor::stream_dense(), and adds the cast's effects (overflow, rounding) to the tally.
void stream_dense(const Tensor&, DType, const Context&, const std::function<bool(std::span<const std::byte>)>& sink,
                  codecs::CastTally* tally);
// The dense form of a sparse tensor, made as a whole within limits.decoded.
std::shared_ptr<const Elements> sparse_elements(const Tensor&);
// Fills `out`, which has the dense size and is all zeros, from a sparse_csr or sparse_coo tensor. Throws
// Error{malformed} for indices out of range, Error{io}. Holds the tensor's parts in memory, within limits.decoded.
void fill_sparse(const Tensor&, const Context&, std::span<std::byte> out);
// Passes the elements that a sparse tensor stores, in its dtype and in pieces of whole elements, with the entries of
// one element added up. Returns how many other elements it has, which are zero. The memory depends on the entries,
// never on the shape. Throws as fill_sparse().
std::uint64_t stream_stored(const Tensor&, const Context&, const std::function<bool(std::span<const std::byte>)>& sink);

// A part with all its logical bytes in memory.
struct WholePart {
  std::unique_ptr<std::byte[]> bytes;
  std::size_t size = 0;
  DType dtype = DType::unknown;
  std::span<const std::byte> span() const noexcept { return {bytes.get(), size}; }
};
// [reads] Throws Error{unsupported} where there is no such part, Error{malformed} past limits.decoded.
WholePart whole_part(const Tensor&, std::string_view role, const Context&);

}  // namespace weighbridge::core
