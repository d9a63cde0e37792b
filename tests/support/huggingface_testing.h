// SPDX-License-Identifier: Apache-2.0
// Small Hugging Face folders made in code for the tests: a valid tiny BERT, and functions that break it.
#pragma once
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "base/endian.h"
#include "weighbridge/context.h"
#include "weighbridge/place.h"

namespace weighbridge::huggingface::testing {

struct TinyTensor {
  std::string name;
  std::vector<std::uint64_t> shape;
  std::string dtype = "F32";
  char fill = 'a';
};

inline std::uint64_t bytes_of(const TinyTensor& tensor) {
  std::uint64_t size = tensor.dtype == "I64" ? 8 : tensor.dtype == "BOOL" ? 1 : 4;
  for (const std::uint64_t d : tensor.shape) size *= d;
  return size;
}

inline std::string safetensors(const std::vector<TinyTensor>& tensors, const std::string& metadata = {}) {
  std::string header = "{", data;
  if (!metadata.empty()) header += "\"__metadata__\":" + metadata;
  for (const TinyTensor& tensor : tensors) {
    if (header.size() > 1) header += ',';
    header += '"' + tensor.name + "\":{\"dtype\":\"" + tensor.dtype + "\",\"shape\":[";
    for (std::size_t i = 0; i < tensor.shape.size(); ++i)
      header += (i == 0 ? "" : ",") + std::to_string(tensor.shape[i]);
    header += "],\"data_offsets\":[" + std::to_string(data.size()) + ",";
    data.append(static_cast<std::size_t>(bytes_of(tensor)), tensor.fill);
    header += std::to_string(data.size()) + "]}";
  }
  header += '}';
  std::string out(8, '\0');
  base::store_le<std::uint64_t>(out.data(), header.size());
  return out + header + data;
}

inline const std::string kEmptySafetensors{"\x08\0\0\0\0\0\0\0{}      ", 16};  // as the format pads it

// Files by name.
using Files = std::map<std::string, std::string>;

inline const std::string kTinyVocabulary = "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\nword\n";
inline const std::string kTinyConfig = R"({
  "architectures": [
    "BertModel"
  ],
  "hidden_act": "gelu",
  "hidden_dropout_prob": 0.10,
  "hidden_size": 2,
  "intermediate_size": 4,
  "layer_norm_eps": 1e-12,
  "max_position_embeddings": 8,
  "model_type": "bert",
  "num_attention_heads": 1,
  "num_hidden_layers": 1,
  "transformers_version": "4.8.2",
  "vocab_size": 6
}
)";
inline const std::string kTinyPooling = R"({
  "word_embedding_dimension": 2,
  "pooling_mode_cls_token": false,
  "pooling_mode_mean_tokens": true,
  "pooling_mode_max_tokens": false,
  "pooling_mode_mean_sqrt_len_tokens": false
}
)";
inline const std::string kTinyTokenizer =
    R"({"normalizer":{"type":"BertNormalizer","lowercase":true},"added_tokens":[{"id":0,"content":"[PAD]"}],)"
    R"("model":{"type":"WordPiece","vocab":{"[PAD]":0,"[UNK]":1,"[CLS]":2,"[SEP]":3,"[MASK]":4,"word":5}}})";

inline std::vector<TinyTensor> tiny_tensors(const std::string& prefix = {}) {
  return {{prefix + "embeddings.word_embeddings.weight", {6, 2}},
          {prefix + "embeddings.position_ids", {1, 8}, "I64", '\0'},
          {prefix + "encoder.layer.0.output.dense.bias", {2}, "F32", 'b'}};
}

// Every file that is read, all valid.
inline Files tiny() {
  return {{"config.json", kTinyConfig},
          {"vocab.txt", kTinyVocabulary},
          {"tokenizer.json", kTinyTokenizer},
          {"tokenizer_config.json", R"({"do_lower_case":true,"unk_token":{"content":"[UNK]"}})"},
          {"sentence_bert_config.json", R"({"max_seq_length":256,"do_lower_case":false})"},
          {"modules.json", R"([{"idx":0,"type":"sentence_transformers.models.Transformer"},)"
                           R"({"idx":1,"type":"sentence_transformers.models.Normalize"}])"},
          {"1_Pooling/config.json", kTinyPooling},
          {"model.safetensors", safetensors(tiny_tensors(), R"({"format":"pt"})")}};
}

// The same weights in two shards.
inline Files tiny_shards() {
  Files out = tiny();
  out.erase("model.safetensors");
  const auto all = tiny_tensors();
  out["a.safetensors"] = safetensors({all[0], all[1]}, R"({"format":"pt"})");
  out["b.safetensors"] = safetensors({all[2]}, R"({"format":"pt"})");
  out["model.safetensors.index.json"] =
      R"({"metadata":{"total_size":120},"weight_map":{"encoder.layer.0.output.dense.bias":"b.safetensors",)"
      R"("embeddings.word_embeddings.weight":"a.safetensors","embeddings.position_ids":"a.safetensors"}})";
  return out;
}

// The tokenizer part of a Llama's folder: bytes as in sentencepiece, then `pieces`, as JSON.
struct TinyLlama {
  std::string pieces = R"("a":259,"b":260,"ab":261)";
  std::string merges = R"(["a b"])";
  std::string normalizer = R"({"type":"Sequence","normalizers":[{"type":"Prepend","prepend":"\u2581"},)"
                           R"({"type":"Replace","pattern":{"String":" "},"content":"\u2581"}]})";
  std::string pre_tokenizer = "null";
  std::string model = R"("byte_fallback":true,"unk_token":"<unk>")";  // further keys
  std::string added = R"({"id":1,"content":"<s>"})";
  std::string config = R"("vocab_size":300)";
  bool bytes = true;  // begin with <unk>, <s>, </s> and the bytes
};

inline std::string tokenizer_json(const TinyLlama& llama) {
  std::string vocabulary;
  if (llama.bytes) {
    vocabulary = R"("<unk>":0,"<s>":1,"</s>":2,)";
    for (int b = 0; b < 256; ++b) {
      constexpr const char* kDigits = "0123456789ABCDEF";
      vocabulary += std::string("\"<0x") + kDigits[b >> 4] + kDigits[b & 15] + ">\":" + std::to_string(3 + b) + ",";
    }
  }
  return R"({"added_tokens":[)" + llama.added + R"(],"normalizer":)" + llama.normalizer + R"(,"pre_tokenizer":)" +
         llama.pre_tokenizer + R"(,"model":{"type":"BPE",)" + llama.model + R"(,"vocab":{)" + vocabulary +
         llama.pieces + R"(},"merges":)" + llama.merges + "}}";
}

inline Files tiny_llama(const TinyLlama& llama = {}) {
  return {{"config.json", R"({"model_type":"llama",)" + llama.config + "}"},
          {"tokenizer.json", tokenizer_json(llama)},
          {"model.safetensors", safetensors({{"model.norm.weight", {2}}})}};
}

// A folder in memory.
inline std::shared_ptr<const Place> in_memory(const Files& files) {
  std::map<std::string, std::shared_ptr<const Source>, std::less<>> sources;
  for (const auto& [name, bytes] : files) {
    const auto kept = std::make_shared<const std::string>(bytes);
    sources.emplace(name, memory_source({std::as_bytes(std::span(*kept)), kept}, name));
  }
  return folder_of(std::move(sources), "folder");
}

// `text` with its first `from` replaced; it must contain `from`.
inline std::string replaced(std::string text, const std::string& from, const std::string& to) {
  const std::size_t at = text.find(from);
  if (at == std::string::npos) throw std::logic_error("a case has nothing to replace: " + from);
  return text.replace(at, from.size(), to);
}

// The valid folder with one file changed, or removed if `bytes` is nullopt.
inline Files with(const std::string& name, std::optional<std::string> bytes, Files files = tiny()) {
  if (bytes)
    files[name] = *std::move(bytes);
  else
    files.erase(name);
  return files;
}

// One folder and the findings of verify.
struct Case {
  std::string name;
  std::vector<std::string> rules;  // all, in order
  Files files;
  Limits limits{};
};
// At least one for each rule except hf/shard-link, because bytes cannot make a link. In cases.cc, which only tests
// link.
std::vector<Case> cases();

}  // namespace weighbridge::huggingface::testing
