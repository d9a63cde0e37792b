// SPDX-License-Identifier: Apache-2.0
// The array of all formats. Formats do not register themselves: the array lists each one.
#pragma once
#include <span>
#include <string_view>

#include "core/reading/format.h"

namespace weighbridge::registry {

// Every format, of files and of folders, in the order in which detection tries them.
std::span<const core::Format* const> formats() noexcept;
// Finds a format by name; null if there is none.
const core::Format* find(std::string_view name) noexcept;
// Finds a format by extension (lower case, without the dot); null if none claims it.
const core::Format* find_by_extension(std::string_view extension) noexcept;

}  // namespace weighbridge::registry
