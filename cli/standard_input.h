// SPDX-License-Identifier: Apache-2.0
// Bytes that come through standard input, and an end to waiting for them.
#pragma once
#include <cstddef>
#include <span>

namespace weighbridge::cli {

// Some bytes as soon as there are any, at most out.size(); 0: that was all. Throws Cancelled when an interrupt was
// noted, also while nothing comes; Error io/read.
std::size_t read_standard_input(std::span<std::byte> out);

}  // namespace weighbridge::cli
