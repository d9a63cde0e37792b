// SPDX-License-Identifier: Apache-2.0
// Standard output and standard error. Owns buffering, colors, the handling of a closed pipe and a full disk, and the
// escaping of untrusted text.
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace weighbridge::cli {

// Writing to standard output failed, for another reason than a closed pipe: exit status 4.
struct OutputFailed {
  int error_number;
};

enum class Tone : std::uint8_t { plain, good, bad, warning, heading };

class Output {
 public:
  Output();
  Output(const Output&) = delete;
  Output& operator=(const Output&) = delete;

  // Appends without escaping. Throws OutputFailed.
  void text(std::string_view text) {
    buffer_.append(text);
    drain();
  }
  // Appends text from a file or an argument, escaped.
  void shown(std::string_view text);
  // Appends in a color, if colors are on.
  void toned(Tone tone, std::string_view text);
  // For hot paths, which append to it directly and call drain() now and then.
  std::string& buffer() noexcept { return buffer_; }
  void drain() {
    if (buffer_.size() >= kFull) flush();
  }
  void flush();
  // Writes bytes of a tensor. False when the pipe is closed: stop writing.
  bool bytes(std::span<const std::byte> bytes);
  // Turns colors on or off, whatever the terminal and the environment say.
  void color(bool used) noexcept { color_ = used; }
  // The pipe is closed; further output is dropped.
  bool closed() const noexcept { return closed_; }
  // The width of the terminal on standard output; 0 (unlimited) if it is not a terminal.
  std::size_t columns() const noexcept { return columns_; }

 private:
  static constexpr std::size_t kFull = 64 << 10;
  void write_all(const char* data, std::size_t size);

  std::string buffer_;
  std::size_t columns_ = 0;
  bool color_ = false, closed_ = false;
};

// Prints "weighbridge: " and the sentence, already escaped, on standard error.
void complain(std::string_view sentence);
// Prints a line on standard error.
void remark(std::string_view line);
// A text from a file or an argument, escaped; quote() adds single quotes.
std::string shown(std::string_view text);
std::string quote(std::string_view text);
// A text as a word of a shell command to copy, escaped.
std::string shell_word(std::string_view text);

// Appends `text` escaped and returns its width in columns. Plain ASCII takes a fast path.
std::size_t append_shown(std::string& to, std::string_view text);
std::size_t width_shown(std::string_view text);
// As shown(), in at most `columns` columns (at least 5): a longer text loses its middle, "blocks...weight".
std::string fitted(std::string_view text, std::size_t columns);
inline constexpr std::size_t kMessageName = 200;  // columns of a name in a message
// The same of a text that is escaped already.
std::string fitted_shown(const std::string& text, std::size_t columns);

// "1.5 KiB": three digits or so, powers of 1024, "512 B" below 1024.
void append_size(std::string& to, std::uint64_t bytes);
std::string size_text(std::uint64_t bytes);
// Digits in groups of three: "90,868,376".
std::string grouped(std::uint64_t number);
void append_number(std::string& to, std::uint64_t number);
// "1 file", "1,234 files"
std::string counted(std::uint64_t count, std::string_view one, std::string_view many);

}  // namespace weighbridge::cli
