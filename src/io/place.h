// SPDX-License-Identifier: Apache-2.0
// Places on disk, and opening a name beneath a folder. Owns which links may be followed.
#pragma once
#include <memory>
#include <string>

#include "io/fd.h"
#include "weighbridge/place.h"

namespace weighbridge::io {

// The folder that holds the last component of a relative path, and that component.
struct Beneath {
  Fd held;          // empty: `folder` is the given folder
  int folder = -1;  // -1, with errno, if there is no such folder
  std::string name;
  std::size_t depth = 0;  // number of folders in between
};
// Looks up a relative path without ".." below `folder`, and follows no link.
Beneath look_beneath(int folder, const std::string& relative);

// The place of an open file at `path`, with the other files of its folder.
std::shared_ptr<const Place> place_beside(std::shared_ptr<const Source> file, std::string path);

// Opens a regular file at a relative path without ".." below `folder`; on failure -1 and errno (EXDEV or ELOOP: a
// symbolic link leads out). Uses openat2, which follows links that stay inside. Kernels and sandboxes without it are
// served component by component, without following links.
int open_beneath_by_kernel(int folder, const std::string& relative) noexcept;
int open_beneath_by_hand(int folder, const std::string& relative);
// Opens the blob that a link points to, if `folder` is a snapshot in a Hugging Face cache
// (models--x--y/snapshots/REVISION) and `relative` is a link "../../blobs/HASH" in it. Follows no link, so that nobody
// can swap the file between the check and the open. On failure -1 and errno (ELOOP: not such a link).
int open_cached_blob(int folder, const std::string& relative);

}  // namespace weighbridge::io
