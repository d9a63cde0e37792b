// SPDX-License-Identifier: Apache-2.0
// Reads config.json into attributes.
#include "formats/huggingface/config.h"

#include <algorithm>

#include "core/model/words.h"
#include "formats/huggingface/format.h"

namespace weighbridge::huggingface {
namespace {

using wire::JsonKind;

std::string_view needed(ConfigKey::Is is) {
  switch (is) {
    case ConfigKey::Is::positive: return "a positive integer";
    case ConfigKey::Is::real: return "a number above 0";
    case ConfigKey::Is::text: return "text";
  }
  return "";
}

// The attribute's text; nullopt if the value is not valid for its key.
std::optional<std::string> named_text(const ConfigKey& key, const Member& member) {
  if (key.is == ConfigKey::Is::text) {
    if (member.kind != JsonKind::string) return std::nullopt;
    return unquote(member.raw);
  }
  if (member.kind != JsonKind::number) return std::nullopt;
  const bool good = key.is == ConfigKey::Is::positive ? positive(member.raw).has_value()
                                                      : wire::as_double(member.raw).value_or(0) > 0;
  return good ? std::optional(std::string(member.raw)) : std::nullopt;
}

// The value for a message, unless it is long.
std::string shown(std::string_view raw) { return raw.size() > 60 ? std::string{} : std::string(raw); }

bool is_of(std::string_view model_type, std::string_view architectures, std::string_view type, std::string_view start) {
  if (!model_type.empty()) return model_type == type;
  if (architectures.empty()) return false;
  wire::JsonReader in(architectures);
  wire::JsonString first;
  return in.enter_array() && in.next_element() && in.read_string(first) && first.raw.starts_with(start);
}

// An id, or the first of a list of ids.
std::optional<std::uint64_t> id_of(std::string_view raw) {
  const std::vector<std::uint64_t> ids = ids_of(raw);
  return ids.empty() ? std::nullopt : std::optional(ids[0]);
}

}  // namespace

std::vector<std::uint64_t> ids_of(std::string_view json) {
  std::vector<std::uint64_t> out;
  if (json.empty()) return out;
  wire::JsonReader in(json);
  std::uint64_t id = 0;
  if (!json.starts_with('[')) {
    if (in.read_u64(id)) out.push_back(id);
  } else if (in.enter_array()) {
    while (in.next_element() && in.read_u64(id)) out.push_back(id);
  }
  return out;
}

const ConfigKey* find_config_key(std::string_view config) noexcept {
  const auto found = std::ranges::find(kConfigKeys, config, &ConfigKey::config);
  return found == std::end(kConfigKeys) ? nullptr : found;
}

const ConfigKey* find_attribute_key(std::string_view attribute) noexcept {
  const auto found = std::ranges::find(kConfigKeys, attribute, &ConfigKey::attribute);
  return found == std::end(kConfigKeys) ? nullptr : found;
}

std::optional<std::uint64_t> positive(std::string_view text) noexcept {
  const auto value = wire::as_u64(text);
  if (!value || *value == 0 || *value > UINT32_MAX) return std::nullopt;
  return value;
}

bool is_bert(std::string_view model_type, std::string_view architectures) {
  return is_of(model_type, architectures, "\"bert\"", "Bert");
}

bool is_llama(std::string_view model_type, std::string_view architectures) {
  return is_of(model_type, architectures, "\"llama\"", "Llama");
}

bool is_word_table(std::string_view model_type, std::string_view architectures) {
  return is_of(model_type, architectures, "\"model2vec\"", "Static");
}

Config read_config(Reading& reading, const JsonObject& json) {
  Config out;
  const auto raw = [&](std::string_view key) {
    const Member* const member = json.find(key);
    return member == nullptr ? std::string_view{} : member->raw;
  };
  out.bert = is_bert(raw(kModelType), raw(kArchitectures));
  out.llama = is_llama(raw(kModelType), raw(kArchitectures));
  out.word_table = is_word_table(raw(kModelType), raw(kArchitectures));
  if (out.llama) {
    out.vocab_size = positive(raw("vocab_size"));
    out.bos = id_of(raw("bos_token_id"));
    out.ends = ids_of(raw(kEnds));
    out.eos = out.ends.empty() ? std::nullopt : std::optional(out.ends[0]);
    out.pad = id_of(raw("pad_token_id"));
  }
  for (const ConfigKey& key : kConfigKeys) {
    if (!out.bert) break;
    const Member* const member = json.find(key.config);
    if (member == nullptr) {
      if (key.required) reading.in(json.file).report(rules::kConfigKey, {}, core::in_quotes(key.config, core::kWhole));
      continue;
    }
    auto text = named_text(key, *member);
    if (!text) {
      reading.in(json.file).report(rules::kConfigValue, {.offset = json.offset(*member)}, needed(key.is),
                                   shown(member->raw), core::in_quotes(member->key, core::kWhole));
      continue;
    }
    if (key.attribute == "vocab_size") out.vocab_size = positive(*text);
    if (key.attribute == "hidden_size") out.hidden_size = positive(*text);
    if (key.attribute == "max_position_emb") out.positions = positive(*text);
    out.named.emplace_back(key.attribute, Value::text(*std::move(text)));
  }
  if (out.hidden_size)
    out.named.emplace(out.named.begin(), kEmbeddingDim, Value::text(std::to_string(*out.hidden_size)));
  for (const Member& member : json.members) {
    if (out.bert && find_config_key(member.key) != nullptr) continue;
    out.others.emplace_back(std::string(kOwn) + member.key, Value::text(attribute_text(member)));
  }
  return out;
}

}  // namespace weighbridge::huggingface
