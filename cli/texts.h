// SPDX-License-Identifier: Apache-2.0
// The texts that a verb works on: the operands after the model, or the records of --input.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "session.h"
#include "weighbridge/texts.h"
#include "weighbridge/tokenize.h"

namespace weighbridge::cli {

// The texts of a file, or of standard input for "-". Errors name that file.
class TextFile {
 public:
  TextFile(Session&, std::string path, TextForm);
  bool next(std::string& text);
  bool next_record(std::vector<std::string>& fields);
  const std::string& name() const noexcept { return name_; }  // as in errors

 private:
  std::string name_;
  TextReader reader_;
};

class Texts {
 public:
  // Operands from `first` on, each "-" of them being the texts of standard input; or --input FILE|-. Throws Misuse if
  // there are both, or neither, or an --input-format that nothing has.
  Texts(Session&, std::size_t first);
  bool next(std::string& text);

 private:
  Session& session_;
  std::span<const std::string> operands_;
  std::optional<TextFile> file_;
};

// The form that --input-format names; the default depends on the extension of `path`. Throws Misuse for a .json, whose
// lines are not texts.
TextForm text_form(const Arguments&, std::string_view path);

// The files of --corpus: those named, and the text files in and below a folder, in the order of their names. Throws
// Misuse if a folder has none.
std::vector<std::string> corpus_files(const Arguments&);

// Reads a file, or standard input for "-", a buffer at a time.
TextPull pull_from(Session&, const std::string& path);

// The vocabulary of --vocab, or nullopt. Errors name that file.
std::optional<Tokenizer> vocabulary_of(Session&);

}  // namespace weighbridge::cli
