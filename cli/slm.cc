// SPDX-License-Identifier: Apache-2.0
// slm: maps actions to functions, which are in slm_package.cc, slm_source.cc and slm_admission.cc.
#include <algorithm>

#include "session.h"
#include "slm_actions.h"
#include "weighbridge/chain.h"

namespace weighbridge::cli {
namespace {

struct SlmAction {
  std::string_view action;
  Status (*run)(Session&, Operands);
};
constexpr SlmAction kSlmActions[] = {
    {"fixture", make_fixture},
    {"adapter", make_adapter},
    {"adapt", apply_adapters},
    {"source-template", make_source_template},
    {"review-safetensors-candidate", review_candidate},
    {"extract-safetensors-source", extract_source},
    {"validate-source", validate_source},
    {"convert-trained", convert_trained},
    {"convert-safetensors-trained", convert_safetensors_trained},
    {"manifest", make_slm_manifest},
    {"validate-manifest", validate_slm_manifest},
    {"runtime-smoke", smoke_model},
    {"eval-template", make_cases},
    {"eval", run_cases},
    {"quality-gate", pass_gate},
    {"admission-record", admit_model},
    {"promotion-ledger", keep_ledger},
    {"selector-registry", make_registry},
    {"minimodel-template", make_minimodel},
    {"verify-manifest", verify_minimodel},
    {"verify-artifact", verify_artifact},
    {"import-receipt", make_receipt},
};

}  // namespace

std::string output_of(const Session& session) { return std::string(session.args.value(FlagId::output)); }
bool replaces(const Session& session) { return session.args.has(FlagId::overwrite); }

Status print_outcome(Session& session, const std::string& subject, const chain::Outcome& outcome) {
  session.progress().clear();
  session.print_written(outcome.path, [&] {
    if (session.json) return session.object(outcome.json);
    for (const Finding& finding : outcome.report.findings()) session.out.text(session.sentence(finding) + "\n");
    if (!session.quiet)
      session.out.text(shown(subject) + ": " + (outcome.passed ? "passed" : "refused") +
                       (outcome.path.empty() ? "" : ", " + shown(outcome.path) + " written") + ", sha256 " +
                       outcome.sha256 + "\n");
  });
  return outcome.passed ? Status::done : Status::invalid;
}

Status run_slm(Session& session) {
  const std::span<const std::string> operands = session.args.operands;
  if (session.args.value(FlagId::output) == "-")
    throw Misuse("slm cannot write to standard output, because it reads back what it wrote: give -o FILE");
  const auto* const doing = std::ranges::find(kSlmActions, session.args.action->name, &SlmAction::action);
  return doing->run(session, operands);
}

}  // namespace weighbridge::cli
