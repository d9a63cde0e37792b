// SPDX-License-Identifier: Apache-2.0
// Several files of one output get their names as nearly at once as a filesystem allows. Owns the order, and taking back
// what was done when a step fails; leaves writing the files to their owners.
#pragma once
#include <span>
#include <string>

#include "io/atomic_file.h"

namespace weighbridge::convert {

// A file beside the main one: gets its name, or, where `file` is null, whatever stands there goes.
struct Beside {
  std::string path;
  io::AtomicFile* file = nullptr;
};

// Sets all old files aside, the main one first; publishes those beside and at last the main one; removes the old ones.
// When a step fails, all are as they were. A run that is killed leaves the old files, no main file, or all the new
// ones; what it has set aside is a temporary, which the next run removes. Error as AtomicFile::publish and SetAside
// have them.
void publish_together(io::AtomicFile& main, std::span<const Beside> beside);

}  // namespace weighbridge::convert
