// SPDX-License-Identifier: Apache-2.0
// A folder as its readers see it: files by name. Owns what is a Hugging Face folder, and which links may be followed.
#pragma once
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "weighbridge/source.h"

namespace weighbridge::huggingface {

struct Folder {
  std::string name;  // its last component: the model's name (reading E14)
  // The file of that name, which may lie one folder deep; null where there is none. Throws Error of kind io, and misuse
  // for what is no regular file.
  std::function<std::shared_ptr<const Source>(std::string_view relative)> file;
  // Whether a file of that name stands there as a symbolic link to somewhere that the folder has no business with:
  // neither below it nor, for a snapshot in a Hugging Face cache, among that model's blobs.
  std::function<bool(std::string_view relative)> leads_out;
};

// The names that are looked at. Shards have the names that the index gives them.
inline constexpr std::string_view kConfig = "config.json", kVocabTxt = "vocab.txt", kTokenizerJson = "tokenizer.json",
                                  kTokenizerConfig = "tokenizer_config.json",
                                  kSentenceConfig = "sentence_bert_config.json", kModules = "modules.json",
                                  kPooling = "1_Pooling/config.json", kWeights = "model.safetensors",
                                  kIndex = "model.safetensors.index.json", kPickle = "pytorch_model.bin",
                                  kPickleIndex = "pytorch_model.bin.index.json";

Folder open_folder(const std::string& path, Access);
// Something in it says that it is meant to be a model.
bool recognize(const Folder&);
// What recognize() looks for, for people.
std::string looked_for();

}  // namespace weighbridge::huggingface
