// SPDX-License-Identifier: Apache-2.0
// What the command asks of the operating system: standard streams and the terminal here (os_streams.cc), signals in
// interrupt.h (os_signals.cc), confinement in sandbox.h (os_sandbox.cc). Only these sources include the system's
// headers. They serve Linux; macOS needs a sandbox of its own or none, and Windows all three: console modes in place of
// descriptors, SetConsoleCtrlHandler in place of signals.
#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>

namespace weighbridge::cli::os {

enum class Stream : int { input, output, errors };

// At the start of the process: writing to a closed pipe or past the limit of a file's size is an error, not a signal;
// as many files can be open as the system allows, because each file of an output keeps a lock until all are published;
// and a standard stream that is closed gets a placeholder, so that no file that is opened later takes its number and is
// written to by mistake.
void prepare_process() noexcept;

bool is_terminal(Stream) noexcept;
// The width of the terminal, 80 if it does not tell; 0 if it is none.
std::size_t terminal_columns(Stream) noexcept;
// Writes at least one byte; returns how many, or -1 with errno.
std::ptrdiff_t write(Stream, const char* data, std::size_t size) noexcept;
// Waits at most `milliseconds` for standard input. Returns how many bytes it read, 0 at the end, or -1 with errno:
// EAGAIN if there were none yet, EINTR after a signal.
std::ptrdiff_t read_input(std::span<std::byte> out, int milliseconds) noexcept;

// An open file without a name of its own. Calls that fail return something empty, or -1, with errno.
class OpenFile {
 public:
  OpenFile() = default;
  OpenFile(OpenFile&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  OpenFile& operator=(OpenFile&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  ~OpenFile();
  // A new one on the disk of this folder, which is gone when the process ends, however it ends.
  static OpenFile temporary(const std::string& folder);
  // Standard input, if it is a file that nothing has been read from; it is read in place.
  static OpenFile standard_input() noexcept;

  explicit operator bool() const noexcept { return fd_ >= 0; }
  std::optional<std::uint64_t> size() const noexcept;
  std::ptrdiff_t read_at(std::uint64_t offset, std::span<std::byte> out) const noexcept;
  std::ptrdiff_t append(std::span<const std::byte> bytes) noexcept;

 private:
  explicit OpenFile(int fd) noexcept : fd_(fd) {}
  int fd_ = -1;
};
bool input_is_file() noexcept;

}  // namespace weighbridge::cli::os
