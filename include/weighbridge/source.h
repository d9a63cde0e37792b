// SPDX-License-Identifier: Apache-2.0
/// \file
/// Where bytes come from. Readers see a file only through Source.
///
/// A caller may derive from Source (a network range, a test that fails). Everything works with it; view() needs map().
#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

namespace weighbridge {

/// A read-only range and the owner that keeps it alive (mapping, arena, caller's buffer).
struct Bytes {
  std::span<const std::byte> span;   ///< the bytes
  std::shared_ptr<const void> keep;  ///< null: the caller keeps it alive
};

class Place;

/// One of several ranges to read together.
struct ReadRange {
  std::uint64_t offset = 0;    ///< of the first byte
  std::span<std::byte> out{};  ///< filled completely
};

/// The cost of a read, by which readers choose between one large read and several small ones.
struct ReadCost {
  /// Two ranges with at most this many bytes between them are cheaper to read as one. 0, as for files and memory: a
  /// read costs only its bytes. If each read waits for a remote reply, about the bytes that arrive in that time. Then
  /// opening reads ahead and makes few requests, and jobs read at least this much at once.
  std::uint64_t gap = 0;
};

/// A file as readers see it.
class Source {
 public:
  virtual ~Source() = default;
  /// Size in bytes, as seen when the source was opened. Never changes.
  virtual std::uint64_t size() const noexcept = 0;
  /// Fills `out` from `offset`. The caller has checked that the range lies within size(). Throws Error{io} if it cannot
  /// read them all, also when the file has shrunk; never pads with zeros. Safe to call from several threads.
  virtual void read_at(std::uint64_t offset, std::span<std::byte> out) const = 0;
  /// Fills several ranges, in any order, as read_at() would one by one. May leave some unfilled when it throws.
  /// Override it if the source can serve them in one round trip.
  virtual void read(std::span<const ReadRange> ranges) const;
  /// The default is the cost of a local file.
  virtual ReadCost cost() const noexcept;
  /// The range as mapped memory, or an empty Bytes if this source cannot map. The caller has checked that the range
  /// lies within size().
  virtual Bytes map(std::uint64_t offset, std::uint64_t length) const;
  /// Where the bytes that were ever written end, as far as the system tells: from there to size() the file is a hole,
  /// which reads as zeros. The default is size().
  virtual std::uint64_t written_end() const noexcept;
  /// Asks the system to read the range ahead, in the background. The caller has checked that it lies within size(). A
  /// hint: the default does nothing, and nothing reports a failure.
  virtual void will_need(std::uint64_t offset, std::uint64_t length) const noexcept;
  /// Throws Error{io} if the file has changed since it was opened (size, times, inode).
  virtual void check_unchanged() const;
  /// The place of the files beside this one (place.h); null if there are none.
  virtual std::shared_ptr<const Place> place() const;
  /// For people, in messages: the path as it was given, or a name in angle brackets. Several sources may have the same
  /// one, and nothing is opened or compared by it.
  virtual std::string_view name() const noexcept = 0;
  /// The path from the root at which the system has this file. Empty, which is the default, for bytes from elsewhere.
  virtual std::string_view path() const noexcept;
  /// What the file is called among those beside it: the last component of path(), or of name() if there is no path.
  std::string_view file_name() const noexcept;
  /// The extension of file_name(), in lower case, without the dot; empty if there is none.
  std::string extension() const;
};

/// How to read a path. Both can map() for view().
enum class Access : std::uint8_t {
  positional,  ///< pread
  mapped       ///< read_at() copies from a mapping; if the file shrinks, that raises SIGBUS
};

/// [reads] Opens a regular file. Throws Error{io} if it cannot be opened, and Error{misuse} for a directory, FIFO,
/// device or socket, without blocking.
std::shared_ptr<const Source> open_file(const std::string& path, Access = Access::positional);
/// A source over bytes in memory; map() returns them without a copy.
std::shared_ptr<const Source> memory_source(Bytes bytes, std::string name = "<memory>");

}  // namespace weighbridge
