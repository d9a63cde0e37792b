// SPDX-License-Identifier: Apache-2.0
// GGML's block types, the sizes of their blocks, and their encoders.
#pragma once
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <span>

namespace weighbridge::codecs {

struct GgmlSize {
  std::uint32_t elements, bytes;  // per block
};
#define WB_GGML(name, elements, bytes) name,
enum class Ggml : std::uint8_t {
#include "codecs/ggml_types.def"
};
#undef WB_GGML
#define WB_GGML(name, elements, bytes) GgmlSize{elements, bytes},
inline constexpr GgmlSize kGgmlSizes[] = {
#include "codecs/ggml_types.def"
};
#undef WB_GGML
inline constexpr std::size_t kGgmlCount = std::size(kGgmlSizes);

// Encoders of GGML's block types: the quantizers of the package gguf 0.19, bit for bit. Values are finite, which the
// caller checks. A block whose scale has no reciprocal in f32 gets the codes of zeros, or those that the package gives
// to NaN.

// Whole blocks; `blocks` has room for them.
void ggml_encode_q8_0(std::span<const float> values, std::byte* blocks) noexcept;
void ggml_encode_q4_0(std::span<const float> values, std::byte* blocks) noexcept;
void ggml_encode_q4_1(std::span<const float> values, std::byte* blocks) noexcept;
void ggml_encode_q5_0(std::span<const float> values, std::byte* blocks) noexcept;
void ggml_encode_q5_1(std::span<const float> values, std::byte* blocks) noexcept;
void ggml_encode_mxfp4(std::span<const float> values, std::byte* blocks) noexcept;
void ggml_encode_tq1_0(std::span<const float> values, std::byte* blocks) noexcept;
void ggml_encode_tq2_0(std::span<const float> values, std::byte* blocks) noexcept;

// Null if the type has no encoder.
constexpr auto ggml_encoder(Ggml type) noexcept -> void (*)(std::span<const float>, std::byte*) noexcept {
  switch (type) {
    case Ggml::q8_0: return ggml_encode_q8_0;
    case Ggml::q4_0: return ggml_encode_q4_0;
    case Ggml::q4_1: return ggml_encode_q4_1;
    case Ggml::q5_0: return ggml_encode_q5_0;
    case Ggml::q5_1: return ggml_encode_q5_1;
    case Ggml::mxfp4: return ggml_encode_mxfp4;
    case Ggml::tq1_0: return ggml_encode_tq1_0;
    case Ggml::tq2_0: return ggml_encode_tq2_0;
    default: return nullptr;
  }
}

}  // namespace weighbridge::codecs
