// SPDX-License-Identifier: Apache-2.0
// Characters as BERT's normalizer sees them: their records in the generated tables, their decomposition, and decoding
// of bytes that may be invalid UTF-8. Leaves the order of the steps to wordpiece.cc.
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace weighbridge::tokenizers {

// Hangul syllables are composed and decomposed by arithmetic (Unicode 15.0, section 3.12).
namespace hangul {
inline constexpr char32_t kSyllable = 0xAC00, kInitial = 0x1100, kVowel = 0x1161, kFinal = 0x11A7;
inline constexpr char32_t kInitials = 19, kVowels = 21, kFinals = 28;
inline constexpr char32_t kSyllables = kInitials * kVowels * kFinals;
}  // namespace hangul

// What a character is, as flags of unicode_tables_generated.h.
struct Character {
  std::uint8_t flags = 0, combining_class = 0;
  char32_t lower = 0;                         // itself if it has no lower case
  std::span<const char32_t> decomposition{};  // empty for Hangul syllables and for characters without one
};
Character character(char32_t code_point) noexcept;

struct DecodedText {
  char32_t code_point;   // U+FFFD where the bytes are invalid
  std::uint32_t length;  // at least 1; for invalid bytes the maximal subpart (Unicode 15.0, section 3.9)
  bool valid;
};
// The character at text[at]; at < text.size().
DecodedText decode_replacing(std::string_view text, std::size_t at) noexcept;
// The number of invalid sequences that decode_replacing() finds in the text.
std::uint64_t count_invalid(std::string_view text) noexcept;

// The canonical decomposition of any character; the character itself if it has none.
class Decomposition {
 public:
  explicit Decomposition(char32_t code_point, const Character&) noexcept;
  std::span<const char32_t> parts() const noexcept { return parts_; }
  Decomposition(const Decomposition&) = delete;
  Decomposition& operator=(const Decomposition&) = delete;

 private:
  char32_t own_[3];  // a Hangul syllable's letters, or the character itself
  std::span<const char32_t> parts_;
};

// Writes the character as UTF-8, at most 4 bytes, and returns its length.
std::size_t put_utf8(char* to, char32_t code_point) noexcept;

}  // namespace weighbridge::tokenizers
