// SPDX-License-Identifier: Apache-2.0
// Publishes the files of one output together, as nearly at once as a filesystem allows. Owns the order. Callers write
// the files, and io::Journal undoes.
#pragma once
#include <span>
#include <string>

#include "io/atomic_file.h"

namespace weighbridge::convert {

// A file beside the main one, to publish at `path`; if `file` is null, an existing file there is removed.
struct Beside {
  std::string path;
  io::AtomicFile* file = nullptr;
};

// Sets all old files aside, the main one first; publishes the files beside it, then the main one; removes the old
// files. When a step fails, everything is restored. After a kill the main file may be missing; the next run that writes
// into its folder restores the old files. Throws what AtomicFile::publish and Journal throw, and misuse/output-kind if
// a file is not in the main one's folder or below it.
void publish_together(io::AtomicFile& main, std::span<const Beside> beside);

}  // namespace weighbridge::convert
