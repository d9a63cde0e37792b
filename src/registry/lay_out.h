// SPDX-License-Identifier: Apache-2.0
// Lays out what a conversion would write, including the files inside a folder that have another format.
#pragma once
#include "core/format.h"

namespace weighbridge::registry {

// Calls Format::layout. For a folder with an inner model (OutFolder::inner), also lays out that model and merges it in.
// Throws what those calls throw.
core::WriteLayout lay_out(const core::Format&, const Model&, const Options&, const Context&);

}  // namespace weighbridge::registry
