// SPDX-License-Identifier: Apache-2.0
#include "codecs/ggml_grid.h"

#include <algorithm>
#include <array>
#include <utility>

#include "codecs/ggml_tables.h"

namespace weighbridge::codecs {

GgmlGrid::GgmlGrid(std::span<const std::uint16_t> packed, unsigned bits, unsigned shells)
    : packed_(packed), entries_(std::size_t{1} << (bits == 2 ? 16 : 12), -1) {
  constexpr std::size_t kFarthest = 512;  // more than the square of any distance
  const unsigned depth = bits == 2 ? 8 : 4, mask = (1U << bits) - 1, levels = bits == 2 ? 3 : 8;
  for (std::size_t i = 0; i < packed.size(); ++i) entries_[packed[i]] = static_cast<std::int32_t>(i);
  std::vector<std::uint16_t> distances(packed.size());
  for (unsigned at = 0; at < entries_.size(); ++at) {
    bool possible = true;
    for (unsigned k = 0; k < depth; ++k) possible = possible && (at >> bits * k & mask) < levels;
    if (entries_[at] >= 0 || !possible) continue;
    std::array<std::uint16_t, kFarthest> count{};
    for (std::size_t i = 0; i < packed.size(); ++i) {
      int sum = 0;
      for (unsigned k = 0; k < depth; ++k) {
        const int off = static_cast<int>(packed[i] >> bits * k & mask) - static_cast<int>(at >> bits * k & mask);
        sum += off * off;
      }
      distances[i] = static_cast<std::uint16_t>(sum);
      ++count[distances[i]];
    }
    entries_[at] = -static_cast<std::int32_t>(near_.size()) - 1;
    const std::size_t head = near_.size();
    near_.push_back(0);
    unsigned found = 0;
    for (std::size_t distance = 0; found < shells && distance < kFarthest; ++distance) {
      if (count[distance] == 0) continue;
      ++found;
      for (std::size_t i = 0; i < packed.size(); ++i)
        if (distances[i] == distance) near_.push_back(static_cast<std::uint16_t>(i));
    }
    near_[head] = static_cast<std::uint16_t>(near_.size() - head - 1);
  }
}

const GgmlGrid& ggml_grid(Ggml type) {
  using namespace ggml_packed;
  switch (type) {
    case Ggml::iq2_xxs: {
      static const GgmlGrid made(kIq2xxsPacked, 2, 2);
      return made;
    }
    case Ggml::iq2_xs: {
      static const GgmlGrid made(kIq2xsPacked, 2, 2);
      return made;
    }
    case Ggml::iq2_s: {
      static const GgmlGrid made(kIq2sPacked, 2, 1);
      return made;
    }
    case Ggml::iq3_xxs: {
      static const GgmlGrid made(kIq3xxsPacked, 3, 2);
      return made;
    }
    default: {
      static const GgmlGrid made(kIq3sPacked, 3, 3);
      return made;
    }
  }
}

}  // namespace weighbridge::codecs
