// SPDX-License-Identifier: Apache-2.0
// Every format, those of one file and those of a folder, and what a path is: the one place above the registry that
// knows both.
#pragma once
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "bundle/huggingface/folder.h"
#include "core/format.h"
#include "weighbridge/open.h"

namespace weighbridge::bundle {

// The registry's, in its order, then the folders'.
std::span<const core::Format* const> formats() noexcept;
// By its name; null if there is none.
const core::Format* find(std::string_view name) noexcept;

// The folder that `path` is; nullopt when it is to be opened as a file. Throws Error{misuse} for a directory that holds
// no model, and for one that is asked for as a format of one file, or the reverse.
std::optional<huggingface::Folder> folder_at(const std::string& path, const OpenOptions&);

}  // namespace weighbridge::bundle
