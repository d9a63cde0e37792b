// SPDX-License-Identifier: Apache-2.0
// Makes and checks admission records.
#include "chain/admission.h"

#include "chain/outcome.h"

namespace weighbridge::chain {
using namespace internal;
namespace {

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
