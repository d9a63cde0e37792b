// SPDX-License-Identifier: Apache-2.0
// Help texts.
#include "help.h"

#include <algorithm>

#include "weighbridge/version.h"
#include "wrap.h"

namespace weighbridge::cli {
namespace {

constexpr ExitStatus kStatuses[] = {
    {"0", "done, or valid, warnings included"},
    {"1",
     "the file is not sound, not what the verb needs, past a --limit or not the --sha256 given, or a conversion or "
     "gate refuses"},
    {"2", "asked for what cannot be: flags, an unknown tensor, an output that exists"},
    {"3", "nothing worse than tensors that this build cannot interpret"},
    {"4", "input or output failed"},
    {"130", "Ctrl-C; no temporary is left"},
};

constexpr std::size_t kMostFlag = 30;    // columns of a flag, before what is said of it begins below
constexpr std::size_t kMostAction = 31;  // and of an action with its operands
constexpr std::size_t kVerbColumn = 26;  // of a verb with its operands
constexpr std::size_t kWordColumn = 22;  // of "DTYPE of --cast:"

std::string capitalised(std::string_view text) {
  std::string out(text);
  if (!out.empty() && out[0] >= 'a' && out[0] <= 'z') out[0] = static_cast<char>(out[0] - 'a' + 'A');
  return out;
}

// A line of a list: two blanks, the term, and at `column` columns behind them what is said of it.
std::string row(std::string_view term, std::string_view says, std::size_t column) {
  std::string out = "  " + std::string(term);
  const std::size_t indent = column + 2;
  if (out.size() + 2 > indent)
    out += "\n" + std::string(indent, ' ');
  else
    out.resize(indent, ' ');
  return out + wrapped(says, help_columns(), indent, indent) + "\n";
}

std::string spelling(const Flag& flag) {
  std::string out = flag.letter ? std::string("-") + flag.letter + ", " : "    ";
  out += "--" + std::string(flag.name);
  if (flag.takes == Takes::optional_value) return out + " [" + std::string(flag.value) + "]";
  return flag.value.empty() ? out : out + " " + std::string(flag.value);
}

std::string verb_list() {
  std::string out;
  for (const Verb& v : verbs()) out += row(std::string(v.name) + " " + std::string(v.operands), v.summary, kVerbColumn);
  return out;
}

std::string flag_list(VerbId id, const Action* action) {
  std::size_t width = 0;
  for (const Flag& f : flags())
    if (takes_flag(id, action, f) && spelling(f).size() <= kMostFlag) width = std::max(width, spelling(f).size());
  std::string out;
  for (const Flag& f : flags())
    if (takes_flag(id, action, f)) out += row(spelling(f), help_of(f, id, action), width + 2);
  return out;
}

std::string known_words(std::string_view of, Choice choice) {
  std::string list;
  for (const std::string_view word : words(choice)) list += (list.empty() ? "" : " ") + std::string(word);
  return list.empty() ? "" : row(std::string(of) + ":", list, kWordColumn + 1);
}

// The words that an operand or a value must be one of.
std::string word_list(VerbId id, const Action* action) {
  const std::string_view operands = action ? action->operands : verb(id).operands;
  const std::string_view first = operand_name(operands, 0);
  std::string out = known_words(first, operand_choice(first));
  for (const Flag& f : flags()) {
    const bool said = f.choice == Choice::order || f.choice == Choice::limit || f.choice == Choice::color;
    if (takes_flag(id, action, f) && !said)
      out += known_words(std::string(f.value) + " of --" + std::string(f.name), f.choice);
  }
  return out.empty() ? "" : "\nWords:\n" + out;
}

std::string status_list() {
  std::string out = "Exit status:\n";
  for (const ExitStatus& status : kStatuses) out += row(status.status, status.says, 5);
  return out;
}

std::string example_list(std::string_view examples) {
  std::string out = examples.find('\n') == std::string_view::npos ? "\nExample:\n" : "\nExamples:\n";
  while (!examples.empty()) {
    const std::size_t end = std::min(examples.find('\n'), examples.size());
    out += "  " + wrapped_command(examples.substr(0, end), help_columns(), 2, 6) + "\n";
    examples.remove_prefix(std::min(end + 1, examples.size()));
  }
  return out;
}

// A line for each purpose, with the verbs that serve it.
std::string group_list() {
  std::string out;
  for (const std::string_view group : kGroups) {
    std::string line = "  " + std::string(group);
    line.resize(17, ' ');
    for (const Verb& v : verbs())
      if (v.group == group) line += "  " + std::string(v.name);
    out += line + "\n";
  }
  return out;
}

}  // namespace

std::span<const ExitStatus> exit_statuses() noexcept { return kStatuses; }

std::string version_text() {
  std::string out = "weighbridge " + std::string(version()) + "\ncommit    " + std::string(commit()) + "\ncompiler  " +
                    std::string(compiler()) + "\npaths    ";
  std::string_view before = " ";
  for (const CpuPath& path : cpu_paths()) {
    out.append(before).append(path.of).append(" ").append(path.taken);
    before = ", ";
  }
  return out + "\n";
}

std::string_view summary() noexcept { return "inspect, verify, convert and run tensor files"; }
std::string_view purpose() noexcept {
  return "weighbridge says what is in a tensor file, proves it sound, and converts it without losing anything unsaid. "
         "It also runs small text models.";
}
std::string_view conventions() noexcept {
  return "Every verb takes --json and --help; those that work on files take --quiet and --threads N.\n"
         "-- ends the flags. No colors are used in pipes or with NO_COLOR, unless --color says so.";
}

std::string introduction() {
  const std::size_t columns = help_columns();
  return wrapped(purpose(), columns, 0, 0) + "\n\n" + group_list() +
         "\nBegin with:  weighbridge inspect model.safetensors\n" +
         wrapped("'weighbridge VERB --help' explains a verb, 'weighbridge --help' lists them all.", columns, 0, 0) +
         "\n";
}

std::string overview() {
  const std::size_t columns = help_columns();
  return "usage: weighbridge VERB ...\n\n" + verb_list() + "\n" + wrapped(conventions(), columns, 0, 0) + "\n\n" +
         status_list() + "\n" +
         wrapped(
             "'weighbridge VERB --help' or 'weighbridge help VERB [ACTION]' explains a verb or one of its actions, "
             "'weighbridge --version' or -V says which build this is.",
             columns, 0, 0) +
         "\n";
}

std::string action_list(VerbId id) {
  const std::span<const Action> all = actions_of(id);
  std::size_t width = 0;
  for (const Action& a : all) width = std::max(width, words_of(a).size() + 1 + a.operands.size());
  width = std::min(width, kMostAction);
  std::string out;
  const std::string_view* group = nullptr;
  for (const Action& a : all) {
    if (!group || *group != a.group)
      out += (group ? "\n" : "") + (a.group.empty() ? "Actions" : std::string(a.group)) + ":\n";
    group = &a.group;
    out += row(words_of(a) + " " + std::string(a.operands), a.summary, width + 2);
  }
  return out;
}

std::string help_of(VerbId id, const Action* action) {
  const Verb& v = verb(id);
  const std::size_t columns = help_columns();
  const std::string_view about = action ? action->about : v.about;
  std::string out = "usage: " + wrapped(usage_of(id, action) + " [flags]", columns, 7, 11) + "\n\n" +
                    wrapped(capitalised(action ? action->summary : v.summary), columns, 0, 0) + "\n";
  if (!about.empty()) out += "\n" + wrapped(about, columns, 0, 0) + "\n";
  const bool lists = !action && !actions_of(id).empty();
  if (lists)
    out += "\n" + action_list(id) + "\n" +
           wrapped("'weighbridge " + std::string(v.name) + " ACTION --help' explains one, with its flags.", columns, 0,
                   0) +
           "\n\nFlags of every action:\n";
  else
    out += "\nFlags:\n";
  return out + flag_list(id, action) + word_list(id, action) + example_list(action ? action->examples : v.examples);
}

std::string help_of_steps(VerbId id, std::string_view action) {
  std::string out;
  for (const Action& each : actions_of(id))
    if (each.name == action) out += (out.empty() ? "" : "\n") + help_of(id, &each);
  return out;
}

}  // namespace weighbridge::cli
