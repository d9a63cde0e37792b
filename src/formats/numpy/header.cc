// SPDX-License-Identifier: Apache-2.0
// The grammar of an array's header: a Python dictionary of two texts, a bool and a tuple of numbers. Any other value
// must be the list of a structured type; its brackets are matched and its content is skipped. layout.h has the bytes
// before the dictionary.
#include "formats/numpy/header.h"

#include <algorithm>
#include <utility>

#include "base/checked.h"
#include "base/endian.h"
#include "base/utf8.h"
#include "core/model/words.h"

namespace weighbridge::numpy {
namespace {

constexpr std::uint64_t kMaxBytes = static_cast<std::uint64_t>(INT64_MAX);  // NumPy counts with npy_intp
constexpr std::string_view kDescrKey = "descr", kOrderKey = "fortran_order", kShapeKey = "shape";
constexpr std::size_t kLongestDim = 21;  // characters: GROWTH_AXIS_MAX_DIGITS of numpy/lib/format.py
constexpr std::size_t kDepth = 64;       // of the brackets in a structured type; far deeper than real ones

bool is_digit(char c) noexcept { return c >= '0' && c <= '9'; }

// One byte of text, for messages.
std::string shown(char c) {
  const auto byte = static_cast<unsigned char>(c);
  if (byte > 0x20 && byte < 0x7F) return {c};
  constexpr char kDigits[] = "0123456789abcdef";
  return std::string("the byte 0x") + kDigits[byte >> 4] + kDigits[byte & 15];
}

class Dictionary {
 public:
  Dictionary(std::string_view text, std::uint64_t at, bool python2, const ArrayRules& rules, Header& out, Fault& fault,
             core::FieldNotes* notes)
      : text_(text), start_(at), python2_(python2), rules_(rules), out_(out), fault_(fault), notes_(notes) {}

  bool read() {
    skip_space();
    if (!take('{')) return unexpected("{");
    bool seen[3] = {};
    skip_space();
    while (!take('}')) {
      const std::size_t at = place_;
      std::string_view key;
      if (!read_text(key)) return unexpected("a key in quotes");
      const std::size_t which = key == kDescrKey ? 0 : key == kOrderKey ? 1 : key == kShapeKey ? 2 : 3;
      if (which == 3 || std::exchange(seen[which], true)) return fail(rules_.kKeys, at, {}, core::excerpted(key));
      skip_space();
      if (!take(':')) return unexpected(":");
      skip_space();
      const std::size_t value_at = place_;
      if (!(which == 0 ? read_descr() : which == 1 ? read_order() : read_shape())) return false;
      if (notes_) notes_->add(key, start_ + at, start_ + place_, text_.substr(value_at, place_ - value_at));
      skip_space();
      if (take(',')) {
        skip_space();
      } else if (place_ == text_.size() || text_[place_] != '}') {
        return unexpected("a comma or }");
      }
    }
    skip_space();
    if (place_ < text_.size()) return unexpected("white space");
    for (std::size_t i = 0; i < 3; ++i)
      if (!seen[i]) return fail(rules_.kKeys, 0, i == 0 ? "descr" : i == 1 ? "fortran_order" : "shape", "no such key");
    return true;
  }

 private:
  bool fail(const Rule& rule, std::size_t at, const core::Said& expected = {}, const core::Said& found = {}) {
    std::string text = found.text();
    if (!base::is_utf8(text)) text = "bytes that are not UTF-8";
    fault_ = {&rule, start_ + at, expected.keep(), std::move(text)};
    return false;
  }
  bool unexpected(const core::Said& expected) {
    return fail(rules_.kLiteral, place_, expected,
                place_ < text_.size() ? shown(text_[place_]) : "the end of the header");
  }
  bool take(char c) {
    if (place_ == text_.size() || text_[place_] != c) return false;
    ++place_;
    return true;
  }
  void skip_space() {
    while (place_ < text_.size() && std::string_view(" \t\r\n\f").find(text_[place_]) != std::string_view::npos)
      ++place_;
  }
  // A text without escapes: NumPy needs escapes only in names of fields.
  bool read_text(std::string_view& out) {
    if (place_ == text_.size() || (text_[place_] != '\'' && text_[place_] != '"')) return false;
    const std::size_t end =
        text_.find_first_of(std::string_view(text_[place_] == '"' ? "\"\\\n" : "'\\\n"), place_ + 1);
    if (end == std::string_view::npos || text_[end] != text_[place_]) return false;
    out = text_.substr(place_ + 1, end - place_ - 1);
    place_ = end + 1;
    return true;
  }
  bool read_word(std::string_view word) {
    if (!text_.substr(place_).starts_with(word)) return false;
    place_ += word.size();
    return true;
  }

  bool read_order() {
    const std::size_t at = place_;
    if (read_word("True"))
      out_.fortran = true;
    else if (!read_word("False"))
      return fail(rules_.kFortranOrder, at, "True or False", place_ < text_.size() ? shown(text_[place_]) : "nothing");
    return true;
  }

  bool read_shape() {
    const std::size_t at = place_;
    if (!take('(')) return fail(rules_.kShape, at, "(", place_ < text_.size() ? shown(text_[place_]) : "nothing");
    bool comma = true;  // a comma may precede the next number
    skip_space();
    while (!take(')')) {
      std::uint64_t dim = 0;
      if (!comma || !read_number(dim))
        return fail(rules_.kShape, place_, comma ? "a whole number from 0 to 2^63 - 1" : "a comma or )",
                    place_ < text_.size() ? shown(text_[place_]) : "the end of the header");
      if (out_.shape.size() == kMaxRank) return fail(rules_.kRank, at, core::at_most(kMaxRank));
      out_.shape.push_back(dim);
      skip_space();
      comma = take(',');
      skip_space();
    }
    // (3) is a number in Python, not a tuple.
    if (out_.shape.size() == 1 && !comma) return fail(rules_.kShape, at, "a tuple", "a number in parentheses");
    return true;
  }
  bool read_number(std::uint64_t& out) {
    const std::size_t first = place_;
    while (place_ < text_.size() && is_digit(text_[place_])) {
      const auto ten = base::checked_mul(out, 10);
      const auto next = ten ? base::checked_add(*ten, static_cast<std::uint64_t>(text_[place_] - '0')) : std::nullopt;
      if (!next || *next > kMaxBytes) return place_ = first, false;
      out = *next;
      ++place_;
    }
    if (place_ == first || (text_[first] == '0' && place_ - first > 1)) return place_ = first, false;
    if (python2_) take('L');
    return true;
  }

  bool read_descr() {
    const std::size_t at = place_;
    std::string_view text;
    if (read_text(text)) {
      out_.type = text;
      return read_type(text, at);
    }
    if (place_ == text_.size() || (text_[place_] != '[' && text_[place_] != '('))
      return unexpected("a type in quotes, or [");
    if (!skip_brackets()) return false;
    out_.type =
        base::is_utf8(text_.substr(at, place_ - at)) ? text_.substr(at, place_ - at) : std::string_view("[...]");
    out_.unsupported = &rules_.kStructured;
    return true;
  }
  bool skip_brackets() {
    std::string open;  // the closing brackets still to come
    do {
      if (place_ == text_.size()) return unexpected("]");
      const char c = text_[place_];
      if (c == '\'' || c == '"') {
        const std::size_t first = place_ + 1;
        if (!skip_text()) return unexpected("a text in quotes");
        out_.objects |= names_objects(text_.substr(first, place_ - 1 - first));
        continue;
      }
      if (c == '[' || c == '(') {
        if (open.size() == kDepth) return unexpected("fewer brackets in each other");
        open += c == '[' ? ']' : ')';
      } else if (c == ']' || c == ')') {
        if (open.back() != c) return unexpected(std::string(1, open.back()));
        open.pop_back();
      } else if (std::string_view(" \n\t,").find(c) == std::string_view::npos && !is_digit(c) && c != 'L' && c != 'u' &&
                 c != 'b') {
        return unexpected("a text, a number or a bracket");
      }
      ++place_;
    } while (!open.empty());
    return true;
  }
  static bool names_objects(std::string_view type) {
    if (!type.empty() && std::string_view("<>|=").find(type[0]) != std::string_view::npos) type.remove_prefix(1);
    return type == "O" || type == "O8" || type == "O4";
  }
  bool skip_text() {
    const char quote = text_[place_++];
    while (place_ < text_.size() && text_[place_] != quote && text_[place_] != '\n')
      place_ += text_[place_] == '\\' ? 2U : 1U;
    place_ = std::min(place_, text_.size());
    return take(quote);
  }

  bool read_type(std::string_view text, std::size_t at) {
    const auto word = core::read_numpy_word(text);
    if (!word) return fail(rules_.kDescr, at, {}, core::in_quotes(text));
    out_.word = *word;
    out_.dtype = word->dtype;
    using Holds = core::NumpyWord::Holds;
    out_.objects = word->holds == Holds::objects;
    if (word->holds != Holds::numbers)
      out_.unsupported = out_.objects                  ? &rules_.kObject
                         : word->holds == Holds::texts ? &rules_.kText
                         : word->holds == Holds::raw   ? &rules_.kRaw
                                                       : &rules_.kUnknownDtype;
    return true;
  }

  const std::string_view text_;
  const std::uint64_t start_;
  const bool python2_;  // numbers may end in L
  const ArrayRules& rules_;
  Header& out_;
  Fault& fault_;
  core::FieldNotes* const notes_;
  std::size_t place_ = 0;
};

// The length of the preamble and of the text after it.
std::pair<std::uint64_t, std::uint64_t> lengths(std::string_view first) noexcept {
  if (first[kVersionAt] == '\x01') return {kPreamble1, base::load_le<std::uint16_t>(first.data() + kLengthAt)};
  return {kPreamble2, base::load_le<std::uint32_t>(first.data() + kLengthAt)};
}

}  // namespace

std::optional<std::uint64_t> bytes_before_elements(std::string_view first) noexcept {
  if (first.size() < kPreamble2 || !first.starts_with(kMagic)) return std::nullopt;
  const auto [preamble, length] = lengths(first);
  return preamble + std::min(length, kMaxHeader);
}

std::optional<Header> read_header(std::string_view bytes, const ArrayRules& rules, Fault& fault,
                                  core::FieldNotes* notes) {
  const auto refuse = [&](const Rule& rule, std::uint64_t at, const core::Said& expected = {},
                          const core::Said& found = {}) {
    fault = {&rule, at, expected.keep(), found.keep()};
    return std::nullopt;
  };
  if (!bytes.starts_with(kMagic))
    return kMagic.starts_with(bytes) ? refuse(rules.kTruncatedHeader, bytes.size()) : refuse(rules.kMagicRule, 0);
  if (bytes.size() < kPreamble1) return refuse(rules.kTruncatedHeader, bytes.size());
  const auto major = static_cast<unsigned char>(bytes[kVersionAt]),
             minor = static_cast<unsigned char>(bytes[kVersionAt + 1]);
  if (major < 1 || major > 3 || minor != 0) return refuse(rules.kVersion, kVersionAt, {}, {major, ".", minor});
  if (major > 1 && bytes.size() < kPreamble2) return refuse(rules.kTruncatedHeader, bytes.size());
  const auto [preamble, length] = lengths(bytes);
  if (length > kMaxHeader) return refuse(rules.kHeaderLength, kLengthAt, core::at_most(kMaxHeader), length);
  if (bytes.size() - preamble < length)
    return refuse(rules.kTruncatedHeader, bytes.size(), core::in_bytes(length),
                  core::in_bytes(bytes.size() - preamble));
  const std::string_view text = bytes.substr(base::to_size(preamble), base::to_size(length));
  if (major == 3 && !base::is_utf8(text)) return refuse(rules.kHeaderUtf8, preamble);
  Header out;
  out.data_at = preamble + length;
  if (notes) {
    notes->add("magic", 0, kMagic.size(), "\\x93NUMPY");
    notes->add("version", kVersionAt, kLengthAt, "");
    notes->add("length of the dictionary", kLengthAt, preamble, length);
    notes->add("dictionary", preamble, out.data_at, "");
  }
  if (!Dictionary(text, preamble, major < 3, rules, out, fault, notes).read()) return std::nullopt;
  const DType minimum = out.dtype == DType::unknown ? DType::u8 : out.dtype;
  if (!size_of(minimum, out.shape)) return refuse(rules.kSizeOverflow, preamble, {}, core::of_shape(out.shape));
  return out;
}

std::optional<std::uint64_t> size_of(DType dtype, Shape shape) noexcept {
  std::uint64_t bytes = info(dtype).bits / 8;
  bool none = false;
  for (const std::uint64_t dim : shape) {
    none |= dim == 0;
    if (__builtin_mul_overflow(bytes, std::max<std::uint64_t>(dim, 1), &bytes) || bytes > kMaxBytes)
      return std::nullopt;
  }
  return none ? 0 : bytes;
}

std::vector<std::int64_t> fortran_strides(Shape shape) {
  if (std::ranges::count_if(shape, [](std::uint64_t dim) { return dim != 1; }) < 2 ||
      std::ranges::find(shape, 0U) != shape.end())
    return {};
  std::vector<std::int64_t> out;
  std::int64_t step = 1;
  for (const std::uint64_t dim : shape) {
    out.push_back(step);
    step *= static_cast<std::int64_t>(dim);
  }
  return out;
}

std::string write_header(std::string_view type, Shape shape) {
  std::string dictionary = "{'descr': '" + std::string(type) + "', 'fortran_order': False, 'shape': (";
  for (std::size_t i = 0; i < shape.size(); ++i) dictionary += (i == 0 ? "" : ", ") + std::to_string(shape[i]);
  dictionary += shape.size() == 1 ? ",), }" : "), }";
  // As NumPy does: room for the first dimension to grow in place; and 64 spaces if the header would end at a multiple
  // of 64 without any.
  if (!shape.empty()) dictionary.append(kLongestDim - std::to_string(shape[0]).size(), ' ');
  dictionary.append(kAlignment - (kPreamble1 + dictionary.size() + 1) % kAlignment, ' ');
  dictionary += '\n';
  std::string header(kMagic);  // rank is at most 64: the dictionary stays below 64 KiB
  header.append("\x01\x00", 2);
  header += static_cast<char>(dictionary.size() & 0xFFU);
  header += static_cast<char>(dictionary.size() >> 8);
  return header + dictionary;
}

}  // namespace weighbridge::numpy
