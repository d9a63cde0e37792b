// SPDX-License-Identifier: Apache-2.0
// NAME.slm.smoke: the model loaded by the real runtime and run on fixed prompts.
#pragma once
#include "chain/slm_manifest.h"

namespace weighbridge::chain {

const Schema& smoke_schema();
// [reads] Runs the prompts. Error{malformed} chain/smoke.
Record make_smoke(const Provenance&);
// [reads] Runs the prompts on any model. Error{malformed} chain/smoke.
void check_runs(const Model&);
// The record at `path`, which says what running again gives.
ReadRecord read_smoke(const Provenance&, const std::string& path);

}  // namespace weighbridge::chain
