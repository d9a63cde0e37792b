// SPDX-License-Identifier: Apache-2.0
// What verify --manifest shares with the verb and with the confinement: where it remembers what it has read.
#pragma once
#include <string>

#include "arguments.h"
#include "status.h"

namespace weighbridge::cli {

class Session;

// verify --manifest.
Status verify_with_manifest(Session&);
// The file of --cache; empty without it, or if the user has no cache.
std::string cache_file(const Arguments&);

}  // namespace weighbridge::cli
