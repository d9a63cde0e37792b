// SPDX-License-Identifier: Apache-2.0
// The gates; conditions are checked in the documented order.
#include "chain/admission.h"

#include "chain/outcome.h"

namespace weighbridge::chain {

using namespace internal;

namespace {

constexpr Key kSmokeGateKeys[] = {
    choice_key("gate_version", "1", "of this grammar"),
    choice_key("gate", "runtime-smoke", "which one was passed"),
    {.name = "artifact_sha256", .type = Type::digest, .about = "of the model"},
    {.name = "manifest_sha256", .type = Type::digest, .about = "of its manifest"},
    {.name = "smoke_sha256", .type = Type::digest, .about = "of the smoke record"},
    choice_key("source_kind", "deterministic-smoke|converted-trained", "the manifest's"),
    choice_key("quality_claim", "runtime-execution-smoke-only", "no more, for either kind"),
    choice_key("result", "passed", "no record is written of another"),
    kSealKey,
};
constexpr Schema kSmokeGate{.name = "slm.smoke-gate", .keys = kSmokeGateKeys};

constexpr Key kQualityKeys[] = {
    choice_key("gate_version", "1", "of this grammar"),
    choice_key("gate", "assistant-quality", "which one was passed"),
    {.name = "artifact_sha256", .type = Type::digest, .about = "of the model"},
    {.name = "manifest_sha256", .type = Type::digest, .about = "of its manifest"},
    {.name = "smoke_gate_sha256", .type = Type::digest, .about = "of the smoke gate's record"},
    {.name = "cases_sha256", .type = Type::digest, .about = "of the evaluation's cases"},
    {.name = "evaluation_sha256", .type = Type::digest, .about = "of the evaluation"},
    choice_key("source_kind", "converted-trained", "the manifest's"),
    {.name = "cases", .type = Type::number, .about = "the evaluation's"},
    {.name = "failures", .type = Type::number, .about = "the evaluation's"},
    {.name = "scope", .about = "the cases'"},
    {.name = "safety_review", .about = "the cases'"},
    choice_key("decision", "approve|reject", "as given"),
    {.name = "decided_by", .about = "as given"},
    {.name = "decided_at", .type = Type::time, .required = false, .about = "as given, or SOURCE_DATE_EPOCH"},
    choice_key("quality_claim", "evaluated-cases-passed|not-claimed",
               "no more than that; not-claimed where it is rejected"),
    {.name = "passed", .type = Type::boolean, .about = "false where the decision is to reject"},
    kSealKey,
};
constexpr Schema kQualityGate{.name = "slm.quality-gate", .keys = kQualityKeys};

Record make_smoke_gate(const Provenance& of, const ReadRecord& smoke) {
  Record out(kSmokeGate);
  out.set("gate_version", "1").set("gate", "runtime-smoke").set("artifact_sha256", of.artifact.sha256);
  out.set("manifest_sha256", of.manifest.sha256).set("smoke_sha256", smoke.sha256);
  out.set("source_kind", of.manifest.record.get("source_kind"));
  out.set("quality_claim", "runtime-execution-smoke-only").set("result", "passed");
  seal(out);
  return out;
}

void check_trained(const Provenance& of) {
  if (!of.trained())
    refuse("smoke-claim", "source_kind",
           "a deterministic smoke model passes the smoke gate and no other, whatever its evaluation says", {},
           std::string(kTrainedKind), std::string(of.manifest.record.get("source_kind")));
}

// Requires passed cases, a safety review and a scope.
void check_quality(const Record& cases, const Record& evaluation) {
  if (evaluation.number("cases") == 0)
    refuse("no-cases", "cases", "is 0: nothing was evaluated", {}, "at least 1", "0");
  if (const std::uint64_t failures = evaluation.number("failures"); failures != 0)
    refuse("failed-cases", "failures", "is " + std::to_string(failures) + ": each case has to give its expected text",
           {}, "0", std::to_string(failures));
  if (evaluation.get("held_out.result") == "failed")
    refuse("held-out", "held_out.mean_nll", "is above the bound that the cases set", {},
           "at most " + std::string(cases.get("held_out.max_mean_nll")),
           std::string(evaluation.get("held_out.mean_nll")));
  if (says_nothing(cases.get("safety_review")))
    refuse("safety-review", "safety_review", "no safety review is recorded in the slm.cases", {}, "what was reviewed",
           std::string(cases.get("safety_review")));
  if (says_nothing(cases.get("scope")))
    refuse("scope", "scope", "the slm.cases do not say what they cover", {}, "what the cases cover",
           std::string(cases.get("scope")));
}

void check_decision(const Decision& decision) {
  if (decision.decision.empty() || says_nothing(decision.by))
    refuse("decision", "decision", "is not recorded: give approve or reject, and who decided");
  if (decision.decision != "approve" && decision.decision != "reject")
    refuse("decision", "decision", "is approve or reject", {}, "approve or reject", decision.decision);
}

bool approves(const Decision& decision) { return decision.decision == "approve"; }

Record make_quality_gate(const SmokeEvidence& smoke, const ReadRecord& cases, const ReadRecord& evaluation,
                         const Decision& decision) {
  const Provenance& of = smoke.provenance;
  Record out(kQualityGate);
  out.set("gate_version", "1").set("gate", "assistant-quality").set("artifact_sha256", of.artifact.sha256);
  out.set("manifest_sha256", of.manifest.sha256).set("smoke_gate_sha256", smoke.gate.sha256);
  out.set("cases_sha256", cases.sha256).set("evaluation_sha256", evaluation.sha256);
  out.set("source_kind", kTrainedKind);
  out.set("cases", evaluation.record.number("cases")).set("failures", evaluation.record.number("failures"));
  out.set("scope", cases.record.get("scope")).set("safety_review", cases.record.get("safety_review"));
  const bool approved = approves(decision);
  out.set("decision", decision.decision).set("decided_by", decision.by);
  if (!decision.at.empty()) out.set("decided_at", decision.at);
  out.set("quality_claim", approved ? "evaluated-cases-passed" : "not-claimed").set_flag("passed", approved);
  seal(out);
  return out;
}

struct Evaluated {
  SmokeEvidence smoke;
  ReadRecord cases, evaluation;
};
Evaluated read_evaluated(const Evidence& at, const Context& context) {
  SmokeEvidence smoke = read_smoke_gate(at, context);
  check_trained(smoke.provenance);
  ReadRecord cases = read_cases(smoke.provenance, at.cases);
  ReadRecord evaluation = read_evaluation(smoke.provenance, cases, at, context);
  return {std::move(smoke), std::move(cases), std::move(evaluation)};
}

// Admission records.

constexpr Key kAdmissionKeys[] = {
    choice_key("admission_version", "1", "of this grammar"),
    {.name = "path", .about = "file name of the artifact"},
    {.name = "bytes", .type = Type::number, .about = "its size"},
    {.name = "artifact_sha256", .type = Type::digest, .about = "of its bytes"},
    {.name = "checksum", .type = Type::checksum, .about = "the container's own"},
    choice_key("quantization", "f32|q8_0|q4_0|mixed", "dtype label"),
    choice_key("structure", "accepted", "every rule of .slm holds"),
    choice_key("source_kind", "converted-trained", "the manifest's"),
    {.name = "manifest_sha256", .type = Type::digest, .about = "provenance"},
    {.name = "smoke_sha256", .type = Type::digest, .about = "runtime smoke"},
    {.name = "smoke_gate_sha256", .type = Type::digest, .about = "its gate"},
    {.name = "cases_sha256", .type = Type::digest, .about = "evaluation cases"},
    {.name = "evaluation_sha256", .type = Type::digest, .about = "evaluation"},
    {.name = "quality_gate_sha256", .type = Type::digest, .about = "its gate"},
    choice_key("quality_claim", "evaluated-cases-passed", "the gate's"),
    choice_key("admission", "admitted", "no record is written of another"),
    kSealKey,
};
constexpr Schema kAdmissionSchema{.name = "slm.admission", .keys = kAdmissionKeys};

Record make_admission(const QualityEvidence& evidence) {
  const Artifact& artifact = evidence.smoke.provenance.artifact;
  Record out(kAdmissionSchema);
  out.set("admission_version", "1").set("path", artifact.name).set("bytes", artifact.bytes);
  out.set("artifact_sha256", artifact.sha256).set("checksum", artifact.checksum("file"));
  out.set("quantization", artifact.model.dtype_label()).set("structure", "accepted").set("source_kind", kTrainedKind);
  out.set("manifest_sha256", evidence.smoke.provenance.manifest.sha256);
  out.set("smoke_sha256", evidence.smoke.smoke.sha256).set("smoke_gate_sha256", evidence.smoke.gate.sha256);
  out.set("cases_sha256", evidence.cases.sha256).set("evaluation_sha256", evidence.evaluation.sha256);
  out.set("quality_gate_sha256", evidence.gate.sha256);
  out.set("quality_claim", evidence.gate.record.get("quality_claim")).set("admission", "admitted");
  seal(out);
  return out;
}

}  // namespace

const Schema& internal::smoke_gate_schema() { return kSmokeGate; }
const Schema& internal::quality_gate_schema() { return kQualityGate; }

std::string_view name(Gate gate) noexcept {
  return gate == Gate::runtime_smoke ? "runtime-smoke" : "assistant-quality";
}

std::optional<Gate> gate_from_name(std::string_view text) noexcept {
  for (const Gate gate : {Gate::runtime_smoke, Gate::assistant_quality})
    if (text == name(gate)) return gate;
  return std::nullopt;
}

SmokeEvidence internal::read_smoke_gate(const Evidence& at, const Context& context) {
  Provenance provenance = read_provenance(at, context);
  ReadRecord smoke = read_smoke(provenance, at.smoke);
  ReadRecord gate = read_evidence(kSmokeGate, at.smoke_gate, "slm quality-gate runtime-smoke");
  compare(gate, make_smoke_gate(provenance, smoke));
  return {std::move(provenance), std::move(smoke), std::move(gate)};
}

QualityEvidence internal::read_quality_gate(const Evidence& at, const Context& context) {
  Evaluated all = read_evaluated(at, context);
  ReadRecord gate = read_evidence(kQualityGate, at.quality_gate, "slm quality-gate assistant-quality");
  const Decision decision{std::string(gate.record.get("decision")), std::string(gate.record.get("decided_by")),
                          std::string(gate.record.get("decided_at"))};
  about_record(at.quality_gate, [&] {
    check_decision(decision);
    if (!approves(decision))
      refuse("rejected", "decision", "of the assistant-quality gate is to reject this model", {}, "approve", "reject");
  });
  check_quality(all.cases.record, all.evaluation.record);
  compare(gate, make_quality_gate(all.smoke, all.cases, all.evaluation, decision));
  return {std::move(all.smoke), std::move(all.cases), std::move(all.evaluation), std::move(gate)};
}

Outcome quality_gate(Gate gate, const Evidence& at, const Decision& given, bool replace, const Context& context) {
  if (gate == Gate::runtime_smoke) {
    const Provenance provenance = read_provenance(at, context);
    const ReadRecord smoke = read_smoke(provenance, at.smoke);
    return conclude("quality-gate", make_smoke_gate(provenance, smoke), {},
                    output_of(at, &Evidence::smoke_gate, replace));
  }
  Decision decision = given;
  decision.at = stated_time(given.at).value_or("");
  const Evaluated all = read_evaluated(at, context);
  check_decision(decision);
  Report report;
  if (approves(decision))
    check_quality(all.cases.record, all.evaluation.record);
  else
    object_to(report, "rejected", "the decision is to reject this model", {}, "approve", "reject");
  return conclude("quality-gate", make_quality_gate(all.smoke, all.cases, all.evaluation, decision), std::move(report),
                  output_of(at, &Evidence::quality_gate, replace));
}

const Schema& internal::admission_schema() { return kAdmissionSchema; }

Evidence evidence_beside(const std::string& artifact) {
  return {.artifact = artifact,
          .conversion = artifact + ".conversion",
          .manifest = artifact + ".manifest",
          .smoke = artifact + ".smoke",
          .smoke_gate = artifact + ".smoke-gate",
          .cases = artifact + ".cases",
          .evaluation = artifact + ".evaluation",
          .quality_gate = artifact + ".quality-gate",
          .admission = artifact + ".admission"};
}

Admitted internal::read_admission(const Evidence& at, const Context& context) {
  ReadRecord record = read_evidence(kAdmissionSchema, at.admission, "slm admission-record");
  QualityEvidence evidence = read_quality_gate(at, context);
  compare(record, make_admission(evidence));
  return {std::move(evidence), std::move(record)};
}

Outcome write_admission(const Evidence& at, bool replace, const Context& context) {
  return conclude("admission-record", make_admission(read_quality_gate(at, context)), {},
                  output_of(at, &Evidence::admission, replace));
}

}  // namespace weighbridge::chain
