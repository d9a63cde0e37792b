// SPDX-License-Identifier: Apache-2.0
// What the codes of GGML's block types stand for: constants only. ggml.inc has the arithmetic.
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>

namespace weighbridge::codecs {

// What the 16 codes of iq4_nl and iq4_xs stand for, and twice what those of E2M1 (mxfp4, nvfp4) do.
inline constexpr std::int8_t kGgmlIq4[16] = {-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113};
inline constexpr std::int8_t kGgmlFp4[16] = {0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12};

// The points of a lattice, kDepth coordinates each.
template <std::size_t kCount, std::size_t kDepth>
using GgmlPoints = std::array<std::array<std::int8_t, kDepth>, kCount>;

template <std::size_t kDepth, std::size_t kCount, std::size_t kValues>
constexpr GgmlPoints<kCount, kDepth> ggml_points(const std::uint16_t (&packed)[kCount],
                                                 const std::int8_t (&values)[kValues]) {
  constexpr unsigned kBits = kDepth == 8 ? 2 : 3;
  GgmlPoints<kCount, kDepth> out{};
  for (std::size_t i = 0; i < kCount; ++i)
    for (std::size_t j = 0; j < kDepth; ++j) out[i][j] = values[packed[i] >> (kBits * j) & ((1U << kBits) - 1)];
  return out;
}

namespace ggml_packed {
#include "codecs/ggml_grids.inc"
inline constexpr std::int8_t kIq1[] = {-1, 0, 1}, kIq2[] = {8, 25, 43}, kIq3xxs[] = {4, 12, 20, 28, 36, 44, 52, 62},
                             kIq3s[] = {1, 3, 5, 7, 9, 11, 13, 15};
}  // namespace ggml_packed

inline constexpr auto kGgmlIq1 = ggml_points<8>(ggml_packed::kIq1sPacked, ggml_packed::kIq1);
inline constexpr auto kGgmlIq2xxs = ggml_points<8>(ggml_packed::kIq2xxsPacked, ggml_packed::kIq2);
inline constexpr auto kGgmlIq2xs = ggml_points<8>(ggml_packed::kIq2xsPacked, ggml_packed::kIq2);
inline constexpr auto kGgmlIq2s = ggml_points<8>(ggml_packed::kIq2sPacked, ggml_packed::kIq2);
inline constexpr auto kGgmlIq3xxs = ggml_points<4>(ggml_packed::kIq3xxsPacked, ggml_packed::kIq3xxs);
inline constexpr auto kGgmlIq3s = ggml_points<4>(ggml_packed::kIq3sPacked, ggml_packed::kIq3s);

// Eight bytes for each byte of signs: -1 where its bit is set, else 0.
inline constexpr auto kGgmlSigns = [] {
  GgmlPoints<256, 8> out{};
  for (std::size_t i = 0; i < 256; ++i)
    for (std::size_t j = 0; j < 8; ++j) out[i][j] = (i >> j & 1) != 0 ? -1 : 0;
  return out;
}();

// Seven bits of signs, completed by an eighth that makes their number even.
[[gnu::always_inline]] inline constexpr std::uint8_t ggml_even_signs(std::uint32_t seven) noexcept {
  const std::uint32_t nibbles = (seven ^ seven >> 4) & 15;
  return static_cast<std::uint8_t>(seven | (0x6996U >> nibbles & 1) << 7);
}

// Half of the scale of mxfp4 with this E8M0 code, because kGgmlFp4 is doubled. 255 is 2^127, not NaN.
[[gnu::always_inline]] inline constexpr std::uint32_t ggml_half_e8m0(std::uint32_t code) noexcept {
  return code < 2 ? 0x00200000U << code : (code - 1) << 23;
}

}  // namespace weighbridge::codecs
