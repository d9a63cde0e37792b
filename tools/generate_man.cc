// SPDX-License-Identifier: Apache-2.0
// Writes the manual: weighbridge.1, and weighbridge-VERB.1 for each verb. Every fact comes from the command's own
// tables and help texts (cli/flags.cc, cli/actions.cc, cli/help.cc); this file owns the shape of a page and the
// spelling of roff.
//
// usage: generate_man FOLDER [DATE]
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <fstream>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cli/actions.h"
#include "cli/help.h"
#include "weighbridge/version.h"

namespace cli = weighbridge::cli;

namespace {

// A character that is not ASCII, by its number, since a page is written in ASCII alone. `text` begins with valid UTF-8.
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

// Text as roff shows it, every character as typed: a hyphen that can be copied, no ligatures of quotes.
std::string escaped(std::string_view text) {
  static constexpr std::pair<char, std::string_view> kSpelt[] = {
      {'\\', "\\e"}, {'-', "\\-"}, {'\'', "\\(aq"}, {'"', "\\(dq"}, {'`', "\\(ga"}, {'^', "\\(ha"}, {'~', "\\(ti"}};
  std::string out;
  while (!text.empty()) {
    const char c = text.front();
    if ((static_cast<unsigned char>(c) & 0x80U) != 0) {
      out += numbered(text);
      continue;
    }
    const auto* const spelt = std::ranges::find(kSpelt, c, &std::pair<char, std::string_view>::first);
    spelt != std::end(kSpelt) ? out.append(spelt->second) : out.append(1, c);
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

// A '\n' of a help text ends a paragraph. `between`: the macro that begins the next.
std::string paragraphs(std::string_view text, std::string_view between = ".PP") {
  std::string out;
  while (!text.empty()) {
    if (!out.empty()) out.append(between).append("\n");
    out += escaped(take_line(text)) + "\n";
  }
  return out;
}

// Lines as they are, for what people copy.
std::string example(std::string_view text) {
  std::string out = ".EX\n";
  while (!text.empty()) out += escaped(take_line(text)) + "\n";
  return out + ".EE\n";
}

std::string head(std::string_view page, std::string_view date) {
  return ".\\\" Made by tools/generate_man.cc from the command's own tables.\n.TH " + upper(page) + " 1 \"" +
         std::string(date) + "\" \"weighbridge " + std::string(weighbridge::version()) + "\" \"User Commands\"\n";
}

std::string name_section(std::string_view page, std::string_view says) {
  return ".SH NAME\n" + escaped(page) + " \\- " + escaped(says) + "\n";
}

std::string listed(std::span<const std::string_view> words) {
  std::string list;
  for (const std::string_view word : words) list += (list.empty() ? "" : ", ") + std::string(word);
  return list;
}

std::string flag_entry(const cli::Flag& flag, std::string_view help) {
  std::string out = ".TP\n";
  if (flag.letter != 0) out += bold(std::string("-") + flag.letter) + ", ";
  out += bold("--" + std::string(flag.name));
  if (!flag.value.empty()) {
    const bool optional = flag.given == cli::Given::optional;
    out += (optional ? " [" : " ") + italic(flag.value) + (optional ? "]" : "");
  }
  out += "\n" + escaped(sentence(help)) + "\n";
  const std::vector<std::string_view> known = cli::words(flag);
  return known.empty() ? out : out + italic(flag.value) + escaped(" is one of " + listed(known) + ".") + "\n";
}

std::string flag_entries(cli::VerbId id, const cli::Action* action) {
  std::string out;
  for (const cli::Flag& flag : cli::flags())
    if (cli::takes_flag(id, action, flag)) out += flag_entry(flag, cli::help_of(flag, id, action));
  return out;
}

std::string statuses(std::span<const cli::ExitStatus> all) {
  std::string out = ".SH EXIT STATUS\n";
  for (const cli::ExitStatus& each : all)
    out += ".TP\n" + bold(std::to_string(each.status)) + "\n" + escaped(sentence(each.says)) + "\n";
  return out;
}

// Operands are italic where they stand for something, as capitals do.
std::string usage(const cli::Verb& verb) {
  std::string out = bold("weighbridge " + std::string(verb.name));
  if (!verb.operands.empty()) out += " " + italic(verb.operands);
  return out;
}

// What the first operand must be one of.
std::string known_operand(cli::VerbId id, const cli::Action* action) {
  const std::string_view name = cli::operand_name(cli::operands_of(id, action), 0);
  const std::vector<std::string_view> known = cli::operand_words(id, action);
  return known.empty() ? "" : ".PP\n" + italic(name) + escaped(" is one of " + listed(known) + ".") + "\n";
}

// A section of its verb's page: what it does, and the flags that only it and some others take.
std::string action_section(const cli::Verb& verb, const cli::Action& action) {
  std::string out = ".SS " + escaped(words_of(action)) + "\n" + bold("weighbridge " + std::string(verb.name)) + " " +
                    bold(words_of(action)) + " " + italic(action.operands) + " [" + italic("flags") + "]\n.PP\n" +
                    escaped(sentence(action.summary)) + "\n" + paragraphs(action.about) +
                    known_operand(verb.id, &action);
  for (const cli::Flag& flag : cli::flags()) {
    if (!flag.where.has(action.id) || flag.where.has(verb.id)) continue;
    std::string help = cli::help_of(flag, verb.id, &action);
    if (flag.required.has(action.id)) help += " (required)";
    out += flag_entry(flag, help);
  }
  return out;
}

std::string page_of(const cli::Verb& verb) { return "weighbridge-" + std::string(verb.name); }
// Another page, never broken between lines.
std::string reference(std::string_view page) { return "\\%" + bold(page) + "(1)"; }

std::string verb_page(const cli::Verb& verb, std::string_view date) {
  std::string out = head(page_of(verb), date) + name_section(page_of(verb), verb.summary) + ".SH SYNOPSIS\n" +
                    usage(verb) + " [" + italic("flags") + "]\n";
  out += ".SH DESCRIPTION\n" + (verb.about.empty() ? escaped(sentence(verb.summary)) + "\n" : paragraphs(verb.about));
  out += known_operand(verb.id, nullptr);
  const std::span<const cli::Action> actions = cli::actions_of(verb.id);
  std::string_view group;
  for (const cli::Action& action : actions) {
    if (&action == actions.data() || action.group != group)
      out += ".SH " + upper(action.group.empty() ? "actions" : action.group.substr(0, action.group.find(','))) + "\n";
    group = action.group;
    out += action_section(verb, action);
  }
  out += actions.empty() ? ".SH OPTIONS\n" : ".SH OPTIONS OF EVERY ACTION\n";
  out += flag_entries(verb.id, nullptr);
  out += statuses(cli::exit_statuses(verb.id)) + ".SH EXAMPLES\n" + example(verb.examples);
  return out + ".SH SEE ALSO\n" + reference("weighbridge") + "\n";
}

std::string main_page(std::string_view date) {
  std::string out = head("weighbridge", date) + name_section("weighbridge", cli::summary()) + ".SH SYNOPSIS\n" +
                    bold("weighbridge") + " " + italic("VERB") + " ...\n.br\n" + bold("weighbridge --version") + " [" +
                    bold("--json") + "]\n.SH DESCRIPTION\n" + paragraphs(cli::purpose()) + ".SH VERBS\n";
  for (std::size_t g = 0; g < cli::kGroupCount; ++g) {
    const cli::Group group{static_cast<std::uint8_t>(g)};
    out += ".SS " + escaped(cli::title_of(group)) + "\n";
    for (const cli::Verb& verb : cli::verbs())
      if (verb.group == group)
        out += ".TP\n" + usage(verb) + "\n" + escaped(sentence(verb.summary)) + " See\n" + reference(page_of(verb)) +
               ".\n";
  }
  // What more than half of the verbs take.
  out += ".SH COMMON OPTIONS\n";
  for (const cli::Flag& flag : cli::flags()) {
    const auto taken =
        std::ranges::count_if(cli::verbs(), [&](const cli::Verb& verb) { return cli::takes_flag(verb.id, flag); });
    if (2 * static_cast<std::size_t>(taken) > cli::verbs().size()) out += flag_entry(flag, flag.help);
  }
  out += ".PP\n" + paragraphs(cli::conventions()) + statuses(cli::exit_statuses());
  out += ".SH SEE ALSO\n";
  for (std::size_t i = 0; i < cli::verbs().size(); ++i)
    out += (i == 0 ? "" : ",\n") + reference(page_of(cli::verbs()[i]));
  return out + "\n";
}

// The page with no line of text above 80 bytes, as those who read roff expect; examples stay as they are.
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
      if (rest.starts_with('.')) rest.insert(0, "\\&");  // a word, no request
    }
    out += rest + "\n";
  }
  return out;
}

bool write(const std::string& path, const std::string& text) {
  std::ofstream out(path, std::ios::binary);
  out << filled(text);
  return static_cast<bool>(out.flush());
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2 && argc != 3) {
    std::fputs("usage: generate_man FOLDER [DATE]\n", stderr);
    return 2;
  }
  const std::string folder = argv[1], date = argc == 3 ? argv[2] : "";
  bool written = write(folder + "/weighbridge.1", main_page(date));
  for (const cli::Verb& verb : cli::verbs())
    written = written && write(folder + "/" + page_of(verb) + ".1", verb_page(verb, date));
  if (written) return 0;
  std::fprintf(stderr, "generate_man: cannot write below %s\n", folder.c_str());
  return 4;
}
