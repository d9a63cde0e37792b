// SPDX-License-Identifier: Apache-2.0
// Which format a place is of. Owns the order of the evidence: what the content says, then what other kinds of file it
// is known to be, then what its extension claims.
#pragma once
#include <optional>
#include <string_view>

#include "core/format.h"
#include "weighbridge/error.h"
#include "weighbridge/place.h"

namespace weighbridge::registry {

struct Detected {
  const core::Format* format = nullptr;  // null: none, and `finding` says what the file is instead
  bool files = false;                    // to be read by Format::read_files
  std::optional<Finding> finding{};
};

// `asked` is the name of the format to read the place as; empty: find out. Throws Error{misuse} for a name that no
// readable format has, for a folder that holds no model and for one that is asked for as a format of one file, or the
// reverse; Error{io}.
Detected detect(const Place&, std::string_view asked);
// Of one file of several: what its name says does not count.
Detected detect(const Source&);

}  // namespace weighbridge::registry
