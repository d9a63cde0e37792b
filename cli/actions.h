// SPDX-License-Identifier: Apache-2.0
// What the verbs slm, khlnary and evaluate can do, each action defined once, as verbs and flags are. Owns the table and
// the choice of a row by the words that were typed; leaves the doing to the verbs' files.
#pragma once
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "flags.h"

namespace weighbridge::cli {

struct Action {
  VerbId verb;
  std::string_view group;       // what it belongs to, for the list in its verb's help
  std::string_view name, step;  // the words behind the verb: "quality-gate" "runtime-smoke"; most have no step
  std::string_view operands;    // behind these words, as the usage line shows them: "BASE ADAPTER..."
  std::uint8_t least, most;     // how many operands; kAny: no upper bound
  std::string_view summary;     // one line, lower case, no full stop
  std::string_view about;       // more of it, in paragraphs as a verb's; empty: nothing
  FlagSet flags{}, needs{};     // those that it takes besides its verb's common ones; those it cannot do without
  std::string_view output{};    // what -o names; empty: it writes nothing
  std::string_view examples{};  // one a line
};

std::span<const Action> actions() noexcept;
// The rows of a verb; empty where it has no actions.
std::span<const Action> actions_of(VerbId) noexcept;
// Its words: "quality-gate runtime-smoke".
std::string words_of(const Action&);
// The words that can follow the verb, or the verb and an action that has steps.
std::vector<std::string_view> next_words(VerbId, std::string_view name = {});

// Whether the action, or the verb where there is none, takes the flag. A flag that some action of the verb names in its
// row is for those that name it; all others are for every action.
bool takes_flag(VerbId, const Action*, const Flag&) noexcept;
// What the flag does there.
std::string_view help_of(const Flag&, VerbId, const Action*) noexcept;
// "weighbridge slm adapter BASE DELTAS --kind KIND -o OUT", without the flags that can be left out.
std::string usage_of(VerbId, const Action*);

}  // namespace weighbridge::cli
