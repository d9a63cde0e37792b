// SPDX-License-Identifier: Apache-2.0
// GGML's block types: one part, whole blocks in the order of the elements. Each row, the fastest dimension, is a whole
// number of blocks. The decoders are in ggml.inc, the encoders in ggml_encode.inc,
// ggml_search.inc and ggml_lattice.inc.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/endian.h"
#include "codecs/blocks.h"
#include "codecs/ggml.h"
#include "codecs/kernels.h"
#include "codecs/quantize.h"

namespace weighbridge::codecs {
namespace {

struct GgmlHalves {
  std::size_t first, second;
};

std::string problem(const BlockForm& form) {
  if (form.rank == 0) return "a scalar has no rows of blocks";
  if (form.dtypes[0] != DType::u8) return fmt::format("its blocks are {}, not u8", name(form.dtypes[0]));
  if (form.row % form.type->block_elements != 0)
    return fmt::format("its rows of {} elements do not divide into blocks of {}", form.row, form.type->block_elements);
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

// Where a block has its f16, and the largest magnitude that its search can square: beyond what any f16 scale can reach.
constexpr GgmlHalves halves_of(Ggml type) noexcept {
  switch (type) {
    case Ggml::q4_1:
    case Ggml::q5_1:
    case Ggml::q4_k:
    case Ggml::q5_k: return {0, 2};
    case Ggml::q2_k: return {80, 82};
    case Ggml::q3_k: return {108, 108};
    case Ggml::q6_k: return {208, 208};
    case Ggml::tq1_0: return {52, 52};
    case Ggml::tq2_0: return {64, 64};
    default: return {0, 0};
  }
}
constexpr float kMaxSquared = 1e9F;

bool is_infinite(const std::byte* half) noexcept { return (base::load_le<std::uint16_t>(half) & 0x7C00U) == 0x7C00U; }

template <Ggml kType>
std::size_t encode(std::span<const float> values, const GgmlTerms& terms, std::byte* blocks) noexcept {
  constexpr auto kIndex = static_cast<std::size_t>(kType);
  constexpr std::size_t kElements = kGgmlSizes[kIndex].elements, kBytes = kGgmlSizes[kIndex].bytes;
  constexpr GgmlHalves kHalves = halves_of(kType);
  const std::size_t count = values.size() / kElements;
  const float limit = kType == Ggml::mxfp4 ? std::numeric_limits<float>::max() : kMaxSquared;
  const GgmlEncoders& encoders = terms.contracted ? contracted_encoders() : kernels().ggml_encode;
  encoders[kIndex](values.data(), terms, blocks, count);
  for (std::size_t b = 0; b < count; ++b) {
    const auto block = values.subspan(b * kElements, kElements);
    const float largest = largest_magnitude(block, 0);
    const std::byte* const to = blocks + b * kBytes;
    if (largest <= limit &&
        (kType == Ggml::mxfp4 || !(is_infinite(to + kHalves.first) || is_infinite(to + kHalves.second))))
      continue;
    const auto at = std::ranges::find_if(block, [&](float value) { return !(std::fabs(value) < largest); });
    return b * kElements + static_cast<std::size_t>(at - block.begin());
  }
  return values.size();
}

constexpr Importance importance_of(Ggml type) noexcept {
  switch (type) {
    case Ggml::q8_0:
    case Ggml::mxfp4:
    case Ggml::tq1_0:
    case Ggml::tq2_0: return Importance::ignored;
    case Ggml::iq2_xxs:
    case Ggml::iq2_xs: return Importance::required;
    default: return Importance::optional;
  }
}

template <Ggml kType>
constexpr BlockCodec kCodec{.problem = problem,
                            .step = step<kType>,
                            .range = range<kType>,
                            .decode = decode<kType>,
                            .batch = 1 << 16,
                            .encode = ggml_encodes(kType) ? encode<kType> : nullptr,
                            .importance = importance_of(kType)};

}  // namespace

#define WB_GGML(name, elements, bytes) constinit const BlockCodec kGgml_##name = kCodec<Ggml::name>;
#include "codecs/ggml_types.def"
#undef WB_GGML

}  // namespace weighbridge::codecs
