// SPDX-License-Identifier: Apache-2.0
#include "corpus/mutate.h"

#include <algorithm>
#include <bit>
#include <string_view>
#include <vector>

namespace weighbridge::test {
namespace {

constexpr std::uint64_t k31 = std::uint64_t{1} << 31, k32 = std::uint64_t{1} << 32, k63 = std::uint64_t{1} << 63;
constexpr std::uint64_t kAwkward[] = {0,
                                      1,
                                      2,
                                      3,
                                      7,
                                      63,
                                      64,
                                      65,
                                      127,
                                      128,
                                      255,
                                      256,
                                      65535,
                                      65536,
                                      k31,
                                      k31 - 1,
                                      k32,
                                      k32 + 1,
                                      k32 - 1,
                                      k31 + 1,
                                      k63 - 1,
                                      k63,
                                      k63 + 1,
                                      k32 << 8,
                                      1000,
                                      UINT64_MAX - 63,
                                      UINT64_MAX - 1,
                                      UINT64_MAX};

constexpr std::string_view kNumberTexts[] = {"0",
                                             "1",
                                             "-1",
                                             "-0",
                                             "1e2",
                                             "1.5",
                                             "1E400",
                                             "00",
                                             "2147483648",
                                             "4294967295",
                                             "4294967296",
                                             "9007199254740993",
                                             "9223372036854775807",
                                             "9223372036854775808",
                                             "18446744073709551615",
                                             "18446744073709551616",
                                             "99999999999999999999999999",
                                             "null",
                                             "true",
                                             "\"8\"",
                                             "[8]"};

constexpr std::string_view kJsonTokens[] = {
    "\"",   "{",    "}",  "[",       "]", ",",  ":", "\\",   "\\u0000",  "\\ud800", "\\\"",         "null",
    "true", "[[]]", "{}", "\"\":0,", " ", "\n", "/", "\x01", "\xc3\xa9", "\xff",    "\xed\xa0\x80", "\xf4\x90\x80\x80",
    "-",    ".",    "e",  "../"};

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_of_word(char c) { return is_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }

std::uint64_t load(const std::string& bytes, std::size_t at, std::size_t width, bool big) {
  std::uint64_t out = 0;
  for (std::size_t i = 0; i < width; ++i) {
    const std::size_t from = big ? i : width - 1 - i;
    out = out << 8 | static_cast<unsigned char>(bytes[at + from]);
  }
  return out;
}

void store(std::string& bytes, std::size_t at, std::size_t width, bool big, std::uint64_t value) {
  for (std::size_t i = 0; i < width; ++i)
    bytes[at + (big ? width - 1 - i : i)] = static_cast<char>(value >> (8 * i) & 0xFF);
}

// The positions at which f finds a token of its kind.
template <class F> std::vector<std::size_t> places(const std::string& bytes, F f) {
  std::vector<std::size_t> out;
  for (std::size_t i = 0; i < bytes.size(); ++i)
    if (f(i)) out.push_back(i);
  return out;
}

std::string cbor_head(unsigned major, std::uint64_t argument, std::size_t width) {
  std::string out(1 + width, '\0');
  const unsigned info =
      width == 0 ? static_cast<unsigned>(argument & 31) : 23 + static_cast<unsigned>(std::countr_zero(width)) + 1;
  out[0] = static_cast<char>(major << 5 | info);
  if (width != 0) store(out, 1, width, true, argument);
  return out;
}

}  // namespace

// splitmix64
std::uint64_t Mutator::below(std::uint64_t end) {
  state_ += 0x9e3779b97f4a7c15U;
  std::uint64_t z = state_;
  z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9U;
  z = (z ^ z >> 27) * 0x94d049bb133111ebU;
  return (z ^ z >> 31) % end;
}

Mutator::Block Mutator::block(const std::string& bytes, std::size_t maximum) {
  static constexpr std::size_t kAlignments[] = {1, 1, 4, 8, 32, 64};
  const std::size_t unit = pick(kAlignments);
  const std::size_t at = static_cast<std::size_t>(below(bytes.size())) / unit * unit;
  const std::size_t room = std::min(maximum, bytes.size() - at);
  const std::size_t size = one_in(4) ? 1 + static_cast<std::size_t>(below(room))
                                     : std::min(room, unit * (1 + static_cast<std::size_t>(below(8))));
  return {at, size};
}

std::uint64_t Mutator::awkward(const std::string& bytes, std::uint64_t now, std::size_t width) {
  switch (below(5)) {
    case 0: return bytes.size() - 1 + below(3);
    case 1: return now + (one_in(2) ? 1 : UINT64_MAX) * (one_in(2) ? 1 : 64);
    case 2: return now << below(8 * width);
    case 3:
      if (bytes.size() >= width)  // the value of another field
        return load(bytes, static_cast<std::size_t>(below(bytes.size() / width)) * width, width, false);
      [[fallthrough]];
    default: return pick(kAwkward);
  }
}

void Mutator::overwrite_field(std::string& bytes) {
  static constexpr std::size_t kWidths[] = {1, 2, 4, 4, 4, 8, 8, 8};
  const std::size_t width = std::min(pick(kWidths), std::bit_floor(bytes.size()));
  // Headers and indices are at the ends more often than payload is.
  const std::size_t near = std::min<std::size_t>(bytes.size(), 256);
  std::size_t at = static_cast<std::size_t>(below(one_in(2) ? near : bytes.size()));
  if (one_in(4)) at = bytes.size() - 1 - at;
  if (!one_in(4)) at = at / width * width;
  at = std::min(at, bytes.size() - width);
  const bool big = one_in(6);  // CBOR
  store(bytes, at, width, big, awkward(bytes, load(bytes, at, width, big), width));
}

void Mutator::change_block(std::string& bytes) {
  const Block from = block(bytes, kMaxBlock);
  const std::string text = bytes.substr(from.at, from.size);
  switch (below(8)) {
    case 0: bytes.erase(from.at, from.size); break;
    case 1: bytes.insert(from.at, text); break;
    case 2: bytes.resize(from.at); break;
    case 3:
      std::fill_n(bytes.begin() + static_cast<std::ptrdiff_t>(from.at), from.size, one_in(2) ? '\0' : '\xFF');
      break;
    case 4: {
      std::string more(1 + static_cast<std::size_t>(below(from.size)), '\0');
      if (one_in(2))
        for (char& c : more) c = static_cast<char>(below(256));
      bytes.insert(one_in(4) ? bytes.size() : from.at, more);
      break;
    }
    case 5: {  // swap the two blocks
      const Block to = block(bytes, from.size);
      for (std::size_t i = 0; i < to.size && i < from.size; ++i) std::swap(bytes[from.at + i], bytes[to.at + i]);
      break;
    }
    case 6: repeat(bytes); break;
    default: {  // copy over another block
      const Block to = block(bytes, from.size);
      bytes.replace(to.at, std::min(to.size, text.size()), text, 0, to.size);
    }
  }
}

void Mutator::repeat(std::string& bytes, const Block& what) {
  const std::string text = bytes.substr(what.at, what.size);
  std::string many;
  for (std::uint64_t left = 1 + below(std::min<std::uint64_t>(256, kMaxRepeated / text.size())); left > 0; --left)
    many += text;
  bytes.insert(what.at, many);
}

void Mutator::repeat(std::string& bytes) {
  if (bytes.empty()) return;
  Block what = block(bytes, kMaxBlock);
  if (one_in(2)) {  // the word there, so that a text stays what it is
    std::size_t end = what.at;
    while (what.at > 0 && is_of_word(bytes[what.at - 1])) --what.at;
    while (end < bytes.size() && is_of_word(bytes[end])) ++end;
    if (end > what.at) what.size = std::min(end - what.at, kMaxBlock);
  }
  repeat(bytes, what);
}

void Mutator::splice(std::string& bytes, const std::string& donor) {
  if (donor.empty()) return;
  const Block from = block(donor, one_in(2) ? donor.size() : 256);
  switch (below(3)) {
    case 0: {  // the start of one, the end of the other
      const std::size_t cut = static_cast<std::size_t>(below(donor.size()));
      bytes = bytes.substr(0, one_in(2) ? cut : static_cast<std::size_t>(below(bytes.size() + 1))) + donor.substr(cut);
      break;
    }
    case 1: bytes.insert(static_cast<std::size_t>(below(bytes.size() + 1)), donor, from.at, from.size); break;
    default:  // the same position in both
      if (from.at < bytes.size()) bytes.replace(from.at, from.size, donor, from.at, from.size);
  }
}

void Mutator::change_number_text(std::string& bytes) {
  const auto starts =
      places(bytes, [&](std::size_t i) { return is_digit(bytes[i]) && (i == 0 || !is_digit(bytes[i - 1])); });
  if (starts.empty()) return overwrite_field(bytes);
  const std::size_t at = pick(starts);
  std::size_t end = at;
  while (end < bytes.size() && is_digit(bytes[end])) ++end;
  if (one_in(3)) {
    const std::string other = std::to_string(awkward(bytes, end - at, 8));
    bytes.replace(at, end - at, other);
  } else {
    bytes.replace(at, end - at, pick(kNumberTexts));
  }
}

void Mutator::change_json(std::string& bytes) {
  const auto marks = places(
      bytes, [&](std::size_t i) { return std::string_view("\"{}[],:").find(bytes[i]) != std::string_view::npos; });
  if (marks.empty()) return overwrite_field(bytes);
  const std::size_t at = pick(marks), other = pick(marks);
  const auto [low, high] = std::minmax(at, other);
  switch (below(6)) {
    case 0: bytes.erase(at, 1); break;
    case 1: bytes.insert(at, pick(kJsonTokens)); break;
    case 2: bytes.replace(at, 1, pick(kJsonTokens)); break;
    case 3: bytes.insert(at + 1, static_cast<std::size_t>(1 + below(200)), one_in(2) ? '[' : '{'); break;
    case 4:  // duplicate the text between two marks: repeated keys
      bytes.insert(low, bytes, low, std::min(high - low, kMaxBlock));
      break;
    default: bytes.erase(low, std::min(high - low, kMaxBlock));
  }
}

void Mutator::change_cbor(std::string& bytes) {
  const std::size_t at = static_cast<std::size_t>(below(bytes.size()));
  const auto major = static_cast<unsigned>(below(8));
  static constexpr std::size_t kWidths[] = {0, 0, 1, 2, 4, 8};
  const std::string head = cbor_head(major, awkward(bytes, static_cast<unsigned char>(bytes[at]), 8), pick(kWidths));
  switch (below(4)) {
    case 0: bytes.replace(at, 1, head); break;
    case 1: bytes.insert(at, head); break;
    case 2: {  // nesting, with and without counts
      static constexpr char kOpening[] = {'\x81', '\xa1', '\xc1', '\x9f', '\xbf', '\x7f', '\x5f'};
      bytes.insert(at, static_cast<std::size_t>(1 + below(200)), pick(kOpening));
      break;
    }
    default: bytes[at] = static_cast<char>((static_cast<unsigned char>(bytes[at]) & 0xE0) | below(32));
  }
}

void Mutator::change(std::string& bytes, const std::string& donor) {
  for (std::uint64_t left = one_in(2) ? 1 : 1 + below(4); left > 0; --left) {
    if (bytes.empty()) bytes.assign(1, '\0');
    switch (below(10)) {
      case 0:
      case 1:
      case 2: overwrite_field(bytes); break;
      case 3:
      case 4: change_block(bytes); break;
      case 5: splice(bytes, donor); break;
      case 6:
      case 7: change_number_text(bytes); break;
      case 8: change_json(bytes); break;
      default: change_cbor(bytes);
    }
  }
}

}  // namespace weighbridge::test
