// SPDX-License-Identifier: Apache-2.0
// The 108-byte header ("Header", readings M4, M15, M16): the rules for its fields, and its attributes. Also owns
// the tokenizer section.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "core/reading/findings.h"
#include "formats/slm/layout.h"
#include "weighbridge/model.h"
#include "weighbridge/value.h"

namespace weighbridge::slm_format {

// Reports every field that is invalid by itself or contradicts another one, except ranges and sections.
void check_fields(const Header&, core::Findings&);
// The rule for a header with a byte tokenizer (reading M17).
void check_special_tokens(const Header&, core::Findings&);
// Reports sections that end past the end of a file of `size` bytes or overlap. False if the tokenizer section or the
// directory cannot be read.
bool check_sections(const Header&, std::uint64_t size, core::Findings&);

// The attributes "slm.<field>", in the order of the header.
std::vector<Value::Entry> header_attributes(const Header&);

// The tokenizer section ("Tokenizer Sections", readings M10, M11, M17): decodes BTOK and BPE1 to a Tokenizer, and
// encodes it back to the same bytes.

// Decodes the section, which begins at offset `at` of the file; `vocab_size` is the header's. On the first error,
// reports it and returns nullopt: there is no partly valid tokenizer.
std::optional<Tokenizer> parse_tokenizer(std::string_view section, std::uint64_t at, std::uint32_t vocab_size,
                                         core::Findings&);

// Every BTOK section has the same 28 bytes. These are the bytes and the tokenizer that they encode.
std::string encode_btok();
Tokenizer byte_tokenizer();
// A BPE1 section. The special ids are those named "bos", "eos", "pad", "unk".
std::string encode_bpe1(const Tokenizer&);

struct EncodedTokenizer {
  std::string section;
  std::string problem;  // why the tokenizer cannot be written, in lower case; empty if it can
};
// Encodes the tokenizer as BTOK or BPE1. If there is no problem, parse_tokenizer() returns the same tokenizer.
EncodedTokenizer encode_tokenizer(const Tokenizer&, std::uint32_t vocab_size);

}  // namespace weighbridge::slm_format
