// SPDX-License-Identifier: Apache-2.0
// Reads vocabularies into a Tokenizer.
#include "formats/huggingface/vocabulary.h"

#include <algorithm>
#include <utility>

#include "base/order.h"
#include "base/utf8.h"
#include "core/model/words.h"
#include "formats/huggingface/byte_pairs.h"
#include "formats/huggingface/format.h"
#include "formats/huggingface/word_rules.h"

namespace weighbridge::huggingface {
namespace {

using wire::JsonKind, wire::JsonReader;

// The parts of tokenizer.json that are used.
struct JsonVocabulary {
  Texts tokens;
  std::size_t own = 0;  // the first `own` tokens are the model's; the rest were added
};

std::string place(std::string_view file, std::uint64_t id) {
  return std::string(file) + ", token " + std::to_string(id);
}

class TokenizerReader {
 public:
  TokenizerReader(Reading& reading, const Config& declared)
      : reading_(reading),
        findings_(reading.findings),
        declared_(declared),
        vocab_size_(declared.vocab_size),
        bert_(declared.bert) {}

  TokenizerFiles run() {
    TokenizerFiles out;
    std::optional<JsonVocabulary> json;
    if (const auto file = read_object(reading_, declared_.under + std::string(kTokenizerJson))) {
      if (declared_.llama) return of_llama(*file);
      json = vocabulary_of(*file, out.judged);
    }
    const auto lines = other_kind_ ? std::nullopt : read_lines();
    const auto config = read_object(reading_, kTokenizerConfig);
    if (config) out.model_max_length = length_setting(*config);
    out.config_held = bert_ && config && std::ranges::all_of(config->members, is_held);
    if (json && lines) compare(*lines, *json);
    if (json || lines) {
      const SpecialTexts special = special_texts(config);
      out.tokenizer = finish(json ? std::move(json->tokens) : *lines, special);
      if (bert_) check_special_map(special, out.judged);
      settle_word_rules(reading_, words_, config, *out.tokenizer, bert_, json.has_value(), out.judged);
      out.lower_case = words_.lower_case;
      out.strip_accents = words_.strip_accents;
      if (words_.space_chinese == false) out.space_chinese = false;
      if (!json) check_added_file(*out.tokenizer, out.judged);
      out.rules = tokenizers::text_of(words_.rules);
    } else {
      if (bert_ && !other_kind_ && !reported_) findings_.report(rules::kVocabMissing, {});
      // Without a vocabulary too, as a folder made of a container without one.
      if (config) {
        out.lower_case = config->boolean("do_lower_case");
        out.strip_accents = config->boolean("strip_accents");
        out.space_chinese = config->boolean("tokenize_chinese_chars");
      }
    }
    return out;
  }

 private:
  // Whether a Tokenizer or an attribute holds this key of tokenizer_config.json, so that it is written again.
  static bool is_held(const Member& member) {
    const auto is_its_key = [&](const SpecialToken& token) { return member.key == token.key; };
    return member.key == "do_lower_case" || member.key == "strip_accents" || member.key == "tokenize_chinese_chars" ||
           (member.key == "tokenizer_class" && member.raw == "\"BertTokenizer\"") ||
           ((member.kind == JsonKind::string || member.kind == JsonKind::null) &&
            std::ranges::any_of(kSpecialTokens, is_its_key));
  }

  // {"[ENT]": 7}: tokens beside vocab.txt, as programs wrote them before there was a tokenizer.json.
  void check_added_file(const Tokenizer& tokenizer, SettingJudge& judge) {
    const auto file = read_object(reading_, kAddedTokens);
    for (std::size_t i = 0; file && i < file->members.size(); ++i) {
      const Member& each = file->members[i];
      const auto id = wire::as_u64(each.raw);
      if (id && *id < tokenizer.tokens.size() && tokenizer.tokens[static_cast<std::size_t>(*id)] == each.key) continue;
      judge.refuse(kAddedTokens, each.key, each.raw, "added tokens are read from tokenizer.json only");
    }
  }

  TokenizerFiles of_llama(const JsonObject& file) {
    TokenizerFiles out;
    const Member* const member = file.find("model");
    const auto model = member != nullptr ? object_in(reading_, file.file, member->raw) : std::nullopt;
    const std::string type = model ? model->text("type").value_or("none") : "none";
    if (type != "BPE") {
      reading_.in(file.file).report(rules::kTokenizerKind, {}, "BPE", type);
      return out;
    }
    Declared declared{.vocab_size = vocab_size_,
                      .bos = declared_.bos,
                      .eos = declared_.eos,
                      .pad = declared_.pad,
                      .ends = declared_.ends};
    if (const auto generation = read_object(reading_, kGenerationConfig))
      if (const Member* const ends = generation->find(kEnds))
        for (const std::uint64_t id : ids_of(ends->raw)) declared.ends.push_back(id);
    auto pairs = read_byte_pairs(reading_, file, *model, read_object(reading_, kTokenizerConfig), declared);
    if (!pairs) return out;
    out.tokenizer = std::move(pairs->tokenizer);
    out.rules = tokenizers::text_of(pairs->rules);
    out.unheld = std::move(pairs->unheld);
    return out;
  }

  std::optional<Texts> read_lines() {
    const TextFile file = read_text(reading_, kVocabTxt);
    reported_ = reported_ || file.present;
    if (!file.text) return std::nullopt;
    if (const std::size_t bad = base::find_invalid_utf8(*file.text); bad != std::string_view::npos) {
      reading_.in(file).report(rules::kVocabUtf8, {.offset = bad});
      return std::nullopt;
    }
    const auto ends =
        static_cast<std::uint64_t>(std::ranges::count_if(*file.text, [](char c) { return c == '\n' || c == '\r'; }));
    if (over_memory(reading_, ends + 1, file)) return std::nullopt;
    return tokens_of_lines(*file.text);
  }

  // The length to which a table of word vectors cuts texts (max_length of config.json); nullopt for another model.
  std::optional<std::uint64_t> table_length() const {
    constexpr std::uint64_t kUsual = 512;
    if (!declared_.word_table) return std::nullopt;
    const auto said = std::ranges::find(declared_.others, std::string(kOwn) + "max_length", &Value::Entry::first);
    if (said == declared_.others.end()) return kUsual;
    return said->second.as_u64().value_or(UINT64_MAX);
  }

  // The model's vocabulary and the added tokens; nullopt if it is of another kind or broken.
  std::optional<JsonVocabulary> vocabulary_of(const JsonObject& file, SettingJudge& judge) {
    reported_ = true;
    const Member* const member = file.find("model");
    const auto model = member != nullptr ? object_in(reading_, file.file, member->raw) : std::nullopt;
    const auto type = model ? model->text("type") : std::nullopt;
    if (type && *type != "WordPiece") {
      other_kind_ = true;
      reading_.in(file.file).report(rules::kTokenizerKind, {}, "WordPiece", *type);
      judge.refuse(kTokenizerJson, "model.type", model->find("type")->raw, "only WordPiece is supported");
      return std::nullopt;
    }
    const Member* const vocabulary = model ? model->find("vocab") : nullptr;
    std::vector<VocabularyEntry> entries;
    if (vocabulary == nullptr || !read_entries(reading_, file.file, vocabulary->raw, entries)) {
      const std::uint64_t at = vocabulary != nullptr ? file.offset(*vocabulary) : 0;
      reading_.in(file.file).report(rules::kVocabValue, {.offset = at});
      return std::nullopt;
    }
    const std::size_t own = entries.size();
    std::vector<std::string_view> unknown;
    add_added(reading_, file, entries, &unknown);
    for (const std::string_view key : unknown)
      judge.refuse(kTokenizerJson, "added_tokens." + std::string(key), "null",
                   "it is not a known setting of an added token");
    words_ = read_word_rules(reading_, file, *model, entries, own, table_length(), judge);
    return by_id(file, std::move(entries), own);
  }

  std::optional<JsonVocabulary> by_id(const JsonObject& file, std::vector<VocabularyEntry> entries, std::size_t own) {
    std::ranges::stable_sort(entries, {}, &VocabularyEntry::id);
    JsonVocabulary out;
    out.own = own;
    std::string scratch;
    for (const VocabularyEntry& entry : entries) {
      const std::string_view text = wire::json_text(entry.text, scratch);
      const std::size_t next = out.tokens.size();
      // An added token may also be in the model's vocabulary.
      if (next > 0 && entry.id == next - 1 && out.tokens[next - 1] == text) continue;
      if (entry.id != next) {
        const auto at = static_cast<std::uint64_t>(entry.text.raw.data() - file.file.text->data());
        reading_.in(file.file).report(rules::kVocabIds, {.offset = at}, next, entry.id);
        return std::nullopt;
      }
      out.tokens.push_back(text);
    }
    return out;
  }

  void compare(const Texts& lines, const JsonVocabulary& json) {
    const std::size_t both = std::min(lines.size(), json.tokens.size());
    for (std::size_t i = 0; i < both; ++i) {
      if (lines[i] == json.tokens[i]) continue;
      findings_.report(rules::kVocabDisagree, {}, {"\"", lines[i], "\""}, {"\"", json.tokens[i], "\""},
                       place(kTokenizerJson, i));
      return;
    }
    // vocab.txt may lack added tokens.
    if (lines.size() <= json.tokens.size() && lines.size() >= json.own) return;
    findings_.report(rules::kVocabDisagree, {}, {lines.size(), " tokens"}, json.tokens.size(), kTokenizerJson);
  }

  // The text of a token, which is a string or an object with flags; empty for null.
  std::optional<std::string> text_of(const JsonObject& file, const Member& member) {
    if (member.kind == JsonKind::null) return std::string();
    if (member.kind == JsonKind::string) return unquote(member.raw);
    const auto inner = member.kind == JsonKind::object ? object_in(reading_, file.file, member.raw) : std::nullopt;
    return inner ? inner->text("content") : std::nullopt;
  }

  // The special tokens by tokenizer_config.json: each is text, or an object with the text as `content`.
  SpecialTexts special_texts(const std::optional<JsonObject>& config) {
    SpecialTexts out;
    for (std::size_t i = 0; i < kSpecialTokens.size(); ++i) {
      out[i] = kSpecialTokens[i].usual;
      const Member* const member = config ? config->find(kSpecialTokens[i].key) : nullptr;
      if (member == nullptr) continue;
      const auto text = text_of(*config, *member);
      if (text)
        out[i] = *text;
      else
        reading_.in(config->file)
            .report(rules::kSettingValue, {.offset = config->offset(*member)}, "the text of a token", {},
                    core::in_quotes(member->key, core::kWhole));
    }
    if (words_.unknown) out[kUnknownToken] = *words_.unknown;
    return out;
  }

  // A file of earlier versions of transformers, which reads it after tokenizer_config.json.
  void check_special_map(const SpecialTexts& special, SettingJudge& judge) {
    const auto file = read_object(reading_, kSpecialMap);
    for (std::size_t i = 0; file && i < kSpecialTokens.size(); ++i) {
      const Member* const member = file->find(kSpecialTokens[i].key);
      if (member == nullptr || kSpecialTokens[i].role == "pad" || kSpecialTokens[i].role == "mask") continue;
      const auto text = text_of(*file, *member);
      if (text && *text != special[i])
        judge.refuse(kSpecialMap, member->key, member->raw,
                     "the other files of the tokenizer say \"" + special[i] + '"');
    }
  }

  Tokenizer finish(Texts tokens, const SpecialTexts& special) {
    report_duplicates(tokens);
    Tokenizer out = wordpieces(std::move(tokens), special);
    const std::uint64_t count = out.tokens.size();
    out.vocab_size = static_cast<std::uint32_t>(vocab_size_.value_or(count));
    if (vocab_size_ && count > *vocab_size_)
      findings_.report(rules::kVocabSize, {}, core::at_most(*vocab_size_), count);
    if (vocab_size_ && count < *vocab_size_) findings_.report(rules::kVocabPadding, {}, *vocab_size_, count);
    for (std::size_t i = 0; bert_ && i < special.size(); ++i) {
      const auto is_role = [&](const auto& known) { return known.first == kSpecialTokens[i].role; };
      if (!special[i].empty() && std::ranges::none_of(out.special, is_role))
        findings_.report(rules::kSpecialMissing, {}, {}, {}, {"\"", special[i], "\""});
    }
    return out;
  }

  void report_duplicates(const Texts& tokens) {
    const auto order = base::order_by(tokens.size(), [&](std::uint32_t i) { return tokens[i]; });
    for (std::size_t i = 1; i < order.size(); ++i)
      if (tokens[order[i]] == tokens[order[i - 1]])
        findings_.report(rules::kVocabDuplicate, {}, {}, {},
                         {"\"", tokens[order[i]], "\" is token ", order[i - 1], " and token ", order[i]});
  }

  Reading& reading_;
  core::Findings& findings_;
  const Config& declared_;
  std::optional<std::uint64_t> vocab_size_;
  bool bert_;
  WordRules words_;
  bool other_kind_ = false;  // tokenizer.json is of an unsupported kind
  bool reported_ = false;    // there is a vocabulary, valid or broken
};

}  // namespace

Texts tokens_of_lines(std::string_view text) {
  Texts out;
  out.blob.reserve(text.size());
  while (!text.empty()) {
    const std::size_t end = std::min(text.find_first_of("\r\n"), text.size());
    out.push_back(text.substr(0, end));
    const std::size_t taken = text.substr(end).starts_with("\r\n") ? 2 : 1;
    text.remove_prefix(std::min(end + taken, text.size()));
  }
  return out;
}

Tokenizer wordpieces(Texts tokens, const SpecialTexts& special) {
  Tokenizer out;
  out.kind = Tokenizer::Kind::wordpiece;
  out.tokens = std::move(tokens);
  for (std::size_t s = 0; s < kSpecialTokens.size(); ++s) {
    if (special[s].empty()) continue;
    for (std::size_t i = out.tokens.size(); i-- > 0;) {
      if (out.tokens[i] != special[s]) continue;
      out.special.emplace_back(kSpecialTokens[s].role, static_cast<std::uint32_t>(i));
      break;
    }
  }
  return out;
}

TokenizerFiles read_tokenizer(Reading& reading, const Config& declared) {
  return TokenizerReader(reading, declared).run();
}

}  // namespace weighbridge::huggingface
