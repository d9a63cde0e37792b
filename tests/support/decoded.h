// SPDX-License-Identifier: Apache-2.0
// What a codec decodes from bytes in memory, read in steps, for the tests of codecs.
#pragma once
#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "codecs/codec.h"

namespace weighbridge::test {

struct Decoded {
  codecs::DecodeResult result{};
  std::vector<std::byte> data{};
  std::size_t largest = 0;  // piece
};

inline Decoded decoded(const codecs::Codec& codec, std::span<const std::byte> stored, std::uint64_t demanded,
                       std::size_t step = 100'000, std::uint64_t memory = std::uint64_t{1} << 30) {
  Decoded out;
  std::size_t at = 0;
  out.result = codecs::LentDecoder(codec)->decode(
      demanded, memory,
      [&](std::span<std::byte> into) {
        const std::size_t n = std::min({into.size(), step, stored.size() - at});
        std::ranges::copy(stored.subspan(at, n), into.begin());
        at += n;
        return n;
      },
      [&](std::span<const std::byte> piece) {
        out.data.insert(out.data.end(), piece.begin(), piece.end());
        out.largest = std::max(out.largest, piece.size());
        return true;
      });
  return out;
}

}  // namespace weighbridge::test
