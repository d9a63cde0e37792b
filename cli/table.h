// SPDX-License-Identifier: Apache-2.0
// The table that inspect prints, aligned by display width.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "groups.h"
#include "output.h"
#include "weighbridge/json.h"
#include "weighbridge/model.h"

namespace weighbridge::cli {

inline constexpr std::string_view kGap = "  ";  // between columns

// What inspect prints besides the rows, and how.
struct Listing {
  const Inspection& in;
  const std::vector<NameGroup>* groups = nullptr;  // in place of the tensors, of which each is the first of a group
  bool wide = false;                               // on a terminal: cut nothing
  bool metadata = false;                           // all of it, in full
};
// Prints what the model is, and its metadata.
void print_summary(Output&, const Listing&);
// Prints a row for each tensor, under a heading. On a terminal, unless `wide`, each row fits one line: long names are
// cut in the middle, and columns are omitted. Returns the heads of these, "nan, inf"; not of the layout.
std::string print_rows(Output&, const Listing&);
// Prints totals by dtype.
void print_totals(Output&, const Inspection&);

}  // namespace weighbridge::cli
