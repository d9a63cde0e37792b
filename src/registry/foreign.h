// SPDX-License-Identifier: Apache-2.0
// Recognizes common files that are not tensor files (archives, Git LFS pointers, HTML pages) and reports which kind it
// is.
#pragma once
#include <optional>

#include "core/format.h"
#include "weighbridge/error.h"

namespace weighbridge::registry {

// The finding for a file whose content alone identifies its kind, whatever its name; nullopt for all others.
std::optional<Finding> recognize(const core::Glance&);
// The finding for a file that nothing recognizes.
Finding unknown(const core::Glance&);

}  // namespace weighbridge::registry
