// SPDX-License-Identifier: Apache-2.0
// completion: prints the completion script of a shell. The scripts ask the command itself what can come next, each time
// that the tab key is pressed: `weighbridge __complete WORD... CURRENT` prints what to do with the words on its first
// line, and then each word with its description behind a tab.
#include <algorithm>
#include <filesystem>

#include "arguments.h"
#include "help.h"
#include "session.h"
#include "weighbridge/json.h"

namespace weighbridge::cli {
namespace {

constexpr std::string_view kBash = R"(# bash completion of weighbridge; made by 'weighbridge completion bash'
_weighbridge() {
  local kind word
  COMPREPLY=()
  while IFS=$'\t' read -r word _; do
    if [ -z "$kind" ]; then kind="$word"; else COMPREPLY+=("$word"); fi
  done < <(command weighbridge __complete "${COMP_WORDS[@]:1:COMP_CWORD}" 2> /dev/null)
  case "$kind" in
    files) compopt -o default ;;
    open) compopt -o nospace ;;
  esac
}
complete -F _weighbridge weighbridge
)";
constexpr std::string_view kZsh = R"(#compdef weighbridge
# zsh completion of weighbridge; made by 'weighbridge completion zsh'
_weighbridge() {
  local -a told next
  told=("${(@f)$(command weighbridge __complete "${(@Q)words[2,CURRENT-1]}" "$PREFIX" 2> /dev/null)}")
  case $told[1] in
    files) _files ;;
    words|open)
      local one
      for one in "${(@)told[2,-1]}"; do next+=("${${one%%$'\t'*}//:/\\:}:${one#*$'\t'}"); done
      if [[ $told[1] == open ]]; then _describe word next -S ''; else _describe word next; fi ;;
  esac
}
if [ "$funcstack[1]" = _weighbridge ]; then _weighbridge "$@"; else compdef _weighbridge weighbridge; fi
)";
constexpr std::string_view kFish = R"(# fish completion of weighbridge; made by 'weighbridge completion fish'
function __weighbridge_complete
    set -l words (commandline -opc)
    set -l told (command weighbridge __complete $words[2..-1] (commandline -ct) 2> /dev/null)
    if test "$told[1]" = files
        __fish_complete_path (commandline -ct)
    else
        string join \n -- $told[2..-1]
    end
end
complete -c weighbridge -f -a '(__weighbridge_complete)'
)";

constexpr std::string_view kHelp = "explain a verb or an action";

bool has_value(const Flag& flag) { return !flag.value.empty() && flag.given != Given::optional; }

bool is_spelled(const Flag& flag, std::string_view word) {
  return word == "--" + std::string(flag.name) || (flag.letter && word == std::string("-") + flag.letter);
}

// How many operands, from the first on, are files; kAny: all of them.
std::size_t files_of(std::string_view operands) {
  constexpr std::size_t kMaxListed = 3;  // no usage line names more operands one by one
  std::size_t count = 0;
  while (count < std::min(operand_count(operands).maximum, kMaxListed) &&
         operand_is_file(operand_name(operands, count)))
    ++count;
  return count == kMaxListed ? kAny : count;
}

class Completer {
 public:
  explicit Completer(std::span<const std::string> typed) : current_(typed.empty() ? "" : typed.back()) {
    for (const std::string& word : typed.first(typed.size() - std::min<std::size_t>(typed.size(), 1))) read(word);
    if (current_ == "=") current_.clear();  // bash makes it a word of its own
  }

  Completions complete() {
    if (flag_ != nullptr) {
      value(flag_of(*flag_, id_, action_), current_);
    } else if (const std::size_t equals = current_.find('='); current_.starts_with("--") && equals != current_.npos) {
      const auto named = [&](const Flag& each) { return is_spelled(each, current_.substr(0, equals)); };
      const auto found = std::ranges::find_if(flags(), named);
      if (found != flags().end()) value(flag_of(*found, id_, action_), current_.substr(equals + 1));
    } else if (current_.starts_with('-')) {
      if (depth_ == 0) add("--version", "say which build this is");
      if (id_ == VerbId::none || explains_) add("--help", "list verbs and exit statuses");
      for (const Flag& each : flags())
        if (!explains_ && id_ != VerbId::none && takes_flag(id_, action_, each))
          add("--" + std::string(each.name), help_of(each, id_, action_));
    } else {
      next();
    }
    return std::move(out_);
  }

 private:
  // Follows one word before the current one.
  void read(const std::string& word) {
    if (word == "=") return;
    if (flag_ != nullptr) {
      flag_ = nullptr;
    } else if (word.size() > 1 && word[0] == '-') {
      const auto named = [&](const Flag& each) { return has_value(each) && is_spelled(each, word); };
      const auto found = std::ranges::find_if(flags(), named);
      if (found != flags().end()) flag_ = &*found;
    } else {
      enter(word);
    }
  }
  void enter(const std::string& word) {
    const auto called = [&](const Action& each) {
      return step_.empty() ? each.name == word : each.name == step_ && each.step == word;
    };
    ++depth_;
    if (id_ == VerbId::none) {
      std::error_code unknown;
      const Verb* const named = verb_named(word);
      const bool inspects = named == nullptr && !explains_ && std::filesystem::exists(word, unknown);
      if (named != nullptr || inspects) id_ = inspects ? VerbId::inspect : named->id;
      explains_ = explains_ || word == "help";
      lost_ = id_ == VerbId::none && word != "help";
    } else if (action_ != nullptr || actions_of(id_).empty()) {
      ++operands_;
    } else if (const auto found = std::ranges::find_if(actions_of(id_), called); found == actions_of(id_).end()) {
      lost_ = true;
    } else if (step_.empty() && !found->step.empty()) {
      step_ = word;
    } else {
      action_ = &*found;
    }
  }

  // Words that can follow, or files.
  void next() {
    if (lost_) return;
    if (id_ == VerbId::none) {
      for (const Verb& each : verbs()) {
        add(each.name, each.summary);
        for (const std::string_view alias : split_words(each.aliases))
          add(alias, "the same as " + std::string(each.name));
      }
      if (!explains_) add("help", kHelp);
      out_.files = out_.words.empty() && !explains_;  // a file is inspected
    } else if (action_ == nullptr && !actions_of(id_).empty()) {
      for (const std::string_view word : next_words(id_, step_)) add(word, summary_of(word));
    } else if (explains_) {
      return;
    } else if (const auto known = operand_words(id_, action_); !known.empty()) {
      for (const std::string_view word : known)
        if (operands_ == 0) add(word, {});
    } else {
      out_.files = operands_ < files_of(operands_of(id_, action_));
    }
  }
  std::string_view summary_of(std::string_view word) const {
    for (const Action& each : actions_of(id_))
      if (step_.empty() ? each.name == word && each.step.empty() : each.name == step_ && each.step == word)
        return each.summary;
    return {};
  }

  void value(const Flag& flag, std::string_view begun) {
    if (flag.type == Type::file) out_.files = true;
    out_.open = flag.type == Type::limit;
    const std::size_t comma = flag.given == Given::list ? begun.rfind(',') : begun.npos;
    const std::size_t kept = current_.size() - begun.size() + (comma == begun.npos ? 0 : comma + 1);
    for (const std::string_view word : words(flag))
      add(current_.substr(0, kept) + std::string(word) + (out_.open ? "=" : ""), {});
  }
  void add(std::string_view word, std::string_view says) {
    if (word.starts_with(current_)) out_.words.emplace_back(word, says);
  }

  std::string current_;
  const Flag* flag_ = nullptr;  // whose value comes next
  VerbId id_ = VerbId::none;
  std::string step_;  // the action that has steps, before its step
  const Action* action_ = nullptr;
  bool explains_ = false, lost_ = false;  // behind "help"; behind a word that is no verb or action
  std::size_t depth_ = 0, operands_ = 0;
  Completions out_;
};

}  // namespace

std::string_view completion_script(std::string_view shell) {
  return shell == "bash" ? kBash : shell == "zsh" ? kZsh : kFish;
}

Completions completions(std::span<const std::string> typed) { return Completer(typed).complete(); }

std::string completion_text(std::span<const std::string> typed) {
  const Completions found = completions(typed);
  std::string out = found.files ? "files\n" : found.open ? "open\n" : "words\n";
  for (const auto& [word, says] : found.words) out.append(word).append("\t").append(says).append("\n");
  return out;
}

Status run_completion(Session& session) {
  const std::string& shell = session.args.operands.front();
  const std::string script(completion_script(shell));
  session.json ? session.object(completion_to_json(shell, script)) : session.out.text(script);
  return Status::done;
}

}  // namespace weighbridge::cli
