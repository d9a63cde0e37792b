// SPDX-License-Identifier: Apache-2.0
// Makes a Source from an open descriptor, for code in io that opens files in its own way.
#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "io/fd.h"
#include "weighbridge/source.h"

namespace weighbridge::io {

// `fd` is open for reading on the file at `path`. Error{misuse} if it is not a regular file. With `again`, which opens
// the same name as before (an empty one with errno if it cannot), the descriptor is closed while others are used: see
// descriptor.h. It is an error if the file is then another one, or has changed. `path` is for messages; `there` is
// Source::path(), which is anchored(path) if it is empty.
std::shared_ptr<const Source> source_from_fd(Fd fd, std::string path, Access access = Access::positional,
                                             std::function<Fd()> again = nullptr, std::string there = {});

// Opens the file at `path` for reading. Waits while an edit in place has exclusive access. Error io/open;
// misuse/not-a-file for what cannot be opened as a file.
Fd open_to_read(const std::string& path);
// How many names (hard links) the file of the source has; 1 if it has no path, or the system does not tell.
std::uint64_t names_of(const Source&);
// Reads through a duplicate of `fd`, which the caller keeps. Error as source_from_fd(), and io/open.
std::shared_ptr<const Source> source_over(const Fd& fd, std::string path);

}  // namespace weighbridge::io
