// SPDX-License-Identifier: Apache-2.0
// convert-trained and convert-safetensors-trained: convert to an .slm with the same plan as any conversion, and record
// where it comes from. The structure is then accepted and the quality pending, since nothing here looks at the model's
// output.
#include "base/fail.h"
#include "chain/candidate.h"
#include "chain/evidence.h"
#include "chain/outcome.h"
#include "chain/source_folder.h"
#include "chain/source_schemas.h"
#include "io/publication.h"
#include "weighbridge/chain.h"

namespace weighbridge::chain {
using namespace internal;
namespace {

void require_trained(const Record& manifest) {
  if (const std::string_view kind = manifest.get("source_kind"); kind != "trained")
    refuse("smoke-claim", "source_kind", "is " + std::string(kind) + ": only a trained source is converted as one", {},
           "trained", std::string(kind));
  for (const char* const key : {"identity", "license", "dataset", "training_summary"})
    if (is_placeholder(manifest.get(key)))
      refuse("placeholder", key, "is still to be filled in", {}, "a text", std::string(manifest.get(key)));
}

// Writes the artifact, reads it back under the full validator, and writes the record of both. They get their names
// together.
Outcome write(std::string_view step, const Model& model, const ReadRecord& manifest, Record record,
              const TrainedOptions& options, const std::vector<std::string>& inputs, const Context& context) {
  if (options.quantize_norms && options.dtype == "f32")
    base::misuse("quantize-norms", "norms are quantized with a dtype of q8_0 or q4_0 only");
  const io::Target target = io::resolve_target(options.output);
  const std::string name = io::split_path(options.output).name, record_name = name + std::string(kConversionEnding);
  const io::Recovered left = io::recover(target.folder);
  for (const std::string& each : {target.name, record_name}) left.require_free(target.folder, each);
  require_other_file({options.output, options.replace, inputs});
  const Output beside{options.output + std::string(kConversionEnding), options.replace, inputs};
  check_output(kConversionSchema, beside);
  const Plan judged = plan(model, "slm", chain_options(options.dtype, options.replace, options.quantize_norms));
  judged.check_output(options.output);
  if (!io::same_file(target.folder, io::split_path(beside.path).folder))
    base::misuse_of(options.output, "output-kind",
                    "the record belongs beside the model, which a symbolic link puts into another folder ('" +
                        target.folder + "'): give the path there");
  const io::Staging staging(target.folder, target.name, false);
  judged.execute(staging.path() + "/" + name, context);
  const Artifact artifact = read_artifact(staging.path() + "/" + name, context);

  record.set("record", "slm-conversion").set("schema_version", "1").set("source_kind", kTrainedKind);
  for (const std::string_view key : {"identity", "license", "dataset", "training_summary", "source_dtype"})
    record.set(key, manifest.record.get(key));
  record.set("manifest_sha256", manifest.sha256);
  set_shape(record, shape_of(artifact.model));
  record.set("artifact.name", artifact.name).set("artifact.bytes", artifact.bytes);
  record.set("artifact.sha256", artifact.sha256);
  set_checksums(record, "artifact.", artifact);
  record.set("artifact.quantization", artifact.model.dtype_label());
  record.set("tensor_count", std::uint64_t{artifact.model.size()}).set("parameter_count", artifact.parameters);
  record.set("structure", "accepted").set("quality", "pending");
  seal(record);
  check_output(kConversionSchema, beside);
  Outcome out = report_on(step, record, record.digest(), {}, beside.path);
  publish(staging.path() + "/" + record_name, out.record, false);
  io::Publication publication(target.folder);
  publication.add({record_name, staging.name() + "/" + record_name, options.replace});
  publication.add({target.name, staging.name() + "/" + name, options.replace});
  publication.publish();
  return out;
}

}  // namespace

Outcome convert_trained(const std::string& folder, const std::string& validation, const TrainedOptions& options,
                        const Context& context) {
  const Validated source = read_validation(validation, folder, context);
  const ReadRecord& manifest = source.now.manifest;
  require_trained(manifest.record);
  Record record(kConversionSchema);
  record.set("route", "source").set("validation_sha256", source.record.sha256);
  for (const std::string_view key : {"review_sha256", "candidate_sha256"})
    if (manifest.record.has(key)) record.set(key, manifest.record.get(key));
  std::vector<std::string> inputs = source_files(folder);
  inputs.push_back(validation);
  return write("convert-trained", source.now.model, manifest, std::move(record), options, inputs, context);
}

Outcome convert_safetensors_trained(const std::string& candidate, const std::string& review,
                                    const std::string& manifest, const TrainedOptions& options,
                                    const Context& context) {
  const Candidate source = read_candidate(candidate, manifest, context);
  if (!source.manifest)
    base::misuse("manifest", "a trained model needs its source.manifest: who made it, from what, how");
  require_trained(source.manifest->record);
  const ReadRecord reviewed = read_review(review, source, context);
  Record record(kConversionSchema);
  record.set("route", "safetensors").set("review_sha256", reviewed.sha256).set("candidate_sha256", source.sha256);
  std::vector<std::string> inputs = source.paths;
  inputs.push_back(review);
  return write("convert-safetensors-trained", source.model, *source.manifest, std::move(record), options, inputs,
               context);
}

}  // namespace weighbridge::chain
