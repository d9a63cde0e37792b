// SPDX-License-Identifier: Apache-2.0
// completion: scripts for three shells, made from the tables.
#include <algorithm>

#include "nearest.h"
#include "session.h"
#include "weighbridge/json.h"

namespace weighbridge::cli {
namespace {

std::string joined_words(Choice choice) {
  std::string out;
  for (const std::string_view word : words(choice)) out += (out.empty() ? "" : " ") + std::string(word);
  return out;
}

std::string verb_names() {
  std::string out;
  for (const Verb& v : verbs()) out += (out.empty() ? "" : " ") + std::string(v.name);
  return out;
}

std::string joined(std::span<const std::string_view> list) {
  std::string out;
  for (const std::string_view word : list) out += (out.empty() ? "" : " ") + std::string(word);
  return out;
}

std::string flag_names(VerbId id) {
  std::string out;
  for (const Flag& f : flags())
    if (takes_flag(id, f)) out += (out.empty() ? "--" : " --") + std::string(f.name);
  return out;
}

// 'text' for a POSIX shell, zsh and fish: a single quote leaves and enters again.
std::string in_quotes(std::string_view text) {
  std::string out = "'";
  for (const char c : text) out += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return out + "'";
}

std::string bash_script() {
  std::string out =
      "# bash completion of weighbridge; made by 'weighbridge completion bash'\n_weighbridge() {\n"
      "  local current=\"${COMP_WORDS[COMP_CWORD]}\" previous=\"${COMP_WORDS[COMP_CWORD-1]}\" "
      "verb=\"${COMP_WORDS[1]}\"\n"
      "  COMPREPLY=()\n"
      "  if [ \"$COMP_CWORD\" -eq 1 ]; then\n    COMPREPLY=($(compgen -W '" +
      verb_names() + " --help --version' -- \"$current\"))\n    return\n  fi\n  case \"$previous\" in\n";
  for (const Flag& f : flags()) {
    if (f.takes == Takes::nothing || f.takes == Takes::optional_value) continue;
    out += "    --" + std::string(f.name) + (f.letter ? std::string("|-") + f.letter : "") + ") ";
    const std::string known = joined_words(f.choice);
    if (!known.empty()) out += "COMPREPLY=($(compgen -W '" + known + "' -- \"$current\")); ";
    if (f.choice == Choice::file) out += "COMPREPLY=($(compgen -f -- \"$current\")); ";
    out += "return ;;\n";
  }
  out += "  esac\n  local known=''\n  case \"$verb\" in\n";
  for (const Verb& v : verbs()) out += "    " + std::string(v.name) + ") known='" + flag_names(v.id) + "' ;;\n";
  out += "  esac\n  ";
  for (const Verb& v : verbs())
    if (!v.first.empty())
      out += "if [ \"$verb\" = " + std::string(v.name) +
             " ] && [ \"$COMP_CWORD\" -eq 2 ]; then\n    COMPREPLY=($(compgen -W '" + joined(v.first) +
             "' -- \"$current\"))\n  el";
  out +=
      "if [[ \"$current\" == -* ]]; then\n"
      "    COMPREPLY=($(compgen -W \"$known\" -- \"$current\"))\n  else\n    COMPREPLY=($(compgen -f -- "
      "\"$current\"))\n  fi\n}\n"
      "complete -o filenames -F _weighbridge weighbridge\n";
  return out;
}

// _arguments reads brackets and colons in descriptions as its own.
std::string zsh_text(std::string_view text) {
  std::string out;
  for (const char c : text)
    out += c == '[' || c == ']' || c == ':' || c == '\\' ? std::string("\\") + c : std::string(1, c);
  return out;
}

std::string zsh_flag(const Flag& f) {
  const bool again = f.takes == Takes::values;
  const std::string help = "[" + zsh_text(f.help) + "]";
  std::string action;
  if (f.takes != Takes::nothing) {
    const std::string known = joined_words(f.choice);
    action = std::string(f.takes == Takes::optional_value ? "::" : ":") + zsh_text(f.value) + ":";
    if (!known.empty()) action += "(" + known + ")";
    if (f.choice == Choice::file) action += "_files";
  }
  const std::string repeat = again ? "*" : "";
  std::string out = " \\\n        " + in_quotes(repeat + "--" + std::string(f.name) + help + action);
  if (f.letter) out += " \\\n        " + in_quotes(repeat + "-" + f.letter + help + action);
  return out;
}

std::string zsh_script() {
  std::string out =
      "#compdef weighbridge\n# zsh completion of weighbridge; made by 'weighbridge completion zsh'\n_weighbridge() {\n"
      "  local -a verbs\n  verbs=(\n";
  for (const Verb& v : verbs()) out += "    " + in_quotes(std::string(v.name) + ":" + zsh_text(v.summary)) + "\n";
  out +=
      "  )\n  if (( CURRENT == 2 )); then\n    _describe verb verbs\n    return\n  fi\n  local verb=$words[2]\n"
      "  shift words\n  (( CURRENT-- ))\n  case $verb in\n";
  for (const Verb& v : verbs()) {
    out += "    " + std::string(v.name) + ")\n      _arguments -S";
    for (const Flag& f : flags())
      if (takes_flag(v.id, f)) out += zsh_flag(f);
    if (!v.first.empty()) out += " \\\n        '1:word:(" + joined(v.first) + ")'";
    if (v.most > (v.first.empty() ? 0 : 1)) out += " \\\n        '*:file:_files'";
    out += "\n      ;;\n";
  }
  return out +
         "  esac\n}\nif [ \"$funcstack[1]\" = _weighbridge ]; then _weighbridge \"$@\"; else compdef _weighbridge "
         "weighbridge; fi\n";
}

std::string fish_script() {
  std::string out = "# fish completion of weighbridge; made by 'weighbridge completion fish'\n";
  for (const Verb& v : verbs())
    out += "complete -c weighbridge -n __fish_use_subcommand -f -a " + std::string(v.name) + " -d " +
           in_quotes(v.summary) + "\n";
  for (const Verb& v : verbs())
    if (!v.first.empty())
      out += "complete -c weighbridge -n '__fish_seen_subcommand_from " + std::string(v.name) + "' " +
             (v.most > 1 ? "" : "-f ") + "-a '" + joined(v.first) + "'\n";
  for (const Flag& f : flags()) {
    std::string seen;
    for (const Verb& v : verbs())
      if (takes_flag(v.id, f)) seen += " " + std::string(v.name);
    out += "complete -c weighbridge -n '__fish_seen_subcommand_from" + seen + "' -l " + std::string(f.name);
    if (f.letter) out += std::string(" -s ") + f.letter;
    const std::string known = joined_words(f.choice);
    if (f.takes != Takes::nothing && f.takes != Takes::optional_value)
      out += f.choice == Choice::file ? " -r -F" : " -x";
    if (!known.empty()) out += " -a '" + known + "'";
    out += " -d " + in_quotes(f.help) + "\n";
  }
  return out;
}

}  // namespace

Status run_completion(Session& session) {
  const std::string& shell = session.args.operands.front();
  std::string script;
  if (shell == "bash") script = bash_script();
  if (shell == "zsh") script = zsh_script();
  if (shell == "fish") script = fish_script();
  if (script.empty()) {
    const std::string_view near = nearest_word(shell, kShells);
    throw Misuse("there is no completion for " + quote(shell) +
                 (near.empty() ? ", only for " + joined(kShells) : ", the nearest is '" + std::string(near) + "'"));
  }
  session.json ? session.object(completion_to_json(shell, script)) : session.out.text(script);
  return Status::done;
}

}  // namespace weighbridge::cli
