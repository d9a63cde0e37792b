// SPDX-License-Identifier: Apache-2.0
// The settings that sentence-transformers keeps beside a model: sentence_bert_config.json, modules.json and
// 1_Pooling/config.json. Reads them as EMBD's optional metadata (readings E10, E14), and writes them.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "formats/huggingface/json_file.h"

namespace weighbridge::huggingface {

inline constexpr std::string_view kMaxSeqLength = "max_seq_length", kPoolingMode = "pooling_mode",
                                  kNormalize = "normalize", kOwnNormalize = "hf.normalize",
                                  kLowerCase = "do_lower_case";

struct Settings {
  std::optional<std::uint64_t> max_seq_length;
  std::string pooling_mode;  // "mean", "cls", ...; several are joined by +; empty if unknown
  std::optional<bool> normalize;
  std::optional<std::string> word_table;  // the folder of a StaticEmbedding: empty for the model's own
  bool operator==(const Settings&) const = default;
};
Settings read_settings(Reading&);

// The folders of the modules that modules.json lists, each once, if their names are plain. Leaves what is wrong with
// the text to read_settings().
std::vector<std::string> module_folders(Reading&, const TextFile& modules);

// Whether 1_Pooling/config.json can express it.
bool is_pooling_mode(std::string_view mode);
std::string sentence_config_json(std::uint64_t max_seq_length);
std::string modules_json(bool pooling, bool normalize);
std::string pooling_json(std::string_view mode, std::uint64_t dimension);

}  // namespace weighbridge::huggingface
