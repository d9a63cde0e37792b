// SPDX-License-Identifier: Apache-2.0
// Archives that have lost their directory, which is at the end of a zip file: a new one is made from the headers before
// the members.
#pragma once
#include <memory>

#include "weighbridge/context.h"
#include "weighbridge/source.h"

namespace weighbridge::doctor {

// The file up to its last whole member, with a directory after it; null if it does not begin with a whole member, or
// has more than the limits allow. A member whose header lacks its size, as PyTorch writes them, ends at a descriptor
// that states the size which it then has.
std::shared_ptr<const Source> with_new_directory(std::shared_ptr<const Source>, const Limits&);

}  // namespace weighbridge::doctor
