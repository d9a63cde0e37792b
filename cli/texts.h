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

class Texts {
 public:
  // Operands from `first` on, or --input FILE|- in --input-format. Throws Misuse where there are both, or neither.
  Texts(Session&, std::size_t first);
  bool next(std::string& text);

 private:
  std::span<const std::string> operands_;
  std::optional<TextReader> reader_;
};

// Reads a file, or standard input for "-", a buffer at a time.
TextPull pull_from(const std::string& path);

// The vocabulary of --vocab, or nothing.
std::optional<Tokenizer> vocabulary_of(Session&);

}  // namespace weighbridge::cli
