// SPDX-License-Identifier: Apache-2.0
// What follows from the rows of a verb's actions and of its flags. Leaves the work to the verbs' files.
#pragma once
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "flags.h"

namespace weighbridge::cli {

// The rows of a verb; empty where it has no actions.
std::span<const Action> actions_of(VerbId) noexcept;
// Its words: "quality-gate runtime-smoke".
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

// Whether the action takes the flag, or the verb where there is none: of a verb with actions, what all of them take.
bool takes_flag(VerbId, const Action*, const Flag&) noexcept;
// Whether it cannot do without the flag.
bool needs_flag(VerbId, const Action*, const Flag&) noexcept;
// What the flag does there, with its default.
std::string help_of(const Flag&, VerbId, const Action* = nullptr);
// The other flag without which this one has no effect there; FlagId::none where it stands by itself.
FlagId companion_of(const Flag&, VerbId, const Action*) noexcept;
// Operands as the usage line shows them, and what the first must be one of.
std::string_view operands_of(VerbId, const Action*) noexcept;
std::vector<std::string_view> operand_words(VerbId, const Action*);
// "weighbridge slm adapter BASE DELTAS --kind KIND -o OUT", without the flags that can be left out.
std::string usage_of(VerbId, const Action*);

}  // namespace weighbridge::cli
