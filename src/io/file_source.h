// SPDX-License-Identifier: Apache-2.0
// The door from an open descriptor to a Source, for those in io that open files in their own way.
#pragma once
#include <fcntl.h>

#include <memory>
#include <string>

#include "io/fd.h"
#include "weighbridge/source.h"

namespace weighbridge::io {

// `fd` is open for reading, on the file that `path` names. Error{misuse} unless it is a regular file.
std::shared_ptr<const Source> source_from_fd(Fd fd, std::string path, Access access = Access::positional);

// How a file is opened to be read. O_NONBLOCK: opening a FIFO returns at once instead of waiting for a writer; it means
// nothing for a regular file.
inline constexpr int kOpenToRead = O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY;

}  // namespace weighbridge::io
