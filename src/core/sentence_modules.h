// SPDX-License-Identifier: Apache-2.0
// What sentence-transformers computes besides an encoder, one pooling and a last Normalize: attributes of the model, so
// that every container holds them. The reader of Hugging Face folders makes them, the runtime follows them.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace weighbridge::core {

// The keys of the attributes. Without one: no prompt, no such module, all tokens, all numbers.
inline constexpr std::string_view kSentenceModules = "sentence_modules", kIncludePrompt = "include_prompt",
                                  kPrompts = "prompts", kDefaultPrompt = "default_prompt_name",
                                  kTruncateDim = "truncate_dim";

struct SentenceModule {
  enum class Type : std::uint8_t { dense, layer_norm, normalize, weighted_layers };
  Type type = Type::normalize;
  std::string path{};  // its folder, with which the names of its tensors begin: "2_Dense" of "2_Dense.linear.weight"
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

// The names and texts of an object of texts, in its order; nullopt for anything else. A null is left out.
std::optional<std::vector<std::pair<std::string, std::string>>> parse_prompts(std::string_view json);

}  // namespace weighbridge::core
