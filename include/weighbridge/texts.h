// SPDX-License-Identifier: Apache-2.0
/// \file
/// Reads many texts from one stream of bytes in constant memory: lines, JSON lines, or the records of a CSV file.
#pragma once
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "weighbridge/context.h"

namespace weighbridge {

/// How a stream is divided into texts.
enum class TextForm : std::uint8_t {
  lines,  ///< each line is a text, without its newline (or carriage return and newline)
  /// Each nonempty line is a JSON string, or an object whose member "text" is one, so that texts may hold newlines and
  /// NULs.
  jsonl
};

/// Reads bytes: fills at most the span and returns how many; 0 ends.
using TextPull = std::function<std::size_t(std::span<char>)>;

/// Reads texts from a stream, one at a time.
class TextReader {
 public:
  TextReader(TextPull, TextForm, const Limits& = {});  ///< reads nothing yet
  /// Reads the next text; false if there is none. Throws Error{malformed} with rule "texts/jsonl" and the byte offset
  /// of an invalid line, and Error{limit} "limit/memory" for a text longer than limits.memory.
  bool next(std::string& text);
  /// Reads the next record of RFC 4180: fields between commas, in double quotes if they hold commas, quotes or
  /// newlines. Throws Error{malformed} with rule "texts/csv" for a quote that does not end.
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
