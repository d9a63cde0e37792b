// SPDX-License-Identifier: Apache-2.0
// The modules of sentence-transformers other than an encoder, one pooling and a final Normalize: attributes of the
// model, so that every container can hold them. The reader of Hugging Face folders writes them, the runtime computes
// them.
#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "weighbridge/model.h"

namespace weighbridge::core {

// The keys of the attributes. An absent attribute means: no prompt, no such module, all tokens, all dimensions.
inline constexpr std::string_view kSentenceModules = "sentence_modules", kIncludePrompt = "include_prompt",
                                  kPrompts = "prompts", kDefaultPrompt = "default_prompt_name",
                                  kTruncateDim = "truncate_dim";

struct SentenceModule {
  enum class Type : std::uint8_t { dense, layer_norm, normalize, weighted_layers };
  Type type = Type::normalize;
  std::string path{};  // its folder, which is the prefix of its tensors' names: "2_Dense" of "2_Dense.linear.weight"
  std::string activation{};               // dense: the name of a class of torch, "Tanh"
  std::uint64_t inputs = 0, outputs = 0;  // dense
  bool bias = true, residual = false;     // dense
  std::uint64_t first_layer = 0;          // weighted_layers: of the hidden states, 0 for the embeddings
  bool operator==(const SentenceModule&) const = default;
};

// Compact JSON, in the order in which they are computed; empty if there are none.
std::string text_of(const std::vector<SentenceModule>&);
// nullopt for anything that text_of() does not make.
std::optional<std::vector<SentenceModule>> parse_sentence_modules(std::string_view);

// The names and values of a JSON object of texts, in order; nullopt for anything else. Skips null values.
std::optional<std::vector<std::pair<std::string, std::string>>> parse_prompts(std::string_view json);

// Settings of an encoder's folder that this program does not follow, or does not know: two attributes, so that they
// travel with the model and every program that runs it sees them. The reader of Hugging Face folders makes them; the
// runtimes refuse the first and warn about the second.

inline constexpr std::string_view kSettingsRefused = "settings_refused", kSettingsUnknown = "settings_unknown";

struct OddSetting {
  std::string file, key, value;  // the value as JSON, shortened; empty: a long one
  std::string why{};             // a clause, or empty
  bool operator==(const OddSetting&) const = default;
};

// Compact JSON; empty if there are none.
std::string text_of(std::span<const OddSetting>);
// Leaves out what text_of() does not make.
std::vector<OddSetting> parse_odd_settings(std::string_view);

// Whether a caller passes the setting by name: "KEY" or "FILE:KEY".
bool passes(std::span<const std::string> ignored, const OddSetting&);
// Notes of the names that are of none of these settings. Those of a tokenizer's steps are known when it is made.
void note_unmatched(std::span<const std::string> ignored, std::span<const OddSetting> settings,
                    std::vector<std::string>& notes);
// What a setting says, and what becomes of it if nobody refuses it: a sentence.
std::string setting_text(const OddSetting&);
std::string note_of(const OddSetting& unknown);
// Throws Error{unsupported} with the rule `rule` that names every refused setting of the model's tokenizer that is not
// passed. Returns a sentence for each that is passed or unknown.
std::vector<std::string> require_tokenizer_settings(const Model&, std::span<const std::string> ignored,
                                                    std::string_view rule);

}  // namespace weighbridge::core
