// SPDX-License-Identifier: Apache-2.0
// A pull parser for JSON (RFC 8259) over bytes in memory. Checks grammar, UTF-8 and nesting depth. Callers check
// duplicate keys (they keep a sorted index of names) and interpret the values. For other padding rules than those of
// RFC 8259, see value_end().
//
// Usage:
//   JsonReader in(text, limits.depth);
//   if (in.enter_object())
//     for (JsonString key; in.next_key(key);) {
//       if (json_text(key, scratch) == "shape") { if (in.enter_array()) while (in.next_element()) in.read_u64(...); }
//       else in.skip_value();
//     }
//   if (!in.finish()) report(in.error());
//
// Every pull returns true on success. False means one of three things: the container ended (next_key, next_element);
// the next value is of another type (ok() stays true and nothing is consumed, so the caller may report a finding at
// offset() and skip_value()); or the text is malformed (ok() stays false, and error() says where and why). Calls out of
// order, such as next_key() before a pending value, are bugs of the caller and throw Error{misuse}.
//
// Time is linear in the text, and tokens allocate nothing. The text may have up to 2^64 - 1 bytes. Results refer to it,
// so it must outlive them.
#pragma once
#include <bit>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/endian.h"

namespace weighbridge::wire {

enum class JsonKind : std::uint8_t { object, array, string, number, boolean, null, none };

enum class JsonErrorCode : std::uint8_t {
  none,
  unexpected_end,     // the text ends inside a value; offset is its size
  unexpected_byte,    // the byte at offset is not allowed there
  bad_escape,         // offset of the backslash
  lone_surrogate,     // offset of the backslash of the half pair
  control_character,  // offset of a raw byte below 0x20 in a string
  invalid_utf8,       // offset of the first byte that is not UTF-8
  bad_number,         // offset of the number's first byte
  too_deep,           // offset of the bracket that exceeds max_depth
  trailing_bytes,     // offset of the first byte after the value other than white space
  byte_order_mark,    // offset 0
};
std::string_view name(JsonErrorCode) noexcept;

struct JsonError {
  JsonErrorCode code = JsonErrorCode::none;
  std::size_t offset = 0;       // in the text
  std::string_view sentence{};  // lower case, no full stop; static
};

// The text between the quotes: valid UTF-8, escapes checked but not decoded.
struct JsonString {
  std::size_t offset = 0;  // of the first byte after the opening quote
  std::string_view raw{};
  bool escaped = false;  // raw holds at least one backslash
};

// A number as written.
struct JsonNumber {
  std::size_t offset = 0;
  std::string_view raw{};
  bool integer = false;  // neither point nor exponent
};

// The exact number, or nullopt. `raw` is from a JsonNumber.
std::optional<std::uint64_t> as_u64(std::string_view raw) noexcept;  // 0 or digits without leading zeros, below 2^64
std::optional<std::int64_t> as_i64(std::string_view raw) noexcept;   // the same with an optional minus; -0 is 0
std::optional<double> as_double(std::string_view raw) noexcept;      // nearest double; nullopt above the largest one

// Decodes an accepted JsonString::raw to `out`.
void unescape(std::string_view raw, std::string& out);
// The string's text: its raw slice, or `scratch` if it has escapes.
inline std::string_view json_text(const JsonString& string, std::string& scratch) {
  if (!string.escaped) return string.raw;
  unescape(string.raw, scratch);
  return scratch;
}

class JsonReader {
 public:
  // max_depth: maximum number of open objects and arrays.
  explicit JsonReader(std::string_view text, std::uint32_t max_depth = 64);

  bool ok() const noexcept { return state_ != State::failed; }
  const JsonError& error() const noexcept { return error_; }
  // Start of the next token, after white space.
  std::size_t offset() noexcept;
  std::size_t depth() const noexcept { return stack_.size(); }

  // Type of the next value, from its first byte; `none` if the text is malformed there.
  JsonKind peek();

  bool enter_object();
  // Reads a key and its colon; its value is next. At the end of the object, leaves it and returns false.
  bool next_key(JsonString& key);
  bool enter_array();
  // True if there is another element. At the end of the array, leaves it and returns false.
  bool next_element();

  bool read_string(JsonString& out);
  bool read_number(JsonNumber& out);
  // Reads a number that as_u64() takes; consumes nothing else, not even other numbers.
  bool read_u64(std::uint64_t& out);
  bool read_bool(bool& out);
  bool read_null();

  // Fast path for callers that parse a value's usual spelling themselves: rest() is the text from the next value on
  // (empty if none is due or left). A caller that parsed a whole value from it then calls take(length).
  std::string_view rest() {
    return ready_for_value() ? std::string_view(cur_, static_cast<std::size_t>(end_ - cur_)) : std::string_view{};
  }
  bool take(std::size_t length);

  // Checks and skips the next value; `raw` is its verbatim text.
  bool skip_value();
  bool skip_value(std::string_view& raw);
  // Continues after an invalid entry: checks and skips the rest of every container deeper than `depth`, and the value
  // still due at `depth`, if any.
  bool unwind(std::size_t depth);

  // Offset just after the complete root value, before any white space: for callers with their own padding rule.
  std::optional<std::size_t> value_end() const noexcept;
  // Checks that only white space follows the root value. Error{misuse} if the root value has not been read to its end.
  bool finish();

 private:
  // What may come next; the *_next states also tell the container around a value (after_).
  enum class State : char { value, object_first, object_next, array_first, array_next, done, failed };

  // These return false, so that pulls can return their result.
  bool fail(JsonErrorCode code, const char* at, std::string_view sentence);
  bool fail_end();
  bool fail_in_string(JsonErrorCode code, const char* first, const char* at, bool ascii, std::string_view sentence);
  bool out_of_order();
  bool wrong_kind();
  bool too_deep();
  bool bad_separator();

  void skip_space() noexcept;
  bool ready_for_value();
  bool open(char bracket, State first, State next);
  bool close();
  bool scan_string(JsonString& out);
  bool check_escape(const char*& at, const char* first, bool ascii);
  bool scan_number(JsonNumber& out);
  bool read_short_u64(std::uint64_t& out);
  bool read_long_u64(std::uint64_t& out);
  bool read_literal(std::string_view word);
  bool consume_head();

  const char* begin_;
  const char* cur_;
  const char* end_;
  std::size_t max_depth_;
  State state_ = State::value;
  State after_ = State::done;  // the state after the pending value
  std::string stack_;          // after_ of the enclosing containers, as bytes
  JsonError error_;
};

// Inline, because a header of 100,000 tensors calls these millions of times.

namespace json_detail {

constexpr bool is_space(char c) noexcept { return c == ' ' || c == '\n' || c == '\r' || c == '\t'; }
constexpr std::uint64_t every_byte(unsigned char b) noexcept { return 0x0101010101010101u * b; }

// Value and count of the digits at `at`, at most eight; eight bytes must be readable.
inline std::uint64_t digits8(const char* at, std::size_t& count) noexcept {
  std::uint64_t word = base::load_le<std::uint64_t>(at) ^ every_byte('0');
  // Sets the high bit of bytes above 9; a carry from one only affects bytes after it.
  const std::uint64_t other = ((word + every_byte(0x76)) | word) & every_byte(0x80);
  count = static_cast<std::size_t>(std::countr_zero(other)) / 8;
  if (count == 0) return 0;
  word <<= 64 - 8 * count;
  // Combines pairs, then fours, then all eight; the first byte is the most significant.
  word = (word * 10 + (word >> 8)) & 0x00FF00FF00FF00FFu;
  word = (word * 100 + (word >> 16)) & 0x0000FFFF0000FFFFu;
  return (word * 10000 + (word >> 32)) & 0xFFFFFFFFu;
}

}  // namespace json_detail

// The common case of a number: an integer of 1 to 15 digits well inside the text, read without a branch per digit.
// Returns how many digits it has; 0 if it is anything else, or within 17 bytes of the end.
[[gnu::always_inline]] inline std::size_t short_u64(const char* at, const char* end, std::uint64_t& out) noexcept {
  if (end - at < 17) return 0;
  std::size_t count = 0;
  std::uint64_t value = json_detail::digits8(at, count);
  if (count == 8) {
    static constexpr std::uint64_t kPowersOfTen[] = {1, 10, 100, 1'000, 10'000, 100'000, 1'000'000, 10'000'000};
    std::size_t more = 0;
    const std::uint64_t tail = json_detail::digits8(at + 8, more);
    if (more == 8) return 0;
    value = value * kPowersOfTen[more] + tail;
    count += more;
  }
  const char next = at[count];
  if ((*at == '0' && count > 1) || next == '.' || next == 'e' || next == 'E') return 0;
  out = value;
  return count;
}

inline void JsonReader::skip_space() noexcept {
  while (cur_ != end_ && json_detail::is_space(*cur_)) ++cur_;
}

// Whether a value is due; its first byte is then at cur_.
inline bool JsonReader::ready_for_value() {
  if (state_ != State::value) [[unlikely]]
    return out_of_order();
  skip_space();
  if (cur_ == end_) [[unlikely]]
    return fail_end();
  return true;
}

inline bool JsonReader::open(char bracket, State first, State next) {
  if (!ready_for_value()) return false;
  if (*cur_ != bracket) [[unlikely]]
    return wrong_kind();
  if (stack_.size() >= max_depth_) [[unlikely]]
    return too_deep();
  stack_.push_back(static_cast<char>(after_));
  after_ = next;
  state_ = first;
  ++cur_;
  return true;
}

// Skips the closing bracket and leaves the container. Returns false, so that next_key() and next_element() can return
// it.
inline bool JsonReader::close() {
  ++cur_;
  after_ = static_cast<State>(stack_.back());
  stack_.pop_back();
  state_ = after_;
  return false;
}

inline bool JsonReader::enter_object() { return open('{', State::object_first, State::object_next); }
inline bool JsonReader::enter_array() { return open('[', State::array_first, State::array_next); }

inline bool JsonReader::next_element() {
  if (state_ != State::array_next && state_ != State::array_first) [[unlikely]]
    return out_of_order();
  skip_space();
  if (cur_ == end_) [[unlikely]]
    return fail_end();
  if (*cur_ == ']') return close();
  if (state_ == State::array_next) {
    if (*cur_ != ',') [[unlikely]]
      return bad_separator();
    ++cur_;
  }
  state_ = State::value;
  return true;
}

// cur_ may be at any byte.
inline bool JsonReader::read_short_u64(std::uint64_t& out) {
  const std::size_t count = short_u64(cur_, end_, out);
  if (count == 0) return false;
  cur_ += count;
  state_ = after_;
  return true;
}

inline bool JsonReader::take(std::size_t length) {
  if (state_ != State::value || length > static_cast<std::size_t>(end_ - cur_)) [[unlikely]]
    return out_of_order();
  cur_ += length;
  state_ = after_;
  return true;
}

inline bool JsonReader::read_u64(std::uint64_t& out) {
  return ready_for_value() && (read_short_u64(out) || read_long_u64(out));
}

}  // namespace weighbridge::wire
