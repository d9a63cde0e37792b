// SPDX-License-Identifier: Apache-2.0
// extract: the elements of tensors as files or on standard output.
#include <filesystem>
#include <system_error>
#include <vector>

#include "file_names.h"
#include "interrupt.h"
#include "session.h"
#include "weighbridge/json.h"
#include "weighbridge/npy.h"
#include "weighbridge/output.h"

namespace weighbridge::cli {
namespace {

using Sink = std::function<bool(std::span<const std::byte>)>;

// What of a tensor is wanted: one part, or the dense form.
struct Wanted {
  Tensor tensor;
  std::optional<Part> part;  // none: dense
  Extracted facts;
};

std::string main_role(const Tensor& t) { return std::string(t.main().role()); }

[[noreturn]] void refuse_part(const Tensor& t, std::string_view role) {
  std::string sentence = "tensor '" + std::string(t.name()) + "' has no part '" + std::string(role) + "', it has";
  for (std::uint32_t i = 0; i < t.part_count(); ++i)
    sentence += (i == 0 ? " '" : ", '") + std::string(t.part(i).role()) + "'";
  raise(Kind::misuse, "misuse/unknown-part", std::move(sentence));
}

Wanted choose(const Tensor& t, const Arguments& args) {
  Wanted w;
  w.tensor = t;
  w.facts.tensor = t.name();
  if (args.has(FlagId::dense)) {
    if (const Finding* reason = t.unsupported()) throw Error(*reason);
    w.facts.dtype = args.value(FlagId::dense).empty() ? t.dtype() : *dtype_from_name(args.value(FlagId::dense));
    const Shape shape = t.shape();
    w.facts.shape.assign(shape.begin(), shape.end());
    return w;
  }
  const std::string role = args.has(FlagId::part) ? std::string(args.value(FlagId::part)) : main_role(t);
  w.part = t.part(role);
  if (!w.part) refuse_part(t, role);
  w.facts.part = role;
  w.facts.dtype = w.part->dtype();
  const Shape shape = w.part->shape();
  w.facts.shape.assign(shape.begin(), shape.end());
  return w;
}

void stream(Wanted& w, const Context& context, const Sink& sink) {
  const Sink counted = [&](std::span<const std::byte> bytes) {
    w.facts.bytes += bytes.size();
    return sink(bytes);
  };
  w.part ? w.part->stream(context, counted) : w.tensor.stream_dense(w.facts.dtype, context, counted);
}

std::string header_for(const Wanted& w, bool npy) {
  if (!npy) return {};
  const std::string_view type = npy_type(w.facts.dtype);
  if (type.empty()) {
    raise(Kind::misuse, "misuse/npy-type",
          "no .npy file can hold " + std::string(w.part ? w.part->dtype_name() : name(w.facts.dtype)) + " of tensor '" +
              w.facts.tensor + "': use --dense f32, or --raw for the bytes as they are");
  }
  return npy_header(type, w.facts.shape);
}

std::span<const std::byte> as_bytes(const std::string& text) { return std::as_bytes(std::span(text)); }

void write_file(Session& session, const Input& input, Wanted& w, const std::string& path, bool npy) {
  const std::string header = header_for(w, npy);
  OutputFile file(path, session.args.has(FlagId::force), input.model->sources());
  file.write(as_bytes(header));
  stream(w, session.context(), [&](std::span<const std::byte> bytes) {
    if (interrupted() != 0) throw Cancelled{};
    file.write(bytes);
    return true;
  });
  file.publish();
  w.facts.output = path;
}

void write_standard_output(Session& session, Wanted& w) {
  stream(w, session.context(), [&](std::span<const std::byte> bytes) {
    if (interrupted() != 0) throw Cancelled{};
    return session.out.bytes(bytes);
  });
}

void report(Session& session, const Input& input, const std::string& path, const std::vector<Extracted>& done,
            bool npy) {
  session.progress().clear();
  if (session.json) session.object(to_json(path, input.model->format(), done));
  if (session.json || session.quiet) return;
  for (const Extracted& e : done) {
    session.out.text(shown(e.tensor) + (e.part.empty() || e.part == "data" ? "" : " (" + shown(e.part) + ")") + " -> " +
                     shown(e.output) + "  " + std::string(name(e.dtype)) + ", " + grouped(e.bytes) + " bytes");
    if (npy && !ml_dtype(e.dtype).empty())
      session.out.text("; NumPy lacks the type: numpy.load(...).view(ml_dtypes." + std::string(ml_dtype(e.dtype)) +
                       ")");
    session.out.text("\n");
  }
}

bool is_npy(std::string_view path) { return path.ends_with(".npy"); }

Status extract_one(Session& session, const Input& input, const std::string& path, const std::string& output) {
  Wanted w = choose(find_tensor(*input.model, session.args.operands[1]), session.args);
  if (output == "-") {
    write_standard_output(session, w);
    return Status::done;
  }
  const bool npy = is_npy(output) && !session.args.has(FlagId::raw);
  write_file(session, input, w, output, npy);
  report(session, input, path, {w.facts}, npy);
  return Status::done;
}

Status extract_many(Session& session, const Input& input, const std::string& path, const std::string& folder) {
  const std::string_view pattern = session.args.value(FlagId::glob);
  const bool npy = !session.args.has(FlagId::raw);
  std::vector<Wanted> wanted;
  for (std::uint32_t i = 0; i < input.model->size(); ++i) {
    const Tensor t = (*input.model)[i];
    if (matches_glob(pattern, t.name())) wanted.push_back(choose(t, session.args));
  }
  if (wanted.empty()) raise(Kind::misuse, "misuse/unknown-tensor", "no tensor matches '" + std::string(pattern) + "'");
  for (const Wanted& w : wanted) header_for(w, npy);  // refuses before anything is written
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error) raise(Kind::io, "io/create", "folder '" + folder + "' cannot be made: " + error.message());
  FileNames names;
  std::vector<Extracted> done;
  for (Wanted& w : wanted) {
    const std::string file =
        (std::filesystem::path(folder) / names.next(w.facts.tensor, npy ? ".npy" : ".bin")).string();
    write_file(session, input, w, file, npy);
    done.push_back(w.facts);
  }
  report(session, input, path, done, npy);
  return Status::done;
}

void check(const Session& session) {
  const Arguments& args = session.args;
  const bool globs = args.has(FlagId::glob), names = args.operands.size() == 2;
  if (globs == names)
    throw Misuse(globs ? "extract takes TENSOR or --glob, not both" : "extract needs TENSOR, or --glob PATTERN");
  if (!args.has(FlagId::output)) throw Misuse("extract needs -o: a file, or - for standard output");
  if (args.has(FlagId::part) && args.has(FlagId::dense))
    throw Misuse("--part and --dense ask for different things: give one of them");
  if (args.value(FlagId::output) != "-") return;
  if (globs) throw Misuse("several tensors go into a folder, not to standard output: give -o FOLDER");
  if (session.json) throw Misuse("standard output cannot take both the tensor and --json: give -o FILE");
}

}  // namespace

Status run_extract(Session& session) {
  check(session);
  const std::string &path = session.args.operands.front(), output(session.args.value(FlagId::output));
  const Input input = open_input(session, path);
  if (!input.model) return input.status;
  try {
    return session.args.has(FlagId::glob) ? extract_many(session, input, path, output)
                                          : extract_one(session, input, path, output);
  } catch (const Error& error) {
    return session.fail(path, error);
  }
}

}  // namespace weighbridge::cli
