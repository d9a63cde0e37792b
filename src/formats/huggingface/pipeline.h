// SPDX-License-Identifier: Apache-2.0
// The normalizer and pre-tokenizer of a BPE tokenizer.json, which run before the merges. Decides which steps a
// vocabulary with merges can reproduce (readings M11, M14), and describes the others.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "formats/huggingface/json_file.h"

namespace weighbridge::huggingface {

inline constexpr std::string_view kMetaspace = "\xE2\x96\x81";  // U+2581, which represents a space

struct Pipeline {
  enum class Spelling : std::uint8_t {
    plain,   // tokens are plain text
    spaces,  // text with U+2581 for each space
    bytes,   // a character for each byte, as in GPT-2
  };
  Spelling spelling = Spelling::plain;
  bool prefix = false;               // puts a space before a text that is not empty
  bool spares_first = false;         // but not if the text begins with one
  bool split = false;                // splits at each space, so no token continues past one
  std::vector<std::string> words{};  // regular expressions that divide a text before it becomes bytes, in their order
  std::vector<std::string> beyond;   // descriptions of what merges cannot do
};

// Reports what is wrong with the JSON.
Pipeline read_pipeline(Reading&, const JsonObject& tokenizer);

}  // namespace weighbridge::huggingface
