// SPDX-License-Identifier: Apache-2.0
// Import receipts.
#include "chain/receipt.h"

#include "chain/minimodel.h"
#include "chain/outcome.h"

namespace weighbridge::chain {
namespace {

constexpr Key kKeys[] = {
    {.name = "receipt_version", .type = Type::choice, .choices = "1", .about = "of this grammar"},
    {.name = "path", .about = "file name of the artifact"},
    {.name = "bytes", .type = Type::number, .about = "its size"},
    {.name = "artifact_sha256", .type = Type::digest, .about = "of its bytes"},
    {.name = "checksum", .type = Type::checksum, .about = "the container's own"},
    {.name = "tokenizer_checksum", .type = Type::checksum, .about = "the container's own"},
    {.name = "tensor_layout_checksum", .type = Type::checksum, .about = "the container's own"},
    {.name = "quantization", .type = Type::choice, .choices = "f32|q8_0|q4_0|mixed", .about = "dtype label"},
    {.name = "validation", .type = Type::choice, .choices = "every-slm-rule", .about = "what the file itself passed"},
    {.name = "manifest_sha256", .type = Type::digest, .about = "of the MiniModel manifest as it stands"},
    {.name = "signed_form_sha256", .type = Type::digest, .about = "of its signed form"},
    {.name = "signature", .type = Type::choice, .choices = "absent|not-verified", .about = "of the manifest"},
    {.name = "model_id", .about = "the manifest's"},
    {.name = "model_version", .about = "the manifest's"},
    {.name = "publisher_id", .about = "the manifest's"},
    {.name = "acquisition", .type = Type::word, .about = "the manifest's"},
    {.name = "received_at", .type = Type::time, .required = false, .about = "as given, or SOURCE_DATE_EPOCH"},
    kSealKey,
};
constexpr Schema kSchema{.name = "minimodel-receipt", .keys = kKeys};

Record make_receipt(const Artifact& artifact, const MiniModel& minimodel, const std::string& at) {
  const Record& manifest = minimodel.manifest.record;
  Record out(kSchema);
  out.set("receipt_version", "1").set("path", artifact.name).set("bytes", artifact.bytes);
  out.set("artifact_sha256", artifact.sha256).set("checksum", artifact.checksum("file"));
  out.set("tokenizer_checksum", artifact.checksum("tokenizer"));
  out.set("tensor_layout_checksum", artifact.checksum("tensor_layout"));
  out.set("quantization", artifact.model.dtype_label()).set("validation", "every-slm-rule");
  out.set("manifest_sha256", minimodel.manifest.sha256).set("signed_form_sha256", sha256_hex(minimodel.signed_form));
  out.set("signature", minimodel.has_signature ? "not-verified" : "absent");
  out.set("model_id", manifest.get("model.id")).set("model_version", manifest.get("model.version"));
  out.set("publisher_id", manifest.get("publisher.id")).set("acquisition", manifest.get("artifact.acquisition"));
  if (!at.empty()) out.set("received_at", at);
  seal(out);
  return out;
}

}  // namespace

const Schema& receipt_schema() { return kSchema; }

Outcome write_import_receipt(const std::string& artifact, const std::string& manifest, const std::string& receipt,
                             const std::string& at, bool replace, const Context& context) {
  const MiniModel minimodel = read_minimodel(manifest);
  const Artifact verified = read_verified_artifact(artifact, minimodel, context);
  return conclude("write-import-receipt", make_receipt(verified, minimodel, stated_time(at).value_or("")), {},
                  {receipt, replace, {artifact, manifest}});
}

Outcome check_import_receipt(const std::string& artifact, const std::string& manifest, const std::string& receipt,
                             const Context& context) {
  const ReadRecord given = read_evidence(kSchema, receipt, "slm write-import-receipt");
  const MiniModel minimodel = read_minimodel(manifest);
  // First: a file that was changed is named as that, not by the rule that the change happens to break.
  if (const std::string digest = stamp(artifact, context).sha256; digest != given.record.get("artifact_sha256"))
    refuse("artifact-mismatch", "artifact_sha256", "in the minimodel-receipt is not that of '" + artifact + "'", {},
           std::string(given.record.get("artifact_sha256")), digest);
  const Artifact now = read_artifact(artifact, context);
  compare(given, make_receipt(now, minimodel, std::string(given.record.get("received_at"))));
  read_verified_artifact(artifact, minimodel, context);
  return report_on("write-import-receipt", given.record, given.sha256, {}, {});
}

}  // namespace weighbridge::chain
