// SPDX-License-Identifier: Apache-2.0
// Makes a Source from an open descriptor, for code in io that opens files in its own way.
#pragma once
#include <fcntl.h>

#include <memory>
#include <string>

#include "io/fd.h"
#include "weighbridge/source.h"

namespace weighbridge::io {

// `fd` is open for reading on the file at `path`. Error{misuse} if it is not a regular file.
std::shared_ptr<const Source> source_from_fd(Fd fd, std::string path, Access access = Access::positional);

// The flags to open a file for reading. With O_NONBLOCK, opening a FIFO returns at once instead of waiting for a
// writer; a regular file ignores it.
inline constexpr int kOpenToRead = O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY;

}  // namespace weighbridge::io
