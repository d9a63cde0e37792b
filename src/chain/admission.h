// SPDX-License-Identifier: Apache-2.0
// The records of the admission chain, in the order in which they are made: manifest, smoke run, evaluation, the two
// gates, and admission, which has all of them as its evidence.
#pragma once
#include "chain/evidence.h"

namespace weighbridge::chain::internal {

// NAME.slm.manifest: the provenance of one artifact. All fields except the source's digest come from the artifact and
// are recomputed whenever the manifest is read.

const Schema& slm_manifest_schema();

struct SourceOf {
  std::string kind;    // kSmokeKind or kTrainedKind
  std::string sha256;  // of the record of its conversion; empty for a smoke model
};
Record make_slm_manifest(const Artifact&, const SourceOf&);

// Checks that the conversion record at `path` describes this artifact, and returns its digest. Throws Error{malformed}
// if it describes another.
std::string check_conversion(const Artifact&, const std::string& path);

struct Provenance {
  Artifact artifact;
  ReadRecord manifest;
  bool trained() const { return manifest.record.get("source_kind") == kTrainedKind; }
};
// [reads] The artifact and its manifest, which must match. Throws chain/smoke-claim for a smoke model whose manifest
// claims more.
Provenance read_provenance(const Evidence&, const Context&);

// NAME.slm.smoke: the real runtime loads the model and runs it on fixed prompts.

const Schema& smoke_schema();
// [reads] Runs the prompts. Throws Error{malformed} chain/smoke.
Record make_smoke(const Provenance&);
// [reads] Runs the prompts on any model. Throws Error{malformed} chain/smoke.
void check_runs(const Model&);
// The record at `path`; running the prompts again must give the same.
ReadRecord read_smoke(const Provenance&, const std::string& path);

// NAME.slm.cases, which people fill in, and NAME.slm.evaluation, the results of the native runner.

const Schema& cases_schema();
const Schema& evaluation_schema();

Record make_cases_template(const Provenance&);
// The filled-in cases at `path`, for this artifact and manifest. Throws Error{malformed} chain/stale,
// chain/placeholder, chain/case.
ReadRecord read_cases(const Provenance&, const std::string& path);
// [reads] `folder` holds the cases and the held-out text.
Record make_evaluation(const Provenance&, const ReadRecord& cases, const std::string& folder, const Context&);
// The evaluation; running the cases again must give the same. Throws chain/missing-case or chain/stray-case if only one
// of the two has a case.
ReadRecord read_evaluation(const Provenance&, const ReadRecord& cases, const Evidence&, const Context&);

// The two gates: NAME.slm.smoke-gate and NAME.slm.quality-gate. A smoke gate's record exists only if the gate was
// passed; the quality gate's states who decided, and how.

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

const Schema& admission_schema();

struct Admitted {
  QualityEvidence evidence;
  ReadRecord record;
};
// [reads] The record with all its evidence, recomputed and found equal.
Admitted read_admission(const Evidence&, const Context&);

}  // namespace weighbridge::chain::internal
