// SPDX-License-Identifier: Apache-2.0
// Validates a source folder and reads it as a Model.
#pragma once
#include <string>

#include "chain/record.h"
#include "weighbridge/context.h"
#include "weighbridge/model.h"

namespace weighbridge::chain::internal {

struct Validation {
  Record record;
  Report report;
  ReadRecord manifest;
  Model model;  // what was read, if the report is valid; reading it again fails if a file has changed
};
// [reads] Reads every byte once. Throws if the folder is missing or its manifest is no valid record.
Validation validate(const std::string& folder, double bound, const Context&);

// A validation record that equals a new validation of the folder and accepts it.
struct Validated {
  ReadRecord record;
  Validation now;
};
Validated read_validation(const std::string& path, const std::string& folder, const Context&);

}  // namespace weighbridge::chain::internal
