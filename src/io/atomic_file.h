// SPDX-License-Identifier: Apache-2.0
// Writing a file as if the power may go: a locked temporary beside the target, synced, read back, then renamed over it.
// Owns publishing; leaves what the bytes are, reading back what no memory holds, and standard output to its callers.
#pragma once
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>

#include "io/temporary.h"
#include "weighbridge/source.h"

namespace weighbridge::io {

struct AtomicFileOptions {
  bool replace = false;             // whether an existing file may be replaced
  std::uint64_t expected_size = 0;  // room to ask the disk for at once; the final size may differ
};

// The order: write_at as often as needed, sync(size), read_back() or reopen() and compare, publish(). At each moment
// the target is the old file (or absent) or the whole new one. Without publish() the destructor removes the temporary;
// a killed process leaves it, and the next AtomicFile for the same target removes it.
//
// Decided: a target that is a symbolic link stays one, and the file it points to is replaced (or made, where there is
// none). A replaced file's permission bits are kept, its owner is not; a new file has 0666 less the umask.
class AtomicFile {
 public:
  // Error misuse/output-exists when there is a file and `replace` is off; misuse/output-kind when the target is no
  // regular file or names none; io/open, io/create, io/write (no room for expected_size).
  explicit AtomicFile(const std::string& target, AtomicFileOptions options = {});
  ~AtomicFile();
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;

  // Error io/write. Safe from several threads at once for ranges that do not overlap.
  void write_at(std::uint64_t offset, std::span<const std::byte> data);
  // This range is written and will not be again: the disk may begin on it. Groups small ranges; safe from several
  // threads.
  void hint_written(std::uint64_t offset, std::uint64_t length) noexcept;
  // Cuts or extends to `size` and waits until the disk has all of it. Error io/write.
  void sync(std::uint64_t size);
  // All of a file whose bytes are there: written, synced, read back.
  void write_whole(std::span<const std::byte> bytes);
  // What was written, as any reader would open it. The temporary's name is its name until publish().
  std::shared_ptr<const Source> reopen() const;
  // Compares all that was written with what it should be. Error io/read-back.
  void read_back(std::span<const std::byte> expected) const;
  // The error of a caller who compares by itself.
  [[noreturn]] void refuse_read_back() const;
  // Gives the target's name to what was synced, and syncs the folder. Error misuse/output-exists when a file has
  // appeared meanwhile and `replace` is off; io/publish. Throws std::logic_error when something was written after the
  // last sync.
  void publish();
  // The target is what was written, even where syncing the folder failed.
  bool published() const noexcept { return published_; }
  bool replaces() const noexcept { return options_.replace; }

  // The target with links followed; the temporary's path.
  std::string path() const { return target_.path(); }
  std::string temporary_path() const { return join_path(target_.folder, temporary_.name); }

 private:
  void reserve(std::uint64_t size);
  void discard() noexcept;
  [[noreturn]] void refuse_existing() const;

  AtomicFileOptions options_;
  std::string asked_;  // the target as the caller spelt it, for messages
  Target target_;
  Fd folder_;
  std::optional<mode_t> kept_mode_;
  Temporary temporary_;
  std::mutex hint_mutex_;
  std::uint64_t hint_begin_ = 0, hint_end_ = 0;  // written, not yet handed to the disk
  std::atomic<bool> synced_{false};
  bool published_ = false;
};

}  // namespace weighbridge::io
