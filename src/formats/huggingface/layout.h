// SPDX-License-Identifier: Apache-2.0
// The names of the files of a Hugging Face folder, as transformers and sentence-transformers write them.
#pragma once
#include <string_view>

namespace weighbridge::huggingface {

// The names that the reader looks for. The index names the shards.
inline constexpr std::string_view kConfig = "config.json", kVocabTxt = "vocab.txt", kTokenizerJson = "tokenizer.json",
                                  kTokenizerConfig = "tokenizer_config.json",
                                  kSentenceConfig = "sentence_bert_config.json",
                                  kPromptsConfig = "config_sentence_transformers.json", kModules = "modules.json",
                                  kPooling = "1_Pooling/config.json", kWeights = "model.safetensors",
                                  kIndex = "model.safetensors.index.json", kPickle = "pytorch_model.bin",
                                  kPickleIndex = "pytorch_model.bin.index.json", kAddedTokens = "added_tokens.json",
                                  kGenerationConfig = "generation_config.json", kSpecialMap = "special_tokens_map.json";
// Where sentence-transformers puts a table of word vectors if it is the first of several modules.
inline constexpr std::string_view kWordTableFolder = "0_StaticEmbedding/";
// Shards are named "model-00001-of-00002.safetensors".
inline constexpr std::string_view kWeightsStem = "model", kWeightsSuffix = ".safetensors";
// The files of weights of one kind. Pickles are read if there are no safetensors.
struct WeightFiles {
  std::string_view whole, index, stem, suffix, format;
};
inline constexpr WeightFiles kSafetensorsFiles{kWeights, kIndex, kWeightsStem, kWeightsSuffix, "safetensors"};
inline constexpr WeightFiles kPickleFiles{kPickle, kPickleIndex, "pytorch_model", ".bin", "pytorch"};
// Of the components of a pipeline of diffusers, whose config.json names their class.
inline constexpr WeightFiles kComponentFiles{"diffusion_pytorch_model.safetensors",
                                             "diffusion_pytorch_model.safetensors.index.json",
                                             "diffusion_pytorch_model", kWeightsSuffix, "safetensors"};
inline constexpr std::string_view kComponentClass = "_class_name";
// All kinds, in the order in which a reader looks for them: models, components of diffusers' pipelines, peft's
// adapters.
inline constexpr std::string_view kAdapterConfig = "adapter_config.json";
// Begins the keys of attributes that are whole files, in a model that is to be written as a folder: text, or bytes.
inline constexpr std::string_view kFileText = "file.";
inline constexpr WeightFiles kAdapterFiles{"adapter_model.safetensors", "adapter_model.safetensors.index.json",
                                           "adapter_model", kWeightsSuffix, "safetensors"};
inline constexpr WeightFiles kWeightKinds[] = {
    kSafetensorsFiles,
    kPickleFiles,
    kComponentFiles,
    {"diffusion_pytorch_model.bin", "diffusion_pytorch_model.bin.index.json", "diffusion_pytorch_model", ".bin",
     "pytorch"},
    kAdapterFiles,
    {"adapter_model.bin", "adapter_model.bin.index.json", "adapter_model", ".bin", "pytorch"}};

// The files of tokenizers, read or not: together they describe one tokenizer.
inline constexpr std::string_view kTokenizerFiles[] = {kVocabTxt,
                                                       kTokenizerJson,
                                                       kTokenizerConfig,
                                                       kGenerationConfig,
                                                       kSpecialMap,
                                                       kAddedTokens,
                                                       "vocab.json",
                                                       "merges.txt",
                                                       "tokenizer.model",
                                                       "spiece.model",
                                                       "sentencepiece.bpe.model",
                                                       "chat_template.jinja",
                                                       "chat_template.json"};
// What libraries say of a quantization beside config.json.
inline constexpr std::string_view kQuantizationFiles[] = {"quantize_config.json", "hf_quant_config.json",
                                                          "quantization_map.json"};
// Keys of settings by which transformers finds Python code: "MODULE.CLASS" in the folder, or
// "REPOSITORY--MODULE.CLASS" in another repository.
inline constexpr std::string_view kCodeKeys[] = {"auto_map", "custom_pipelines"};
inline constexpr std::string_view kOfRepository = "--";
// Those of sentence-transformers.
inline constexpr std::string_view kSettingsFiles[] = {kSentenceConfig, kModules, kPooling, kPromptsConfig};

}  // namespace weighbridge::huggingface
