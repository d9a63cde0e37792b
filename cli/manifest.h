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
// The file of --state, or one for this path in the user's cache; empty if there is no cache.
std::string state_file(const Arguments&);

}  // namespace weighbridge::cli
