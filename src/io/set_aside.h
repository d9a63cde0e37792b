// SPDX-License-Identifier: Apache-2.0
// Moves an old file out of the way while several new files that belong together are published, and back if that fails.
#pragma once
#include <string>

#include "io/fd.h"
#include "io/temporary.h"

namespace weighbridge::io {

// Renames the file at `path` to a locked temporary. If the run is killed, the old file is then not left beside new ones
// that do not match it, and the next run removes the temporary. A symbolic link at `path` is itself moved.
class SetAside {
 public:
  // `path` and its folder may be absent. Error io/publish; misuse/output-kind if `path` is a folder. With `replace`
  // off, the file stays in place, and publishing will refuse it.
  explicit SetAside(const std::string& path, bool replace = true);
  ~SetAside();  // put_back(false), unless put_back() or settle() was called
  SetAside(SetAside&&) noexcept = default;
  SetAside& operator=(SetAside&&) = delete;
  SetAside(const SetAside&) = delete;
  SetAside& operator=(const SetAside&) = delete;

  // Restores the old file. If there was none, removes the existing file when `published` is true, that is, when the
  // caller put it there.
  void put_back(bool published) noexcept;
  // The new files are published: removes the old one.
  void settle() noexcept;

 private:
  Target target_;
  Fd folder_;  // empty if there is no folder, or the work is done
  Fd lock_;
  std::string aside_;  // empty if there was no file
};

}  // namespace weighbridge::io
