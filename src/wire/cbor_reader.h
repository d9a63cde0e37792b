// SPDX-License-Identifier: Apache-2.0
// A pull parser for CBOR (RFC 8949 and 7049) over bytes in memory. Checks well-formedness, UTF-8 and nesting depth.
// Callers check duplicate keys (they keep a sorted index; keys are slices) and interpret the items.
//
// Usage:
//   CborReader in(blob, limits.depth);
//   if (in.enter_map())
//     while (in.next_entry()) {
//       CborString key;
//       if (!in.read_text(key)) ...;                      // a key that is not text, or an error
//       if (cbor_text(key, scratch) == "offset") in.read_u64(offset); else in.skip_item(slice);
//     }
//   if (!in.finish()) report(in.error());
//
// Every pull returns true on success. False means one of three things: the container ended (next_element, next_entry);
// the next item is of another kind (ok() stays true and nothing is consumed, so the caller may report a finding at
// offset() and skip_item()); or the bytes are malformed (ok() stays false, and error() says where and why). Calls out
// of order are bugs of the caller and throw Error{misuse}.
//
// Integers may be wider than needed; strings, arrays and maps may have indefinite length. A declared length that
// exceeds the remaining bytes is an error before it is used. Time is linear, and only a new level allocates (one
// frame); arrays, maps and tags each count as a level. Results refer to the bytes, which must outlive them.
#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/endian.h"

namespace weighbridge::wire {

enum class CborKind : std::uint8_t {
  unsigned_integer,
  negative_integer,
  bytes,
  text,
  array,
  map,
  tag,
  boolean,
  null,
  undefined,
  simple,
  floating,
  none
};

enum class CborErrorCode : std::uint8_t {
  none,
  unexpected_end,    // the bytes end inside an item; offset is their size
  length_too_large,  // offset of the head whose length or count exceeds the remaining bytes
  reserved_info,     // offset of a head with additional information 28 to 30, or an invalid 31
  unexpected_break,  // offset of a break in place of an item
  bad_chunk,         // offset of an invalid chunk in an indefinite string
  invalid_utf8,      // offset of the first byte of a text that is not UTF-8
  bad_simple,        // offset of a simple value below 32 in two bytes
  too_deep,          // offset of the array, map or tag that exceeds max_depth
  trailing_bytes,    // offset of the first byte after the item
};
std::string_view name(CborErrorCode) noexcept;

struct CborError {
  CborErrorCode code = CborErrorCode::none;
  std::size_t offset = 0;       // in the bytes
  std::string_view sentence{};  // lower case, no full stop; static
};

// A byte or text string.
struct CborString {
  std::size_t offset = 0;  // of raw
  std::string_view raw{};  // the content; for an indefinite string, its chunks with heads, without the break
  bool indefinite = false;
};
// Writes the content of an accepted string to `out`.
void concatenate(const CborString& string, std::string& out);
// The content: a slice of the bytes, or `scratch` for an indefinite string.
inline std::string_view cbor_text(const CborString& string, std::string& scratch) {
  if (!string.indefinite) return string.raw;
  concatenate(string, scratch);
  return scratch;
}

// argument, or -1 - argument: from -2^64 to 2^64 - 1.
struct CborInteger {
  bool negative = false;
  std::uint64_t argument = 0;
  std::optional<std::int64_t> as_i64() const noexcept {
    if (argument > 0x7FFF'FFFF'FFFF'FFFFu) return std::nullopt;
    return static_cast<std::int64_t>(negative ? ~argument : argument);
  }
};

struct CborFloat {
  double value = 0;        // exact for every width
  std::uint64_t bits = 0;  // as stored
  unsigned width = 0;      // 2, 4 or 8 bytes
};

class CborReader {
 public:
  // max_depth: maximum number of open arrays, maps and tags.
  explicit CborReader(std::string_view bytes, std::uint32_t max_depth = 64);
  explicit CborReader(std::span<const std::byte> bytes, std::uint32_t max_depth = 64)
      : CborReader(std::string_view(reinterpret_cast<const char*>(bytes.data()), bytes.size()), max_depth) {}

  bool ok() const noexcept { return error_.code == CborErrorCode::none; }
  const CborError& error() const noexcept { return error_; }
  // Where the next head starts.
  std::size_t offset() const noexcept { return static_cast<std::size_t>(cur_ - begin_); }
  std::size_t depth() const noexcept { return stack_.size(); }

  // Kind of the next item, from its first byte; `none` if no item can start with it.
  CborKind peek();

  bool read_u64(std::uint64_t& out);    // an unsigned integer
  bool read_integer(CborInteger& out);  // either kind
  bool read_text(CborString& out);
  // Reads a text that equals `expected` (ASCII, at most 23 bytes) in one piece; consumes nothing else. For keys that a
  // format defines: faster than read_text() and a comparison.
  bool accept_text(std::string_view expected);
  bool read_bytes(CborString& out);
  bool read_float(CborFloat& out);
  bool read_bool(bool& out);
  bool read_null();
  bool read_simple(std::uint8_t& out);  // undefined (23) and unassigned values; not false, true and null
  bool read_tag(std::uint64_t& out);    // the tagged item is next, one level deeper until it is read

  bool enter_array();
  // True if there is another element. At the end of the array, leaves it and returns false.
  bool next_element();
  bool enter_map();
  // True if there is another key with its value. At the end of the map, leaves it and returns false.
  bool next_entry();

  // Fast path for callers that parse an item's usual spelling themselves: rest() is the bytes from the next item on
  // (empty if none is due, or if the item may not nest `levels` deep). A caller that parsed a whole item from it then
  // calls take(length).
  std::string_view rest(std::size_t levels) const noexcept;
  bool take(std::size_t length);

  // Checks and skips the next item; `item` is its verbatim bytes.
  bool skip_item();
  bool skip_item(std::string_view& item);
  // Continues after an invalid entry: checks and skips the rest of every level deeper than `depth`, and the items still
  // due at `depth` (a value, or a key and its value), if any.
  bool unwind(std::size_t depth);

  // Checks that nothing follows the root item. Error{misuse} if the root item has not been read to its end.
  bool finish();

 private:
  enum class Level : std::uint64_t { root, array, map, tag };
  // For each level: elements or entries still to come, and items due before the next next_element() or next_entry().
  // The innermost level is in the reader's own members, all of one width. Compilers turn the copy of a Frame, or two
  // tests on it, into a wide load of parts just stored; that stalls and costs as much as the rest of the walk.
  struct Frame {
    std::uint64_t left;
    Level level;
    std::uint64_t waiting;
  };
  // above any definite count, which the remaining bytes limit
  static constexpr std::uint64_t kIndefiniteCount = ~std::uint64_t{0};
  struct Head {
    const char* after = nullptr;
    std::uint64_t argument = 0;
    unsigned major = 0;
    unsigned info = 0;
    bool indefinite() const noexcept { return info == 31; }
  };

  bool fail(CborErrorCode code, const char* at, std::string_view sentence);
  bool fail_end();
  bool wrong_kind();
  bool out_of_order();
  std::size_t left(const char* at) const noexcept { return static_cast<std::size_t>(end_ - at); }

  bool ready();
  bool read_head(const char* at, Head& head);
  bool read_wide_head(const char* at, Head& head);
  void item_done() noexcept;
  void leave_level() noexcept;
  bool open(Level level, const Head& head);
  bool enter(Level level);
  bool next(Level level, std::uint64_t items);
  bool close();
  bool read_string(unsigned major, CborString& out);
  bool read_chunks(unsigned major, const Head& head, CborString& out);
  bool check_text(std::string_view text);
  bool consume_head();
  void step();

  const char* begin_;
  const char* cur_;
  const char* end_;
  std::size_t max_depth_;
  std::uint64_t left_ = 0;
  Level level_ = Level::root;
  std::uint64_t waiting_ = 1;
  std::vector<Frame> stack_{};  // the enclosing levels
  CborError error_{};
};

// Inline, because a manifest of 100,000 objects calls these millions of times.

namespace cbor_detail {

// Major types (RFC 8949, section 3.1).
constexpr unsigned kNegative = 1, kBytes = 2, kText = 3, kArray = 4, kMap = 5, kTag = 6, kOther = 7;
constexpr char kBreak = '\xFF';
constexpr unsigned major_of(char byte) noexcept { return static_cast<unsigned char>(byte) >> 5; }
constexpr unsigned info_of(char byte) noexcept { return static_cast<unsigned char>(byte) & 31u; }
// The argument of a head in 1, 2, 4 or 8 bytes after the first one.
inline std::uint64_t load_argument(const char* from, std::size_t size) noexcept {
  switch (size) {
    case 1: return static_cast<unsigned char>(*from);
    case 2: return base::load_be<std::uint16_t>(from);
    case 4: return base::load_be<std::uint32_t>(from);
    default: return base::load_be<std::uint64_t>(from);
  }
}

}  // namespace cbor_detail

// Reads the unsigned integer at `at`. Returns how many bytes it has; 0 if another item is there or the bytes end.
inline std::size_t cbor_u64(const char* at, const char* end, std::uint64_t& out) noexcept {
  if (at == end || cbor_detail::major_of(*at) != 0) return 0;
  const unsigned info = cbor_detail::info_of(*at);
  if (info < 24) {
    out = info;
    return 1;
  }
  if (info > 27) return 0;
  const std::size_t size = std::size_t{1} << (info - 24);
  if (static_cast<std::size_t>(end - at) <= size) return 0;
  out = cbor_detail::load_argument(at + 1, size);
  return 1 + size;
}

// Whether an item is due; its first byte is then at cur_.
inline bool CborReader::ready() {
  if (!ok() || waiting_ == 0) [[unlikely]]
    return out_of_order();
  if (cur_ == end_) [[unlikely]]
    return fail_end();
  return true;
}

// Parses the head at `at`, which is before end_.
inline bool CborReader::read_head(const char* at, Head& head) {
  head.major = cbor_detail::major_of(*at);
  head.info = cbor_detail::info_of(*at);
  if (head.info < 24) {
    head.argument = head.info;
    head.after = at + 1;
    return true;
  }
  return read_wide_head(at, head);
}

inline void CborReader::leave_level() noexcept {
  const Frame& outer = stack_.back();
  left_ = outer.left;
  level_ = outer.level;
  waiting_ = outer.waiting;
  stack_.pop_back();
}

// After an item, leaves the tags around it.
inline void CborReader::item_done() noexcept {
  --waiting_;
  while (level_ == Level::tag && waiting_ == 0) leave_level();
}

// Leaves an array or map. Returns false, so that next_element() and next_entry() can return it.
inline bool CborReader::close() {
  leave_level();
  while (level_ == Level::tag && waiting_ == 0) leave_level();
  return false;
}

inline bool CborReader::next(Level level, std::uint64_t items) {
  if (!ok() || level_ != level || waiting_ != 0) [[unlikely]]
    return out_of_order();
  if (left_ == kIndefiniteCount) {
    if (cur_ == end_) return fail_end();
    if (*cur_ == cbor_detail::kBreak) {
      ++cur_;
      return close();
    }
  } else {
    if (left_ == 0) return close();
    --left_;
  }
  waiting_ = items;
  return true;
}

inline bool CborReader::next_element() { return next(Level::array, 1); }
inline bool CborReader::next_entry() { return next(Level::map, 2); }

inline bool CborReader::accept_text(std::string_view expected) {
  if (!ok() || waiting_ == 0 || left(cur_) <= expected.size()) return false;
  if (static_cast<unsigned char>(*cur_) != 0x60u + expected.size()) return false;
  if (__builtin_memcmp(cur_ + 1, expected.data(), expected.size()) != 0) return false;
  cur_ += 1 + expected.size();
  item_done();
  return true;
}

inline std::string_view CborReader::rest(std::size_t levels) const noexcept {
  if (!ok() || waiting_ == 0 || stack_.size() > max_depth_ || max_depth_ - stack_.size() < levels) return {};
  return {cur_, left(cur_)};
}

inline bool CborReader::take(std::size_t length) {
  if (!ok() || waiting_ == 0 || length > left(cur_)) [[unlikely]]
    return out_of_order();
  cur_ += length;
  item_done();
  return true;
}

inline bool CborReader::read_u64(std::uint64_t& out) {
  if (!ready()) return false;
  if (cbor_detail::major_of(*cur_) != 0) return wrong_kind();
  Head head;
  if (!read_head(cur_, head)) return false;
  out = head.argument;
  cur_ = head.after;
  item_done();
  return true;
}

}  // namespace weighbridge::wire
