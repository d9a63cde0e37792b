// SPDX-License-Identifier: Apache-2.0
// Help, completion scripts and manual pages, made from the tables.
#pragma once
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "actions.h"

namespace weighbridge::cli {

std::string_view summary() noexcept;      // what the command is for, in half a line
std::string_view purpose() noexcept;      // the same in a sentence or two
std::string_view conventions() noexcept;  // what applies to every verb, in paragraphs
std::string introduction();               // `weighbridge` alone
std::string overview();                   // `weighbridge --help`
std::string help_of_help();               // `weighbridge help help`
// `weighbridge VERB [ACTION] --help`. The help of a verb lists its actions. `brief`: that of -h.
std::string help_of(VerbId, const Action* = nullptr, bool brief = false);
// The help of each step of an action that has steps.
std::string help_of_steps(VerbId, std::string_view action);
std::string action_list(VerbId);

// The exit statuses of all verbs, and of one; sorted.
std::vector<ExitStatus> exit_statuses();
std::vector<ExitStatus> exit_statuses(VerbId);

// The completion script for "bash", "zsh" or "fish".
std::string_view completion_script(std::string_view shell);
// What can stand in place of the last of these words, which follow "weighbridge".
struct Completions {
  bool files = false;                                        // files too
  bool open = false;                                         // each word goes on without a blank
  std::vector<std::pair<std::string, std::string>> words{};  // with their descriptions
};
Completions completions(std::span<const std::string> typed);
// The same as the scripts read it.
std::string completion_text(std::span<const std::string> typed);

// Manual pages in roff. `date`: as the page shows it; empty for none.
std::string manual_page(std::string_view date);               // weighbridge(1)
std::string manual_page(const Verb&, std::string_view date);  // weighbridge-VERB(1)

}  // namespace weighbridge::cli
