// SPDX-License-Identifier: Apache-2.0
// The settings that sentence-transformers keeps beside a model: sentence_bert_config.json, modules.json, the
// config.json of each module, and config_sentence_transformers.json. Reads them as EMBD's optional metadata (readings
// E10, E14), and writes them.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/reading/encoder_settings.h"
#include "formats/huggingface/json_file.h"
#include "formats/huggingface/setting_judge.h"

namespace weighbridge::huggingface {

inline constexpr std::string_view kMaxSeqLength = "max_seq_length", kPoolingMode = "pooling_mode",
                                  kNormalize = "normalize", kOwnNormalize = "hf.normalize",
                                  kLowerCase = "do_lower_case";

struct Settings {
  std::optional<std::uint64_t> max_seq_length;
  std::string pooling_mode;  // "mean", "cls", ...; several are joined by +; empty if unknown
  std::optional<bool> normalize;
  bool include_prompt = true;
  std::string modules;                        // core::SentenceModule
  std::string prompts;                        // compact JSON of an object of texts
  std::optional<std::string> default_prompt;  // its name
  std::optional<std::uint64_t> truncate_dim;
  bool operator==(const Settings&) const = default;
};
// Further facts that the reader needs.
struct SettingsFiles {
  Settings settings;
  std::optional<std::string> word_table;  // the folder of a StaticEmbedding: empty for the model's own
  bool lowers_first = false;              // texts are lowercased before the tokenizer sees them
  bool saved_by_package = false;          // there is a modules.json
  bool prompts_held = false;              // the settings represent all of config_sentence_transformers.json
  std::vector<std::string> held{};        // files of modules that the settings represent fully
  SettingJudge judged;
};
// `shows_layers`: config.json enables the hidden states of all layers, which a WeightedLayerPooling needs.
SettingsFiles read_settings(Reading&, bool shows_layers);

// The folders of the modules that modules.json lists, each once, if their names are plain. Leaves what is wrong with
// the text to read_settings().
std::vector<std::string> module_folders(Reading&, const TextFile& modules);

// Whether 1_Pooling/config.json can express it.
bool is_pooling_mode(std::string_view mode);
std::string sentence_config_json(std::uint64_t max_seq_length);
std::string modules_json(bool pooling, bool normalize);
std::string pooling_json(std::string_view mode, std::uint64_t dimension, bool include_prompt);
// Of prompts, default_prompt and truncate_dim.
std::string prompts_json(const Settings&);

}  // namespace weighbridge::huggingface
