// SPDX-License-Identifier: Apache-2.0
// The lock of a folder, by which runs and threads that publish into one folder take turns.
#pragma once
#include <sys/types.h>

#include <chrono>
#include <functional>
#include <string>
#include <utility>

#include "io/fd.h"

namespace weighbridge::io {

// A lock on the folder itself. It leaves no file behind and ends with its process. Other processes are kept away by
// flock(), other threads by a list in this process, because flock() would name them "another process". A thread that
// holds it may take it again, because publishing several files calls the code that publishes one; the folder is free
// once all of these objects are gone, in any order. Any thread may destroy one. None can be moved.
//
// The order of locks is: this one, then NamesChange (abandon.h). So nothing that the whole process waits for is held
// while a run waits for another process.
class FolderLock {
 public:
  static constexpr std::chrono::milliseconds kPatience{10'000};

  // Waits for the lock: for another thread of this process as long as its work takes, for another process no longer
  // than `patience`. Calls `go_on` meanwhile, and throws Cancelled if it returns false. On a filesystem without locks,
  // only threads of this process take turns. Error io/open; io/lock. Throws std::logic_error if this thread already
  // changes names.
  explicit FolderLock(const std::string& folder, const std::function<bool()>& go_on = {},
                      std::chrono::milliseconds patience = kPatience);
  // Takes over the lock that this descriptor of a folder holds.
  explicit FolderLock(Fd locked);
  ~FolderLock();
  FolderLock(const FolderLock&) = delete;
  FolderLock& operator=(const FolderLock&) = delete;

  using Id = std::pair<dev_t, ino_t>;

 private:
  Id id_{};
};

}  // namespace weighbridge::io
