// SPDX-License-Identifier: Apache-2.0
// Makes and checks import receipts.
#include "chain/promotion.h"

#include "chain/outcome.h"

namespace weighbridge::chain {
using namespace internal;
namespace {

constexpr Key kReceiptKeys[] = {
    choice_key("receipt_version", "1", "of this grammar"),
    {.name = "path", .about = "file name of the artifact"},
    {.name = "bytes", .type = Type::number, .about = "its size"},
    {.name = "artifact_sha256", .type = Type::digest, .about = "of its bytes"},
    {.name = "checksum", .type = Type::checksum, .about = "the container's own"},
    {.name = "tokenizer_checksum", .type = Type::checksum, .about = "the container's own"},
    {.name = "tensor_layout_checksum", .type = Type::checksum, .about = "the container's own"},
    choice_key("quantization", "f32|q8_0|q4_0|mixed", "dtype label"),
    choice_key("validation", "every-slm-rule", "what the file itself passed"),
    {.name = "manifest_sha256", .type = Type::digest, .about = "of the MiniModel manifest as it stands"},
    {.name = "signed_form_sha256", .type = Type::digest, .about = "of its signed form"},
    choice_key("signature", "absent|not-verified", "of the manifest"),
    {.name = "model_id", .about = "the manifest's"},
    {.name = "model_version", .about = "the manifest's"},
    {.name = "publisher_id", .about = "the manifest's"},
    {.name = "acquisition", .type = Type::word, .about = "the manifest's"},
    {.name = "received_at", .type = Type::time, .required = false, .about = "as given, or SOURCE_DATE_EPOCH"},
    kSealKey,
};
constexpr Schema kReceiptSchema{.name = "minimodel-receipt", .keys = kReceiptKeys};

Record make_receipt(const Artifact& artifact, const MiniModel& minimodel, const std::string& at) {
  const Record& manifest = minimodel.manifest.record;
  Record out(kReceiptSchema);
  out.set("receipt_version", "1").set("path", artifact.name).set("bytes", artifact.bytes);
  out.set("artifact_sha256", artifact.sha256);
  set_checksums(out, {}, artifact);
  out.set("quantization", artifact.model.dtype_label()).set("validation", "every-slm-rule");
  out.set("manifest_sha256", minimodel.manifest.sha256).set("signed_form_sha256", sha256_hex(minimodel.signed_form));
  out.set("signature", minimodel.has_signature ? "not-verified" : "absent");
  out.set("model_id", manifest.get("model.id")).set("model_version", manifest.get("model.version"));
  out.set("publisher_id", manifest.get("publisher.id")).set("acquisition", manifest.get("artifact.acquisition"));
  if (!at.empty()) out.set("received_at", at);
  seal(out);
  return out;
}

void check_stamp(const ReadRecord& receipt, const std::string& path, const Stamp& file) {
  const std::string_view stated = receipt.record.get("artifact_sha256");
  if (file.sha256 != stated)
    refuse("artifact-mismatch", "artifact_sha256", "in the minimodel-receipt is not that of '" + path + "'", {},
           std::string(stated), file.sha256);
}

void check(const ReadRecord& receipt, const MiniModel& minimodel, const Artifact& artifact) {
  check_stamp(receipt, artifact.path, artifact);
  compare(receipt, make_receipt(artifact, minimodel, std::string(receipt.record.get("received_at"))));
  check_artifact(artifact, minimodel);
}

ReadRecord read_receipt(const std::string& path) {
  return read_evidence(kReceiptSchema, path, "slm write-import-receipt");
}

}  // namespace

const Schema& internal::receipt_schema() { return kReceiptSchema; }

void internal::check_receipt(const Artifact& artifact, const MiniModel& minimodel, const std::string& receipt) {
  check(read_receipt(receipt), minimodel, artifact);
}

Outcome write_import_receipt(const std::string& artifact, const std::string& manifest, const std::string& receipt,
                             const std::string& at, bool replace, const Context& context) {
  const MiniModel minimodel = read_minimodel(manifest);
  const Artifact verified = read_verified_artifact(artifact, minimodel, context);
  return conclude("write-import-receipt", make_receipt(verified, minimodel, stated_time(at).value_or("")), {},
                  {receipt, replace, {artifact, manifest}});
}

Outcome check_import_receipt(const std::string& artifact, const std::string& manifest, const std::string& receipt,
                             const Context& context) {
  const ReadRecord given = read_receipt(receipt);
  const MiniModel minimodel = read_minimodel(manifest);
  check(given, minimodel,
        read_artifact(artifact, context, [&](const Stamp& file) { check_stamp(given, artifact, file); }));
  return report_on("write-import-receipt", given.record, given.sha256, {}, {});
}

}  // namespace weighbridge::chain
