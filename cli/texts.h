// SPDX-License-Identifier: Apache-2.0
// The texts that a verb works on: its operands behind the model, or --input, line by line.
#pragma once
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "session.h"
#include "weighbridge/texts.h"
#include "weighbridge/tokenize.h"

namespace weighbridge::cli {

// A file's texts, or standard input's for "-". What is wrong with them is an Error of that file.
class TextFile {
 public:
  TextFile(Session&, std::string path, TextForm);
  bool next(std::string& text);
  bool next_record(std::vector<std::string>& fields);
  const std::string& name() const noexcept { return name_; }  // as errors have it

 private:
  std::string name_;
  TextReader reader_;
};

class Texts {
 public:
  // Operands from `first` on, or --input FILE|- in --input-format. Throws Misuse where there are both, or neither.
  Texts(Session&, std::size_t first);
  bool next(std::string& text);

 private:
  std::span<const std::string> operands_;
  std::optional<TextFile> file_;
};

// As --input-format says; otherwise as the name of the file at `path` ends.
TextForm text_form(const Arguments&, std::string_view path);

// Reads a file, or standard input for "-", a buffer at a time.
TextPull pull_from(const std::string& path);

// The vocabulary of --vocab, or nothing. What is wrong with it is an Error of that file.
std::optional<Tokenizer> vocabulary_of(Session&);

}  // namespace weighbridge::cli
