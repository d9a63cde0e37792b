// SPDX-License-Identifier: Apache-2.0
// What is specific to zstd, beside its row in the table of codecs.
#pragma once
#include <cstdint>
#include <optional>

#include "codecs/codec.h"

namespace weighbridge::codecs {

// The largest window that the decoder accepts.
inline constexpr std::uint64_t kZstdMaxWindow = std::uint64_t{128} << 20;

// The total content size that the frames of a part state, found without decoding. If the data is truncated or continues
// with something else, the sum up to there. nullopt if a frame does not state its size, or the data does not begin with
// a frame.
std::optional<std::uint64_t> zstd_stated_size(const Decoder::Pull&);

}  // namespace weighbridge::codecs
