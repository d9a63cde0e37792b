// SPDX-License-Identifier: Apache-2.0
// NAME.minimodel-receipt: its table, for tests and documentation, and checking one against an artifact that was read
// already. chain.h declares what writes and checks one.
#pragma once
#include "chain/minimodel.h"

namespace weighbridge::chain::internal {

const Schema& receipt_schema();
// Throws Error{malformed} naming the first wrong statement of the receipt or the manifest.
void check_receipt(const Artifact&, const MiniModel&, const std::string& receipt);

}  // namespace weighbridge::chain::internal
