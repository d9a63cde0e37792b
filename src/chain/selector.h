// SPDX-License-Identifier: Apache-2.0
// The table of selector.registry, for tests and documentation. chain.h declares what makes and checks one.
#pragma once
#include "chain/record.h"

namespace weighbridge::chain::internal {

const Schema& selector_schema();

}  // namespace weighbridge::chain::internal
