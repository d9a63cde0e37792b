// SPDX-License-Identifier: Apache-2.0
// The door from an open descriptor to a Source, for those in io that open files in their own way.
#pragma once
#include <memory>
#include <string>

#include "io/fd.h"
#include "weighbridge/source.h"

namespace weighbridge::io {

// `fd` is open for reading, on the file that `path` names. Error{misuse} unless it is a regular file.
std::shared_ptr<const Source> source_from_fd(Fd fd, std::string path, Access access = Access::positional);

// Opens a regular file at a relative path without ".." below `folder`; -1 and errno (EXDEV or ELOOP: a symbolic link
// leads out) otherwise. By openat2, which follows links that stay inside, or component by component, which follows
// none: for kernels and sandboxes without it.
int open_beneath_by_kernel(int folder, const std::string& relative) noexcept;
int open_beneath_by_hand(int folder, const std::string& relative);

}  // namespace weighbridge::io
