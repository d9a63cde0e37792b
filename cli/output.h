// SPDX-License-Identifier: Apache-2.0
// Standard output and standard error. Owns buffering, what a closed pipe and a full disk mean, color, and making
// hostile text harmless for people; leaves what is said to the verbs.
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace weighbridge::cli {

// Standard output cannot be written, and not because its reader has gone: status 4.
struct OutputFailed {
  int error_number;
};

enum class Tone : std::uint8_t { plain, good, bad, warning, heading };

class Output {
 public:
  Output();
  Output(const Output&) = delete;
  Output& operator=(const Output&) = delete;

  // Appends as it is. Throws OutputFailed.
  void text(std::string_view text) {
    buffer_.append(text);
    drain();
  }
  // Appends text that came from a file or an argument, escaped for people.
  void shown(std::string_view text);
  // Appends in a color where standard output is a terminal that wants colors.
  void toned(Tone tone, std::string_view text);
  // What the hot paths append to themselves; they call drain() now and then.
  std::string& buffer() noexcept { return buffer_; }
  void drain() {
    if (buffer_.size() >= kFull) flush();
  }
  void flush();
  // Bytes of a tensor. False when the reader has gone: no more is wanted.
  bool bytes(std::span<const std::byte> bytes);
  // Whether colors are used, in place of what the terminal and the environment say.
  void color(bool used) noexcept { color_ = used; }
  // The reader has gone; whatever is said from now on is dropped.
  bool closed() const noexcept { return closed_; }
  // How wide a line may be: the columns of the terminal that standard output is; 0, any width, where it is none.
  std::size_t columns() const noexcept { return columns_; }

 private:
  static constexpr std::size_t kFull = 64 << 10;
  void write_all(const char* data, std::size_t size);

  std::string buffer_;
  std::size_t columns_ = 0;
  bool color_ = false, closed_ = false;
};

// Columns of the terminal that a descriptor is, 80 where it does not say; 0: it is none.
std::size_t terminal_columns(int descriptor) noexcept;

// One line on standard error: "weighbridge: " and the sentence, which must be escaped already.
void complain(std::string_view sentence);
// A line on standard error as it is.
void remark(std::string_view line);
// A text from a file or an argument, escaped; and in single quotes.
std::string shown(std::string_view text);
std::string quote(std::string_view text);

// Appends `text` escaped and returns how many columns it takes. Plain ASCII takes a short way.
std::size_t append_shown(std::string& to, std::string_view text);
std::size_t width_shown(std::string_view text);
// As shown() has it, in at most `columns` columns (at least 5): what is longer loses its middle, "blocks...weight".
std::string fitted(std::string_view text, std::size_t columns);

// "1.5 KiB": three digits or so, powers of 1024, "512 B" below 1024.
void append_size(std::string& to, std::uint64_t bytes);
std::string size_text(std::uint64_t bytes);
// Digits in groups of three: "90,868,376".
std::string grouped(std::uint64_t number);
void append_number(std::string& to, std::uint64_t number);

// Where one of the descriptors 0, 1, 2 is closed, a file opened later would take its number and be written to by
// mistake: a stand-in takes it first, on which reading or writing fails.
void guard_standard_descriptors() noexcept;

}  // namespace weighbridge::cli
