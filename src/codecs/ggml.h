// SPDX-License-Identifier: Apache-2.0
// GGML's block types and the sizes of their blocks.
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

}  // namespace weighbridge::codecs
