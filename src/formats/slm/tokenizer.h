// SPDX-License-Identifier: Apache-2.0
// The tokenizer section ("Tokenizer Sections", readings M10, M11, M17): BTOK and BPE1 to Tokenizer data and back, byte
// for byte.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "core/findings.h"
#include "weighbridge/model.h"

namespace weighbridge::slm {

// The section, which stands at offset `at` of the file; `vocab_size` is the header's. Reports the first error and gives
// nothing then: a tokenizer is right as a whole or not at all.
std::optional<Tokenizer> parse_tokenizer(std::string_view section, std::uint64_t at, std::uint32_t vocab_size,
                                         core::Findings&);

// The 28 bytes that every BTOK section is, and the tokenizer that they stand for.
std::string encode_btok();
Tokenizer byte_tokenizer();
// A BPE1 section; special ids by their names "bos", "eos", "pad", "unk".
std::string encode_bpe1(const Tokenizer&);

struct EncodedTokenizer {
  std::string section;
  std::string problem;  // a lower-case sentence: why it cannot be written; empty when it can
};
// Whichever section holds the tokenizer. Where there is no problem, parse_tokenizer() gives it back.
EncodedTokenizer encode_tokenizer(const Tokenizer&, std::uint32_t vocab_size);

}  // namespace weighbridge::slm
