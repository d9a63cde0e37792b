// SPDX-License-Identifier: Apache-2.0
// Lookups in the tables of verbs, actions and flags.
#include "actions.h"

#include <algorithm>

namespace weighbridge::cli {
namespace {

// Whether the set has the action, or the verb if `action` is null.
bool holds(const Where& where, VerbId id, const Action* action) noexcept {
  return action ? where.has(action->id) : where.has(id);
}

}  // namespace

std::span<const Action> actions_of(VerbId id) noexcept {
  const auto first = std::ranges::find(actions(), id, &Action::verb);
  const auto end = std::find_if(first, actions().end(), [&](const Action& a) { return a.verb != id; });
  return {first, end};
}

std::string words_of(const Action& action) {
  return std::string(action.name) + (action.step.empty() ? "" : " " + std::string(action.step));
}

std::string Command::words() const { return std::string(verb->name) + (action ? " " + words_of(*action) : ""); }

std::vector<Command> commands() {
  std::vector<Command> out;
  for (const Verb& v : verbs()) {
    if (actions_of(v.id).empty()) out.push_back({&v, nullptr});
    for (const Action& a : actions_of(v.id)) out.push_back({&v, &a});
  }
  return out;
}

std::vector<std::string_view> next_words(VerbId id, std::string_view name) {
  std::vector<std::string_view> out;
  for (const Action& action : actions_of(id)) {
    if (name.empty() && (out.empty() || out.back() != action.name)) out.push_back(action.name);
    if (!name.empty() && action.name == name && !action.step.empty()) out.push_back(action.step);
  }
  return out;
}

bool takes_flag(VerbId id, const Action* action, const Flag& flag) noexcept { return holds(flag.where, id, action); }

bool needs_flag(VerbId id, const Action* action, const Flag& flag) noexcept { return holds(flag.required, id, action); }

Flag flag_of(const Flag& flag, VerbId id, const Action* action) {
  Flag out = flag;
  for (const Own& own : flag.own) {
    if (!holds(own.where, id, action)) continue;
    out.help = own.help;
    if (own.info != nullptr) out.info = own.info;
    if (!own.standard.empty()) out.standard = own.standard;
    if (!own.words.empty()) out.words = own.words, out.listed = nullptr;
  }
  if (action && flag.id == FlagId::output) out.help = action->output;
  return out;
}

std::string help_of(const Flag& flag, VerbId id, const Action* action) {
  const Flag there = flag_of(flag, id, action);
  return std::string(there.help) + (there.standard.empty() ? "" : " (default: " + std::string(there.standard) + ")");
}

FlagId companion_of(const Flag& flag, VerbId id, const Action* action) noexcept {
  for (const Needed& needed : flag.needs)
    if (holds(needed.where, id, action)) return needed.flag;
  return FlagId::none;
}

std::string_view operands_of(VerbId id, const Action* action) noexcept {
  return action ? action->operands : verb(id).operands;
}

std::vector<std::string_view> operand_words(VerbId id, const Action* action) {
  return split_words(action ? action->operand_words : verb(id).operand_words);
}

std::string usage_of(VerbId id, const Action* action) {
  std::string out = "weighbridge " + std::string(verb(id).name);
  if (action) out += " " + words_of(*action);
  if (const std::string_view operands = operands_of(id, action); !operands.empty()) out += " " + std::string(operands);
  for (const Flag& flag : flags())
    if (needs_flag(id, action, flag))
      out += (flag.letter ? std::string(" -") + flag.letter : " --" + std::string(flag.name)) + " " +
             std::string(flag.value);
  return out;
}

}  // namespace weighbridge::cli
