// SPDX-License-Identifier: Apache-2.0
// Owns the hint that memory which is about to be filled should come in large pages.
#pragma once
#include <cstddef>
#include <span>

namespace weighbridge::base {

// Call it before the memory is used for the first time. Where the system takes the hint, it hands out the memory in
// steps of 2 MiB instead of 4 KiB: entering a fresh page costs as much as parsing the kilobyte that is read from it.
// Covers only whole large pages, so short memory is left as it is. The contents do not change.
void use_large_pages(std::span<std::byte>) noexcept;

}  // namespace weighbridge::base
