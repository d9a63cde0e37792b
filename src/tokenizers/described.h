// SPDX-License-Identifier: Apache-2.0
// The vocabulary of a model and what else its tokenizer does: its own, with the rules beside it
// (tokenizers/tokenizer_rules.h), or what metadata of llama.cpp describe (tokenizer.ggml.*). Also owns the default
// limit on the ids of a text.
#pragma once
#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "weighbridge/model.h"
#include "weighbridge/tokenize.h"

namespace weighbridge::tokenizers {

// Of a token in metadata of llama.cpp: llama_token_type, whose numbers are those of sentencepiece.
enum class TokenType : std::uint32_t { normal = 1, unknown = 2, control = 3, user_defined = 4, unused = 5, byte = 6 };
// How the keys of these metadata begin.
inline constexpr std::string_view kLlamaCppKeys = "tokenizer.ggml.";

struct Described {
  std::shared_ptr<const Tokenizer> tokenizer{};  // null: the model has none
  BytePairOptions options{};                     // of kinds byte and bpe
};
// The options that the caller leaves open are set as the model says. Throws Error{malformed} or Error{unsupported} with
// rule "tokenizer/..." for a description that is wrong, or of a tokenizer that is not here.
Described describe(const Model&, const BytePairOptions& = {});

// The options of WordPiece for a model: its attributes do_lower_case, strip_accents, tokenize_chinese_chars and
// tokenizer_rules. `own`: for its own vocabulary; rules that name ids are left out for another one. Does not look for
// settings that were refused when the model was read (core/reading/encoder_settings.h).
WordPieceOptions word_piece_options(const Model&, bool own, std::span<const std::string> ignore_settings);

// The default limit on the ids of a text, for a model with position embeddings (weighbridge/embed.h).

// `said`: the metadata's "max_seq_length"; `places`: rows of the position embeddings. The result always has room for
// [CLS] and [SEP].
inline std::uint64_t usual_length(std::optional<std::uint64_t> said, std::uint64_t places) {
  constexpr std::uint64_t kUsual = 256;
  return std::max<std::uint64_t>(2, std::min(said.value_or(kUsual), places));
}

}  // namespace weighbridge::tokenizers
