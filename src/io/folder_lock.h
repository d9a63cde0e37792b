// SPDX-License-Identifier: Apache-2.0
// Runs that publish into one folder take turns. Owns the lock of a folder; whether one is stale is temporary.h's.
#pragma once
#include <chrono>
#include <functional>
#include <string>

#include "io/fd.h"

namespace weighbridge::io {

// A lock (flock) on the folder itself, which leaves no file behind and goes with its process. A thread that holds one
// may take it again: what publishes a file is also called by what publishes several.
class FolderLock {
 public:
  static constexpr std::chrono::milliseconds kPatience{60'000};

  // Waits until nobody else has it. Asks `go_on` meanwhile, and throws Cancelled when that says no. A filesystem
  // without locks is gone on without. Error io/open; io/lock, also when somebody keeps it for longer than `patience`.
  explicit FolderLock(const std::string& folder, const std::function<bool()>& go_on = {},
                      std::chrono::milliseconds patience = kPatience);
  ~FolderLock();
  FolderLock(const FolderLock&) = delete;
  FolderLock& operator=(const FolderLock&) = delete;

 private:
  Fd held_{};  // empty: this thread had it already, or it cannot be had
};

}  // namespace weighbridge::io
