// SPDX-License-Identifier: Apache-2.0
// Makes and checks the manifest of an artifact.
#include "chain/admission.h"

#include "base/fail.h"
#include "chain/outcome.h"
#include "chain/source_schemas.h"
#include "core/model/words.h"

namespace weighbridge::chain {
using namespace internal;
namespace {

constexpr std::string_view kSmokeClaim = "runtime-execution-smoke-only", kNotClaimed = "not-claimed";

// The numbers of the .slm header, under their own names.
constexpr std::string_view kNumbers[] = {"vocab_size", "special_token_count", "hidden_size", "layer_count",
                                         "head_count", "kv_head_count",       "head_dim",    "ffn_size",
                                         "max_context"};

constexpr Key kSlmManifestKeys[] = {
    choice_key("manifest_version", "1", "of this grammar"),
    {.name = "path", .about = "file name of the artifact, which lies beside the manifest"},
    {.name = "bytes", .type = Type::number, .about = "its size"},
    {.name = "sha256", .type = Type::digest, .about = "of all its bytes"},
    choice_key("slm_version", "1", "the container's version"),
    {.name = "checksum", .type = Type::checksum, .about = "the container's own, of the file"},
    {.name = "tokenizer_checksum", .type = Type::checksum, .about = "the container's own, of the tokenizer section"},
    {.name = "tensor_layout_checksum", .type = Type::checksum, .about = "the container's own, of the directory"},
    {.name = "vocab_size", .type = Type::number, .about = "header"},
    {.name = "special_token_count", .type = Type::number, .about = "header"},
    {.name = "hidden_size", .type = Type::number, .about = "header"},
    {.name = "layer_count", .type = Type::number, .about = "header"},
    {.name = "head_count", .type = Type::number, .about = "header"},
    {.name = "kv_head_count", .type = Type::number, .about = "header"},
    {.name = "head_dim", .type = Type::number, .about = "header"},
    {.name = "ffn_size", .type = Type::number, .about = "header"},
    {.name = "max_context", .type = Type::number, .about = "header"},
    {.name = "rope_theta", .type = Type::real, .about = "header"},
    {.name = "rms_norm_epsilon", .type = Type::real, .about = "header"},
    {.name = "tied_output", .type = Type::boolean, .about = "header, flags bit 0"},
    choice_key("tokenizer", "byte|bpe", "kind of the tokenizer section"),
    {.name = "tensor_count", .type = Type::number, .about = "entries of the directory"},
    {.name = "parameter_count", .type = Type::number, .about = "elements of all tensors"},
    choice_key("quantization", "f32|q8_0|q4_0|mixed", "dtype label"),
    choice_key("source_kind", "deterministic-smoke|converted-trained", "what the artifact was made from"),
    optional(Key{.name = "source_sha256", .type = Type::digest, .about = "of NAME.slm.conversion (converted-trained)"}),
    choice_key("quality_claim", "runtime-execution-smoke-only|quality-pending", "what may be said of it by its kind"),
    choice_key("trained_quality_claim", "not-claimed|evaluation-pending", "not-claimed for a smoke model, always"),
    choice_key("admission_status", "not-admissible|structure-accepted", "not-admissible for a smoke model, always"),
    choice_key("required_next_gate", "runtime-smoke|assistant-quality",
               "the gate that the artifact's kind has to pass last"),
    kSealKey,
};
constexpr Schema kSlmManifestSchema{.name = "slm.manifest", .keys = kSlmManifestKeys};

void set_claims(Record& out, bool trained) {
  out.set("quality_claim", trained ? "quality-pending" : kSmokeClaim);
  out.set("trained_quality_claim", trained ? "evaluation-pending" : kNotClaimed);
  out.set("admission_status", trained ? "structure-accepted" : "not-admissible");
  out.set("required_next_gate", trained ? "assistant-quality" : "runtime-smoke");
}

// Refuses a smoke model that claims more than that it runs, before any other fault is reported.
void check_claims(const Record& manifest) {
  if (manifest.get("source_kind") != kSmokeKind) return;
  Record modest(kSlmManifestSchema);
  set_claims(modest, false);
  for (const std::string_view key :
       {"quality_claim", "trained_quality_claim", "admission_status", "required_next_gate"})
    if (manifest.get(key) != modest.get(key))
      refuse("smoke-claim", key, "a deterministic smoke model shows that the runtime runs, and can claim nothing more",
             {}, std::string(modest.get(key)), std::string(manifest.get(key)));
}

SourceOf source_of(const Artifact& artifact, const std::string& kind, const Evidence& at) {
  return {kind, kind == kTrainedKind ? check_conversion(artifact, at.conversion) : std::string()};
}

}  // namespace

const Schema& internal::slm_manifest_schema() { return kSlmManifestSchema; }

Record internal::make_slm_manifest(const Artifact& artifact, const SourceOf& source) {
  const bool trained = source.kind == kTrainedKind;
  Record out(kSlmManifestSchema);
  out.set("manifest_version", "1");
  out.set("path", artifact.name).set("bytes", artifact.bytes).set("sha256", artifact.sha256);
  out.set("slm_version", artifact.model.version());
  set_checksums(out, {}, artifact);
  for (const std::string_view field : kNumbers) out.set(field, artifact.header(field));
  out.set("rope_theta", artifact.real_header("rope_theta"));
  out.set("rms_norm_epsilon", artifact.real_header("rms_norm_epsilon"));
  out.set_flag("tied_output", (artifact.header("flags") & 1U) != 0);
  const auto tokenizer = artifact.model.tokenizer();
  out.set("tokenizer", name(tokenizer ? tokenizer->kind : Tokenizer::Kind::byte));
  out.set("tensor_count", std::uint64_t{artifact.model.size()});
  out.set("parameter_count", artifact.parameters);
  out.set("quantization", artifact.model.dtype_label());
  out.set("source_kind", source.kind);
  if (trained) out.set("source_sha256", source.sha256);
  set_claims(out, trained);
  seal(out);
  return out;
}

std::string internal::check_conversion(const Artifact& artifact, const std::string& path) {
  const ReadRecord given = read_evidence(kConversionSchema, path, "slm convert-trained");
  Record again = without_seal(given.record);
  again.set("artifact.name", artifact.name).set("artifact.bytes", artifact.bytes);
  again.set("artifact.sha256", artifact.sha256);
  set_checksums(again, "artifact.", artifact);
  again.set("artifact.quantization", artifact.model.dtype_label());
  seal(again);
  compare(given, again);
  return given.sha256;
}

Provenance internal::read_provenance(const Evidence& at, const Context& context) {
  Artifact artifact = read_artifact(at.artifact, context);  // report a missing or invalid model before its record
  ReadRecord manifest = read_evidence(kSlmManifestSchema, at.manifest, "slm manifest");
  check_claims(manifest.record);
  const std::string kind(manifest.record.get("source_kind"));
  compare(manifest, make_slm_manifest(artifact, source_of(artifact, kind, at)));
  return {std::move(artifact), std::move(manifest)};
}

Outcome write_slm_manifest(const Evidence& at, std::string_view source_kind, bool replace, const Context& context) {
  if (source_kind != kSmokeKind && source_kind != kTrainedKind)
    base::misuse("source-kind",
                 "a source is deterministic-smoke or converted-trained, not " + core::quoted(source_kind));
  const Artifact artifact = read_artifact(at.artifact, context);
  const SourceOf source = source_of(artifact, std::string(source_kind), at);
  return conclude("manifest", make_slm_manifest(artifact, source), {}, output_of(at, &Evidence::manifest, replace));
}

Outcome validate_slm_manifest(const Evidence& at, const Context& context) {
  const Provenance of = read_provenance(at, context);
  return report_on("validate-manifest", of.manifest.record, of.manifest.sha256, {}, {});
}

}  // namespace weighbridge::chain
