// SPDX-License-Identifier: Apache-2.0
// The vocabulary of a model and what else its tokenizer does: its own, with the rules beside it
// (core/tokenizer_rules.h), or what metadata of llama.cpp describe (tokenizer.ggml.*).
#pragma once
#include <memory>
#include <span>
#include <string>

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

// The options of WordPiece for a model: its attributes do_lower_case, strip_accents, tokenize_chinese_chars and
// tokenizer_rules. `own`: for its own vocabulary; rules that name ids are left out for another one. Does not look for
// settings that were refused when the model was read (core/odd_settings.h).
WordPieceOptions word_piece_options(const Model&, bool own, std::span<const std::string> ignore_settings);

}  // namespace weighbridge::tokenizers
