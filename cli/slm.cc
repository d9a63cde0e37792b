// SPDX-License-Identifier: Apache-2.0
// slm: fixtures of known sizes, adapter packages made and applied. Owns the words; the work is the library's.
#include "weighbridge/slm.h"

#include <algorithm>
#include <filesystem>
#include <vector>

#include "nearest.h"
#include "session.h"
#include "weighbridge/json.h"

namespace weighbridge::cli {
namespace {

struct Action {
  std::string_view name;
  std::size_t least, most;  // operands besides the action
  Status (*run)(Session&, std::span<const std::string> operands);
  std::vector<FlagId> flags;  // besides those that every action takes
};

std::string output_of(const Session& session) { return std::string(session.args.value(FlagId::output)); }

// Writes what the plan says and tells of it in convert's words.
Status carry_out(Session& session, const std::string& from, const Plan& plan) {
  const std::string output = output_of(session);
  plan.execute(output, session.context());
  session.progress().clear();
  if (session.json)
    session.object(to_json(from, output, plan, true));
  else if (!session.quiet)
    session.out.text(shown(from) + " -> " + shown(output) + " (" + std::string(plan.to) +
                     "): " + grouped(plan.tensors) + (plan.tensors == 1 ? " tensor, " : " tensors, ") +
                     grouped(plan.output_size) + " bytes, written\n");
  return Status::done;
}

Status make_fixture(Session& session, std::span<const std::string> operands) {
  const auto kind = slm::fixture_from_name(operands[0]);
  if (!kind) throw Misuse("slm fixture makes tiny, tiny-tied, tiny-bpe or tinylm16m, not " + quote(operands[0]));
  Options options;
  options.replace = session.args.has(FlagId::force);
  if (const std::string_view dtype = session.args.value(FlagId::slm_dtype); !dtype.empty() && dtype != "f32") {
    options.quantise = dtype;
    options.quantise_norms = true;  // as the original packer does, whose sizes these are
  }
  return carry_out(session, operands[0], plan(slm::fixture(*kind), "slm", options));
}

// The models of the paths, or nothing once one of them has failed, which was said.
std::vector<Model> open_all(Session& session, std::span<const std::string> paths, Status& status) {
  std::vector<Model> out;
  for (const std::string& path : paths) {
    const Input input = open_input(session, path);
    if (!input.model) {
      status = input.status;
      return {};
    }
    session.remarks(path, input.report);
    out.push_back(*input.model);
  }
  return out;
}

Status make_adapter(Session& session, std::span<const std::string> operands) {
  if (!session.args.has(FlagId::kind)) throw Misuse("slm adapter needs --kind adp1, asp1 or alr1");
  Status status = Status::done;
  const std::vector<Model> models = open_all(session, operands, status);
  if (models.empty()) return status;
  Options options;
  options.replace = session.args.has(FlagId::force);
  const auto kind = slm::adapter_kind_from_name(session.args.value(FlagId::kind));
  return carry_out(session, operands[1], slm::plan_adapter(models[0], models[1], *kind, options, session.context()));
}

Status apply_adapters(Session& session, std::span<const std::string> operands) {
  Status status = Status::done;
  const std::vector<Model> models = open_all(session, operands, status);
  if (models.empty()) return status;
  Options options;
  options.replace = session.args.has(FlagId::force);
  const Model adapted = slm::adapt(models[0], std::span(models).subspan(1), session.context());
  return carry_out(session, operands[0], plan(adapted, "slm", options));
}

const std::vector<Action>& actions() {
  using enum FlagId;
  static const std::vector<Action> all = {
      {"fixture", 1, 1, make_fixture, {slm_dtype}},
      {"adapter", 2, 2, make_adapter, {kind}},
      {"adapt", 2, kAny, apply_adapters, {}},
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
  if (!args.has(FlagId::output)) throw Misuse("slm " + std::string(action.name) + " needs -o OUT");
}

}  // namespace

Status run_slm(Session& session) {
  const Action& action = find_action(session.args.operands[0]);
  check(action, session.args);
  const std::span<const std::string> operands = std::span(session.args.operands).subspan(1);
  try {
    return action.run(session, operands);
  } catch (const Error& error) {
    return session.fail(operands[0], error);
  }
}

}  // namespace weighbridge::cli
