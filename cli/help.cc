// SPDX-License-Identifier: Apache-2.0
// Help texts, made from the tables.
#include "help.h"

#include <algorithm>

#include "wrap.h"

namespace weighbridge::cli {
namespace {

// For all verbs; each verb has its own texts for 0, 1 and 3.
constexpr ExitStatus kStatuses[] = {
    {0, "success; for verify: valid, with or without warnings"},
    {1,
     "a file is invalid or exceeds a --limit, a check failed, or a conversion was refused; for diff: the models "
     "differ"},
    {3, "valid, but this build does not support some tensors"},
};

constexpr std::size_t kMaxFlag = 30;     // widest column of flags; the text of a longer one begins on the next line
constexpr std::size_t kMaxAction = 31;   // the same for actions with their operands
constexpr std::size_t kVerbColumn = 26;  // column of verbs with their operands
constexpr std::size_t kWordColumn = 22;  // column of "DTYPE of --cast:"

std::string capitalized(std::string_view text) {
  std::string out(text);
  if (!out.empty() && out[0] >= 'a' && out[0] <= 'z') out[0] = static_cast<char>(out[0] - 'a' + 'A');
  return out;
}

// A line of a list: two blanks, the term, and its text from column `column` on.
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
  if (flag.given == Given::optional && flag.type == Type::file) return out + "[=" + std::string(flag.value) + "]";
  if (flag.given == Given::optional) return out + " [" + std::string(flag.value) + "]";
  return flag.value.empty() ? out : out + " " + std::string(flag.value);
}

// The verbs of each group, with summaries.
std::string verb_list() {
  std::string out;
  for (std::size_t g = 0; g < kGroupCount; ++g) {
    const Group group{static_cast<std::uint8_t>(g)};
    out += std::string(title_of(group)) + ":\n";
    for (const Verb& v : verbs())
      if (v.group == group) out += row(std::string(v.name) + " " + std::string(v.operands), v.summary, kVerbColumn);
    if (group == Group::shell) out += row("help VERB [ACTION]", "explain a verb or one of its actions", kVerbColumn);
    out += "\n";
  }
  return out;
}

std::string heading_of(const Flag& flag) {
  if (!flag.group.empty() || flag.info == nullptr || flag.info->formats.empty()) return std::string(flag.group);
  std::string out = "For";
  for (const std::string_view format : split_words(flag.info->formats))
    out += (out.size() > 3 ? ", ." : " .") + std::string(format);
  return out;
}

// A help text as far as one line holds it.
std::string in_one_line(std::string text, std::size_t room) {
  constexpr std::string_view kConditions[] = {"for ", "if ", "on ", "when ", "with "};  // say nothing alone
  const bool condition = std::ranges::any_of(kConditions, [&](auto word) { return text.starts_with(word); });
  text.resize(std::min({text.find("; "), condition ? text.npos : text.find(": "), text.find(" ("), text.size()}));
  if (text.ends_with(" or")) text += "...";
  if (text.size() <= room || room < 10) return text;
  return text.substr(0, text.rfind(' ', room - 3)) + "...";
}

// Under headings, those of all verbs last. `brief`: a line for each, without those of all verbs and of single formats.
std::string flag_list(VerbId id, const Action* action, bool brief) {
  std::vector<std::pair<std::string, std::vector<const Flag*>>> groups{{"", {}}};
  std::size_t width = 0;
  for (const Flag& f : flags()) {
    if (!takes_flag(id, action, f)) continue;
    const std::string heading = heading_of(f);
    if (brief && (heading == kGeneral || heading.starts_with("For "))) continue;
    auto group = std::ranges::find(groups, heading, &decltype(groups)::value_type::first);
    if (group == groups.end()) group = groups.insert(groups.end(), {heading, {}});
    group->second.push_back(&f);
    if (spelling(f).size() <= kMaxFlag) width = std::max(width, spelling(f).size());
  }
  std::ranges::stable_partition(groups, [](const auto& group) { return group.first != kGeneral; });
  std::string out;
  for (const auto& [heading, all] : groups) {
    if (!heading.empty()) out += (out.empty() ? "" : "\n") + heading + ":\n";
    for (const Flag* const f : all) {
      const std::string help = help_of(*f, id, action);
      out += row(spelling(*f), brief ? in_one_line(help, help_columns() - width - 4) : help, width + 2);
    }
  }
  return out;
}

std::string known_words(std::string_view of, std::span<const std::string_view> words) {
  std::string list;
  for (const std::string_view word : words) list += (list.empty() ? "" : " ") + std::string(word);
  return list.empty() ? "" : row(std::string(of) + ":", list, kWordColumn + 1);
}

// The allowed words of operands and values.
std::string word_list(VerbId id, const Action* action) {
  std::string out = known_words(operand_name(operands_of(id, action), 0), operand_words(id, action));
  for (const Flag& f : flags()) {
    if (!takes_flag(id, action, f)) continue;
    const std::vector<std::string_view> known = words(flag_of(f, id, action));
    const std::string help = help_of(f, id, action);
    const auto said = [&](std::string_view word) { return help.find(word) != std::string::npos; };
    if (!std::ranges::all_of(known, said))
      out += known_words(std::string(f.value) + " of --" + std::string(f.name), known);
  }
  return out.empty() ? "" : "\nWords:\n" + out;
}

std::string status_list(std::span<const ExitStatus> statuses) {
  std::string out = "Exit status:\n";
  for (const ExitStatus& each : statuses) out += row(std::to_string(each.status), each.says, 5);
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

// A paragraph per group, with the names of its verbs.
std::string group_list(std::size_t columns) {
  constexpr std::size_t kNames = 14;  // where they begin
  std::string out;
  for (std::size_t g = 0; g < kGroupCount; ++g) {
    const Group group{static_cast<std::uint8_t>(g)};
    std::string line = "  " + std::string(title_of(group));
    line.resize(kNames, ' ');
    std::string names;
    for (const Verb& v : verbs())
      if (v.group == group) names += (names.empty() ? "" : " ") + std::string(v.name);
    out += line + wrapped(names, columns, kNames, kNames) + "\n";
  }
  return out;
}

}  // namespace

std::vector<ExitStatus> exit_statuses(VerbId id) {
  std::vector<ExitStatus> out;
  for (const ExitStatus& own : verb(id).exits)
    if (!own.says.empty()) out.push_back(own);
  for (const ExitStatus& common : common_statuses())
    if (std::ranges::find(out, common.status, &ExitStatus::status) == out.end()) out.push_back(common);
  std::ranges::sort(out, {}, &ExitStatus::status);
  return out;
}

std::vector<ExitStatus> exit_statuses() {
  std::vector<ExitStatus> out(std::begin(kStatuses), std::end(kStatuses));
  for (const ExitStatus& common : common_statuses()) out.push_back(common);
  std::ranges::sort(out, {}, &ExitStatus::status);
  return out;
}

std::string_view summary() noexcept { return "inspect, verify, convert, compare and run model files"; }
std::string_view purpose() noexcept {
  return "weighbridge shows what is in a tensor file, verifies it, and converts it without dropping data silently. It "
         "also runs small text models.";
}
std::string_view conventions() noexcept {
  return "Every verb takes --json and --help; those that work on files take --quiet and --threads N.\n"
         "-- ends the flags. Output has colors only on a terminal without NO_COLOR, or as --color says.\n"
         "With several files, the exit status is the first of 4, 1, 2, 3 that occurred.";
}

std::string introduction() {
  const std::size_t columns = help_columns();
  return wrapped(purpose(), columns, 0, 0) + "\n\n" + group_list(columns) +
         "\nBegin with:  weighbridge inspect model.safetensors\n" +
         wrapped("'weighbridge VERB --help' explains a verb, 'weighbridge --help' lists them all.", columns, 0, 0) +
         "\n";
}

std::string overview() {
  const std::size_t columns = help_columns();
  return "usage: weighbridge VERB ...\n\n" + verb_list() + wrapped(conventions(), columns, 0, 0) + "\n\n" +
         status_list(exit_statuses()) + "\n" +
         wrapped(
             "'weighbridge VERB --help' or 'weighbridge help VERB [ACTION]' explains a verb or one of its actions. "
             "'weighbridge --version' (-V) prints the version.",
             columns, 0, 0) +
         "\n";
}

std::string help_of_help() {
  return "usage: weighbridge help [VERB [ACTION]]\n\nExplain a verb or one of its actions\n\n" +
         wrapped(
             "Without VERB, lists all verbs. 'weighbridge VERB [ACTION] --help' prints the same text. It takes no "
             "flags.",
             help_columns(), 0, 0) +
         example_list("weighbridge help convert\nweighbridge help slm fixture");
}

std::string action_list(VerbId id) {
  const std::span<const Action> all = actions_of(id);
  std::size_t width = 0;
  for (const Action& a : all) width = std::max(width, words_of(a).size() + 1 + a.operands.size());
  width = std::min(width, kMaxAction);
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

std::string help_of(VerbId id, const Action* action, bool brief) {
  const Verb& v = verb(id);
  const std::size_t columns = help_columns();
  const std::string_view about = action ? action->about : v.about;
  std::string out = "usage: " + wrapped(usage_of(id, action) + " [flags]", columns, 7, 11) + "\n\n" +
                    wrapped(capitalized(action ? action->summary : v.summary), columns, 0, 0) + "\n";
  if (!about.empty() && !brief) out += "\n" + wrapped(about, columns, 0, 0) + "\n";
  const bool lists = !action && !actions_of(id).empty();
  if (lists)
    out += "\n" + action_list(id) + "\n" +
           wrapped("'weighbridge " + std::string(v.name) + " ACTION --help' explains one, with its flags.", columns, 0,
                   0) +
           "\n";
  const std::string list = flag_list(id, action, brief);
  if (!list.empty() && !list.starts_with('\n')) out += lists ? "\nFlags of every action:\n" : "\nFlags:\n";
  out += list;
  if (brief)
    return out + "\n" +
           wrapped("'weighbridge " + std::string(v.name) +
                       " --help' says more, with the flags of single formats and those "
                       "of all verbs.",
                   columns, 0, 0) +
           "\n";
  return out + word_list(id, action) + "\n" + status_list(exit_statuses(id)) +
         example_list(action ? action->examples : v.examples);
}

std::string help_of_steps(VerbId id, std::string_view action) {
  std::string out;
  for (const Action& each : actions_of(id))
    if (each.name == action) out += (out.empty() ? "" : "\n") + help_of(id, &each);
  return out;
}

}  // namespace weighbridge::cli
