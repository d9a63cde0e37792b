// SPDX-License-Identifier: Apache-2.0
// Temporary files and folders beside a target. Owns their names, the lock that marks a live one, and the removal of
// stale ones.
//
// A temporary is called ".<name>.weighbridge-<16 hex digits>.tmp" and its owner holds a lock (flock) on it. The system
// drops the lock of a killed process, so a temporary that can be locked is stale.
#pragma once
#include <functional>
#include <string>
#include <string_view>

#include "io/fd.h"

namespace weighbridge::io {

// Where a path leads once symbolic links are resolved; the file need not exist.
struct Target {
  std::string folder, name;  // name is one component
  std::string path() const { return join_path(folder, name); }
};
// Error{misuse} if the path cannot name a file; Error{io} for a loop of links.
Target resolve_target(const std::string& path);

// The folder, open for reading. Error io/open.
Fd open_folder(const std::string& folder);
// The folder of a file below `root`, opened without following a link below `root`. Error io/open.
Fd open_folder_beneath(const std::string& root, const std::string& file);
// Syncs the names in the folder. Error io/open, io/publish.
void sync_folder(const std::string& folder);

// Whether a folder entry has the name of a temporary.
bool is_temporary(std::string_view entry) noexcept;
// Whether a folder entry has the name of a journal (journal.h): ".weighbridge-<16 hex digits>.journal".
inline constexpr std::string_view kJournalEnding = ".journal";
bool is_journal(std::string_view entry) noexcept;
// Whether it ends in ".weighbridge-<16 hex digits>" and this ending.
bool has_our_digits(std::string_view entry, std::string_view ending) noexcept;
// Removes stale temporaries of `name` in the folder: files, or folders of files. Removes no folder while a
// journal exists, because an old file may be in it. Best effort; never throws.
void remove_stale(int folder, const std::string& name, os::Kind kind = os::Kind::file) noexcept;
// The same for the files of all names that `is_target` accepts, in one pass. `is_target` gets names as their
// temporaries spell them: shortened if too long.
void remove_stale_of(int folder, const std::function<bool(std::string_view name)>& is_target) noexcept;
// How temporaries of this name spell it.
std::string_view name_in_temporaries(std::string_view name) noexcept;

// A new name for a temporary of `name`.
std::string temporary_name(const std::string& name);
// The name for a temporary of `name` with the digits of another temporary.
std::string temporary_name_like(const std::string& name, std::string_view other);
// Opens and locks this file, so that it does not count as stale once it gets a temporary's name. Empty if it cannot be
// locked.
Fd lock_file(int folder, const std::string& name) noexcept;

struct Temporary {
  Fd fd;  // locked; for a file, open for reading and writing
  std::string name;
};
// A new, empty, locked file beside `target`, of mode `mode` less the umask. Error io/create.
Temporary create_temporary(int folder, const Target& target, unsigned mode);
// The same as a folder, for files that are published together. Error io/create.
Temporary create_temporary_folder(int folder, const Target& target, unsigned mode);
// Removes a folder that holds only files. Best effort.
void remove_folder(int folder, const std::string& name) noexcept;

}  // namespace weighbridge::io
