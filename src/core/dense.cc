// SPDX-License-Identifier: Apache-2.0
// Dense forms: casts, sparse and quantized tensors. The output is row-major and little-endian.
#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <new>
#include <vector>

#include "base/checked.h"
#include "base/fail.h"
#include "codecs/cast.h"
#include "core/dense.h"
#include "core/elements.h"
#include "core/payload.h"
#include "core/state.h"
#include "core/words.h"
#include "core/work.h"

namespace weighbridge {

namespace {

using Sink = std::function<bool(std::span<const std::byte>)>;

std::string quoted(const Tensor& tensor) { return core::quoted(tensor.name()); }

void require_elements(const Tensor& tensor) {
  if (const Finding* why = tensor.unsupported()) throw Error(*why);
}

// Bytes of the dense form. Throws if they exceed the caller's limit, or are out of proportion to the stored bytes.
std::uint64_t dense_size(const Tensor& tensor, DType dtype, const Limits& limits) {
  core::require_dense_work(tensor, limits);
  const auto count = base::element_count(tensor.shape());
  const auto size = count ? packed_size(dtype, *count) : std::nullopt;
  if (!size || *size > limits.decoded) {
    base::over_limit(
        "decoded",
        fmt::format("the dense form of tensor {} is larger than the limit of {} bytes", quoted(tensor), limits.decoded),
        size.value_or(0));
  }
  return *size;
}

// Casts pieces of whole elements on their way to a sink.
class CastSink {
 public:
  CastSink(const Tensor& tensor, DType from, DType to, std::uint64_t elements, const Sink& sink,
           codecs::CastTally* tally = nullptr)
      : tensor_(tensor), from_(from), to_(to), left_(elements), sink_(sink), tally_(tally) {
    if (!codecs::can_cast(from, to)) core::require_cast(tensor, from, to, {codecs::CastStatus::not_allowed}, 0);
  }

  bool operator()(std::span<const std::byte> piece) {
    // 192 bytes are a whole number of elements of every dtype, and those elements take a whole number of bytes in every
    // other dtype.
    constexpr std::uint64_t kBlock = 192 * 1024;
    for (; !piece.empty() && left_ > 0; piece = piece.subspan(std::min<std::size_t>(piece.size(), kBlock))) {
      const std::span<const std::byte> block = piece.first(std::min<std::size_t>(piece.size(), kBlock));
      const std::uint64_t n = std::min<std::uint64_t>(left_, block.size() * 8 / info(from_).bits);
      out_.resize(base::to_size(*packed_size(to_, n)));
      core::require_cast(tensor_, from_, to_,
                         codecs::cast(from_, block.first(base::to_size(*packed_size(from_, n))), to_, out_, n, tally_),
                         done_);
      left_ -= n;
      done_ += n;
      if (!sink_(out_)) return false;
    }
    return true;
  }

 private:
  const Tensor& tensor_;
  DType from_, to_;
  std::uint64_t left_, done_ = 0;
  const Sink& sink_;
  codecs::CastTally* const tally_;
  std::vector<std::byte> out_;
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

void core::stream_dense(const Tensor& tensor, DType dtype, const Context& context, const Sink& sink,
                        codecs::CastTally* tally) {
  const DType own = tensor.dtype();
  if (dtype == own) return tensor.stream_dense(dtype, context, sink);
  require_elements(tensor);
  require_castable(tensor);
  if (const auto elements = elements_of(tensor, dtype); elements && divides(*elements, kPiece))
    return core::stream(*elements, context, sink, tally);
  CastSink cast(tensor, own, dtype, base::element_count(tensor.shape()).value_or(0), sink, tally);
  const Sink casting = [&](std::span<const std::byte> piece) { return cast(piece); };
  if (tensor.layout() == Layout::dense)
    tensor.main().stream(context, casting);
  else
    tensor.stream_dense(own, context, casting);
}

void Tensor::stream_dense(DType dtype, const Context& context,
                          const std::function<bool(std::span<const std::byte>)>& sink) const {
  if (dtype != this->dtype()) return core::stream_dense(*this, dtype, context, sink, nullptr);
  require_elements(*this);
  switch (layout()) {
    case Layout::dense: main().stream(context, sink); return;
    case Layout::sparse_csr:
    case Layout::sparse_coo: {
      const std::size_t size = base::to_size(dense_size(*this, dtype, context.limits));
      const auto whole = std::make_unique<std::byte[]>(size);
      constexpr auto kStep = base::to_size(core::kPiece);
      core::fill_sparse(*this, context, {whole.get(), size});
      for (std::size_t at = 0; at < size; at += kStep) {
        if (!sink({whole.get() + at, std::min(kStep, size - at)})) return;
      }
      return;
    }
    case Layout::quantized_group:
    case Layout::quantized_row:
    case Layout::quantized_block: core::stream_blocks(*this, context, sink); return;
    case Layout::structural: break;
  }
  base::unsupported("unsupported/layout",
                    fmt::format("tensor {} has layout \"{}\", of which this build knows no dense form", quoted(*this),
                                layout_name()));
}

Array Tensor::to_dense(const Context& context) const { return to_dense(dtype(), context); }

Array Tensor::to_dense(DType dtype, const Context& context) const {
  require_elements(*this);
  const std::size_t size = base::to_size(dense_size(*this, dtype, context.limits));
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
  std::uint64_t filled = 0;
  const Sink fill = [&](std::span<const std::byte> piece) {
    std::memcpy(out.data() + filled, piece.data(), piece.size());
    filled += piece.size();
    return filled < out.size();
  };
  if (dtype != this->dtype()) core::require_castable(*this);
  if (out.empty()) return;
  if (const auto elements = core::elements_of(*this, dtype)) return elements->read(first * row, *wanted, out, context);
  if (layout() == Layout::dense && dtype == this->dtype()) return main().read_range(first * row, *wanted, out, context);
  const std::uint64_t begin = *packed_size(dtype, first * row);
  std::uint64_t at = 0;
  stream_dense(dtype, context, [&](std::span<const std::byte> piece) {
    const std::size_t skip = base::to_size(std::min<std::uint64_t>(piece.size(), at < begin ? begin - at : 0));
    at += piece.size();
    piece = piece.subspan(skip);
    return piece.empty() ||
           fill(piece.first(base::to_size(std::min<std::uint64_t>(piece.size(), out.size() - filled))));
  });
}

}  // namespace weighbridge
