// SPDX-License-Identifier: Apache-2.0
// convert and append: plan, report blockers, losses and changes, write. Owns the output and the flags that give
// consent; the library does the work.
#include "weighbridge/convert.h"

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <iterator>
#include <map>
#include <optional>
#include <span>
#include <system_error>
#include <utility>

#include "derivation.h"
#include "session.h"
#include "weighbridge/delta.h"
#include "weighbridge/edit.h"
#include "weighbridge/formats.h"
#include "weighbridge/join.h"
#include "weighbridge/json.h"
#include "weighbridge/lora.h"
#include "weighbridge/output.h"
#include "weighbridge/tokenize.h"
#include "weighbridge/view.h"
#include "wrap.h"

namespace weighbridge::cli {
namespace {

constexpr std::size_t kMaxGroups = 12;       // a kind with more groups of items is printed as one group
constexpr std::size_t kMaxAlike = 3;         // items printed per group; --json has all
constexpr std::size_t kLongestItem = 100;    // columns of an item's old or new value; inspect cuts values there too
constexpr std::size_t kLongestReason = 240;  // columns of its new value, which can be a sentence with the reason

Options convert_options(const Arguments& args) {
  Options options;
  args.apply(options, OptionOf::convert);
  return options;
}

// The view that the flags ask for: selected and renamed tensors, edited metadata.
ViewOptions view_of(Session& session) {
  ViewOptions out;
  session.args.apply(out, OptionOf::view);
  add_rename_file(session, out.rename);
  return out;
}

// Subject, old value and new value. If a tensor is refused for its name, the old value is that name, which the subject
// already contains. "tokenizer: a tokenizer -> dropped" needs no subject besides the kind.
std::string item_text(const Item& item, bool with_subject = true) {
  const bool said = item.subject == "tensors[\"" + item.from + "\"]";
  return (with_subject ? fitted(item.subject, kMessageName) + ": " : "") +
         (said || item.from.empty() ? "" : fitted(item.from, kLongestItem) + " -> ") + fitted(item.to, kLongestReason);
}

// Prints a word and a line of `text`, which a terminal gets wrapped and indented.
void print_folded(Output& out, std::string_view word, Tone tone, std::string_view text) {
  constexpr std::size_t kIndent = 6;
  out.text("  ");
  out.toned(tone, word);
  out.text(" ");
  out.text(out.columns() > 0 ? wrapped(text, out.columns(), 3 + word.size(), kIndent) : std::string(text));
  out.text("\n");
}

void print_item(Output& out, std::string_view word, Tone tone, const Item& item) {
  const std::string_view kind = name(item.kind);
  const bool repeats = !item.from.empty() && (item.subject == kind || item.subject == std::string(kind) + "s");
  print_folded(out, word, tone, std::string(kind) + ": " + item_text(item, !repeats));
}

// "largest error 4.9e-04, 3 values became zero". The largest error does not count values that were too large.
std::string effect(const Cast& cast) {
  char error[32];
  std::snprintf(error, sizeof error, "%.1e", cast.largest_error);  // the program never calls setlocale()
  const auto values = [](std::uint64_t n) { return grouped(n) + (n == 1 ? " value" : " values"); };
  std::string out = cast.largest_error > 0          ? std::string("largest error ") + error
                    : cast.overflowed == 0          ? "every value kept"
                    : cast.overflowed < cast.values ? "every other value kept"
                                                    : "";
  const auto add = [&](const std::string& text) { out += (out.empty() ? "" : ", ") + text; };
  if (cast.flushed > 0) add(values(cast.flushed) + " became zero");
  if (cast.overflowed > 0) add(values(cast.overflowed) + (cast.overflowed == 1 ? " was" : " were") + " too large");
  return out;
}

// The word for subjects that are all tensors or all parts of tensors; empty for others.
std::string_view counted_as(const std::vector<const Item*>& items) {
  const auto all = [&](std::string_view end) {
    return std::ranges::all_of(items, [&](const Item* item) {
      return item->subject.starts_with("tensors[") && item->subject.find(end) != std::string::npos;
    });
  };
  return all("\"].parts[\"") ? "parts" : all("") ? "tensors" : "";
}

// `files["a"]` as `a`.
std::string file_name(const Item& item) {
  const std::string_view begin = "files[\"", end = "\"]", subject = item.subject;
  const bool is = subject.starts_with(begin) && subject.ends_with(end) && subject.size() >= begin.size() + end.size();
  return shown(is ? subject.substr(begin.size(), subject.size() - begin.size() - end.size()) : subject);
}

// Groups items of one kind with the same new value. Unless `names_each`, tensors that also have the same old value are
// counted, as are those of a cast. Of another group, prints the first few, and the number of the others. If there are
// too many groups (names that become hashes), each kind is one group. Files are named in one line for each reason.
void print_items(Output& out, std::string_view word, Tone tone, const std::vector<Item>& items, bool names_each,
                 std::span<const Cast> casts = {}) {
  std::map<LossKind, std::map<std::string_view, std::vector<const Item*>>> kinds;
  for (const Item& item : items) kinds[item.kind][item.to].push_back(&item);
  // Prints items with one old and one new value as one line, if that tells enough.
  const auto print_as_one = [&](LossKind kind, const std::vector<const Item*>& same) {
    const auto is_this = [&](const Cast& cast) {
      return (kind == LossKind::precision || kind == LossKind::dtype) && name(cast.from) == same[0]->from &&
             name(cast.to) == same[0]->to;
    };
    const auto cast = std::ranges::find_if(casts, is_this);
    const std::string_view noun = counted_as(same);
    if (noun.empty() || same[0]->from.empty() || (cast == casts.end() && same.size() <= kMaxAlike)) return false;
    const std::string subject = same.size() == 1 ? item_text(*same[0])
                                                 : grouped(same.size()) + " " + std::string(noun) + ": " +
                                                       fitted(same[0]->from, kLongestItem) + " -> " +
                                                       fitted(same[0]->to, kLongestReason);
    print_folded(out, word, tone,
                 std::string(name(kind)) + ": " + subject + (cast == casts.end() ? "" : ", " + effect(*cast)));
    return true;
  };
  const auto print_some = [&](LossKind kind, const std::vector<const Item*>& alike, const std::string& becoming) {
    const std::size_t maximum = alike.size() == kMaxAlike + 1 ? alike.size() : kMaxAlike;  // "and 1 more" takes as long
    for (std::size_t i = 0; i < alike.size() && i < maximum; ++i) print_item(out, word, tone, *alike[i]);
    if (alike.size() <= maximum) return;
    print_folded(out, word, tone,
                 std::string(name(kind)) + ": and " + grouped(alike.size() - maximum) + " more" + becoming);
  };
  for (const auto& [kind, groups] : kinds) {
    if (groups.size() > kMaxGroups) {
      std::vector<const Item*> all;
      for (const Item& item : items)
        if (item.kind == kind) all.push_back(&item);
      print_some(kind, all, "; --json lists all of them");
      continue;
    }
    for (const auto& [becomes, alike] : groups) {
      if (kind == LossKind::file) {
        constexpr std::size_t kMaxNames = 24;
        std::string names;
        for (const Item* item : std::span(alike).first(std::min(alike.size(), kMaxNames)))
          names += (names.empty() ? "" : ", ") + file_name(*item);
        if (alike.size() > kMaxNames) names += " and " + grouped(alike.size() - kMaxNames) + " more";
        print_folded(out, word, tone, std::string(name(kind)) + ": " + names + ": " + fitted(becomes, kLongestReason));
        continue;
      }
      std::map<std::string_view, std::vector<const Item*>> by_old;
      for (const Item* item : alike) by_old[item->from].push_back(item);
      std::vector<const Item*> rest;
      for (const auto& [old, same] : by_old)
        if (names_each || !print_as_one(kind, same)) rest.insert(rest.end(), same.begin(), same.end());
      if (!rest.empty()) print_some(kind, rest, " -> " + fitted(becomes, kLongestItem));
    }
  }
}

// `before`: the size of the input.
void print_plan(Output& out, const Plan& plan, std::string_view from, std::string_view to, std::uint64_t before,
                const std::optional<Written>& written) {
  const std::uint64_t after = written ? written->size : plan.output_size();
  const std::string heading =
      shown(from) + " (" + std::string(plan.from()) + ") -> " + shown(to) + " (" + std::string(plan.to()) + "): ";
  const bool divided = plan.files() > 1 || plan.options().shards.max_size > 0;
  const std::string shards = divided ? " in " + grouped(plan.files()) + (plan.files() == 1 ? " file" : " shards") : "";
  if (plan.blockers().empty()) {
    out.text(heading + grouped(plan.tensors()) + (plan.tensors() == 1 ? " tensor, " : " tensors, ") +
             size_text(before) + " -> " + (written || plan.output_size_exact() ? "" : "at most ") + size_text(after) +
             " (" + grouped(after) + (after == 1 ? " byte)" : " bytes)") + shards + (written ? ", written\n" : "\n"));
  } else {
    out.text(heading + "cannot be written\n");
  }
  if (!written && plan.blockers().empty() && !plan.options().quantize.empty())
    for (const OutputType& type : plan.types()) {
      char bits[32];
      std::snprintf(bits, sizeof bits, "%.2f", type.bits());
      out.text("  " + type.name + ": " + grouped(type.tensors) + (type.tensors == 1 ? " tensor, " : " tensors, ") +
               size_text(type.size) + ", " + bits + " bits per weight\n");
    }
  print_items(out, "blocker", Tone::bad, plan.blockers(), true);
  const std::vector<Cast> casts = written ? written->casts : std::vector<Cast>();
  std::vector<Item> losses = plan.losses(), changes = plan.changes();
  for (Item& item : changes)
    if (item.kind == LossKind::name && item.to.ends_with("on request")) item.to += ": --naming llama";
  // A cast that kept every value lost nothing, which only writing it shows.
  const auto kept = std::stable_partition(losses.begin(), losses.end(), [&](const Item& item) {
    return item.kind != LossKind::precision || std::ranges::none_of(casts, [&](const Cast& cast) {
             return name(cast.from) == item.from && name(cast.to) == item.to && cast.largest_error == 0 &&
                    cast.overflowed == 0 && cast.flushed == 0;
           });
  });
  changes.insert(changes.end(), std::make_move_iterator(kept), std::make_move_iterator(losses.end()));
  losses.erase(kept, losses.end());
  print_items(out, "loss", Tone::warning, losses, false, casts);
  print_items(out, "change", Tone::plain, changes, false, casts);
}

std::string flags_to_allow(const std::vector<Item>& refused) {
  std::vector<std::string_view> kinds;
  for (const Item& item : refused)
    if (std::find(kinds.begin(), kinds.end(), name(item.kind)) == kinds.end()) kinds.push_back(name(item.kind));
  std::string out = "--allow ";
  for (std::size_t i = 0; i < kinds.size(); ++i) out += (i == 0 ? "" : ",") + std::string(kinds[i]);
  return out;
}

// Names the flag that may remove every blocker: --tokenizer for a missing tokenizer, --set for an empty config.json (or
// --to, if shards need none), --cast for dtypes.
std::string flag_that_helps(const Plan& plan) {
  const auto castable = [](const Item& item) {
    const auto dtype = dtype_from_name(item.from);
    return item.kind == LossKind::dtype && dtype && info(*dtype).kind == DTypeKind::real;
  };
  const auto tokenizer = [](const Item& item) { return item.kind == LossKind::tokenizer; };
  const auto unknown = [](const Item& item) { return item.subject == "attributes[\"hf.model_type\"]"; };
  if (std::ranges::all_of(plan.blockers(), unknown)) {  // of a Hugging Face folder
    if (plan.options().shards.max_size > 0)
      return std::string(", but --to ") + (plan.from() == "gguf" ? "gguf" : "safetensors") +
             " writes shards without a config.json";
    return plan.blockers()[0].to.find("empty") != std::string::npos
               ? ", but --set hf.model_type=NAME and what else config.json needs may help"
               : ", but --set KEY=NUMBER for each of these may help";
  }
  if (std::ranges::all_of(plan.blockers(), tokenizer)) return ", but --tokenizer FILE may help";
  const auto setting = [&](const Item& item) {
    return plan.to() == "gguf" && item.kind == LossKind::attribute && item.subject.starts_with("attributes[\"hf.");
  };
  if (std::ranges::all_of(plan.blockers(), setting)) return ", but --ignore-setting KEY may help";
  if (std::ranges::all_of(plan.blockers(), castable)) return ", but --cast f32 may help";
  return {};
}

// Prints in one sentence why the conversion is refused. The status is `unsupported` if unsupported tensors are the only
// reason. `listed`: the blockers have been printed already.
Status refuse(std::string_view path, const Plan& plan, bool listed) {
  const std::vector<Item> refused = plan.refused();
  const auto is_unsupported = [](const Item& item) { return item.kind == LossKind::unsupported; };
  if (!plan.blockers().empty()) {
    const std::size_t count = plan.blockers().size();
    const Item& item = plan.blockers()[0];
    const bool names_type = is_unsupported(item) && !item.from.empty();  // what is not supported
    const std::string brief = shown(item.subject) + (names_type ? " (" + fitted(item.from, kLongestItem) + ")" : "");
    const std::string first =
        ": " + (listed ? brief : item_text(item)) + (count > 1 ? ", and " + grouped(count - 1) + " more" : "");
    complain(shown(path) + ": cannot be written as " + std::string(plan.to()) + first +
             "; --allow cannot override a blocker" + flag_that_helps(plan));
  } else {
    const bool tokenizer = std::ranges::find(refused, LossKind::tokenizer, &Item::kind) != refused.end();
    // Without its vocabulary no program runs the file.
    const bool nameless = plan.to() == "gguf" && tokenizer && plan.options().gguf.naming.empty();
    complain(shown(path) + ": writing it as " + std::string(plan.to()) + " would lose data; " +
             (nameless ? "--naming llama keeps the tokenizer of a Llama or a BERT, and " : "") +
             flags_to_allow(refused) + " accepts the loss");
  }
  const bool only_unsupported = std::all_of(plan.blockers().begin(), plan.blockers().end(), is_unsupported) &&
                                std::all_of(refused.begin(), refused.end(), is_unsupported);
  return only_unsupported ? Status::unsupported : Status::invalid;
}

// A conversion writes its output, then reads it back, and counts the bytes of both. Two bars are clearer than one of
// twice the size.
Context in_two_parts(Session& session) {
  Context context = session.context();
  context.progress = [&session, show_progress = session.context().progress, part = 0](std::uint64_t done,
                                                                                      std::uint64_t total) mutable {
    if (total == 0) return show_progress(done, total);  // checks of the source
    const std::uint64_t half = (total + 1) / 2;
    const bool checks = done >= half;
    if (const int now = checks ? 2 : 1; std::exchange(part, now) != now)
      session.progress().about(checks ? "checking" : "writing");
    return show_progress(checks ? done - half : done, half);
  };
  return context;
}

// For a plan, which counts the elements that are not zero if tensors are to become sparse.
const Context& counting(Session& session, const Options& options) {
  if (!options.zt.sparse.empty()) session.progress().about("counting");
  return session.context();
}

Status carry_out(Session& session, const std::string& path, const std::string& output, const Plan& plan,
                 const Model& source) {
  const std::uint64_t before = source.file_size();
  const bool dry_run = session.args.has(FlagId::dry_run), possible = plan.possible();
  std::optional<Written> written;
  if (possible && dry_run) plan.check_output(output, session.context().limits);
  if (possible && !dry_run) {
    written = plan.execute(output, in_two_parts(session));
    if (session.args.has(FlagId::statement)) write_statement_of(session, source, output);
    session.progress().clear();
  }
  session.show_steps(path, written ? written->steps : std::vector<TimedStep>());
  const auto print = [&] {
    if (session.quiet && !session.json) session.show_losses(path, plan.unconsented());
    session.print_result([&] { return to_json(path, output, plan, written ? &*written : nullptr); },
                         [&] { print_plan(session.out, plan, path, output, before, written); });
  };
  if (written) {
    session.print_written(output, print);
    return Status::done;
  }
  print();
  session.out.flush();
  return possible ? Status::done : refuse(path, plan, !session.json && !session.quiet);
}

// Files that flags name are inputs too.
void refuse_input_as_output(const Arguments& args, std::span<const std::string> inputs, const std::string& output) {
  std::error_code ignored;
  for (const std::string& input : inputs)
    if (std::filesystem::equivalent(input, output, ignored))
      raise(Kind::misuse, "misuse/output-is-input", "the output is the same file as the input", output);
  for (const std::string& text : args.values(FlagId::merge_lora))
    for (const std::string& each : {text, text.substr(0, text.rfind('='))})
      if (std::filesystem::equivalent(each, output, ignored))
        raise(Kind::misuse, "misuse/output-is-input", "the output is the same file as an adapter", output);
  for (const FlagId id : {FlagId::base, FlagId::tokenizer, FlagId::rename_file, FlagId::with_patch})
    if (std::ranges::any_of(args.values(id), [&](const std::string& each) {
          return std::filesystem::equivalent(each, output, ignored);
        }))
      raise(Kind::misuse, "misuse/output-is-input",
            "the output is the same file as the input of --" + std::string(flag(id).name), output);
}

// Checks the output before the work of reading and planning.
void refuse_existing(const std::string& output, std::string_view format, const Arguments& args) {
  const FormatInfo* const target = find_format(format);
  // An empty folder is allowed; execute() checks that.
  if (args.has(FlagId::max_shard_size) || (target != nullptr && target->folder)) return;
  if (!args.has(FlagId::dry_run)) OutputFile::check(output, args.has(FlagId::overwrite));
}

// Without -o, the second operand is OUT.
std::pair<std::span<const std::string>, std::string> inputs_and_output(const Arguments& args) {
  const std::span<const std::string> operands = args.operands;
  if (args.has(FlagId::output)) {
    if (args.has(FlagId::on_duplicate) && operands.size() == 1) throw Misuse("--on-duplicate has no effect on one IN");
    return {operands, std::string(args.value(FlagId::output))};
  }
  if (operands.size() > 2) throw Misuse("with several IN, convert needs -o OUT: 'weighbridge convert IN IN -o OUT'");
  if (operands.size() < 2) throw Misuse("convert needs OUT: 'weighbridge convert IN OUT', or -o OUT");
  if (args.has(FlagId::on_duplicate)) throw Misuse("--on-duplicate has no effect on one IN");
  return {operands.first(1), operands[1]};
}

// The inputs in messages and JSON: the first, and how many more.
std::string inputs_text(std::span<const std::string> inputs) {
  return inputs[0] + (inputs.size() > 1 ? " and " + grouped(inputs.size() - 1) + " more" : "");
}

Model joined_inputs(const Session& session, std::span<const Model> models) {
  const auto asked = on_duplicate_from_name(session.args.value(FlagId::on_duplicate));
  return join(models, asked.value_or(OnDuplicate::error), session.context().limits);
}

Model with_adapters(Session& session, const Model& model, std::optional<DType> dequantize) {
  std::vector<Lora> adapters;
  for (const std::string& text : session.args.values(FlagId::merge_lora))
    in_file(text, [&] { adapters.push_back(lora_from_text(text, session.context())); });
  for (Lora& each : adapters) each.resize_vocab = session.args.has(FlagId::resize_vocab);
  return merge_lora(model, adapters, dequantize, session.context());
}

}  // namespace

Status run_convert(Session& session) {
  const auto [inputs, output] = inputs_and_output(session.args);
  const std::string path = inputs_text(inputs);
  if (output == "-")
    throw Misuse("convert cannot write to standard output, because it reads its output back: name a file");
  // A name without an extension is a folder if an input is one.
  std::error_code unknown;
  const bool folder = extension_of(output).empty() && std::ranges::any_of(inputs, [&](const std::string& each) {
                        return std::filesystem::is_directory(each, unknown);
                      });
  const std::string format(session.args.has(FlagId::to) ? session.args.value(FlagId::to)
                           : folder                     ? std::string_view("hf")
                                                        : format_of_output(output));
  if (format == "onnx" && !session.args.has(FlagId::into))
    throw Misuse("an ONNX output needs a graph: give the ONNX model to copy with --into");
  check_target(session.args, format);
  Options options = convert_options(session.args);
  try {
    if (session.args.has(FlagId::imatrix))
      options.gguf.imatrix = session.source(std::string(session.args.value(FlagId::imatrix)));
    if (session.args.has(FlagId::base)) options.set("base", session.args.value(FlagId::base));
    if (session.args.has(FlagId::into))
      options.onnx.into = session.source(std::string(session.args.value(FlagId::into)));
    refuse_input_as_output(session.args, inputs, output);
    // An input that is missing comes first: the operands may be swapped, and then --overwrite would be the wrong
    // advice.
    const bool all_there = std::ranges::all_of(
        inputs, [&](const std::string& each) { return each == "-" || std::filesystem::exists(each, unknown); });
    if (all_there) refuse_existing(output, format, session.args);
    if (session.args.has(FlagId::statement) && !session.args.has(FlagId::dry_run))
      OutputFile::check(std::string(session.args.value(FlagId::statement)), session.args.has(FlagId::overwrite));
    ViewOptions taken = view_of(session);
    OpenOptions reading = reading_options(session);
    const bool no_tokenizer = session.args.value(FlagId::tokenizer) == "none";
    if (no_tokenizer) options.gguf.no_tokenizer = true;
    if (session.args.has(FlagId::tokenizer) && !no_tokenizer)
      reading.tokenizer = session.source(std::string(session.args.value(FlagId::tokenizer)));
    if (inputs.size() > 1 && session.args.has(FlagId::with_patch))
      throw Misuse("--with-patch takes one IN, but several are given");
    std::vector<Model> models;
    for (const std::string& each : inputs) {
      Input input = open_input(session, each, reading, TokenizerFile::container_or_another);
      session.remarks(each, input.report);
      models.push_back(std::move(input.model));
    }
    const Model whole = inputs.size() > 1 ? joined_inputs(session, models) : models[0];
    session.step("opening");
    if (reading.tokenizer && !whole.tokenizer())
      taken.tokenizer = in_file(std::string(session.args.value(FlagId::tokenizer)),
                                [&] { return WordPiece::vocabulary(*reading.tokenizer, session.context().limits); });
    const Model merged = with_adapters(session, view(whole, taken), options.dequantize);
    const Plan made = plan(merged, format, options, counting(session, options));
    session.step("planning");
    return carry_out(session, path, output, made, whole);
  } catch (const Error& error) {
    // An error about several inputs together names them itself.
    const bool of_all = inputs.size() > 1 && error.finding().rule.starts_with("misuse/duplicate-");
    return session.fail(of_all ? std::string_view() : std::string_view(path), error);
  }
}

namespace {

// Whether a file is refused only in place, so that a new one can be written.
bool is_about_place(std::string_view rule) {
  constexpr std::string_view kRules[] = {"misuse/in-place", "misuse/hard-link", "misuse/hub-cache", "misuse/read-only"};
  return std::ranges::find(kRules, rule) != std::end(kRules);
}

// A name for an output that can be written in place of this file or folder.
std::string name_of_new(const std::string& path) {
  std::error_code unknown;
  const std::string extension = extension_of(path);
  if (std::filesystem::is_directory(path, unknown) || extension == ".json")
    return has_config(path) ? "NEW/" : "NEW.safetensors";
  try {
    return extension.empty() || format_of_output("NEW" + extension) != "onnx" ? "NEW" + extension : "NEW.safetensors";
  } catch (const Error&) {  // a format that cannot be written
    return "NEW.safetensors";
  }
}

// In the files of the base.
Status apply_to_base(Session& session, const std::string& path, std::span<const std::string> operands) {
  const bool dry_run = session.args.has(FlagId::dry_run);
  if (path == "-") throw Misuse("--in-place changes a file: name it");
  try {
    std::vector<Model> patches;
    for (const std::string& each : operands) patches.push_back(open_input(session, each).model);
    session.progress().about("checking");
    const Applied applied = apply_in_place(path, patches, session.context(), dry_run);
    session.progress().clear();
    if (!session.quiet && !session.json && applied.left != Edited::Left::nothing)
      remark(shown(path) + ": an earlier change was killed; it was " + std::string(name(applied.left)) + " first");
    const bool written = !dry_run && !applied.files.empty();
    session.print_written(
        written ? path : std::string(), [&] { return to_json(path, applied, written); },
        [&] {
          session.out.text(shown(path) + ": " +
                           (applied.files.empty()
                                ? "nothing to change"
                                : counted(applied.tensors, "tensor", "tensors") + " of " + size_text(applied.bytes) +
                                      " in " + counted(applied.files.size(), "file", "files")) +
                           (written ? ", changed in place" : "") + "\n");
        });
    return Status::done;
  } catch (const Error& error) {
    const Status status = session.fail(path, error);
    if (!session.quiet && !session.json && is_about_place(error.finding().rule)) {
      std::string command = "  to do: weighbridge apply " + shell_word(path);
      for (const std::string& each : operands) command += " " + shell_word(each);
      remark(command + " -o " + name_of_new(path));
    }
    return status;
  }
}

}  // namespace

Status run_apply(Session& session) {
  const std::span<const std::string> operands = session.args.operands;
  const std::string &path = operands[0], output(session.args.value(FlagId::output));
  if (session.args.has(FlagId::in_place)) return apply_to_base(session, path, operands.subspan(1));
  if (output.empty()) throw Misuse("--in-place changes BASE itself, and -o OUT writes a new file: give one of them");
  try {
    refuse_input_as_output(session.args, operands, output);
    const Input base = open_input(session, path);
    session.remarks(path, base.report);
    const std::string extension = extension_of(output);
    const std::string format =
        extension.empty()
            ? base.model.format() == "hf" || output.ends_with('/') ? "hf" : std::string(base.model.format())
            : std::string(format_of_output(output));
    refuse_existing(output, format, session.args);
    const std::vector<Model> patches = open_stored(session, operands.subspan(1));
    session.progress().about("checking");
    const Model result = patched(base.model, patches, session.context());
    return carry_out(session, path, output, plan(result, format, convert_options(session.args), session.context()),
                     base.model);
  } catch (const Error& error) {
    return session.fail(path, error);
  }
}

Status run_append(Session& session) {
  const std::string &target = session.args.operands[0], &source = session.args.operands[1];
  Options options = convert_options(session.args);
  const bool in_place = !session.args.has(FlagId::output);
  const std::string output = in_place ? target : std::string(session.args.value(FlagId::output));
  options.replace = options.replace || in_place;
  if (output == "-")
    throw Misuse("append cannot write to standard output, because it reads its output back: name a file");
  try {
    if (!in_place) refuse_existing(output, {}, session.args);
    const Input base = open_input(session, target);
    const ViewOptions taken = view_of(session);
    const Input more = open_input(session, source);
    return carry_out(session, source, output,
                     plan_append(base.model, view(more.model, taken), options, counting(session, options)), base.model);
  } catch (const Error& error) {
    return session.fail(error.finding().rule == "misuse/append" ? target : source, error);
  }
}

}  // namespace weighbridge::cli
