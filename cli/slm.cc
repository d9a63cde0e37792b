// SPDX-License-Identifier: Apache-2.0
// slm: the table of its actions and the choice among them; slm_package.cc, slm_source.cc and slm_admission.cc do them.
#include <algorithm>
#include <vector>

#include "nearest.h"
#include "session.h"
#include "slm_actions.h"
#include "weighbridge/chain.h"

namespace weighbridge::cli {
namespace {

enum class Writes : std::uint8_t { always, maybe, never };  // -o OUT

struct Action {
  std::string_view name;
  std::size_t least, most;  // operands besides the action
  Status (*run)(Session&, Operands);
  std::vector<FlagId> flags;  // besides those that every action takes
  Writes writes = Writes::always;
};

const std::vector<Action>& actions() {
  using enum FlagId;
  static const std::vector<Action> all = {
      {"fixture", 1, 1, make_fixture, {slm_dtype}},
      {"adapter", 2, 2, make_adapter, {kind}},
      {"adapt", 2, kAny, apply_adapters, {}},
      {"source-template", 0, 1, make_source_template, {tokenizer}},
      {"review-safetensors-candidate", 1, 1, review_candidate, {manifest, safety_bound}},
      {"extract-safetensors-source", 1, 1, extract_source, {manifest, review}},
      {"validate-source", 1, 1, validate_source, {safety_bound}},
      {"convert-trained", 1, 1, convert_trained, {validation, slm_dtype}},
      {"convert-safetensors-trained", 1, 1, convert_safetensors_trained, {manifest, review, slm_dtype}},
      {"manifest", 1, 1, make_slm_manifest, {source_kind}, Writes::maybe},
      {"validate-manifest", 1, 1, validate_slm_manifest, {}, Writes::never},
      {"runtime-smoke", 1, 1, smoke_model, {}, Writes::maybe},
      {"eval-template", 1, 1, make_cases, {}, Writes::maybe},
      {"eval", 1, 1, run_cases, {}, Writes::maybe},
      {"quality-gate", 2, 2, pass_gate, {decision, decided_by, stated_at}, Writes::maybe},
      {"admission-record", 1, 1, admit_model, {}, Writes::maybe},
      {"promotion-ledger", 2, kAny, keep_ledger, {stated_at}, Writes::never},
      {"selector-registry", 1, 1, make_registry, {byte_budget, FlagId::check}, Writes::maybe},
      {"minimodel-template", 1, 1, make_minimodel, {stated_at}, Writes::maybe},
      {"verify-manifest", 1, 1, verify_minimodel, {}, Writes::never},
      {"verify-artifact", 1, 2, verify_artifact, {}, Writes::never},
      {"write-import-receipt", 1, 2, make_receipt, {stated_at, FlagId::check}, Writes::maybe},
      {"import-receipt", 1, 2, make_receipt, {stated_at, FlagId::check}, Writes::maybe},
  };
  return all;
}

const Action& find_action(const std::string& name) {
  for (const Action& action : actions())
    if (action.name == name) return action;
  const std::string_view near = nearest_word(name, kSlmActions);
  throw Misuse("slm has no action " + quote(name) +
               (near.empty() ? "; see 'weighbridge slm --help'" : ", the nearest is '" + std::string(near) + "'"));
}

// Flags of one action mean nothing to another, which is said rather than overlooked.
void check(const Action& action, const Arguments& args) {
  for (const Action& other : actions())
    for (const FlagId id : other.flags)
      if (args.has(id) && std::ranges::find(action.flags, id) == action.flags.end())
        throw Misuse("slm " + std::string(action.name) + " takes no --" + std::string(flag(id).name));
  const std::size_t given = args.operands.size() - 1;
  if (given < action.least || given > action.most)
    throw Misuse("slm " + std::string(action.name) + " takes " + (action.most == kAny ? "at least " : "") +
                 std::to_string(action.least) + (action.least == 1 ? " operand" : " operands") + ", not " +
                 std::to_string(given) + "; see 'weighbridge slm --help'");
  if (args.value(FlagId::output) == "-")
    throw Misuse("slm writes files only, since it reads back what it has written: name an output");
  if (args.has(FlagId::output) && action.writes == Writes::never)
    throw Misuse("slm " + std::string(action.name) + " takes no --output");
  if (!args.has(FlagId::output) && action.writes == Writes::always)
    throw Misuse("slm " + std::string(action.name) + " needs -o OUT");
}

}  // namespace

std::string output_of(const Session& session) { return std::string(session.args.value(FlagId::output)); }

Status tell(Session& session, const std::string& subject, const chain::Outcome& outcome) {
  session.progress().clear();
  if (session.json) {
    session.object(outcome.json);
  } else {
    for (const Finding& finding : outcome.report.findings()) session.out.text(Session::sentence(finding) + "\n");
    if (!session.quiet)
      session.out.text(shown(subject) + ": " + (outcome.passed ? "passed" : "refused") +
                       (outcome.path.empty() ? "" : ", " + shown(outcome.path) + " written") + ", sha256 " +
                       outcome.sha256 + "\n");
  }
  return outcome.passed ? Status::done : Status::invalid;
}

Status run_slm(Session& session) {
  const Action& action = find_action(session.args.operands[0]);
  check(action, session.args);
  const std::span<const std::string> operands = std::span(session.args.operands).subspan(1);
  try {
    return action.run(session, operands);
  } catch (const chain::RecordError& error) {
    return session.fail(error.path(), error);
  } catch (const Error& error) {
    return session.fail(operands.empty() ? output_of(session) : operands[0], error);
  }
}

}  // namespace weighbridge::cli
