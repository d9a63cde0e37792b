// SPDX-License-Identifier: Apache-2.0
// Reads lines, JSON lines and CSV records, one buffer at a time.
#include "weighbridge/texts.h"

#include <cstring>
#include <utility>

#include "base/fail.h"
#include "weighbridge/error.h"
#include "wire/json_reader.h"

namespace weighbridge {
namespace {

constexpr std::size_t kBuffer = 64 << 10;

[[noreturn]] void over_memory(std::uint64_t offset) {
  Finding finding;
  finding.rule = "limit/memory";
  finding.kind = Kind::limit;
  finding.offset = offset;
  finding.message = "a text is longer than the limit allows";
  finding.hint = base::limit_hint("memory");
  throw Error(std::move(finding));
}

[[noreturn]] void fail(const char* rule, std::uint64_t offset, std::string sentence) {
  Finding finding;
  finding.rule = rule;
  finding.offset = offset;
  finding.message = std::move(sentence);
  throw Error(std::move(finding));
}

// Stores the line's text. Returns what is wrong with the line; empty if it has a text.
std::string text_of(std::string_view line, std::string& out) {
  constexpr std::string_view kExpected = "a JSON string or an object with a member \"text\"";
  wire::JsonReader in(line, 8);
  wire::JsonString text;
  std::string scratch;
  bool found = false;
  const auto take = [&] {
    if (in.peek() != wire::JsonKind::string || !in.read_string(text)) return false;
    out = wire::json_text(text, scratch);
    return found = true;
  };
  const auto broken = [&] { return "is not valid JSON: " + std::string(in.error().sentence); };
  const wire::JsonKind kind = in.peek();
  if (kind == wire::JsonKind::object) {
    in.enter_object();
    for (wire::JsonString key; in.next_key(key);) {
      if (wire::json_text(key, scratch) != "text") {
        in.skip_value();
        continue;
      }
      if (found) return "has two members \"text\"";
      if (!take() && in.ok()) return "has a member \"text\" that is not a string";
    }
  } else if (kind != wire::JsonKind::string && in.skip_value()) {
    return "is neither a JSON string nor an object: each line must be " + std::string(kExpected);
  } else {
    take();
  }
  if (!in.ok() || !in.finish()) return broken();
  return found ? "" : "is an object without a member \"text\"";
}

}  // namespace

TextReader::TextReader(TextPull pull, TextForm form, const Limits& limits)
    : pull_(std::move(pull)), form_(form), limits_(limits), buffer_(kBuffer) {}

bool TextReader::fill() {
  at_ = 0;
  end_ = pull_(buffer_);
  offset_ += end_;
  return end_ > 0;
}

void TextReader::add(std::string& to, char c) {
  if (to.size() >= limits_.memory) over_memory(offset_);
  to += c;
}

bool TextReader::next_line(std::string& line) {
  line.clear();
  bool any = false;
  for (;;) {
    if (at_ == end_ && !fill()) break;
    any = true;
    const char* const from = buffer_.data() + at_;
    const auto* const newline = static_cast<const char*>(std::memchr(from, '\n', end_ - at_));
    const std::size_t length = newline ? static_cast<std::size_t>(newline - from) : end_ - at_;
    if (length > limits_.memory - std::min<std::uint64_t>(limits_.memory, line.size()))
      over_memory(offset_ - (end_ - at_));
    line.append(from, length);
    at_ += length + (newline ? 1 : 0);
    if (newline) break;
  }
  if (line.ends_with('\r')) line.pop_back();
  return any;
}

bool TextReader::next(std::string& text) {
  if (form_ == TextForm::lines) return next_line(text);
  std::string line;
  std::uint64_t begin = 0;
  do {
    begin = offset_ - (end_ - at_);
    if (!next_line(line)) return false;
    ++line_;
  } while (line.find_first_not_of(" \t") == std::string::npos);
  if (const std::string wrong = text_of(line, text); !wrong.empty())
    fail("texts/jsonl", begin, "line " + std::to_string(line_) + " " + wrong);
  return true;
}

int TextReader::next_char() {
  if (at_ == end_ && !fill()) return -1;
  return static_cast<unsigned char>(buffer_[at_++]);
}

bool TextReader::next_record(std::vector<std::string>& fields) {
  fields.assign(1, {});
  int c = next_char();
  if (c < 0) return false;
  for (bool quoted = false;; c = next_char()) {
    std::string& field = fields.back();
    if (quoted) {
      if (c < 0) fail("texts/csv", offset_, "a quote is opened that is never closed");
      if (c != '"') {
        add(field, static_cast<char>(c));
        continue;
      }
      c = next_char();
      if (c == '"') {
        add(field, '"');
        continue;
      }
      quoted = false;
    }
    if (c < 0 || c == '\n') break;
    if (c == ',') {
      fields.emplace_back();
    } else if (c == '"' && field.empty()) {
      quoted = true;
    } else {
      add(field, static_cast<char>(c));
    }
  }
  if (fields.back().ends_with('\r')) fields.back().pop_back();
  return true;
}

}  // namespace weighbridge
