// SPDX-License-Identifier: Apache-2.0
// CBOR as RFC 8949 (and 7049) has it, pulled item by item out of bytes already in memory. Owns well-formedness, UTF-8
// and depth of hostile manifests; leaves duplicate keys (callers hold one sorted index; keys come as slices) and every
// meaning to its callers.
//
// How to read with it:
//   CborReader in(blob, limits.depth);
//   if (in.enter_map())
//     while (in.next_entry()) {
//       CborString key;
//       if (!in.read_text(key)) ...;                      // a key that is no text, or an error
//       if (cbor_text(key, scratch) == "offset") in.read_u64(offset); else in.skip_item(slice);
//     }
//   if (!in.finish()) report(in.error());
//
// Every pull answers true when it did its work. False means one of three things: the container ended (next_element,
// next_entry), the next item is of another kind (ok() stays true, nothing is consumed, so that the caller may report
// its own finding at offset() and skip_item()), or the bytes are malformed (ok() is false for good, error() says where
// and why). Calls out of order are bugs of the caller and throw Error of kind misuse.
//
// Integers may be wider than they need be, strings, arrays and maps of indefinite length. A declared length that the
// bytes left cannot hold is an error before anything is done with it. Time is linear, nothing is allocated for an item
// but one frame for a level of depth; arrays, maps and tags each count as a level. The bytes outlive what the reader
// gives.
#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

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
  length_too_large,  // offset of the head whose length or count passes what is left
  reserved_info,     // offset of a head with additional information 28 to 30, or 31 where no indefinite length exists
  unexpected_break,  // offset of a break where an item is due
  bad_chunk,         // offset of what stands in an indefinite string and is no definite string of its kind
  invalid_utf8,      // offset of the first byte of a text that is not UTF-8
  bad_simple,        // offset of a simple value below 32 in two bytes
  too_deep,          // offset of the array, map or tag that passes max_depth
  trailing_bytes,    // offset of the first byte after the item
};
std::string_view name(CborErrorCode) noexcept;

struct CborError {
  CborErrorCode code = CborErrorCode::none;
  std::size_t offset = 0;       // in the bytes
  std::string_view sentence{};  // lower case, no full stop; lives for ever
};

// A byte or text string.
struct CborString {
  std::size_t offset = 0;  // of raw
  std::string_view raw{};  // the content; of an indefinite string its chunks with their heads, without the break
  bool indefinite = false;
};
// Puts the content of an accepted string into `out`.
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
  // max_depth: arrays, maps and tags that may be open at once.
  explicit CborReader(std::string_view bytes, std::uint32_t max_depth = 64);
  explicit CborReader(std::span<const std::byte> bytes, std::uint32_t max_depth = 64)
      : CborReader(std::string_view(reinterpret_cast<const char*>(bytes.data()), bytes.size()), max_depth) {}

  bool ok() const noexcept { return error_.code == CborErrorCode::none; }
  const CborError& error() const noexcept { return error_; }
  // Where the next head starts.
  std::size_t offset() const noexcept { return static_cast<std::size_t>(cur_ - begin_); }
  std::size_t depth() const noexcept { return stack_.size(); }

  // Kind of the item that waits, told from its first byte; none when no item can start with it.
  CborKind peek();

  bool read_u64(std::uint64_t& out);    // an unsigned integer
  bool read_integer(CborInteger& out);  // either kind
  bool read_text(CborString& out);
  // Reads a text that is exactly `expected` (ASCII, at most 23 bytes) in one piece; any other item still waits. For
  // keys that a format defines: quicker than read_text and a comparison.
  bool accept_text(std::string_view expected);
  bool read_bytes(CborString& out);
  bool read_float(CborFloat& out);
  bool read_bool(bool& out);
  bool read_null();
  bool read_simple(std::uint8_t& out);  // undefined (23) and the unassigned ones, not false, true and null
  bool read_tag(std::uint64_t& out);    // the tagged item waits next, one level deeper until it is read

  bool enter_array();
  // True when another element waits. False when the array ended, which also leaves it.
  bool next_element();
  bool enter_map();
  // True when another key waits, and its value after it. False when the map ended, which also leaves it.
  bool next_entry();

  // Checks and passes the item that waits; `item` is its verbatim bytes.
  bool skip_item();
  bool skip_item(std::string_view& item);
  // Goes on after a broken entry: checks and passes what is left of every level deeper than `depth`, and the items that
  // still wait at `depth` (a value, or a key and its value), if any do.
  bool unwind(std::size_t depth);

  // The root item is complete and fills the bytes exactly. Misuse while the root item is not read to its end.
  bool finish();

 private:
  enum class Level : std::uint64_t { root, array, map, tag };
  // Level by level: elements or entries still to come, and items due before the next next_element() or next_entry().
  // The innermost level lives in the reader's own members, all of one width: a wide load of what was just stored in
  // parts, which compilers like to make of a Frame's copy or of two tests, stalls and costs as much as the rest of the
  // walk.
  struct Frame {
    std::uint64_t left;
    Level level;
    std::uint64_t waiting;
  };
  static constexpr std::uint64_t kIndefiniteCount = ~std::uint64_t{0};  // no definite count passes the bytes left
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
  std::vector<Frame> stack_{};  // the levels around
  CborError error_{};
};

// The pulls that a manifest of 100,000 objects makes millions of times, inline.

namespace cbor_detail {

constexpr char kBreak = '\xFF';
constexpr unsigned major_of(char byte) noexcept { return static_cast<unsigned char>(byte) >> 5; }
constexpr unsigned info_of(char byte) noexcept { return static_cast<unsigned char>(byte) & 31u; }

}  // namespace cbor_detail

// An item waits and its first byte is at cur_.
inline bool CborReader::ready() {
  if (!ok() || waiting_ == 0) [[unlikely]]
    return out_of_order();
  if (cur_ == end_) [[unlikely]]
    return fail_end();
  return true;
}

// Looks at the head at `at`, which is before end_.
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

// A tag is left with the item that it tags.
inline void CborReader::item_done() noexcept {
  --waiting_;
  while (level_ == Level::tag && waiting_ == 0) leave_level();
}

// Leaves an array or map; false, as the end of next_element() and next_entry().
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
