// SPDX-License-Identifier: Apache-2.0
// Lookup in the generated tables, Hangul by arithmetic (Unicode 15.0, section 3.12), and maximal subparts.
#include "tokenizers/characters.h"

#include "base/utf8.h"
#include "tokenizers/unicode_tables_generated.h"

namespace weighbridge::tokenizers {
namespace {

using namespace hangul;

unsigned byte_at(std::string_view text, std::size_t at) noexcept { return static_cast<unsigned char>(text[at]); }

// The length of the maximal subpart at text[at], where no valid character begins.
std::uint32_t maximal_subpart(std::string_view text, std::size_t at) noexcept {
  const unsigned first = byte_at(text, at);
  if (first < 0xC2 || first > 0xF4) return 1;
  const std::uint32_t wanted = first < 0xE0 ? 2 : first < 0xF0 ? 3 : 4;
  const unsigned low = first == 0xE0 ? 0xA0 : first == 0xF0 ? 0x90 : 0x80;
  const unsigned high = first == 0xED ? 0x9F : first == 0xF4 ? 0x8F : 0xBF;
  std::uint32_t length = 1;
  while (length < wanted && text.size() - at > length) {
    const unsigned next = byte_at(text, at + length);
    if (length == 1 ? (next < low || next > high) : (next & 0xC0U) != 0x80) break;
    ++length;
  }
  return length;
}

}  // namespace

Character character(char32_t code_point) noexcept {
  const std::size_t block = kBlockOf[code_point >> kBlockBits];
  const std::size_t within = code_point & ((1U << kBlockBits) - 1);
  const CharacterRecord& record = kRecords[kRecordOf[(block << kBlockBits) + within]];
  return {record.flags, record.combining_class,
          static_cast<char32_t>(static_cast<std::int32_t>(code_point) + record.lower),
          std::span(kDecompositions).subspan(record.decomposition, record.decomposition_length)};
}

DecodedText decode_replacing(std::string_view text, std::size_t at) noexcept {
  const base::Decoded decoded = base::decode_utf8(text, at);
  if (decoded.valid) return {decoded.code_point, decoded.length, true};
  return {U'\uFFFD', maximal_subpart(text, at), false};
}

std::uint64_t count_invalid(std::string_view text) noexcept {
  std::uint64_t count = 0;
  for (;;) {
    const std::size_t at = base::find_invalid_utf8(text);
    if (at == std::string_view::npos) return count;
    ++count;
    text.remove_prefix(at + maximal_subpart(text, at));
  }
}

Decomposition::Decomposition(char32_t code_point, const Character& is) noexcept
    : own_{code_point, 0, 0}, parts_(is.decomposition) {
  if (!parts_.empty()) return;
  std::size_t length = 1;
  if (code_point >= kSyllable && code_point < kSyllable + kSyllables) {
    const char32_t syllable = code_point - kSyllable;
    own_[0] = kInitial + syllable / (kVowels * kFinals);
    own_[1] = kVowel + syllable % (kVowels * kFinals) / kFinals;
    own_[2] = kFinal + syllable % kFinals;
    length = own_[2] == kFinal ? 2 : 3;
  }
  parts_ = {own_, length};
}

std::size_t put_utf8(char* to, char32_t code_point) noexcept {
  const auto byte = [](char32_t value) { return static_cast<char>(static_cast<unsigned char>(value)); };
  if (code_point < 0x80) {
    to[0] = byte(code_point);
    return 1;
  }
  if (code_point < 0x800) {
    to[0] = byte(0xC0 | (code_point >> 6));
    to[1] = byte(0x80 | (code_point & 0x3F));
    return 2;
  }
  if (code_point < 0x10000) {
    to[0] = byte(0xE0 | (code_point >> 12));
    to[1] = byte(0x80 | ((code_point >> 6) & 0x3F));
    to[2] = byte(0x80 | (code_point & 0x3F));
    return 3;
  }
  to[0] = byte(0xF0 | (code_point >> 18));
  to[1] = byte(0x80 | ((code_point >> 12) & 0x3F));
  to[2] = byte(0x80 | ((code_point >> 6) & 0x3F));
  to[3] = byte(0x80 | (code_point & 0x3F));
  return 4;
}

}  // namespace weighbridge::tokenizers
