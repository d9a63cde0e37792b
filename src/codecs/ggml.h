// SPDX-License-Identifier: Apache-2.0
// GGML's block types, the sizes of their blocks, and which of them can be encoded.
#pragma once
#include <cstddef>
#include <cstdint>
#include <iterator>

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

// How values are encoded.
struct GgmlTerms {
  const float* importance = nullptr;  // a weight for each value, or null
  bool as_ggml = false;               // the bytes of GGML also where they are a defect: empty groups of iq3_s
  bool contracted = false;            // as GGML compiled for processors with FMA: contracted_encoders()
};

// Whether Kernels::ggml_encode has an encoder for the type. A block whose scale has no reciprocal in f32 gets the codes
// of zeros, or those that the package gguf gives to NaN.
constexpr bool ggml_encodes(Ggml type) noexcept {
  switch (type) {
    case Ggml::q8_0:
    case Ggml::q4_0:
    case Ggml::q4_1:
    case Ggml::q5_0:
    case Ggml::q5_1:
    case Ggml::mxfp4:
    case Ggml::tq1_0:
    case Ggml::tq2_0:
    case Ggml::q2_k:
    case Ggml::q3_k:
    case Ggml::q4_k:
    case Ggml::q5_k:
    case Ggml::q6_k:
    case Ggml::iq4_nl:
    case Ggml::iq4_xs:
    case Ggml::iq2_xxs:
    case Ggml::iq2_xs:
    case Ggml::iq2_s:
    case Ggml::iq3_xxs:
    case Ggml::iq3_s: return true;
    default: return false;
  }
}

}  // namespace weighbridge::codecs
