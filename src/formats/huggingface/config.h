// SPDX-License-Identifier: Apache-2.0
// config.json: which of its keys map to EMBD's metadata keys (reading E14), in both directions. Every other key becomes
// the attribute "hf.<key>".
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "formats/huggingface/json_file.h"
#include "weighbridge/value.h"

namespace weighbridge::huggingface {

struct ConfigKey {
  enum class Is : std::uint8_t { positive, real, text };
  std::string_view config, attribute;
  Is is;
  bool required;
};
// In the order of EMBD's metadata.
inline constexpr ConfigKey kConfigKeys[] = {
    {"vocab_size", "vocab_size", ConfigKey::Is::positive, true},
    {"num_hidden_layers", "num_layers", ConfigKey::Is::positive, true},
    {"num_attention_heads", "num_attention_heads", ConfigKey::Is::positive, true},
    {"hidden_size", "hidden_size", ConfigKey::Is::positive, true},
    {"intermediate_size", "intermediate_size", ConfigKey::Is::positive, true},
    {"max_position_embeddings", "max_position_emb", ConfigKey::Is::positive, true},
    {"layer_norm_eps", "layer_norm_eps", ConfigKey::Is::real, false},
    {"hidden_act", "hidden_act", ConfigKey::Is::text, false},
};
// Always equal to hidden_size, by EMBD's rule (reading E13): config.json has no key for it.
inline constexpr std::string_view kEmbeddingDim = "embedding_dim";
inline constexpr std::string_view kModelName = "model_name", kModelVersion = "model_version", kFirstVersion = "1.0.0";
inline constexpr std::string_view kEnds = "eos_token_id";
inline constexpr std::string_view kOwn = "hf.", kPrefixKey = "hf.prefix", kModelType = "model_type",
                                  kArchitectures = "architectures";

const ConfigKey* find_config_key(std::string_view config) noexcept;
const ConfigKey* find_attribute_key(std::string_view attribute) noexcept;
// A positive integer below 2^32 in decimal; nullopt for anything else.
std::optional<std::uint64_t> positive(std::string_view text) noexcept;

// Takes the JSON of model_type and architectures. If model_type is absent (empty), the first of the architectures
// decides: its name begins with "Bert".
bool is_bert(std::string_view model_type, std::string_view architectures);

// The same with "llama" and "Llama".
bool is_llama(std::string_view model_type, std::string_view architectures);

// The same with "model2vec" and "Static": one table of word vectors.
bool is_word_table(std::string_view model_type, std::string_view architectures);

// The ids of a value that is an id or a list of them.
std::vector<std::uint64_t> ids_of(std::string_view json);

struct Config {
  bool bert = false, llama = false, word_table = false;
  std::string under{};  // prefix of the files of weights and tokenizer: the folder of a StaticEmbedding, and a slash
  std::optional<std::uint64_t> vocab_size, hidden_size, positions;
  std::optional<std::uint64_t> bos, eos, pad;  // ids of a Llama's special tokens
  std::vector<std::uint64_t> ends{};           // all of eos_token_id
  std::vector<Value::Entry> named, others;     // attributes: EMBD's keys, and the "hf." keys
};
// Reports missing and invalid keys. Only a BERT's config has `named`.
Config read_config(Reading&, const JsonObject&);

}  // namespace weighbridge::huggingface
