// SPDX-License-Identifier: Apache-2.0
// One pass over the template. Strings are compared after their escapes are undone.
#include "wire/template_text.h"

#include <algorithm>
#include <string>
#include <vector>

namespace weighbridge::wire {
namespace {

// Attributes of Python objects that lead to frames, code and globals: those that jinja2.sandbox refuses by name.
constexpr std::string_view kUnsafe[] = {"mro",       "gi_frame",  "gi_code",  "cr_frame",   "cr_code",  "ag_frame",
                                        "ag_code",   "f_globals", "f_locals", "f_builtins", "tb_frame", "func_globals",
                                        "func_code", "im_class",  "im_func",  "im_self"};
// Statements that read other templates.
constexpr std::string_view kReading[] = {"import", "include", "from", "extends"};

bool begins_name(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || static_cast<unsigned char>(c) >= 0x80;
}
bool is_digit(char c) { return c >= '0' && c <= '9'; }

// Whether the name of an attribute is one that a sandbox refuses. "_" alone is the conventional name of an unused
// variable.
bool is_private(std::string_view name) {
  return (name.size() > 1 && name.front() == '_' && name.find(' ') == name.npos) ||
         std::ranges::find(kUnsafe, name) != std::end(kUnsafe);
}

// Whether the text has "__name__" anywhere, as pieces of code in it would.
bool has_dunder(std::string_view text) {
  for (std::size_t at = 0; (at = text.find("__", at)) != text.npos; at += 2) {
    std::size_t end = at + 2;
    while (end < text.size() && (begins_name(text[end]) || is_digit(text[end])) && text[end] != '_') ++end;
    if (end > at + 2 && text.substr(end, 1) == "_") return true;
  }
  return false;
}

// Whether a field of the format string, between braces, reaches into its argument: "{0.name}", "{x[0]}".
bool reaches(std::string_view text) {
  bool field = false;
  for (const char c : text) {
    if (c == '{') field = true;
    if (c == '}' || c == ':') field = false;
    if (field && (c == '.' || c == '[')) return true;
  }
  return false;
}

class Lexer {
 public:
  explicit Lexer(std::string_view text) : text_(text) {}

  std::optional<TemplateFault> run() {
    while (!escape_ && text()) {}
    return escape_ ? escape_ : fault_;
  }

 private:
  enum class Kind : std::uint8_t { none, name, string, number, mark };
  struct Token {
    Kind kind = Kind::none;
    std::size_t at = 0;
    std::string text{};  // of a string: what it is
  };

  bool starts(std::string_view what) const { return text_.substr(at_).starts_with(what); }
  void fault(std::size_t at, std::string what) {
    if (!fault_) fault_ = TemplateFault{false, at, std::move(what)};
  }
  void escape(std::size_t at, std::string what) {
    if (!escape_) escape_ = TemplateFault{true, at, std::move(what)};
  }

  // The next tag, comment or expression; false at the end of the template.
  bool text() {
    const std::size_t begin = text_.find('{', at_);
    if (begin == text_.npos) return false;
    at_ = begin + 1;
    if (starts("#")) {
      const std::size_t end = text_.find("#}", at_);
      if (end == text_.npos) return fault(begin, "a comment without an end"), false;
      at_ = end + 2;
    } else if (starts("{") || starts("%")) {
      const char mark = text_[at_++];
      if (starts("-") || starts("+")) ++at_;
      if (!code(begin, mark == '{' ? "}}" : "%}", mark == '%')) return false;
    }
    return true;
  }

  // The tokens up to `end`.
  bool code(std::size_t begin, std::string_view end, bool statement) {
    std::vector<char> open;
    last_ = before_ = {};
    bool first = true;
    for (;;) {
      while (at_ < text_.size() && std::string_view(" \t\r\n\f\v").find(text_[at_]) != std::string_view::npos) ++at_;
      if (at_ == text_.size()) return fault(begin, "a tag without an end"), false;
      const std::size_t skipped = starts("-") || starts("+") ? 1 : 0;
      if (open.empty() && text_.substr(at_ + skipped).starts_with(end)) {
        at_ += skipped + end.size();
        return !(first_ == "raw" && statement) || raw(begin);
      }
      Token token;
      if (!next(token, open)) return false;
      if (first && statement) {
        first_ = token.kind == Kind::name ? token.text : "";
        if (std::ranges::find(kReading, first_) != std::end(kReading)) escape(token.at, first_);
      } else if (first) {
        first_.clear();
      }
      judge(token);
      if (escape_) return false;
      before_ = std::move(last_);
      last_ = std::move(token);
      first = false;
    }
  }

  // To the end of {% raw %}, in which nothing is code.
  bool raw(std::size_t begin) {
    while ((at_ = text_.find("{%", at_)) != text_.npos) {
      std::size_t word = text_.find_first_not_of(" \t\r\n-+", at_ + 2);
      if (text_.substr(std::min(word, text_.size())).starts_with("endraw")) {
        at_ = text_.find("%}", word);
        if (at_ == text_.npos) break;
        at_ += 2;
        return true;
      }
      at_ += 2;
    }
    fault(begin, "raw text without an end");
    return false;
  }

  bool next(Token& token, std::vector<char>& open) {
    const std::size_t begin = at_;
    token.at = begin;
    const char c = text_[at_];
    if (begins_name(c)) {
      while (at_ < text_.size() && (begins_name(text_[at_]) || is_digit(text_[at_]))) ++at_;
      token.kind = Kind::name;
      token.text = text_.substr(begin, at_ - begin);
    } else if (is_digit(c)) {
      while (at_ < text_.size() && (begins_name(text_[at_]) || is_digit(text_[at_]) || text_[at_] == '.')) ++at_;
      token.kind = Kind::number;
    } else if (c == '\'' || c == '"') {
      token.kind = Kind::string;
      if (!string(token.text)) return fault(begin, "a string without an end"), false;
    } else {
      token.kind = Kind::mark;
      token.text = c;
      ++at_;
      if (c == '(' || c == '[' || c == '{') open.push_back(c == '(' ? ')' : c == '[' ? ']' : '}');
      if (c == ')' || c == ']' || c == '}') {
        if (open.empty() || open.back() != c) return fault(begin, std::string("unmatched ") + c), false;
        open.pop_back();
      }
      if (std::string_view("()[]{}.,:|~+-*/%<>=!;").find(c) == std::string_view::npos)
        return fault(begin, std::string("the character ") + c), false;
    }
    return true;
  }

  // A string, with the escapes of Python undone that can hide a name.
  bool string(std::string& out) {
    const char quote = text_[at_++];
    for (; at_ < text_.size(); ++at_) {
      const char c = text_[at_];
      if (c == quote) return ++at_, true;
      if (c != '\\') {
        out += c;
        continue;
      }
      if (++at_ == text_.size()) return false;
      const char kind = text_[at_];
      const std::size_t digits = kind == 'x' ? 2 : kind == 'u' ? 4 : kind == 'U' ? 8 : 0;
      std::size_t base = 16, count = digits, from = at_ + 1;
      if (kind >= '0' && kind <= '7') base = 8, count = 3, from = at_;
      unsigned value = 0;
      std::size_t used = 0;
      for (; used < count && from + used < text_.size(); ++used) {
        const std::size_t digit =
            std::string_view("0123456789abcdef").find(static_cast<char>(text_[from + used] | 0x20));
        if (digit >= base) break;
        value = value * static_cast<unsigned>(base) + static_cast<unsigned>(digit);
      }
      if (kind == 'N') {  // by a name: "\N{LOW LINE}"
        out += '_';
      } else if (used == 0) {
        out += kind;
      } else {
        out += value < 0x80 ? static_cast<char>(value) : '?';
        at_ = from + used - 1;
      }
    }
    return false;
  }

  bool after(char c) const { return last_.kind == Kind::mark && last_.text[0] == c; }

  void judge(const Token& token) {
    if (token.kind == Kind::name) {
      if (is_private(token.text) && (token.text.front() == '_' || after('.'))) return escape(token.at, token.text);
      if (token.text == "attr" && after('|')) return escape(token.at, "the filter attr");
      if ((token.text == "format" || token.text == "format_map") && after('.') &&
          (before_.kind != Kind::string || reaches(before_.text)))
        return escape(token.at, token.text);
    }
    if (token.kind == Kind::string) {
      const bool names =
          after('[') || after('(') || after('=') || after('|');  // an attribute, in the places where one can be
      if (has_dunder(token.text) || (names && is_private(token.text)) ||
          (after('[') && token.text.starts_with("format")))
        return escape(token.at, token.text);
    }
  }

  std::string_view text_;
  std::size_t at_ = 0;
  Token last_{}, before_{};
  std::string first_{};  // word of a statement
  std::optional<TemplateFault> fault_{}, escape_{};
};

}  // namespace

std::optional<TemplateFault> template_fault(std::string_view text) { return Lexer(text).run(); }

}  // namespace weighbridge::wire
