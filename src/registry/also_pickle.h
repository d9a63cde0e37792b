// SPDX-License-Identifier: Apache-2.0
// Files that are two things: what their format says, and a pickle. What loads pickles does not look at the first bytes.
#pragma once
#include "core/findings.h"
#include "weighbridge/context.h"
#include "weighbridge/source.h"

namespace weighbridge::registry {

// [reads] Reports a file of a format other than PyTorch's that Python would also read as a pickle, if that names a
// class or function: importing it runs code. A length or a user block leaves room for one. Without such names it has
// only numbers, texts and lists, and an ordinary file may pass for one by chance. Usually reads a few bytes.
void report_also_pickle(const Source&, const Context&, core::Findings&);

}  // namespace weighbridge::registry
