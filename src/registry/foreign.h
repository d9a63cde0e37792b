// SPDX-License-Identifier: Apache-2.0
// Files that are no tensor file of any format here, but often stand in the place of one. Owns telling a person which.
#pragma once
#include <optional>

#include "core/format.h"
#include "weighbridge/error.h"

namespace weighbridge::registry {

// Kinds whose content leaves no doubt, whatever the file is called; nullopt if it is none of them.
std::optional<Finding> recognize(const core::Glance&);
// The best that can be said of a file that nothing recognizes.
Finding unknown(const core::Glance&);

}  // namespace weighbridge::registry
