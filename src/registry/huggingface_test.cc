// SPDX-License-Identifier: Apache-2.0
// Reading Hugging Face folders: one folder for each rule, what valid folders become, and where their files may be.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>

#include "formats/huggingface/format.h"
#include "registry/load.h"
#include "support/rounds.h"
#include "support/thrown.h"
#include "support/tiny_folders.h"

namespace weighbridge::huggingface {
namespace {

namespace fs = std::filesystem;
using test::rules_of;
using testing::Files;
using testing::replaced;
using testing::safetensors;
using testing::tiny;
using testing::tiny_shards;
using testing::with;

struct Read {
  Report report;
  Model model;
};

Read read(const std::shared_ptr<const Place>& place, core::Findings::Mode mode = core::Findings::Mode::all,
          const Context& context = {}) {
  Read out;
  core::Findings findings(out.report, mode);
  try {
    registry::Loaded loaded = registry::load(place, context, {.format = "hf"}, findings);
    if (mode == core::Findings::Mode::all) registry::check_content(loaded, {}, context, findings);
    out.model = std::move(loaded.model);
  } catch (const core::Stop&) {}
  return out;
}
Read read(const std::string& path, core::Findings::Mode mode = core::Findings::Mode::all, const Context& context = {}) {
  return read(place_at(path), mode, context);
}

std::string text(const Model& model, std::string_view key) {
  const Value* const value = model.attribute(key);
  return value == nullptr ? "<none>" : std::string(value->as_text().value_or("<no text>"));
}

std::string from_corpus(const std::string& name) {
  std::ifstream in("corpus/pytorch/" + name, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
}

TEST(HuggingFacePickles, AreReadIfThereAreNoSafetensors) {
  const Files none = with("model.safetensors", std::nullopt);
  const Read whole = read(testing::in_memory(with("pytorch_model.bin", from_corpus("valid-one.pt"), none)));
  EXPECT_EQ(rules_of(whole.report), (std::vector<std::string>{"hf/pickle"}));
  ASSERT_EQ(whole.model.size(), 1U);
  EXPECT_EQ(whole.model.name(0), "w");
  EXPECT_TRUE(has_pickled_weights(whole.model));

  const Files shards =
      with("pytorch_model.bin.index.json", R"({"weight_map":{"w":"pytorch_model-00001-of-00001.bin"}})",
           with("pytorch_model-00001-of-00001.bin", from_corpus("valid-one.pt"), none));
  const Read sharded = read(testing::in_memory(shards));
  EXPECT_EQ(rules_of(sharded.report), (std::vector<std::string>{"hf/pickle"}));
  EXPECT_EQ(sharded.model.size(), 1U);

  const Read beside = read(testing::in_memory(with("pytorch_model.bin", from_corpus("valid-one.pt"))));
  EXPECT_EQ(rules_of(beside.report), (std::vector<std::string>{"hf/pickle-beside"}));
  EXPECT_FALSE(has_pickled_weights(beside.model));
}

TEST(HuggingFacePickles, AreJudgedByTheirGlobals) {
  const Files none = with("model.safetensors", std::nullopt);
  const Read hostile =
      read(testing::in_memory(with("pytorch_model.bin", from_corpus("dangerous-global-not-called.pt"), none)));
  EXPECT_EQ(rules_of(hostile.report), (std::vector<std::string>{"hf/pickle", "pytorch/dangerous-global"}));
  EXPECT_EQ(hostile.report.findings().back().file.name, "pytorch_model.bin");
  EXPECT_EQ(hostile.model.size(), 1U);
}

TEST(HuggingFaceRules, EachFolderBreaksWhatItSays) {
  for (const testing::Case& c : testing::cases()) {
    SCOPED_TRACE(c.name);
    const test::TemporaryFolder folder;
    testing::write_files(folder.path(), c.files);
    const Context context{.limits = c.limits, .executor = {}, .progress = {}};
    const Read all = read(folder.path(), core::Findings::Mode::all, context);
    EXPECT_EQ(rules_of(all.report), c.rules);
    // open() throws the first error that verify() reports.
    const Read first = read(folder.path(), core::Findings::Mode::first_error, context);
    const bool left_to_verify = c.rules == std::vector<std::string>{"template/escape"};
    ASSERT_EQ(first.report.first_error() == nullptr, all.report.valid() || left_to_verify);
    if (!left_to_verify && !all.report.valid()) {
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
  for (const testing::Case& c : testing::cases()) seen.insert(c.rules.begin(), c.rules.end());
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

// Changes, truncates or duplicates a few bytes of one file in a valid folder, many times. Each time the result is
// findings or a model, and open and verify agree.
TEST(HuggingFaceRead, MutationsAreFindingsOrModels) {
  std::uint64_t state = 20260131;
  const auto random = [&](std::size_t below) {
    state = state * 6364136223846793005U + 1442695040888963407U;
    return static_cast<std::size_t>(state >> 33) % below;
  };
  constexpr char kBytes[] = "\0\"{}[],:0-\\\xff/";
  int broken = 0;
  const int rounds = test::rounds(4'000);
  for (int round = 0; round < rounds; ++round) {
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
    const Report all = read(testing::in_memory(files)).report;
    const Report first = read(testing::in_memory(files), core::Findings::Mode::first_error).report;
    ASSERT_EQ(first.first_error() == nullptr, all.valid());
    if (all.valid()) continue;
    ++broken;
    ASSERT_EQ(*first.first_error(), *all.first_error());
  }
  EXPECT_GT(broken, rounds / 4);
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
    EXPECT_EQ(text(out.model, "do_lower_case"), "true");
  }
}

// As transformers' BertTokenizer has it; the package tokenizers, which reads only tokenizer.json, has it otherwise.
TEST(HuggingFaceRead, TheFlagsOfBertsNormalizerAreThoseOfTheTokenizersConfig) {
  const auto reading = [](const std::string& config, const std::string& normalizer) {
    const test::TemporaryFolder folder;
    testing::write_files(
        folder.path(),
        with("tokenizer_config.json", config,
             with("tokenizer.json", replaced(testing::kTinyTokenizer, R"("lowercase":true)", normalizer))));
    const Read out = read(folder.path());
    std::string found;
    for (const char* const key : {"do_lower_case", "strip_accents", "tokenize_chinese_chars"})
      found += (found.empty() ? "" : " ") + (out.model.attribute(key) ? text(out.model, key) : "-");
    for (const std::string& rule : rules_of(out.report)) found += " " + rule;
    return found;
  };
  const std::string all = R"("lowercase":true,"strip_accents":false,"handle_chinese_chars":false,"clean_text":true)";
  EXPECT_EQ(reading(R"({"do_lower_case":true,"strip_accents":false,"tokenize_chinese_chars":false})", all),
            "true false false");
  EXPECT_EQ(reading(R"({"do_lower_case":false,"strip_accents":null,"tokenize_chinese_chars":true})", all),
            "false - - hf/tokenizer-conflict hf/tokenizer-conflict hf/tokenizer-conflict");
  EXPECT_EQ(reading(R"({"tokenizer_class":"PreTrainedTokenizerFast","do_lower_case":false})", all), "true false false");
  // What the config leaves open is tokenizer.json's, although transformers takes its own.
  EXPECT_EQ(reading("{}", all), "true false false hf/tokenizer-conflict hf/tokenizer-conflict");
}

TEST(HuggingFaceRead, WhatElseAWordPieceTokenizerDoesIsARule) {
  const auto rules = [](const std::string& more) {
    const test::TemporaryFolder folder;
    testing::write_files(folder.path(),
                         with("tokenizer_config.json", R"({"tokenizer_class":"PreTrainedTokenizerFast"})",
                              with("tokenizer.json", R"({)" + more + testing::kTinyTokenizer.substr(1))));
    const Read out = read(folder.path());
    return out.model.attribute("tokenizer_rules") ? text(out.model, "tokenizer_rules") : "";
  };
  EXPECT_EQ(rules(R"("pre_tokenizer":{"type":"BertPreTokenizer"},)"), "");
  EXPECT_EQ(rules(R"("pre_tokenizer": null,)"), R"({"pre_tokenizer":null})");
  EXPECT_EQ(rules(R"("post_processor":{"type":"BertProcessing","cls":["[CLS]",2],"sep":["[SEP]",3]},)"), "");
  EXPECT_EQ(rules(R"("post_processor":null,)"), R"({"frame":[[],[]]})");
}

TEST(HuggingFaceRead, AStepThatIsNotSupportedIsNamed) {
  const test::TemporaryFolder folder;
  testing::write_files(
      folder.path(),
      with("tokenizer.json", replaced(testing::kTinyTokenizer, R"({"type":"BertNormalizer","lowercase":true})",
                                      R"({"type":"Precompiled","precompiled_charsmap":"AA=="})")));
  const std::string refused = text(read(folder.path()).model, "settings_refused");
  EXPECT_NE(refused.find(R"(["tokenizer.json","normalizer.type","\"Precompiled\"")"), std::string::npos) << refused;
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
  EXPECT_EQ(text(out.model, "hf.size"), "\"0.10\"");  // text that looks like a number keeps its quotes
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
