// SPDX-License-Identifier: Apache-2.0
// Writes and reads the attribute.
#include "tokenizers/tokenizer_rules.h"

#include <iterator>
#include <utility>

#include "wire/json_reader.h"
#include "wire/json_writer.h"

namespace weighbridge::tokenizers {
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
constexpr std::uint32_t kDepth = 40;  // more than the steps within steps that text_steps.cc reads

constexpr std::string_view kNormalizer = "normalizer", kPreTokenizer = "pre_tokenizer", kWordLimit = "word_limit",
                           kPrefix = "prefix", kFrame = "frame", kAdded = "added";
// Of an added token, each a bit of the number behind its id.
constexpr bool AddedToken::*kAddedFlags[] = {&AddedToken::single_word, &AddedToken::lstrip, &AddedToken::rstrip,
                                             &AddedToken::normalized, &AddedToken::of_vocabulary};

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

// A value of tokenizer.json, as written.
bool read_raw(wire::JsonReader& in, std::string& out) {
  std::string_view raw;
  if (!in.skip_value(raw)) return false;
  out = raw;
  return true;
}

bool read_frame(wire::JsonReader& in, TextFrame& out) {
  if (!in.enter_array()) return false;
  if (!in.next_element() || !read_ids(in, out.before)) return false;
  if (!in.next_element() || !read_ids(in, out.after)) return false;
  return !in.next_element() && in.ok();
}

bool read_added(wire::JsonReader& in, std::vector<AddedToken>& out) {
  if (!in.enter_array()) return false;
  while (in.next_element()) {
    std::vector<std::uint32_t> pair;
    if (!read_ids(in, pair) || pair.size() != 2 || pair[1] >= 1U << std::size(kAddedFlags)) return false;
    AddedToken& token = out.emplace_back();
    token.id = pair[0];
    for (std::size_t i = 0; i < std::size(kAddedFlags); ++i) token.*kAddedFlags[i] = (pair[1] >> i & 1U) != 0;
  }
  return in.ok();
}

bool read_word_pieces(wire::JsonReader& in, std::string_view key, TokenizerRules& out) {
  if (key == kNormalizer) return read_raw(in, out.normalizer);
  if (key == kPreTokenizer) return read_raw(in, out.pre_tokenizer);
  if (key == kFrame) return read_frame(in, out.frame.emplace());
  if (key == kAdded) return read_added(in, out.added.emplace());
  if (key == kWordLimit) {
    std::uint64_t limit = 0;
    if (!in.read_u64(limit) || limit > UINT32_MAX) return false;
    out.word_limit = static_cast<std::uint32_t>(limit);
    return true;
  }
  wire::JsonString text;
  if (key != kPrefix || !in.read_string(text)) return false;
  std::string scratch;
  out.prefix = wire::json_text(text, scratch);
  return true;
}

bool read_member(wire::JsonReader& in, std::string_view key, TokenizerRules& out) {
  for (const Flag& flag : kFlags)
    if (key == flag.key) return in.read_bool(out.*flag.member);
  for (const Choice& choice : kChoices)
    if (key == choice.key) return in.read_bool((out.*choice.member).emplace());
  for (const Ids& ids : kIds)
    if (key == ids.key) return read_ids(in, out.*ids.member);
  return key == kWords ? read_texts(in, out.words) : read_word_pieces(in, key, out);
}

void write_ids(wire::JsonWriter& out, const std::vector<std::uint32_t>& ids) {
  out.begin_array();
  for (const std::uint32_t id : ids) out.u64(id);
  out.end_array();
}

void write_word_pieces(wire::JsonWriter& out, const TokenizerRules& rules) {
  for (const auto& [key, raw] : {std::pair{kNormalizer, &rules.normalizer}, {kPreTokenizer, &rules.pre_tokenizer}}) {
    if (raw->empty()) continue;
    out.key(key).raw(*raw);
  }
  if (rules.word_limit) out.member(kWordLimit, std::uint64_t{*rules.word_limit});
  if (rules.prefix) out.member(kPrefix, *rules.prefix);
  if (rules.frame) {
    out.key(kFrame).begin_array();
    write_ids(out, rules.frame->before);
    write_ids(out, rules.frame->after);
    out.end_array();
  }
  if (!rules.added) return;
  out.key(kAdded).begin_array();
  for (const AddedToken& token : *rules.added) {
    std::uint32_t flags = 0;
    for (std::size_t i = 0; i < std::size(kAddedFlags); ++i) flags |= token.*kAddedFlags[i] ? 1U << i : 0U;
    write_ids(out, {token.id, flags});
  }
  out.end_array();
}

}  // namespace

std::string text_of(const TokenizerRules& rules) {
  if (rules == TokenizerRules{}) return {};
  wire::JsonWriter out(wire::JsonWriter::Style::compact);
  out.begin_object();
  for (const Flag& flag : kFlags)
    if (rules.*flag.member) out.flag(flag.key, true);
  if (!rules.words.empty()) {
    out.key(kWords).begin_array();
    for (const std::string& one : rules.words) out.string(one);
    out.end_array();
  }
  for (const Choice& choice : kChoices)
    if (rules.*choice.member) out.flag(choice.key, *(rules.*choice.member));
  for (const Ids& ids : kIds) {
    if ((rules.*ids.member).empty()) continue;
    out.key(ids.key);
    write_ids(out, rules.*ids.member);
  }
  write_word_pieces(out, rules);
  out.end_object();
  return out.take();
}

std::optional<TokenizerRules> parse_tokenizer_rules(std::string_view json) {
  TokenizerRules out;
  wire::JsonReader in(json, kDepth);
  if (!in.enter_object()) return std::nullopt;
  std::string scratch;
  for (wire::JsonString key; in.next_key(key);)
    if (!read_member(in, wire::json_text(key, scratch), out)) return std::nullopt;
  return in.finish() ? std::optional(std::move(out)) : std::nullopt;
}

bool has_own_normalizer(std::string_view json) {
  const auto rules = json.empty() ? std::nullopt : parse_tokenizer_rules(json);
  return rules && !rules->normalizer.empty();
}

std::string beyond_wordpieces(const TokenizerRules& rules) {
  std::string out;
  const auto add = [&](bool is, const std::string& clause) { out += !is ? "" : (out.empty() ? "" : "; ") + clause; };
  add(!rules.normalizer.empty(), "it changes texts by steps of its own");
  add(!rules.pre_tokenizer.empty(), "it divides texts into words by steps of its own");
  add(rules.word_limit.has_value(),
      "its longest word has " + std::to_string(rules.word_limit.value_or(0)) + " characters");
  add(rules.prefix.has_value(), "it continues words with the prefix \"" + rules.prefix.value_or("") + "\"");
  add(rules.frame.has_value(), "it puts other tokens than [CLS] and [SEP] around a text");
  add(rules.added.has_value(), "it finds added tokens in texts, and each has its own rules");
  return out;
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

}  // namespace weighbridge::tokenizers
