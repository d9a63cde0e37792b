// SPDX-License-Identifier: Apache-2.0
// edit: changes metadata and names of tensors, in place where the new header fits.
#include "weighbridge/edit.h"

#include <algorithm>
#include <filesystem>
#include <iterator>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "recovery.h"
#include "session.h"
#include "weighbridge/json.h"

namespace weighbridge::cli {
namespace {

using Way = Edited::Way;

constexpr std::size_t kMaxChanges = 20, kLongestChange = 100;

EditOptions edit_options(Session& session) {
  const Arguments& args = session.args;
  EditOptions out;
  args.apply(out, OptionOf::edit);
  for (EditOptions::Setting& each : out.set)
    if (each.text.size() > 1 && each.text.front() == '@') {
      const std::string path = each.text.substr(1);
      each.text = in_file(path, [&] { return small_text(session, path); });
    }
  if (args.has(FlagId::from_json)) {
    const std::string path(args.value(FlagId::from_json));
    in_file(path, [&] { out.add_json(*session.source(path), session.context().limits); });
  }
  add_rename_file(session, out.rename);
  out.output = args.value(FlagId::output);
  return out;
}

// "the header needs 96 of 120 bytes"
std::string header_text(const Edited& edited) {
  const bool at_end = edited.way == Way::in_place && edited.needed > edited.header;
  return "the header needs " + (at_end ? counted(edited.needed, "byte", "bytes") + ", before " + grouped(edited.header)
                                       : grouped(edited.needed) + " of " + counted(edited.header, "byte", "bytes"));
}

std::string plan_text(const Edited& edited, const std::string& output) {
  const std::string where = output.empty() ? "a new file of " + size_text(edited.size_after) +
                                                 " replaces this one, which --undo cannot revert"
                                           : "a new file of " + size_text(edited.size_after);
  switch (edited.way) {
    case Way::nothing: return "nothing to change";
    case Way::in_place: return "in place: " + header_text(edited) + ", no tensor is read";
    case Way::copied:
      return where +
             (output.empty() ? ": the header needs " + counted(edited.needed, "byte", "bytes") + " and has " +
                                   grouped(edited.header)
                             : std::string()) +
             "; the system copies the tensors, or shares them where the disk can";
    case Way::settings:
      return shown(edited.file) + " is replaced by one of " + size_text(edited.size_after) +
             ", which --undo cannot revert";
    case Way::converted: return where + "; every tensor is read and written";
  }
  return {};
}

void print_changes(Output& out, const Edited& edited) {
  std::size_t listed = 0;
  for (const Item& item : edited.changes) {
    if (listed++ == kMaxChanges) break;
    out.text("  " +
             std::string(item.to == "removed" || item.to == "left out" ? "remove"
                         : item.from == "absent"                       ? "add"
                                                                       : "change") +
             " " + fitted(item.subject, kMessageName));
    if (item.to == "removed")
      out.text(", which was " + fitted(item.from, kLongestChange));
    else if (item.from == "absent")
      out.text(": " + fitted(item.to, kLongestChange));
    else if (item.to != "left out")
      out.text(": " + fitted(item.from, kLongestChange) + " -> " + fitted(item.to, kLongestChange));
    out.text("\n");
  }
  if (edited.changes.size() > kMaxChanges)
    out.text("  and " + grouped(edited.changes.size() - kMaxChanges) + " more, which --json lists\n");
}

// What the user should know without asking.
void print_notes(const std::string& path, const EditOptions& options, const Edited& edited) {
  if (edited.left == Edited::Left::finished)
    remark(shown(path) + ": an earlier edit was killed after it had written the header; it is now finished");
  if (edited.left == Edited::Left::undone) remark(shown(path) + ": an earlier edit was killed; it was undone first");
  if (edited.way == Way::in_place && !options.without.empty())
    remark(shown(path) + ": the bytes of the tensors left out stay in the file; -o writes a file without them");
  if (!options.output.empty() || edited.names < 2 || edited.way == Way::nothing) return;
  remark(shown(path) + ": the file has " + grouped(edited.names) + " names (hard links), and " +
         (edited.way == Way::in_place ? "all of them show the change" : "the others keep the old file"));
}

void print_done(Session& session, const std::string& path, const EditOptions& options, const Edited& edited) {
  Output& out = session.out;
  out.text(shown(path) + (options.output.empty() ? "" : " -> " + shown(options.output)) + ": ");
  if (edited.way == Way::nothing)
    out.text("nothing to change\n");
  else if (edited.way == Way::settings)
    out.text(shown(edited.file) + " changed; --undo cannot revert it\n");
  else if (edited.way == Way::in_place)
    out.text("changed in place; " + header_text(edited) + "; --undo reverts it\n");
  else
    out.text("written, " + size_text(edited.size_after) +
             (edited.shared > 0 ? ", of which " + size_text(edited.shared) + " are shared with the old file" : "") +
             (options.output.empty() ? "; --undo cannot revert it, because a new file replaced the old one\n" : "\n"));
  print_changes(out, edited);
}

Status change(Session& session, const std::string& path) {
  const EditOptions options = edit_options(session);
  const bool dry_run = session.args.has(FlagId::dry_run);
  if (options.empty())
    throw Misuse("edit has nothing to change: give --set, --unset, --rename, --without or --from-json");
  if (!dry_run && options.output.empty() && !session.args.has(FlagId::in_place))
    throw Misuse("--in-place changes FILE itself, and -o OUT writes a new file: give one of them");
  if (options.output == "-")
    throw Misuse("edit cannot write to standard output, because it reads its output back: name a file");
  session.progress().about("writing");
  const auto before = [&](const Edited& plan) {
    // Said before it takes time and space.
    if (!session.quiet && !session.json && plan.way != Way::in_place && plan.way != Way::settings &&
        options.output.empty())
      remark(shown(path) + ": " + plan_text(plan, options.output));
  };
  const Edited edited =
      dry_run ? plan_edit(path, options, session.context()) : edit(path, options, session.context(), before);
  session.progress().clear();
  const bool written = !dry_run && edited.way != Way::nothing;
  if (!session.quiet && !session.json) print_notes(path, options, edited);
  std::vector<Item> losses;
  std::ranges::copy_if(edited.changes, std::back_inserter(losses),
                       [](const Item& item) { return item.kind == LossKind::file; });
  if (session.quiet && !session.json) session.show_losses(path, losses);
  const std::string changed = !written ? "" : options.output.empty() ? path : options.output;
  session.print_written(
      changed, [&] { return to_json(path, options.output, edited, written); },
      [&] {
        if (!dry_run) return print_done(session, path, options, edited);
        session.out.text(shown(path) + ": " + plan_text(edited, options.output) + "\n");
        print_changes(session.out, edited);
      });
  return Status::done;
}

Status restore(Session& session, const std::string& path, bool undo) {
  const bool trusted = session.args.has(FlagId::trust_journal);
  const auto before = [&](const Edited& plan) {
    if (session.quiet || session.json) return;
    std::error_code unknown;
    const std::filesystem::path given(path);
    print_steps(session.out, (std::filesystem::is_directory(given, unknown) ? given : given.parent_path()).string(),
                plan.steps);
    session.out.flush();
  };
  const Edited edited =
      undo ? undo_edit(path, session.context(), trusted) : settle_edit(path, session.context(), trusted, before);
  const bool written = undo || edited.left == Edited::Left::undone;
  session.print_written(
      written ? path : std::string(), [&] { return to_json(path, {}, edited, written); },
      [&] {
        session.out.text(shown(path) + ": " +
                         (undo ? "the last edit is undone; --undo again redoes it"
                          : edited.left == Edited::Left::finished
                              ? "the killed edit had written the header; it is now finished"
                          : edited.left == Edited::Left::undone ? "the killed edit is undone"
                                                                : "no edit was killed, so there is nothing to do") +
                         "\n");
      });
  return Status::done;
}

// If an edit is refused because it would change only one of several files: the command that changes all of them.
void suggest_conversion(const Session& session, const std::string& path, const Error& error) {
  const Arguments& args = session.args;
  const std::string& rule = error.finding().rule;
  if (session.quiet || session.json || (rule != "misuse/several-files" && rule != "misuse/shard")) return;
  std::string changes;
  for (const auto& [id, flag] :
       {std::pair(FlagId::rename, " --rename "), std::pair(FlagId::rename_file, " --rename-file "),
        std::pair(FlagId::without, " --without ")})
    for (const std::string& value : args.values(id)) changes += flag + shell_word(value);
  if (changes.empty()) return;
  const std::filesystem::path given(path);
  std::error_code unknown;
  const bool folder = std::filesystem::is_directory(given, unknown);
  // A shard alone is not the model; the first part of a split GGUF or an index is.
  const std::filesystem::path model = !folder && rule == "misuse/shard" ? given.parent_path() : given;
  remark("  to do: weighbridge convert " + shell_word(model.empty() ? "." : model.string()) +
         (given.extension() == ".gguf" ? " NEW.gguf"
          : has_config(given)          ? " NEW/"
                                       : " NEW/ --to safetensors --max-shard-size 5GB") +
         changes);
}

}  // namespace

Status run_edit(Session& session) {
  const std::string& path = session.args.operands[0];
  if (path == "-") throw Misuse("edit changes a file: name it");
  if (session.args.has(FlagId::trust_journal) && !session.args.has(FlagId::recover) && !session.args.has(FlagId::undo))
    throw Misuse("--trust-journal needs --recover or --undo");
  try {
    for (const FlagId id : {FlagId::undo, FlagId::recover})
      if (session.args.has(id)) return restore(session, path, id == FlagId::undo);
    return change(session, path);
  } catch (const Error& error) {
    const Status status = session.fail(path, error);
    suggest_conversion(session, path, error);
    return status;
  }
}

}  // namespace weighbridge::cli
