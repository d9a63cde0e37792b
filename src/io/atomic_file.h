// SPDX-License-Identifier: Apache-2.0
// Writes a file so that a power failure cannot leave a partial one: a locked temporary beside the target is synced,
// read back, and renamed over it. Callers choose the bytes, read back files too large for memory, and handle standard
// output.
#pragma once
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>

#include "io/abandon.h"
#include "io/temporary.h"
#include "weighbridge/source.h"

namespace weighbridge::io {

struct AtomicFileOptions {
  bool replace = false;             // whether an existing file may be replaced
  std::uint64_t expected_size = 0;  // space to reserve; the final size may differ
  // If set, a folder that the target is in or below: links are followed only up to it, and the target itself may not be
  // a link.
  std::string beneath{};
  // The caller has already removed what killed runs left in the target's folder. Without this, every file would search
  // the folder.
  bool swept = false;
};

// Call write_at() as often as needed, then sync(size), read_back() (or reopen() and compare), and publish(). At any
// moment the target is the old file (or absent) or the complete new one. Without publish(), the destructor removes the
// temporary. If the process is killed, the next AtomicFile for the same target removes it.
//
// If the target is a symbolic link (see `beneath`), it stays one, and the file that it points to is replaced or
// created. The new file has the permission bits and the extended attributes (attributes.h) of the one that it replaces,
// but not its owner; without one, it has 0666 less the umask.
class AtomicFile {
 public:
  // Error misuse/output-exists if the file exists and `replace` is off; misuse/output-kind if the target is not a
  // regular file or not a file name; io/open, io/create (also for an attribute that the system refuses), io/write (no
  // space for expected_size).
  explicit AtomicFile(const std::string& target, AtomicFileOptions options = {});
  // Throws what the constructor would throw about the target as it is now. Changes nothing.
  static void check(const std::string& target, bool replace);
  ~AtomicFile();
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;

  // Error io/write. Safe from several threads at once for ranges that do not overlap.
  void write_at(std::uint64_t offset, std::span<const std::byte> data);
  // Hints that the range is final, so that the OS can start writing it to disk. Groups small ranges; safe from several
  // threads.
  void hint_written(std::uint64_t offset, std::uint64_t length) noexcept;
  // Truncates or extends the file to `size` and syncs it. Error io/write.
  void sync(std::uint64_t size);
  // write_at(), sync() and read_back() in one call, for a file that is complete in memory.
  void write_whole(std::span<const std::byte> bytes);
  // Opens what was written, as a reader would. It has the temporary's name until publish().
  std::shared_ptr<const Source> reopen() const;
  // Compares the whole file with `expected`. Error io/read-back.
  void read_back(std::span<const std::byte> expected) const;
  // Compares `length` bytes at `at` of `written`, which reopen() returned, with those at `from` of the file that they
  // were copied from. Calls `did` with the bytes of each piece. Error io/read-back.
  void read_back(const Source& written, std::uint64_t at, const Source& original, std::uint64_t from,
                 std::uint64_t length, const std::function<void(std::uint64_t)>& did = {}) const;
  // Throws Error io/read-back, for callers that compare themselves.
  [[noreturn]] void refuse_read_back() const;
  // Publishes the synced file alone (publication.h): renames it to the target and syncs the folder. Error
  // misuse/output-exists if a file has appeared meanwhile and `replace` is off; io/lock; io/publish. Throws
  // std::logic_error if something was written after the last sync().
  void publish();
  bool replaces() const noexcept { return options_.replace; }
  // The temporary's descriptor, for system calls that copy between files. Write before sync().
  int descriptor() const noexcept { return temporary_.fd.get(); }

  // The target, with links resolved, and the temporary's path.
  std::string path() const { return target_.path(); }
  std::string temporary_path() const { return join_path(target_.folder, temporary_.name); }

 private:
  friend class Publication;
  void take_name();  // publishes, in the turn that the caller has
  void reserve(std::uint64_t size);
  void discard() noexcept;
  [[noreturn]] void refuse_existing() const;

  AtomicFileOptions options_;
  std::string asked_;  // the target as given, for messages
  Target target_;
  Fd folder_;
  std::optional<unsigned> kept_mode_;
  Temporary temporary_;
  std::optional<OnAbandon> on_abandon_;
  std::mutex hint_mutex_;
  std::uint64_t hint_begin_ = 0, hint_end_ = 0;  // final, but not yet hinted to the system
  std::atomic<bool> synced_{false};              // and not published
};

}  // namespace weighbridge::io
