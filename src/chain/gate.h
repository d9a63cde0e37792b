// SPDX-License-Identifier: Apache-2.0
// The two gates: NAME.slm.smoke-gate and NAME.slm.quality-gate. A smoke gate's record exists only if the gate was
// passed; the quality gate's states who decided, and how.
#pragma once
#include "chain/slm_manifest.h"

namespace weighbridge::chain::internal {

const Schema& smoke_gate_schema();
const Schema& quality_gate_schema();

// Everything up to the smoke gate, recomputed and found equal.
struct SmokeEvidence {
  Provenance provenance;
  ReadRecord smoke, gate;
};
SmokeEvidence read_smoke_gate(const Evidence&, const Context&);

// Everything up to the gate of assistant quality.
struct QualityEvidence {
  SmokeEvidence smoke;
  ReadRecord cases, evaluation, gate;
};
QualityEvidence read_quality_gate(const Evidence&, const Context&);

}  // namespace weighbridge::chain::internal
