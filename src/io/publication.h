// SPDX-License-Identifier: Apache-2.0
// Publishing: finished files get their names, one alone or several of a folder together. Owns the order of the steps
// and of the locks, the temporary folder in which files wait, and the folders that an output makes. Callers write the
// files (AtomicFile) and decide which of them belong together. Everything that publishes does it here, except edits in
// place (edit/patched_file.h) and the user's key.
//
// The order of locks:
//   1. the folder's lock (folder_lock.h). Waiting for it takes as long as somebody else's publishing.
//   2. the lock of the process (NamesChange), while names change. Nothing waits for another process or thread then:
//      FolderLock refuses a thread that has it.
// So only those wait who publish into the same folder.
#pragma once
#include <cstdint>
#include <functional>
#include <list>
#include <optional>
#include <string>
#include <vector>

#include "io/abandon.h"
#include "io/atomic_file.h"
#include "io/folder_lock.h"
#include "io/journal.h"

namespace weighbridge::io {

class Publication {
 public:
  enum class Way : std::uint8_t {
    together,   // sets all old files aside first: until the main one has its name, no old file may refer to a new one
    one_by_one  // files that do not refer to each other: old and new exchange names
  };

  // Takes the folder's lock (FolderLock); check the inputs after it. The first file that is added is the main one.
  explicit Publication(std::string folder, const std::function<bool()>& go_on = {});
  // The same for the folder of this file, which is the main one.
  explicit Publication(AtomicFile& main, const std::function<bool()>& go_on = {});

  // Error misuse/output-kind if it is neither in the folder nor below it.
  void add(AtomicFile&);
  // A file that waits in a temporary folder.
  void add(Journal::Change);
  // An existing file that goes when the others appear.
  void remove(const std::string& path);
  // Gives the files their names, the main one last, and removes the old ones. When a step fails, everything is
  // restored; after a kill, by the next run that writes into the folder. Error misuse/output-exists if a file that may
  // not be replaced is there; io/publish; what Journal throws. std::logic_error if a file is not synced.
  void publish(Way = Way::together);

 private:
  std::string folder_;
  FolderLock folder_lock_;
  std::vector<Journal::Change> changes_;
  std::vector<AtomicFile*> files_;  // null: the file of the change waits in a temporary folder
};

// A temporary folder beside an output, which holds only files. Removes those that killed runs left.
class Staging {
 public:
  // made: whether this run created `folder`. Else the new files may replace private ones, and only their owner sees
  // them while they are written. Error io/open, io/create.
  Staging(const std::string& folder, const std::string& name, bool made);
  ~Staging();  // removes it
  Staging(const Staging&) = delete;
  Staging& operator=(const Staging&) = delete;

  const std::string& name() const noexcept { return temporary_.name; }
  std::string path() const { return join_path(path_, name()); }
  // Publishes the folder itself, with all files, unless something has the name. 0, or -1 with errno.
  int rename_new(const std::string& name) noexcept;

 private:
  std::string path_;
  Fd where_;
  Temporary temporary_{};
  std::optional<OnAbandon> on_abandon_{};
};

// The folders that an output makes. Those that are empty go again, also if the process abandons its outputs, unless
// keep() is called.
class MadeFolders {
 public:
  MadeFolders() = default;
  ~MadeFolders();
  MadeFolders(const MadeFolders&) = delete;
  MadeFolders& operator=(const MadeFolders&) = delete;
  // Makes a folder, unless something has the name: then false. Error io/create.
  bool make(const std::string& path);
  // Syncs their names to the disk. Error io/publish.
  void sync() const;
  void keep() noexcept { kept_ = true; }

 private:
  std::vector<std::string> made_;  // outermost first
  std::list<OnAbandon> on_abandon_;
  bool kept_ = false;
};

}  // namespace weighbridge::io
