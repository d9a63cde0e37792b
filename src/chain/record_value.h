// SPDX-License-Identifier: Apache-2.0
// Converts a value of a record between its escaped form and its meaning. Leaves lines and keys to record.h.
#pragma once
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "chain/record.h"

namespace weighbridge::chain::internal {

// The meaning of an escaped value; nullopt if the key's type does not allow it.
std::optional<std::string> parse_value(const Key&, std::string_view spelt);
// The escaped form of a meaning; nullopt if the key's type does not allow it.
std::optional<std::string> spell_value(const Key&, std::string_view meaning);
// The values that the key's type allows, for a message: "one of f32, q8_0, q4_0".
std::string expectation(const Key&);
std::optional<std::uint64_t> parse_number(std::string_view) noexcept;
std::optional<double> parse_real(std::string_view) noexcept;
// Parses one to four sizes.
std::optional<std::vector<std::uint64_t>> parse_dims(std::string_view);

// The text with U+FFFD for each byte that is not UTF-8, as JSON needs it.
std::string printable(std::string_view text);

}  // namespace weighbridge::chain::internal
