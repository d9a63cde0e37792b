// SPDX-License-Identifier: Apache-2.0
// Makes sparse tensors dense.
#include <fmt/format.h>

#include <cstring>
#include <memory>
#include <vector>

#include "base/checked.h"
#include "base/fail.h"
#include "codecs/sparse.h"
#include "core/dense.h"

namespace weighbridge::core {

WholePart whole_part(const Tensor& tensor, std::string_view role, const Context& context) {
  const auto part = tensor.part(role);
  if (!part) {
    base::unsupported("unsupported/part", fmt::format("tensor \"{}\" has no part \"{}\"", tensor.name(), role));
  }
  if (part->size() > context.limits.decoded) {
    base::over_limit("decoded",
                     fmt::format("part \"{}\" of tensor \"{}\" is larger than the limit of {} bytes", role,
                                 tensor.name(), context.limits.decoded),
                     part->size());
  }
  const std::size_t size = base::to_size(part->size());
  WholePart whole{std::make_unique_for_overwrite<std::byte[]>(size), size, part->dtype()};
  std::uint64_t filled = 0;
  part->stream(context, [&](std::span<const std::byte> piece) {
    std::memcpy(whole.bytes.get() + filled, piece.data(), piece.size());
    filled += piece.size();
    return true;
  });
  return whole;
}

void fill_sparse(const Tensor& tensor, const Context& context, std::span<std::byte> out) {
  const Shape shape = tensor.shape();
  const WholePart values = whole_part(tensor, "values", context);
  codecs::SparseResult result;
  if (tensor.layout() == Layout::sparse_csr) {
    const WholePart indices = whole_part(tensor, "indices", context), indptr = whole_part(tensor, "indptr", context);
    if (shape.size() != 2) base::unsupported("unsupported/layout", "a sparse_csr tensor has rank 2");
    result = codecs::csr_to_dense(values.dtype, shape[1], indptr.dtype, indptr.span(), indices.dtype, indices.span(),
                                  values.span(), out);
  } else {
    const WholePart all = whole_part(tensor, "coords", context);
    const std::size_t one = shape.empty() ? 0 : all.size / shape.size();
    if (shape.empty() || one * shape.size() != all.size)
      base::unsupported("unsupported/layout", "a sparse_coo tensor has coords for each dimension");
    std::vector<std::span<const std::byte>> coords;
    for (std::size_t d = 0; d < shape.size(); ++d) coords.push_back(all.span().subspan(d * one, one));
    result = codecs::coo_to_dense(values.dtype, shape, all.dtype, coords, values.span(), 0, shape[0], out);
  }
  if (!result.ok()) {
    base::malformed(
        "part/sparse",
        fmt::format("the indices of sparse tensor \"{}\" do not fit its shape (entry {}): see `weighbridge verify`",
                    tensor.name(), result.element));
  }
}

}  // namespace weighbridge::core
