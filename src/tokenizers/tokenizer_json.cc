// SPDX-License-Identifier: Apache-2.0
// Converts a tokenizer to JSON and back.
#include "tokenizers/tokenizer_rules.h"

#include <algorithm>
#include <array>
#include <span>

#include "base/utf8.h"
#include "wire/base64.h"
#include "wire/json_reader.h"
#include "wire/json_writer.h"

namespace weighbridge::tokenizers {
namespace {

constexpr std::array<std::string_view, 3> kKinds{"wordpiece", "byte", "bpe"};

class Parser {
 public:
  explicit Parser(std::string_view text) : in_(text, 8) {}

  std::optional<Tokenizer> run() {
    if (!in_.enter_object()) return std::nullopt;
    for (wire::JsonString key; in_.next_key(key);)
      if (!field(std::string(wire::json_text(key, scratch_)))) return std::nullopt;
    if (!in_.ok() || !in_.finish() || !seen_kind_ || !seen_tokens_) return std::nullopt;
    return std::move(out_);
  }

 private:
  bool field(const std::string& key) {
    if (std::ranges::find(keys_, key) != keys_.end()) return false;
    keys_.push_back(key);
    if (key == "kind") return kind();
    if (key == "vocab_size") return number(out_.vocab_size);
    if (key == "tokens") return list([this] { return token(); }) && (seen_tokens_ = true);
    if (key == "ids") return list([this] { return number(out_.ids.emplace_back()); });
    if (key == "merges") return list([this] { return merge(); });
    if (key == "special") return special();
    return false;
  }

  template <class Element> bool list(Element element) {
    if (!in_.enter_array()) return false;
    while (in_.next_element())
      if (!element()) return false;
    return in_.ok();
  }

  bool number(std::uint32_t& out) {
    std::uint64_t value = 0;
    if (!in_.read_u64(value) || value > UINT32_MAX) return false;
    out = static_cast<std::uint32_t>(value);
    return true;
  }

  bool kind() {
    wire::JsonString text;
    if (!in_.read_string(text)) return false;
    const auto at = std::ranges::find(kKinds, wire::json_text(text, scratch_));
    if (at == kKinds.end()) return false;
    out_.kind = static_cast<Tokenizer::Kind>(at - kKinds.begin());
    return seen_kind_ = true;
  }

  bool token() {
    wire::JsonString text;
    if (in_.read_string(text)) {
      out_.tokens.push_back(wire::json_text(text, scratch_));
      return true;
    }
    wire::JsonString key;
    if (!in_.ok() || !in_.enter_object() || !in_.next_key(key) || wire::json_text(key, scratch_) != "bytes" ||
        !in_.read_string(text))
      return false;
    const auto bytes = wire::decode_base64(wire::json_text(text, scratch_));
    if (!bytes || in_.next_key(key) || !in_.ok()) return false;
    out_.tokens.push_back({reinterpret_cast<const char*>(bytes->data()), bytes->size()});
    return true;
  }

  bool merge() {
    Tokenizer::Merge& merge = out_.merges.emplace_back();
    std::size_t n = 0;
    return list([&] {
             std::uint32_t* const fields[] = {&merge.left, &merge.right, &merge.output, &merge.rank};
             return n < 4 && number(*fields[n++]);
           }) &&
           n == 4;
  }

  bool special() {
    if (!in_.enter_object()) return false;
    for (wire::JsonString key; in_.next_key(key);) {
      auto& entry = out_.special.emplace_back(std::string(wire::json_text(key, scratch_)), 0);
      if (!number(entry.second)) return false;
    }
    return in_.ok();
  }

  wire::JsonReader in_;
  Tokenizer out_;
  std::string scratch_;
  std::vector<std::string> keys_;
  bool seen_kind_ = false, seen_tokens_ = false;
};

}  // namespace

std::string tokenizer_to_json(const Tokenizer& tokenizer) {
  wire::JsonWriter out(wire::JsonWriter::Style::compact);
  out.begin_object();
  out.key("kind").string(kKinds[static_cast<std::size_t>(tokenizer.kind)]);
  out.key("vocab_size").u64(tokenizer.vocab_size);
  out.key("tokens").begin_array();
  for (std::size_t i = 0; i < tokenizer.tokens.size(); ++i) {
    const std::string_view token = tokenizer.tokens[i];
    if (base::is_utf8(token)) {
      out.string(token);
      continue;
    }
    out.begin_object();
    out.key("bytes").bytes(std::as_bytes(std::span(token)));
    out.end_object();
  }
  out.end_array();
  if (!tokenizer.ids.empty()) {
    out.key("ids").begin_array();
    for (const std::uint32_t id : tokenizer.ids) out.u64(id);
    out.end_array();
  }
  if (!tokenizer.merges.empty()) {
    out.key("merges").begin_array();
    for (const auto& merge : tokenizer.merges) {
      out.begin_array();
      for (const std::uint32_t field : {merge.left, merge.right, merge.output, merge.rank}) out.u64(field);
      out.end_array();
    }
    out.end_array();
  }
  if (!tokenizer.special.empty()) {
    out.key("special").begin_object();
    for (const auto& [key, id] : tokenizer.special) {
      out.key(key).u64(id);
    }
    out.end_object();
  }
  out.end_object();
  return out.take();
}

std::optional<Tokenizer> tokenizer_from_json(std::string_view text) { return Parser(text).run(); }

}  // namespace weighbridge::tokenizers
