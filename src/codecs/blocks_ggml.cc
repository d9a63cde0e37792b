// SPDX-License-Identifier: Apache-2.0
// GGML's block types: one part, whole blocks in the order of the elements. Each row, the fastest dimension, is a whole
// number of blocks. The decoders are in ggml.inc, the encoders in ggml_encode.inc.
#include <fmt/format.h>

#include "codecs/blocks.h"
#include "codecs/ggml.h"
#include "codecs/kernels.h"

namespace weighbridge::codecs {
namespace {

std::string problem(const BlockForm& form) {
  if (form.rank == 0) return "a scalar has no rows of blocks";
  if (form.dtypes[0] != DType::u8) return fmt::format("its blocks are {}, not u8", name(form.dtypes[0]));
  if (form.row % form.type->block_elements != 0)
    return fmt::format("its rows of {} elements are no whole number of blocks of {}", form.row,
                       form.type->block_elements);
  return {};
}

template <Ggml kType> std::uint64_t step(const BlockForm&) noexcept {
  return kGgmlSizes[static_cast<std::size_t>(kType)].elements;
}

template <Ggml kType>
ByteRange range(const BlockForm&, std::size_t, std::uint64_t first, std::uint64_t count) noexcept {
  constexpr GgmlSize kSize = kGgmlSizes[static_cast<std::size_t>(kType)];
  return {first / kSize.elements * kSize.bytes, count / kSize.elements * kSize.bytes};
}

template <Ggml kType>
void decode(const BlockForm&, std::uint64_t, std::uint64_t count, std::span<const std::span<const std::byte>> parts,
            float* out) noexcept {
  constexpr auto kIndex = static_cast<std::size_t>(kType);
  kernels().ggml[kIndex](
      reinterpret_cast<const std::uint8_t*>(parts[0].data()), out,
      static_cast<std::size_t>(count / kGgmlSizes[kIndex].elements));  // the caller has them in memory
}

template <Ggml kType> void encode(std::span<const float> values, std::byte* blocks) noexcept {
  constexpr auto kIndex = static_cast<std::size_t>(kType);
  kernels().ggml_encode[kIndex](values.data(), blocks, values.size() / kGgmlSizes[kIndex].elements);
}

template <Ggml kType>
constexpr BlockCodec kCodec{
    problem, step<kType>, range<kType>, decode<kType>, 1 << 16, nullptr, ggml_encodes(kType) ? encode<kType> : nullptr};

}  // namespace

#define WB_GGML(name, elements, bytes) constinit const BlockCodec kGgml_##name = kCodec<Ggml::name>;
#include "codecs/ggml_types.def"
#undef WB_GGML

}  // namespace weighbridge::codecs
