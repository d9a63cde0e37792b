// SPDX-License-Identifier: Apache-2.0
// The lock of a folder, by which runs and threads that publish into one folder take turns.
#pragma once
#include <chrono>
#include <cstdint>
#include <functional>
#include <string>
#include <utility>

#include "io/fd.h"

namespace weighbridge::io {

// A lock on the folder itself. It leaves no file behind and ends with its process. flock() keeps other processes out,
// and a list in this process keeps other threads out: with flock(), they would be reported as "another process". The
// lock is recursive, because publishing several files calls the code that publishes one. A temporary folder is known to
// its own run alone, which has its lock already (temporary.h): there, this does nothing.
//
// The order of locks is in publication.h.
class FolderLock {
 public:
  // Publishing is short: another process that holds the lock for so long probably hangs.
  static constexpr std::chrono::milliseconds kPatience{10'000};

  // Waits for the lock: for another thread of this process as long as its work takes, for another process no longer
  // than `patience`. Calls `go_on` meanwhile, and throws Cancelled if it returns false. On a filesystem without locks,
  // only threads of this process take turns. Error io/open; io/lock. Throws std::logic_error if this thread already
  // changes names.
  explicit FolderLock(const std::string& folder, const std::function<bool()>& go_on = {},
                      std::chrono::milliseconds patience = kPatience);
  ~FolderLock();
  FolderLock(const FolderLock&) = delete;
  FolderLock& operator=(const FolderLock&) = delete;

  using Id = std::pair<std::uint64_t, std::uint64_t>;  // device and inode

 private:
  Id id_{};
};

}  // namespace weighbridge::io
