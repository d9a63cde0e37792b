// SPDX-License-Identifier: Apache-2.0
// Base64 as RFC 4648 section 4 has it: the standard alphabet, always padded.
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
// The bytes, or nullopt for any text that encode_base64() cannot give: white space, missing or misplaced padding, other
// characters, and unused bits that are not 0.
std::optional<std::vector<std::byte>> decode_base64(std::string_view text);

}  // namespace weighbridge::wire
