// SPDX-License-Identifier: Apache-2.0
// Which format a file is of. Owns the order of the evidence: what the content says, then what other kinds of file it is
// known to be, then what its extension claims.
#pragma once
#include <optional>
#include <string_view>

#include "core/format.h"
#include "weighbridge/error.h"
#include "weighbridge/source.h"

namespace weighbridge::registry {

struct Detected {
  const core::Format* format = nullptr;  // null: none, and `finding` says what the file is instead
  std::optional<Finding> finding{};
};

// `asked` is the name of the format to read the file as; empty: find out. Throws Error{misuse} for a name that no
// readable format has, Error{io}.
Detected detect(const Source&, std::string_view asked);

}  // namespace weighbridge::registry
