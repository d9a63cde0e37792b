// SPDX-License-Identifier: Apache-2.0
// Reads standard input; Ctrl-C ends the wait.
#pragma once
#include <cstddef>
#include <span>

namespace weighbridge::cli {

// Reads at most out.size() bytes, as soon as there are any; 0 at the end. Throws Cancelled after an interrupt, also
// while waiting, and Error io/read.
std::size_t read_standard_input(std::span<std::byte> out);

}  // namespace weighbridge::cli
