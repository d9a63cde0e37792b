// SPDX-License-Identifier: Apache-2.0
// Places on disk, and opening a name beneath a folder. Owns which links may be followed.
#pragma once
#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "io/fd.h"
#include "weighbridge/place.h"

namespace weighbridge::io {

// The last component of a relative path, and the open folder that holds it.
struct Beneath {
  Fd held;          // empty: `folder` is the given folder
  int folder = -1;  // -1, with errno, if there is no such folder
  std::string name;
  std::size_t depth = 0;  // number of folders in between
};
// Looks up a relative path without ".." below `folder`, and follows no link.
Beneath look_beneath(int folder, const std::string& relative);

// The absolute path, so that a later chdir() does not change its meaning. The path as given if the current directory is
// unknown.
std::string anchored(const std::string& path);

// The place of an open file at `path`, which is anchored(), with the other files of its folder.
std::shared_ptr<const Place> place_beside(std::shared_ptr<const Source> file, std::string path);

// The place with other sources as these files of its folder; null: without that file.
using OtherFiles = std::map<std::string, std::shared_ptr<const Source>, std::less<>>;
std::shared_ptr<const Place> with_files(std::shared_ptr<const Place>, OtherFiles);
// The same with this text in one file.
std::shared_ptr<const Place> with_text(std::shared_ptr<const Place>, std::string name, std::string text);

// The files in a folder and in the folders below it, by their sorted names relative to it. Lists only links to blobs of
// a cache: any other link leads to a file that is listed anyway, or out of the folder. Follows no link to a folder. For
// a caller's own Place, lists only the files of list().
struct FilesBelow {
  std::vector<std::string> names;
  std::string left_out;  // a folder that cannot be listed, or the first name past a limit; empty: the list is complete
  std::vector<std::string> links{};  // some of the links that lead out of the folder; one to a folder ends in a slash
};
FilesBelow files_below(const Place&, std::size_t maximum, std::size_t deepest);

// Opens a regular file at a relative path without ".." below `folder`; on failure an empty one and errno (EXDEV or
// ELOOP: a symbolic link leads out). Links that stay inside are followed, and those to blobs of a cache. By hand, where
// the system cannot do that (os.h), it walks component by component and follows no links.
Fd open_beneath(int folder, const std::string& relative);
Fd open_beneath_by_hand(int folder, const std::string& relative);
// Opens the blob that a link points to, if `folder` is a snapshot in a Hugging Face cache
// (models--x--y/snapshots/REVISION) and `relative` is a link "../../blobs/HASH" in it. Follows no link, so that nobody
// can swap the file between the check and the open. On failure an empty one and errno (ELOOP: not such a link).
Fd open_cached_blob(int folder, const std::string& relative);

}  // namespace weighbridge::io
