// SPDX-License-Identifier: Apache-2.0
/// \file
/// The library weighbridge::chain, which builds on weighbridge::weighbridge.
///
/// The steps that turn a trained model into an .slm that may be offered to users, with evidence for each step (Source
/// Conversion Chain, Admission Chain and MiniModel Implication in the specification). docs/slm/records.md has the
/// grammar of each record and a complete example.
///
/// - **Records.** Each step writes a record of lines `key=value`, which names its inputs by SHA-256. Records are
///   deterministic: the same inputs give the same bytes. A time is the one given, else that of SOURCE_DATE_EPOCH, else
///   absent. Records are written like conversions: to a temporary beside the target, synced, renamed. `replace`
///   replaces only a record of the same kind (misuse/output-kind), and no step overwrites its input
///   (misuse/output-is-input).
/// - **Errors.** Error{malformed} "chain/..." names the record's key, the tensor or the file that is wrong, and what
///   was expected and found. Finding::file names the record if it is about one. Error{misuse} is an invalid request,
///   Error{io} a failure of the system. A step that checks reports failure in its Outcome.
/// - **Admission.** Each step reads all evidence that it depends on and recomputes it from the artifact. It refuses a
///   record that differs, and names the record's key, both values and the line. A record of another artifact is Error
///   chain/stale, a missing one chain/missing-evidence. A step that refuses writes nothing; but an evaluation with
///   failed cases and a rejection do write their records.
#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "weighbridge/context.h"
#include "weighbridge/convert.h"
#include "weighbridge/error.h"
#include "weighbridge/formats.h"
#include "weighbridge/model.h"

/// SLM's source and admission chain.
namespace weighbridge::chain {

/// Every "chain/..." rule.
std::span<const Rule> step_rules() noexcept;

/// The result of a step, and the record that it wrote.
struct Outcome {
  bool passed = true;  ///< no error in `report`
  Report report;       ///< errors and warnings
  std::string path;    ///< of the record; empty if none was written
  std::string record;  ///< its bytes
  std::string sha256;  ///< of `record`, 64 lower-case digits
  /// The same as JSON: {"schema":3,"step":...,"passed":...,"record":{"path","sha256","fields"},"findings":[...]}.
  std::string json;
};

// ---- The source chain: from trained weights to an .slm ----

/// The default maximum of |weight|: the largest f16, which training in half precision cannot exceed and no healthy
/// weight comes near.
inline constexpr double kDefaultSafetyBound = 65504;

/// [reads] Writes a source.manifest to fill in. Shape and tokenizer come from `model`, if given; else they are left
/// open.
Outcome write_source_template(const std::optional<Model>& model, const std::string& output, bool replace);

/// Options of review_candidate().
struct ReviewOptions {
  std::string manifest{};  ///< a filled-in source.manifest for what the candidate leaves open; may be empty
  double safety_bound = kDefaultSafetyBound;  ///< the largest |value| that passes
  std::string output{};                       ///< where the record goes
  bool replace = false;                       ///< a record of the same kind that is there
};
/// [reads] Checks whether a safetensors file or a Hugging Face folder can become an .slm: architecture, shapes, heads,
/// dtypes, missing and extra tensors, values that are not finite, above the bound or all zero. Records license fields
/// as found; fetches nothing. Failures: chain/structure, chain/missing-tensor, chain/extra-tensor, chain/dtype,
/// chain/nonfinite, chain/above-bound, chain/all-zero, chain/contradiction.
Outcome review_candidate(const std::string& candidate, const ReviewOptions&, const Context& = {});

/// Inputs and options of extract_source().
struct ExtractOptions {
  std::string review;    ///< the review record
  std::string manifest;  ///< the source.manifest that the review was made with
  std::string folder;    ///< to create; may exist with `replace`
  bool replace = false;  ///< replace a folder of the same kind
};
/// [reads] Writes tensors/*.f32 with .slm's names, shapes and row order, a copy of the review, and, last,
/// source.manifest. Repeats the review, which must give the same result.
Outcome extract_source(const std::string& candidate, const ExtractOptions&, const Context& = {});

/// Options of validate_source().
struct ValidateOptions {
  double safety_bound = kDefaultSafetyBound;  ///< the largest |value| that passes
  std::string output{};                       ///< where the record goes
  bool replace = false;                       ///< a record of the same kind that is there
};
/// [reads] Checks every rule of a source folder. Failures: chain/path, chain/shape, chain/digest, chain/count,
/// chain/stray, chain/placeholder, chain/duplicate, chain/stale, chain/contradiction, chain/structure, and the value
/// checks above.
Outcome validate_source(const std::string& folder, const ValidateOptions&, const Context& = {});

/// Options of the two conversions to .slm.
struct TrainedOptions {
  std::string dtype = "f32";    ///< "q8_0", "q4_0"
  bool quantize_norms = false;  ///< with such a dtype: quantize norms too
  std::string output{};         ///< NAME.slm; the conversion record is NAME.slm.conversion
  bool replace = false;         ///< replace both if they exist
};
/// [reads] Converts a validated source to .slm, with its structure accepted and its quality pending. Repeats the
/// validation, which must give the same result. chain/smoke-claim: the source is not a trained one.
Outcome convert_trained(const std::string& folder, const std::string& validation, const TrainedOptions&,
                        const Context& = {});
/// [reads] Converts a reviewed candidate likewise; `manifest` is the one of the review.
Outcome convert_safetensors_trained(const std::string& candidate, const std::string& review,
                                    const std::string& manifest, const TrainedOptions&, const Context& = {});

// ---- Admission: from an .slm to what a user interface may offer ----

/// The files of the evidence for one artifact.
struct Evidence {
  std::string artifact;      ///< the .slm
  std::string conversion;    ///< the record of convert_trained() or convert_safetensors_trained()
  std::string manifest;      ///< of write_slm_manifest()
  std::string smoke;         ///< of runtime_smoke()
  std::string smoke_gate;    ///< of quality_gate(), Gate::runtime_smoke
  std::string cases;         ///< the evaluation cases, filled in
  std::string evaluation;    ///< of run_evaluation()
  std::string quality_gate;  ///< of quality_gate(), Gate::assistant_quality
  std::string admission;     ///< of write_admission()
};
/// The default files: the artifact's name followed by .conversion, .manifest, .smoke, .smoke-gate, .cases, .evaluation,
/// .quality-gate or .admission.
Evidence evidence_beside(const std::string& artifact);

/// [reads] Writes the provenance of the artifact, which must pass every rule of .slm. `source_kind` is
/// deterministic-smoke, or converted-trained, which needs the record of the artifact's conversion and includes its
/// hash.
Outcome write_slm_manifest(const Evidence&, std::string_view source_kind, bool replace, const Context& = {});
/// [reads] Recomputes and compares every field of the manifest. chain/smoke-claim: a smoke model claims more than that
/// it runs.
Outcome validate_slm_manifest(const Evidence&, const Context& = {});

/// [reads] Runs the model greedily on four fixed prompts, 16 tokens each, and records ids and a digest of each text.
/// chain/smoke: a logit that is not finite, runs that differ, or no token.
Outcome runtime_smoke(const Evidence&, bool replace, const Context& = {});

/// [reads] Writes evaluation cases to fill in, with the hashes of artifact and manifest.
Outcome evaluation_template(const Evidence&, bool replace, const Context& = {});
/// [reads] Runs the cases greedily. Fails if a text is not the expected one, or the mean negative log-likelihood of a
/// held-out text is above its bound. chain/placeholder: a case is not filled in.
Outcome run_evaluation(const Evidence&, bool replace, const Context& = {});

/// The decisions about a model.
enum class Gate : std::uint8_t {
  runtime_smoke,     ///< it runs
  assistant_quality  ///< it may answer people
};
std::string_view name(Gate) noexcept;                           ///< "runtime-smoke", "assistant-quality"
std::optional<Gate> gate_from_name(std::string_view) noexcept;  ///< as name() spells it
/// A decision on assistant quality.
struct Decision {
  std::string decision;  ///< "approve" or "reject"
  std::string by;        ///< who decides
  std::string at;        ///< a time; may be empty, like all times in records
};
/// [reads] Writes the record of a gate. runtime_smoke needs a valid manifest and smoke, for either kind of source.
/// assistant_quality also needs the smoke gate; chain/smoke-claim (the source is not converted-trained),
/// chain/no-cases, chain/failed-cases, chain/held-out, chain/safety-review, chain/scope and chain/decision say what is
/// missing. A rejection needs the evidence but none of those conditions. Its record replaces an approval, counts as not
/// passed, and prevents admission.
Outcome quality_gate(Gate, const Evidence&, const Decision&, bool replace, const Context& = {});

/// [reads] Writes the admission record, which joins structure, provenance, smoke, evaluation and both gates of one
/// artifact.
Outcome write_admission(const Evidence&, bool replace, const Context& = {});

/// [reads] Appends the artifact, and adapters that fit it and run on it, to the ledger, which it creates if needed.
/// Needs the admission record. chain/adapter: a package does not fit, or the fixed prompts do not run with it.
/// chain/promoted: the ledger has all of them already. Paths in a ledger are relative to its folder and stay inside it.
/// If another process holds the folder, waits up to ten seconds, then throws Error{io}.
Outcome append_to_ledger(const std::string& ledger, const Evidence&, std::span<const std::string> adapters,
                         const std::string& at, const Context& = {});
/// [reads] Checks every link from the first entry to the head. chain/ledger names the first broken one.
Outcome verify_ledger(const std::string& ledger);

/// Options of write_selector_registry().
struct RegistryOptions {
  std::uint64_t byte_budget = 33554432;  ///< maximum size of one artifact
  bool replace = false;                  ///< a record of the same kind that is there
};
/// [reads] Writes the list of what the ledger promoted last under each path, beside the ledger. Reads and compares each
/// file. chain/byte-budget and chain/changed-artifact name a file that is too large or not the promoted one.
Outcome write_selector_registry(const std::string& ledger, const std::string& registry, const RegistryOptions& = {},
                                const Context& = {});
/// [reads] Recomputes the registry with its own budget and compares.
Outcome check_selector_registry(const std::string& ledger, const std::string& registry, const Context& = {});

// ---- MiniModel manifest v0 ----

/// [reads] Writes a manifest to fill in: identity and routes are placeholders, all facts of the artifact are set.
Outcome minimodel_template(const std::string& artifact, const std::string& manifest, const std::string& created,
                           bool replace, const Context& = {});
/// [reads] Checks the manifest alone: keys, values, and that nothing in it is executable or remote. The outcome's
/// record is its signed form. Signatures are not verified, because the keys are not public.
Outcome verify_minimodel_manifest(const std::string& manifest);
/// [reads] Checks the artifact against the manifest: size, SHA-256, every rule of .slm, then the manifest's facts about
/// the header.
Outcome verify_minimodel_artifact(const std::string& artifact, const std::string& manifest, const Context& = {});
/// [reads] Writes the receipt if that check passes.
Outcome write_import_receipt(const std::string& artifact, const std::string& manifest, const std::string& receipt,
                             const std::string& at, bool replace, const Context& = {});
/// [reads] Checks that artifact and manifest are still those of the receipt.
Outcome check_import_receipt(const std::string& artifact, const std::string& manifest, const std::string& receipt,
                             const Context& = {});

// ---- What a user interface may offer ----

/// The files that came with a model; an empty path means none. Without the ledger, the registry is checked by its seal
/// only.
struct OfferEvidence {
  std::string manifest{};  ///< a MiniModel manifest v0
  std::string receipt{};   ///< of write_import_receipt()
  std::string registry{};  ///< of write_selector_registry()
  std::string ledger{};    ///< from which the registry was made
};
/// Which evidence is valid, and what may be offered.
struct Offers {
  /// One piece of evidence.
  struct Check {
    std::string step;                ///< "artifact", "minimodel-manifest", "import-receipt", "selector-registry"
    std::optional<Finding> why_not;  ///< nullopt if it is valid
  };
  /// One of the given packages.
  struct Adapter {
    std::string path;                ///< as given
    std::optional<Finding> why_not;  ///< nullopt if it may be offered
  };
  std::vector<Check> checks;      ///< in the order of Check::step
  std::vector<Adapter> adapters;  ///< in the order given
  /// {"schema":1,"checks":[{"step","passed","finding"}],"adapters":[{"path","offered","finding"}]}
  std::string json;
};
/// [reads] An adapter may be offered if artifact, manifest, receipt and registry are all valid, the registry lists its
/// bytes for this model, and it fits and runs. Reports failures in its result; throws only Cancelled.
Offers offers(const std::string& artifact, const OfferEvidence&, std::span<const std::string> adapters,
              const Context& = {});

}  // namespace weighbridge::chain
