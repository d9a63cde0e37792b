// SPDX-License-Identifier: Apache-2.0
// Owns the hint that memory which is about to be filled should come in large pages.
#pragma once
#include <cstddef>
#include <span>

namespace weighbridge::base {

// Call it before the memory is used for the first time. If the system follows the hint, it provides the memory in pages
// of 2 MiB instead of 4 KiB: the first use of a page costs as much as parsing the kilobyte that is read from it. Covers
// only whole large pages, so short memory is left as it is. The contents do not change.
void use_large_pages(std::span<std::byte>) noexcept;

}  // namespace weighbridge::base
