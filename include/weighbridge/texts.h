// SPDX-License-Identifier: Apache-2.0
/// \file
/// Many texts from one stream of bytes, in constant memory: lines, JSON lines, or the records of a CSV file. Leaves
/// what is done with them to the tokenizers and runtimes.
#pragma once
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "weighbridge/context.h"

namespace weighbridge {

/// How a stream is cut into texts.
enum class TextForm : std::uint8_t {
  lines,  ///< each line is a text, its newline (or carriage return and newline) left out
  /// Each line that is not empty is a JSON string, or an object whose member "text" is one, so that texts may hold
  /// newlines and NULs.
  jsonl
};

/// Pulls bytes: fills at most the span, returns how many; 0 ends.
using TextPull = std::function<std::size_t(std::span<char>)>;

/// Texts out of a stream, one at a time.
class TextReader {
 public:
  TextReader(TextPull, TextForm, const Limits& = {});  ///< reads nothing yet
  /// The next text. False: there is none. Throws Error{malformed} with rule "texts/jsonl" and the byte offset of a line
  /// that is neither, or "limit/memory" for a text longer than limits.memory.
  bool next(std::string& text);
  /// The next record of RFC 4180: fields between commas, in double quotes where they hold commas, quotes or newlines.
  /// Throws Error{malformed} with rule "texts/csv" for a quote that never ends.
  bool next_record(std::vector<std::string>& fields);

 private:
  bool fill();
  bool next_line(std::string& line);
  int next_char();
  void add(std::string& to, char c);

  TextPull pull_;
  TextForm form_;
  Limits limits_;
  std::vector<char> buffer_;
  std::size_t at_ = 0, end_ = 0;
  std::uint64_t offset_ = 0;  // of buffer_[end_] in the stream
  std::uint64_t line_ = 0;    // lines of JSON read
};

}  // namespace weighbridge
