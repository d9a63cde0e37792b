// SPDX-License-Identifier: Apache-2.0
// verify --derived-from: whether a GGUF was made from a model. And the statement that convert leaves.
#include "weighbridge/derivation.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>

#include "derivation.h"
#include "weighbridge/json.h"
#include "weighbridge/manifest.h"
#include "weighbridge/output.h"

namespace weighbridge::cli {
namespace {

constexpr std::size_t kMostShown = 20;

void print(Session& session, std::string_view path, std::string_view source, const Derivation& found) {
  Output& out = session.out;
  out.shown(path);
  out.text(": ");
  if (!found.unclaimed.empty()) {
    out.toned(Tone::warning, "not checked");
    out.text(": " + found.unclaimed + "; --imatrix FILE gives it\n");
    return;
  }
  const std::string how =
      (found.quantize.empty() ? "not quantized" : found.quantize) + (found.pure ? ", pure" : "") +
      (found.chosen > 0 ? ", " + counted(found.chosen, "tensor", "tensors") + " of another type" : "") +
      (found.imatrix ? ", with the importance matrix" : "");
  if (found.derived()) {
    out.toned(Tone::good, "made from " + shown(source));
    out.text(" (" + how + "): every byte of " + counted(found.tensors, "tensor", "tensors") +
             (found.contracted > 0 ? " is rebuilt, with contraction in " + counted(found.contracted, "block", "blocks")
                                   : " is equal") +
             (found.as_ggml > 0 ? ", of " + grouped(found.as_ggml) + " as GGML writes empty groups of iq3_s" : "") +
             (found.header ? ", and so is the header\n" : "; the metadata is not what convert writes\n"));
    return;
  }
  out.toned(Tone::bad, "NOT from " + shown(source));
  out.text(" (" + how + "): " + counted(found.unlike, "tensor differs", "tensors differ") + " of " +
           grouped(found.tensors) + "\n");
  for (std::size_t i = 0; i < found.differences.size() && i < kMostShown; ++i) {
    const UnlikeTensor& each = found.differences[i];
    out.text("  " + shown(each.name) + ": ");
    switch (each.what) {
      case UnlikeTensor::What::bytes:
        out.text(each.found + ": " + grouped(each.unlike) + " of " + grouped(each.blocks) +
                 (each.unlike == 1 ? " blocks differs" : " blocks differ") + ", the first is " + grouped(each.first));
        break;
      case UnlikeTensor::What::type: out.text("is " + each.found + ", and the source gives " + each.made); break;
      case UnlikeTensor::What::missing: out.text("missing: the source gives " + each.made); break;
      case UnlikeTensor::What::additional: out.text("the source gives no such tensor"); break;
    }
    if (each.values)
      out.text("; values differ by at most " + fmt::format("{:.3g}", each.values->max_abs) + ", RMS " +
               fmt::format("{:.3g}", each.values->relative_rms) + " of theirs");
    out.text("\n");
  }
  if (found.unlike > kMostShown) out.text("  and " + grouped(found.unlike - kMostShown) + " more\n");
}

}  // namespace

Status verify_derivation(Session& session) {
  const Arguments& args = session.args;
  if (args.operands.size() > 1) throw Misuse("--derived-from checks one FILE, but several are given");
  const std::string &path = args.operands.front(), from(args.value(FlagId::derived_from));
  return session.settled(path, [&] {
    const Input file = open_input(session, path);
    Model source = open_input(session, from).model;
    DerivationOptions asked;
    if (args.has(FlagId::imatrix)) asked.imatrix = session.source(std::string(args.value(FlagId::imatrix)));
    if (args.has(FlagId::statement)) {
      const std::string stated(args.value(FlagId::statement));
      in_file(stated, [&] {
        const Statement statement = read_statement(small_text(session, stated), session.context().limits);
        asked = stated_options(statement, *session.source(path), source, asked.imatrix, session.context());
      });
    }
    asked.values = args.has(FlagId::report);
    const Derivation found = derive_again(file.model, source, asked, session.context());
    session.progress().clear();
    session.print_result([&] { return to_json(path, from, found); }, [&] { print(session, path, from, found); });
    return !found.unclaimed.empty() ? Status::unsupported : found.derived() ? Status::done : Status::invalid;
  });
}

void write_statement_of(Session& session, const Model& source, const std::string& output) {
  const Arguments& args = session.args;
  std::vector<std::pair<std::string, std::string>> options;
  for (const Flag& each : flags()) {
    if (!args.has(each.id) || !(each.of || each.id == FlagId::rename_file) || each.id == FlagId::overwrite) continue;
    const std::string name(each.option.empty() ? each.name : each.option);
    if (args.values(each.id).empty()) options.emplace_back(name, each.sets.empty() ? "true" : each.sets);
    for (const std::string& value : args.values(each.id)) options.emplace_back(name, value);
  }
  const std::string text = write_statement(state(output, source, std::move(options), session.context()));
  OutputFile file(std::string(args.value(FlagId::statement)), args.has(FlagId::overwrite));
  file.write(std::as_bytes(std::span(text)));
  file.publish();
}

}  // namespace weighbridge::cli
