// SPDX-License-Identifier: Apache-2.0
// Temporary files and folders beside a target. Owns the pattern of their names, the lock that marks a live one, and
// removing stale ones.
//
// A temporary is called ".<name>.weighbridge-<16 hex digits>.tmp" and is locked (flock) by its owner for as long as
// that lives; the system drops the lock of a killed process. So a name of the pattern whose lock can be had belongs to
// nobody.
#pragma once
#include <string>
#include <string_view>

#include "io/fd.h"

namespace weighbridge::io {

// The file that a path stands for, symbolic links followed, the last of which may point to nothing yet.
struct Target {
  std::string folder, name;  // name is one component
  std::string path() const { return join_path(folder, name); }
};
// Error{misuse} where the path cannot name a file; Error{io} for a loop of links.
Target resolve_target(const std::string& path);

// The folder, open for reading. Error io/open.
Fd open_folder(const std::string& folder);
// Waits until the disk has the names in the folder. Error io/open, io/publish.
void sync_folder(const std::string& folder);

// Whether an entry of a folder has the name of some temporary.
bool is_temporary(std::string_view entry) noexcept;
// Removes temporaries of `name` in the folder that no living process owns: files, or with S_IFDIR folders of files.
// Best effort, never throws.
void remove_stale(int folder, const std::string& name, mode_t kind = S_IFREG) noexcept;

// A name that no temporary of `name` has yet had.
std::string temporary_name(const std::string& name);
// The file of this name, open and locked, so that it is not stale once it has a temporary's name; empty where that
// cannot be had.
Fd lock_file(int folder, const std::string& name) noexcept;

struct Temporary {
  Fd fd;  // locked; that of a file reads and writes
  std::string name;
};
// A new, empty, locked file beside `target`, of mode `mode` less the umask. Error io/create.
Temporary create_temporary(int folder, const Target& target, mode_t mode);
// The same as a folder, for files that get their place together. Error io/create.
Temporary create_temporary_folder(int folder, const Target& target, mode_t mode);
// Removes a folder that holds files alone. Best effort.
void remove_folder(int folder, const std::string& name) noexcept;

}  // namespace weighbridge::io
