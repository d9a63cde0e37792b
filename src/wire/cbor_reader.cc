// SPDX-License-Identifier: Apache-2.0
// The CBOR pull parser. read_head() parses every head, and every length is compared with the remaining bytes once.
#include "wire/cbor_reader.h"

#include <bit>

#include "base/checked.h"
#include "base/fail.h"
#include "base/utf8.h"
#include "wire/half.h"

namespace weighbridge::wire {
namespace {

using namespace cbor_detail;

// Values of major type 7 (RFC 8949, section 3.3).
constexpr unsigned kFalse = 20, kTrue = 21, kNull = 22, kUndefined = 23, kSimpleByte = 24, kHalf = 25, kDouble = 27;
constexpr unsigned kIndefinite = 31;

inline bool is_ascii(std::string_view text) noexcept {
  constexpr std::uint64_t kHigh = 0x8080808080808080u;
  const char* const data = text.data();
  const std::size_t size = text.size();
  std::uint64_t seen = 0;
  if (size >= 8) {
    for (std::size_t at = 0; at < size - 8; at += 8) seen |= base::load_le<std::uint64_t>(data + at);
    seen |= base::load_le<std::uint64_t>(data + size - 8);  // overlaps the previous load
  } else if (size >= 4) {
    seen = base::load_le<std::uint32_t>(data) | base::load_le<std::uint32_t>(data + size - 4);
  } else {
    for (const char c : text) seen |= static_cast<unsigned char>(c);
  }
  return (seen & kHigh) == 0;
}

CborKind kind_of_other(unsigned info) noexcept {
  switch (info) {
    case kFalse:
    case kTrue: return CborKind::boolean;
    case kNull: return CborKind::null;
    case kUndefined: return CborKind::undefined;
    default: break;
  }
  return info >= kHalf && info <= kDouble ? CborKind::floating : CborKind::simple;
}

}  // namespace

std::string_view name(CborErrorCode code) noexcept {
  switch (code) {
    case CborErrorCode::none: return "none";
    case CborErrorCode::unexpected_end: return "unexpected-end";
    case CborErrorCode::length_too_large: return "length-too-large";
    case CborErrorCode::reserved_info: return "reserved-info";
    case CborErrorCode::unexpected_break: return "unexpected-break";
    case CborErrorCode::bad_chunk: return "bad-chunk";
    case CborErrorCode::invalid_utf8: return "invalid-utf8";
    case CborErrorCode::bad_simple: return "bad-simple";
    case CborErrorCode::too_deep: return "too-deep";
    case CborErrorCode::trailing_bytes: return "trailing-bytes";
  }
  return "none";
}

void concatenate(const CborString& string, std::string& out) {
  if (!string.indefinite) {
    out.assign(string.raw);
    return;
  }
  out.clear();
  // The chunks were checked when the string was read; a separate reader keeps this safe for other bytes too.
  std::string_view rest = string.raw;
  while (!rest.empty()) {
    const unsigned info = info_of(rest[0]);
    const std::size_t wide = info < kSimpleByte ? 0
                             : info <= kDouble  ? std::size_t{1} << (info - kSimpleByte)
                                                : rest.size();
    if (rest.size() - 1 < wide) return;
    std::uint64_t length = wide == 0 ? info : 0;
    for (std::size_t i = 1; i <= wide; ++i) length = length << 8 | static_cast<unsigned char>(rest[i]);
    rest.remove_prefix(1 + wide);
    if (rest.size() < length) return;
    out.append(rest.substr(0, base::to_size(length)));
    rest.remove_prefix(base::to_size(length));
  }
}

CborReader::CborReader(std::string_view bytes, std::uint32_t max_depth)
    : begin_(bytes.data()), cur_(bytes.data()), end_(bytes.data() + bytes.size()), max_depth_(max_depth) {}

bool CborReader::fail(CborErrorCode code, const char* at, std::string_view sentence) {
  error_ = {code, static_cast<std::size_t>(at - begin_), sentence};
  return false;
}

bool CborReader::fail_end() {
  return fail(CborErrorCode::unexpected_end, end_, "the CBOR bytes end in the middle of an item");
}

bool CborReader::out_of_order() {
  if (ok()) base::misuse("cbor-order", "a CBOR item was asked for where none of its kind may stand");
  return false;
}

// The next item is of another kind than requested, or there is none.
bool CborReader::wrong_kind() {
  peek();
  return false;
}

CborKind CborReader::peek() {
  if (!ready()) return CborKind::none;
  const unsigned major = major_of(*cur_), info = info_of(*cur_);
  if (*cur_ == kBreak) {
    fail(CborErrorCode::unexpected_break, cur_, "a CBOR break is where an item is expected");
    return CborKind::none;
  }
  Head head;
  if (info > kDouble && !read_head(cur_, head)) return CborKind::none;
  return major == kOther ? kind_of_other(info) : static_cast<CborKind>(major);
}

bool CborReader::read_wide_head(const char* at, Head& head) {
  const char* const from = at + 1;
  if (head.info > kDouble) {
    const bool may_be_indefinite = head.major >= kBytes && head.major <= kMap;
    if (head.info != kIndefinite || !may_be_indefinite)
      return fail(CborErrorCode::reserved_info, at, "a CBOR head uses additional information that is reserved");
    head.after = from;
    return true;
  }
  const std::size_t size = std::size_t{1} << (head.info - kSimpleByte);
  if (left(from) < size) return fail_end();
  head.argument = cbor_detail::load_argument(from, size);
  head.after = from + size;
  return true;
}

bool CborReader::read_integer(CborInteger& out) {
  if (!ready()) return false;
  if (major_of(*cur_) > kNegative) return wrong_kind();
  Head head;
  if (!read_head(cur_, head)) return false;
  out = {head.major == kNegative, head.argument};
  cur_ = head.after;
  item_done();
  return true;
}

inline bool CborReader::check_text(std::string_view text) {
  if (is_ascii(text)) return true;
  const std::size_t bad = base::find_invalid_utf8(text);
  if (bad == std::string_view::npos) return true;
  return fail(CborErrorCode::invalid_utf8, text.data() + bad, "a CBOR text holds a byte that is not valid UTF-8");
}

inline bool CborReader::read_string(unsigned major, CborString& out) {
  if (!ready()) return false;
  if (major_of(*cur_) != major) return wrong_kind();
  Head head;
  if (!read_head(cur_, head)) return false;
  if (head.indefinite()) {
    if (!read_chunks(major, head, out)) return false;
  } else {
    if (head.argument > left(head.after))
      return fail(CborErrorCode::length_too_large, cur_,
                  "a CBOR string is declared longer than the bytes that are left");
    const std::string_view content(head.after, base::to_size(head.argument));
    if (major == kText && !check_text(content)) return false;
    out.offset = static_cast<std::size_t>(head.after - begin_);
    out.raw = content;
    out.indefinite = false;
    cur_ = head.after + content.size();
  }
  item_done();
  return true;
}

bool CborReader::read_chunks(unsigned major, const Head& head, CborString& out) {
  const char* at = head.after;
  while (true) {
    if (at == end_) return fail_end();
    if (*at == kBreak) break;
    Head chunk;
    if (major_of(*at) != major || info_of(*at) == kIndefinite)
      return fail(CborErrorCode::bad_chunk, at,
                  "an indefinite CBOR string holds an item that is not a definite string of its kind");
    if (!read_head(at, chunk)) return false;
    if (chunk.argument > left(chunk.after))
      return fail(CborErrorCode::length_too_large, at, "a CBOR chunk is declared longer than the bytes that are left");
    if (major == kText && !check_text({chunk.after, base::to_size(chunk.argument)})) return false;
    at = chunk.after + chunk.argument;
  }
  out.offset = static_cast<std::size_t>(head.after - begin_);
  out.raw = std::string_view(head.after, static_cast<std::size_t>(at - head.after));
  out.indefinite = true;
  cur_ = at + 1;
  return true;
}

bool CborReader::read_text(CborString& out) { return read_string(kText, out); }
bool CborReader::read_bytes(CborString& out) { return read_string(kBytes, out); }

bool CborReader::read_float(CborFloat& out) {
  if (peek() != CborKind::floating) return false;
  Head head;
  if (!read_head(cur_, head)) return false;
  out.bits = head.argument;
  out.width = 2u << (head.info - kHalf);
  if (out.width == 2)
    out.value = half_to_double(static_cast<std::uint16_t>(out.bits));
  else if (out.width == 4)
    out.value = static_cast<double>(std::bit_cast<float>(static_cast<std::uint32_t>(out.bits)));
  else
    out.value = std::bit_cast<double>(out.bits);
  cur_ = head.after;
  item_done();
  return true;
}

bool CborReader::read_bool(bool& out) {
  if (peek() != CborKind::boolean) return false;
  out = info_of(*cur_) == kTrue;
  ++cur_;
  item_done();
  return true;
}

bool CborReader::read_null() {
  if (peek() != CborKind::null) return false;
  ++cur_;
  item_done();
  return true;
}

bool CborReader::read_simple(std::uint8_t& out) {
  const CborKind kind = peek();
  if (kind != CborKind::simple && kind != CborKind::undefined) return false;
  Head head;
  if (!read_head(cur_, head)) return false;
  if (head.info == kSimpleByte && head.argument < 32)
    return fail(CborErrorCode::bad_simple, cur_, "a CBOR simple value below 32 may not take two bytes");
  out = static_cast<std::uint8_t>(head.argument);
  cur_ = head.after;
  item_done();
  return true;
}

// Begins the level whose head is at cur_.
inline bool CborReader::open(Level level, const Head& head) {
  if (stack_.size() >= max_depth_)
    return fail(CborErrorCode::too_deep, cur_, "CBOR arrays, maps and tags are nested deeper than the limit");
  stack_.push_back({left_, level_, waiting_ - 1});
  left_ = head.indefinite() ? kIndefiniteCount : head.argument;
  level_ = level;
  waiting_ = level == Level::tag ? 1 : 0;
  cur_ = head.after;
  return true;
}

bool CborReader::read_tag(std::uint64_t& out) {
  if (!ready()) return false;
  if (major_of(*cur_) != kTag) return wrong_kind();
  Head head;
  if (!read_head(cur_, head) || !open(Level::tag, head)) return false;
  out = head.argument;
  return true;
}

inline bool CborReader::enter(Level level) {
  if (!ready()) return false;
  if (major_of(*cur_) != (level == Level::map ? kMap : kArray)) return wrong_kind();
  Head head;
  if (!read_head(cur_, head)) return false;
  // Every item needs at least one byte.
  const std::size_t maximum = left(head.after) / (level == Level::map ? 2 : 1);
  if (!head.indefinite() && head.argument > maximum)
    return fail(CborErrorCode::length_too_large, cur_, "a CBOR array or map declares more items than bytes are left");
  return open(level, head);
}

bool CborReader::enter_array() { return enter(Level::array); }
bool CborReader::enter_map() { return enter(Level::map); }

// Skips a scalar, or enters a level.
bool CborReader::consume_head() {
  CborInteger integer;
  CborString string;
  CborFloat number;
  std::uint64_t tag = 0;
  std::uint8_t simple = 0;
  bool truth = false;
  switch (peek()) {
    case CborKind::unsigned_integer:
    case CborKind::negative_integer: return read_integer(integer);
    case CborKind::bytes: return read_bytes(string);
    case CborKind::text: return read_text(string);
    case CborKind::array: return enter_array();
    case CborKind::map: return enter_map();
    case CborKind::tag: return read_tag(tag);
    case CborKind::boolean: return read_bool(truth);
    case CborKind::null: return read_null();
    case CborKind::undefined:
    case CborKind::simple: return read_simple(simple);
    case CborKind::floating: return read_float(number);
    case CborKind::none: break;
  }
  return false;
}

// One step forward inside the innermost level.
void CborReader::step() {
  if (waiting_ > 0)
    consume_head();
  else if (level_ == Level::map)
    next_entry();
  else
    next_element();
}

bool CborReader::unwind(std::size_t depth) {
  while (ok() && (stack_.size() > depth || (stack_.size() == depth && waiting_ > 0))) step();
  return ok();
}

bool CborReader::skip_item() {
  const std::size_t depth = stack_.size();
  if (!consume_head()) return false;
  while (ok() && stack_.size() > depth) step();
  return ok();
}

bool CborReader::skip_item(std::string_view& item) {
  if (!ready()) return false;
  const char* const from = cur_;
  if (!skip_item()) return false;
  item = {from, static_cast<std::size_t>(cur_ - from)};
  return true;
}

bool CborReader::finish() {
  if (!ok()) return false;
  if (!stack_.empty() || waiting_ != 0)
    base::misuse("cbor-order", "CBOR bytes were finished before their item was read");
  if (cur_ != end_) return fail(CborErrorCode::trailing_bytes, cur_, "bytes follow the CBOR item");
  return true;
}

}  // namespace weighbridge::wire
