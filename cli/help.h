// SPDX-License-Identifier: Apache-2.0
// What the command says of itself, made from the tables.
#pragma once
#include <string>

#include "flags.h"

namespace weighbridge::cli {

std::string introduction();   // `weighbridge` alone
std::string overview();       // `weighbridge --help`
std::string help_of(VerbId);  // `weighbridge VERB --help`
std::string version_line();

}  // namespace weighbridge::cli
