// SPDX-License-Identifier: Apache-2.0
// Dense forms: casts, sparse and quantized tensors. The output is row-major and little-endian.
#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <new>

#include "base/checked.h"
#include "base/fail.h"
#include "codecs/cast.h"
#include "core/model/state.h"
#include "core/model/words.h"
#include "core/payload/dense.h"
#include "core/payload/elements.h"
#include "core/payload/payload.h"
#include "core/payload/work.h"

namespace weighbridge {

namespace {

using Sink = std::function<bool(std::span<const std::byte>)>;

std::string quoted(const Tensor& tensor) { return core::quoted(tensor.name()); }

void require_elements(const Tensor& tensor) {
  if (const Finding* why = tensor.unsupported()) throw Error(*why);
}

}  // namespace

std::uint64_t core::dense_size(const Tensor& tensor, DType dtype, const Limits& limits) {
  require_dense_work(tensor, limits);
  const auto count = base::element_count(tensor.shape());
  const auto size = count ? packed_size(dtype, *count) : std::nullopt;
  if (!size || *size > limits.decoded) {
    base::over_limit("decoded",
                     fmt::format("the dense form of tensor {} is larger than the limit of {} bytes",
                                 quoted(tensor.name()), limits.decoded),
                     size.value_or(0));
  }
  return *size;
}

namespace {

class SparseElements final : public core::Elements {
 public:
  explicit SparseElements(const Tensor& tensor)
      : Elements(tensor.dtype(), base::element_count(tensor.shape()).value_or(UINT64_MAX)), tensor_(tensor) {}
  std::uint64_t at_once() const noexcept override { return count(); }
  void read(std::uint64_t first, std::uint64_t n, std::span<std::byte> out, const Context& context,
            codecs::CastTally* tally) const override {
    read_in_order(first, n, out, context, tally);
  }
  void stream(const Context& context, const Sink& sink, codecs::CastTally*) const override {
    const std::size_t size = base::to_size(core::dense_size(tensor_, dtype(), context.limits));
    const auto whole = std::make_unique<std::byte[]>(size);
    constexpr auto kStep = base::to_size(core::kPiece);
    core::fill_sparse(tensor_, context, {whole.get(), size});
    for (std::size_t at = 0; at < size; at += kStep)
      if (!sink({whole.get() + at, std::min(kStep, size - at)})) return;
  }

 private:
  Tensor tensor_;
};

}  // namespace

Array core::new_array(DType dtype, Shape shape, std::uint64_t size) {
  constexpr std::align_val_t kAlignment{64};
  const std::size_t bytes = base::to_size(size);
  return {
      dtype,
      {shape.begin(), shape.end()},
      std::shared_ptr<std::byte[]>(static_cast<std::byte*>(::operator new(std::max<std::size_t>(bytes, 1), kAlignment)),
                                   [](std::byte* p) { ::operator delete(p, kAlignment); }),
      size};
}

core::ElementsPtr core::sparse_elements(const Tensor& tensor) { return std::make_shared<SparseElements>(tensor); }

void core::stream_dense(const Tensor& tensor, DType dtype, const Context& context, const Sink& sink,
                        codecs::CastTally* tally) {
  require_elements(tensor);
  // Also of a dtype that this build does not know.
  if (dtype == tensor.dtype() && tensor.layout() == Layout::dense) return tensor.main().stream(context, sink);
  const ElementsPtr elements = elements_of(tensor, dtype);
  require_dense_work(tensor, context.limits);
  elements->stream(context, sink, tally);
}

void Tensor::stream_dense(DType dtype, const Context& context,
                          const std::function<bool(std::span<const std::byte>)>& sink) const {
  core::stream_dense(*this, dtype, context, sink, nullptr);
}

Array Tensor::to_dense(const Context& context) const { return to_dense(dtype(), context); }

Array Tensor::to_dense(DType dtype, const Context& context) const {
  require_elements(*this);
  const std::size_t size = base::to_size(core::dense_size(*this, dtype, context.limits));
  Array out = core::new_array(dtype, shape(), size);
  std::uint64_t filled = 0;
  stream_dense(dtype, context, [&](std::span<const std::byte> piece) {
    if (!base::fits(filled, piece.size(), size))
      base::malformed("part/size", "a part holds more bytes than the shape of its tensor");
    if (!piece.empty()) std::memcpy(out.data.get() + filled, piece.data(), piece.size());
    filled += piece.size();
    return true;
  });
  if (filled != size) base::malformed("part/size", "a part holds fewer bytes than the shape of its tensor");
  return out;
}

void Tensor::rows_into(std::uint64_t first, std::uint64_t count, DType dtype, std::span<std::byte> out,
                       const Context& context) const {
  require_elements(*this);
  const Shape dims = shape();
  if (dims.empty()) base::misuse("rows", fmt::format("tensor {} is a scalar and has no rows", quoted(*this)));
  if (!base::fits(first, count, dims[0])) {
    base::misuse("rows", fmt::format("tensor {} has {} rows; [{}, {} + {}) is past its end", quoted(*this), dims[0],
                                     first, first, count));
  }
  const std::uint32_t bits = info(dtype).bits;
  if (bits == 0 || bits % 8 != 0 || info(this->dtype()).bits % 8 != 0) {
    base::misuse("rows", fmt::format("rows of {} as {} do not start at whole bytes", weighbridge::name(this->dtype()),
                                     weighbridge::name(dtype)));
  }
  const std::uint64_t row = base::element_count(dims.subspan(1)).value_or(0);
  const auto wanted = base::checked_mul(row, count);
  if (!wanted || packed_size(dtype, *wanted) != out.size()) {
    base::misuse("rows", fmt::format("{} rows of tensor {} do not take {} bytes", count, quoted(*this), out.size()));
  }
  if (dtype != this->dtype()) core::require_castable(*this);
  if (out.empty()) return;
  core::elements_of(*this, dtype)->read(first * row, *wanted, out, context);
}

}  // namespace weighbridge
