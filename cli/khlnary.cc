// SPDX-License-Identifier: Apache-2.0
// khlnary: runs, verifies, disassembles and assembles modules. Prints results; the library does the work.
#include "weighbridge/khlnary.h"

#include <algorithm>
#include <array>
#include <filesystem>

#include "session.h"
#include "weighbridge/json.h"
#include "weighbridge/output.h"
#include "weighbridge/text.h"

namespace weighbridge::cli {
namespace {

namespace kn = weighbridge::khlnary;

constexpr std::size_t kFirstValues = 4;
constexpr std::size_t kMaxOfStack = 8;          // cells from the top of the stack in a line of the trace
constexpr std::size_t kMaxTraced = 10'000;      // steps in the JSON of a trace
constexpr std::size_t kWordsAtOnce = 64 << 10;  // in a piece of a disassembly

// Writes what was made from `input` to -o.
void write_output(Session& session, const std::shared_ptr<const Source>& input, std::string_view bytes, bool binary) {
  const std::string output(session.args.value(FlagId::output));
  if (output == "-") {
    if (binary && session.out.columns() > 0)
      raise(Kind::misuse, "misuse/terminal",
            "refusing to write binary data to a terminal: give -o FILE, or pipe the output");
    session.out.text(bytes);
    return;
  }
  OutputFile file(output, session.args.has(FlagId::overwrite), std::span(&input, 1));
  file.write(std::as_bytes(std::span(bytes)));
  file.publish();
}

// The file written by -o; empty if there is none.
std::string_view written_file(const Session& session) {
  const std::string_view output = session.args.value(FlagId::output);
  return output == "-" ? std::string_view() : output;
}

std::string text_of(const Session& session, const Source& source) {
  if (source.size() > session.context().limits.header)
    raise(Kind::limit, "limit/header", "the text is larger than the limit allows", {},
          {Hint::What::limit, "header", std::to_string(source.size())});
  std::string text(source.size(), '\0');
  source.read_at(0, std::as_writable_bytes(std::span(text)));
  return text;
}

std::shared_ptr<const Source> sidecar_of(Session& session) {
  if (!session.args.has(FlagId::sidecar)) return nullptr;
  return open_file(std::string(session.args.value(FlagId::sidecar)));
}

unsigned authority_of(const Arguments& args) { return args.number<unsigned>(FlagId::authority); }

// ---- run ----

std::string stack_text(std::span<const kn::Cell> stack) {
  const std::size_t shown = std::min(stack.size(), kMaxOfStack);
  std::string out = stack.size() > shown ? "(" + grouped(stack.size() - shown) + " more)" : "";
  for (const kn::Cell& cell : stack.last(shown)) out += (out.empty() ? "" : ", ") + kn::to_text(cell);
  return "[" + out + "]";
}

std::string offset_text(std::uint64_t offset) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string out;
  for (int shift = 28; shift >= 0; shift -= 4) out += kDigits[offset >> shift & 0xF];
  return out;
}

// Prints the steps as text or JSON. JSON has only the first of them, because a run can take a million.
class Trace {
 public:
  explicit Trace(Session& session) : session_(session) { json_.begin_array(); }

  void operator()(const kn::Step& step) {
    if (!session_.json) {
      std::string line = offset_text(step.index * 4) + "  " + kn::disassemble(step.word);
      line.resize(std::max<std::size_t>(line.size(), 44), ' ');
      session_.out.text(line + " " + stack_text(step.stack) + "\n");
    } else if (count_++ < kMaxTraced) {
      json_.raw(kn::to_json(step));
    }
  }
  // Call it once, after the last step.
  std::string json() {
    json_.end_array();
    return json_.take();
  }

 private:
  Session& session_;
  std::size_t count_ = 0;
  JsonWriter json_{};
};

std::string shape_text(const Tensor& tensor) {
  if (!tensor.has_shape()) return "unknown shape";
  std::string out;
  for (const std::uint64_t dim : tensor.shape()) out += (out.empty() ? "" : ", ") + std::to_string(dim);
  return "[" + out + "]";
}

std::string values_text(const kn::Loaded& loaded, const Context& context) {
  if (const Finding* reason = loaded.tensor.unsupported()) return reason->message;
  std::string out;
  for (const Value& value : kn::first_values(loaded.tensor, kFirstValues, context))
    out += (out.empty() ? "" : ", ") + value.to_text();
  const Shape shape = loaded.tensor.shape();
  std::uint64_t count = 1;
  for (const std::uint64_t dim : shape) count *= dim;
  return count > kFirstValues ? out + ", ..." : out;
}

void print_loaded(Session& session, const kn::Result& result) {
  using Row = std::array<std::string, 5>;
  std::vector<Row> rows{{"file/id", "name", "dtype", "shape", "first values"}};
  for (const kn::Loaded& l : result.loaded)
    rows.push_back({std::to_string(l.file) + "/" + std::to_string(l.id), shown(l.tensor.name()),
                    shown(l.tensor.type_name()), shape_text(l.tensor), shown(values_text(l, session.context()))});
  std::array<std::size_t, 5> width{};
  for (const Row& row : rows)
    for (std::size_t i = 0; i < row.size(); ++i) width[i] = std::max(width[i], display_width(row[i]));
  for (const Row& row : rows) {
    std::string line = "  ";
    for (std::size_t i = 0; i < row.size(); ++i)
      line += row[i] + (i + 1 < row.size() ? std::string(width[i] - display_width(row[i]) + 2, ' ') : "");
    session.out.toned(&row == rows.data() ? Tone::heading : Tone::plain, line);
    session.out.text("\n");
  }
}

void print_result(Session& session, const std::string& path, const kn::Result& result) {
  session.out.shown(path);
  session.out.text(": " + (result.value ? kn::to_text(*result.value) : "no result") + " after " +
                   grouped(result.steps) + (result.steps == 1 ? " step" : " steps") + ", " +
                   grouped(result.loaded.size()) + (result.loaded.size() == 1 ? " tensor" : " tensors") + " loaded\n");
  if (!result.loaded.empty()) print_loaded(session, result);
}

Status run_module(Session& session, const std::string& path) {
  const Arguments& args = session.args;
  kn::RunOptions options;
  options.authority = authority_of(args);
  options.max_steps = args.number<unsigned>(FlagId::max_steps);
  options.max_stack = args.number<unsigned>(FlagId::max_stack);
  Trace trace(session);
  if (args.has(FlagId::trace)) options.trace = [&](const kn::Step& step) { trace(step); };
  Context context = session.context();
  context.progress = {};  // it would count steps as bytes
  const kn::Module module = kn::Module::open(session.source(path), sidecar_of(session), context);
  const kn::Result result = kn::run(module, options, context);
  session.print_result(
      [&] {
        return kn::to_json(path, module, result, kFirstValues, args.has(FlagId::trace) ? trace.json() : "", context);
      },
      [&] { print_result(session, path, result); });
  return Status::done;
}

// ---- the other actions ----

Status verify_module(Session& session, const std::string& path) {
  const auto source = session.source(path);
  Verdict verdict{.format = "khlnary", .report = {}, .model = {}};
  verdict.report = kn::verify(source, sidecar_of(session), authority_of(session.args), session.context());
  if (verdict.report.valid()) verdict.checked = "structure, program and sidecar";
  session.progress().clear();
  session.print_result([&] { return to_json(path, verdict); },
                       [&] {
                         session.print_findings(path, verdict.report);
                         if (!verdict.report.valid()) return;
                         session.out.shown(path);
                         session.out.text(": ");
                         session.out.toned(Tone::good, "ok");
                         session.out.text(" (KHLNARY module, " + counted(source->size() / 4, "word", "words") + ", " +
                                          grouped(source->size()) + " bytes)\n");
                       });
  return status_of_report(verdict.report);
}

Status disassemble(Session& session, const std::string& path) {
  const auto source = session.source(path);
  const std::vector<std::uint32_t> words = kn::words_of(*source, session.context());
  const std::string_view output = session.args.value(FlagId::output);
  std::string text;
  for (std::size_t at = 0; at < words.size(); at += kWordsAtOnce) {
    text += kn::disassemble(std::span(words).subspan(at, std::min(kWordsAtOnce, words.size() - at)));
    if (session.json || !output.empty()) continue;
    session.out.text(text);
    text.clear();
  }
  if (!output.empty()) write_output(session, source, text, false);
  session.print_written(
      written_file(session), [&] { return kn::to_json(path, "disassemble", words.size(), output, text); }, [] {});
  return Status::done;
}

Status assemble(Session& session, const std::string& path) {
  const auto source = session.source(path);
  const std::vector<std::uint32_t> words = kn::assemble(text_of(session, *source));
  write_output(session, source, kn::stored(words), true);
  const std::string_view output = written_file(session);
  session.print_written(
      output, [&] { return kn::to_json(path, "assemble", words.size(), output); },
      [&] {
        if (!output.empty())
          session.out.text(shown(path) + " -> " + shown(output) + ": " + counted(words.size(), "word", "words") +
                           ", written\n");
      });
  return Status::done;
}

Status pack(Session& session, const std::string& path) {
  const Arguments& args = session.args;
  Options asked;
  args.apply(asked, OptionOf::convert);
  kn::PackOptions options;
  options.cast = asked.cast;
  options.allow = asked.allow;
  options.replace = args.has(FlagId::overwrite);
  options.without = args.values(FlagId::without);
  const Input input = open_input(session, path);
  session.remarks(path, input.report);
  std::string name = path == "-" ? "model" : std::filesystem::path(path).stem().string();
  if (name.empty()) name = "model";
  const kn::Packed packed =
      kn::pack(input.model, std::string(args.value(FlagId::output)), name, options, session.context());
  session.progress().clear();
  session.print_written(
      packed.module, [&] { return kn::to_json(path, packed); },
      [&] {
        session.out.text(
            shown(path) + " -> " + shown(packed.module) + ": " + counted(packed.tensors, "tensor", "tensors") + " in " +
            counted(packed.files.size(), "STB file", "STB files") + ", " + grouped(packed.bytes) + " bytes, written\n");
        for (const std::string& what : packed.left_out) session.out.text("  left out: " + shown(what) + "\n");
      });
  return Status::done;
}

// ----

struct ModuleAction {
  std::string_view action;
  Status (*run)(Session&, const std::string& path);
};
constexpr ModuleAction kModuleActions[] = {{"run", run_module},
                                           {"verify", verify_module},
                                           {"disassemble", disassemble},
                                           {"assemble", assemble},
                                           {"pack", pack}};

}  // namespace

Status run_khlnary(Session& session) {
  const auto* const doing = std::ranges::find(kModuleActions, session.args.action->name, &ModuleAction::action);
  const std::string& path = session.args.operands[0];
  if (session.json && session.args.value(FlagId::output) == "-")
    throw Misuse("with --json the output cannot go to standard output: give -o FILE");
  return doing->run(session, path);
}

}  // namespace weighbridge::cli
