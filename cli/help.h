// SPDX-License-Identifier: Apache-2.0
// What the command says of itself, made from the tables.
#pragma once
#include <span>
#include <string>
#include <string_view>

#include "flags.h"

namespace weighbridge::cli {

std::string_view summary() noexcept;      // what the command is for, in half a line
std::string_view purpose() noexcept;      // and in a sentence or two
std::string_view conventions() noexcept;  // what holds for every verb
std::string introduction();               // `weighbridge` alone
std::string overview();                   // `weighbridge --help`
std::string help_of(VerbId);              // `weighbridge VERB --help`
std::string version_text();               // `weighbridge --version`

struct ExitStatus {
  std::string_view status, says;
};
std::span<const ExitStatus> exit_statuses() noexcept;

}  // namespace weighbridge::cli
