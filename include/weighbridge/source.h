// SPDX-License-Identifier: Apache-2.0
/// \file
/// Where bytes come from. Readers see a file only through Source::read_at.
///
/// A caller may derive from Source (a browser's File, a network range, a test that fails); everything then works but
/// view().
#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

namespace weighbridge {

/// A read-only range and whatever keeps it alive (mapping, arena, caller's buffer).
struct Bytes {
  std::span<const std::byte> span;   ///< the bytes
  std::shared_ptr<const void> keep;  ///< null: the caller sees to it
};

class Place;

/// One range of several that are read together.
struct ReadRange {
  std::uint64_t offset = 0;    ///< of the first byte
  std::span<std::byte> out{};  ///< filled whole
};

/// What reading costs, as readers weigh it when they choose between one large read and several small ones.
struct ReadCost {
  /// Bytes between two ranges that cost less to read along than a second range does.
  std::uint64_t gap = 4096;
  /// Each call waits for an answer from elsewhere: whatever is needed is better asked for in one call, and early.
  bool round_trip = false;
};

/// A file, as far as readers see one.
class Source {
 public:
  virtual ~Source() = default;
  /// Size in bytes, as seen when the source was opened. Never changes.
  virtual std::uint64_t size() const noexcept = 0;
  /// Fills `out` from `offset`. The caller has checked that the range lies within size(). Throws Error{io} when the
  /// bytes cannot be had, a shrunken file included; never fills in zeros. Safe from several threads at once.
  virtual void read_at(std::uint64_t offset, std::span<std::byte> out) const = 0;
  /// Fills several ranges, in any order, as read_at() would one after the other, and may leave some unfilled when it
  /// throws. A source that answers them together in one round trip says so by overriding this.
  virtual void read(std::span<const ReadRange> ranges) const;
  /// Local files and memory are cheap; the default is what a positional read of a local file costs.
  virtual ReadCost cost() const noexcept;
  /// The range as mapped memory, or an empty Bytes where this source cannot map. The range lies within size().
  virtual Bytes map(std::uint64_t offset, std::uint64_t length) const;
  /// Throws Error{io} when what was opened is not what is there now (size, modification time, inode).
  virtual void check_unchanged() const;
  /// Where the files beside this one are found (place.h); null: there are none.
  virtual std::shared_ptr<const Place> place() const;
  /// For messages: a path, or a word in angle brackets.
  virtual std::string_view name() const noexcept = 0;
  /// The ending of a path's last component, lower case, without the dot; empty where there is none.
  std::string extension() const;
};

/// How a path is read. Both can map() for view().
enum class Access : std::uint8_t {
  positional,  ///< pread
  mapped       ///< read_at() copies from a mapping, and a file that shrinks is SIGBUS there
};

/// [reads] Opens a regular file. Error{io} when it cannot be opened; Error{misuse} for a directory, FIFO, device or
/// socket, at once.
std::shared_ptr<const Source> open_file(const std::string& path, Access = Access::positional);
/// Bytes that are in memory already; map() gives them as they are.
std::shared_ptr<const Source> memory_source(Bytes bytes, std::string name = "<memory>");

}  // namespace weighbridge
