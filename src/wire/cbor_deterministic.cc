// SPDX-License-Identifier: Apache-2.0
#include "wire/cbor_writer.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <vector>

#include "base/utf8.h"
#include "wire/cbor_reader.h"
#include "wire/half.h"

namespace weighbridge::wire {
namespace {

using namespace cbor_detail;
using Kind = DeterministicFault::Kind;

constexpr std::uint16_t kNan = 0x7E00;

// Whether a half has this value, which is not NaN.
bool fits_half(double value) noexcept { return half_to_double(half_bits(value)) == value; }

class Checker {
 public:
  Checker(std::string_view bytes, std::uint32_t max_depth) : bytes_(bytes), max_depth_(max_depth) {}

  std::optional<DeterministicFault> run() {
    do {
      if (!levels_.empty() && levels_.back().left == 0) {
        levels_.pop_back();
        if (!ended()) return fault_;
        continue;
      }
      if (!item()) return fault_;
    } while (!levels_.empty());
    if (at_ != bytes_.size()) {
      fail(Kind::malformed, at_, "bytes follow the item");
      return fault_;
    }
    return std::nullopt;
  }

 private:
  struct Level {
    std::uint64_t left = 0;  // items still to come
    bool map = false;
    std::size_t key_begin = 0;    // of the item that is being read, if it is a key
    std::string_view last_key{};  // with its head
    bool has_key = false, is_key = false;
  };

  bool fail(Kind kind, std::size_t offset, std::string_view sentence) {
    fault_ = {kind, offset, sentence};
    return false;
  }

  // After an item has ended: a key must be greater than the one before it.
  bool ended() {
    if (levels_.empty() || !levels_.back().is_key) return true;
    Level& level = levels_.back();
    level.is_key = false;
    const std::string_view key = bytes_.substr(level.key_begin, at_ - level.key_begin);
    if (level.has_key && key <= level.last_key) {
      return key == level.last_key ? fail(Kind::duplicate_key, level.key_begin, "a map has the same key twice")
                                   : fail(Kind::not_deterministic, level.key_begin,
                                          "the keys of a map are not in the order of their bytes");
    }
    level.last_key = key;
    level.has_key = true;
    return true;
  }

  bool item() {
    const std::size_t begin = at_;
    if (!levels_.empty()) {
      Level& level = levels_.back();
      level.is_key = level.map && level.left % 2 == 0;
      level.key_begin = begin;
      --level.left;
    }
    std::uint64_t argument = 0;
    if (at_ == bytes_.size()) return fail(Kind::malformed, at_, "the bytes end inside an item");
    const auto first = static_cast<unsigned char>(bytes_[at_]);
    const unsigned major = first >> 5, info = first & 31u;
    if (info > 27) return fail(Kind::malformed, at_, "an item has an indefinite length or a reserved head");
    const std::size_t wide = info < 24 ? 0 : std::size_t{1} << (info - 24);
    if (bytes_.size() - at_ - 1 < wide) return fail(Kind::malformed, bytes_.size(), "the bytes end inside an item");
    ++at_;
    argument = info;
    if (wide > 0) {
      argument = 0;
      for (std::size_t i = 0; i < wide; ++i) argument = argument << 8 | static_cast<unsigned char>(bytes_[at_ + i]);
      at_ += wide;
    }
    if (major == kOther) return other(begin, info, argument) && ended();
    if (major == kTag) return fail(Kind::malformed, begin, "an item has a tag");
    if (wide > 0 && argument <= (wide == 1 ? 23 : (std::uint64_t{1} << (4 * wide)) - 1))
      return fail(Kind::not_deterministic, begin, "a number or length is wider than needed");
    const std::size_t left = bytes_.size() - at_;
    if (major == kArray || major == kMap) {
      if (argument > (major == kMap ? left / 2 : left))
        return fail(Kind::malformed, begin, "a count exceeds the remaining bytes");
      if (levels_.size() == max_depth_) return fail(Kind::too_deep, begin, "arrays and maps nest too deep");
      levels_.push_back({.left = major == kMap ? 2 * argument : argument, .map = major == kMap});
      return true;
    }
    if (major < 2) return ended();
    if (argument > left) return fail(Kind::malformed, begin, "a length exceeds the remaining bytes");
    const std::string_view content = bytes_.substr(at_, static_cast<std::size_t>(argument));  // at most `left`
    if (major == kText && !base::is_utf8(content)) return fail(Kind::malformed, begin, "a text is not UTF-8");
    at_ += content.size();
    return ended();
  }

  bool other(std::size_t begin, unsigned info, std::uint64_t bits) {
    constexpr std::string_view kWide = "a floating-point number is wider than needed, or another NaN than 0x7e00";
    if (info >= 20 && info <= 22) return true;  // false, true, null
    bool good = false;
    if (info == 25) {
      good = !std::isnan(half_to_double(static_cast<std::uint16_t>(bits))) || bits == kNan;
    } else if (info == 26) {
      const auto value = static_cast<double>(std::bit_cast<float>(static_cast<std::uint32_t>(bits)));
      good = !std::isnan(value) && !fits_half(value);
    } else if (info == 27) {
      const auto value = std::bit_cast<double>(bits);
      const bool large = std::fabs(value) > static_cast<double>(std::numeric_limits<float>::max());
      good = !std::isnan(value) && !std::isinf(value) &&
             (large || static_cast<double>(static_cast<float>(value)) != value);
    } else {
      return fail(Kind::malformed, begin, "an item is undefined or another simple value");
    }
    return good || fail(Kind::not_deterministic, begin, kWide);
  }

  std::string_view bytes_;
  const std::size_t max_depth_;
  std::size_t at_ = 0;
  std::vector<Level> levels_;
  DeterministicFault fault_{};
};

// Copies the next item. False if the item has no such form.
bool copy(CborReader& in, CborWriter& out) {
  switch (in.peek()) {
    case CborKind::unsigned_integer:
    case CborKind::negative_integer: {
      CborInteger value;
      if (!in.read_integer(value)) return false;
      if (value.negative)
        out.negative(value.argument);
      else
        out.u64(value.argument);
      return true;
    }
    case CborKind::bytes:
    case CborKind::text: {
      const bool text = in.peek() == CborKind::text;
      CborString string;
      std::string scratch;
      if (!(text ? in.read_text(string) : in.read_bytes(string))) return false;
      const std::string_view content = cbor_text(string, scratch);
      if (text)
        out.text(content);
      else
        out.bytes(std::as_bytes(std::span(content)));
      return true;
    }
    case CborKind::boolean: {
      bool value = false;
      if (!in.read_bool(value)) return false;
      out.boolean(value);
      return true;
    }
    case CborKind::null: out.null(); return in.read_null();
    case CborKind::floating: {
      CborFloat value;
      if (!in.read_float(value)) return false;
      if (std::isnan(value.value))
        out.float16(kNan);
      else
        out.floating(value.value);
      return true;
    }
    case CborKind::array: {
      std::uint64_t count = 0;
      CborWriter elements;
      in.enter_array();
      for (; in.next_element(); ++count)
        if (!copy(in, elements)) return false;
      out.array(count);
      out.raw(elements.data());
      return in.ok();
    }
    case CborKind::map: {
      std::vector<std::pair<std::string, std::string>> entries;
      in.enter_map();
      while (in.next_entry()) {
        CborWriter key, value;
        if (!copy(in, key) || !copy(in, value)) return false;
        entries.emplace_back(key.take(), value.take());
      }
      std::ranges::sort(entries);
      if (std::ranges::adjacent_find(entries, {}, [](const auto& e) { return e.first; }) != entries.end()) return false;
      out.map(entries.size());
      for (const auto& [key, value] : entries) {
        out.raw(key);
        out.raw(value);
      }
      return in.ok();
    }
    default: return false;
  }
}

}  // namespace

std::optional<DeterministicFault> check_deterministic(std::string_view bytes, std::uint32_t max_depth) {
  return Checker(bytes, max_depth).run();
}

std::optional<std::string> make_deterministic(std::string_view item, std::uint32_t max_depth) {
  CborReader in(item, max_depth);
  CborWriter out;
  if (!copy(in, out) || !in.finish()) return std::nullopt;
  return out.take();
}

}  // namespace weighbridge::wire
