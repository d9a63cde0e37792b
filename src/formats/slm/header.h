// SPDX-License-Identifier: Apache-2.0
// The 108-byte header ("Header", readings M4, M15, M16): bytes to fields and back, and what its fields must be.
#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "core/findings.h"
#include "formats/slm/layout.h"
#include "weighbridge/value.h"

namespace weighbridge::slm {

// `bytes` are at least kHeaderSize long; the magic is not looked at.
Header decode_header(std::span<const std::byte> bytes) noexcept;
// kHeaderSize bytes, magic included.
std::string encode_header(const Header&);

// Reports every field that is wrong by itself or against its neighbors, ranges and sections aside.
void check_fields(const Header&, core::Findings&);
// Reports sections that lie past the file's end or over one another, in a file of `size` bytes. False: tokenizer
// section or directory cannot be read.
bool check_sections(const Header&, std::uint64_t size, core::Findings&);

// "slm.<field>" of each field that is an attribute, in the order of the header.
std::vector<Value::Entry> header_attributes(const Header&);

}  // namespace weighbridge::slm
