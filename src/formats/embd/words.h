// SPDX-License-Identifier: Apache-2.0
// How messages of EMBD print checksums, and metadata that may be long.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>

#include "codecs/checksum.h"
#include "core/words.h"

namespace weighbridge::embd {

using core::bytes_text;
using core::shape_text;

inline std::string crc_text(std::uint32_t crc) { return "0x" + codecs::to_hex(crc); }
inline std::string excerpt(std::string_view text) { return core::excerpt(text, 60); }

}  // namespace weighbridge::embd
