// SPDX-License-Identifier: Apache-2.0
// The sink to which a walker reports. The same walker serves open, which stops at the first error, and verify, which
// continues, so the two cannot disagree. Owns the text of findings made from rules.
#pragma once
#include <array>
#include <concepts>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "core/reading/spans.h"
#include "weighbridge/error.h"
#include "weighbridge/formats.h"
#include "weighbridge/model.h"
#include "weighbridge/source.h"

namespace weighbridge::core {

template <class T>
concept Count = std::integral<T> && !std::same_as<T, bool> && !std::same_as<T, char>;

// A piece of what a finding says: words, a number, a size, a text of the file, a shape.
class Piece {
 public:
  constexpr Piece() = default;
  constexpr Piece(const char* words) : Piece(std::string_view(words)) {}
  constexpr Piece(std::string_view text) : Piece(Form::text, text.data(), text.size()) {}
  Piece(const std::string& text) : Piece(std::string_view(text)) {}
  template <Count Number> constexpr Piece(Number number) : size_(static_cast<std::uint64_t>(number)) {
    form_ = number < Number{} ? Form::negative : Form::number;
  }
  void append_to(std::string&) const;

 private:
  friend constexpr Piece in_bytes(std::uint64_t) noexcept;
  friend constexpr Piece excerpted(std::string_view, std::size_t) noexcept;
  friend constexpr Piece in_quotes(std::string_view, std::size_t) noexcept;
  friend constexpr Piece of_shape(Shape) noexcept;
  enum class Form : std::uint8_t { text, excerpt, quote, number, negative, bytes, shape };
  constexpr Piece(Form form, const void* data, std::uint64_t size, std::size_t maximum = 0)
      : data_(data), size_(size), maximum_(maximum), form_(form) {}

  const void* data_ = nullptr;
  std::uint64_t size_ = 0;   // of the text or the shape; or the number
  std::size_t maximum_ = 0;  // characters of an excerpt
  Form form_ = Form::text;
};
inline constexpr std::size_t kWhole = static_cast<std::size_t>(-1);  // for the next two: all of a text
// "12 bytes"; the beginning of a text of the file; the same in quotes; "[2, 3]".
constexpr Piece in_bytes(std::uint64_t n) noexcept { return {Piece::Form::bytes, nullptr, n}; }
constexpr Piece excerpted(std::string_view text, std::size_t maximum = 40) noexcept {
  return {Piece::Form::excerpt, text.data(), text.size(), maximum};
}
constexpr Piece in_quotes(std::string_view text, std::size_t maximum = 40) noexcept {
  return {Piece::Form::quote, text.data(), text.size(), maximum};
}
constexpr Piece of_shape(Shape shape) noexcept { return {Piece::Form::shape, shape.data(), shape.size()}; }

// What was expected or found: at most eight pieces, {first, " to ", last}. They become text only when a finding is
// kept: a hostile file can have millions of errors that are only counted. Texts are those of the caller, who has them
// until then; keep() takes them over.
class Said {
 public:
  Said() = default;
  Said(std::string&& text) : text_(std::move(text)), owned_(true) {}
  template <class... Each>
    requires(sizeof...(Each) > 0 && sizeof...(Each) <= 8 && (std::convertible_to<const Each&, Piece> && ...))
  Said(const Each&... pieces) : pieces_{Piece(pieces)...} {}

  std::string text() const;
  Said keep() const { return text(); }

 private:
  std::string text_{};
  std::array<Piece, 8> pieces_{};
  bool owned_ = false;  // all is in text_
};
inline Said at_most(Piece n, std::string_view after = {}) { return {"at most ", n, after}; }
inline Said at_least(Piece n, std::string_view after = {}) { return {"at least ", n, after}; }
inline Said multiple_of(Piece n, std::string_view after = {}) { return {"a multiple of ", n, after}; }

// Thrown by Findings in mode first_error after the error has been recorded. Only the registry catches it.
struct Stop {};

struct At {
  std::optional<std::uint64_t> offset{};
  std::optional<std::string_view> tensor{};
  Hint hint{};  // rules "limit/..." set their own
};

// At a field of a record of base/record.h that begins there.
template <class Record, class T>
At at_field(T Record::*field, std::uint64_t begin = 0, std::optional<std::string_view> tensor = {}) {
  return {.offset = begin + base::offset_of(field), .tensor = tensor};
}

// Whether they are one file: one object, or one path. Sources of the same name are not.
bool is_same(const Source&, const Source&) noexcept;

// Finds a file among several, which must outlive it, as is_same() does.
class SourceIndex {
 public:
  explicit SourceIndex(std::span<const std::shared_ptr<const Source>>);
  std::optional<std::uint32_t> find(const Source&) const;

 private:
  std::unordered_map<const Source*, std::uint32_t> by_object_;
  std::unordered_map<std::string_view, std::uint32_t> by_path_;
};

// The files that findings are about. The model tells which of its sources they are only when all is read, so that until
// place() a finding has the number of a file here.
class NamedFiles {
 public:
  std::uint32_t number_of(const std::shared_ptr<const Source>&);
  // Sets FileRef::source to the index among these sources, or to none.
  void place(Report&, std::span<const std::shared_ptr<const Source>>) const;

 private:
  static constexpr std::uint32_t kNumber = std::uint32_t{1} << 31;  // not an index of a source
  std::vector<std::shared_ptr<const Source>> files_;
};

class Findings {
 public:
  enum class Mode : std::uint8_t { first_error, all };
  Findings(Report& report, Mode mode) : report_(report), mode_(mode) {}
  // The same sink for a walk over another file than the one that was given. Its findings name that file, unless they
  // already name one.
  Findings in(std::shared_ptr<const Source> file) const {
    Findings out = in(std::string(file->name()));
    out.of_ = std::move(file);
    return out;
  }

  // The same for a file that cannot be opened.
  Findings in(std::string file) const {
    Findings out = *this;
    out.of_ = nullptr;
    out.file_ = std::move(file);
    return out;
  }
  // Whether the caller lists incomplete models (OpenOptions::list_incomplete).
  void set_list_incomplete(bool list) noexcept { list_incomplete_ = list; }
  bool list_incomplete() const noexcept { return list_incomplete_; }
  // Remembers the files there, for NamedFiles::place().
  void keep_files(NamedFiles* files) noexcept { files_ = files; }

  // Records a finding of the rule's severity. Its message is the rule's sentence, followed by `detail`, `expected` and
  // `found` if given. A rule "limit/..." has kind limit and a hint that names the limit. In mode first_error, an error
  // throws Stop. The texts are exact, not escaped.
  void report(const Rule&, At, const Said& expected = {}, const Said& found = {}, const Said& detail = {});
  // The same. Returns false, so that a step of a walker can end with it.
  bool fail(const Rule& rule, At at, const Said& expected = {}, const Said& found = {}, const Said& detail = {}) {
    report(rule, std::move(at), expected, found, detail);
    return false;
  }
  // Records a finding made elsewhere (content passes sort theirs first).
  void report(Finding);
  // The same for a missing part of a model (Rule::Phase::whole): an error in verify, a warning in open, which can read
  // the rest.
  void report_absent(const Rule&, At, std::string_view detail);
  // The same for data that is not there, or not where files of one model say. If the caller lists incomplete models,
  // this never throws, and returns the error as the reason to list the tensors with; otherwise null.
  std::shared_ptr<const Finding> report_missing(const Rule&, At, const Said& expected = {}, const Said& found = {},
                                                const Said& detail = {});
  static Finding make(const Rule&, At, const Said& expected = {}, const Said& found = {}, const Said& detail = {});

  // Errors so far. A walker compares it before and after a step to see whether an error of the file makes the rest
  // meaningless.
  std::uint64_t errors() const noexcept { return report_.errors(); }
  Mode mode() const noexcept { return mode_; }

  // What the walker reports about the bytes that it reads, for explain(). Kept only for the bytes that `spans` wants,
  // and only of the given file.
  void keep_spans(Spans* spans) noexcept { spans_ = spans; }
  bool wanted(std::uint64_t begin, std::uint64_t end) const noexcept {
    return spans_ != nullptr && file_.empty() && spans_->wanted(begin, end);
  }
  // `value` is a text, or a function that makes it and is called only for wanted bytes.
  template <class Value>
  void span(Span::Kind kind, std::uint64_t begin, std::uint64_t end, std::string_view what, const Value& value) const {
    if (!wanted(begin, end)) return;
    if constexpr (requires { std::string(value()); })
      spans_->add(kind, begin, end, what, value());
    else
      spans_->add(kind, begin, end, what, std::string(value));
  }
  void span(Span::Kind kind, std::uint64_t begin, std::uint64_t end, std::string_view what) const {
    if (wanted(begin, end)) spans_->add(kind, begin, end, what, {});
  }
  // The fields of a record of base/record.h, as far as the bytes reach.
  template <class Record> void fields(std::uint64_t at, std::string_view bytes) const {
    if (wanted(at, at + bytes.size())) spans_->add_fields(at, bytes, base::rows_of<Record>());
  }
  // The same, and a span for the bytes, which may be more than the record.
  template <class Record>
  void record(Span::Kind kind, std::uint64_t at, std::string_view bytes, std::string_view what) const {
    span(kind, at, at + bytes.size(), what);
    fields<Record>(at, bytes);
  }
  template <class Record>
  void record(Span::Kind kind, std::uint64_t at, std::span<const std::byte> bytes, std::string_view what) const {
    record<Record>(kind, at, {reinterpret_cast<const char*>(bytes.data()), bytes.size()}, what);
  }
  // A JSON text or a CBOR item, with everything nested in it.
  void tree(Grammar grammar, Span::Kind kind, std::uint64_t at, std::string_view text, std::string_view what) const {
    if (wanted(at, at + text.size())) spans_->add_tree(grammar, kind, what, at, text);
  }

 private:
  void name_file(Finding&) const;

  Report& report_;
  Mode mode_;
  bool list_incomplete_ = false;
  Spans* spans_ = nullptr;
  NamedFiles* files_ = nullptr;
  std::string file_{};
  std::shared_ptr<const Source> of_{};  // the file of that name, if it could be opened
};

// Reports it if `extra` bytes of the file belong to nothing because its beginning is there twice: a part of a download,
// then the whole file.
void report_second_beginning(Findings&, const Source&, std::uint64_t extra);

}  // namespace weighbridge::core
