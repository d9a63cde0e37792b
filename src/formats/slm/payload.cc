// SPDX-License-Identifier: Apache-2.0
// Quantizes groups of values.
#include "formats/slm/payload.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <span>

#include "base/checked.h"
#include "base/endian.h"
#include "base/fail.h"
#include "codecs/quantize.h"
#include "core/model/words.h"
#include "formats/slm/format.h"

namespace weighbridge::slm_format {
namespace {

float scale_of(const codecs::ScaledEncoder& encoder, std::span<const float> group, const Tensor& tensor) {
  const float largest = codecs::largest_magnitude(group);
  if (!std::isfinite(largest))
    base::malformed(rules::kNotFinite.id,
                    "a value of tensor " + core::quoted(tensor.name()) + " is not finite, so it cannot be quantized");
  return encoder.scale(largest);
}

// take(group, scale, its bytes of the output) for each group.
template <class Take>
core::Mapping by_groups(const Tensor& tensor, const codecs::ScaledEncoder& encoder, std::uint64_t group, DType dtype,
                        std::uint64_t to, Take take) {
  const auto make = [tensor, encoder, take, width = base::to_size(group)](std::uint64_t, std::span<const std::byte> in,
                                                                          std::span<std::byte> out, const Context&,
                                                                          codecs::CastTally*) {
    const std::span values(reinterpret_cast<const float*>(in.data()), in.size() / sizeof(float));
    const std::size_t groups = values.size() / width, bytes = out.size() / std::max<std::size_t>(groups, 1);
    for (std::size_t i = 0; i < groups; ++i) {
      const auto one = values.subspan(i * width, width);
      take(encoder, one, scale_of(encoder, one, tensor), out.data() + i * bytes);
    }
  };
  return {.dtype = dtype, .from = group, .to = to, .make = make};
}

}  // namespace

core::ElementsPtr codes_of(const Tensor& tensor, core::ElementsPtr values, const codecs::ScaledEncoder& encoder,
                           std::uint64_t group) {
  const auto take = [](const codecs::ScaledEncoder& by, std::span<const float> one, float scale, std::byte* out) {
    by.encode(one, scale, out);
  };
  return core::mapped(std::move(values),
                      by_groups(tensor, encoder, group, DType::u8, group / encoder.values_per_byte, take));
}

core::ElementsPtr scales_of(const Tensor& tensor, core::ElementsPtr values, const codecs::ScaledEncoder& encoder,
                            std::uint64_t group) {
  const auto take = [](const codecs::ScaledEncoder&, std::span<const float>, float scale, std::byte* out) {
    base::store_le(out, std::bit_cast<std::uint32_t>(scale));
  };
  return core::mapped(std::move(values), by_groups(tensor, encoder, group, DType::f32, 1, take));
}

}  // namespace weighbridge::slm_format
