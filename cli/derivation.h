// SPDX-License-Identifier: Apache-2.0
// How a file was made: verify --derived-from checks it, and convert --statement says it.
#pragma once
#include <string>

#include "session.h"
#include "weighbridge/convert.h"

namespace weighbridge::cli {

Status verify_derivation(Session&);
// After the conversion. `source` is the model before the options of the command line applied.
void write_statement_of(Session&, const Model& source, const std::string& output);

}  // namespace weighbridge::cli
