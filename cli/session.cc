// SPDX-License-Identifier: Apache-2.0
// Behavior that all verbs share: opening inputs, reporting failures, finding tensors.
#include "session.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstring>
#include <filesystem>
#include <iterator>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "actions.h"
#include "nearest.h"
#include "standard_input.h"
#include "weighbridge/delta.h"
#include "weighbridge/formats.h"
#include "weighbridge/json.h"
#include "weighbridge/output.h"
#include "weighbridge/text.h"
#include "weighbridge/view.h"

namespace weighbridge::cli {
namespace {

// The file that a finding names; `path` if it names none.
std::string_view about(std::string_view path, const Finding& finding) {
  if (!finding.file.empty()) return finding.file.name;
  return input_name(path);
}

// "header=2G"
void take_limit(Limits& limits, std::uint64_t& input, const std::string& text) {
  static constexpr OptionInfo kInput{.name = "input", .type = OptionType::size, .range = {1, 0x1p63}};
  const std::size_t equals = text.find('=');
  const std::string name = text.substr(0, equals);
  if (equals == std::string::npos)
    throw Misuse("--limit takes NAME=N, a number above 0 with a unit such as K, MB or GiB if need be, not " +
                 quote(text));
  const OptionInfo* const row = name == kInput.name ? &kInput : find_option(OptionOf::limit, name);  // parse() checked
  try {
    const std::uint64_t value = number_of(*row, std::string_view(text).substr(equals + 1));
    row == &kInput ? void(input = value) : set_limit(limits, name, value);
  } catch (const Error& error) {
    throw Misuse("--limit: " + shown(error.what()));
  }
}

}  // namespace

std::string extension_of(std::string_view path) {
  std::string out = std::filesystem::path(path).extension().string();
  for (char& c : out)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  return out;
}

void check_picture(const Arguments& args) {
  if (const std::string_view path = args.value(FlagId::plot); args.has(FlagId::plot) && extension_of(path) != ".svg")
    throw Misuse("--plot writes SVG: end the name " + quote(path) + " in .svg");
}

void write_picture(Session& session, std::string_view svg, std::span<const std::shared_ptr<const Source>> inputs) {
  const std::string path(session.args.value(FlagId::plot));
  in_file(path, [&] {
    OutputFile out(path, session.args.has(FlagId::overwrite), inputs);
    out.write(std::as_bytes(std::span(svg)));
    out.publish();
  });
}

void raise(Kind kind, std::string rule, std::string message, std::string file, Hint hint) {
  Finding finding;
  finding.rule = std::move(rule);
  finding.kind = kind;
  finding.message = std::move(message);
  finding.file.name = std::move(file);
  finding.hint = std::move(hint);
  throw Error(std::move(finding));
}

void add_rename_file(Session& session, std::vector<Renaming>& to) {
  if (!session.args.has(FlagId::rename_file)) return;
  const std::string path(session.args.value(FlagId::rename_file));
  ViewOptions names;
  in_file(path, [&] { names.rename_from(*session.source(path), session.context().limits); });
  std::move(names.rename.begin(), names.rename.end(), std::back_inserter(to));
}

std::string small_text(Session& session, const std::string& path) {
  constexpr std::uint64_t kMaxTextSize = std::uint64_t{1} << 20;
  const auto source = session.source(path);
  if (source->size() > kMaxTextSize)
    raise(Kind::misuse, "misuse/too-large", "this file has more than 1 MiB, so it is not a key or certificate", path);
  std::string text(static_cast<std::size_t>(source->size()), '\0');
  source->read_at(0, std::as_writable_bytes(std::span(text)));
  return text;
}

Session::Session(const Arguments& arguments, Output& output)
    : args(arguments),
      out(output),
      json(arguments.has(FlagId::json)),
      quiet(arguments.has(FlagId::quiet)),
      lists_files_(json && (arguments.action ? arguments.action->lists_files : verb(arguments.verb).lists_files)),
      progress_(verb(arguments.verb).name, quiet) {
  const unsigned threads = arguments.number(FlagId::threads, 0U);
  const bool computes =
      takes_flag(arguments.verb, flag(FlagId::threads)) &&
      (arguments.verb != VerbId::inspect || arguments.has(FlagId::stats) || arguments.has(FlagId::plot)) &&
      (arguments.verb != VerbId::khlnary || arguments.has(FlagId::output));
  if (computes && threads != 1) context_.executor = thread_executor(threads);
  context_.progress = progress_.hook();
  for (const std::string& limit : arguments.values(FlagId::limit)) take_limit(context_.limits, max_input_, limit);
}

std::shared_ptr<const Source> Session::source(const std::string& path) {
  if (path != "-") return open_file(path);
  claim_standard_input();
  progress_.about("reading standard input");
  const auto held = spool_standard_input(max_input_, context_.progress);
  progress_.about({});
  return held;
}

void Session::claim_standard_input() {
  if (std::exchange(input_read_, true))
    raise(Kind::misuse, "misuse/standard-input", "standard input can be read once only: give - once");
}

std::string Session::fault(std::string_view path, const Error& error) const {
  const Finding& finding = error.finding();
  const std::string_view file = about(path, finding);
  std::string said = file.empty() ? std::string() : shown(file) + ": ";
  if (finding.kind != Kind::misuse && finding.kind != Kind::io) return said + sentence(finding);
  said += shown(finding.message) + help(finding);
  std::error_code unknown;
  if (finding.rule == "misuse/not-a-file" && takes_flag(args.verb, args.action, flag(FlagId::recursive)) &&
      std::filesystem::is_directory(file, unknown))
    said += args.has(FlagId::recursive) ? "" : "; -r takes every model in it and beneath it";
  if (finding.rule == "io/open")
    if (const std::string near = nearest_file(file); !near.empty()) said += "; did you mean " + quote(near) + "?";
  return said;
}

std::string Session::help(const Finding& finding) const {
  const Hint& hint = finding.hint;
  if (hint.what != Hint::What::limit && hint.what != Hint::What::option) return {};
  if (hint.name == "trust-journal") return {};  // fail() says how
  if (hint.name == "recover" && !hint.value.empty())
    return "; 'weighbridge edit " + shell_word(hint.value) + " --recover' recovers it";
  if (hint.name == "standard-input") return ": for what comes through a pipe give -";
  const std::string_view name =
      hint.what == Hint::What::limit ? std::string_view("limit") : std::string_view(hint.name);
  const auto known = std::ranges::find_if(
      flags(), [&](const Flag& each) { return each.name == name || (each.option == name && each.sets.empty()); });
  if (known == flags().end() || !takes_flag(args.verb, args.action, *known)) return {};
  if (known->id == FlagId::overwrite) return args.has(FlagId::overwrite) ? "" : "; --overwrite replaces it";
  if (hint.what == Hint::What::limit) {
    const bool count = hint.name == "tensors" || hint.name == "depth";
    return "; raise it with --limit " + hint.name + "=" + (hint.value.empty() ? count ? "COUNT" : "BYTES" : hint.value);
  }
  const std::string value = hint.value.empty() ? std::string(known->value) : shown(hint.value);
  if (known->id == FlagId::ignore_setting) return "; --ignore-setting " + value + " ignores it, with another result";
  const bool overflow = finding.rule == "convert/overflow" && known->id != FlagId::allow;
  return "; try --" + std::string(known->name) + (value.empty() ? "" : " ") + value +
         (overflow ? "; --allow overflow would write infinities" : "");
}

std::string Session::sentence(const Finding& finding) const {
  std::string said = shown(finding.message) + " (" + shown(finding.rule);
  if (finding.offset) said += " at byte " + std::to_string(*finding.offset);
  if (finding.has_tensor)
    said += (finding.offset ? ", tensor " : " in tensor ") + quote(fitted(finding.tensor, kMessageName));
  return said + ")" + help(finding);
}

void Session::begin_object() {
  if (lists_files_) out.text(first_ ? kJsonFilesBegin : ",\n");
  first_ = false;
}

void Session::end_object() {
  if (!lists_files_) out.text("\n");
}

void Session::object(std::string_view text) {
  begin_object();
  out.text(text);
  end_object();
}

namespace {

// The components of a pipeline of diffusers, each of which is a model; of all else, the path itself.
std::vector<std::string> models_of(const std::string& path) {
  namespace fs = std::filesystem;
  std::error_code error;
  std::vector<std::string> out;
  if (fs::exists(fs::path(path) / "model_index.json", error))
    for (fs::directory_iterator at(path, error), end; !error && at != end; at.increment(error))
      if (fs::exists(at->path() / "config.json", error)) out.push_back(at->path().string());
  std::ranges::sort(out);
  if (out.empty()) out.push_back(path);
  return out;
}

}  // namespace

Status Session::for_each_file(const std::function<Status(const std::string&)>& job) {
  Status status = Status::done;
  std::vector<std::string> paths;
  std::error_code unknown;
  for (const std::string& operand : args.operands) {
    const bool tree = args.has(FlagId::recursive) && std::filesystem::is_directory(operand, unknown);
    std::vector<Skipped> skipped;
    const std::vector<std::string> found = tree ? find_models(operand, context_, &skipped) : models_of(operand);
    for (const Skipped& each : skipped)
      if (!quiet) remark(shown(each.path) + ": skipped: " + each.why);
    std::ranges::copy(found, std::back_inserter(paths));
    if (found.empty())
      status = worse(status, settled(operand, []() -> Status {
                       raise(Kind::misuse, "misuse/no-model", "no model is in this folder or beneath it");
                     }));
  }
  const bool several = paths.size() > 1 || args.has(FlagId::check);
  for (const std::string& path : paths) {
    if (several) progress_.about(path.substr(path.rfind('/') + 1));
    status = worse(status, settled(path, [&] { return job(path); }));
    out.flush();  // before messages about the next file
    if (out.closed()) break;
  }
  return status;
}

Status Session::settled(std::string_view path, const std::function<Status()>& work) {
  try {
    return work();
  } catch (const Failed& failed) {
    return failed.status;
  } catch (const Error& error) {
    return fail(path, error);
  }
}

void Session::show_losses(std::string_view path, std::span<const Item> losses) {
  constexpr std::size_t kMaxNamed = 3;
  std::map<LossKind, std::vector<std::string>> kinds;
  for (const Item& loss : losses) kinds[loss.kind].push_back(fitted(loss.subject, kMessageName));
  for (const auto& [kind, subjects] : kinds) {
    std::string said = shown(path) + ": loss: " + std::string(name(kind)) + ": ";
    for (std::size_t i = 0; i < std::min(subjects.size(), kMaxNamed); ++i) said += (i == 0 ? "" : ", ") + subjects[i];
    complain(said + (subjects.size() > kMaxNamed ? " and " + grouped(subjects.size() - kMaxNamed) + " more" : ""));
  }
}

void Session::step(std::string_view what) {
  const auto end = std::chrono::steady_clock::now();
  steps_.push_back({what, std::chrono::duration<double>(end - std::exchange(step_begin_, end)).count()});
}

void Session::show_steps(std::string_view path, std::span<const TimedStep> steps) {
  if (!args.has(FlagId::verbose)) return;
  std::string said;
  for (const std::span<const TimedStep> some : {std::span<const TimedStep>(steps_), steps})
    for (const TimedStep& each : some)
      said += fmt::format("{} {} {:.1f} ms", said.empty() ? "" : ",", each.what, each.seconds * 1e3);
  remark(shown(input_name(path)) + ":" + said);
}

void Session::print_result(const std::function<std::string()>& json_text, const std::function<void()>& print) {
  if (json)
    object(json_text());
  else if (!quiet)
    print();
}

void Session::end_files() {
  if (!lists_files_) return;
  if (first_) out.text(kJsonFilesBegin);
  out.text(std::string(kJsonFilesEnd) + "\n");
}

void Session::written_all_the_same(std::string_view output, const OutputFailed& failed) {
  raise(Kind::io, "io/write",
        std::string("cannot be written: ") + std::strerror(failed.error_number) + "; '" + std::string(output) +
            "' is written all the same",
        "standard output");
}

void Session::print_failure(std::string_view path, const Report& report) {
  if (!json) return;
  JsonWriter failure(JsonWriter::Style::shown);
  failure.begin_object();
  if (!lists_files_) failure.member("schema", std::uint64_t{kJsonSchema});
  add_failure_members(failure, path, report);
  failure.end_object();
  object(failure.text());
}

namespace {

std::string folder_of(std::string_view path) {
  const std::filesystem::path folder = std::filesystem::path(path).parent_path();
  return folder.empty() ? "." : folder.string();
}

// The command that undoes a journal which is not undone by itself.
std::string trusting_command(std::string_view path, const Finding& finding) {
  if (finding.rule == "io/half-published")
    return "weighbridge doctor " + shell_word(folder_of(finding.file.name)) + " --recover --trust-journal";
  return "weighbridge edit " + shell_word(path) + " --" + finding.hint.value + " --trust-journal";
}

}  // namespace

void Session::mention_journals(std::string_view output) const {
  if (quiet) return;
  constexpr std::size_t kMaxMentioned = 3;
  std::error_code unknown;
  const std::string folder = std::filesystem::is_directory(output, unknown) ? std::string(output) : folder_of(output);
  std::size_t count = 0;
  try {
    for (const LeftJournal& each : left_journals(folder, false)) {
      if (each.why.empty()) continue;
      if (++count > kMaxMentioned) return remark("  and more journals in " + quote(folder));
      remark(shown(each.path) + ": the journal of a killed run, which is not undone by itself, because " +
             shown(each.why) + "; the files that it lists may be half published ('weighbridge doctor " +
             shell_word(folder) + " --recover' shows them)");
    }
  } catch (const Error&) {
    // The folder cannot be listed; what was to be written is written.
  }
}

Status Session::fail(std::string_view path, const Error& error) {
  progress_.clear();
  Report report;
  report.add(error.finding());
  print_failure(path, report);
  complain(fault(path, error));
  const Finding& finding = error.finding();
  if (finding.hint.what == Hint::What::option && finding.hint.name == "trust-journal" && !quiet && !json)
    remark("  if you trust it: " + trusting_command(path, finding));
  return status_of(error.kind());
}

Status Session::fail(std::string_view path, const Report& report) {
  progress_.clear();
  print_failure(path, report);
  const Finding* first = report.first_error();
  if (!first) return Status::done;
  complain(shown(about(path, *first)) + ": " + sentence(*first));
  return status_of(first->kind);
}

void Session::remarks(std::string_view path, const Report& report) {
  if (quiet || json) return;
  progress_.clear();
  for (const Finding& finding : report.findings())
    complain(shown(about(path, finding)) + ": " + std::string(name(finding.severity)) + ": " + sentence(finding));
}

void Session::print_findings(std::string_view path, const Report& report) {
  for (const Finding& finding : report.findings()) {
    out.shown(about(path, finding));
    out.text(": ");
    out.toned(finding.severity == Severity::error ? Tone::bad : Tone::warning, name(finding.severity));
    out.text(": " + sentence(finding) + "\n");
  }
  if (report.total() > report.findings().size())
    out.text(shown(input_name(path)) + ": and " + grouped(report.total() - report.findings().size()) +
             " more findings\n");
}

namespace {

// Whether the path ends in "-00002-of-00005.EXT", and the operands include all five. A name of one of one says nothing.
bool has_all_shards(const Arguments& args, std::string_view path) {
  constexpr std::string_view kOf = "-of-", kDigits = "0123456789";
  const std::size_t of = path.rfind(kOf);
  if (of == path.npos || of == 0) return false;
  const std::size_t begin = path.find_last_not_of(kDigits, of - 1) + 1, width = of - begin;
  const std::string_view all = path.substr(of + kOf.size());
  std::size_t count = 0;
  const auto [end, fault] = std::from_chars(all.data(), all.data() + all.size(), count);
  if (width == 0 || fault != std::errc() || count < 2 || count > args.operands.size()) return false;
  const std::set<std::string_view> given(args.operands.begin(), args.operands.end());
  for (std::size_t i = 1; i <= count; ++i)
    if (!given.contains(fmt::format("{}{:0{}}{}", path.substr(0, begin), i, width, path.substr(of)))) return false;
  return true;
}

}  // namespace

bool is_in_company(const Arguments& args, const std::string& path, const Finding& finding) {
  return finding.rule.ends_with("/shard-alone") && has_all_shards(args, path);
}
void drop_shard_alone(const Arguments& args, const std::string& path, Report& report) {
  const auto& all = report.findings();
  if (report.total() != all.size()) return;
  Report others;
  for (const Finding& each : all)
    if (!is_in_company(args, path, each)) others.add(each);
  if (others.total() != all.size()) report = std::move(others);
}

bool has_config(const std::filesystem::path& of) {
  std::error_code unknown;
  return std::filesystem::exists((std::filesystem::is_directory(of, unknown) ? of : of.parent_path()) / "config.json",
                                 unknown);
}

std::string not_known_safe_list(const Verdict& verdict) {
  constexpr std::size_t kMaxListed = 10;
  const auto& all = verdict.not_known_safe;
  std::string out;
  for (std::size_t i = 0; i < std::min(all.size(), kMaxListed); ++i) out += (i > 0 ? ", " : "") + shown(all[i]);
  if (all.size() > kMaxListed) out += " and " + grouped(all.size() - kMaxListed) + " more";
  return out;
}

std::uint64_t count_unsupported(const Model& model) {
  std::uint64_t out = 0;
  for (const Tensor& tensor : model)
    if (const Finding* const why = tensor.unsupported()) out += why->severity == Severity::error ? 0U : 1U;
  return out;
}

Status status_of_report(const Report& report) {
  const auto of_kind = [&](Kind kind) {
    return std::any_of(report.findings().begin(), report.findings().end(),
                       [&](const Finding& f) { return f.severity == Severity::error && f.kind == kind; });
  };
  if (of_kind(Kind::io)) return Status::io;
  if (!report.valid()) return Status::invalid;
  return report.unsupported() > 0 ? Status::unsupported : Status::done;
}

OpenOptions reading_options(const Session& session) {
  return {.format = std::string(session.args.value(FlagId::format)),
          .checksum_form = std::string(session.args.value(FlagId::checksum_form)),
          .read_as = session.args.values(FlagId::read_as),
          .scheme = session.args.values(FlagId::scheme)};
}

Input open_input(Session& session, const std::string& path, OpenOptions options, TokenizerFile kind) {
  Input input = open_stored(session, path, std::move(options), kind);
  try {
    input.model = with_patches(session, input.model);
  } catch (const Error& error) {
    throw Failed{session.fail(path, error)};
  }
  return input;
}

std::vector<Model> open_stored(Session& session, std::span<const std::string> paths) {
  std::vector<Model> out;
  for (const std::string& each : paths) out.push_back(open_stored(session, each, reading_options(session)).model);
  return out;
}

Model with_patches(Session& session, const Model& model) {
  const std::vector<std::string>& paths = session.args.values(FlagId::with_patch);
  return paths.empty() ? model : patched(model, open_stored(session, paths), session.context());
}

Input open_stored(Session& session, const std::string& path, OpenOptions options, TokenizerFile kind) {
  Input input;
  std::optional<Model> model;
  try {
    const std::shared_ptr<const Source> held = path == "-" ? session.source(path) : nullptr;
    const auto opened = [&] {
      return held ? open(held, input.report, session.context(), options)
                  : open(path, input.report, session.context(), options);
    };
    try {
      model = opened();
    } catch (const Error& error) {
      if (kind == TokenizerFile::container || error.finding().rule != "misuse/tokenizer") throw;
      input.report = {};
      options.tokenizer = nullptr;
      model = opened();
      if (model && model->tokenizer()) throw;
    }
    drop_shard_alone(session.args, path, input.report);
  } catch (const Error& error) {
    throw Failed{session.fail(path, error)};
  }
  if (!model) throw Failed{session.fail(path, input.report)};
  input.model = *std::move(model);
  return input;
}

std::vector<std::uint32_t> tensors_taken(const Model& model, const Arguments& args) {
  std::vector<bool> left(model.size(), true);
  for (const FlagId id : {FlagId::only, FlagId::without}) {
    const std::vector<std::string>& globs = args.values(id);
    std::vector<bool> used(globs.size());
    for (std::uint32_t i = 0; i < model.size() && !globs.empty(); ++i) {
      bool any = false;
      for (std::size_t k = 0; k < globs.size(); ++k)
        if (matches_glob(globs[k], model.name(i))) any = used[k] = true;
      left[i] = left[i] && any == (id == FlagId::only);
    }
    const auto unused = std::ranges::find(used, false);
    if (unused != used.end() && model.size() > 0)  // says which globs would match
      view(model, {.only = {globs[static_cast<std::size_t>(unused - used.begin())]}});
  }
  std::vector<std::uint32_t> out;
  for (std::uint32_t i = 0; i < model.size(); ++i)
    if (left[i]) out.push_back(i);
  return out;
}

Tensor find_tensor(const Model& model, std::string_view name) {
  if (const std::optional<Tensor> found = model.find(name)) return *found;
  std::string sentence = "there is no tensor '" + std::string(name) + "'";
  const std::vector<std::string> near = model.nearest(name);
  for (std::size_t i = 0; i < near.size(); ++i)
    sentence += (i > 0 ? ", '" : near.size() == 1 ? ", the nearest is '" : ", the nearest are '") + near[i] + "'";
  if (name.find_first_of("*?[") != std::string_view::npos)
    sentence += "; --only takes patterns";
  else if (near.empty())
    sentence += "; 'weighbridge inspect FILE' lists them";
  raise(Kind::misuse, "misuse/unknown-tensor", std::move(sentence));
}

}  // namespace weighbridge::cli
