// SPDX-License-Identifier: Apache-2.0
// Places on disk, and how a name is opened beneath a folder. Owns which links may be followed; leaves what the names
// are to the formats.
//
// The kinds that are not here fit the interface as they are. An archive is a folder: list() is its directory, open()
// gives a Source over a member's range of the archive's own Source (decoded, where it is deflated). A prefix on a
// network is a folder too, whose list() may be what an index names and whose open() gives a Source of ranges. Shards
// with an index need no kind of their own: the index is a file, and its shards are files beside it.
#pragma once
#include <memory>
#include <string>

#include "weighbridge/place.h"

namespace weighbridge::io {

// The place of an open file that `path` names: beside it is whatever its folder holds.
std::shared_ptr<const Place> place_beside(std::shared_ptr<const Source> file, std::string path);

// Opens a regular file at a relative path without ".." below `folder`; -1 and errno (EXDEV or ELOOP: a symbolic link
// leads out) otherwise. By openat2, which follows links that stay inside, or component by component, which follows
// none: for kernels and sandboxes without it.
int open_beneath_by_kernel(int folder, const std::string& relative) noexcept;
int open_beneath_by_hand(int folder, const std::string& relative);
// Where `folder` is a snapshot in a Hugging Face cache (models--x--y/snapshots/REVISION) and `relative` a link there
// that says "../../blobs/HASH": that blob. No link is followed, so that nobody can put another file there between
// looking and opening. -1 and errno (ELOOP: it is no such link) otherwise.
int open_cached_blob(int folder, const std::string& relative);

}  // namespace weighbridge::io
