// SPDX-License-Identifier: Apache-2.0
// The pickles of a folder: programs load them by their names, whether or not the model's weights are other files.
#pragma once
#include "core/findings.h"
#include "weighbridge/context.h"
#include "weighbridge/model.h"
#include "weighbridge/place.h"

namespace weighbridge::registry {

// Judges every pickle in a folder and in the folders below it as if it were named alone, by its content: in a file of
// its own, in an archive, in an array of objects. Reports errors, and what is not known to be safe. Leaves out files of
// the model whose content rules have judged them.
void judge_pickles(const Place&, const Model&, const Context&, core::Findings&);

}  // namespace weighbridge::registry
