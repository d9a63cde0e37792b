// SPDX-License-Identifier: Apache-2.0
// slm's fixtures of known sizes, and adapter packages. Owns the output; the library does the work.
#include <vector>

#include "session.h"
#include "slm_actions.h"
#include "weighbridge/json.h"
#include "weighbridge/slm.h"

namespace weighbridge::cli {
namespace {

// Carries out the plan and reports it as convert does.
Status carry_out(Session& session, const std::string& from, const Plan& plan) {
  const std::string output = output_of(session);
  const Written written = plan.execute(output, session.context());
  session.progress().clear();
  session.print_written(
      output, [&] { return to_json(from, output, plan, &written); },
      [&] {
        session.out.text(shown(from) + " -> " + shown(output) + " (" + std::string(plan.to()) +
                         "): " + grouped(plan.tensors()) + (plan.tensors() == 1 ? " tensor, " : " tensors, ") +
                         grouped(written.size) + " bytes, written\n");
      });
  return Status::done;
}

std::vector<Model> open_all(Session& session, std::span<const std::string> paths) {
  std::vector<Model> out;
  for (const std::string& path : paths) {
    OpenOptions reading = reading_options(session);
    if (out.empty()) reading.read_as.clear();  // the base, an .slm, states its dtypes
    const Input input = open_input(session, path, reading);
    session.remarks(path, input.report);
    out.push_back(input.model);
  }
  return out;
}

bool is_about_package(const Error& error) {
  const std::string& rule = error.finding().rule;
  return rule.starts_with("misuse/adapter-") && rule != "misuse/adapter-base";
}

}  // namespace

Model adapted(std::span<const Model> models, std::span<const std::string> paths, const Context& context) {
  try {
    return slm::adapt(models[0], models.subspan(1), context);
  } catch (const Error& error) {
    if (error.finding().rule == "misuse/adapter-base") throw error.in(paths[0]);
    for (std::size_t i = 1; i < models.size(); ++i)
      in_file(paths[i], [&] { return slm::adapt(models[0], models.subspan(i, 1), context); });
    throw;
  }
}

Status make_fixture(Session& session, std::span<const std::string> operands) {
  const auto kind = slm::fixture_from_name(operands[0]);
  Options options;
  options.replace = session.args.has(FlagId::overwrite);
  if (const std::string_view dtype = session.args.value(FlagId::slm_dtype); !dtype.empty() && dtype != "f32") {
    options.quantize = dtype;
    options.slm.quantize_norms = true;  // as in the original packer, whose sizes these are
  }
  // The operand is not a file, so errors name the output.
  return session.settled(output_of(session),
                         [&] { return carry_out(session, operands[0], plan(slm::fixture(*kind), "slm", options)); });
}

Status make_adapter(Session& session, std::span<const std::string> operands) {
  const std::vector<Model> models = open_all(session, operands);
  Options options;
  options.replace = session.args.has(FlagId::overwrite);
  const auto kind = slm::adapter_kind_from_name(session.args.value(FlagId::kind));
  try {
    return carry_out(session, operands[1], slm::plan_adapter(models[0], models[1], *kind, options, session.context()));
  } catch (const Error& error) {
    if (is_about_package(error)) throw error.in(operands[1]);
    throw;
  }
}

Status apply_adapters(Session& session, std::span<const std::string> operands) {
  const std::vector<Model> models = open_all(session, operands);
  Options options;
  options.replace = session.args.has(FlagId::overwrite);
  return carry_out(session, operands[0], plan(adapted(models, operands, session.context()), "slm", options));
}

}  // namespace weighbridge::cli
