// SPDX-License-Identifier: Apache-2.0
// The JSON pull parser. Strings are scanned 16 or 8 bytes at a time; UTF-8 is checked only in strings that are not
// plain ASCII.
#include "wire/json_reader.h"

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

#include "base/fail.h"
#include "base/utf8.h"

namespace weighbridge::wire {
namespace {

using json_detail::every_byte;

constexpr bool is_digit(char c) noexcept { return c >= '0' && c <= '9'; }

// The first quote, backslash or control character at or after `at`; clears `ascii` if a byte above 0x7F precedes it.
const char* find_special(const char* at, const char* end, bool& ascii) noexcept {
#if defined(__SSE2__)
  while (end - at >= 16) {
    const __m128i block = _mm_loadu_si128(reinterpret_cast<const __m128i*>(at));
    const __m128i control = _mm_cmpeq_epi8(_mm_min_epu8(block, _mm_set1_epi8(0x1F)), block);
    const __m128i quote = _mm_cmpeq_epi8(block, _mm_set1_epi8('"'));
    const __m128i slash = _mm_cmpeq_epi8(block, _mm_set1_epi8('\\'));
    const auto hit = static_cast<unsigned>(_mm_movemask_epi8(_mm_or_si128(_mm_or_si128(quote, slash), control)));
    const auto above = static_cast<unsigned>(_mm_movemask_epi8(block));
    if (hit != 0) {
      if ((above & ((hit & (~hit + 1)) - 1)) != 0) ascii = false;
      return at + std::countr_zero(hit);
    }
    if (above != 0) ascii = false;
    at += 16;
  }
#endif
  constexpr std::uint64_t low7 = every_byte(0x7F), high = every_byte(0x80);
  std::uint64_t seen = 0;
  while (end - at >= 8) {
    const std::uint64_t word = base::load_le<std::uint64_t>(at);
    const std::uint64_t quote = word ^ every_byte('"'), slash = word ^ every_byte('\\');
    // The high bit of a byte stays 0 exactly where it equals the pattern (or is below 0x20): no carry crosses bytes.
    const std::uint64_t plain = (((quote & low7) + low7) | quote) & (((slash & low7) + low7) | slash) &
                                (((word & low7) + every_byte(0x60)) | word);
    const std::uint64_t hit = ~plain & high;
    if (hit != 0) {
      seen |= word & ((hit & (~hit + 1)) - 1);
      if ((seen & high) != 0) ascii = false;
      return at + std::countr_zero(hit) / 8;
    }
    seen |= word;
    at += 8;
  }
  if ((seen & high) != 0) ascii = false;
  for (; at != end; ++at) {
    const auto byte = static_cast<unsigned char>(*at);
    if (byte == '"' || byte == '\\' || byte < 0x20) break;
    if (byte >= 0x80) ascii = false;
  }
  return at;
}

int hex_digit(char c) noexcept {
  if (is_digit(c)) return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

constexpr bool is_high_surrogate(int unit) noexcept { return unit >= 0xD800 && unit <= 0xDBFF; }
constexpr bool is_low_surrogate(int unit) noexcept { return unit >= 0xDC00 && unit <= 0xDFFF; }

}  // namespace

std::string_view name(JsonErrorCode code) noexcept {
  switch (code) {
    case JsonErrorCode::none: return "none";
    case JsonErrorCode::unexpected_end: return "unexpected-end";
    case JsonErrorCode::unexpected_byte: return "unexpected-byte";
    case JsonErrorCode::bad_escape: return "bad-escape";
    case JsonErrorCode::lone_surrogate: return "lone-surrogate";
    case JsonErrorCode::control_character: return "control-character";
    case JsonErrorCode::invalid_utf8: return "invalid-utf8";
    case JsonErrorCode::bad_number: return "bad-number";
    case JsonErrorCode::too_deep: return "too-deep";
    case JsonErrorCode::trailing_bytes: return "trailing-bytes";
    case JsonErrorCode::byte_order_mark: return "byte-order-mark";
  }
  return "none";
}

JsonReader::JsonReader(std::string_view text, std::uint32_t max_depth)
    : begin_(text.data()), cur_(text.data()), end_(text.data() + text.size()), max_depth_(max_depth) {
  if (text.starts_with("\xEF\xBB\xBF"))
    fail(JsonErrorCode::byte_order_mark, cur_, "the text starts with a byte-order mark, which JSON does not allow");
}

bool JsonReader::fail(JsonErrorCode code, const char* at, std::string_view sentence) {
  error_ = {code, static_cast<std::size_t>(at - begin_), sentence};
  state_ = State::failed;
  return false;
}

bool JsonReader::out_of_order() {
  if (state_ != State::failed)
    base::misuse("json-order", "a JSON token was asked for where none of its kind may stand");
  return false;
}

bool JsonReader::fail_end() {
  return fail(JsonErrorCode::unexpected_end, end_, "the JSON text ends in the middle of a value");
}

// Invalid UTF-8 before `at` is the earlier error.
bool JsonReader::fail_in_string(JsonErrorCode code, const char* first, const char* at, bool ascii,
                                std::string_view sentence) {
  if (!ascii) {
    const std::size_t bad = base::find_invalid_utf8({first, static_cast<std::size_t>(at - first)});
    if (bad != std::string_view::npos)
      return fail(JsonErrorCode::invalid_utf8, first + bad, "a JSON string holds a byte that is not valid UTF-8");
  }
  return fail(code, at, sentence);
}

std::size_t JsonReader::offset() noexcept {
  // White space after the root value is not skipped, so that value_end() stays valid.
  if (state_ != State::done && state_ != State::failed) skip_space();
  return static_cast<std::size_t>(cur_ - begin_);
}

JsonKind JsonReader::peek() {
  if (!ready_for_value()) return JsonKind::none;
  switch (*cur_) {
    case '{': return JsonKind::object;
    case '[': return JsonKind::array;
    case '"': return JsonKind::string;
    case 't':
    case 'f': return JsonKind::boolean;
    case 'n': return JsonKind::null;
    case '-': return JsonKind::number;
    default: break;
  }
  if (is_digit(*cur_)) return JsonKind::number;
  fail(JsonErrorCode::unexpected_byte, cur_, "expected a JSON value here");
  return JsonKind::none;
}

// The next value is of another kind than requested, or there is none.
bool JsonReader::wrong_kind() {
  peek();
  return false;
}

bool JsonReader::too_deep() {
  return fail(JsonErrorCode::too_deep, cur_, "JSON objects and arrays are nested deeper than the limit");
}

bool JsonReader::bad_separator() {
  return fail(JsonErrorCode::unexpected_byte, cur_, "expected a comma or ] after a JSON element");
}

bool JsonReader::next_key(JsonString& key) {
  if (state_ != State::object_next && state_ != State::object_first) [[unlikely]]
    return out_of_order();
  skip_space();
  if (cur_ == end_) return fail_end();
  if (*cur_ == '}') return close();
  if (state_ == State::object_next) {
    if (*cur_ != ',') return fail(JsonErrorCode::unexpected_byte, cur_, "expected a comma or } after a JSON member");
    ++cur_;
    skip_space();
    if (cur_ == end_) return fail_end();
  }
  if (*cur_ != '"') return fail(JsonErrorCode::unexpected_byte, cur_, "expected a JSON key in double quotes");
  if (!scan_string(key)) return false;
  skip_space();
  if (cur_ == end_) return fail_end();
  if (*cur_ != ':') return fail(JsonErrorCode::unexpected_byte, cur_, "expected a colon after a JSON key");
  ++cur_;
  state_ = State::value;
  return true;
}

// From the backslash at `at` to just past the escape.
bool JsonReader::check_escape(const char*& at, const char* first, bool ascii) {
  const char* const slash = at;
  if (end_ - at < 2)
    return fail_in_string(JsonErrorCode::unexpected_end, first, end_, ascii, "the JSON text ends inside an escape");
  switch (at[1]) {
    case '"':
    case '\\':
    case '/':
    case 'b':
    case 'f':
    case 'n':
    case 'r':
    case 't': at += 2; return true;
    case 'u': break;
    default: return fail_in_string(JsonErrorCode::bad_escape, first, slash, ascii, "no such escape exists in JSON");
  }
  // One unit, or two for a surrogate pair.
  for (int units = 0;; ++units) {
    int unit = 0;
    for (int i = 2; i < 6; ++i) {
      if (end_ - at <= i)
        return fail_in_string(JsonErrorCode::unexpected_end, first, end_, ascii, "the JSON text ends inside an escape");
      const int digit = hex_digit(at[i]);
      if (digit < 0)
        return fail_in_string(JsonErrorCode::bad_escape, first, at, ascii, "\\u needs four hexadecimal digits");
      unit = unit * 16 + digit;
    }
    const bool wrong = units == 0 ? is_low_surrogate(unit) : !is_low_surrogate(unit);
    if (wrong) break;
    at += 6;
    if (units == 1 || !is_high_surrogate(unit)) return true;
    if (at == end_ || (end_ - at == 1 && *at == '\\'))
      return fail_in_string(JsonErrorCode::unexpected_end, first, end_, ascii, "the JSON text ends inside an escape");
    if (at[0] != '\\' || at[1] != 'u') break;
  }
  return fail_in_string(JsonErrorCode::lone_surrogate, first, slash, ascii, "an escape names half of a surrogate pair");
}

// From the opening quote at cur_ to just past the closing one.
bool JsonReader::scan_string(JsonString& out) {
  const char* const first = cur_ + 1;
  const char* at = first;
  bool escaped = false, ascii = true;
  for (;;) {
    at = find_special(at, end_, ascii);
    if (at == end_)
      return fail_in_string(JsonErrorCode::unexpected_end, first, end_, ascii, "the JSON text ends inside a string");
    if (*at == '"') break;
    if (*at != '\\')
      return fail_in_string(JsonErrorCode::control_character, first, at, ascii,
                            "a JSON string holds a raw control character");
    escaped = true;
    if (!check_escape(at, first, ascii)) return false;
  }
  const std::string_view raw(first, static_cast<std::size_t>(at - first));
  if (!ascii) {
    const std::size_t bad = base::find_invalid_utf8(raw);
    if (bad != std::string_view::npos)
      return fail(JsonErrorCode::invalid_utf8, first + bad, "a JSON string holds a byte that is not valid UTF-8");
  }
  // Member by member: copying a temporary stalls on its own narrower stores (a third of the scan time).
  out.offset = static_cast<std::size_t>(first - begin_);
  out.raw = raw;
  out.escaped = escaped;
  cur_ = at + 1;
  return true;
}

bool JsonReader::read_string(JsonString& out) {
  if (!ready_for_value()) return false;
  if (*cur_ != '"') return wrong_kind();
  if (!scan_string(out)) return false;
  state_ = after_;
  return true;
}

// Looks at the number at cur_ without consuming it.
bool JsonReader::scan_number(JsonNumber& out) {
  const char* at = cur_;
  const auto bad = [&](std::string_view sentence) {
    return at == end_ ? fail_end() : fail(JsonErrorCode::bad_number, cur_, sentence);
  };
  const auto digits = [&] {
    const char* const from = at;
    while (at != end_ && is_digit(*at)) ++at;
    return at != from;
  };
  bool integer = true;
  if (*at == '-') ++at;
  if (at != end_ && *at == '0') {
    ++at;
    if (at != end_ && is_digit(*at)) return bad("a JSON number may not start with a zero before other digits");
  } else if (!digits()) {
    return bad("a JSON number needs a digit after its sign");
  }
  if (at != end_ && *at == '.') {
    ++at;
    integer = false;
    if (!digits()) return bad("a JSON number needs a digit after its point");
  }
  if (at != end_ && (*at == 'e' || *at == 'E')) {
    ++at;
    integer = false;
    if (at != end_ && (*at == '+' || *at == '-')) ++at;
    if (!digits()) return bad("a JSON number needs a digit in its exponent");
  }
  out.offset = static_cast<std::size_t>(cur_ - begin_);
  out.raw = std::string_view(cur_, static_cast<std::size_t>(at - cur_));
  out.integer = integer;
  return true;
}

bool JsonReader::read_long_u64(std::uint64_t& out) {
  if (*cur_ != '-' && !is_digit(*cur_)) return wrong_kind();
  JsonNumber number;
  if (!scan_number(number)) return false;
  const auto value = as_u64(number.raw);
  if (!value) return false;
  out = *value;
  cur_ += number.raw.size();
  state_ = after_;
  return true;
}

bool JsonReader::read_number(JsonNumber& out) {
  if (!ready_for_value()) return false;
  if (*cur_ != '-' && !is_digit(*cur_)) return wrong_kind();
  if (!scan_number(out)) return false;
  cur_ += out.raw.size();
  state_ = after_;
  return true;
}

bool JsonReader::read_literal(std::string_view word) {
  for (std::size_t i = 0; i < word.size(); ++i) {
    if (cur_ + i == end_) return fail_end();
    if (cur_[i] != word[i]) return fail(JsonErrorCode::unexpected_byte, cur_ + i, "expected true, false or null");
  }
  cur_ += word.size();
  state_ = after_;
  return true;
}

bool JsonReader::read_bool(bool& out) {
  if (!ready_for_value()) return false;
  const char c = *cur_;
  if (c != 't' && c != 'f') return wrong_kind();
  if (!read_literal(c == 't' ? "true" : "false")) return false;
  out = c == 't';
  return true;
}

bool JsonReader::read_null() {
  if (!ready_for_value()) return false;
  if (*cur_ != 'n') return wrong_kind();
  return read_literal("null");
}

// Skips a scalar, or enters a container.
bool JsonReader::consume_head() {
  JsonString string;
  JsonNumber number;
  bool truth = false;
  switch (peek()) {
    case JsonKind::object: return enter_object();
    case JsonKind::array: return enter_array();
    case JsonKind::string: return read_string(string);
    case JsonKind::number: return read_number(number);
    case JsonKind::boolean: return read_bool(truth);
    case JsonKind::null: return read_null();
    case JsonKind::none: break;
  }
  return false;
}

bool JsonReader::unwind(std::size_t depth) {
  JsonString key;
  while (stack_.size() > depth || (stack_.size() == depth && state_ == State::value)) {
    switch (state_) {
      case State::value: consume_head(); break;
      case State::object_first:
      case State::object_next: next_key(key); break;
      case State::array_first:
      case State::array_next: next_element(); break;
      case State::done:
      case State::failed: return ok();
    }
  }
  return ok();
}

bool JsonReader::skip_value() { return ready_for_value() && unwind(stack_.size()); }

bool JsonReader::skip_value(std::string_view& raw) {
  if (!ready_for_value()) return false;
  const char* const from = cur_;
  if (!unwind(stack_.size())) return false;
  raw = {from, static_cast<std::size_t>(cur_ - from)};
  return true;
}

std::optional<std::size_t> JsonReader::value_end() const noexcept {
  if (state_ != State::done) return std::nullopt;
  return static_cast<std::size_t>(cur_ - begin_);
}

bool JsonReader::finish() {
  if (state_ == State::failed) return false;
  if (state_ != State::done) base::misuse("json-order", "a JSON text was finished before its value was read");
  const char* at = cur_;
  while (at != end_ && json_detail::is_space(*at)) ++at;
  if (at != end_) return fail(JsonErrorCode::trailing_bytes, at, "bytes follow the JSON value");
  return true;
}

}  // namespace weighbridge::wire
