// SPDX-License-Identifier: Apache-2.0
// Views as the library makes them for itself.
#pragma once
#include <cstdint>
#include <span>

#include "weighbridge/view.h"

namespace weighbridge::core {

// The model without the tensors of these indices, which ascend.
Model view_without(const Model&, std::span<const std::uint32_t> tensors);

}  // namespace weighbridge::core
