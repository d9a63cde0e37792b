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

// Stores the line's text; false if the line is neither a JSON string nor an object with a text.
bool text_of(std::string_view line, std::string& out) {
  wire::JsonReader in(line, 8);
  wire::JsonString text;
  std::string scratch;
  bool found = false;
  if (in.peek() == wire::JsonKind::string) {
    found = in.read_string(text);
    if (found) out = wire::json_text(text, scratch);
  } else if (in.enter_object()) {
    for (wire::JsonString key; in.next_key(key);) {
      if (wire::json_text(key, scratch) != "text") {
        in.skip_value();
      } else if (!found && in.read_string(text)) {
        found = true;
        out = wire::json_text(text, scratch);
      } else {
        return false;
      }
    }
  }
  return found && in.ok() && in.finish();
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
  if (!text_of(line, text))
    fail(
        "texts/jsonl", begin,
        "line " + std::to_string(line_) + " is neither a JSON string nor an object with a member \"text\" that is one");
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
