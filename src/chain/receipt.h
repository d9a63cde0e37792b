// SPDX-License-Identifier: Apache-2.0
// NAME.minimodel-receipt: its table, for tests and documentation, and one against an artifact that was read already.
// chain.h has what writes and checks one.
#pragma once
#include "chain/minimodel.h"

namespace weighbridge::chain {

const Schema& receipt_schema();
// Error{malformed} names what the receipt or the manifest says that is not so.
void check_receipt(const Artifact&, const MiniModel&, const std::string& receipt);

}  // namespace weighbridge::chain
