// SPDX-License-Identifier: Apache-2.0
// What the command says of itself, made from the tables: help, completion scripts, the manual.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "actions.h"

namespace weighbridge::cli {

std::string_view summary() noexcept;      // what the command is for, in half a line
std::string_view purpose() noexcept;      // and in a sentence or two
std::string_view conventions() noexcept;  // what holds for every verb, in paragraphs
std::string introduction();               // `weighbridge` alone
std::string overview();                   // `weighbridge --help`
// `weighbridge VERB --help`; for a verb with actions they are listed, and each has a help of its own.
std::string help_of(VerbId, const Action* = nullptr);
// The same of each step of an action that has some.
std::string help_of_steps(VerbId, std::string_view action);
std::string action_list(VerbId);
std::string version_text();  // `weighbridge --version`

// The exit statuses of every verb together, and of one; sorted.
std::vector<ExitStatus> exit_statuses();
std::vector<ExitStatus> exit_statuses(VerbId);

// What a shell reads to complete a line: "bash", "zsh" or "fish".
std::string completion_script(std::string_view shell);

// Pages of the manual, in roff. `date` as the page shows it; empty: none.
std::string manual_page(std::string_view date);               // weighbridge(1)
std::string manual_page(const Verb&, std::string_view date);  // weighbridge-VERB(1)

}  // namespace weighbridge::cli
