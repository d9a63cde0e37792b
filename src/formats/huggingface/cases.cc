// SPDX-License-Identifier: Apache-2.0
// The corpus of Hugging Face folders: for each rule a valid folder with one file changed.
#include <optional>
#include <string>
#include <utility>

#include "support/huggingface_testing.h"

namespace weighbridge::huggingface::testing {
namespace {

Files with_config(const std::string& from, const std::string& to) {
  return with("config.json", replaced(kTinyConfig, from, to));
}
Files with_index(const std::string& from, const std::string& to) {
  Files files = tiny_shards();
  std::string& index = files["model.safetensors.index.json"];
  index = replaced(index, from, to);
  return files;
}
Files with_tokenizer(const std::string& from, const std::string& to) {
  return with("vocab.txt", std::nullopt, with("tokenizer.json", replaced(kTinyTokenizer, from, to)));
}

std::vector<Case> json_cases() {
  Limits short_header, little;
  short_header.header = 100;
  little.memory = 1024;
  return {
      {"json", {"hf/json"}, with_config("\"bert\",", "\"bert\"")},
      {"json-cut", {"hf/json"}, with("config.json", "{\"a\":")},
      {"json-settings", {"hf/json"}, with("modules.json", "[{]")},
      {"json-nan", {"hf/json"}, with_config("0.10", "NaN")},
      {"json-root", {"hf/json-root"}, with("config.json", "[]")},
      {"json-root-modules", {"hf/json-root"}, with("modules.json", "{}")},
      {"duplicate-key", {"hf/duplicate-key"}, with_config("\"vocab_size\"", "\"model_type\":\"bert\",\"vocab_size\"")},
      {"duplicate-key-index",
       {"hf/duplicate-key"},
       with_index("\"weight_map\":{", "\"weight_map\":{\"embeddings.position_ids\":\"a.safetensors\",")},
      {"limit-depth",
       {"limit/depth"},
       with("tokenizer_config.json", std::nullopt,
            {{"config.json", "{\"a\":[[[[]]]]}"}, {"model.safetensors", tiny().at("model.safetensors")}}),
       Limits{.depth = 4}},
      {"limit-header",
       {"limit/header"},
       {{"config.json", std::string(200, ' ') + "{}"}, {"model.safetensors", safetensors({})}},
       short_header},
      {"limit-memory",
       {"limit/memory"},
       {{"config.json", "{\"a\":1,\"b\":1,\"c\":1,\"d\":1,\"e\":1}"}, {"model.safetensors", safetensors({})}},
       little}};
}

std::vector<Case> config_cases() {
  return {{"config-missing", {"hf/config-missing"}, with("config.json", std::nullopt)},
          {"config-key", {"hf/config-key"}, with_config("\"num_hidden_layers\": 1,", "")},
          {"config-value", {"hf/config-value"}, with_config("\"hidden_size\": 2", "\"hidden_size\": 0")},
          {"config-value-text", {"hf/config-value"}, with_config("\"hidden_size\": 2", "\"hidden_size\": \"2\"")},
          {"config-value-2-64",
           {"hf/config-value"},
           with_config("\"hidden_size\": 2", "\"hidden_size\": 18446744073709551616")},
          {"config-value-eps", {"hf/config-value"}, with_config("1e-12", "-1e-12")},
          {"setting-value", {"hf/setting-value"}, with("sentence_bert_config.json", R"({"max_seq_length":-1})")},
          {"setting-value-pooling",
           {"hf/setting-value"},
           with("1_Pooling/config.json", R"({"pooling_mode_mean_tokens":"yes"})")},
          {"setting-value-token", {"hf/setting-value"}, with("tokenizer_config.json", R"({"pad_token":7})")},
          {"embedding-shape",
           {"hf/embedding-shape"},
           with("model.safetensors", safetensors({{"embeddings.word_embeddings.weight", {2, 6}}}))},
          {"metadata-conflict",
           {"hf/metadata-conflict"},
           with("model.safetensors", safetensors(tiny_tensors(), R"({"num_layers":"7"})"))}};
}

std::vector<Case> vocabulary_cases() {
  const auto lines = [](const std::string& vocabulary) {
    return with("tokenizer.json", std::nullopt, with("vocab.txt", vocabulary));
  };
  return {
      {"tokenizer-kind", {"hf/tokenizer-kind"}, with_tokenizer("WordPiece", "BPE")},
      {"tokenizer-conflict", {"hf/tokenizer-conflict"}, with("tokenizer_config.json", R"({"do_lower_case":false})")},
      {"vocab-missing", {"hf/vocab-missing"}, with("vocab.txt", std::nullopt, with("tokenizer.json", std::nullopt))},
      {"vocab-utf8", {"hf/vocab-utf8"}, lines("[PAD]\n\xff\n")},
      {"vocab-value", {"hf/vocab-value"}, with_tokenizer("\"word\":5", "\"word\":\"5\"")},
      {"vocab-value-none", {"hf/vocab-value"}, with_tokenizer("\"vocab\"", "\"other\"")},
      {"vocab-ids", {"hf/vocab-ids"}, with_tokenizer("\"word\":5", "\"word\":4")},
      {"vocab-ids-2-64", {"hf/vocab-value"}, with_tokenizer("\"word\":5", "\"word\":18446744073709551616")},
      {"vocab-ids-hole", {"hf/vocab-ids"}, with_tokenizer("\"word\":5", "\"word\":4294967295")},
      {"vocab-disagree", {"hf/vocab-disagree"}, with("vocab.txt", replaced(kTinyVocabulary, "word", "other"))},
      {"vocab-disagree-count", {"hf/vocab-disagree"}, with("vocab.txt", replaced(kTinyVocabulary, "word\n", ""))},
      {"vocab-duplicate",
       {"hf/vocab-duplicate", "hf/special-missing"},
       lines(replaced(kTinyVocabulary, "[MASK]", "word"))},
      {"vocab-size", {"hf/vocab-size"}, lines(kTinyVocabulary + "seventh\n")},
      {"vocab-padding", {"hf/vocab-padding"}, lines(replaced(kTinyVocabulary, "word\n", ""))},
      {"special-missing", {"hf/special-missing"}, lines(replaced(kTinyVocabulary, "[CLS]", "[cls]"))}};
}

std::vector<Case> llama_cases() {
  const std::string metaspace = R"({"type":"Metaspace","replacement":"\u2581","split":false})";
  Limits little;
  little.memory = 64 * 250;
  return {
      {"token-id", {"hf/token-id"}, tiny_llama({.added = R"({"id":5,"content":"other"})"})},
      {"token-id-own", {"hf/token-id"}, tiny_llama({.pieces = R"("a":258)", .merges = "[]"})},
      {"merges", {"hf/merges"}, tiny_llama({.merges = R"(["a b","a c"])"})},
      {"merges-sum", {"hf/merges"}, tiny_llama({.merges = R"(["b a"])"})},
      {"merges-three", {"hf/merges"}, tiny_llama({.merges = R"([["a","b","a"]])"})},
      {"merges-numbers", {"hf/merges"}, tiny_llama({.merges = "[1]"})},
      {"merges-object", {"hf/merges"}, tiny_llama({.merges = "{}"})},
      {"vocab-value-llama", {"hf/vocab-value"}, tiny_llama({.pieces = R"("a":-1)"})},
      {"limit-memory-llama", {"limit/memory", "hf/vocab-value"}, tiny_llama(), little},
      {"leading-space", {"hf/leading-space"}, tiny_llama({.normalizer = "null", .pre_tokenizer = metaspace})},
  };
}

std::vector<Case> weight_cases() {
  const Files no_weights = with("model.safetensors", std::nullopt);
  Limits few;
  few.tensors = 2;
  return {
      {"weights-missing", {"hf/weights-missing"}, no_weights},
      {"two-weights", {"hf/two-weights"}, with("model.safetensors", safetensors(tiny_tensors()), tiny_shards())},
      {"weights-format",
       {"hf/weights-format"},
       with("model.safetensors", "ZTEN1000" + std::string(64, '\0') + "ZTEN1000")},
      {"weights-zip", {"file/zip"}, with("model.safetensors", "PK\x03\x04 and more")},
      {"weights-truncated",
       {"safetensors/truncated"},
       with("model.safetensors", tiny().at("model.safetensors").substr(0, tiny().at("model.safetensors").size() - 1))},
      {"bool-byte",
       {"safetensors/bool-byte"},
       with("model.safetensors",
            safetensors({{"embeddings.word_embeddings.weight", {6, 2}}, {"mask", {1}, "BOOL", '\x02'}}))},
      {"index-value", {"hf/index-value"}, with_index("\"weight_map\"", "\"map\"")},
      {"index-value-list", {"hf/index-value"}, with_index("\"b.safetensors\"", "[\"b.safetensors\"]")},
      {"limit-tensors", {"limit/tensors"}, tiny_shards(), few},
      {"shard-path", {"hf/shard-path"}, with_index("\"b.safetensors\"", "\"../b.safetensors\"")},
      {"shard-path-absolute", {"hf/shard-path"}, with_index("\"b.safetensors\"", "\"/etc/passwd\"")},
      {"shard-path-nul", {"hf/shard-path"}, with_index("\"b.safetensors\"", "\"b\\u0000\"")},
      {"shard-path-dots", {"hf/shard-path"}, with_index("\"b.safetensors\"", "\"..\"")},
      {"shard-missing", {"hf/shard-missing"}, with_index("\"b.safetensors\"", "\"c.safetensors\"")},
      {"shard-broken", {"file/zip"}, with("b.safetensors", "PK\x03\x04 and more", tiny_shards())},
      {"tensor-missing",
       {"hf/tensor-missing"},
       with_index("\"encoder.layer.0.output.dense.bias\":\"b", "\"encoder.layer.0.output.dense.bias\":\"a")},
      {"tensor-unlisted", {"hf/tensor-unlisted"}, with_index(",\"embeddings.position_ids\":\"a.safetensors\"", "")},
      {"shard-stray",
       {"hf/shard-stray"},
       with("model-00001-of-00002.safetensors", safetensors(tiny_tensors()), tiny_shards())},
      {"tensor-in-another-shard",
       {"hf/tensor-missing", "hf/tensor-unlisted"},
       with_index("position_ids\":\"a", "position_ids\":\"b")},
      {"total-size", {"hf/total-size"}, with_index("120", "119")}};
}

// Folders of sentence-transformers whose first module is a table of word vectors.
std::vector<Case> word_table_cases() {
  const std::string modules = R"([{"path":"0_StaticEmbedding","type":"sentence_transformers.models.StaticEmbedding"}])";
  const std::string table = safetensors({{"embedding.weight", {6, 2}}});
  return {{"valid-word-table",
           {},
           {{"modules.json", replaced(modules, "0_StaticEmbedding", "")},
            {"model.safetensors", table},
            {"tokenizer.json", kTinyTokenizer}}},
          {"valid-word-table-folder",
           {},
           {{"modules.json", modules},
            {"0_StaticEmbedding/model.safetensors", table},
            {"0_StaticEmbedding/tokenizer.json", kTinyTokenizer}}},
          {"valid-component", {}, {{"config.json", "{}"}, {"diffusion_pytorch_model.safetensors", table}}},
          {"valid-variant", {}, {{"config.json", "{}"}, {"diffusion_pytorch_model.fp16.safetensors", table}}},
          {"weights-variants",
           {"hf/weights-variants"},
           {{"config.json", "{}"}, {"model.fp16.safetensors", table}, {"model.bf16.safetensors", table}}},
          {"valid-adapter", {}, {{"adapter_config.json", "{}"}, {"adapter_model.safetensors", table}}},
          {"config-missing-module",
           {"hf/config-missing"},
           {{"modules.json", replaced(modules, ".StaticEmbedding", ".Transformer")},
            {"model.safetensors", table},
            {"tokenizer.json", kTinyTokenizer}}},
          {"weights-missing-word-table",
           {"hf/weights-missing"},
           {{"modules.json", modules}, {"0_StaticEmbedding/tokenizer.json", kTinyTokenizer}}}};
}

std::vector<Case> trust_cases() {
  const std::string pickle("\x80\x02}q.", 5);
  return {
      {"remote-code", {"hf/remote-code"}, with_config("\"bert\",", R"("bert","auto_map":{"AutoModel":"m.Model"},)")},
      {"remote-code-tokenizer",
       {"hf/remote-code"},
       with("tokenizer_config.json", R"({"auto_map":{"AutoTokenizer":["t.Tokenizer",null]}})")},
      {"remote-code-module", {"hf/remote-code"}, with("modules.json", R"([{"type":"custom.Module"}])")},
      {"program", {"hf/program"}, with("modeling.py", "")},
      {"valid-chat-template", {}, with("tokenizer_config.json", R"({"chat_template":"{{ x }}"})")},
      {"template-escape",
       {"template/escape"},
       with("tokenizer_config.json", R"({"chat_template":[{"name":"a","template":"{{ x.\u005f_class__ }}"}]})")},
      {"template-escape-file", {"template/escape"}, with("chat_template.jinja", "{{ x['__class__'] }}")},
      {"template-syntax", {"template/syntax"}, with("chat_template.jinja", "{% if x")},
      {"pickle", {"hf/pickle"}, with("pytorch_model.bin", "\x80\x02}.", with("model.safetensors", std::nullopt))},
      {"pickle-beside", {"hf/pickle-beside"}, with("pytorch_model.bin", pickle)},
      {"pickle-beside-zip", {"hf/pickle-beside"}, with("training_args.bin", "PK\x03\x04")},
      {"pickle-beside-name", {"hf/pickle-beside"}, with("optimizer.pt", "")}};
}

}  // namespace

std::vector<Case> cases() {
  std::vector<Case> out;
  for (auto make :
       {json_cases, config_cases, vocabulary_cases, llama_cases, weight_cases, word_table_cases, trust_cases})
    for (Case& each : make()) out.push_back(std::move(each));
  return out;
}

}  // namespace weighbridge::huggingface::testing
