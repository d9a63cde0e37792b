// SPDX-License-Identifier: Apache-2.0
// extract: writes the elements of tensors to files or to standard output.
#include <algorithm>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

#include "file_names.h"
#include "interrupt.h"
#include "session.h"
#include "weighbridge/extract.h"
#include "weighbridge/json.h"
#include "weighbridge/npy.h"
#include "weighbridge/output.h"
#include "weighbridge/scheme.h"
#include "weighbridge/text.h"

namespace weighbridge::cli {
namespace {

Elements choose(const Tensor& tensor, const Arguments& args) {
  if (!args.has(FlagId::dense)) return Elements::part(tensor, args.value(FlagId::part));
  const std::string_view as = args.value(FlagId::dense);
  return Elements::dense(tensor, as.empty() ? DType::unknown : *dtype_from_name(as));
}

Extracted write_file(Session& session, const Input& input, const Elements& wanted, const std::string& path, bool npy) {
  return wanted.write(path,
                      {.npy = npy, .replace = session.args.has(FlagId::overwrite), .inputs = input.model.sources()},
                      session.context());
}

void write_standard_output(Session& session, const Elements& wanted) {
  wanted.stream(session.context(), [&](std::span<const std::byte> bytes) {
    if (interrupted() != 0) throw Cancelled{};
    return session.out.bytes(bytes);
  });
}

void report(Session& session, const Input& input, const std::string& path, const std::vector<Extracted>& done, bool npy,
            const std::vector<Tensor>& left_out = {}) {
  session.progress().clear();
  if (session.json) session.object(to_json(path, input.model.format(), done, left_out));
  if (session.json || session.quiet) return;
  for (const Extracted& e : done) {
    session.out.text(shown(e.tensor) + (e.part.empty() || e.part == "data" ? "" : " (" + shown(e.part) + ")") + " -> " +
                     shown(e.output) + "  " + std::string(name(e.dtype)) + ", " + grouped(e.bytes) + " bytes");
    if (!e.scheme.empty()) session.out.text(", codes of " + shown(e.scheme));
    if (npy && !ml_dtype(e.dtype).empty())
      session.out.text("; NumPy lacks the type: numpy.load(...).view(ml_dtypes." + std::string(ml_dtype(e.dtype)) +
                       ")");
    session.out.text("\n");
  }
}

bool is_npy(std::string_view path) { return path.ends_with(".npy"); }

// Refuses bare bytes under the name of another kind of file.
void require_fitting_name(const std::string& output) {
  constexpr std::string_view kOthers[] = {".csv", ".tsv", ".txt", ".json", ".jsonl", ".npz", ".parquet",
                                          ".pt",  ".pth", ".pkl", ".h5",   ".gguf",  ".onnx"};
  const std::string extension = extension_of(output);
  if (std::ranges::find(kOthers, extension) != std::end(kOthers))
    throw Misuse("extract writes NumPy files and bare bytes, not " + extension +
                 ": name the output .npy or .bin, or give --raw to write bare bytes under this name");
}

Status extract_one(Session& session, const Input& input, const std::string& path, const std::string& output) {
  const Elements wanted = choose(find_tensor(input.model, session.args.operands[1]), session.args);
  if (output == "-") {
    if (session.out.columns() > 0)
      raise(Kind::misuse, "misuse/terminal",
            "refusing to write binary data to a terminal: give -o FILE, or pipe the output, for example to xxd");
    write_standard_output(session, wanted);
    return Status::done;
  }
  const bool npy = is_npy(output) && !session.args.has(FlagId::raw);
  if (!npy && !session.args.has(FlagId::raw)) require_fitting_name(output);
  const Extracted done = write_file(session, input, wanted, output, npy);
  session.print_written(output, [&] { report(session, input, path, {done}, npy); });
  return Status::done;
}

// The temporary and the final path of one of several files.
struct Place {
  std::string temporary, asked;
};

// Makes an error name the requested file in place of its temporary file, which no longer exists.
Error renamed(const Error& error, const Place& place) {
  if (error.finding().file.name != place.temporary) return error;
  Finding finding = error.finding();
  finding.file.name = place.asked;
  return Error(std::move(finding));
}

// Writes all of them under their temporary names, with one progress bar.
std::vector<Extracted> write_all(Session& session, const std::vector<Elements>& wanted,
                                 const std::vector<Place>& places, bool npy) {
  std::uint64_t total = 0, before = 0;
  for (const Elements& each : wanted) total += each.size().value_or(0);
  Context context = session.context();
  context.progress = [&, show_progress = session.context().progress](std::uint64_t done, std::uint64_t) {
    return show_progress(before + done, std::max(total, before + done));
  };
  std::vector<Extracted> out;
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    if (!context.progress(0, 0)) throw Cancelled{};
    try {
      out.push_back(wanted[i].write(places[i].temporary, {.npy = npy}, context));
    } catch (const Error& error) {
      throw renamed(error, places[i]);
    }
    out.back().output = places[i].asked;
    before += out.back().bytes;
  }
  return out;
}

Status extract_many(Session& session, const Input& input, const std::string& path, const std::string& folder) {
  const bool npy = !session.args.has(FlagId::raw);
  std::vector<Elements> wanted;
  std::vector<Tensor> left_out;
  std::string named;
  for (const std::uint32_t i : tensors_taken(input.model, session.args)) {
    const Tensor tensor = input.model[i];
    if (is_numeric(tensor) || (!npy && !session.args.has(FlagId::dense))) {
      wanted.push_back(choose(tensor, session.args));
    } else {
      left_out.push_back(tensor);
      named += (named.empty() ? "" : ", ") + shown(tensor.name()) + " (" + shown(tensor.type_name()) + ")";
    }
  }
  if (!named.empty()) complain(shown(path) + ": left out, because no .npy file holds texts or objects: " + named);
  if (wanted.empty()) raise(Kind::misuse, "misuse/nothing-matches", "there is no such tensor in the model");
  if (npy)
    for (const Elements& each : wanted) each.npy_header();  // throws before anything is written
  check_output(wanted, session.context().limits);
  OutputFiles files(folder, session.args.has(FlagId::overwrite), input.model.sources());
  FileNames taken;
  std::vector<Place> places;
  for (const Elements& each : wanted) {
    const std::string file = taken.next(each.facts().tensor, npy ? ".npy" : ".bin");
    places.push_back({.temporary = files.add(file), .asked = files.path(file)});
  }
  const std::vector<Extracted> done = write_all(session, wanted, places, npy);
  files.publish();
  session.print_written(folder, [&] { report(session, input, path, done, npy, left_out); });
  return Status::done;
}

bool takes_several(const Arguments& args) { return args.has(FlagId::only) || args.has(FlagId::without); }

void check(const Session& session) {
  const Arguments& args = session.args;
  const bool globs = takes_several(args), names = args.operands.size() == 2;
  if (globs == names)
    throw Misuse(globs ? "extract takes either TENSOR or --only" : "extract needs TENSOR, or --only GLOB");
  if (args.value(FlagId::output) != "-") return;
  if (globs) throw Misuse("--only writes a folder, not to standard output: give -o FOLDER");
  if (session.json) throw Misuse("with --json the tensor cannot go to standard output: give -o FILE");
}

// The tensor of this name completes or is the codes of a weight with another name.
void refuse_part_of_weight(const Model& numbers, const std::string& name) {
  for (const Tensor& tensor : numbers)
    if (const StoredWeight* const weight = stored_weight(tensor))
      if (std::ranges::find(weight->tensors, name) != weight->tensors.end())
        raise(Kind::misuse, "misuse/part-of-weight",
              "the tensor '" + name + "' is one of those that make the weight '" + std::string(tensor.name()) +
                  "': extract that one, or the stored elements without --dense");
}

}  // namespace

Status run_extract(Session& session) {
  check(session);
  const std::string &path = session.args.operands.front(), output(session.args.value(FlagId::output));
  Input input = open_input(session, path);
  // What the file stores; the numbers of codes if they are asked for, or if no tensor of the file has the name.
  const bool dense = session.args.has(FlagId::dense), several = takes_several(session.args);
  const auto is_there = [&] { return several || input.model.find(session.args.operands[1]); };
  if (dense || !is_there()) {
    const auto dtype = dtype_from_name(short_dtype_name(session.args.value(FlagId::dense)));
    const Model stored =
        std::exchange(input.model, logical(input.model, session.context(), dtype.value_or(DType::unknown)));
    if (!is_there()) {
      const auto tensor = stored.find(session.args.operands[1]);
      if (const auto scheme = tensor ? scheme_of(*tensor) : std::nullopt; scheme && scheme->opaque)
        refuse_part_of_weight(input.model, session.args.operands[1]);
      input.model = stored;  // scales are numbers
    }
  }
  return several ? extract_many(session, input, path, output) : extract_one(session, input, path, output);
}

}  // namespace weighbridge::cli
