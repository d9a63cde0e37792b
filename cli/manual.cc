// SPDX-License-Identifier: Apache-2.0
// The manual: weighbridge(1), and weighbridge-VERB(1) for each verb. Owns the layout of a page and the roff markup; all
// content comes from the tables and from help.cc.
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "help.h"
#include "weighbridge/version.h"

namespace weighbridge::cli {
namespace {

// The roff escape of a non-ASCII character, because pages are plain ASCII. `text` begins with valid UTF-8.
std::string numbered(std::string_view& text) {
  const auto first = static_cast<unsigned char>(text.front());
  const std::size_t size = first >= 0xF0 ? 4 : first >= 0xE0 ? 3 : 2;
  std::uint32_t code = first & (0xFFU >> (size + 1));
  for (const char c : text.substr(1, size - 1)) code = code << 6 | (static_cast<unsigned char>(c) & 0x3FU);
  text.remove_prefix(size);
  char out[16];
  std::snprintf(out, sizeof out, "\\[u%04X]", static_cast<unsigned>(code));
  return out;
}

// Escapes text so that roff shows every character as typed: hyphens that can be copied, straight quotes.
std::string escaped(std::string_view text) {
  static constexpr std::pair<char, std::string_view> kSpelled[] = {
      {'\\', "\\e"}, {'-', "\\-"}, {'\'', "\\(aq"}, {'"', "\\(dq"}, {'`', "\\(ga"}, {'^', "\\(ha"}, {'~', "\\(ti"}};
  std::string out;
  while (!text.empty()) {
    const char c = text.front();
    if ((static_cast<unsigned char>(c) & 0x80U) != 0) {
      out += numbered(text);
      continue;
    }
    const auto* const spelled = std::ranges::find(kSpelled, c, &std::pair<char, std::string_view>::first);
    spelled != std::end(kSpelled) ? out.append(spelled->second) : out.append(1, c);
    text.remove_prefix(1);
  }
  return out.starts_with('.') ? "\\&" + out : out;
}

std::string bold(std::string_view text) { return "\\fB" + escaped(text) + "\\fR"; }
std::string italic(std::string_view text) { return "\\fI" + escaped(text) + "\\fR"; }

std::string upper(std::string_view text) {
  std::string out(text);
  for (char& c : out)
    if (c >= 'a' && c <= 'z') c = static_cast<char>(c - 'a' + 'A');
  return out;
}
std::string sentence(std::string_view text) {
  return text.empty() ? std::string() : upper(text.substr(0, 1)) + std::string(text.substr(1)) + ".";
}

std::string_view take_line(std::string_view& text) {
  const std::size_t end = std::min(text.find('\n'), text.size());
  const std::string_view line = text.substr(0, end);
  text.remove_prefix(std::min(end + 1, text.size()));
  return line;
}

// A '\n' of a help text ends a paragraph. `between`: the macro that begins the next one.
std::string paragraphs(std::string_view text, std::string_view between = ".PP") {
  std::string out;
  while (!text.empty()) {
    if (!out.empty()) out.append(between).append("\n");
    out += escaped(take_line(text)) + "\n";
  }
  return out;
}

// Unfilled lines, for examples that people copy.
std::string example(std::string_view text) {
  std::string out = ".EX\n";
  while (!text.empty()) out += escaped(take_line(text)) + "\n";
  return out + ".EE\n";
}

std::string head(std::string_view page, std::string_view date) {
  return ".\\\" Made from the command's own tables.\n.TH " + upper(page) + " 1 \"" + std::string(date) +
         "\" \"weighbridge " + std::string(version()) + "\" \"User Commands\"\n";
}

std::string name_section(std::string_view page, std::string_view says) {
  return ".SH NAME\n" + escaped(page) + " \\- " + escaped(says) + "\n";
}

std::string listed(std::span<const std::string_view> words) {
  std::string list;
  for (const std::string_view word : words) list += (list.empty() ? "" : ", ") + std::string(word);
  return list;
}

std::string flag_entry(const Flag& flag, std::string_view help) {
  std::string out = ".TP\n";
  if (flag.letter != 0) out += bold(std::string("-") + flag.letter) + ", ";
  out += bold("--" + std::string(flag.name));
  if (!flag.value.empty()) {
    const bool optional = flag.given == Given::optional;
    out += (optional ? " [" : " ") + italic(flag.value) + (optional ? "]" : "");
  }
  out += "\n" + escaped(sentence(help)) + "\n";
  const std::vector<std::string_view> known = words(flag);
  return known.empty() ? out : out + italic(flag.value) + escaped(" is one of " + listed(known) + ".") + "\n";
}

std::string flag_entries(VerbId id, const Action* action) {
  std::string out;
  for (const Flag& flag : flags())
    if (takes_flag(id, action, flag)) out += flag_entry(flag_of(flag, id, action), help_of(flag, id, action));
  return out;
}

std::string statuses(std::span<const ExitStatus> all) {
  std::string out = ".SH EXIT STATUS\n";
  for (const ExitStatus& each : all)
    out += ".TP\n" + bold(std::to_string(each.status)) + "\n" + escaped(sentence(each.says)) + "\n";
  return out;
}

// Operands in capitals are placeholders and become italic.
std::string usage(const Verb& verb) {
  std::string out = bold("weighbridge " + std::string(verb.name));
  if (!verb.operands.empty()) out += " " + italic(verb.operands);
  return out;
}

// The allowed first operands.
std::string known_operand(VerbId id, const Action* action) {
  const std::string_view name = operand_name(operands_of(id, action), 0);
  const std::vector<std::string_view> known = operand_words(id, action);
  return known.empty() ? "" : ".PP\n" + italic(name) + escaped(" is one of " + listed(known) + ".") + "\n";
}

// The action's section on its verb's page: what it does, and the flags that not all actions take.
std::string action_section(const Verb& verb, const Action& action) {
  std::string out = ".SS " + escaped(words_of(action)) + "\n" + bold("weighbridge " + std::string(verb.name)) + " " +
                    bold(words_of(action)) + " " + italic(action.operands) + " [" + italic("flags") + "]\n.PP\n" +
                    escaped(sentence(action.summary)) + "\n" + paragraphs(action.about) +
                    known_operand(verb.id, &action);
  for (const Flag& flag : flags()) {
    if (!flag.where.has(action.id) || flag.where.has(verb.id)) continue;
    std::string help = help_of(flag, verb.id, &action);
    if (flag.required.has(action.id)) help += " (required)";
    out += flag_entry(flag_of(flag, verb.id, &action), help);
  }
  return out;
}

std::string page_of(const Verb& verb) { return "weighbridge-" + std::string(verb.name); }
// A reference to another page, never broken across lines.
std::string reference(std::string_view page) { return "\\%" + bold(page) + "(1)"; }

std::string verb_page(const Verb& verb, std::string_view date) {
  std::string out = head(page_of(verb), date) + name_section(page_of(verb), verb.summary) + ".SH SYNOPSIS\n" +
                    usage(verb) + " [" + italic("flags") + "]\n";
  out += ".SH DESCRIPTION\n" + (verb.about.empty() ? escaped(sentence(verb.summary)) + "\n" : paragraphs(verb.about));
  out += known_operand(verb.id, nullptr);
  const std::span<const Action> actions = actions_of(verb.id);
  std::string_view group;
  for (const Action& action : actions) {
    if (&action == actions.data() || action.group != group)
      out += ".SH " + upper(action.group.empty() ? "actions" : action.group.substr(0, action.group.find(','))) + "\n";
    group = action.group;
    out += action_section(verb, action);
  }
  out += actions.empty() ? ".SH OPTIONS\n" : ".SH OPTIONS OF EVERY ACTION\n";
  out += flag_entries(verb.id, nullptr);
  out += statuses(exit_statuses(verb.id)) + ".SH EXAMPLES\n" + example(verb.examples);
  return out + ".SH SEE ALSO\n" + reference("weighbridge") + "\n";
}

std::string main_page(std::string_view date) {
  std::string out = head("weighbridge", date) + name_section("weighbridge", summary()) + ".SH SYNOPSIS\n" +
                    bold("weighbridge") + " " + italic("VERB") + " ...\n.br\n" + bold("weighbridge --version") + " [" +
                    bold("--json") + "]\n.SH DESCRIPTION\n" + paragraphs(purpose()) + ".SH VERBS\n";
  for (std::size_t g = 0; g < kGroupCount; ++g) {
    const Group group{static_cast<std::uint8_t>(g)};
    out += ".SS " + escaped(title_of(group)) + "\n";
    for (const Verb& verb : verbs())
      if (verb.group == group)
        out += ".TP\n" + usage(verb) + "\n" + escaped(sentence(verb.summary)) + " See\n" + reference(page_of(verb)) +
               ".\n";
  }
  // Flags that more than half of the verbs take.
  out += ".SH COMMON OPTIONS\n";
  for (const Flag& flag : flags()) {
    const auto taken = std::ranges::count_if(verbs(), [&](const Verb& verb) { return takes_flag(verb.id, flag); });
    if (2 * static_cast<std::size_t>(taken) > verbs().size()) out += flag_entry(flag, flag.help);
  }
  out += ".PP\n" + paragraphs(conventions()) + statuses(exit_statuses());
  out += ".SH SEE ALSO\n";
  for (std::size_t i = 0; i < verbs().size(); ++i) out += (i == 0 ? "" : ",\n") + reference(page_of(verbs()[i]));
  return out + "\n";
}

// Wraps text lines of the page to 80 bytes, as is usual for roff sources; examples stay as they are.
std::string filled(std::string_view page) {
  static constexpr std::size_t kWidth = 80;
  std::string out;
  bool example = false;
  while (!page.empty()) {
    std::string rest(take_line(page));
    if (rest.starts_with(".EX") || rest.starts_with(".EE")) example = rest.starts_with(".EX");
    while (!example && !rest.starts_with('.') && rest.size() > kWidth) {
      const std::size_t space = rest.rfind(' ', kWidth);
      if (space == std::string::npos || space == 0) break;
      out += rest.substr(0, space) + "\n";
      rest.erase(0, space + 1);
      if (rest.starts_with('.')) rest.insert(0, "\\&");  // a word, not a request
    }
    out += rest + "\n";
  }
  return out;
}

}  // namespace

std::string manual_page(std::string_view date) { return filled(main_page(date)); }
std::string manual_page(const Verb& verb, std::string_view date) { return filled(verb_page(verb, date)); }

}  // namespace weighbridge::cli
