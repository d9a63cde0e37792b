// SPDX-License-Identifier: Apache-2.0
// Changes several names of a folder together, and undoes the change if the process is killed. Owns the old files that
// are set aside, and undoing. Callers write the new files first and decide the order. The journal's bytes are in
// journal_text.h.
//
// The journal ".weighbridge-<16 hex digits>.journal" lists every name before any of them changes. While it exists, the
// next run that writes into the folder undoes the change, if the journal is this user's own (recover()). Once it is
// empty or gone, the new files stay and the old ones, ".<name>.weighbridge-<16 hex digits>.old", are removed.
//
// Undoing only renames: new files get names of temporaries again, old files get their own names back.
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
  static constexpr std::size_t kMaxChanges = JournalText::kMaxEntries;

  struct Change {
    std::string name;  // beneath the folder
    std::string
        new_path{};  // where the new file is, beneath the folder, in or as a temporary; empty: only remove the name
    bool replace = true;  // false: an existing file stays, and the rename fails
  };
  // Takes the folder's lock, holds off abandon_all() until it is destroyed, and writes and syncs the journal. Error
  // io/publish, io/lock; io/half-published if a remaining journal lists one of the names.
  Journal(const std::string& folder, std::vector<Change> changes);
  ~Journal();  // undoes the change, unless commit() was called
  Journal(const Journal&) = delete;
  Journal& operator=(const Journal&) = delete;

  // Sets all old files aside, in the order of the changes, and syncs the folder. Error io/publish; misuse/output-kind
  // if a name is a folder.
  void set_aside();
  // Moves the new file of one change to its name, with the old one's permission bits. Without set_aside(), old and new
  // exchange names in one step where the filesystem can do that. Returns 0, or -1 with errno; EEXIST if the name is
  // taken and may not be replaced.
  int move(std::size_t change) noexcept;
  // Call once the new names are on the disk. Removes the journal, which makes them final, and then the old files. Error
  // io/publish.
  void commit();

 private:
  void write();

  std::string path_;
  FolderLock folder_lock_;
  NamesChange changing_;  // declared after the folder's lock, so that it is taken second
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
// for why_not_undone(); null if all are.
const JournalEntry* undo(int folder, const std::vector<JournalEntry>&) noexcept;
// Removes the new files of undone changes, which now have names of temporaries.
void remove_new_files(int folder, const std::vector<JournalEntry>&) noexcept;

// A journal of a killed run that is not undone by itself.
struct Standing {
  std::string path, why;             // `why` as a clause
  std::vector<std::string> names{};  // that it lists, sorted
};
// Throws Error of kind io about a journal that the user may choose to trust. The hint says what trusting it allows:
// "recover" or "undo".
[[noreturn]] void refuse_journal(const std::string& file, std::string rule, std::string message,
                                 std::string purpose = "recover");

struct Recovered {
  bool did = false;  // whether anything changed
  std::vector<Standing> standing{};

  // Error io/half-published if one of them lists this name beneath the folder. Other names may still be written.
  void require_free(const std::string& folder, const std::string& name) const;
};
// Undoes the incomplete changes of this user's killed runs in the folder, and removes the old files of complete ones.
// Leaves alone what other users' runs left and what cannot be undone. Does nothing if there is no such folder, or if
// another process holds its lock for longer than `patience`. Error io/open.
Recovered recover(const std::string& folder, std::chrono::milliseconds patience = FolderLock::kPatience);

// What the name of a file ends with while a patch changes it (edit/applying.h), so that no program loads a mix.
inline constexpr std::string_view kApplying = ".weighbridge-applying";
// The files that a change in place (edit/patched_file.h) keeps beside the changed file.
enum class EditFile : std::uint8_t { journal, undo };
// ".<name>.weighbridge-edit.journal". A name that is too long is cut, and a hash stands for the rest.
std::string edit_file_name(const std::string& name, EditFile);
// The path of the journal that a killed change of the file at `path` left; empty if there is none.
std::string left_edit_journal(const std::string& path);

}  // namespace weighbridge::io
