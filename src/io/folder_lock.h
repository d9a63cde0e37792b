// SPDX-License-Identifier: Apache-2.0
// The lock of a folder, by which runs that publish into one folder take turns.
#pragma once
#include <chrono>
#include <functional>
#include <string>

#include "io/fd.h"

namespace weighbridge::io {

// A lock (flock) on the folder itself. It leaves no file behind and ends with its process. A thread that holds it may
// take it again, because publishing several files calls the code that publishes one.
class FolderLock {
 public:
  static constexpr std::chrono::milliseconds kPatience{10'000};

  // Waits for the lock. Calls `go_on` meanwhile, and throws Cancelled if it returns false. On a filesystem without
  // locks, continues without one. Error io/open; io/lock, also after waiting longer than `patience`.
  explicit FolderLock(const std::string& folder, const std::function<bool()>& go_on = {},
                      std::chrono::milliseconds patience = kPatience);
  // Takes over the lock that this descriptor of a folder holds.
  explicit FolderLock(Fd locked);
  ~FolderLock();
  FolderLock(const FolderLock&) = delete;
  FolderLock& operator=(const FolderLock&) = delete;

 private:
  Fd held_{};  // empty if this thread held it already, or there are no locks
};

}  // namespace weighbridge::io
