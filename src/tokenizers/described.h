// SPDX-License-Identifier: Apache-2.0
// The vocabulary of a model and what else its tokenizer does: its own, with the rules beside it
// (core/tokenizer_rules.h), or what metadata of llama.cpp describe (tokenizer.ggml.*).
#pragma once
#include <memory>

#include "weighbridge/model.h"
#include "weighbridge/tokenize.h"

namespace weighbridge::tokenizers {

struct Described {
  std::shared_ptr<const Tokenizer> tokenizer{};  // null: the model has none
  BytePairOptions options{};                     // of kinds byte and bpe
};
// The options that the caller leaves open are set as the model says. Throws Error{malformed} or Error{unsupported} with
// rule "tokenizer/..." for a description that is wrong, or of a tokenizer that is not here.
Described describe(const Model&, const BytePairOptions& = {});

}  // namespace weighbridge::tokenizers
