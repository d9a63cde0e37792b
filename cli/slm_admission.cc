// SPDX-License-Identifier: Apache-2.0
// slm's admission chain, from an .slm file to an admitted model. Owns the output and the paths of records; the library
// does the work.
#include "session.h"
#include "slm_actions.h"
#include "weighbridge/chain.h"

namespace weighbridge::cli {
namespace {

std::string value(const Session& session, FlagId id) { return std::string(session.args.value(id)); }

// The evidence beside `model`, with -o as the path of the record that the action writes.
chain::Evidence evidence(const Session& session, const std::string& model,
                         std::string chain::Evidence::*written = nullptr) {
  chain::Evidence out = chain::evidence_beside(model);
  if (written && session.args.has(FlagId::output)) out.*written = output_of(session);
  return out;
}

std::string minimodel_of(const std::string& model) {
  constexpr std::string_view kEnding = ".slm";
  return (model.ends_with(kEnding) ? model.substr(0, model.size() - kEnding.size()) : model) + ".minimodel";
}

// Shows the ledger and checks its links.
Status show_ledger(Session& session, const std::string& ledger) {
  const chain::Outcome outcome = chain::verify_ledger(ledger);
  if (session.json) {
    session.object(outcome.json);
    return Status::done;
  }
  std::string_view lines = outcome.record;
  for (std::size_t end = lines.find('\n'); end != std::string_view::npos; end = lines.find('\n')) {
    session.out.shown(lines.substr(0, end));
    session.out.text("\n");
    lines.remove_prefix(end + 1);
  }
  return Status::done;
}

}  // namespace

Status make_slm_manifest(Session& session, Operands operands) {
  return print_outcome(
      session, operands[0],
      chain::write_slm_manifest(evidence(session, operands[0], &chain::Evidence::manifest),
                                session.args.value(FlagId::source_kind), replaces(session), session.context()));
}

Status validate_slm_manifest(Session& session, Operands operands) {
  return print_outcome(session, operands[0],
                       chain::validate_slm_manifest(evidence(session, operands[0]), session.context()));
}

Status smoke_model(Session& session, Operands operands) {
  return print_outcome(session, operands[0],
                       chain::runtime_smoke(evidence(session, operands[0], &chain::Evidence::smoke), replaces(session),
                                            session.context()));
}

Status make_cases(Session& session, Operands operands) {
  return print_template(session, chain::evaluation_template(evidence(session, operands[0], &chain::Evidence::cases),
                                                            replaces(session), session.context()));
}

Status run_cases(Session& session, Operands operands) {
  return print_outcome(session, operands[0],
                       chain::run_evaluation(evidence(session, operands[0], &chain::Evidence::evaluation),
                                             replaces(session), session.context()));
}

Status pass_gate(Session& session, Operands operands) {
  const chain::Gate gate = *chain::gate_from_name(session.args.action->step);
  const bool smoke = gate == chain::Gate::runtime_smoke;
  const chain::Decision decision{value(session, FlagId::decision), value(session, FlagId::decided_by),
                                 value(session, FlagId::stated_at)};
  const auto written = smoke ? &chain::Evidence::smoke_gate : &chain::Evidence::quality_gate;
  return print_outcome(session, operands[0],
                       chain::quality_gate(gate, evidence(session, operands[0], written), decision, replaces(session),
                                           session.context()));
}

Status admit_model(Session& session, Operands operands) {
  return print_outcome(session, operands[0],
                       chain::write_admission(evidence(session, operands[0], &chain::Evidence::admission),
                                              replaces(session), session.context()));
}

Status keep_ledger(Session& session, Operands operands) {
  const std::string_view step = session.args.action->step;
  const std::string& ledger = operands[0];
  if (step == "append")
    return in_file(operands[1], [&] {
      return print_outcome(session, operands[1],
                           chain::append_to_ledger(ledger, chain::evidence_beside(operands[1]), operands.subspan(2),
                                                   value(session, FlagId::stated_at), session.context()));
    });
  if (step != "show") return print_outcome(session, ledger, chain::verify_ledger(ledger));
  static_cast<void>(open_file(ledger));  // a missing file is an io error, not missing evidence
  return show_ledger(session, ledger);
}

Status make_registry(Session& session, Operands operands) {
  const std::string& ledger = operands[0];
  const std::size_t slash = ledger.rfind('/');
  const std::string beside = slash == std::string::npos ? std::string() : ledger.substr(0, slash + 1);
  const std::string registry = session.args.has(FlagId::output) ? output_of(session) : beside + "selector.registry";
  if (session.args.has(FlagId::check))  // the registry states its own budget
    return print_outcome(session, registry, chain::check_selector_registry(ledger, registry, session.context()));
  return print_outcome(
      session, ledger,
      chain::write_selector_registry(
          ledger, registry,
          {.byte_budget = session.args.number<std::uint64_t>(FlagId::byte_budget), .replace = replaces(session)},
          session.context()));
}

Status make_minimodel(Session& session, Operands operands) {
  const std::string out = session.args.has(FlagId::output) ? output_of(session) : minimodel_of(operands[0]);
  return print_template(session, chain::minimodel_template(operands[0], out, value(session, FlagId::stated_at),
                                                           replaces(session), session.context()));
}

Status verify_minimodel(Session& session, Operands operands) {
  return print_outcome(session, operands[0], chain::verify_minimodel_manifest(operands[0]));
}

Status verify_artifact(Session& session, Operands operands) {
  const std::string manifest = operands.size() > 1 ? operands[1] : minimodel_of(operands[0]);
  return print_outcome(session, operands[0],
                       chain::verify_minimodel_artifact(operands[0], manifest, session.context()));
}

Status make_receipt(Session& session, Operands operands) {
  const std::string manifest = operands.size() > 1 ? operands[1] : minimodel_of(operands[0]);
  const std::string receipt = session.args.has(FlagId::output) ? output_of(session) : manifest + "-receipt";
  if (session.args.has(FlagId::check))
    return print_outcome(session, operands[0],
                         chain::check_import_receipt(operands[0], manifest, receipt, session.context()));
  return print_outcome(session, operands[0],
                       chain::write_import_receipt(operands[0], manifest, receipt, value(session, FlagId::stated_at),
                                                   replaces(session), session.context()));
}

}  // namespace weighbridge::cli
