// SPDX-License-Identifier: Apache-2.0
// The 108-byte header ("Header", readings M4, M15, M16): decoding, encoding, and the rules for its fields.
#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "core/findings.h"
#include "formats/slm/layout.h"
#include "weighbridge/value.h"

namespace weighbridge::slm_format {

// `bytes` must be at least kHeaderSize long. Ignores the magic.
Header decode_header(std::span<const std::byte> bytes) noexcept;
// Returns kHeaderSize bytes, including the magic.
std::string encode_header(const Header&);

// Says where the header and its fields are.
void tell(const Header&, const core::Findings&);

// Reports every field that is invalid by itself or contradicts another one, except ranges and sections.
void check_fields(const Header&, core::Findings&);
// The rule for a header with a byte tokenizer (reading M17).
void check_special_tokens(const Header&, core::Findings&);
// Reports sections that end past the end of a file of `size` bytes or overlap. False if the tokenizer section or the
// directory cannot be read.
bool check_sections(const Header&, std::uint64_t size, core::Findings&);

// The attributes "slm.<field>", in the order of the header.
std::vector<Value::Entry> header_attributes(const Header&);

}  // namespace weighbridge::slm_format
