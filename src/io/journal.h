// SPDX-License-Identifier: Apache-2.0
// Changes several names of a folder together, and undoes the change after a kill. Owns the journal, the old files that
// are set aside, and the undoing; callers write the new files first and decide the order.
//
// The journal ".weighbridge-<16 hex digits>.journal" lists every name before any of them changes. While it exists, the
// change is undone by the next run that writes into the folder; once it is empty or gone, the new files stay and the
// old ones,
// ".<name>.weighbridge-<16 hex digits>.old", are removed.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "io/abandon.h"
#include "io/folder_lock.h"
#include "io/temporary.h"

namespace weighbridge::io {

class Journal {
 public:
  struct Change {
    std::string name;     // beneath the folder
    std::string fresh{};  // where the new file is, beneath the folder; empty: the name is only removed
    bool replace = true;  // off: a file that has the name stays, and the caller's rename refuses it
  };
  // Takes the folder's lock, holds off abandon_all() until it is destroyed, and writes and syncs the journal. Error
  // io/publish, io/lock.
  Journal(const std::string& folder, std::vector<Change> changes);
  ~Journal();  // undoes what was done, unless commit() was called
  Journal(const Journal&) = delete;
  Journal& operator=(const Journal&) = delete;

  // Sets all old files aside, in the order of the changes, and syncs the folder. Error io/publish; misuse/output-kind
  // if a name is a folder.
  void set_aside();
  // Moves the new file of one change to its name, with the old one's permissions. Without set_aside(), old and new
  // exchange names in one step where the filesystem can do that. Returns 0, or -1 with errno; EEXIST if the name is
  // taken and may not be replaced.
  int move(std::size_t change) noexcept;
  // The new names are on the disk. Removes the journal, which makes them final, and the old files. Error io/publish.
  void commit();

  struct Entry {
    std::string name, fresh;
    std::string aside;        // directly in the folder; empty if the name was free
    std::uint64_t inode = 0;  // of the new file
    std::uint64_t old_inode = 0;
    bool replace = true;
  };

 private:
  void write();

  std::string path_;
  FolderLock turn_;
  NamesChange changing_;  // after the lock, for which it may wait
  Fd folder_, journal_;
  std::string name_;
  std::vector<Entry> entries_;
  bool done_ = false;
};

// Undoes what killed runs left half done in the folder, and removes the old files of those that were done. Error
// io/publish if that is impossible, io/lock. Returns false if there was nothing to do, or no such folder.
bool recover(const std::string& folder);

// The files that a change in place (edit/patched_file.h) keeps beside the changed file.
enum class EditFile : std::uint8_t { journal, undo };
// ".<name>.weighbridge-edit.journal". A name that is too long is cut, and a hash stands for the rest.
std::string edit_file_name(const std::string& name, EditFile);
// The path of the journal that a killed change of the file at `path` left; empty if there is none.
std::string left_edit_journal(const std::string& path);

}  // namespace weighbridge::io
