// SPDX-License-Identifier: Apache-2.0
// Reads texts from operands, files and standard input.
#include "texts.h"

#include <algorithm>

#include "standard_input.h"

namespace weighbridge::cli {

TextPull pull_from(const std::string& path) {
  if (path == "-") {
    return [](std::span<char> out) { return read_standard_input(std::as_writable_bytes(out)); };
  }
  return [source = open_file(path), at = std::uint64_t{0}](std::span<char> out) mutable {
    const auto n = static_cast<std::size_t>(std::min<std::uint64_t>(out.size(), source->size() - at));
    source->read_at(at, std::as_writable_bytes(out.first(n)));
    at += n;
    return n;
  };
}

TextForm text_form(const Arguments& args, std::string_view path) {
  const bool jsonl =
      args.has(FlagId::input_format) ? args.value(FlagId::input_format) == "jsonl" : path.ends_with(".jsonl");
  return jsonl ? TextForm::jsonl : TextForm::lines;
}

TextFile::TextFile(Session& session, std::string path, TextForm form)
    : name_(path == "-" ? "standard input" : path),
      reader_(in_file(name_, [&] { return pull_from(path); }), form, session.context().limits) {}

bool TextFile::next(std::string& text) {
  return in_file(name_, [&] { return reader_.next(text); });
}
bool TextFile::next_record(std::vector<std::string>& fields) {
  return in_file(name_, [&] { return reader_.next_record(fields); });
}

Texts::Texts(Session& session, std::size_t first) {
  const Arguments& args = session.args;
  operands_ = std::span(args.operands).subspan(std::min(first, args.operands.size()));
  const bool input = args.has(FlagId::input);
  if (input && !operands_.empty()) throw Misuse("give texts either as arguments or with --input");
  if (!input && operands_.empty()) throw Misuse("no text given: give texts as arguments, or --input FILE");
  if (input) file_.emplace(session, std::string(args.value(FlagId::input)), text_form(args, args.value(FlagId::input)));
}

bool Texts::next(std::string& text) {
  if (file_) return file_->next(text);
  if (operands_.empty()) return false;
  text = operands_.front();
  operands_ = operands_.subspan(1);
  return true;
}

std::optional<Tokenizer> vocabulary_of(Session& session) {
  if (!session.args.has(FlagId::vocab)) return std::nullopt;
  const std::string path(session.args.value(FlagId::vocab));
  return in_file(path, [&] { return WordPiece::vocabulary(*open_file(path), session.context().limits); });
}

}  // namespace weighbridge::cli
