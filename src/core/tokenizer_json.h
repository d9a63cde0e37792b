// SPDX-License-Identifier: Apache-2.0
// A tokenizer as the JSON text of the attribute "weighbridge.tokenizer" (reading Y10):
//   {"kind":"wordpiece","vocab_size":N,"tokens":[...],"ids":[...],"merges":[[left,right,output,rank],...],
//    "special":{"pad":0,...}}
// A token that is not UTF-8 is written as {"bytes":"<base64>"}; ids, merges and special are left out if empty.
#pragma once
#include <optional>
#include <string>
#include <string_view>

#include "weighbridge/model.h"

namespace weighbridge::core {

// This project's own attribute (Y10).
inline constexpr std::string_view kTokenizerKey = "weighbridge.tokenizer";

std::string tokenizer_to_json(const Tokenizer&);
// Accepts only the output of tokenizer_to_json(), with keys in any order; nullopt for anything else.
std::optional<Tokenizer> tokenizer_from_json(std::string_view text);

}  // namespace weighbridge::core
