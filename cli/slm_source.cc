// SPDX-License-Identifier: Apache-2.0
// slm's source chain, from reviewed weights to an .slm file. Owns the output; the library does the work.
#include "session.h"
#include "slm_actions.h"
#include "weighbridge/chain.h"

namespace weighbridge::cli {
namespace {

// The file of a required flag.
std::string needed(const Session& session, FlagId id) { return std::string(session.args.value(id)); }

double safety_bound(const Session& session) { return session.args.number<double>(FlagId::safety_bound); }

chain::TrainedOptions trained_options(const Session& session) {
  chain::TrainedOptions out;
  if (session.args.has(FlagId::slm_dtype)) out.dtype = session.args.value(FlagId::slm_dtype);
  out.quantize_norms = session.args.has(FlagId::quantize_norms);
  out.output = output_of(session);
  out.replace = replaces(session);
  return out;
}

}  // namespace

Status print_template(Session& session, const chain::Outcome& outcome) {
  session.progress().clear();
  session.print_written(
      outcome.path, [&] { return outcome.json; },
      [&] { session.out.text(shown(outcome.path) + ": written, to be filled in, sha256 " + outcome.sha256 + "\n"); });
  return Status::done;
}

Status make_source_template(Session& session, Operands operands) {
  std::optional<Model> model;
  if (!operands.empty()) {
    OpenOptions reading = reading_options(session);
    if (session.args.has(FlagId::tokenizer)) reading.tokenizer = session.source(needed(session, FlagId::tokenizer));
    const Input input = open_input(session, operands[0], reading);
    session.remarks(operands[0], input.report);
    model = input.model;
  } else if (session.args.has(FlagId::tokenizer)) {
    throw Misuse("slm source-template takes --tokenizer only with a MODEL");
  }
  const std::string output = output_of(session);
  return print_template(session, chain::write_source_template(model, output, replaces(session)));
}

Status review_candidate(Session& session, Operands operands) {
  chain::ReviewOptions options;
  options.manifest = session.args.value(FlagId::manifest);
  options.safety_bound = safety_bound(session);
  options.output = output_of(session);
  options.replace = replaces(session);
  return print_outcome(session, operands[0], chain::review_candidate(operands[0], options, session.context()));
}

Status extract_source(Session& session, Operands operands) {
  chain::ExtractOptions options;
  options.review = needed(session, FlagId::review);
  options.manifest = needed(session, FlagId::manifest);
  options.folder = output_of(session);
  options.replace = replaces(session);
  return print_outcome(session, operands[0], chain::extract_source(operands[0], options, session.context()));
}

Status validate_source(Session& session, Operands operands) {
  chain::ValidateOptions options;
  options.safety_bound = safety_bound(session);
  options.output = output_of(session);
  options.replace = replaces(session);
  return print_outcome(session, operands[0], chain::validate_source(operands[0], options, session.context()));
}

Status convert_trained(Session& session, Operands operands) {
  return print_outcome(session, operands[0],
                       chain::convert_trained(operands[0], needed(session, FlagId::validation),
                                              trained_options(session), session.context()));
}

Status convert_safetensors_trained(Session& session, Operands operands) {
  return print_outcome(session, operands[0],
                       chain::convert_safetensors_trained(operands[0], needed(session, FlagId::review),
                                                          needed(session, FlagId::manifest), trained_options(session),
                                                          session.context()));
}

}  // namespace weighbridge::cli
