// SPDX-License-Identifier: Apache-2.0
// Detects the format of a place. Owns the order of the evidence: first the content as a known format, then the content
// as another known kind of file, then the extension.
#pragma once
#include <optional>
#include <string_view>

#include "core/format.h"
#include "weighbridge/error.h"
#include "weighbridge/place.h"

namespace weighbridge::registry {

struct Detected {
  const core::Format* format = nullptr;  // null: none, and `finding` says what the file is instead
  bool files = false;                    // read it with Format::read_files
  std::optional<Finding> finding{};
};

// `asked` names the format to read the place as; empty: detect it. Throws Error{misuse} when no readable format has
// that name, when a folder holds no model, and when a folder is asked for as a single-file format or the reverse;
// Error{io}.
Detected detect(const Place&, std::string_view asked);
// Detects one file of several. Its name does not count.
Detected detect(const Source&);
// The format that the content of a file shows; null: none, whatever its name says.
const core::Format* format_of_content(const Source&);

}  // namespace weighbridge::registry
