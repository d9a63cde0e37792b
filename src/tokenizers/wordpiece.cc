// SPDX-License-Identifier: Apache-2.0
// The pass over a text. Words of ASCII letters and digits between spaces and punctuation are most of a text and take
// sixteen bytes per step. All other words go through the steps of the reference character by character: special tokens
// in the raw text, cleaning, spaces around Chinese characters, decomposition without accents, lower case, white space,
// punctuation, longest matches.
#include "tokenizers/wordpiece.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <utility>

#include "base/endian.h"
#include "tokenizers/characters.h"
#include "tokenizers/unicode_tables_generated.h"

namespace weighbridge::tokenizers {
namespace {

// Eight characters in one number, one per byte.
constexpr std::uint64_t kOnes = 0x0101010101010101U, kHigh = 0x8080808080808080U;

// The high bit of each byte that is at least `minimum`; bytes of `x` are below 0x80.
constexpr std::uint64_t at_least(std::uint64_t x, std::uint64_t minimum) {
  return ((x | kHigh) - minimum * kOnes) & kHigh;
}

struct Letters {
  std::uint64_t word, upper;  // bit 7 of each byte: an ASCII letter or digit; an ASCII capital
};

constexpr Letters letters(std::uint64_t bytes) {
  const std::uint64_t ascii = ~bytes & kHigh, x = bytes & ~kHigh, folded = x | (0x20 * kOnes);
  const std::uint64_t digit = at_least(x, '0') & ~at_least(x, '9' + 1);
  const std::uint64_t letter = at_least(folded, 'a') & ~at_least(folded, 'z' + 1);
  return {(digit | letter) & ascii, letter & ~at_least(x, 'a') & ascii};
}
static_assert(letters(0x5B5A41402F302F39U).word == 0x0080800000800080U);
static_assert(letters(0x7B7A61605B5A41E1U).upper == 0x0000000000808000U);

// The leading letters and digits of a text as a number: lower-cased, padded with zeros.
struct Chunk {
  std::uint64_t bytes;
  unsigned length;  // 8: the next chunk may continue the word
};

inline Chunk chunk(std::uint64_t raw, std::uint64_t lower_mask) {
  const Letters found = letters(raw);
  const std::uint64_t lowered = raw | ((found.upper & lower_mask) >> 2);
  const std::uint64_t others = ~found.word & kHigh;
  if (others == 0) return {lowered, 8};
  const auto length = static_cast<unsigned>(std::countr_zero(others)) / 8;
  return {lowered & ((std::uint64_t{1} << (8 * length)) - 1), length};
}

inline std::uint64_t load(std::string_view text, std::size_t at) {
  if (text.size() - at >= 8) return base::load_le<std::uint64_t>(text.data() + at);
  char padded[8] = {};
  std::memcpy(padded, text.data() + at, text.size() - at);
  return base::load_le<std::uint64_t>(padded);
}

template <bool kSpans> class Pass {
 public:
  Pass(const Rules& rules, std::string_view text, std::span<std::uint32_t> ids, TokenSpan* spans)
      : rules_(rules), text_(text), ids_(ids), spans_(spans), lower_mask_(rules.lower_case ? ~std::uint64_t{0} : 0) {}

  Encoded run() {
    while (at_ < text_.size() && !truncated_) {
      switch (rules_.classes[byte()]) {
        case ByteClass::space:
        case ByteClass::removed: ++at_; break;
        case ByteClass::punctuation:
          put(rules_.single[byte()], {at_, at_ + 1});
          ++at_;
          break;
        case ByteClass::word: plain_word(); break;
        case ByteClass::slow: any_word(); break;
      }
    }
    if (truncated_) replaced_ += count_invalid(text_.substr(at_));
    return {count_, replaced_, truncated_};
  }

 private:
  unsigned char byte() const { return static_cast<unsigned char>(text_[at_]); }

  void put(std::uint32_t id, TokenSpan span) {
    if (count_ == ids_.size()) {
      truncated_ = true;
      return;
    }
    ids_[count_] = id;
    if constexpr (kSpans) spans_[count_] = span;
    ++count_;
  }

  // Takes a word of up to 16 ASCII letters and digits that ends at a space, at punctuation or at the end of the text.
  void plain_word() {
    Chunk low = chunk(load(text_, at_), lower_mask_), high{0, 0};
    if (low.length == 8 && text_.size() - at_ > 8) high = chunk(load(text_, at_ + 8), lower_mask_);
    const std::size_t begin = at_, length = low.length + high.length, end = begin + length;
    ByteClass next = ByteClass::space;
    if (end < text_.size()) {
      next = rules_.classes[static_cast<unsigned char>(text_[end])];
      if (next != ByteClass::space && next != ByteClass::punctuation) return any_word();
    }
    at_ = end;
    if (length > rules_.word_limit) return put(rules_.unknown, {begin, end});
    if (const auto id = rules_.vocabulary.find_short(low.bytes, high.bytes)) return put(*id, {begin, end});
    char word[Vocabulary::kShort];
    base::store_le(word, low.bytes);
    base::store_le(word + 8, high.bytes);
    match({word, length}, [begin](std::size_t from, std::size_t to) { return TokenSpan{begin + from, begin + to}; });
  }

  // Takes one word of any characters and what ends it.
  void any_word() {
    length_ = 0, characters_ = 0, tail_ = at_;
    while (at_ < text_.size() && !truncated_) {
      const unsigned char first = byte();
      if (rules_.special_begins[first]) {
        if (const Special* special = rules_.special_at(text_, at_)) return special_token(*special);
      }
      if (first >= 0x80) {
        if (wide_character()) return;
        continue;
      }
      switch (rules_.plain[first]) {
        case ByteClass::word:
          append(rules_.lower_case && first >= 'A' && first <= 'Z' ? first | 0x20U : first, {at_, at_ + 1});
          tail_ = ++at_;
          break;
        case ByteClass::punctuation:
          finish();
          put(rules_.single[first], {at_, at_ + 1});
          ++at_;
          return;
        case ByteClass::space:
          finish();
          ++at_;
          return;
        case ByteClass::removed:
        case ByteClass::slow: ++at_; break;
      }
    }
    finish();
  }

  void special_token(const Special& special) {
    finish();
    put(special.id, {at_, at_ + special.text.size()});
    at_ += special.text.size();
  }

  // Takes a character outside ASCII, or invalid bytes; returns true when the word has ended.
  bool wide_character() {
    const DecodedText decoded = decode_replacing(text_, at_);
    const TokenSpan here{at_, at_ + decoded.length};
    if (!decoded.valid) {
      ++replaced_;
      at_ = static_cast<std::size_t>(here.end);
      return false;
    }
    const Character is = character(decoded.code_point);
    if (is.flags & kRemoved) {
      at_ = static_cast<std::size_t>(here.end);
      return false;
    }
    if (is.flags & kSpace) {
      finish();
      at_ = static_cast<std::size_t>(here.end);
      return true;
    }
    const bool alone = rules_.space_chinese && (is.flags & kChinese);
    if (alone) finish();
    normalize(decoded.code_point, is, here);
    if (alone) finish();
    return alone;
  }

  // Takes the character at at_, or the run of marks that it begins.
  void normalize(char32_t code_point, const Character& is, TokenSpan here) {
    if (!rules_.strip_accents || !(is.flags & (kMark | kDecomposes | kReorders))) {
      append_folded(code_point, is, here);
      tail_ = at_ = static_cast<std::size_t>(here.end);
      return;
    }
    const Decomposition decomposition(code_point, is);
    for (const char32_t part : decomposition.parts()) {
      const Character that = character(part);
      if (that.combining_class == 0) tail_ = static_cast<std::size_t>(here.begin);
      if (that.flags & kMark) continue;
      if (that.flags & kReorders) return reorder();
      append_folded(part, that, here);
    }
    at_ = static_cast<std::size_t>(here.end);
  }

  // Calls visit(parts, starts, here) for the characters of the run of combining characters at tail_, which may begin
  // with a character of class 0. Returns its end.
  template <class Visit> std::size_t each_of_run(Visit visit) const {
    std::size_t at = tail_;
    while (at < text_.size()) {
      const auto first = static_cast<unsigned char>(text_[at]);
      if (rules_.special_begins[first] && rules_.special_at(text_, at)) break;
      const DecodedText decoded = decode_replacing(text_, at);
      const TokenSpan here{at, at + decoded.length};
      const Character is = character(decoded.code_point);
      if (decoded.valid && !(is.flags & kRemoved)) {
        const Decomposition decomposition(decoded.code_point, is);
        const bool starts = character(decomposition.parts()[0]).combining_class == 0;
        if (starts && at != tail_) break;
        visit(decomposition.parts(), starts, here);
      }
      at = static_cast<std::size_t>(here.end);
    }
    return at;
  }

  // Takes a run of combining characters in the order of their classes, as canonical decomposition does; needed only
  // where one of them survives the stripping of accents. It reads the run once for each class of which one survives, of
  // which Unicode has a handful, so that it needs no memory. As in the reference, the k-th original character after
  // sorting gets the k-th position in the text.
  void reorder() {
    std::array<std::uint64_t, 256> originals{};  // characters of each class that are in the text
    std::array<bool, 256> survives{};
    TokenSpan start{};
    const std::size_t end = each_of_run([&](std::span<const char32_t> parts, bool starts, TokenSpan here) {
      if (starts) start = here;
      for (std::size_t i = 0; i < parts.size(); ++i) {
        const Character that = character(parts[i]);
        if (that.combining_class == 0) continue;
        originals[that.combining_class] += i == 0;
        survives[that.combining_class] |= (that.flags & kMark) == 0;
      }
    });
    replaced_ += count_invalid(text_.substr(at_, end - at_));
    std::uint64_t taken = 0, found = 0;  // originals in order so far; positions seen
    TokenSpan place = start;             // of the last one that was seen
    std::size_t next = tail_;            // where to look for more
    const auto place_of_taken = [&] {
      for (; found < taken; ++found) {
        for (bool is_place = false; !is_place;) {
          const DecodedText decoded = decode_replacing(text_, next);
          const Character is = character(decoded.code_point);
          const TokenSpan here{next, next + decoded.length};
          next += decoded.length;
          if (!decoded.valid || (is.flags & kRemoved)) continue;
          is_place = character(Decomposition(decoded.code_point, is).parts()[0]).combining_class != 0;
          if (is_place) place = here;
        }
      }
      return place;
    };
    for (std::size_t rank = 1; rank < originals.size(); ++rank) {
      if (!survives[rank]) {
        taken += originals[rank];
        continue;
      }
      each_of_run([&](std::span<const char32_t> parts, bool, TokenSpan) {
        for (std::size_t i = 0; i < parts.size(); ++i) {
          const Character that = character(parts[i]);
          if (that.combining_class != rank) continue;
          taken += i == 0;
          if (!(that.flags & kMark)) append_folded(parts[i], that, place_of_taken());
        }
      });
    }
    at_ = tail_ = end;
  }

  // Appends a character in lower case; punctuation becomes a word of its own.
  void append_folded(char32_t code_point, const Character& is, TokenSpan here) {
    const bool alone = (is.flags & kPunctuation) != 0;
    if (alone) finish();
    if (rules_.lower_case && code_point == U'\u0130') {  // the only character whose lower case is two characters
      append(U'i', here);
      append(U'\u0307', here);
    } else {
      append(rules_.lower_case ? is.lower : code_point, here);
    }
    if (alone) finish();
  }

  void append(char32_t code_point, TokenSpan here) {
    if (characters_ == 0) word_span_.begin = here.begin;
    word_span_.end = here.end;
    if (characters_ < rules_.word_limit) {
      const std::size_t bytes = put_utf8(word_ + length_, code_point);
      if constexpr (kSpans) std::fill_n(places_ + length_, bytes, here);
      length_ += bytes;
    }
    ++characters_;
  }

  // Ends the word gathered by append().
  void finish() {
    if (characters_ == 0) return;
    if (characters_ > rules_.word_limit) {
      put(rules_.unknown, word_span_);
    } else {
      match({word_, length_}, [this](std::size_t from, std::size_t to) { return placed(from, to); });
    }
    length_ = 0, characters_ = 0;
  }

  // The position in the text of these bytes of the gathered word.
  TokenSpan placed([[maybe_unused]] std::size_t from, [[maybe_unused]] std::size_t to) const {
    if constexpr (kSpans) return {places_[from].begin, places_[to - 1].end};
    return {};
  }

  // Puts the longest matches, or [UNK] for the whole word if one is missing. `span` maps bytes of the word to the text.
  template <class Span> void match(std::string_view word, Span span) {
    struct Piece {
      std::uint32_t id, end;
    };
    std::array<Piece, kMaxWordLimit> pieces;
    std::size_t count = 0;
    for (std::uint32_t at = 0; at < word.size();) {
      const Vocabulary::Match found = rules_.vocabulary.longest(word.substr(at), at > 0);
      if (found.length == 0) return put(rules_.unknown, span(0, word.size()));
      at += found.length;
      pieces[count++] = {found.id, at};
    }
    std::uint32_t begin = 0;
    for (std::size_t i = 0; i < count; ++i) {
      put(pieces[i].id, span(begin, pieces[i].end));
      begin = pieces[i].end;
    }
  }

  const Rules& rules_;
  std::string_view text_;
  std::size_t at_ = 0;
  std::span<std::uint32_t> ids_;
  [[maybe_unused]] TokenSpan* spans_;
  std::uint64_t lower_mask_;
  std::size_t count_ = 0;
  std::uint64_t replaced_ = 0;
  bool truncated_ = false;

  // The word gathered by any_word(): its first `word_limit` characters, and how many it has.
  char word_[4 * kMaxWordLimit];
  std::size_t length_ = 0;
  std::uint64_t characters_ = 0;
  TokenSpan word_span_;
  TokenSpan places_[kSpans ? 4 * kMaxWordLimit : 1];  // the position in the text of each byte of word_
  std::size_t tail_ = 0;  // where a run of marks begins: at or after the last character of combining class 0
};

// Special tokens that are compared one by one.
constexpr std::size_t kFew = 8;

ByteClass plain_class(char32_t c) {
  if (c >= 0x80) return ByteClass::slow;
  const std::uint8_t flags = character(c).flags;
  return flags & kRemoved       ? ByteClass::removed
         : flags & kSpace       ? ByteClass::space
         : flags & kPunctuation ? ByteClass::punctuation
                                : ByteClass::word;
}

}  // namespace

Rules::Rules(std::span<const Vocabulary::Entry> entries, std::vector<Special> specials, std::uint32_t unk,
             const WordPieceOptions& options)
    : vocabulary(entries),
      lower_case(options.lower_case),
      strip_accents(options.strip_accents.value_or(options.lower_case)),
      space_chinese(options.space_chinese),
      word_limit(options.word_limit),
      unknown(unk),
      specials_(std::move(specials)) {
  std::erase_if(specials_, [](const Special& special) { return special.text.empty(); });
  std::stable_sort(specials_.begin(), specials_.end(),
                   [](const Special& a, const Special& b) { return a.text.size() > b.text.size(); });
  if (specials_.size() > kFew) {
    std::vector<Vocabulary::Entry> places;
    for (std::size_t i = specials_.size(); i-- > 0;)
      places.push_back({specials_[i].text, static_cast<std::uint32_t>(i)});
    by_text_.emplace(places);
  }
  bool within_words = false;
  for (std::size_t b = 0; b < plain.size(); ++b) classes[b] = plain[b] = plain_class(static_cast<char32_t>(b));
  for (const Special& special : specials_) {
    const auto first = static_cast<unsigned char>(special.text[0]);
    special_begins[first] = true;
    if (plain[first] == ByteClass::word) within_words = true;
  }
  for (std::size_t b = 0; b < classes.size(); ++b)
    if (special_begins[b] || (within_words && plain[b] == ByteClass::word)) classes[b] = ByteClass::slow;
  for (std::size_t b = 0; b < single.size(); ++b) {
    const auto c = static_cast<char>(b);
    const Vocabulary::Match found = vocabulary.longest({&c, 1}, false);
    single[b] = found.length == 1 ? found.id : unknown;
  }
}

const Special* Rules::special_at(std::string_view text, std::size_t at) const noexcept {
  if (by_text_) {
    const Vocabulary::Match found = by_text_->longest(text.substr(at), false);
    return found.length == 0 ? nullptr : &specials_[found.id];
  }
  const auto found = std::find_if(specials_.begin(), specials_.end(),
                                  [&](const Special& special) { return text.substr(at).starts_with(special.text); });
  return found == specials_.end() ? nullptr : &*found;
}

Encoded tokenize(const Rules& rules, std::string_view text, std::span<std::uint32_t> ids, TokenSpan* spans) {
  if (spans != nullptr) return Pass<true>(rules, text, ids, spans).run();
  return Pass<false>(rules, text, ids, nullptr).run();
}

}  // namespace weighbridge::tokenizers
