// SPDX-License-Identifier: Apache-2.0
// The rounds, unrolled by eight, so that the variables change roles instead of moving.
#include "codecs/sha256_portable.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "base/endian.h"

namespace weighbridge::codecs {
namespace {

using Schedule = std::array<std::uint32_t, 64>;

void fill_schedule(Schedule& w, const std::byte* data) noexcept {
  for (std::size_t i = 0; i < 16; ++i) w[i] = base::load_be<std::uint32_t>(data + 4 * i);
  for (std::size_t i = 16; i < 64; ++i) {
    const std::uint32_t x = w[i - 15], y = w[i - 2];
    w[i] = w[i - 16] + (std::rotr(x, 7) ^ std::rotr(x, 18) ^ x >> 3) + w[i - 7] +
           (std::rotr(y, 17) ^ std::rotr(y, 19) ^ y >> 10);
  }
}

// One round; it changes only d and h. `word` is the schedule's word plus the round's constant.
inline void one_round(std::uint32_t a, std::uint32_t b, std::uint32_t c, std::uint32_t& d, std::uint32_t e,
                      std::uint32_t f, std::uint32_t g, std::uint32_t& h, std::uint32_t word) noexcept {
  const std::uint32_t choice = g ^ (e & (f ^ g)), majority = (a & b) | (c & (a | b));
  const std::uint32_t first = h + (std::rotr(e, 6) ^ std::rotr(e, 11) ^ std::rotr(e, 25)) + choice + word;
  d += first;
  h = first + (std::rotr(a, 2) ^ std::rotr(a, 13) ^ std::rotr(a, 22)) + majority;
}

}  // namespace

void sha256_compress(Sha256State& state, const std::byte* data, std::size_t blocks) noexcept {
  for (; blocks > 0; --blocks, data += kSha256Block) {
    Schedule w;
    fill_schedule(w, data);
    auto [a, b, c, d, e, f, g, h] = state;
    for (std::size_t i = 0; i < 64; i += 8) {
      one_round(a, b, c, d, e, f, g, h, w[i] + kSha256Round[i]);
      one_round(h, a, b, c, d, e, f, g, w[i + 1] + kSha256Round[i + 1]);
      one_round(g, h, a, b, c, d, e, f, w[i + 2] + kSha256Round[i + 2]);
      one_round(f, g, h, a, b, c, d, e, w[i + 3] + kSha256Round[i + 3]);
      one_round(e, f, g, h, a, b, c, d, w[i + 4] + kSha256Round[i + 4]);
      one_round(d, e, f, g, h, a, b, c, w[i + 5] + kSha256Round[i + 5]);
      one_round(c, d, e, f, g, h, a, b, w[i + 6] + kSha256Round[i + 6]);
      one_round(b, c, d, e, f, g, h, a, w[i + 7] + kSha256Round[i + 7]);
    }
    const Sha256State sum{a, b, c, d, e, f, g, h};
    for (std::size_t i = 0; i < state.size(); ++i) state[i] += sum[i];
  }
}

void PortableSha256::update(std::span<const std::byte> data) noexcept {
  const auto used = static_cast<std::size_t>(size_ % kSha256Block);
  size_ += data.size();
  if (used > 0) {
    const std::size_t take = std::min(data.size(), kSha256Block - used);
    std::copy_n(data.begin(), take, held_.begin() + static_cast<std::ptrdiff_t>(used));
    data = data.subspan(take);
    if (used + take < kSha256Block) return;
    compress_(state_, held_.data(), 1);
  }
  const std::size_t blocks = data.size() / kSha256Block;
  compress_(state_, data.data(), blocks);
  const auto rest = data.subspan(blocks * kSha256Block);
  std::copy(rest.begin(), rest.end(), held_.begin());
}

Digest256 PortableSha256::finish() noexcept {
  // One bit, zeros, and the length in bits as the last eight bytes of a block.
  const auto used = static_cast<std::size_t>(size_ % kSha256Block);
  std::array<std::byte, 2 * kSha256Block> last{};
  std::copy_n(held_.begin(), used, last.begin());
  last[used] = std::byte{0x80};
  const std::size_t size = used < kSha256Block - 8 ? kSha256Block : 2 * kSha256Block;
  base::store_be(last.data() + size - 8, size_ * 8);
  compress_(state_, last.data(), size / kSha256Block);
  Digest256 digest;
  for (std::size_t i = 0; i < state_.size(); ++i) base::store_be(digest.data() + 4 * i, state_[i]);
  return digest;
}

}  // namespace weighbridge::codecs
