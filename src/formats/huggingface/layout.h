// SPDX-License-Identifier: Apache-2.0
// The names of the files of a Hugging Face folder, as transformers and sentence-transformers write them.
#pragma once
#include <string_view>

namespace weighbridge::huggingface {

// The names that the reader looks for. The index names the shards.
inline constexpr std::string_view kConfig = "config.json", kVocabTxt = "vocab.txt", kTokenizerJson = "tokenizer.json",
                                  kTokenizerConfig = "tokenizer_config.json",
                                  kSentenceConfig = "sentence_bert_config.json", kModules = "modules.json",
                                  kPooling = "1_Pooling/config.json", kWeights = "model.safetensors",
                                  kIndex = "model.safetensors.index.json", kPickle = "pytorch_model.bin",
                                  kPickleIndex = "pytorch_model.bin.index.json";
// Shards are named "model-00001-of-00002.safetensors".
inline constexpr std::string_view kWeightsStem = "model", kWeightsSuffix = ".safetensors";

// The files of tokenizers, read or not: together they describe one tokenizer.
inline constexpr std::string_view kTokenizerFiles[] = {kVocabTxt,
                                                       kTokenizerJson,
                                                       kTokenizerConfig,
                                                       "special_tokens_map.json",
                                                       "added_tokens.json",
                                                       "vocab.json",
                                                       "merges.txt",
                                                       "tokenizer.model",
                                                       "spiece.model",
                                                       "sentencepiece.bpe.model",
                                                       "chat_template.jinja",
                                                       "chat_template.json"};
// Those of sentence-transformers.
inline constexpr std::string_view kSettingsFiles[] = {kSentenceConfig, kModules, kPooling};

}  // namespace weighbridge::huggingface
