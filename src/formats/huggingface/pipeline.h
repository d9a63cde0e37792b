// SPDX-License-Identifier: Apache-2.0
// What a BPE tokenizer.json does to a text before its merges: normalizer and pre-tokenizer. Owns which of that a
// vocabulary with merges can do as well (readings M11, M14), and the words for what it cannot.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "formats/huggingface/json_file.h"

namespace weighbridge::huggingface {

inline constexpr std::string_view kMetaspace = "\xE2\x96\x81";  // U+2581, which stands for a space

struct Pipeline {
  enum class Spelling : std::uint8_t {
    plain,   // tokens are texts
    spaces,  // with U+2581 for each space
    bytes,   // with a character for each byte, as GPT-2 has them
  };
  Spelling spelling = Spelling::plain;
  bool prefix = false;              // a space goes before a text that is not empty
  bool spares_first = false;        // unless the text begins with one
  bool split = false;               // at each space, so that no token goes on past one
  std::vector<std::string> beyond;  // what merges cannot do, in words
};

// Reports what is wrong with the JSON.
Pipeline read_pipeline(Reading&, const JsonObject& tokenizer);

}  // namespace weighbridge::huggingface
