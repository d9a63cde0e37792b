// SPDX-License-Identifier: Apache-2.0
// What a conversion would write, with the files inside a folder laid out by the format that they have.
#pragma once
#include "core/format.h"

namespace weighbridge::registry {

// Format::layout, and of a folder with an inner model (OutFolder::inner) that model's layout in its place. Throws as
// those do.
core::WriteLayout lay_out(const core::Format&, const Model&, const Options&);

}  // namespace weighbridge::registry
