// SPDX-License-Identifier: Apache-2.0
// Model to a Hugging Face folder. Each attribute goes to the file that can hold it, or to the metadata of the weights;
// safetensors lays out the weights.
#include <algorithm>
#include <iterator>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <utility>

#include "base/fail.h"
#include "base/utf8.h"
#include "core/model/values.h"
#include "core/model/view.h"
#include "core/model/words.h"
#include "core/reading/json_file.h"
#include "core/writing/layout.h"
#include "core/writing/plan_items.h"
#include "formats/huggingface/config.h"
#include "formats/huggingface/folder_files.h"
#include "formats/huggingface/format.h"
#include "formats/huggingface/naming.h"
#include "formats/huggingface/setting_judge.h"
#include "formats/huggingface/settings.h"
#include "formats/huggingface/vocabulary.h"
#include "tokenizers/tokenizer_rules.h"

namespace weighbridge::huggingface {
namespace {

using core::indexed, core::subject;

// The metadata that transformers requires of the weights.
constexpr std::string_view kFormatKey = "format", kFormatValue = "pt";
constexpr std::string_view kCreatedAt = "created_at";

class Planner : core::Planning {
 public:
  using Planning::Planning;

  core::WriteLayout run() {
    bert_ = describes_bert();
    for (const auto& [key, value] : model_.attributes())
      if (key.starts_with(kFileText))
        files_.emplace(key.substr(kFileText.size()), bytes_of(value));
      else
        place(key, value);
    adapter_ = files_.contains(kAdapterConfig);
    override_metadata();
    complete_config();
    take_over_files();
    leave_out_programs();
    keep_modules();
    if (!tokenizer_kept_) plan_tokenizer();
    lay_out_files(make_weights());
    return std::move(out_);
  }

 private:
  static std::string bytes_of(const Value& value) {
    if (value.kind() != Value::Kind::numbers) return value.to_text();
    return std::string(reinterpret_cast<const char*>(value.bytes().data()), value.bytes().size());
  }

  std::optional<std::string> text_of(std::string_view key) const {
    const Value* const value = model_.attribute(key);
    return value == nullptr ? std::nullopt : std::optional(value->to_text());
  }

  // Whether the model has everything that a BERT's config.json requires.
  bool describes_bert() const {
    for (const ConfigKey& key : kConfigKeys)
      if (key.required && !positive(text_of(key.attribute).value_or(""))) return false;
    return text_of(std::string(kOwn) + std::string(kModelType)).value_or("bert") == "bert";
  }

  // The attributes that are not there, or no positive numbers.
  std::string lacking() const {
    std::string out;
    for (const ConfigKey& key : kConfigKeys)
      if (key.required && !positive(text_of(key.attribute).value_or("")))
        out += (out.empty() ? "" : ", ") + std::string(key.attribute);
    return out;
  }

  // Whether an attribute cannot be text in JSON at all. The layout of safetensors reports it.
  static bool unspeakable(std::string_view key, const Value& value) {
    return !core::can_be_text(key, value, value.to_text());
  }

  void place(const std::string& key, const Value& value) {
    if (overridden(key)) return;
    const std::string text = value.to_text();
    const bool placed = !unspeakable(key, value) && (place_in_config(key, value, text) || place_in_settings(key, text));
    if (!placed)
      metadata_.emplace_back(key, value);
    else if (value.kind() != Value::Kind::text)
      plan_items_.lose(LossKind::attribute_type, indexed("attributes", key), core::type_text(value), "text");
  }

  bool place_in_config(const std::string& key, const Value& value, const std::string& text) {
    if (key == kPrefixKey && text == kPrefix) return prefix_ = true;
    if (key.starts_with(kOwn)) {
      const std::string own = key.substr(kOwn.size());
      if (bert_ && find_config_key(own) != nullptr) return false;  // the attribute without hf. takes this key
      config_[own] = value.kind() == Value::Kind::text ? attribute_json(text) : json_of(value);
      return true;
    }
    const ConfigKey* const known = bert_ ? find_attribute_key(key) : nullptr;
    if (known == nullptr) return bert_ && key == kEmbeddingDim && text == text_of("hidden_size");
    if (known->is == ConfigKey::Is::real && wire::as_double(text).value_or(0) <= 0) return false;
    wire::JsonWriter json(wire::JsonWriter::Style::compact);
    if (known->is == ConfigKey::Is::text)
      json.string(text);
    else
      json.raw(text);
    config_[std::string(known->config)] = json.take();
    return true;
  }

  static std::string json_of(const Value& value) {
    wire::JsonWriter out(wire::JsonWriter::Style::compact);
    core::write_value(out, value);
    return out.take();
  }

  bool place_in_settings(std::string_view key, const std::string& text) {
    const bool flag = text == "true" || text == "false";
    if (!bert_) return false;
    if (key == kMaxSeqLength && positive(text)) {
      settings_.max_seq_length = positive(text);
    } else if (key == kPoolingMode && is_pooling_mode(text)) {
      settings_.pooling_mode = text;
    } else if (key == kNormalize && flag) {
      settings_.normalize = text == "true";
    } else if (key == kLowerCase && flag) {
      lower_case_ = text == "true";
    } else if (key == tokenizers::kStripAccents && flag) {
      strip_accents_ = text == "true";
    } else if (key == tokenizers::kSpaceChinese && flag) {
      space_chinese_ = text == "true";
    } else if (key == core::kIncludePrompt && flag) {
      settings_.include_prompt = text == "true";
    } else if (key == core::kSentenceModules && core::parse_sentence_modules(text)) {
      settings_.modules = text;
    } else if (key == core::kPrompts && core::parse_prompts(text)) {
      settings_.prompts = text;
    } else if (key == core::kDefaultPrompt && has_prompt(text)) {
      settings_.default_prompt = text;
    } else if (key == core::kTruncateDim && positive(text)) {
      settings_.truncate_dim = positive(text);
    } else {
      return false;
    }
    return true;
  }

  bool has_prompt(std::string_view name) const {
    const auto prompts = core::parse_prompts(text_of(core::kPrompts).value_or(""));
    return prompts && std::ranges::any_of(*prompts, [&](const auto& prompt) { return prompt.first == name; });
  }

  const std::string* asked(std::string_view key) const {
    if (key == kModelName && !options_.metadata.model_name.empty()) return &options_.metadata.model_name;
    if (key == kModelVersion && !options_.metadata.model_version.empty()) return &options_.metadata.model_version;
    if (key == kCreatedAt && !options_.metadata.created_at.empty()) return &options_.metadata.created_at;
    return nullptr;
  }
  bool overridden(std::string_view key) const { return asked(key) != nullptr; }

  void override_metadata() {
    for (const std::string_view key : {kModelName, kModelVersion, kCreatedAt}) {
      if (!overridden(key)) continue;
      plan_items_.change(LossKind::attribute, indexed("attributes", key), text_of(key).value_or(core::kAbsent),
                         *asked(key));
      metadata_.emplace_back(key, Value::text(*asked(key)));
    }
    const auto has = [&](std::string_view key) {
      return std::ranges::any_of(metadata_, [&](const Value::Entry& entry) { return entry.first == key; });
    };
    if (bert_ && !has(kModelName))
      plan_items_.change(LossKind::attribute, indexed("attributes", kModelName), core::kAbsent,
                         "the name of the folder");
    if (bert_ && !has(kModelVersion))
      plan_items_.change(LossKind::attribute, indexed("attributes", kModelVersion), core::kAbsent,
                         std::string(kFirstVersion));
    if (!has(kFormatKey)) {
      plan_items_.change(LossKind::attribute, indexed("attributes", kFormatKey), core::kAbsent,
                         std::string(kFormatValue));
      metadata_.emplace_back(kFormatKey, Value::text(std::string(kFormatValue)));
    }
  }

  void complete(std::string_view key, std::string json) {
    if (!config_.emplace(key, json).second) return;
    plan_items_.change(LossKind::attribute, indexed("attributes", std::string(kOwn) + std::string(key)), core::kAbsent,
                       std::move(json));
  }

  void complete_config() {
    const auto json = [&](std::string_view key) {
      const auto found = config_.find(std::string(key));
      return found == config_.end() ? std::string() : found->second;
    };
    if (!bert_) {
      if (config_.empty() && model_.format() != "hf" && !adapter_)  // a folder that had none stays one
        plan_items_.block(LossKind::attribute, indexed("attributes", std::string(kOwn) + std::string(kModelType)),
                          core::kAbsent, "config.json would be empty: programs tell by model_type what the model is");
      if (is_bert(json(kModelType), json(kArchitectures)))
        out_.blockers.push_back({LossKind::attribute,
                                 indexed("attributes", std::string(kOwn) + std::string(kModelType)), "bert",
                                 "a config.json that lacks what a BERT's must have: " + lacking()});
      return;
    }
    complete(kModelType, "\"bert\"");
    complete(kArchitectures, "[\"BertModel\"]");
    const auto types = model_.find("embeddings.token_type_embeddings.weight");
    if (types && types->has_shape() && types->shape().size() == 2)
      complete("type_vocab_size", std::to_string(types->shape()[0]));
  }

  // The order of the model's own.
  Tokenizer ordered(Tokenizer tokenizer) const {
    return options_.canonical ? core::canonical(std::move(tokenizer)) : tokenizer;
  }

  // Copies a file of the source's folder if it agrees with the model.
  void take_over_files() {
    out_.lists_folder_files = true;
    const auto files = core::folder_files(model_);
    if (files.empty()) return;
    const auto any = [&](bool (*is)(std::string_view) noexcept) {
      return std::ranges::any_of(files, is, &core::FolderFile::name);
    };
    const std::optional<Beside> beside = read_beside(model_, config_json());
    if (beside) {
      const auto tokenizer = model_.tokenizer();
      const auto& found = beside->tokenizer;
      tokenizer_kept_ = any(is_tokenizer_file) && found.tokenizer.has_value() == (tokenizer != nullptr) &&
                        (!found.tokenizer || ordered(*found.tokenizer) == *tokenizer) &&
                        (!bert_ || (found.lower_case == lower_case_ && found.strip_accents == strip_accents_ &&
                                    found.space_chinese.value_or(true) == space_chinese_.value_or(true))) &&
                        found.rules == text_of(tokenizers::kTokenizerRules).value_or("") &&
                        found.unheld == text_of(tokenizers::kTokenizerUnheld).value_or("");
      if (tokenizer_kept_) expected_tokenizer_ = found.tokenizer;
    }
    const auto same = [&](std::string_view key, const std::string& found) {
      return found == text_of(key).value_or("");
    };
    settings_kept_ =
        any(is_settings_file) && (!bert_ || (beside && beside->files.settings == settings_ &&
                                             same(core::kSettingsRefused, beside->files.judged.refused()) &&
                                             same(core::kSettingsUnknown, beside->files.judged.unknown())));
    if (settings_kept_ && tokenizer_kept_)
      std::erase_if(metadata_, [](const Value::Entry& entry) {
        return entry.first == core::kSettingsRefused || entry.first == core::kSettingsUnknown;
      });
    if (tokenizer_kept_)
      std::erase_if(metadata_, [](const Value::Entry& entry) {
        return entry.first == tokenizers::kTokenizerRules || entry.first == tokenizers::kTokenizerUnheld;
      });
    taken_ = take_over(model_, tokenizer_kept_, settings_kept_);
    for (Item& loss : taken_.losses) out_.losses.push_back(std::move(loss));
  }

  // No program is copied, so config.json names none of the folder. That the model has one stays a reason not to run it.
  void leave_out_programs() {
    const auto elsewhere = [](std::string_view json) { return json.find(kOfRepository) != json.npos; };
    SettingJudge judged;
    for (const std::string_view key : kCodeKeys) {
      const auto at = config_.find(std::string(key));
      if (at == config_.end() || at->second == "null") continue;
      const std::string before = at->second;
      std::string rest = core::with_members(before, [&](std::string_view, std::string_view value) {
        return std::optional(std::string(elsewhere(value) ? value : std::string_view()));
      });
      if (!before.starts_with('{') && !elsewhere(before)) rest.clear();
      if (rest == before) continue;
      if (rest.find_first_not_of(" \t\r\n{}") == rest.npos) rest.clear();
      plan_items_.change(
          LossKind::attribute, indexed("attributes", std::string(kOwn) + std::string(key)), core::excerpt(before),
          rest.empty() ? "left out: no program is copied" : rest + ", without programs, which are not copied");
      judged.judge(kConfig, kConfig, key, before, SettingJudge::Unknown::warned);
      if (rest.empty())
        config_.erase(at);
      else
        at->second = std::move(rest);
    }
    if (!bert_ || judged.all_refused().empty()) return;
    judged.add(text_of(core::kSettingsRefused).value_or(""), "");
    std::erase_if(metadata_, [](const Value::Entry& entry) { return entry.first == core::kSettingsRefused; });
    metadata_.emplace_back(core::kSettingsRefused, Value::text(judged.refused()));
  }

  // Modules have files of their own, which are only copied.
  void keep_modules() {
    if (settings_kept_ || settings_.modules.empty()) return;
    plan_items_.lose(LossKind::unsupported, indexed("attributes", core::kSentenceModules), settings_.modules,
                     "only in the metadata of the weights, where sentence-transformers does not look");
    metadata_.emplace_back(core::kSentenceModules, Value::text(settings_.modules));
  }

  // Writes vocab.txt only if it reads back as this tokenizer.
  void plan_tokenizer() {
    const auto tokenizer = model_.tokenizer();
    if (tokenizer == nullptr) return;
    if (tokenizer->kind != Tokenizer::Kind::wordpiece) {
      plan_items_.lose(LossKind::tokenizer, "tokenizer", "a " + std::string(name(tokenizer->kind)) + " tokenizer",
                       "dropped: only WordPiece tokenizers are written to a folder");
      return;
    }
    std::string lines;
    for (std::size_t i = 0; i < tokenizer->tokens.size(); ++i) (lines += tokenizer->tokens[i]) += '\n';
    SpecialTexts special;
    for (std::size_t i = 0; i < special.size(); ++i) {
      const auto known =
          std::ranges::find(tokenizer->special, kSpecialTokens[i].role, &std::pair<std::string, std::uint32_t>::first);
      if (known != tokenizer->special.end() && known->second < tokenizer->tokens.size())
        special[i] = tokenizer->tokens[known->second];
    }
    Tokenizer again = wordpieces(tokens_of_lines(lines), special);
    again.vocab_size =
        static_cast<std::uint32_t>(bert_ ? *positive(*text_of("vocab_size")) : std::uint64_t{again.tokens.size()});
    if (!keeps(*tokenizer, again) || !base::is_utf8(lines)) {
      plan_items_.lose(LossKind::tokenizer, "tokenizer", "ids, tokens or special tokens that no vocab.txt gives",
                       "dropped");
      return;
    }
    if (again != *tokenizer)
      plan_items_.change(LossKind::tokenizer, "tokenizer", "its order", "special tokens in EMBD's order");
    if (const auto rules = tokenizers::parse_tokenizer_rules(text_of(tokenizers::kTokenizerRules).value_or("{}")))
      if (const std::string beyond = tokenizers::beyond_wordpieces(*rules); !beyond.empty())
        plan_items_.lose(LossKind::tokenizer, "tokenizer", "left out of vocab.txt and tokenizer_config.json: " + beyond,
                         "kept in the metadata of the weights, which only weighbridge reads");
    vocabulary_ = std::move(lines);
    special_ = std::move(special);
    expected_tokenizer_ = std::move(again);
  }

  static bool keeps(const Tokenizer& tokenizer, const Tokenizer& again) {
    bool in_order = tokenizer.ids.empty() || tokenizer.ids.size() == tokenizer.tokens.size();
    for (std::size_t i = 0; in_order && i < tokenizer.ids.size(); ++i) in_order = tokenizer.ids[i] == i;
    return in_order && tokenizer.merges.empty() && tokenizer.tokens == again.tokens &&
           tokenizer.vocab_size == again.vocab_size && again.tokens.size() <= again.vocab_size &&
           std::ranges::all_of(tokenizer.special, [&](const auto& each) {
             return std::ranges::find(again.special, each) != again.special.end();
           });
  }

  // The weights as a separate model, for safetensors to lay out.
  Model make_weights() {
    Naming naming;
    for (std::uint32_t i = 0; i < model_.size(); ++i) naming.add_name(model_.name(i));
    const bool add = prefix_ && bert_ && naming.all_plain();
    if (prefix_ && !add)
      plan_items_.lose(LossKind::attribute, indexed("attributes", kPrefixKey), std::string(kPrefix),
                       "dropped: the names are not those of one encoder");
    core::Draft draft;
    for (std::uint32_t i = 0; i < model_.size(); ++i) {
      const Tensor tensor = model_[i];
      std::string name(tensor.name());
      if (add && is_encoder(name)) name.insert(0, kPrefix);
      if (bert_ && naming.all_prefixed() && !config_.contains("prefix") && without_prefix(name) != name)
        plan_items_.change(LossKind::name, subject(tensor), name,
                           std::string(without_prefix(name)) + ", and hf.prefix says so");
      check_words(tensor);
      draft.adopt(name, tensor);
    }
    draft.set_attributes(std::move(metadata_));
    for (const auto& [key, value] : model_.extra()) draft.set_extra(key, value);
    return draft.finish();
  }

  void check_words(const Tensor& tensor) {
    if (!bert_ || without_prefix(tensor.name()) != kWordEmbeddings || !tensor.has_shape()) return;
    const std::uint64_t expected[] = {*positive(*text_of("vocab_size")), *positive(*text_of("hidden_size"))};
    if (!std::ranges::equal(tensor.shape(), expected))
      out_.blockers.push_back({LossKind::shape, subject(tensor), "its shape", "vocab_size x hidden_size"});
  }

  void add_file(std::string_view name, std::optional<std::string> bytes) {
    out_.folder->small.push_back({std::string(name), std::move(bytes)});
  }

  // Files of the format that are not written must not exist: the reader would treat them as the new model's.
  void lay_out_files(Model weights) {
    out_.folder = std::make_shared<core::OutFolder>();
    const bool component = config_.contains(std::string(kComponentClass));
    const WeightFiles& kind = adapter_ ? kAdapterFiles : component ? kComponentFiles : kSafetensorsFiles;
    out_.folder->inner = core::Inner{std::move(weights), kind.format, kind.stem};
    for (const WeightFiles& other : kWeightKinds) {  // a reader would prefer those before it
      if (other.whole == kind.whole) break;
      add_file(other.whole, std::nullopt);
      add_file(other.index, std::nullopt);
    }
    add_file(kConfig, adapter_ ? std::nullopt : std::optional(config_json()));
    for (auto& [name, bytes] : files_) add_file(name, std::move(bytes));
    if (!tokenizer_kept_ && !files_.contains(kTokenizerConfig)) {
      add_file(kVocabTxt, vocabulary_);
      add_file(kTokenizerConfig, tokenizer_config_json());
    }
    if (!settings_kept_) add_settings();
    std::move(taken_.copies.begin(), taken_.copies.end(), std::back_inserter(out_.folder->small));
    for (const std::span<const std::string_view> all :
         {std::span<const std::string_view>(kTokenizerFiles), std::span<const std::string_view>(kSettingsFiles)})
      for (const std::string_view name : all)
        if (std::ranges::find(out_.folder->small, name, &core::OutFolder::Small::name) == out_.folder->small.end())
          add_file(name, std::nullopt);
    out_.folder->check = checker();
  }

  void add_settings() {
    add_file(kSentenceConfig,
             settings_.max_seq_length ? std::optional(sentence_config_json(*settings_.max_seq_length)) : std::nullopt);
    const bool pooling = !settings_.pooling_mode.empty();
    add_file(kPooling, pooling ? std::optional(pooling_json(settings_.pooling_mode, *positive(*text_of("hidden_size")),
                                                            settings_.include_prompt))
                               : std::nullopt);
    const bool prompts = !settings_.prompts.empty() || settings_.truncate_dim;
    add_file(kPromptsConfig, prompts ? std::optional(prompts_json(settings_)) : std::nullopt);
    add_file(kModules, settings_.normalize ? std::optional(modules_json(pooling, *settings_.normalize)) : std::nullopt);
  }

  // As transformers writes it: keys sorted, indented by two spaces.
  std::string config_json() const {
    wire::JsonWriter out(wire::JsonWriter::Style::indented);
    out.begin_object();
    for (const auto& [key, json] : config_) {
      out.key(key);
      copy_json(out, json);
    }
    out.end_object();
    return out.take() + "\n";
  }

  std::optional<std::string> tokenizer_config_json() const {
    if (!vocabulary_ && !lower_case_ && !strip_accents_ && !space_chinese_) return std::nullopt;
    wire::JsonWriter out(wire::JsonWriter::Style::indented);
    out.begin_object();
    if (lower_case_) {
      out.key(kLowerCase).boolean(*lower_case_);
    }
    if (strip_accents_) out.flag(tokenizers::kStripAccents, *strip_accents_);
    if (space_chinese_) out.flag(tokenizers::kSpaceChinese, *space_chinese_);
    if (vocabulary_) {
      for (std::size_t i = 0; i < special_.size(); ++i) {
        out.key(kSpecialTokens[i].key);
        if (special_[i].empty())
          out.null();  // without the key, the reader would look for the usual token
        else
          out.string(special_[i]);
      }
      out.key("tokenizer_class").string("BertTokenizer");
    }
    out.end_object();
    return out.take() + "\n";
  }

  // Reopens the folder and checks each attribute that no plan item mentions, and the tokenizer.
  std::function<void(const Model&)> checker() const {
    std::vector<Value::Entry> expected;
    std::set<std::string_view> named;
    for (const auto* const items : {&out_.losses, &out_.changes})
      for (const Item& item : *items) named.insert(item.subject);
    // Odd settings are determined anew for the new folder.
    for (const auto& [key, value] : model_.attributes())
      if (!named.contains(indexed("attributes", key)) && key != core::kSettingsRefused &&
          key != core::kSettingsUnknown && !key.starts_with(kFileText) && !unspeakable(key, value))
        expected.emplace_back(key, value.kind() == Value::Kind::text ? value : Value::text(value.to_text()));
    return [expected = std::move(expected), tokenizer = expected_tokenizer_](const Model& model) {
      const auto differs = [](const std::string& what) {
        base::io_error("read-back", "what was written does not read back: " + what + "; nothing was published");
      };
      for (const auto& [key, value] : expected) {
        const Value* const found = model.attribute(key);
        if (found == nullptr || *found != value) differs("attribute \"" + key + "\"");
      }
      if (tokenizer && (model.tokenizer() == nullptr || *model.tokenizer() != *tokenizer)) differs("the vocabulary");
    };
  }

  bool bert_ = false, prefix_ = false;
  std::map<std::string, std::string> config_;  // key to JSON
  std::vector<Value::Entry> metadata_;         // of the weights
  Settings settings_;
  std::optional<bool> lower_case_, strip_accents_, space_chinese_;
  std::optional<std::string> vocabulary_;
  std::map<std::string, std::string, std::less<>> files_;  // that the model has whole, by name
  bool adapter_ = false;
  SpecialTexts special_;
  std::optional<Tokenizer> expected_tokenizer_;
  bool tokenizer_kept_ = false, settings_kept_ = false;  // the source's files agree with the model, and are copied
  TakenOver taken_;
};

}  // namespace

core::WriteLayout layout(const Model& model, const Options& options, const Context&) {
  return Planner(model, options).run();
}

}  // namespace weighbridge::huggingface
