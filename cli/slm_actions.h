// SPDX-License-Identifier: Apache-2.0
// The actions of the verb slm, one function each; slm.cc maps actions to functions. Operands and flags have been
// checked against the action's rows.
#pragma once
#include <span>
#include <string>

#include "session.h"

namespace weighbridge::chain {
struct Outcome;
}

namespace weighbridge::cli {

using Operands = std::span<const std::string>;

std::string output_of(const Session&);
bool replaces(const Session&);  // --overwrite
// Prints what a step of the chain found and wrote. The status says whether it passed.
Status print_outcome(Session&, const std::string& subject, const chain::Outcome&);

// The same for a template, which has no findings yet.
Status print_template(Session&, const chain::Outcome&);

// slm_package.cc: fixtures and adapter packages
Status make_fixture(Session&, Operands);
Status make_adapter(Session&, Operands);
Status apply_adapters(Session&, Operands);

// The first model with the others, which are adapter packages, applied to it. `paths`: those of all models, in the same
// order. An Error names the base, or the package that is at fault by itself.
Model adapted(std::span<const Model> models, std::span<const std::string> paths, const Context& context);

// slm_source.cc: from reviewed weights to an .slm file
Status make_source_template(Session&, Operands);
Status review_candidate(Session&, Operands);
Status extract_source(Session&, Operands);
Status validate_source(Session&, Operands);
Status convert_trained(Session&, Operands);
Status convert_safetensors_trained(Session&, Operands);

// slm_admission.cc: from an .slm file to an admitted model
Status make_slm_manifest(Session&, Operands);
Status validate_slm_manifest(Session&, Operands);
Status smoke_model(Session&, Operands);
Status make_cases(Session&, Operands);
Status run_cases(Session&, Operands);
Status pass_gate(Session&, Operands);
Status admit_model(Session&, Operands);
Status keep_ledger(Session&, Operands);
Status make_registry(Session&, Operands);
Status make_minimodel(Session&, Operands);
Status verify_minimodel(Session&, Operands);
Status verify_artifact(Session&, Operands);
Status make_receipt(Session&, Operands);

}  // namespace weighbridge::cli
