// SPDX-License-Identifier: Apache-2.0
// Base64 as in RFC 4648, section 4: the standard alphabet, always padded.
#pragma once
#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace weighbridge::wire {

// Appends the text form of `data`.
void append_base64(std::string& to, std::span<const std::byte> data);
std::string encode_base64(std::span<const std::byte> data);
// The bytes, or nullopt for any text that the encoder cannot produce: white space, missing or misplaced padding, other
// characters, nonzero unused bits.
std::optional<std::vector<std::byte>> decode_base64(std::string_view text);

}  // namespace weighbridge::wire
