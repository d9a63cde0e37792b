// SPDX-License-Identifier: Apache-2.0
// A source folder proven, and as a Model.
#pragma once
#include <string>

#include "chain/record.h"
#include "weighbridge/context.h"
#include "weighbridge/model.h"

namespace weighbridge::chain {

struct Validation {
  Record record;
  Report report;
  ReadRecord manifest;
  Model model;  // of what was read, where the report is valid; reading it again fails when a file has changed
};
// [reads] every byte once. Error: a manifest that is no record, or no folder.
Validation validate(const std::string& folder, double bound, const Context&);

// The validation record at `path`, which must be what validating the folder gives now, and accept it.
struct Validated {
  ReadRecord record;
  Validation now;
};
Validated read_validation(const std::string& path, const std::string& folder, const Context&);

}  // namespace weighbridge::chain
