// SPDX-License-Identifier: Apache-2.0
// Questions about a verb's actions and flags, answered from the tables: operands, help, usage line.
#pragma once
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "flags.h"

namespace weighbridge::cli {

// The actions of a verb; empty if it has none.
std::span<const Action> actions_of(VerbId) noexcept;
// Name and step: "quality-gate runtime-smoke".
std::string words_of(const Action&);

// What a line can call for: a verb without actions, or one action of a verb.
struct Command {
  const Verb* verb;
  const Action* action;       // null for a verb without actions
  std::string words() const;  // "slm adapter"
};
std::vector<Command> commands();
// The words that can follow the verb, or the verb and an action that has steps.
std::vector<std::string_view> next_words(VerbId, std::string_view name = {});

// Whether the action takes the flag. Without an action: whether the verb does, or, for a verb with actions, whether all
// of them do.
bool takes_flag(VerbId, const Action*, const Flag&) noexcept;
// Whether the flag is required there.
bool needs_flag(VerbId, const Action*, const Flag&) noexcept;
// The flag as it is there: with its own help, words and default.
Flag flag_of(const Flag&, VerbId, const Action* = nullptr);
// What the flag does there, with its default.
std::string help_of(const Flag&, VerbId, const Action* = nullptr);
// The flag that must be given for this one to have an effect there; FlagId::none if there is none.
FlagId companion_of(const Flag&, VerbId, const Action*) noexcept;
// Operands as the usage line shows them, and the words that the first one must be one of.
std::string_view operands_of(VerbId, const Action*) noexcept;
std::vector<std::string_view> operand_words(VerbId, const Action*);
// "weighbridge slm adapter BASE DELTAS --kind KIND -o OUT", without optional flags.
std::string usage_of(VerbId, const Action*);

}  // namespace weighbridge::cli
