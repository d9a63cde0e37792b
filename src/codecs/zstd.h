// SPDX-License-Identifier: Apache-2.0
// What is zstd's alone, beside its row in the table of codecs.
#pragma once
#include <cstdint>
#include <optional>

#include "codecs/codec.h"

namespace weighbridge::codecs {

// The largest window that is decoded.
inline constexpr std::uint64_t kZstdMaxWindow = std::uint64_t{128} << 20;

// What the frames of a part say that they hold together, found by walking over them, which decodes nothing. Of data
// that breaks off or goes on as no frame, the sum up to there. None: a frame on the way does not say, or the first one
// is none.
std::optional<std::uint64_t> zstd_stated_size(const Decoder::Pull&);

}  // namespace weighbridge::codecs
