// SPDX-License-Identifier: Apache-2.0
// Completion scripts for bash, zsh and fish, made from the tables. Each script finds the command in the line (a verb
// with its action), counts the operands so far, and offers what can come next.
#include <algorithm>
#include <vector>

#include "help.h"

namespace weighbridge::cli {
namespace {

// Words that are not a command yet, and what can follow them: "slm", "slm quality-gate", and the same after help.
struct Fork {
  std::string words;
  std::vector<std::string_view> next;
};

std::vector<Fork> forks() {
  std::vector<Fork> out;
  for (const Verb& v : verbs()) {
    const std::string name(v.name);
    const std::vector<std::string_view> next = next_words(v.id);
    if (!next.empty()) out.push_back({name, next});
    for (const std::string_view action : next)
      if (const auto steps = next_words(v.id, action); !steps.empty())
        out.push_back({name + " " + std::string(action), steps});
  }
  const std::vector<Fork> of_verbs = out;
  std::vector<std::string_view> names;
  for (const Verb& v : verbs()) names.push_back(v.name);
  out.push_back({"help", names});
  for (const Fork& fork : of_verbs) out.push_back({"help " + fork.words, fork.next});
  return out;
}

std::string joined(std::span<const std::string_view> list, std::string_view behind = "") {
  std::string out;
  for (const std::string_view word : list) out += (out.empty() ? "" : " ") + std::string(word) + std::string(behind);
  return out;
}

std::string_view operands(const Command& command) { return operands_of(command.verb->id, command.action); }

// The allowed first operands.
std::string known_operands(const Command& command) { return joined(operand_words(command.verb->id, command.action)); }

bool takes(const Command& command, const Flag& flag) { return takes_flag(command.verb->id, command.action, flag); }

std::string help(const Command& command, const Flag& flag) { return help_of(flag, command.verb->id, command.action); }

std::string joined_words(const Flag& flag) { return joined(words(flag), flag.type == Type::limit ? "=" : ""); }
std::string joined_words(const Command& command, const Flag& flag) {
  return joined_words(flag_of(flag, command.verb->id, command.action));
}
std::string flag_names(const Command& command) {
  std::string out;
  for (const Flag& f : flags())
    if (takes(command, f)) out += (out.empty() ? "--" : " --") + std::string(f.name);
  return out;
}

bool has_value(const Flag& f) { return !f.value.empty() && f.given != Given::optional; }

// "--output|-o" with `between` between them.
std::string spellings(const Flag& f, std::string_view between) {
  return "--" + std::string(f.name) + (f.letter ? std::string(between) + "-" + f.letter : "");
}

std::string valued_flags(std::string_view between) {
  std::string out;
  for (const Flag& f : flags())
    if (has_value(f)) out += (out.empty() ? "" : std::string(between)) + spellings(f, between);
  return out;
}

// How many operands, from the first on, are files; kAny: all of them.
std::size_t files_of(const Command& command) {
  constexpr std::size_t kTold = 3;  // no usage line names more operands one by one
  std::size_t count = 0;
  while (count < std::min(operand_count(operands(command)).most, kTold) &&
         operand_is_file(operand_name(operands(command), count)))
    ++count;
  return count == kTold ? kAny : count;
}

// 'text' in single quotes for a POSIX shell, zsh and fish; a quote inside closes and reopens them.
std::string in_quotes(std::string_view text) {
  std::string out = "'";
  for (const char c : text) out += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return out + "'";
}

// ---- bash ----

std::string bash_values() {
  std::string out;
  for (const Flag& f : flags()) {
    if (!has_value(f)) continue;
    out += "    " + spellings(f, "|") + ") ";
    std::string known = joined_words(f);
    for (const Own& own : f.own)  // offered by every verb that takes the flag
      if (own.info != nullptr) known += " " + joined(words(*own.info));
    if (f.type == Type::limit) out += "compopt -o nospace; ";
    if (!known.empty())
      out += (f.given == Given::list ? "_weighbridge_list '" : "_weighbridge_words '") + known + "'; ";
    if (f.type == Type::file) out += "_weighbridge_files; ";
    out += "return ;;\n";
  }
  return out;
}

std::string bash_script() {
  std::vector<std::string_view> first;
  for (const Verb& v : verbs()) first.push_back(v.name);
  std::string open = "''";
  for (const Fork& fork : forks()) open += "|" + in_quotes(fork.words);
  std::string out =
      "# bash completion of weighbridge; made by 'weighbridge completion bash'\n"
      "# What begins as `current` does: of words, of the last word behind a comma, of files (bash quotes their "
      "names).\n"
      "_weighbridge_words() { mapfile -t COMPREPLY < <(compgen -W \"$1\" -- \"$current\"); }\n"
      "_weighbridge_list() {\n"
      "  local last=\"${current##*,}\"\n"
      "  mapfile -t COMPREPLY < <(compgen -P \"${current%\"$last\"}\" -W \"$1\" -- \"$last\")\n}\n"
      "_weighbridge_files() { compopt -o default; }\n"
      "_weighbridge() {\n"
      "  local current=\"${COMP_WORDS[COMP_CWORD]}\" previous=\"${COMP_WORDS[COMP_CWORD-1]}\" place='' count=0 skip='' "
      "known='' i\n"
      "  COMPREPLY=()\n"
      "  if [ \"$current\" = = ]; then current=''\n"
      "  elif [ \"$previous\" = = ]; then previous=\"${COMP_WORDS[COMP_CWORD-2]}\"; fi\n"
      "  case \"$previous\" in\n" +
      bash_values() +
      "  esac\n"
      "  for ((i = 1; i < COMP_CWORD; i++)); do\n"
      "    if [ -n \"$skip\" ]; then\n"
      "      [ \"${COMP_WORDS[i]}\" = = ] || skip=''\n      continue\n    fi\n"
      "    case \"${COMP_WORDS[i]}\" in\n      " +
      valued_flags("|") + ") skip=1 ;;\n      -*) ;;\n      *) case \"$place\" in\n        " + open +
      ") place=\"${place:+$place }${COMP_WORDS[i]}\" ;;\n        *) count=$((count + 1)) ;;\n      esac ;;\n"
      "    esac\n  done\n"
      "  if [[ \"$current\" == -* ]]; then\n    case \"$place\" in\n      '') known='--help --version' ;;\n";
  for (const Command& command : commands())
    out += "      " + in_quotes(command.words()) + ") known='" + flag_names(command) + "' ;;\n";
  out +=
      "      *) known='--help' ;;\n    esac\n    _weighbridge_words \"$known\"\n    return\n  fi\n  case \"$place\" "
      "in\n    '') "
      "_weighbridge_words '" +
      joined(first) + " help' ;;\n";
  for (const Fork& fork : forks())
    out += "    " + in_quotes(fork.words) + ") _weighbridge_words '" + joined(fork.next) + "' ;;\n";
  for (const Command& command : commands()) {
    const std::string known = known_operands(command);
    const std::size_t files = files_of(command);
    if (!known.empty())
      out += "    " + in_quotes(command.words()) + ") [ $count -gt 0 ] || _weighbridge_words '" + known + "' ;;\n";
    else if (files == kAny)
      out += "    " + in_quotes(command.words()) + ") _weighbridge_files ;;\n";
    else if (files > 0)
      out += "    " + in_quotes(command.words()) + ") [ $count -ge " + std::to_string(files) +
             " ] || _weighbridge_files ;;\n";
  }
  return out + "  esac\n}\ncomplete -F _weighbridge weighbridge\n";
}

// ---- zsh ----

// Escapes brackets and colons, which _arguments and _describe would interpret.
std::string zsh_text(std::string_view text) {
  std::string out;
  for (const char c : text)
    out += c == '[' || c == ']' || c == ':' || c == '\\' ? std::string("\\") + c : std::string(1, c);
  return out;
}

std::string zsh_flag(const Command& command, const Flag& f) {
  const bool again = is_repeatable(f.given);
  const std::string shown = "[" + zsh_text(help(command, f)) + "]";
  std::string action;
  if (!f.value.empty()) {
    const std::string known = joined_words(command, f);
    action = std::string(f.given == Given::optional ? "::" : ":") + zsh_text(f.value) + ":";
    if (f.type == Type::limit)
      action += "{compadd -S \"\" - " + known + "}";
    else if (!known.empty())
      action += f.given == Given::list ? " _sequence compadd - " + known : "(" + known + ")";
    if (f.type == Type::file) action += "_files";
  }
  const std::string repeat = again ? "*" : "";
  std::string out = " \\\n        " + in_quotes(repeat + "--" + std::string(f.name) + shown + action);
  if (f.letter) out += " \\\n        " + in_quotes(repeat + "-" + f.letter + shown + action);
  return out;
}

std::string zsh_operands(const Command& command) {
  const std::string_view first = operand_name(operands(command), 0);
  const std::string known = known_operands(command);
  if (!known.empty()) return " \\\n        " + in_quotes("1:" + std::string(first) + ":(" + known + ")");
  const std::size_t files = files_of(command);
  if (files == kAny) return " \\\n        '*:file:_files'";
  std::string out;
  for (std::size_t i = 0; i < files; ++i)
    out += " \\\n        " +
           in_quotes(std::to_string(i + 1) + ":" + std::string(operand_name(operands(command), i)) + ":_files");
  return out;
}

// What can follow the verb, or an action that has steps, with descriptions.
std::string zsh_choices(VerbId id, std::string_view action = {}) {
  std::string out;
  for (const std::string_view word : next_words(id, action)) {
    const bool has_steps = action.empty() && !next_words(id, word).empty();
    const auto row = std::ranges::find_if(actions_of(id), [&](const Action& a) {
      return action.empty() ? a.name == word : a.name == action && a.step == word;
    });
    out += " " + in_quotes(std::string(word) + ":" +
                           (has_steps ? joined(next_words(id, word), ",") : zsh_text(row->summary)));
  }
  return out;
}

std::string zsh_script() {
  std::string out =
      "#compdef weighbridge\n# zsh completion of weighbridge; made by 'weighbridge completion zsh'\n_weighbridge() {\n"
      "  local -a next\n  next=('help:explain a verb or an action'\n";
  for (const Verb& v : verbs()) out += "    " + in_quotes(std::string(v.name) + ":" + zsh_text(v.summary)) + "\n";
  out +=
      "  )\n"
      "  if (( CURRENT == 2 )); then\n"
      "    if [[ $PREFIX == -* ]]; then compadd -- --help --version; else _describe verb next; fi\n    return\n  fi\n"
      "  local explains=0 place=$words[2]\n  shift words\n  (( CURRENT-- ))\n"
      "  if [[ $place == help ]]; then\n    if (( CURRENT == 2 )); then\n      _describe verb next\n      return\n    "
      "fi\n"
      "    explains=1 place=$words[2]\n    shift words\n    (( CURRENT-- ))\n  fi\n"
      "  local fork\n  for fork in 1 2; do\n    next=()\n    case $place in\n";
  for (const Verb& v : verbs()) {
    if (actions_of(v.id).empty()) continue;
    out += "      " + in_quotes(v.name) + ") next=(" + zsh_choices(v.id) + ") ;;\n";
    for (const std::string_view action : next_words(v.id))
      if (!next_words(v.id, action).empty())
        out += "      " + in_quotes(std::string(v.name) + " " + std::string(action)) + ") next=(" +
               zsh_choices(v.id, action) + ") ;;\n";
  }
  out +=
      "    esac\n    (( $#next )) || break\n"
      "    if (( CURRENT == 2 )); then\n"
      "      if [[ $PREFIX == -* ]]; then compadd -- --help; else _describe action next; fi\n      return\n    fi\n"
      "    place+=\" $words[2]\"\n    shift words\n    (( CURRENT-- ))\n  done\n"
      "  (( explains )) && return\n"
      "  case $place in\n";
  for (const Command& command : commands()) {
    out += "    " + in_quotes(command.words()) + ")\n      _arguments -S";
    for (const Flag& f : flags())
      if (takes(command, f)) out += zsh_flag(command, f);
    out += zsh_operands(command) + "\n      ;;\n";
  }
  return out +
         "  esac\n}\nif [ \"$funcstack[1]\" = _weighbridge ]; then _weighbridge \"$@\"; else compdef _weighbridge "
         "weighbridge; fi\n";
}

// ---- fish ----

std::string fish_row(std::string_view condition, std::string_view rest) {
  return "complete -c weighbridge -n " + in_quotes(condition) + " " + std::string(rest) + "\n";
}

// The words are those of `command`, which has the same description as the others of `taken`.
std::string fish_flag(const Command& command, const Flag& f, const std::string& taken) {
  std::string out = "-l " + std::string(f.name);
  if (f.letter) out += std::string(" -s ") + f.letter;
  if (has_value(f)) out += f.type == Type::file ? " -r -F" : " -x";
  const std::string known = joined_words(command, f);
  if (!known.empty())
    out += " -a " +
           (f.given == Given::list && f.type != Type::limit ? "'(__fish_append , " + known + ")'" : "'" + known + "'");
  return fish_row("__weighbridge_in" + taken, out + " -d " + in_quotes(help(command, f)));
}

// One row for all commands where a flag has the same description.
std::string fish_flags() {
  std::string out;
  for (const Flag& f : flags()) {
    std::vector<std::pair<Command, std::string>> told;  // the first with a description, and all that share it
    for (const Command& command : commands()) {
      if (!takes(command, f)) continue;
      auto same = std::ranges::find_if(told, [&](const auto& one) { return help(one.first, f) == help(command, f); });
      if (same == told.end()) same = told.insert(told.end(), {command, ""});
      same->second += " \"" + command.words() + "\"";
    }
    for (const auto& [command, taken] : told) out += fish_flag(command, f, taken);
  }
  return out;
}

std::string fish_script() {
  std::string out =
      "# fish completion of weighbridge; made by 'weighbridge completion fish'\n"
      "function __weighbridge_words -d 'the words of the line that are no flags, nor values of flags'\n"
      "    set -l skip 0\n    set -l all (commandline -opc)\n"
      "    for word in $all[2..-1]\n        if test $skip = 1\n            set skip 0\n            continue\n        "
      "end\n"
      "        switch $word\n            case " +
      valued_flags(" ") +
      "\n                set skip 1\n            case '-*'\n            case '*'\n                echo $word\n"
      "        end\n    end\nend\n"
      "function __weighbridge_at -d 'whether the words are these'\n"
      "    set -l words (__weighbridge_words)\n    test \"$words\" = \"$argv[1]\"\nend\n"
      "function __weighbridge_in -d 'whether the words begin with one of these'\n"
      "    set -l words (__weighbridge_words)\n    for place in $argv\n"
      "        set -l length (count (string split ' ' -- $place))\n"
      "        test \"$words[1..$length]\" = $place; and return 0\n    end\n    return 1\nend\n"
      "function __weighbridge_files -d 'whether fewer than so many operands stand behind these words'\n"
      "    set -l words (__weighbridge_words)\n    set -l length (count (string split ' ' -- $argv[1]))\n"
      "    test \"$words[1..$length]\" = $argv[1]; and test (count $words) -lt (math $length + $argv[2])\nend\n"
      "complete -c weighbridge -f\n" +
      fish_row("__weighbridge_at \"\"", "-l help -d 'list verbs and exit statuses'") +
      fish_row("__weighbridge_at \"\"", "-l version -s V -d 'say which build this is'") +
      fish_row("__weighbridge_at \"\"", "-a help -d 'explain a verb or an action'");
  for (const Verb& v : verbs())
    out += fish_row("__weighbridge_at \"\"", "-a " + std::string(v.name) + " -d " + in_quotes(v.summary));
  for (const Fork& fork : forks())
    out += fish_row("__weighbridge_at \"" + fork.words + "\"", "-a '" + joined(fork.next) + "'");
  for (const Command& command : commands()) {
    const std::string known = known_operands(command);
    if (!known.empty()) out += fish_row("__weighbridge_at \"" + command.words() + "\"", "-a '" + known + "'");
    if (const std::size_t files = files_of(command); files > 0)
      // math of fish refuses numbers beyond 2^53.
      out += fish_row(
          "__weighbridge_files \"" + command.words() + "\" " + std::to_string(std::min<std::size_t>(files, 1000000)),
          "-F");
  }
  return out + fish_flags();
}

}  // namespace

std::string completion_script(std::string_view shell) {
  return shell == "bash" ? bash_script() : shell == "zsh" ? zsh_script() : fish_script();
}

}  // namespace weighbridge::cli
