// SPDX-License-Identifier: Apache-2.0
// The one array of formats. Nothing registers itself: a format is in the program because its line is here.
#pragma once
#include <span>
#include <string_view>

#include "core/format.h"

namespace weighbridge::registry {

// Every format, of files and of folders, in the order in which their contents are tried.
std::span<const core::Format* const> formats() noexcept;
// By its name; null if there is none.
const core::Format* find(std::string_view name) noexcept;
// By an extension, lower case, without the dot; null if none claims it.
const core::Format* find_by_extension(std::string_view extension) noexcept;

}  // namespace weighbridge::registry
