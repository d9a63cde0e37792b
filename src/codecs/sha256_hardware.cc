// SPDX-License-Identifier: Apache-2.0
// SHA-256 by the instructions for it: SHA-NI of x86-64, the cryptographic extension of aarch64. Builds with OpenSSL
// have its own.
#if defined(__x86_64__)
#include <immintrin.h>
#elif defined(__aarch64__)
#include <arm_neon.h>
#endif

#include "base/cpu.h"
#include "base/os.h"
#include "codecs/sha256_portable.h"

namespace weighbridge::codecs {

#if defined(__x86_64__)
namespace {

#define WB_SHA __attribute__((target("sha,sse4.1,ssse3")))
WB_SHA inline __m128i load(const void* from) noexcept { return _mm_loadu_si128(static_cast<const __m128i*>(from)); }
WB_SHA inline void store(void* to, __m128i value) noexcept { _mm_storeu_si128(static_cast<__m128i*>(to), value); }

// Intel's SHA Extensions (2013): the state is kept as the words ABEF and CDGH; four rounds a step, the schedule in four
// registers.
WB_SHA void compress(Sha256State& state, const std::byte* data, std::size_t blocks) noexcept {
  const __m128i order = _mm_set_epi64x(0x0c0d0e0f08090a0b, 0x0405060700010203);
  const __m128i front = _mm_shuffle_epi32(load(state.data()), 0xB1),
                back = _mm_shuffle_epi32(load(state.data() + 4), 0x1B);
  __m128i abef = _mm_alignr_epi8(front, back, 8), cdgh = _mm_blend_epi16(back, front, 0xF0);
  for (; blocks > 0; --blocks, data += kSha256Block) {
    const __m128i abef_before = abef, cdgh_before = cdgh;
    __m128i w[4];
    for (int i = 0; i < 4; ++i) w[i] = _mm_shuffle_epi8(load(data + 16 * i), order);
#pragma GCC unroll 16
    for (int i = 0; i < 16; ++i) {
      __m128i& now = w[i & 3];
      const __m128i& last = w[(i + 3) & 3];
      if (i >= 4)
        now = _mm_sha256msg2_epu32(
            _mm_add_epi32(_mm_sha256msg1_epu32(now, w[(i + 1) & 3]), _mm_alignr_epi8(last, w[(i + 2) & 3], 4)), last);
      const __m128i word = _mm_add_epi32(now, load(kSha256Round.data() + 4 * i));
      cdgh = _mm_sha256rnds2_epu32(cdgh, abef, word);
      abef = _mm_sha256rnds2_epu32(abef, cdgh, _mm_shuffle_epi32(word, 0x0E));
    }
    abef = _mm_add_epi32(abef, abef_before);
    cdgh = _mm_add_epi32(cdgh, cdgh_before);
  }
  const __m128i feba = _mm_shuffle_epi32(abef, 0x1B), dchg = _mm_shuffle_epi32(cdgh, 0xB1);
  store(state.data(), _mm_blend_epi16(feba, dchg, 0xF0));
  store(state.data() + 4, _mm_alignr_epi8(dchg, feba, 8));
}
#undef WB_SHA

}  // namespace

Sha256Compress sha256_hardware() noexcept {
  return base::cpu_has(base::Cpu::sha, base::Cpu::sse41) ? compress : nullptr;
}

#elif defined(__aarch64__)
namespace {

#if defined(__clang__)
#define WB_SHA __attribute__((target("sha2")))
#else
#define WB_SHA __attribute__((target("+sha2")))
#endif

WB_SHA void compress(Sha256State& state, const std::byte* data, std::size_t blocks) noexcept {
  uint32x4_t abcd = vld1q_u32(state.data()), efgh = vld1q_u32(state.data() + 4);
  for (; blocks > 0; --blocks, data += kSha256Block) {
    const uint32x4_t abcd_before = abcd, efgh_before = efgh;
    uint32x4_t w[4];
    for (int i = 0; i < 4; ++i)
      w[i] = vreinterpretq_u32_u8(vrev32q_u8(vld1q_u8(reinterpret_cast<const unsigned char*>(data) + 16 * i)));
#pragma GCC unroll 16
    for (int i = 0; i < 16; ++i) {
      uint32x4_t& now = w[i & 3];
      if (i >= 4) now = vsha256su1q_u32(vsha256su0q_u32(now, w[(i + 1) & 3]), w[(i + 2) & 3], w[(i + 3) & 3]);
      const uint32x4_t word = vaddq_u32(now, vld1q_u32(kSha256Round.data() + 4 * i)), first = abcd;
      abcd = vsha256hq_u32(abcd, efgh, word);
      efgh = vsha256h2q_u32(efgh, first, word);
    }
    abcd = vaddq_u32(abcd, abcd_before);
    efgh = vaddq_u32(efgh, efgh_before);
  }
  vst1q_u32(state.data(), abcd);
  vst1q_u32(state.data() + 4, efgh);
}
#undef WB_SHA

}  // namespace

Sha256Compress sha256_hardware() noexcept {
  static const bool has = base::has_arm_sha256();
  return has ? compress : nullptr;
}

#else
Sha256Compress sha256_hardware() noexcept { return nullptr; }
#endif

}  // namespace weighbridge::codecs
