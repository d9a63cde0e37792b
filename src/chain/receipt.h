// SPDX-License-Identifier: Apache-2.0
// The table of NAME.minimodel-receipt, for tests and documentation. chain.h has what writes and checks one.
#pragma once
#include "chain/record.h"

namespace weighbridge::chain {

const Schema& receipt_schema();

}  // namespace weighbridge::chain
