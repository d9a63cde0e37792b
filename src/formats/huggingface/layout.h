// SPDX-License-Identifier: Apache-2.0
// The files of a Hugging Face folder by their names, as transformers and sentence-transformers call them.
#pragma once
#include <string_view>

namespace weighbridge::huggingface {

// The names that are looked at. Shards have the names that the index gives them.
inline constexpr std::string_view kConfig = "config.json", kVocabTxt = "vocab.txt", kTokenizerJson = "tokenizer.json",
                                  kTokenizerConfig = "tokenizer_config.json",
                                  kSentenceConfig = "sentence_bert_config.json", kModules = "modules.json",
                                  kPooling = "1_Pooling/config.json", kWeights = "model.safetensors",
                                  kIndex = "model.safetensors.index.json", kPickle = "pytorch_model.bin",
                                  kPickleIndex = "pytorch_model.bin.index.json";

}  // namespace weighbridge::huggingface
