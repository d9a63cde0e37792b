// SPDX-License-Identifier: Apache-2.0
// The text form of a module: words to lines and back. README.md defines the syntax.
#include <charconv>

#include "runtime/khlnary/module.h"

namespace weighbridge::khlnary {
using namespace internal;
namespace {

constexpr std::string_view kSpace = " \t\r";
constexpr std::string_view kRaw = ".word";

// ---- words to text ----

std::string payload_text(const Glyph& glyph, std::uint8_t payload) {
  switch (glyph.payload) {
    case Glyph::Payload::nothing: return payload == 0 ? "" : " payload=" + std::to_string(payload);
    case Glyph::Payload::constant: return " " + std::to_string(signed_payload(payload));
    case Glyph::Payload::offset:
      return (signed_payload(payload) < 0 ? " " : " +") + std::to_string(signed_payload(payload));
    case Glyph::Payload::function: return " " + std::to_string(payload);
    case Glyph::Payload::tensor:
      return " file=" + std::to_string(file_of(payload)) + " tensor=" + std::to_string(tensor_of(payload));
    case Glyph::Payload::file: break;
  }
  return " file=" + std::to_string(payload);
}

// ---- text to words ----

class Line {
 public:
  Line(std::string_view text, std::uint64_t offset, std::uint64_t number)
      : text_(text.substr(0, text.find(';'))), offset_(offset), number_(number) {}

  // The next token of the line; empty at its end.
  std::string_view next() {
    const std::size_t begin = std::min(text_.find_first_not_of(kSpace, at_), text_.size());
    at_ = std::min(text_.find_first_of(kSpace, begin), text_.size());
    begin_ = begin;
    return text_.substr(begin, at_ - begin);
  }

  [[noreturn]] void refuse_here(std::string_view why) const {
    refuse(rules::kSyntax, {.offset = offset_ + begin_}, {}, {}, {"line ", number_, ": ", why});
  }
  // Refuses the line at the token that next() returned last.
  [[noreturn]] void refuse_word(std::string_view word, std::string_view why) const {
    refuse_here("'" + std::string(word.substr(0, 40)) + "' " + std::string(why));
  }

  // A decimal number, or 0x with hexadecimal digits, within the bounds. A plus sign may precede it.
  std::int64_t number(std::string_view word, std::int64_t minimum, std::int64_t maximum) const {
    std::string_view digits = word;
    const bool minus = digits.starts_with('-');
    if (minus || digits.starts_with('+')) digits.remove_prefix(1);
    const bool is_hex = digits.starts_with("0x");
    if (is_hex) digits.remove_prefix(2);
    std::uint32_t value = 0;
    const char* const end = digits.data() + digits.size();
    const auto [rest, error] = std::from_chars(digits.data(), end, value, is_hex ? 16 : 10);
    const std::int64_t out = minus ? -std::int64_t{value} : std::int64_t{value};
    if (digits.empty() || error != std::errc{} || rest != end || out < minimum || out > maximum)
      refuse_word(word, "is not a number from " + std::to_string(minimum) + " to " + std::to_string(maximum));
    return out;
  }

 private:
  std::string_view text_;
  std::uint64_t offset_, number_;
  std::size_t at_ = 0, begin_ = 0;
};

// One word while its line is parsed.
class Assembly {
 public:
  Assembly(Line& line, const Glyph& glyph) : line_(line), glyph_(glyph) {
    word_.glyph = static_cast<std::uint8_t>(glyph.id);
    word_.arity = glyph.min_arity;
    word_.flags = glyph.flags;
  }

  std::uint32_t run() {
    std::string_view text = line_.next();
    if (has_operand()) {
      if (text.empty()) line_.refuse_here(std::string(glyph_.name) + " needs " + operand());
      set_operand(text);
      text = line_.next();
    }
    for (; !text.empty(); text = line_.next()) set_key(text);
    if ((needs_file() && !given("file")) || (glyph_.payload == Glyph::Payload::tensor && !given("tensor")))
      line_.refuse_here(std::string(glyph_.name) + " needs " + operand());
    return encode(word_);
  }

 private:
  bool needs_file() const { return glyph_.payload == Glyph::Payload::file || glyph_.payload == Glyph::Payload::tensor; }
  bool has_operand() const { return !needs_file() && glyph_.payload != Glyph::Payload::nothing; }
  bool given(std::string_view key) const { return seen_.find(" " + std::string(key) + " ") != std::string::npos; }

  std::string operand() const {
    switch (glyph_.payload) {
      case Glyph::Payload::constant: return "a number from -128 to 127";
      case Glyph::Payload::offset: return "an offset in words, from -128 to +127";
      case Glyph::Payload::function: return "the number of a function";
      case Glyph::Payload::tensor: return "file=N and tensor=N";
      default: return "file=N";
    }
  }

  void set_operand(std::string_view text) {
    const bool is_signed = glyph_.payload != Glyph::Payload::function;
    word_.payload = static_cast<std::uint8_t>(line_.number(text, is_signed ? -128 : 0, is_signed ? 127 : 255));
  }

  void set_key(std::string_view text) {
    const std::size_t equals = std::min(text.find('='), text.size());
    const std::string_view key = text.substr(0, equals);
    const std::string_view value = equals < text.size() ? text.substr(equals + 1) : std::string_view{};
    if (given(key)) line_.refuse_word(key, "appears twice");
    seen_ += std::string(key) + " ";
    const auto number = [&](unsigned minimum, unsigned maximum) {
      return static_cast<std::uint8_t>(line_.number(value, minimum, maximum));
    };
    if (key == "authority") {
      word_.authority = number(1, kMaxAuthority);
    } else if (key == "arity" && glyph_.min_arity != glyph_.max_arity) {
      word_.arity = number(glyph_.min_arity, glyph_.max_arity);
    } else if (text == "shape_desc" && glyph_.optional_flags == kShapeDesc) {
      word_.flags |= kShapeDesc;
    } else if (key == "payload" && glyph_.payload == Glyph::Payload::nothing) {
      word_.payload = number(0, 255);
    } else if (key == "file" && glyph_.payload == Glyph::Payload::file) {
      word_.payload = number(0, 255);
    } else if (key == "file" && glyph_.payload == Glyph::Payload::tensor) {
      word_.payload = static_cast<std::uint8_t>(word_.payload | number(0, 15) << 4);
    } else if (key == "tensor" && glyph_.payload == Glyph::Payload::tensor) {
      word_.payload = static_cast<std::uint8_t>(word_.payload | number(0, 15));
    } else {
      line_.refuse_word(text, "cannot stand behind " + std::string(glyph_.name));
    }
  }

  Line& line_;
  const Glyph& glyph_;
  Word word_{};
  std::string seen_ = " ";  // keys, each between two spaces
};

// nullopt for a line without a word.
std::optional<std::uint32_t> assemble_line(Line line) {
  const std::string_view first = line.next();
  if (first.empty()) return std::nullopt;
  if (first == kRaw) {
    const std::string_view value = line.next();
    const auto word = static_cast<std::uint32_t>(line.number(value, 0, UINT32_MAX));
    if (const std::string_view more = line.next(); !more.empty()) line.refuse_word(more, "is one word too many");
    return word;
  }
  constexpr std::string_view kPrefix = "G_";  // as the specification writes the names
  const Glyph* const glyph = find_glyph(first.starts_with(kPrefix) ? first.substr(kPrefix.size()) : first);
  if (!glyph) line.refuse_word(first, "is not a glyph");
  return Assembly(line, *glyph).run();
}

}  // namespace

std::string disassemble(std::uint32_t word) {
  if (const auto wrong = check(word)) {
    const std::string_view rule = wrong->rule;
    return std::string(kRaw) + " " + hex(word, 8) + " ; " + std::string(rule.substr(rule.find('/') + 1));
  }
  const Word w = fields(word);
  const Glyph& glyph = *find_glyph(w.glyph);
  std::string out = std::string(glyph.name) + payload_text(glyph, w.payload);
  if ((w.flags & kShapeDesc) != 0) out += " shape_desc";
  if (w.arity != glyph.min_arity) out += " arity=" + std::to_string(w.arity);
  if (w.authority != 1) out += " authority=" + std::to_string(w.authority);
  return out;
}

std::string disassemble(std::span<const std::uint32_t> words) {
  std::string out;
  for (const std::uint32_t word : words) out += disassemble(word) + "\n";
  return out;
}

std::vector<std::uint32_t> assemble(std::string_view text) {
  std::vector<std::uint32_t> out;
  std::uint64_t number = 0;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find('\n', begin), text.size());
    if (const auto word = assemble_line({text.substr(begin, end - begin), begin, ++number})) out.push_back(*word);
    begin = end + 1;
  }
  return out;
}

}  // namespace weighbridge::khlnary
