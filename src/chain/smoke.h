// SPDX-License-Identifier: Apache-2.0
// NAME.slm.smoke: the real runtime loads the model and runs it on fixed prompts.
#pragma once
#include "chain/slm_manifest.h"

namespace weighbridge::chain::internal {

const Schema& smoke_schema();
// [reads] Runs the prompts. Throws Error{malformed} chain/smoke.
Record make_smoke(const Provenance&);
// [reads] Runs the prompts on any model. Throws Error{malformed} chain/smoke.
void check_runs(const Model&);
// The record at `path`; running the prompts again must give the same.
ReadRecord read_smoke(const Provenance&, const std::string& path);

}  // namespace weighbridge::chain::internal
