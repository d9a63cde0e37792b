// SPDX-License-Identifier: Apache-2.0
// Where texts come from.
#include "texts.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace weighbridge::cli {

TextPull pull_from(const std::string& path) {
  if (path == "-") {
    return [](std::span<char> out) {
      for (;;) {
        const ssize_t got = ::read(STDIN_FILENO, out.data(), out.size());
        if (got >= 0) return static_cast<std::size_t>(got);
        if (errno != EINTR)
          raise(Kind::io, "io/read", std::string("standard input cannot be read: ") + std::strerror(errno));
      }
    };
  }
  return [source = open_file(path), at = std::uint64_t{0}](std::span<char> out) mutable {
    const auto n = static_cast<std::size_t>(std::min<std::uint64_t>(out.size(), source->size() - at));
    source->read_at(at, std::as_writable_bytes(out.first(n)));
    at += n;
    return n;
  };
}

Texts::Texts(Session& session, std::size_t first) {
  const Arguments& args = session.args;
  operands_ = std::span(args.operands).subspan(std::min(first, args.operands.size()));
  const bool input = args.has(FlagId::input);
  if (input && !operands_.empty()) throw Misuse("texts are given as arguments or by --input, not both");
  if (!input && operands_.empty()) throw Misuse("there is no text: give some as arguments, or --input FILE");
  if (!input) return;
  const TextForm form = args.value(FlagId::input_format) == "jsonl" ? TextForm::jsonl : TextForm::lines;
  reader_.emplace(pull_from(std::string(args.value(FlagId::input))), form, session.context().limits);
}

bool Texts::next(std::string& text) {
  if (reader_) return reader_->next(text);
  if (operands_.empty()) return false;
  text = operands_.front();
  operands_ = operands_.subspan(1);
  return true;
}

std::optional<Tokenizer> vocabulary_of(Session& session) {
  if (!session.args.has(FlagId::vocab)) return std::nullopt;
  const std::string path(session.args.value(FlagId::vocab));
  const auto source = open_file(path);
  if (source->size() > session.context().limits.header)
    raise(Kind::malformed, "limit/header",
          "the vocabulary is larger than the limit allows (Limits::header, --limit header=BYTES)");
  std::string text(static_cast<std::size_t>(source->size()), '\0');
  source->read_at(0, std::as_writable_bytes(std::span(text)));
  return WordPiece::vocabulary(text);
}

}  // namespace weighbridge::cli
