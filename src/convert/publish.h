// SPDX-License-Identifier: Apache-2.0
// Publishes the files of one output together, as nearly at once as a filesystem allows. Owns the order and the rollback
// when a step fails; leaves writing the files to their owners.
#pragma once
#include <span>
#include <string>

#include "io/atomic_file.h"

namespace weighbridge::convert {

// A file beside the main one. It gets its name; if `file` is null, the existing file at `path` is removed.
struct Beside {
  std::string path;
  io::AtomicFile* file = nullptr;
};

// Sets all old files aside, the main one first; publishes the files beside it, then the main one; removes the old
// files. When a step fails, everything is restored. After a killed run there are the old files, no main file, or all
// the new files; whatever it set aside is a temporary that the next run removes. Throws what AtomicFile::publish and
// SetAside throw.
void publish_together(io::AtomicFile& main, std::span<const Beside> beside);

}  // namespace weighbridge::convert
