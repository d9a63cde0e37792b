// SPDX-License-Identifier: Apache-2.0
// The envelope of a zTensor 1.x file (I.1, IV.1): magic numbers, footer, and where the manifest lies between them.
#pragma once
#include <optional>
#include <string>

#include "core/findings.h"
#include "weighbridge/context.h"
#include "weighbridge/source.h"

namespace weighbridge::ztensor1 {

// The manifest, which ends where the footer begins; nullopt when there is none, which has been reported. Throws
// Error{io}, Stop.
std::optional<std::string> read_manifest(const Source&, const Context&, core::Findings&);

}  // namespace weighbridge::ztensor1
