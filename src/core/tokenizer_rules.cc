// SPDX-License-Identifier: Apache-2.0
// Writes and reads the attribute.
#include "core/tokenizer_rules.h"

#include "wire/json_reader.h"
#include "wire/json_writer.h"

namespace weighbridge::core {
namespace {

struct Flag {
  std::string_view key;
  bool TokenizerRules::*member;
};
constexpr Flag kFlags[] = {{"byte_level", &TokenizerRules::byte_level},
                           {"apart", &TokenizerRules::apart},
                           {"whole_words", &TokenizerRules::whole_words}};
struct Choice {
  std::string_view key;
  std::optional<bool> TokenizerRules::*member;
};
constexpr Choice kChoices[] = {{"bos", &TokenizerRules::bos}, {"eos", &TokenizerRules::eos}};
struct Ids {
  std::string_view key;
  std::vector<std::uint32_t> TokenizerRules::*member;
};
constexpr Ids kIds[] = {
    {"control", &TokenizerRules::control}, {"found", &TokenizerRules::found}, {"ends", &TokenizerRules::ends}};
constexpr std::string_view kWords = "words";

bool read_ids(wire::JsonReader& in, std::vector<std::uint32_t>& out) {
  if (!in.enter_array()) return false;
  while (in.next_element()) {
    std::uint64_t id = 0;
    if (!in.read_u64(id) || id > UINT32_MAX) return false;
    out.push_back(static_cast<std::uint32_t>(id));
  }
  return in.ok();
}

bool read_texts(wire::JsonReader& in, std::vector<std::string>& out) {
  if (!in.enter_array()) return false;
  std::string scratch;
  for (wire::JsonString text; in.next_element();) {
    if (!in.read_string(text)) return false;
    out.emplace_back(wire::json_text(text, scratch));
  }
  return in.ok();
}

bool read_member(wire::JsonReader& in, std::string_view key, TokenizerRules& out) {
  for (const Flag& flag : kFlags)
    if (key == flag.key) return in.read_bool(out.*flag.member);
  for (const Choice& choice : kChoices)
    if (key == choice.key) return in.read_bool((out.*choice.member).emplace());
  for (const Ids& ids : kIds)
    if (key == ids.key) return read_ids(in, out.*ids.member);
  return key == kWords && read_texts(in, out.words);
}

}  // namespace

std::string text_of(const TokenizerRules& rules) {
  if (rules == TokenizerRules{}) return {};
  wire::JsonWriter out(wire::JsonWriter::Style::compact);
  out.begin_object();
  for (const Flag& flag : kFlags)
    if (rules.*flag.member) out.flag(flag.key, true);
  if (!rules.words.empty()) {
    out.key(kWords);
    out.begin_array();
    for (const std::string& one : rules.words) out.string(one);
    out.end_array();
  }
  for (const Choice& choice : kChoices)
    if (rules.*choice.member) out.flag(choice.key, *(rules.*choice.member));
  for (const Ids& ids : kIds) {
    if ((rules.*ids.member).empty()) continue;
    out.key(ids.key);
    out.begin_array();
    for (const std::uint32_t id : rules.*ids.member) out.u64(id);
    out.end_array();
  }
  out.end_object();
  return out.take();
}

std::optional<TokenizerRules> parse_tokenizer_rules(std::string_view json) {
  TokenizerRules out;
  wire::JsonReader in(json, 2);
  if (!in.enter_object()) return std::nullopt;
  std::string scratch;
  for (wire::JsonString key; in.next_key(key);)
    if (!read_member(in, wire::json_text(key, scratch), out)) return std::nullopt;
  return in.finish() ? std::optional(std::move(out)) : std::nullopt;
}

std::string beyond_merges(const TokenizerRules& rules) {
  std::string out;
  const auto add = [&](const std::string& clause) { out += (out.empty() ? "" : "; ") + clause; };
  const auto counted = [](std::size_t n, const std::string& one, const std::string& many) {
    return std::to_string(n) + " " + (n == 1 ? one : many);
  };
  if (!rules.words.empty()) add("it divides texts into words by regular expressions first");
  if (rules.whole_words) add("it takes whole words without their merges");
  if (rules.apart) add("it has tokens of characters that no merge makes");
  if (!rules.found.empty())
    add("it finds " + counted(rules.found.size(), "added token", "added tokens") + " in texts first");
  if (rules.bos == false) add("it puts no BOS before a text");
  if (rules.eos == true) add("it puts EOS behind a text");
  if (!rules.ends.empty()) add(counted(rules.ends.size(), "more token ends", "more tokens end") + " a generated text");
  return out;
}

}  // namespace weighbridge::core
