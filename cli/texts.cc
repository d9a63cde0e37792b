// SPDX-License-Identifier: Apache-2.0
// Reads texts from operands, files and standard input.
#include "texts.h"

#include <algorithm>
#include <filesystem>
#include <system_error>

#include "standard_input.h"

namespace weighbridge::cli {

namespace {

constexpr std::string_view kTextEndings[] = {".txt", ".md", ".jsonl"};

bool has_ending(std::string_view path, std::string_view ending) {
  const auto small = [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; };
  return path.size() >= ending.size() &&
         std::ranges::equal(path.substr(path.size() - ending.size()), ending, {}, small);
}

}  // namespace

TextPull pull_from(Session& session, const std::string& path) {
  if (path == "-") {
    session.claim_standard_input();
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
  if (args.has(FlagId::input_format))
    return args.value(FlagId::input_format) == "jsonl" ? TextForm::jsonl : TextForm::lines;
  if (has_ending(path, ".json"))
    throw Misuse(quote(path) +
                 " is named as JSON, which is not read as texts: --input-format jsonl reads a JSON string or "
                 "object on each line, --input-format lines takes each line as it is");
  return has_ending(path, ".jsonl") || has_ending(path, ".ndjson") ? TextForm::jsonl : TextForm::lines;
}

std::vector<std::string> corpus_files(const Arguments& args) {
  namespace fs = std::filesystem;
  std::vector<std::string> out;
  for (const std::string& path : args.values(FlagId::corpus)) {
    std::error_code error;
    if (path == "-" || !fs::is_directory(path, error)) {
      out.push_back(path);
      continue;
    }
    std::vector<std::string> inside;
    for (fs::recursive_directory_iterator at(path, error), end; !error && at != end; at.increment(error)) {
      const std::string name = at->path().filename().string();
      std::error_code unknown;
      if (name.starts_with('.')) {
        if (at->is_directory(unknown)) at.disable_recursion_pending();
      } else if (at->is_regular_file(unknown) &&
                 std::ranges::any_of(kTextEndings, [&](auto ending) { return has_ending(name, ending); })) {
        inside.push_back(at->path().string());
      }
    }
    if (error) raise(Kind::io, "io/open", "the folder cannot be read: " + error.message(), path);
    if (inside.empty()) raise(Kind::misuse, "misuse/corpus", "the folder has no .txt, .md or .jsonl file", path);
    std::ranges::sort(inside);
    out.insert(out.end(), inside.begin(), inside.end());
  }
  return out;
}

TextFile::TextFile(Session& session, std::string path, TextForm form)
    : name_(input_name(path)),
      reader_(in_file(name_, [&] { return pull_from(session, path); }), form, session.context().limits) {}

bool TextFile::next(std::string& text) {
  return in_file(name_, [&] { return reader_.next(text); });
}
bool TextFile::next_record(std::vector<std::string>& fields) {
  return in_file(name_, [&] { return reader_.next_record(fields); });
}

Texts::Texts(Session& session, std::size_t first) : session_(session) {
  const Arguments& args = session.args;
  operands_ = std::span(args.operands).subspan(std::min(first, args.operands.size()));
  const bool input = args.has(FlagId::input);
  if (input && !operands_.empty()) throw Misuse("give texts either as arguments or with --input");
  if (!input && operands_.empty()) throw Misuse("no text given: give texts as arguments, or --input FILE");
  if (input) file_.emplace(session, std::string(args.value(FlagId::input)), text_form(args, args.value(FlagId::input)));
  if (args.has(FlagId::input_format) && !input && !args.has(FlagId::corpus) &&
      std::ranges::find(operands_, "-") == operands_.end())
    throw Misuse("--input-format has no effect without --input");
}

bool Texts::next(std::string& text) {
  for (;;) {
    if (file_ && file_->next(text)) return true;
    file_.reset();
    if (operands_.empty()) return false;
    text = operands_.front();
    operands_ = operands_.subspan(1);
    if (text != "-") return true;
    file_.emplace(session_, text, text_form(session_.args, text));
  }
}

std::optional<Tokenizer> vocabulary_of(Session& session) {
  if (!session.args.has(FlagId::vocab)) return std::nullopt;
  const std::string path(session.args.value(FlagId::vocab));
  return in_file(path, [&] { return WordPiece::vocabulary(*session.source(path), session.context().limits); });
}

}  // namespace weighbridge::cli
