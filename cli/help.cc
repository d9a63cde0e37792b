// SPDX-License-Identifier: Apache-2.0
// Help texts.
#include "help.h"

#include <algorithm>

#include "weighbridge/version.h"

namespace weighbridge::cli {
namespace {

constexpr ExitStatus kStatuses[] = {
    {"0", "done, or valid, warnings included"},
    {"1", "the file is malformed, files differ, or a conversion would lose something that was not allowed"},
    {"2", "asked for what cannot be: flags, an unknown tensor, an output that exists"},
    {"3", "nothing worse than tensors that this build cannot interpret"},
    {"4", "input or output failed"},
    {"130", "Ctrl-C; no temporary is left"},
};

std::string padded(std::string_view text, std::size_t width) {
  std::string out(text);
  out.resize(std::max(width, out.size()), ' ');
  return out;
}

std::string spelling(const Flag& flag) {
  std::string out = flag.letter ? std::string("-") + flag.letter + ", " : "    ";
  out += "--" + std::string(flag.name);
  if (flag.takes == Takes::optional_value) return out + " [" + std::string(flag.value) + "]";
  return flag.value.empty() ? out : out + " " + std::string(flag.value);
}

std::string indented(std::string_view text) {
  std::string out;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    out += "  " + std::string(text.substr(0, end)) + "\n";
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return out;
}

std::string verb_list() {
  std::string out;
  for (const Verb& v : verbs())
    out += "  " + padded(std::string(v.name) + " " + std::string(v.operands), 26) + std::string(v.summary) + "\n";
  return out;
}

// The words that a value must be one of, where they fit on a line or two.
std::string word_list(VerbId id) {
  std::string out;
  for (const Flag& f : flags()) {
    if (!takes_flag(id, f) || f.choice == Choice::order) continue;
    const std::vector<std::string_view> known = words(f.choice);
    if (known.empty()) continue;
    std::string line = padded(std::string(f.value) + " of --" + std::string(f.name) + ":", 22);
    for (const std::string_view word : known) {
      if (line.size() - (line.rfind('\n') == std::string::npos ? 0 : line.rfind('\n')) + word.size() > 98)
        line += "\n" + std::string(22, ' ');
      line += " " + std::string(word);
    }
    out += indented(line);
  }
  return out.empty() ? out : "\nWords:\n" + out;
}

std::string status_list() {
  std::string out = "Exit status:\n";
  for (const ExitStatus& status : kStatuses) out += "  " + padded(status.status, 5) + std::string(status.says) + "\n";
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
  return "weighbridge says what is in a tensor file, proves it sound, and turns it into another container\n"
         "without losing anything unsaid.\n";
}
std::string_view conventions() noexcept {
  return "Every verb takes --json and --help; those that work on files take --quiet and --threads N.\n"
         "-- ends the flags. No colours are used in pipes or with NO_COLOR.\n";
}

std::string introduction() {
  return std::string(purpose()) + "\n" + verb_list() +
         "\n'weighbridge VERB --help' says more, 'weighbridge --help' also lists the exit statuses.\n";
}

std::string overview() {
  return "usage: weighbridge VERB ...\n\n" + verb_list() + "\n" + std::string(conventions()) + "\n" + status_list() +
         "\n'weighbridge --version' says which build this is.\n";
}

std::string help_of(VerbId id) {
  const Verb& v = verb(id);
  std::string out = "usage: weighbridge " + std::string(v.name) + (v.operands.empty() ? "" : " ") +
                    std::string(v.operands) + " [flags]\n\n" + std::string(v.summary) + "\n";
  out[out.find("\n\n") + 2] = static_cast<char>(out[out.find("\n\n") + 2] - 'a' + 'A');
  if (!v.about.empty()) out += "\n" + std::string(v.about) + "\n";
  out += "\nFlags:\n";
  std::size_t width = 0;
  for (const Flag& f : flags())
    if (takes_flag(id, f)) width = std::max(width, spelling(f).size() + 2);
  for (const Flag& f : flags())
    if (takes_flag(id, f)) out += "  " + padded(spelling(f), width) + std::string(f.help) + "\n";
  out += word_list(id);
  return out + "\nExamples:\n" + indented(v.examples);
}

}  // namespace weighbridge::cli
