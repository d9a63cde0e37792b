// SPDX-License-Identifier: Apache-2.0
// The rounds, unrolled by eight, so that the variables change roles instead of moving, and the message schedule beside
// them in vectors of four words. WebAssembly has no instructions for SHA-256: there this is what hashes one message.
#include "codecs/sha256_portable.h"

#include <bit>
#include <cstring>

#include "base/endian.h"

namespace weighbridge::codecs {
namespace {

using FourWords = std::uint32_t __attribute__((vector_size(16)));
using SixteenOctets = std::uint8_t __attribute__((vector_size(16)));

template <int N> inline FourWords rotated(const FourWords& x) noexcept { return x >> N | x << (32 - N); }
inline FourWords late(const FourWords& y) noexcept { return rotated<17>(y) ^ rotated<19>(y) ^ y >> 10; }

// The words of one block, and of its message schedule, four at a time, each plus its round's constant.
struct Schedule {
  FourWords last[4];  // of sixteen words; [i % 4] begins with word 4 i
  alignas(16) std::uint32_t plus[64];

  void keep(std::size_t i) noexcept {
    FourWords sum;
    std::memcpy(&sum, &kSha256Round[4 * i], sizeof sum);
    sum += last[i % 4];
    std::memcpy(plus + 4 * i, &sum, sizeof sum);
  }
  void load(std::size_t i, const std::byte* data) noexcept {
    SixteenOctets raw;
    std::memcpy(&raw, data + 16 * i, sizeof raw);
    if constexpr (std::endian::native == std::endian::little)
      raw = __builtin_shufflevector(raw, raw, 3, 2, 1, 0, 7, 6, 5, 4, 11, 10, 9, 8, 15, 14, 13, 12);
    std::memcpy(&last[i], &raw, sizeof raw);
    keep(i);
  }
  // FourWords 4 i to 4 i + 3, from 4 on. The last two of them follow from the first two.
  void extend(std::size_t i) noexcept {
    FourWords &w = last[i % 4], none{};
    const FourWords &w7 = last[(i + 2) % 4], &w3 = last[(i + 3) % 4];
    const FourWords x = __builtin_shufflevector(w, last[(i + 1) % 4], 1, 2, 3, 4);
    w += (rotated<7>(x) ^ rotated<18>(x) ^ x >> 3) + __builtin_shufflevector(w7, w3, 1, 2, 3, 4);
    w += late(__builtin_shufflevector(w3, none, 2, 3, 4, 4));
    w += late(__builtin_shufflevector(w, none, 4, 4, 0, 1));
    keep(i);
  }
};

// One round; it changes only d and h. `bc` is b ^ c, and becomes what the next round needs: a ^ b.
inline void one_round(std::uint32_t a, std::uint32_t b, std::uint32_t& d, std::uint32_t e, std::uint32_t f,
                      std::uint32_t g, std::uint32_t& h, std::uint32_t& bc, std::uint32_t word) noexcept {
  const std::uint32_t ab = a ^ b, majority = b ^ (ab & bc), choice = g ^ (e & (f ^ g));
  // The rotations by 6, 11 and 25, and those by 2, 13 and 22, with one copy each.
  const std::uint32_t first = h + std::rotr(std::rotr(std::rotr(e, 14) ^ e, 5) ^ e, 6) + choice + word;
  d += first;
  h = first + std::rotr(std::rotr(std::rotr(a, 9) ^ a, 11) ^ a, 2) + majority;
  bc = ab;
}

}  // namespace

void sha256_compress(Sha256State& state, const std::byte* data, std::size_t blocks) noexcept {
  for (; blocks > 0; --blocks, data += kSha256Block) {
    Schedule w;
    for (std::size_t i = 0; i < 4; ++i) w.load(i, data);
    std::uint32_t a = state[0], b = state[1], c = state[2], d = state[3];
    std::uint32_t e = state[4], f = state[5], g = state[6], h = state[7];
    std::uint32_t bc = b ^ c;
    // Eight rounds, after which each variable has its role again. The words for sixteen rounds later are made beside
    // them, because each round waits for the one before.
    const auto eight = [&](std::size_t i, bool extend) __attribute__((always_inline)) {
      if (extend) w.extend(i / 4 + 4);
      one_round(a, b, d, e, f, g, h, bc, w.plus[i]);
      one_round(h, a, c, d, e, f, g, bc, w.plus[i + 1]);
      one_round(g, h, b, c, d, e, f, bc, w.plus[i + 2]);
      one_round(f, g, a, b, c, d, e, bc, w.plus[i + 3]);
      if (extend) w.extend(i / 4 + 5);
      one_round(e, f, h, a, b, c, d, bc, w.plus[i + 4]);
      one_round(d, e, g, h, a, b, c, bc, w.plus[i + 5]);
      one_round(c, d, f, g, h, a, b, bc, w.plus[i + 6]);
      one_round(b, c, e, f, g, h, a, bc, w.plus[i + 7]);
    };
    // No loop: the vectors stay in registers only if their indices are constants.
    eight(0, true), eight(8, true), eight(16, true), eight(24, true), eight(32, true), eight(40, true);
    eight(48, false), eight(56, false);
    const Sha256State sum{a, b, c, d, e, f, g, h};
    for (std::size_t i = 0; i < state.size(); ++i) state[i] += sum[i];
  }
}

void PortableSha256::update(std::span<const std::byte> data) noexcept {
  blocks_.update(data, [this](const std::byte* from, std::size_t blocks) { compress_(state_, from, blocks); });
}

Digest256 PortableSha256::finish() noexcept {
  blocks_.finish([this](const std::byte* from, std::size_t blocks) { compress_(state_, from, blocks); });
  Digest256 digest;
  for (std::size_t i = 0; i < state_.size(); ++i) base::store_be(digest.data() + 4 * i, state_[i]);
  return digest;
}

}  // namespace weighbridge::codecs
