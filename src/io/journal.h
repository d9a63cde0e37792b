// SPDX-License-Identifier: Apache-2.0
// Changes several names of a folder together, and undoes the change after a kill. Owns the old files that are set aside
// and the undoing; callers write the new files first and decide the order. The journal's bytes are in journal_text.h.
//
// The journal ".weighbridge-<16 hex digits>.journal" lists every name before any of them changes. While it exists, the
// change is undone by the next run that writes into the folder, if it is this user's own (recover()); once it is empty
// or gone, the new files stay and the old ones, ".<name>.weighbridge-<16 hex digits>.old", are removed.
//
// Undoing only renames: a new file gets the name of a temporary again, and an old one its own.
#pragma once
#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "io/abandon.h"
#include "io/folder_lock.h"
#include "io/journal_text.h"
#include "io/temporary.h"
#include "weighbridge/recover.h"

namespace weighbridge::io {

class Journal {
 public:
  static constexpr std::size_t kMostChanges = JournalText::kMostEntries;

  struct Change {
    std::string name;  // beneath the folder
    std::string
        fresh{};  // where the new file is, beneath the folder, in or as a temporary; empty: only remove the name
    bool replace = true;  // off: a file that has the name stays, and the caller's rename refuses it
  };
  // Takes the folder's lock, holds off abandon_all() until it is destroyed, gives new files the extended attributes of
  // the old ones (attributes.h), and writes and syncs the journal. Error io/publish, io/lock; io/half-published if a
  // journal that stays lists one of the names.
  Journal(const std::string& folder, std::vector<Change> changes);
  ~Journal();  // undoes what was done, unless commit() was called
  Journal(const Journal&) = delete;
  Journal& operator=(const Journal&) = delete;

  // Sets all old files aside, in the order of the changes, and syncs the folder. Error io/publish; misuse/output-kind
  // if a name is a folder.
  void set_aside();
  // Moves the new file of one change to its name, with the old one's permission bits. Without set_aside(), old and new
  // exchange names in one step where the filesystem can do that. Returns 0, or -1 with errno; EEXIST if the name is
  // taken and may not be replaced.
  int move(std::size_t change) noexcept;
  // The new names are on the disk. Removes the journal, which makes them final, and the old files. Error io/publish.
  void commit();

 private:
  void write();

  std::string path_;
  FolderLock turn_;
  NamesChange changing_;  // after the lock, for which it may wait
  Fd folder_, journal_;
  std::string name_;
  std::vector<JournalEntry> entries_;
  bool done_ = false;
};

// Why a change cannot be undone, as a clause; `error` is errno of undo().
std::string why_not_undone(const JournalEntry&, int error);
// What undoing these changes does now, in order. Leaves out those that cannot be undone, and sets `blocked` to why, for
// one of them. Error io/open.
std::vector<RecoveryStep> steps_to_undo(int folder, const std::vector<JournalEntry>&, std::string& blocked);
// Does it. The first change is undone last, because without the first file the others are not a model. Every step may
// be the last one before a kill: it can begin again at any point. Returns the entry that cannot be undone, with errno
// (EEXIST: another file has the name; ESTALE: the old file has other bytes); null if all are.
const JournalEntry* undo(int folder, const std::vector<JournalEntry>&) noexcept;
// Removes the new files of undone changes, which have the names of temporaries again.
void remove_fresh(int folder, const std::vector<JournalEntry>&) noexcept;

// A journal that a killed run left, and that stays.
struct Standing {
  std::string path, why;             // `why` as a clause
  std::vector<std::string> names{};  // that it lists, sorted
};
// Throws Error of kind io about a journal that might be trusted. The hint has what the journal is for: "recover" or
// "undo".
[[noreturn]] void refuse_journal(const std::string& file, std::string rule, std::string message,
                                 std::string purpose = "recover");

struct Recovered {
  bool did = false;  // whether anything changed
  std::vector<Standing> standing{};

  // Error io/half-published if one of them lists this name beneath the folder. Others may be written.
  void require_free(const std::string& folder, const std::string& name) const;
};
// Undoes what this user's killed runs left half done in the folder, and removes the old files of those that were done.
// What others left, and what cannot be undone, stays, and so does everything while another process keeps the folder
// locked for longer than `patience`. Error io/open. Does nothing if there is no such folder.
Recovered recover(const std::string& folder, std::chrono::milliseconds patience = FolderLock::kPatience);

// The files that a change in place (edit/patched_file.h) keeps beside the changed file.
enum class EditFile : std::uint8_t { journal, undo };
// ".<name>.weighbridge-edit.journal". A name that is too long is cut, and a hash stands for the rest.
std::string edit_file_name(const std::string& name, EditFile);
// The path of the journal that a killed change of the file at `path` left; empty if there is none.
std::string left_edit_journal(const std::string& path);

}  // namespace weighbridge::io
