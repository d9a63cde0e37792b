// SPDX-License-Identifier: Apache-2.0
// A temporary folder of a run, for files that are published together once all are complete.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "io/abandon.h"
#include "io/fd.h"
#include "io/folder_lock.h"
#include "io/journal.h"
#include "io/temporary.h"

namespace weighbridge::io {

// A folder in `folder` with the name of a temporary of `name`. Removes those that killed runs left. It holds only
// files.
class Staging {
 public:
  // made: whether this run created `folder`. Else the new files may replace private ones, and only their owner sees
  // them while they are written. Error io/open, io/create.
  Staging(const std::string& folder, const std::string& name, bool made);
  ~Staging();  // removes it
  Staging(const Staging&) = delete;
  Staging& operator=(const Staging&) = delete;

  const std::string& name() const noexcept { return temporary_.name; }
  std::string path() const { return join_path(path_, name()); }

 private:
  std::string path_;
  Fd where_;
  Temporary temporary_{};
  std::optional<FolderLock> lock_{};
  std::optional<OnAbandon> on_abandon_{};
};

// Gives new files their names together. Sets all old files aside first, and makes the first change last: until then, no
// old file may refer to new ones. Error misuse/output-exists if a file that may not be replaced is there; io/publish.
void publish_together(const std::string& folder, const std::vector<Journal::Change>& changes);

}  // namespace weighbridge::io
