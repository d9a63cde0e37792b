// SPDX-License-Identifier: Apache-2.0
/// \file
/// The library weighbridge::chain, which stands on weighbridge::weighbridge.
///
/// How a trained model becomes an .slm that may be offered to users, with evidence at each step (the specification's
/// Source Conversion Chain, Admission Chain, MiniModel Implication). docs/slm-chain.md has the grammar of each record
/// and a walk through the whole.
///
/// - **Records.** Each step leaves a line-oriented record, `key=value`, bound to what it speaks of by SHA-256. Records
///   are deterministic: the same inputs give the same bytes; times are those given, or SOURCE_DATE_EPOCH's, or none.
///   They are written as conversions are: a temporary beside, synced, renamed. `replace` replaces a record of the same
///   kind and nothing else (misuse/output-kind); no step writes over what it read (misuse/output-is-input).
/// - **Errors.** Error{malformed} "chain/..." names the record's key, the tensor or the file that is wrong, what was
///   expected and found; one that is about a record says so in Finding::file; Error{misuse} what the caller asked for;
///   Error{io} the machine. A step that judges says no in its Outcome.
/// - **Admission.** Each step reads all evidence that it stands on and makes it again from the artifact: a record that
///   says anything else than what comes out now is refused, and the refusal names the record's key, both values and the
///   line. A record of another artifact is Error chain/stale, a missing one chain/missing-evidence. No step writes
///   anything when it refuses; an evaluation leaves its record when cases fail, and a rejection is one.
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

/// What a step found, and the record that it wrote.
struct Outcome {
  bool passed = true;  ///< no error in `report`
  Report report;       ///< why not, and remarks
  std::string path;    ///< of the record; empty: it left none
  std::string record;  ///< its bytes
  std::string sha256;  ///< of them, 64 lower-case digits
  /// The same as JSON: {"schema":1,"step":...,"passed":...,"record":{"path","sha256","fields"},"findings":[...]}.
  std::string json;
};

// ---- The source chain: from trained weights to an .slm ----

/// |value| of a weight may not be above it unless another bound is given: the largest f16, which training in half
/// precision cannot pass and no healthy weight comes near.
inline constexpr double kDefaultSafetyBound = 65504;

/// [reads] A source.manifest to fill in. `model` gives shape and tokenizer where there is one, else their places stay
/// open.
Outcome write_source_template(const std::optional<Model>& model, const std::string& output, bool replace);

/// What review_candidate() goes by.
struct ReviewOptions {
  std::string manifest{};  ///< a filled-in source.manifest, for what the candidate does not say; may be empty
  double safety_bound = kDefaultSafetyBound;  ///< the largest |value| that passes
  std::string output{};                       ///< where the record goes
  bool replace = false;                       ///< a record of the same kind that is there
};
/// [reads] Whether a safetensors file or a Hugging Face folder can become an .slm: architecture, shapes, heads, dtypes,
/// missing and extra tensors, values that are not finite, above the bound or all zero. License fields as found, never
/// fetched. Not passed: chain/structure, chain/missing-tensor, chain/extra-tensor, chain/dtype, chain/nonfinite,
/// chain/above-bound, chain/all-zero, chain/contradiction.
Outcome review_candidate(const std::string& candidate, const ReviewOptions&, const Context& = {});

/// What extract_source() needs.
struct ExtractOptions {
  std::string review;    ///< the review record
  std::string manifest;  ///< the source.manifest that the review was made with
  std::string folder;    ///< to be made; with `replace` it may be there already
  bool replace = false;  ///< a folder of the same kind that is there
};
/// [reads] Writes tensors/*.f32, in .slm's names, shapes and order of rows, a copy of the review, and source.manifest,
/// which comes last. The review is made again and must say the same.
Outcome extract_source(const std::string& candidate, const ExtractOptions&, const Context& = {});

/// What validate_source() goes by.
struct ValidateOptions {
  double safety_bound = kDefaultSafetyBound;  ///< the largest |value| that passes
  std::string output{};                       ///< where the record goes
  bool replace = false;                       ///< a record of the same kind that is there
};
/// [reads] Every rule of a source folder. Not passed: chain/path, chain/shape, chain/digest, chain/count, chain/stray,
/// chain/placeholder, chain/duplicate, chain/stale, chain/contradiction, chain/structure, and those of values as above.
Outcome validate_source(const std::string& folder, const ValidateOptions&, const Context& = {});

/// What the two conversions into an .slm make.
struct TrainedOptions {
  std::string dtype = "f32";  ///< "q8_0", "q4_0"
  std::string output{};       ///< NAME.slm; the conversion record is NAME.slm.conversion
  bool replace = false;       ///< both, where they are there
};
/// [reads] A validated source into an .slm, structure accepted and quality pending. The validation is made again and
/// must say the same. chain/smoke-claim: a source that is no trained one.
Outcome convert_trained(const std::string& folder, const std::string& validation, const TrainedOptions&,
                        const Context& = {});
/// [reads] A reviewed candidate likewise; `manifest` as the review had it.
Outcome convert_safetensors_trained(const std::string& candidate, const std::string& review,
                                    const std::string& manifest, const TrainedOptions&, const Context& = {});

// ---- Admission: from an .slm to what a user interface may offer ----

/// Where the evidence of one artifact lies.
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
/// Beside it: .conversion, .manifest, .smoke, .smoke-gate, .cases, .evaluation, .quality-gate, .admission behind its
/// name.
Evidence evidence_beside(const std::string& artifact);

/// [reads] Writes the provenance of the artifact, which passes every rule of .slm. `source_kind`: deterministic-smoke,
/// or converted-trained, which needs the record of the artifact's conversion and binds it.
Outcome write_slm_manifest(const Evidence&, std::string_view source_kind, bool replace, const Context& = {});
/// [reads] Every field of the manifest, made again. chain/smoke-claim: a smoke model that claims more than to run.
Outcome validate_slm_manifest(const Evidence&, const Context& = {});

/// [reads] Runs the model on four fixed prompts, 16 tokens each, greedily: ids and a digest of each text.
/// chain/smoke: a logit that is not finite, runs that differ, no token at all.
Outcome runtime_smoke(const Evidence&, bool replace, const Context& = {});

/// [reads] Evaluation cases to fill in, bound to artifact and manifest.
Outcome evaluation_template(const Evidence&, bool replace, const Context& = {});
/// [reads] Runs the cases greedily. Not passed: a text that is not the expected one, or a held-out text whose mean
/// negative log likelihood is above its bound. chain/placeholder: a case that was not filled in.
Outcome run_evaluation(const Evidence&, bool replace, const Context& = {});

/// What is decided of a model.
enum class Gate : std::uint8_t {
  runtime_smoke,     ///< it runs
  assistant_quality  ///< it may answer people
};
std::string_view name(Gate) noexcept;                           ///< "runtime-smoke", "assistant-quality"
std::optional<Gate> gate_from_name(std::string_view) noexcept;  ///< as name() spells it
/// Who decides on assistant quality, and how.
struct Decision {
  std::string decision;  ///< "approve" or "reject"
  std::string by;        ///< who decides
  std::string at;        ///< a time, or nothing: as all times in records
};
/// [reads] runtime_smoke: manifest and smoke hold, for either kind of source. assistant_quality: the smoke gate passed
/// too, and chain/smoke-claim (the source is no converted-trained one), chain/no-cases, chain/failed-cases,
/// chain/held-out, chain/safety-review, chain/scope, chain/decision say what is lacking. To reject needs the evidence
/// but none of those conditions; its record takes the place of an approval, is not passed, and no admission comes after
/// it.
Outcome quality_gate(Gate, const Evidence&, const Decision&, bool replace, const Context& = {});

/// [reads] Joins structure, provenance, smoke, evaluation and both gates of one artifact.
Outcome write_admission(const Evidence&, bool replace, const Context& = {});

/// [reads] Adds the artifact, and adapters that fit it and run on it, behind the ledger's last entry; makes the ledger
/// where there is none. chain/adapter: a package that does not fit, or with which the fixed prompts do not run. Needs
/// the admission record. Paths in a ledger are relative to its folder and stay in it. chain/promoted: all of it stands
/// there already. Waits while another run holds the folder: a minute, then Error{io}.
Outcome append_to_ledger(const std::string& ledger, const Evidence&, std::span<const std::string> adapters,
                         const std::string& at, const Context& = {});
/// [reads] Every link from the first entry to the head. chain/ledger names the first that is broken.
Outcome verify_ledger(const std::string& ledger);

/// What write_selector_registry() goes by.
struct RegistryOptions {
  std::uint64_t byte_budget = 33554432;  ///< of one artifact
  bool replace = false;                  ///< a record of the same kind that is there
};
/// [reads] Lists what the ledger promoted last under each path, each file read and compared. Beside the ledger.
/// chain/byte-budget and chain/changed-artifact name the file that is too large or not the promoted one.
Outcome write_selector_registry(const std::string& ledger, const std::string& registry, const RegistryOptions& = {},
                                const Context& = {});
/// [reads] The registry, made again with its own budget.
Outcome check_selector_registry(const std::string& ledger, const std::string& registry, const Context& = {});

// ---- MiniModel manifest v0 ----

/// [reads] One to fill in: identity and routes are placeholders, everything of the artifact stands.
Outcome minimodel_template(const std::string& artifact, const std::string& manifest, const std::string& created,
                           bool replace, const Context& = {});
/// [reads] The manifest alone: keys, values, nothing that acts or is fetched. The outcome's record is its signed form;
/// signatures are not verified, as the keys are not public.
Outcome verify_minimodel_manifest(const std::string& manifest);
/// [reads] The artifact against it: bytes, SHA-256, every rule of .slm on the file itself, then what the manifest says
/// of the header.
Outcome verify_minimodel_artifact(const std::string& artifact, const std::string& manifest, const Context& = {});
/// [reads] Writes the receipt once that has passed.
Outcome write_import_receipt(const std::string& artifact, const std::string& manifest, const std::string& receipt,
                             const std::string& at, bool replace, const Context& = {});
/// [reads] Whether artifact and manifest still are those of the receipt.
Outcome check_import_receipt(const std::string& artifact, const std::string& manifest, const std::string& receipt,
                             const Context& = {});

// ---- What a user interface may offer ----

/// What came with a model; empty paths: it did not come. Without the ledger, the registry is taken at its seal's word.
struct OfferEvidence {
  std::string manifest{};  ///< a MiniModel manifest v0
  std::string receipt{};   ///< of write_import_receipt()
  std::string registry{};  ///< of write_selector_registry()
  std::string ledger{};    ///< that the registry was made from
};
/// What holds, and what may be offered.
struct Offers {
  /// One piece of evidence.
  struct Check {
    std::string step;                ///< "artifact", "minimodel-manifest", "import-receipt", "selector-registry"
    std::optional<Finding> why_not;  ///< none: it holds
  };
  /// One package of those that were asked about.
  struct Adapter {
    std::string path;                ///< as it was given
    std::optional<Finding> why_not;  ///< none: it may be offered
  };
  std::vector<Check> checks;      ///< in the order of Check::step
  std::vector<Adapter> adapters;  ///< as they were given
  /// {"schema":1,"checks":[{"step","passed","finding"}],"adapters":[{"path","offered","finding"}]}
  std::string json;
};
/// [reads] An adapter may be offered once artifact, manifest, receipt and registry all hold, the registry lists its
/// bytes for this model, and it fits and runs. Says no in what it returns; throws Cancelled only.
Offers offers(const std::string& artifact, const OfferEvidence&, std::span<const std::string> adapters,
              const Context& = {});

}  // namespace weighbridge::chain
