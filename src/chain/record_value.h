// SPDX-License-Identifier: Apache-2.0
// One value of a record: from how it is spelt to what it means and back. Leaves lines and keys to record.h.
#pragma once
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "chain/record.h"

namespace weighbridge::chain {

// What the spelling means; nullopt where the key's type does not allow it.
std::optional<std::string> parse_value(const Key&, std::string_view spelt);
// How a meaning is spelt; nullopt likewise.
std::optional<std::string> spell_value(const Key&, std::string_view meaning);
// What its type allows, for a message: "one of f32, q8_0, q4_0".
std::string expectation(const Key&);
std::optional<std::uint64_t> parse_number(std::string_view) noexcept;
std::optional<double> parse_real(std::string_view) noexcept;
// One to four sizes.
std::optional<std::vector<std::uint64_t>> parse_dims(std::string_view);

// The text with U+FFFD for each byte that is no UTF-8, as JSON needs it.
std::string printable(std::string_view text);

}  // namespace weighbridge::chain
