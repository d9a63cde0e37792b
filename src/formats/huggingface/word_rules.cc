// SPDX-License-Identifier: Apache-2.0
// Reads the rules, and resolves contradictions between files.
#include "formats/huggingface/word_rules.h"

#include <algorithm>
#include <map>
#include <set>
#include <unordered_map>
#include <utility>

#include "core/model/words.h"
#include "formats/huggingface/format.h"
#include "formats/huggingface/layout.h"

namespace weighbridge::huggingface {
namespace {

using tokenizers::TextStep, wire::JsonKind, wire::JsonReader;

constexpr std::uint32_t kUsualLimit = 100, kMaxLimit = 1000;
constexpr std::size_t kLongestAdded = 256;               // bytes
constexpr std::uint64_t kLongestLength = 1'000'000'000;  // "very large" in transformers is 10^30
constexpr std::string_view kUsualPrefix = "##", kUsualUnknown = "[UNK]";

std::string quoted_json(std::string_view text) {
  wire::JsonWriter out;
  out.string(text);
  return out.take();
}

// The text of a token: a string, or an object with its `content`.
std::optional<std::string> token_text(Reading& reading, const TextFile& file, std::string_view raw) {
  if (auto text = tokenizers::json_string(raw)) return text;
  const auto object = object_in(reading, file, raw);
  return object ? object->text("content") : std::nullopt;
}

class WordRulesReader {
 public:
  WordRulesReader(Reading& reading, const JsonObject& file, const JsonObject& model,
                  const std::vector<VocabularyEntry>& entries, std::size_t own,
                  std::optional<std::uint64_t> table_length, SettingJudge& judge)
      : reading_(reading),
        file_(file),
        model_(model),
        entries_(entries),
        own_(own),
        table_length_(table_length),
        judge_(judge) {}

  WordRules run() {
    for (const Member& member : file_.members)
      judge_.judge(kTokenizerJson, kTokenizerJson, member.key, "null", SettingJudge::Unknown::warned);
    read_model();
    read_steps();
    read_added();
    read_lengths();
    return std::move(out_);
  }

 private:
  void refuse(std::string_view key, std::string_view json, std::string why) {
    judge_.refuse(kTokenizerJson, key, json, std::move(why));
  }

  void read_model() {
    for (const Member& member : model_.members) {
      const std::string key = "model." + member.key;
      if (member.key == "unk_token" && member.kind == JsonKind::string) {
        out_.unknown = unquote(member.raw);
      } else if (member.key == "continuing_subword_prefix" && member.kind == JsonKind::string) {
        std::string prefix = unquote(member.raw);
        if (prefix.size() > kLongestAdded)
          refuse(key, member.raw, "this prefix is longer than supported");
        else if (prefix != kUsualPrefix)
          out_.rules.prefix = std::move(prefix);
      } else if (member.key == "max_input_chars_per_word" && member.kind == JsonKind::number) {
        const auto limit = wire::as_u64(member.raw);
        if (!limit || *limit > kMaxLimit)
          refuse(key, member.raw, "words can have at most " + std::to_string(kMaxLimit) + " characters");
        else if (*limit != kUsualLimit)
          out_.rules.word_limit = static_cast<std::uint32_t>(*limit);
      } else if (member.key != "type" && member.key != "vocab") {
        refuse(key, member.raw, "it is not a known setting of WordPiece");
      }
    }
    if (!out_.unknown) out_.unknown = std::string(kUsualUnknown);
  }

  void take(const std::vector<tokenizers::RefusedSetting>& refused) {
    for (const tokenizers::RefusedSetting& each : refused) refuse(each.key, each.value, each.why);
  }

  // An absent step means BERT's step; null means no step.
  void read_steps() {
    std::vector<tokenizers::RefusedSetting> refused;
    if (const Member* const normalizer = file_.find("normalizer")) {
      out_.has_normalizer = true;
      const auto steps = tokenizers::read_normalizer(normalizer->raw, refused);
      out_.plain = refused.empty() && steps.size() == 1 && steps[0].kind == TextStep::Kind::bert && steps[0].clean;
      if (!out_.plain) out_.rules.normalizer = compact(normalizer->raw);
      for (const TextStep& step : steps) {
        if (step.kind == TextStep::Kind::bert) {
          out_.lower_case = out_.lower_case.value_or(false) || step.lower;
          out_.strip_accents = step.accents;
          out_.space_chinese = step.space_chinese;
        } else if (step.kind == TextStep::Kind::lower_case) {
          out_.lower_case = true;
        }
      }
    }
    if (const Member* const pre = file_.find("pre_tokenizer")) {
      const std::size_t before = refused.size();
      const auto steps = tokenizers::read_pre_tokenizer(pre->raw, refused);
      if (refused.size() != before || steps.size() != 1 || steps[0].kind != tokenizers::SplitStep::Kind::bert)
        out_.rules.pre_tokenizer = compact(pre->raw);
    }
    if (const Member* const post = file_.find("post_processor"))
      if (!table_length_) out_.rules.frame = tokenizers::read_post_processor(post->raw, refused);
    take(refused);
  }

  // In the reference implementation, an added token has the id of its text in the model's vocabulary, else the next
  // free id. Programs differ in how they read a file that states another id.
  void read_added() {
    std::map<std::string, std::optional<std::uint64_t>, std::less<>> of_model;  // the model's id for each added text
    std::string scratch;
    for (std::size_t i = own_; i < entries_.size(); ++i)
      of_model.try_emplace(std::string(wire::json_text(entries_[i].text, scratch)));
    for (std::size_t i = 0; i < own_ && !of_model.empty(); ++i) {
      const auto found = of_model.find(wire::json_text(entries_[i].text, scratch));
      if (found != of_model.end()) found->second = std::min(found->second.value_or(UINT64_MAX), entries_[i].id);
    }
    std::uint64_t next = own_;
    std::unordered_map<std::string, std::pair<std::uint64_t, std::size_t>> known;  // by text: id, place in out_.added
    for (std::size_t i = own_; i < entries_.size(); ++i) {
      const VocabularyEntry& listed = entries_[i];
      AddedEntry entry{.id = listed.id,
                       .text = std::string(wire::json_text(listed.text, scratch)),
                       .special = listed.special,
                       .normalized = listed.normalized,
                       .single_word = listed.single_word,
                       .lstrip = listed.lstrip,
                       .rstrip = listed.rstrip};
      if (entry.text.empty()) continue;
      const std::optional<std::uint64_t> own = of_model.find(entry.text)->second;
      entry.of_vocabulary = own.has_value();
      const auto [place, first] = known.try_emplace(entry.text, own.value_or(next), out_.added.size());
      const std::uint64_t expected = place->second.first;
      if (entry.id != expected)
        refuse("added_tokens.id", quoted_json(entry.text),
               "its id is " + std::to_string(entry.id) + ", and would be " + std::to_string(expected) +
                   " in the order of the list");
      else if (entry.text.size() > kLongestAdded)
        refuse("added_tokens.content", quoted_json(entry.text), "it is longer than supported");
      if (first && !entry.of_vocabulary) ++next;
      if (entry.text.size() > kLongestAdded) continue;
      if (!first && place->second.second < out_.added.size())
        out_.added[place->second.second] = std::move(entry);  // the last one counts
      else
        out_.added.push_back(std::move(entry));
    }
    std::stable_partition(out_.added.begin(), out_.added.end(), [](const AddedEntry& each) { return each.special; });
  }

  void read_lengths() {
    for (const std::string_view key : {"truncation", "padding"}) {
      const Member* const member = file_.find(key);
      const auto object = member != nullptr ? object_in(reading_, file_.file, member->raw) : std::nullopt;
      if (!object) continue;
      if (object->text("direction").value_or("Right") != "Right")
        refuse(std::string(key) + ".direction", object->find("direction")->raw,
               key == "padding" ? "texts would get padding before their first token"
                                : "long texts would lose their beginning");
      const Member* const maximum = object->find("max_length");
      if (table_length_ && key == "truncation" && maximum != nullptr &&
          wire::as_u64(maximum->raw).value_or(0) < *table_length_)
        refuse("truncation.max_length", maximum->raw, "texts would be cut at this length");
    }
  }

  Reading& reading_;
  const JsonObject& file_;
  const JsonObject& model_;
  const std::vector<VocabularyEntry>& entries_;
  const std::size_t own_;
  const std::optional<std::uint64_t> table_length_;
  SettingJudge& judge_;
  WordRules out_;
};

class Settler {
 public:
  Settler(Reading& reading, WordRules& out, const std::optional<JsonObject>& config, const Tokenizer& tokenizer,
          bool bert, bool has_json, SettingJudge& judge)
      : reading_(reading),
        out_(out),
        config_(config),
        tokenizer_(tokenizer),
        bert_(bert),
        has_json_(has_json),
        judge_(judge) {}

  void run() {
    if (bert_ && config_) check_config();
    if (bert_ || !has_json_) {
      flag("do_lower_case", out_.lower_case, true);
      flag("strip_accents", out_.strip_accents, std::nullopt);
      flag("tokenize_chinese_chars", out_.space_chinese, true);
    }
    settle_frame();
    settle_added();
    if (bert_ && has_json_ && rebuilt()) name_rebuilt();
  }

 private:
  const Member* member(std::string_view key) const { return config_ ? config_->find(key) : nullptr; }
  void differ(std::string_view key, std::string counts, std::string other) {
    auto sink = config_ ? reading_.in(config_->file) : reading_.findings;
    judge_.warn(kTokenizerConfig, key, quoted_json(counts),
                "the two files of the tokenizer differ; this counts here, and other programs take " + other);
    sink.report(rules::kTokenizerConflict, {}, std::move(counts), std::move(other), core::in_quotes(key, core::kWhole));
  }

  // Whether transformers makes a BertTokenizer of the folder, which takes settings from tokenizer_config.json.
  bool rebuilt() const {
    const Member* const name = member("tokenizer_class");
    const std::string text = name != nullptr && name->kind == JsonKind::string ? unquote(name->raw) : "BertTokenizer";
    return text != "PreTrainedTokenizerFast" && text != "TokenizersBackend";
  }

  void check_config() {
    for (const Member& each : config_->members) {
      if (each.key == "additional_special_tokens" || each.key == "extra_special_tokens")
        check_specials(each);
      else if (each.key == "added_tokens_decoder")
        check_decoder(each);
      else
        judge_.judge(kTokenizerConfig, kTokenizerConfig, each.key, each.raw, SettingJudge::Unknown::warned);
    }
    for (const std::string_view key : {"bos_token", "eos_token"})
      if (const Member* const each = member(key); each != nullptr && each->kind != JsonKind::null)
        check_special(*each, each->raw);
  }

  // A token that texts are searched for although it is not in the list of added tokens.
  void check_special(const Member& of, std::string_view raw) {
    const auto text = token_text(reading_, config_->file, raw);
    if (text && text->empty()) return;
    const bool known =
        text && (std::ranges::any_of(out_.added, [&](const AddedEntry& each) { return each.text == *text; }) ||
                 std::ranges::any_of(tokenizer_.special, [&](const auto& role) {
                   return role.second < tokenizer_.tokens.size() && tokenizer_.tokens[role.second] == *text;
                 }));
    if (!known) judge_.refuse(kTokenizerConfig, of.key, raw, "it is not one of the added tokens that were read");
  }

  // A list of tokens, or an object of them by name.
  void check_specials(const Member& of) {
    JsonReader in(of.raw, reading_.limits.depth);
    if (of.kind == JsonKind::array && in.enter_array()) {
      for (std::string_view each; in.next_element() && in.skip_value(each);) check_special(of, each);
    } else if (of.kind == JsonKind::object && in.enter_object()) {
      std::string_view each;
      for (wire::JsonString key; in.next_key(key) && in.skip_value(each);) check_special(of, each);
    } else if (of.kind != JsonKind::null) {
      judge_.refuse(kTokenizerConfig, of.key, of.raw, "it is not a list of tokens");
    }
  }

  // {"7": {"content": "[ENT]", "lstrip": false, ...}}: the list of tokenizer.json once more. Without that file it would
  // be the only one.
  void check_decoder(const Member& of) {
    const auto all = of.kind == JsonKind::object ? object_in(reading_, config_->file, of.raw) : std::nullopt;
    if (!all) {
      if (of.kind != JsonKind::null) judge_.refuse(kTokenizerConfig, of.key, of.raw, "it is not an object of tokens");
      return;
    }
    for (const Member& each : all->members) {
      const auto token = object_in(reading_, config_->file, each.raw);
      const auto id = wire::as_u64(each.key);
      const auto same = std::ranges::find_if(out_.added, [&](const AddedEntry& entry) { return id == entry.id; });
      const bool flags =
          token && (token->boolean("normalized").value_or(false) || token->boolean("single_word").value_or(false) ||
                    token->boolean("lstrip").value_or(false) || token->boolean("rstrip").value_or(false));
      bool equal = false;
      if (token && same != out_.added.end()) {
        equal = token->text("content") == same->text &&
                token->boolean("normalized").value_or(same->normalized) == same->normalized &&
                token->boolean("single_word").value_or(false) == same->single_word &&
                token->boolean("lstrip").value_or(false) == same->lstrip &&
                token->boolean("rstrip").value_or(false) == same->rstrip;
      } else if (token && id && !flags) {  // one of the five special tokens
        equal = std::ranges::any_of(tokenizer_.special, [&](const auto& role) {
          return role.second == *id && *id < tokenizer_.tokens.size() &&
                 token->text("content") == std::string(tokenizer_.tokens[role.second]);
        });
      }
      if (!equal)
        return judge_.refuse(kTokenizerConfig, of.key, each.raw,
                             "token " + each.key + " is not so in the tokens that were read");
    }
  }

  // The value in tokenizer_config.json, or `otherwise`, which is the default of transformers.
  void flag(std::string_view key, std::optional<bool>& value, std::optional<bool> otherwise) {
    const Member* const said = member(key);
    std::optional<bool> stated;
    if (said != nullptr && said->kind == JsonKind::boolean) stated = said->raw == "true";
    if (said != nullptr && said->kind != JsonKind::boolean && said->kind != JsonKind::null)
      reading_.in(config_->file)
          .report(rules::kSettingValue, {.offset = config_->offset(*said)}, "true or false", {},
                  core::in_quotes(key, core::kWhole));
    const bool null_counts = said != nullptr && said->kind == JsonKind::null && key == "strip_accents";
    if (!has_json_ || !out_.has_normalizer) {
      if (stated) value = stated;
      return;
    }
    if (!out_.plain || !rebuilt()) return;
    const auto shown = [](std::optional<bool> flag) -> std::string {
      return !flag ? "null" : *flag ? "true" : "false";
    };
    const std::optional<bool> theirs = stated ? stated : otherwise;
    if (theirs == value || (key != "strip_accents" && !value)) return;
    if (stated || null_counts) {
      differ(key, shown(theirs), shown(value) + " in tokenizer.json");
      value = theirs;
    } else {
      differ(key, shown(value) + " in tokenizer.json",
             shown(theirs) + ", which transformers takes as nothing is stated here");
    }
  }

  std::optional<std::uint32_t> role(std::string_view name) const {
    for (const auto& [known, id] : tokenizer_.special)
      if (known == name) return id;
    return std::nullopt;
  }

  void settle_frame() {
    if (!out_.rules.frame) return;
    const auto cls = role("cls"), sep = role("sep");
    if (cls && sep && *out_.rules.frame == tokenizers::TextFrame{{*cls}, {*sep}}) out_.rules.frame.reset();
  }

  // Special tokens are found in texts too, as in transformers; tables of word vectors use only the list.
  void settle_added() {
    std::set<std::uint32_t> specials;
    for (const auto& [name, id] : tokenizer_.special) specials.insert(id);
    std::vector<tokenizers::AddedToken> tokens;
    std::set<std::uint32_t> seen;
    for (const AddedEntry& each : out_.added) {
      const auto id = static_cast<std::uint32_t>(each.id);
      if (id >= tokenizer_.tokens.size() || !seen.insert(id).second) continue;
      tokens.push_back({.id = id,
                        .single_word = each.single_word,
                        .lstrip = each.lstrip,
                        .rstrip = each.rstrip,
                        .normalized = each.normalized,
                        .of_vocabulary = each.of_vocabulary});
    }
    if (bert_ || !has_json_)
      for (const std::uint32_t id : specials)
        if (seen.insert(id).second) tokens.push_back({.id = id});
    const bool usual = seen == specials && std::ranges::all_of(tokens, [](const tokenizers::AddedToken& each) {
                         return each == tokenizers::AddedToken{.id = each.id};
                       });
    if (!usual) out_.rules.added = std::move(tokens);
  }

  // Version 5 of transformers makes a BertTokenizer of the vocabulary and its own settings, whatever the file says.
  void name_rebuilt() {
    const auto name = [&](std::string_view key, bool is) {
      if (!is) return;
      judge_.warn(kTokenizerJson, key, {},
                  "this build follows it, and transformers 5 takes a BERT's own, so that vectors may differ");
      auto sink = config_ ? reading_.in(config_->file) : reading_.findings;
      sink.report(rules::kTokenizerConflict, {}, "as tokenizer.json says", "a BertTokenizer's own in transformers 5",
                  core::in_quotes(key, core::kWhole));
    };
    const tokenizers::TokenizerRules& rules = out_.rules;
    name("normalizer", !rules.normalizer.empty());
    name("pre_tokenizer", !rules.pre_tokenizer.empty());
    name("model.continuing_subword_prefix", rules.prefix.has_value());
    name("model.max_input_chars_per_word", rules.word_limit.has_value());
    name("post_processor", rules.frame.has_value());
    const Member* const unknown = member("unk_token");
    const auto text = unknown != nullptr ? token_text(reading_, config_->file, unknown->raw) : std::nullopt;
    if (text && out_.unknown && *text != *out_.unknown)
      differ("unk_token", *out_.unknown + " in tokenizer.json", *text);
  }

  Reading& reading_;
  WordRules& out_;
  const std::optional<JsonObject>& config_;
  const Tokenizer& tokenizer_;
  const bool bert_, has_json_;
  SettingJudge& judge_;
};

}  // namespace

WordRules read_word_rules(Reading& reading, const JsonObject& file, const JsonObject& model,
                          const std::vector<VocabularyEntry>& entries, std::size_t own,
                          std::optional<std::uint64_t> table_length, SettingJudge& judge) {
  return WordRulesReader(reading, file, model, entries, own, table_length, judge).run();
}

void settle_word_rules(Reading& reading, WordRules& rules, const std::optional<JsonObject>& config,
                       const Tokenizer& tokenizer, bool bert, bool has_json, SettingJudge& judge) {
  Settler(reading, rules, config, tokenizer, bert, has_json, judge).run();
}

std::optional<std::uint64_t> length_setting(const JsonObject& config) {
  for (const std::string_view key : {"model_max_length", "max_len"}) {
    const Member* const member = config.find(key);
    if (member == nullptr || member->kind != JsonKind::number) continue;
    const auto length = wire::as_double(member->raw);
    if (!length || *length < 1 || *length > static_cast<double>(kLongestLength)) return std::nullopt;
    return static_cast<std::uint64_t>(*length);
  }
  return std::nullopt;
}

}  // namespace weighbridge::huggingface
