// SPDX-License-Identifier: Apache-2.0
// Recognizes common files that are not tensor files (archives, Git LFS pointers, HTML pages) and reports which kind it
// is.
#pragma once
#include <optional>
#include <string_view>

#include "core/format.h"
#include "weighbridge/error.h"

namespace weighbridge::registry {

// The finding for a file whose content alone identifies its kind, whatever its name; nullopt for all others.
std::optional<Finding> recognize(const core::Glance&);
// The rest of the line that starts with `key`, as in a Git LFS pointer, or empty if there is none.
std::string_view line_of(std::string_view text, std::string_view key);
// The finding for a file that nothing recognizes.
Finding unknown(const core::Glance&);

}  // namespace weighbridge::registry
