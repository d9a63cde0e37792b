// SPDX-License-Identifier: Apache-2.0
// Detects the format of a place. Decides by this order: the content of a known format, then the content of another
// known kind of file, then the extension.
#pragma once
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "core/reading/format.h"
#include "weighbridge/error.h"
#include "weighbridge/place.h"

namespace weighbridge::registry {

struct Detected {
  const core::Format* format = nullptr;  // null: none, and `finding` says what the file is instead
  bool files = false;                    // read it with Format::read_files
  std::optional<Finding> finding{};
};

// `file` is the file of the place as it is to be read; null for a folder. `asked` is the format to read the place as;
// empty: detect it. Throws Error{misuse} if no readable format has that name, if a folder holds no model, or if a
// folder is to be read as a single-file format or the reverse; Error{io}.
Detected detect(const Place&, const Source* file, std::string_view asked);
// Detects one of several files, ignoring its name.
Detected detect(const Source&);
// The format of a file by its content alone; null: none.
const core::Format* format_of_content(const Source&);

// Recognizes common files that are not tensor files (archives, Git LFS pointers, HTML pages) and reports which kind it
// is.

// The finding for a file whose content alone identifies its kind, whatever its name; nullopt for all others.
std::optional<Finding> recognize(const core::Probe&);
// The finding for a file of another kind that its content and its extension show together; a format that is read could
// take it for its own.
std::optional<Finding> recognize_named(const core::Probe&);
// A folder of another format.
struct OtherFolder {
  std::string what;    // it is, and what to do with it
  bool holds = false;  // models, in the folders beneath it
};
// nullopt: nothing that is known.
std::optional<OtherFolder> other_folder(std::span<const std::string> listing);
// The rest of the line that starts with `key`, as in a Git LFS pointer, or empty if there is none.
std::string_view line_of(std::string_view text, std::string_view key);
// The finding for a file that nothing recognizes.
Finding unknown(const core::Probe&);

}  // namespace weighbridge::registry
