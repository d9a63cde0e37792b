// SPDX-License-Identifier: Apache-2.0
// What undoing a journal does, as edit and doctor show it before they do it.
#pragma once
#include <string>
#include <vector>

#include "output.h"
#include "weighbridge/recover.h"

namespace weighbridge::cli {

// One line for each step, with names beneath the folder; a few thousand at most.
void print_steps(Output& out, const std::string& folder, const std::vector<RecoveryStep>& steps);

}  // namespace weighbridge::cli
