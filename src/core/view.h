// SPDX-License-Identifier: Apache-2.0
// Views for the library's own use.
#pragma once
#include <cstdint>
#include <span>

#include "weighbridge/view.h"

namespace weighbridge::core {

// The model without the tensors with these indices, which are ascending.
Model view_without(const Model&, std::span<const std::uint32_t> tensors);

}  // namespace weighbridge::core
