// SPDX-License-Identifier: Apache-2.0
// Help, completion scripts and manual pages, made from the tables.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "actions.h"

namespace weighbridge::cli {

std::string_view summary() noexcept;      // what the command is for, in half a line
std::string_view purpose() noexcept;      // the same in a sentence or two
std::string_view conventions() noexcept;  // what applies to every verb, in paragraphs
std::string introduction();               // `weighbridge` alone
std::string overview();                   // `weighbridge --help`
std::string help_of_help();               // `weighbridge help help`
// `weighbridge VERB [ACTION] --help`. The help of a verb lists its actions.
std::string help_of(VerbId, const Action* = nullptr);
// The help of each step of an action that has steps.
std::string help_of_steps(VerbId, std::string_view action);
std::string action_list(VerbId);

// The exit statuses of all verbs, and of one; sorted.
std::vector<ExitStatus> exit_statuses();
std::vector<ExitStatus> exit_statuses(VerbId);

// The completion script for "bash", "zsh" or "fish".
std::string completion_script(std::string_view shell);

// Manual pages in roff. `date`: as the page shows it; empty for none.
std::string manual_page(std::string_view date);               // weighbridge(1)
std::string manual_page(const Verb&, std::string_view date);  // weighbridge-VERB(1)

}  // namespace weighbridge::cli
