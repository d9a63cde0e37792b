// SPDX-License-Identifier: Apache-2.0
// Reads standard input, text by text or whole; Ctrl-C ends the wait. Owns the temporary file that holds all of it.
#pragma once
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string_view>

#include "arguments.h"
#include "weighbridge/source.h"

namespace weighbridge::cli {

// Reads at most out.size() bytes, as soon as there are any; 0 at the end. Throws Cancelled after an interrupt, also
// while waiting, and Error io/read.
std::size_t read_standard_input(std::span<std::byte> out);

// What messages call it.
inline constexpr std::string_view kStandardInput = "standard input";
// What messages call a file of the command line.
inline std::string_view input_name(std::string_view path) { return path == "-" ? kStandardInput : path; }

// If a file of the command line is -, makes the temporary file that will hold standard input, in the folder of TMPDIR
// or /tmp. It has no name, so that nothing is left of it however the process ends. Called before the process is
// confined, which could not make it later.
void prepare_standard_input(const Arguments&);

// All of standard input: if it is a file, it is read in place; otherwise it goes to that temporary file. At most
// `maximum` bytes; calls `progress` with the bytes read, and their total if it is known. Throws Error{limit},
// Error{io}, Cancelled.
std::shared_ptr<const Source> spool_standard_input(std::uint64_t maximum,
                                                   const std::function<bool(std::uint64_t, std::uint64_t)>& progress);

}  // namespace weighbridge::cli
