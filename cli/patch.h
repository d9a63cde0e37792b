// SPDX-License-Identifier: Apache-2.0
// diff --patch, and what inspect shows of a patch; patch.cc implements them.
#pragma once
#include <string>

#include "session.h"
#include "weighbridge/delta.h"

namespace weighbridge::cli {

Status run_diff_patch(Session& session);
// "1 changed of 2 tensors; 100 of 5,000 elements".
std::string patch_text(const PatchInfo& patch);
// False if it is not a valid one.
bool print_patch(Session& session, const Model& patch);

}  // namespace weighbridge::cli
