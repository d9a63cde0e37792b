// SPDX-License-Identifier: Apache-2.0
// A Hugging Face folder to Model: the one walker behind open and verify. It reads config.json, then the tokenizer and
// the settings beside it, then the weights, and puts them together.
#include <algorithm>
#include <string>
#include <utility>

#include "bundle/huggingface/config.h"
#include "bundle/huggingface/format.h"
#include "bundle/huggingface/naming.h"
#include "bundle/huggingface/rules.h"
#include "bundle/huggingface/settings.h"
#include "bundle/huggingface/vocabulary.h"
#include "bundle/huggingface/weights.h"
#include "core/words.h"

namespace weighbridge::huggingface {
namespace {

using core::shape_text;

class Loader {
 public:
  Loader(const Folder& folder, const Context& context, core::Findings& findings)
      : context_(context), reading_{.folder = folder, .limits = context.limits, .findings = findings} {}

  Model run() {
    draft_.set_format("hf");
    read_beside();
    const Weights weights = read_weights(reading_, context_);
    adopt(weights);
    set_attributes(weights);
    check_embeddings();
    for (auto& source : reading_.sources)
      if (std::ranges::find(draft_.sources(), source) == draft_.sources().end()) draft_.add_source(std::move(source));
    return draft_.finish();
  }

 private:
  // Everything but the weights.
  void read_beside() {
    const std::uint64_t before = reading_.findings.errors();
    if (const auto config = read_object(reading_, kConfig))
      config_ = read_config(reading_, *config);
    else if (reading_.findings.errors() == before)
      reading_.findings.report(rules::kConfigMissing, {});
    files_ = read_tokenizer(reading_, config_);
    draft_.set_tokenizer(std::move(files_.tokenizer));
    if (config_.bert) settings_ = read_settings(reading_);
  }

  void adopt(const Weights& weights) {
    const auto name_of = [&](const auto& place) { return weights.models[place.first].name(place.second); };
    Naming naming;
    for (const auto& place : weights.tensors) naming.see(name_of(place));
    strip_ = config_.bert && naming.all_prefixed() && !own(kPrefixKey);
    for (const auto& place : weights.tensors) {
      const Tensor tensor = weights.models[place.first][place.second];
      const std::string_view name = strip_ ? without_prefix(tensor.name()) : tensor.name();
      draft_.adopt(name, tensor);
    }
  }

  bool own(std::string_view key) const {
    return std::ranges::any_of(config_.others, [&](const Value::Entry& entry) { return entry.first == key; });
  }

  void set(std::string_view key, std::string text) {
    draft_.set_attribute(std::string(key), Value::text(std::move(text)));
  }

  // EMBD's keys in EMBD's order, the rest of config.json, then the weights' own metadata.
  void set_attributes(const Weights& weights) {
    std::vector<Value::Entry> metadata = metadata_of(weights);
    if (config_.bert) {
      set(kModelName, taken(metadata, kModelName).value_or(reading_.folder.name));
      set(kModelVersion, taken(metadata, kModelVersion).value_or(std::string(kFirstVersion)));
      for (auto& [key, value] : config_.named) draft_.set_attribute(std::move(key), std::move(value));
      if (settings_.max_seq_length) set(kMaxSeqLength, std::to_string(*settings_.max_seq_length));
      if (!settings_.pooling_mode.empty()) set(kPoolingMode, settings_.pooling_mode);
      if (settings_.normalize) set(kNormalize, *settings_.normalize ? "true" : "false");
      if (files_.lower_case) set(kLowerCase, *files_.lower_case ? "true" : "false");
    }
    for (auto& [key, value] : config_.others) draft_.set_attribute(std::move(key), std::move(value));
    if (!files_.unheld.empty()) set(kTokenizerUnheld, files_.unheld);
    if (strip_) set(kPrefixKey, std::string(kPrefix));
    add_metadata(std::move(metadata));
  }

  // A model's name and version have no file of their own: the metadata of the weights may say them.
  static std::optional<std::string> taken(std::vector<Value::Entry>& metadata, std::string_view key) {
    const auto found = std::ranges::find(metadata, key, &Value::Entry::first);
    if (found == metadata.end()) return std::nullopt;
    std::string text(found->second.as_text().value_or(""));
    metadata.erase(found);
    return text;
  }

  // Of all shards, in order; of equal keys with equal values one.
  std::vector<Value::Entry> metadata_of(const Weights& weights) {
    std::vector<std::pair<Value::Entry, std::size_t>> all;
    for (const Model& model : weights.models)
      for (const Value::Entry& entry : model.attributes()) all.emplace_back(entry, all.size());
    std::ranges::stable_sort(all, {}, [](const auto& each) -> std::string_view { return each.first.first; });
    std::vector<std::pair<Value::Entry, std::size_t>> kept;
    for (auto& each : all) {
      if (kept.empty() || kept.back().first.first != each.first.first)
        kept.push_back(std::move(each));
      else if (kept.back().first.second != each.first.second)
        conflict(each.first, kept.back().first.second);
    }
    std::ranges::sort(kept, {}, [](const auto& each) { return each.second; });
    std::vector<Value::Entry> out;
    for (auto& [entry, order] : kept) out.push_back(std::move(entry));
    return out;
  }

  void add_metadata(std::vector<Value::Entry> metadata) {
    const std::vector<Value::Entry> set_already = draft_.attributes();  // a few dozen
    for (Value::Entry& entry : metadata) {
      const auto known = std::ranges::find(set_already, entry.first, &Value::Entry::first);
      if (known == set_already.end())
        draft_.set_attribute(std::move(entry.first), std::move(entry.second));
      else if (known->second != entry.second)
        conflict(entry, known->second);
    }
  }

  void conflict(const Value::Entry& metadata, const Value& counts) {
    reading_.findings.report(rules::kMetadataConflict, {}, counts.to_text(), metadata.second.to_text(),
                             "\"" + metadata.first + "\"");
  }

  void check_embeddings() {
    if (!config_.vocab_size || !config_.hidden_size) return;
    const std::uint64_t expected[] = {*config_.vocab_size, *config_.hidden_size};
    for (std::uint32_t i = 0; i < draft_.size(); ++i) {
      if (draft_.name(i) != kWordEmbeddings) continue;
      const Shape shape = draft_.shape(i);
      if (!std::ranges::equal(shape, expected))
        reading_.findings.report(rules::kEmbeddingShape, {.tensor = kWordEmbeddings}, shape_text(expected),
                                 shape_text(shape));
    }
  }

  const Context& context_;
  Reading reading_;
  core::Draft draft_;
  Config config_;
  TokenizerFiles files_;
  Settings settings_;
  bool strip_ = false;
};

}  // namespace

Model load(const Folder& folder, const Context& context, core::Findings& findings) {
  return Loader(folder, context, findings).run();
}

}  // namespace weighbridge::huggingface
