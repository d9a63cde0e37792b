// SPDX-License-Identifier: Apache-2.0
// A Hugging Face folder to Model: the one walker for open and verify. It reads config.json, then the tokenizer and
// the settings, then the weights, and combines them.
// layout.h has the names of the files; folder_files.h, settings.h and vocabulary.h say which keys of them are read.
#include <algorithm>
#include <array>
#include <filesystem>
#include <iterator>
#include <set>
#include <string>
#include <system_error>
#include <utility>

#include "core/model/words.h"
#include "core/reading/shards.h"
#include "formats/huggingface/config.h"
#include "formats/huggingface/folder_files.h"
#include "formats/huggingface/format.h"
#include "formats/huggingface/naming.h"
#include "formats/huggingface/settings.h"
#include "formats/huggingface/vocabulary.h"
#include "tokenizers/tokenizer_rules.h"

namespace weighbridge::huggingface {
namespace {

using core::shape_text;

constexpr core::JsonRules kJsonRules{
    .syntax = rules::kJson, .root = rules::kJsonRoot, .duplicate_key = rules::kDuplicateKey};
constexpr core::ShardRules kShardRules{.format = rules::kWeightsFormat,
                                       .link = rules::kShardLink,
                                       .missing = rules::kShardMissing,
                                       .metadata_conflict = rules::kMetadataConflict,
                                       .stray = &rules::kShardStray};
constexpr core::IndexRules kIndexRules{.value = rules::kIndexValue,
                                       .path = rules::kShardPath,
                                       .tensor_missing = rules::kTensorMissing,
                                       .tensor_unlisted = rules::kTensorUnlisted,
                                       .total_size = rules::kTotalSize};

// The model's name (reading E14): that of its folder, or what people call a place that is none.
std::string name_of(const Place& place) {
  if (place.path().empty()) return core::last_component(place.name());
  const std::filesystem::path whole = std::filesystem::path(place.path()).lexically_normal();
  return (whole.has_filename() ? whole : whole.parent_path()).filename().string();
}

// "fp16" of "model.fp16.safetensors": letters and digits, because dashes number shards.
std::optional<std::string_view> variant_in(std::string_view file, std::string_view before, std::string_view after) {
  if (file.size() <= before.size() + 1 + after.size() || !file.starts_with(before) || file[before.size()] != '.' ||
      !file.ends_with(after))
    return std::nullopt;
  file.remove_prefix(before.size() + 1);
  file.remove_suffix(after.size());
  constexpr std::string_view kLetters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_";
  return file.find_first_not_of(kLetters) == file.npos ? std::optional(file) : std::nullopt;
}

class Loader {
 public:
  Loader(const core::ReadJob& job, core::Draft& draft)
      : job_(job), reading_(job.place, job.context.limits, job.findings, kJsonRules), draft_(draft) {}

  void run() {
    draft_.set_format("hf");
    read_beside();
    const WeightFiles kind = kind_of_weights();
    core::ShardReader weights(reading_, job_, kShardRules, kind.format, draft_);
    read_weights(weights, kind);
    if (reading_.findings.mode() == core::Findings::Mode::all) weights.report_strays(kind.stem, kind.suffix);
    strip_prefix();
    set_attributes(weights.take_metadata());
    check_embeddings();
    std::vector<std::string> weight_files = weights.files();
    for (const std::string_view name : {kind.whole, kind.index})
      weight_files.push_back(config_.under + std::string(name));
    auto files = list_folder_files(job_.place, reading_.limits, weight_files, held_files());
    if (reading_.findings.mode() == core::Findings::Mode::all) report_trust(reading_, files, pickled_);
    draft_.set_folder_files(std::move(files));
    draft_.add_sources(std::move(reading_.sources));
  }

 private:
  // Reads everything except the weights.
  void read_beside() {
    const std::uint64_t before = reading_.findings.errors();
    const auto config = read_object(reading_, kConfig);
    if (config) config_ = read_config(reading_, *config);
    const bool missing = !config && reading_.findings.errors() == before;
    if (config_.bert || config_.word_table || missing)
      beside_ = read_settings(reading_, config && config->boolean("output_hidden_states") == true);
    if (missing) find_word_table();
    files_ = read_tokenizer(reading_, config_);
    complete_settings();
    has_tokenizer_ = files_.tokenizer.has_value();
    draft_.set_tokenizer(std::move(files_.tokenizer));
  }

  // A table of word vectors needs no config.json: modules.json says where it is.
  void find_word_table() {
    config_.word_table = beside_.word_table.has_value();
    if (!config_.word_table) {
      if (!job_.place.open(kAdapterConfig)) reading_.findings.report(rules::kConfigMissing, {});
      return;
    }
    const std::string under = beside_.word_table->empty() ? "" : *beside_.word_table + "/";
    if (job_.place.open(under + std::string(kWeights))) config_.under = under;
  }

  // Settings that come from the tokenizer's files.
  void complete_settings() { complete(beside_, files_, config_); }

  // The files beside the weights whose content is fully represented in the model.
  std::vector<std::string_view> held_files() const {
    std::vector<std::string_view> out;
    if (config_.bert)
      std::ranges::copy_if(kSettingsFiles, std::back_inserter(out),
                           [&](std::string_view name) { return name != kPromptsConfig || beside_.prompts_held; });
    if (config_.bert) out.insert(out.end(), beside_.held.begin(), beside_.held.end());
    if (has_tokenizer_ && !config_.llama) out.push_back(kVocabTxt);
    if (files_.config_held) out.push_back(kTokenizerConfig);
    return out;
  }

  WeightFiles kind_of_weights() {
    const auto there = [&](std::string_view name) {
      return job_.place.open(config_.under + std::string(name)) != nullptr;
    };
    const auto found = std::ranges::find_if(
        kWeightKinds, [&](const WeightFiles& kind) { return there(kind.whole) || there(kind.index); });
    const WeightFiles kind = found == std::end(kWeightKinds) ? only_variant() : *found;
    pickled_ = kind.format == kPickleFiles.format;
    return kind;
  }

  // The weights where all have a variant in their names, "model.fp16.safetensors" or
  // "model.safetensors.index.fp16.json".
  WeightFiles only_variant() {
    std::vector<std::string> files;
    if (job_.place.kind() == Place::Kind::folder && config_.under.empty()) files = job_.place.list();
    for (const WeightFiles& kind : kWeightKinds) {
      std::set<std::string, std::less<>> variants;
      for (const std::string_view file : files)
        for (const auto& [before, after] :
             {std::pair(kind.stem, kind.suffix), {kind.index.substr(0, kind.index.size() - 5), ".json"}})
          if (const auto variant = variant_in(file, before, after)) variants.insert(std::string(*variant));
      if (variants.empty()) continue;
      if (variants.size() > 1) reading_.findings.report(rules::kWeightsVariants, {});
      const std::string& name = *variants.begin();
      const std::string stem = std::string(kind.stem) + "." + name;
      variant_ = {stem + std::string(kind.suffix),
                  std::string(kind.index.substr(0, kind.index.size() - 4)) + name + ".json", stem};
      return {variant_[0], variant_[1], variant_[2], kind.suffix, kind.format};
    }
    return kSafetensorsFiles;
  }

  void read_weights(core::ShardReader& weights, const WeightFiles& kind) {
    core::Findings& findings = reading_.findings;
    const auto whole = job_.place.open(config_.under + std::string(kind.whole));
    const TextFile index = read_text(reading_, kind.index);
    if (whole && index.present) findings.report(rules::kTwoWeights, {});
    if (whole)
      weights.read_whole(whole);
    else if (index.text)
      weights.read_index(reading_, kIndexRules, index);
    else if (!index.present)
      report_no_weights();
  }

  // What is missing may be only the index of shards that are there.
  void report_no_weights() {
    std::vector<std::string> files;
    if (job_.place.kind() == Place::Kind::folder && config_.under.empty()) files = job_.place.list();
    for (const WeightFiles& kind : kWeightKinds)
      for (const std::string& file : files)
        if (const auto shard = core::parse_shard_name(file, kind.suffix); shard && shard->stem == kind.stem)
          return reading_.findings.report(
              rules::kWeightsMissing, {.hint = {Hint::What::file, std::string(kind.index), {}}}, {}, {},
              {core::in_quotes(file), " is a shard, and its index ", kind.index, " is not there"});
    reading_.findings.report(rules::kWeightsMissing, {});
  }

  void strip_prefix() {
    Naming naming;
    for (std::uint32_t i = 0; i < draft_.size(); ++i) naming.add_name(draft_.name(i));
    strip_ = config_.bert && naming.all_prefixed() && !own(kPrefixKey);
    if (!strip_) return;
    for (std::uint32_t i = 0; i < draft_.size(); ++i) draft_.tensor(i).name(without_prefix(draft_.name(i)));
  }

  bool own(std::string_view key) const {
    return std::ranges::any_of(config_.others, [&](const Value::Entry& entry) { return entry.first == key; });
  }

  void set(std::string_view key, std::string text) {
    draft_.set_attribute(std::string(key), Value::text(std::move(text)));
  }

  // Sets EMBD's keys in EMBD's order, the rest of config.json, then the weights' own metadata.
  void set_attributes(std::vector<Value::Entry> metadata) {
    const Settings& settings = beside_.settings;
    take_settings_found(metadata);
    if (config_.bert) {
      auto named = taken(metadata, kModelName);
      if (!named) draft_.set_named_after_place(kModelName);
      set(kModelName, named ? *std::move(named) : name_of(job_.place));
      set(kModelVersion, taken(metadata, kModelVersion).value_or(std::string(kFirstVersion)));
      for (auto& [key, value] : config_.named) draft_.set_attribute(std::move(key), std::move(value));
      if (settings.max_seq_length) set(kMaxSeqLength, std::to_string(*settings.max_seq_length));
      if (!settings.pooling_mode.empty()) set(kPoolingMode, settings.pooling_mode);
      if (settings.normalize) set(kNormalize, *settings.normalize ? "true" : "false");
    }
    if (config_.word_table && settings.normalize && !own(kOwnNormalize))
      set(kOwnNormalize, *settings.normalize ? "true" : "false");
    if (config_.bert || config_.word_table) set_more(settings);
    if ((config_.bert || config_.word_table) && files_.lower_case)
      set(kLowerCase, *files_.lower_case ? "true" : "false");
    if (config_.bert || config_.word_table) {
      if (files_.strip_accents) set(tokenizers::kStripAccents, *files_.strip_accents ? "true" : "false");
      if (files_.space_chinese) set(tokenizers::kSpaceChinese, *files_.space_chinese ? "true" : "false");
    }
    for (auto& [key, value] : config_.others) draft_.set_attribute(std::move(key), std::move(value));
    if (!files_.rules.empty()) set(tokenizers::kTokenizerRules, files_.rules);
    if (!files_.unheld.empty()) set(tokenizers::kTokenizerUnheld, files_.unheld);
    if (strip_) set(kPrefixKey, std::string(kPrefix));
    add_metadata(std::move(metadata));
  }

  // Keeps the odd settings that the weights' metadata state about the folder that they came from.
  void take_settings_found(std::vector<Value::Entry>& metadata) {
    const auto refused = taken(metadata, core::kSettingsRefused), unknown = taken(metadata, core::kSettingsUnknown);
    beside_.judged.add(refused.value_or(""), unknown.value_or(""));
  }

  void set_more(const Settings& settings) {
    const auto set_text = [&](std::string_view key, const std::string& text) {
      if (!text.empty()) set(key, text);
    };
    if (!settings.include_prompt) set(core::kIncludePrompt, "false");
    set_text(core::kSentenceModules, settings.modules);
    set_text(core::kPrompts, settings.prompts);
    if (settings.default_prompt) set(core::kDefaultPrompt, *settings.default_prompt);
    if (settings.truncate_dim) set(core::kTruncateDim, std::to_string(*settings.truncate_dim));
    set_text(core::kSettingsRefused, beside_.judged.refused());
    set_text(core::kSettingsUnknown, beside_.judged.unknown());
  }

  // No file of the folder holds the model's name and version, but the metadata of the weights may.
  static std::optional<std::string> taken(std::vector<Value::Entry>& metadata, std::string_view key) {
    const auto found = std::ranges::find(metadata, key, &Value::Entry::first);
    if (found == metadata.end()) return std::nullopt;
    std::string text(found->second.as_text().value_or(""));
    metadata.erase(found);
    return text;
  }

  void add_metadata(std::vector<Value::Entry> metadata) {
    for (Value::Entry& entry : metadata) {
      const Value* const known = draft_.attribute(entry.first);
      if (known == nullptr)
        draft_.set_attribute(std::move(entry.first), std::move(entry.second));
      else if (*known != entry.second)
        conflict(entry, *known);
    }
  }

  void conflict(const Value::Entry& metadata, const Value& counts) {
    reading_.findings.report(rules::kMetadataConflict, {}, counts.to_text(), metadata.second.to_text(),
                             {"\"", metadata.first, "\""});
  }

  void check_embeddings() {
    if (!config_.vocab_size || !config_.hidden_size || draft_.is_incomplete()) return;
    const std::uint64_t expected[] = {*config_.vocab_size, *config_.hidden_size};
    for (std::uint32_t i = 0; i < draft_.size(); ++i) {
      if (draft_.name(i) != kWordEmbeddings) continue;
      const Shape shape = draft_.shape(i);
      if (!std::ranges::equal(shape, expected))
        reading_.findings.report(rules::kEmbeddingShape, {.tensor = kWordEmbeddings}, core::of_shape(expected),
                                 core::of_shape(shape));
    }
  }

  const core::ReadJob& job_;
  Reading reading_;
  core::Draft& draft_;
  Config config_;
  TokenizerFiles files_;
  SettingsFiles beside_;
  std::array<std::string, 3> variant_;  // the names that only_variant() made
  bool strip_ = false, has_tokenizer_ = false, pickled_ = false;
};

}  // namespace

void read(const core::ReadJob& job, core::Draft& draft) { Loader(job, draft).run(); }

std::optional<MergesOfFolder> merges_of(const Place& files, const Model& model, std::uint64_t rows) {
  const auto ids = [&](std::string_view key) {
    const Value* const value = model.attribute(std::string(kOwn) + std::string(key));
    return value == nullptr ? std::vector<std::uint64_t>() : ids_of(value->to_text());
  };
  const auto first = [&](std::string_view key) {
    const std::vector<std::uint64_t> all = ids(key);
    return all.empty() ? std::nullopt : std::optional(all[0]);
  };
  Config declared;
  declared.llama = true;
  declared.vocab_size = rows;
  declared.bos = first("bos_token_id");
  declared.eos = first("eos_token_id");
  declared.pad = first("pad_token_id");
  declared.ends = ids("eos_token_id");
  Report report;
  core::Findings findings(report, core::Findings::Mode::all);
  const Limits limits;
  Reading reading(files, limits, findings, kJsonRules);
  TokenizerFiles made = read_tokenizer(reading, declared);
  if (!made.tokenizer) return std::nullopt;
  return MergesOfFolder{*std::move(made.tokenizer), std::move(made.rules), std::move(made.unheld)};
}

}  // namespace weighbridge::huggingface
