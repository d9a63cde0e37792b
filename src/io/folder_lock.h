// SPDX-License-Identifier: Apache-2.0
// Runs that publish into one folder take turns. Owns the lock of a folder; whether one is stale is temporary.h's.
#pragma once
#include <chrono>
#include <functional>
#include <optional>
#include <string>

#include "io/fd.h"

namespace weighbridge::io {

// A lock (flock) on the folder itself, which leaves no file behind and goes with its process. A thread that holds one
// may take it again: what publishes a file is also called by what publishes several.
class FolderLock {
 public:
  // How long the lock of a publication is waited for: no run takes longer, so that whoever has it then is somebody
  // else, and what the lock prevents is unlikely.
  static constexpr std::chrono::milliseconds kPatience{10'000};

  // Waits until nobody else has it, or `patience` has passed; without one, for as long as it takes. A filesystem
  // without locks is gone on without. Asks `go_on` meanwhile, and throws Cancelled when that says no. Error io/open,
  // io/lock.
  explicit FolderLock(const std::string& folder, std::optional<std::chrono::milliseconds> patience = kPatience,
                      const std::function<bool()>& go_on = {});
  ~FolderLock();
  FolderLock(const FolderLock&) = delete;
  FolderLock& operator=(const FolderLock&) = delete;

 private:
  Fd held_{};  // empty: this thread had it already, or it cannot be had
};

}  // namespace weighbridge::io
