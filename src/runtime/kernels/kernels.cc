// SPDX-License-Identifier: Apache-2.0
// Chooses the set of kernels for this processor, and packs quantized weights, which is the same for all sets.
#include "runtime/kernels/kernels.h"

#include <algorithm>
#include <cstring>

#include "base/cpu.h"
#include "runtime/kernels/half.h"

namespace weighbridge::kernels {
namespace {

struct Choice {
  const Kernels* sets[4] = {plain_kernels()};
  std::size_t count = 1;
  const HalfKernels* half = nullptr;

  Choice() noexcept {
#if defined(__wasm_simd128__)
    sets[count++] = wasm_kernels();
#endif
#if defined(__x86_64__)
    using enum base::Cpu;
    const bool has_avx2 = base::cpu_has(avx2, fma, f16c);
    if (has_avx2) sets[count++] = avx2_kernels();
    if (has_avx2 && base::cpu_has(avx512f, avx512bw, avx512dq, avx512vl, avx512vnni)) {
      sets[count++] = avx512_kernels();
      if (base::cpu_has(avx512fp16)) half = avx512fp16_kernels();
      const Kernels* const pairs = base::cpu_has(avx512bf16) ? avx512bf16_kernels() : nullptr;
      if (pairs != nullptr) sets[count++] = pairs;
    }
#endif
  }
};

const Choice& choice() noexcept {
  static const Choice made;
  return made;
}

}  // namespace

const Kernels& kernels() noexcept { return *choice().sets[choice().count - 1]; }
std::span<const Kernels* const> all_kernels() noexcept { return {choice().sets, choice().count}; }
const HalfKernels* half_kernels() noexcept { return choice().half; }

void pack_halves(const std::uint16_t* w, std::size_t n, std::size_t k, std::size_t first, std::size_t rows,
                 std::uint16_t* out) {
  constexpr std::size_t kColumns = 32;  // a cache line of a row
  const std::size_t end = std::min(first + rows, n);
  for (std::size_t row = first; row < end; row += kLanes) {
    const std::size_t panel = row / kPanel, width = panel_width(n, panel), count = std::min(end - row, kLanes);
    const std::uint16_t* from = w + (row - first) * k;
    std::uint16_t* to = out + panel * kPanel * k + row % kPanel;
    std::uint16_t block[kLanes][kColumns] = {};
    for (std::size_t p = 0; p < k; p += kColumns) {
      const std::size_t columns = std::min(k - p, kColumns);
      for (std::size_t i = 0; i < count; ++i) std::memcpy(block[i], from + i * k + p, columns * sizeof(*from));
      for (std::size_t j = 0; j < columns; ++j, to += width)
        for (std::size_t i = 0; i < kLanes; ++i) to[i] = block[i][j];
    }
  }
}

void pack_codes_i8(const std::int8_t* codes, std::size_t n, std::size_t k, std::size_t first, std::size_t rows,
                   std::int8_t* out, std::int32_t* sum) {
  const std::size_t depth = int8_depth(k), end = std::min(first + rows, n);
  for (std::size_t row = first; row < round_up(end, kLanes); ++row) {
    const std::size_t panel = row / kPanel, width = panel_width(n, panel);
    std::int8_t* to = out + panel * kPanel * depth + 4 * (row % kPanel);
    const std::int8_t* from = codes + (row - first) * k;
    std::int32_t total = 0;
    for (std::size_t p = 0; p < depth; p += 4, to += 4 * width) {
      std::int8_t four[4] = {};
      if (row < n) std::memcpy(four, from + p, std::min<std::size_t>(4, k - p));
      std::memcpy(to, four, sizeof four);
      total += four[0] + four[1] + four[2] + four[3];
    }
    sum[row] = total;
  }
}

void pack_codes_q4(const std::uint8_t* codes, const float* scales, std::size_t block, std::size_t n, std::size_t k,
                   std::size_t first, std::size_t rows, std::uint8_t* out) {
  const std::size_t blocks = k / kBlock, end = std::min(first + rows, n);
  for (std::size_t row = first; row < round_up(end, kLanes); ++row) {
    const std::size_t panel = row / kPanel, width = panel_width(n, panel) / kLanes, column = row % kLanes;
    std::uint8_t* to = out + (panel * (kPanel / kLanes) * blocks + row % kPanel / kLanes) * kQ4Bytes;
    for (std::size_t b = 0; b < blocks; ++b, to += width * kQ4Bytes) {
      const float scale = row < n ? scales[(row - first) * (k / block) + b * kBlock / block] : 0.0F;
      std::memcpy(to + column * sizeof scale, &scale, sizeof scale);
      std::uint8_t* bytes = to + kLanes * sizeof scale + 4 * column;
      const std::uint8_t* from = codes + ((row - first) * k + b * kBlock) / 2;
      for (std::size_t e = 0; e < 4; ++e, bytes += 4 * kLanes, from += 4) {
        unsigned in[4] = {};
        if (row < n) std::copy_n(from, 4, in);
        // Eight values, k = 8e to 8e + 7, as pairs four apart. Flipping the upper bit adds 8: -8..7 become 0..15.
        const unsigned pairs[] = {(in[0] & 15U) | in[2] << 4, in[0] >> 4 | (in[2] & 0xF0U), (in[1] & 15U) | in[3] << 4,
                                  in[1] >> 4 | (in[3] & 0xF0U)};
        for (std::size_t t = 0; t < 4; ++t) bytes[t] = static_cast<std::uint8_t>(pairs[t] ^ 0x88U);
      }
    }
  }
}

void pack_codes_q8(const std::int8_t* codes, const float* scales, std::size_t n, std::size_t k, std::size_t first,
                   std::size_t rows, std::uint8_t* out) {
  const std::size_t blocks = k / kBlock, end = std::min(first + rows, n);
  for (std::size_t row = first; row < round_up(end, kLanes); ++row) {
    const std::size_t panel = row / kPanel, width = panel_width(n, panel) / kLanes, column = row % kLanes;
    std::uint8_t* to = out + (panel * (kPanel / kLanes) * blocks + row % kPanel / kLanes) * kQ8Bytes;
    for (std::size_t b = 0; b < blocks; ++b, to += width * kQ8Bytes) {
      const float scale = row < n ? scales[(row - first) * blocks + b] : 0.0F;
      std::int8_t in[kBlock] = {};
      if (row < n) std::memcpy(in, codes + (row - first) * k + b * kBlock, sizeof in);
      std::memcpy(to + column * sizeof scale, &scale, sizeof scale);
      std::uint8_t* bytes = to + kLanes * sizeof scale + 4 * column;
      for (std::size_t p = 0; p < kBlock; p += 4, bytes += 4 * kLanes) std::memcpy(bytes, in + p, 4);
    }
  }
}

}  // namespace weighbridge::kernels
