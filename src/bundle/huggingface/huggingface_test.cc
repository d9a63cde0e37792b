// SPDX-License-Identifier: Apache-2.0
// Reading: a folder for each rule, what a sound one becomes, and where its files may lie.
#include <gtest/gtest.h>

#include <filesystem>
#include <set>

#include "bundle/huggingface/format.h"
#include "bundle/huggingface/rules.h"
#include "core/common_rules.h"
#include "support/thrown.h"
#include "support/tiny_folders.h"

namespace weighbridge::huggingface {
namespace {

namespace fs = std::filesystem;
using testing::Files;
using testing::replaced;
using testing::safetensors;
using testing::tiny;
using testing::tiny_shards;

struct Read {
  Report report;
  Model model;
};

Read read(const std::string& path, core::Findings::Mode mode = core::Findings::Mode::all, const Context& context = {}) {
  Read out;
  core::Findings findings(out.report, mode);
  try {
    out.model = load(open_folder(path, Access::positional), context, findings);
    if (mode == core::Findings::Mode::all) format().check_content(out.model, context, findings);
  } catch (const core::Stop&) {}
  return out;
}

std::vector<std::string> rules_of(const Report& report) {
  std::vector<std::string> out;
  for (const Finding& finding : report.findings()) out.push_back(finding.rule);
  return out;
}

std::string text(const Model& model, std::string_view key) {
  const Value* const value = model.attribute(key);
  return value == nullptr ? "<none>" : std::string(value->as_text().value_or("<no text>"));
}

struct Case {
  std::string name;
  std::vector<std::string> rules;  // all that verify finds, in order
  Files files;
  Limits limits{};
};

// The sound folder with one file changed, or gone where `bytes` is none.
Files with(const std::string& name, std::optional<std::string> bytes, Files files = tiny()) {
  if (bytes)
    files[name] = *std::move(bytes);
  else
    files.erase(name);
  return files;
}
Files with_config(const std::string& from, const std::string& to) {
  return with("config.json", replaced(testing::kTinyConfig, from, to));
}
Files with_index(const std::string& from, const std::string& to) {
  Files files = tiny_shards();
  std::string& index = files["model.safetensors.index.json"];
  index = replaced(index, from, to);
  return files;
}
Files with_tokenizer(const std::string& from, const std::string& to) {
  return with("vocab.txt", std::nullopt, with("tokenizer.json", replaced(testing::kTinyTokenizer, from, to)));
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
           with("model.safetensors", safetensors(testing::tiny_tensors(), R"({"num_layers":"7"})"))}};
}

std::vector<Case> vocabulary_cases() {
  const auto lines = [](const std::string& vocabulary) {
    return with("tokenizer.json", std::nullopt, with("vocab.txt", vocabulary));
  };
  return {
      {"tokenizer-kind", {"hf/tokenizer-kind"}, with_tokenizer("WordPiece", "BPE")},
      {"vocab-missing", {"hf/vocab-missing"}, with("vocab.txt", std::nullopt, with("tokenizer.json", std::nullopt))},
      {"vocab-utf8", {"hf/vocab-utf8"}, lines("[PAD]\n\xff\n")},
      {"vocab-value", {"hf/vocab-value"}, with_tokenizer("\"word\":5", "\"word\":\"5\"")},
      {"vocab-value-none", {"hf/vocab-value"}, with_tokenizer("\"vocab\"", "\"other\"")},
      {"vocab-ids", {"hf/vocab-ids"}, with_tokenizer("\"word\":5", "\"word\":4")},
      {"vocab-ids-2-64", {"hf/vocab-value"}, with_tokenizer("\"word\":5", "\"word\":18446744073709551616")},
      {"vocab-ids-hole", {"hf/vocab-ids"}, with_tokenizer("\"word\":5", "\"word\":4294967295")},
      {"vocab-disagree", {"hf/vocab-disagree"}, with("vocab.txt", replaced(testing::kTinyVocabulary, "word", "other"))},
      {"vocab-disagree-count",
       {"hf/vocab-disagree"},
       with("vocab.txt", replaced(testing::kTinyVocabulary, "word\n", ""))},
      {"vocab-duplicate",
       {"hf/vocab-duplicate", "hf/special-missing"},
       lines(replaced(testing::kTinyVocabulary, "[MASK]", "word"))},
      {"vocab-size", {"hf/vocab-size"}, lines(testing::kTinyVocabulary + "seventh\n")},
      {"vocab-padding", {"hf/vocab-padding"}, lines(replaced(testing::kTinyVocabulary, "word\n", ""))},
      {"special-missing", {"hf/special-missing"}, lines(replaced(testing::kTinyVocabulary, "[CLS]", "[cls]"))}};
}

std::vector<Case> llama_cases() {
  const std::string metaspace = R"({"type":"Metaspace","replacement":"\u2581","split":false})";
  Limits little;
  little.memory = 64 * 250;
  return {
      {"token-id", {"hf/token-id"}, testing::tiny_llama({.added = R"({"id":5,"content":"other"})"})},
      {"token-id-own", {"hf/token-id"}, testing::tiny_llama({.pieces = R"("a":258)", .merges = "[]"})},
      {"merges", {"hf/merges"}, testing::tiny_llama({.merges = R"(["a b","a c"])"})},
      {"merges-sum", {"hf/merges"}, testing::tiny_llama({.merges = R"(["b a"])"})},
      {"merges-three", {"hf/merges"}, testing::tiny_llama({.merges = R"([["a","b","a"]])"})},
      {"merges-numbers", {"hf/merges"}, testing::tiny_llama({.merges = "[1]"})},
      {"merges-object", {"hf/merges"}, testing::tiny_llama({.merges = "{}"})},
      {"vocab-value-llama", {"hf/vocab-value"}, testing::tiny_llama({.pieces = R"("a":-1)"})},
      {"limit-memory-llama", {"limit/memory", "hf/vocab-value"}, testing::tiny_llama(), little},
      {"leading-space", {"hf/leading-space"}, testing::tiny_llama({.normalizer = "null", .pre_tokenizer = metaspace})},
  };
}

std::vector<Case> weight_cases() {
  const Files no_weights = with("model.safetensors", std::nullopt);
  Limits few;
  few.tensors = 2;
  return {
      {"weights-missing", {"hf/weights-missing"}, no_weights},
      {"pickle", {"hf/pickle"}, with("pytorch_model.bin", "\x80\x02.", no_weights)},
      {"pickle-shards", {"hf/pickle"}, with("pytorch_model.bin.index.json", "{}", no_weights)},
      {"two-weights",
       {"hf/two-weights"},
       with("model.safetensors", safetensors(testing::tiny_tensors()), tiny_shards())},
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
      {"tensor-in-another-shard",
       {"hf/tensor-missing", "hf/tensor-unlisted"},
       with_index("position_ids\":\"a", "position_ids\":\"b")},
      {"total-size", {"hf/total-size"}, with_index("120", "119")}};
}

std::vector<Case> cases() {
  std::vector<Case> out;
  for (auto make : {json_cases, config_cases, vocabulary_cases, llama_cases, weight_cases})
    for (Case& each : make()) out.push_back(std::move(each));
  return out;
}

TEST(HuggingFaceRules, EachFolderBreaksWhatItSays) {
  for (const Case& c : cases()) {
    SCOPED_TRACE(c.name);
    const test::TemporaryFolder folder;
    testing::write_files(folder.path(), c.files);
    const Context context{.limits = c.limits, .executor = {}, .progress = {}};
    const Read all = read(folder.path(), core::Findings::Mode::all, context);
    EXPECT_EQ(rules_of(all.report), c.rules);
    // What stops opening is the first error that verify() reports.
    const Read first = read(folder.path(), core::Findings::Mode::first_error, context);
    ASSERT_EQ(first.report.first_error() == nullptr, all.report.valid());
    if (!all.report.valid()) {
      EXPECT_EQ(*first.report.first_error(), *all.report.first_error());
    }
    for (const Finding& finding : all.report.findings()) {
      EXPECT_FALSE(finding.message.ends_with('.')) << finding.message;
      if (!finding.offset) continue;
      ASSERT_FALSE(finding.file.empty()) << finding.message;
      EXPECT_LE(*finding.offset, fs::file_size(finding.file.name)) << finding.message;
    }
  }
}

TEST(HuggingFaceRules, EachRuleHasAFolder) {
  std::set<std::string> seen{"hf/shard-link"};  // AShardThatIsALinkStaysInsideOrInTheCache
  for (const Case& c : cases()) seen.insert(c.rules.begin(), c.rules.end());
  for (const Rule& rule : rules::kAll) EXPECT_TRUE(seen.contains(std::string(rule.id))) << rule.id;
}

TEST(HuggingFaceRules, AreWellFormed) {
  std::set<std::string_view> ids;
  for (const Rule& rule : rules::kAll) {
    EXPECT_TRUE(ids.insert(rule.id).second) << rule.id;
    EXPECT_TRUE(rule.id.starts_with("hf/")) << rule.id;
    EXPECT_EQ(rule.severity == Severity::warning, rule.reach == Rule::Reach::note) << rule.id;
    EXPECT_FALSE(rule.sentence.ends_with('.')) << rule.id;
  }
}

// A sound folder with a few bytes of one file changed, gone or doubled, many times over: findings or a model, never
// anything else, and open and verify of one mind.
TEST(HuggingFaceRead, MutationsAreFindingsOrModels) {
  std::uint64_t state = 20260131;
  const auto random = [&](std::size_t below) {
    state = state * 6364136223846793005U + 1442695040888963407U;
    return static_cast<std::size_t>(state >> 33) % below;
  };
  constexpr char kBytes[] = "\0\"{}[],:0-\\\xff/";
  std::size_t broken = 0;
  for (int round = 0; round < 4000; ++round) {
    Files files = round % 3 == 0 ? tiny() : round % 3 == 1 ? tiny_shards() : testing::tiny_llama();
    auto chosen = std::next(files.begin(), static_cast<std::ptrdiff_t>(random(files.size())));
    std::string& bytes = chosen->second;
    const std::size_t at = random(bytes.size()), count = std::min(bytes.size() - at, 1 + random(8));
    switch (random(4)) {
      case 0: bytes[at] = kBytes[random(sizeof kBytes - 1)]; break;
      case 1: bytes.erase(at, count); break;
      case 2: bytes.insert(at, bytes.substr(at, count)); break;
      default: bytes.resize(at);
    }
    SCOPED_TRACE(chosen->first + ", round " + std::to_string(round));
    Report all, first;
    core::Findings every(all, core::Findings::Mode::all), one(first, core::Findings::Mode::first_error);
    format().check_content(load(testing::in_memory(files), {}, every), {}, every);
    try {
      load(testing::in_memory(files), {}, one);
    } catch (const core::Stop&) {}
    ASSERT_EQ(first.first_error() == nullptr, all.valid());
    if (all.valid()) continue;
    ++broken;
    ASSERT_EQ(*first.first_error(), *all.first_error());
  }
  EXPECT_GT(broken, 1000U);
}

TEST(HuggingFaceRead, PutsTheFilesTogether) {
  const test::TemporaryFolder folder;
  fs::create_directory(folder / "tiny-model");
  testing::write_files(folder / "tiny-model", tiny());
  const Read out = read(folder / "tiny-model/");
  EXPECT_EQ(rules_of(out.report), std::vector<std::string>{});
  const Model& model = out.model;
  EXPECT_EQ(model.format(), "hf");
  ASSERT_EQ(model.size(), 3U);
  EXPECT_EQ(model.name(0), "embeddings.word_embeddings.weight");
  const std::pair<const char*, const char*> expected[] = {{"model_name", "tiny-model"},
                                                          {"model_version", "1.0.0"},
                                                          {"embedding_dim", "2"},
                                                          {"vocab_size", "6"},
                                                          {"num_layers", "1"},
                                                          {"num_attention_heads", "1"},
                                                          {"hidden_size", "2"},
                                                          {"intermediate_size", "4"},
                                                          {"max_position_emb", "8"},
                                                          {"layer_norm_eps", "1e-12"},
                                                          {"hidden_act", "gelu"},
                                                          {"max_seq_length", "256"},
                                                          {"pooling_mode", "mean"},
                                                          {"normalize", "true"},
                                                          {"do_lower_case", "true"},
                                                          {"hf.model_type", "bert"},
                                                          {"hf.architectures", "[\"BertModel\"]"},
                                                          {"hf.hidden_dropout_prob", "0.10"},
                                                          {"hf.transformers_version", "4.8.2"},
                                                          {"format", "pt"},
                                                          {"hf.vocab_size", "<none>"},
                                                          {"hf.prefix", "<none>"}};
  for (const auto& [key, value] : expected) EXPECT_EQ(text(model, key), value) << key;
  ASSERT_NE(model.tokenizer(), nullptr);
  EXPECT_EQ(model.tokenizer()->tokens.size(), 6U);
  EXPECT_EQ(model.tokenizer()->vocab_size, 6U);
  const std::vector<std::pair<std::string, std::uint32_t>> special = {
      {"pad", 0}, {"unk", 1}, {"cls", 2}, {"sep", 3}, {"mask", 4}};
  EXPECT_EQ(model.tokenizer()->special, special);
}

TEST(HuggingFaceRead, ShardsAreOneModelInTheOrderOfTheirNames) {
  const test::TemporaryFolder folder;
  testing::write_files(folder.path(), tiny_shards());
  const Read out = read(folder.path());
  EXPECT_EQ(rules_of(out.report), std::vector<std::string>{});
  ASSERT_EQ(out.model.size(), 3U);
  EXPECT_EQ(out.model.name(0), "embeddings.word_embeddings.weight");
  EXPECT_EQ(out.model.name(2), "encoder.layer.0.output.dense.bias");
  EXPECT_EQ(text(out.model, "format"), "pt");
  std::string bytes;
  out.model[2].main().stream({}, [&](std::span<const std::byte> piece) {
    bytes.append(reinterpret_cast<const char*>(piece.data()), piece.size());
    return true;
  });
  EXPECT_EQ(bytes, std::string(8, 'b'));
}

TEST(HuggingFaceRead, OneOfTheVocabularyFilesWillDo) {
  for (const char* gone : {"vocab.txt", "tokenizer.json"}) {
    const test::TemporaryFolder folder;
    testing::write_files(folder.path(), with(gone, std::nullopt));
    const Read out = read(folder.path());
    EXPECT_EQ(rules_of(out.report), std::vector<std::string>{}) << gone;
    ASSERT_NE(out.model.tokenizer(), nullptr);
    EXPECT_EQ(out.model.tokenizer()->tokens[5], "word");
    // The normalizer's word counts before tokenizer_config.json's.
    EXPECT_EQ(text(out.model, "do_lower_case"), std::string_view(gone) == "tokenizer.json" ? "false" : "true");
  }
}

TEST(HuggingFaceRead, LinesEndAsInPython) {
  const test::TemporaryFolder folder;
  testing::write_files(folder.path(), with("tokenizer.json", std::nullopt,
                                           with("vocab.txt", "[PAD]\r\n[UNK]\r[CLS]\n[SEP]\n[MASK]\nword")));
  const Read out = read(folder.path());
  EXPECT_EQ(rules_of(out.report), std::vector<std::string>{});
  EXPECT_EQ(out.model.tokenizer()->tokens[1], "[UNK]");
}

TEST(HuggingFaceRead, LowerCaseComesFromASequenceToo) {
  const test::TemporaryFolder folder;
  testing::write_files(
      folder.path(),
      with("tokenizer.json", replaced(testing::kTinyTokenizer, R"({"type":"BertNormalizer","lowercase":true})",
                                      R"({"type":"Sequence","normalizers":[{"type":"NFC"},{"type":"Lowercase"}]})")));
  EXPECT_EQ(text(read(folder.path()).model, "do_lower_case"), "true");
}

TEST(HuggingFaceRead, ThePrefixGoesWhereTheWholeEncoderHasIt) {
  const test::TemporaryFolder folder;
  auto tensors = testing::tiny_tensors("bert.");
  tensors.push_back({"cls.predictions.bias", {6}});
  testing::write_files(folder.path(), with("model.safetensors", safetensors(tensors)));
  const Read out = read(folder.path());
  EXPECT_EQ(rules_of(out.report), std::vector<std::string>{});
  EXPECT_TRUE(out.model.find("embeddings.word_embeddings.weight").has_value());
  EXPECT_TRUE(out.model.find("cls.predictions.bias").has_value());
  EXPECT_EQ(text(out.model, "hf.prefix"), "bert.");

  const test::TemporaryFolder mixed;
  tensors.push_back({"pooler.dense.bias", {2}});
  testing::write_files(mixed.path(), with("model.safetensors", safetensors(tensors)));
  EXPECT_TRUE(read(mixed.path()).model.find("bert.embeddings.word_embeddings.weight").has_value());
  EXPECT_EQ(text(read(mixed.path()).model, "hf.prefix"), "<none>");
}

TEST(HuggingFaceRead, AConfigThatIsNoBertStillOpens) {
  const test::TemporaryFolder folder;
  testing::write_files(folder.path(),
                       {{"config.json", R"({"model_type":"llama","rope":{"theta":1e4, "n":[1,2]},"size":"0.10"})"},
                        {"model.safetensors", safetensors({{"w", {2}}})}});
  const Read out = read(folder.path());
  EXPECT_EQ(rules_of(out.report), std::vector<std::string>{});
  EXPECT_EQ(text(out.model, "hf.model_type"), "llama");
  EXPECT_EQ(text(out.model, "hf.rope"), R"({"theta":1e4,"n":[1,2]})");
  EXPECT_EQ(text(out.model, "hf.size"), "\"0.10\"");  // text that would pass for a number keeps its quotes
  EXPECT_EQ(text(out.model, "model_name"), "<none>");
}

TEST(HuggingFaceRead, AShardThatIsALinkStaysInsideOrInTheCache) {
  const test::TemporaryFolder root;
  const std::string home = root / "models--x--y/snapshots/0123";
  testing::write_files(home, tiny_shards());
  const auto link = [&](const std::string& target) {
    fs::remove(home + "/b.safetensors");
    fs::create_symlink(target, home + "/b.safetensors");
  };
  const std::string shard = tiny_shards().at("b.safetensors");
  testing::write_files(
      root.path(),
      {{"outside", shard}, {"models--x--y/blobs/89ab", shard}, {"models--x--y/snapshots/0123/inside", shard}});
  link("inside");
  EXPECT_EQ(rules_of(read(home).report), std::vector<std::string>{});
  link("../../blobs/89ab");
  EXPECT_EQ(rules_of(read(home).report), std::vector<std::string>{});
  link(root / "outside");
  EXPECT_EQ(rules_of(read(home).report), std::vector<std::string>{"hf/shard-link"});
}

}  // namespace
}  // namespace weighbridge::huggingface
