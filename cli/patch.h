// SPDX-License-Identifier: Apache-2.0
// diff --patch, and what inspect shows of a patch; patch.cc implements them.
#pragma once
#include "session.h"

namespace weighbridge::cli {

Status run_diff_patch(Session& session);
// False if it is not a valid one.
bool print_patch(Session& session, const Model& patch);

}  // namespace weighbridge::cli
