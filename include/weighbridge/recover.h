// SPDX-License-Identifier: Apache-2.0
/// \file
/// What a run that was killed while it published several files of a folder left there, and undoing it. Owns the
/// folder of this user's key; edits of a file in place are in weighbridge/edit.h.
///
/// A run that publishes several files lists them in a journal first (".weighbridge-<16 digits>.journal"). The next run
/// that writes into the folder undoes it by itself only if the journal was written with this user's key, belongs to
/// this user and cannot be written by others: a journal may also come with an archive. Any other journal stays, and so
/// do the files that it lists, until somebody trusts it or removes it.
#pragma once
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace weighbridge {

/// The folder of the key that this user's journals are marked with: "weighbridge" in $XDG_STATE_HOME, or in
/// ~/.local/state. Empty if there is none: no home, or a folder that is not this user's alone (mode 0700).
/// @param make creates it. The key in it is created with the first journal
std::string state_folder(bool make = false);

/// One step of undoing. Names are relative to the folder of the journal.
struct RecoveryStep {
  /// What is done.
  enum class Way : std::uint8_t {
    rename,    ///< `from` gets the name `to`, which is free
    exchange,  ///< `from` and `to` swap their names
    remove,    ///< the name `from` goes
    write      ///< `length` bytes of `from` get their old values, at `offset`
  };
  Way way = Way::rename;     ///< what is done
  std::string from{};        ///< a name
  std::string to{};          ///< the other name, for rename and exchange
  std::uint64_t offset = 0;  ///< write: of the first byte
  std::uint64_t length = 0;  ///< write: bytes
  bool operator==(const RecoveryStep&) const = default;
};
std::string_view name(RecoveryStep::Way) noexcept;  ///< "rename", "exchange", "remove", "write"

/// A journal that a killed run left in a folder, or that somebody put there.
struct LeftJournal {
  std::string path{};                 ///< of the journal
  bool own = false;                   ///< whether it is marked with this user's key, and owner and mode are right
  std::string why{};                  ///< why it is not undone by itself; empty if it is
  std::vector<RecoveryStep> steps{};  ///< what undoing does now, in order; empty if it cannot be undone
  bool undone = false;                ///< whether it was undone
};

/// The journals of killed runs in the folder. Changes nothing. Journals of running programs are left out.
/// @param with_steps whether to find the steps, for which each file that they list is looked up
/// @throws Error{io}
std::vector<LeftJournal> left_journals(const std::string& folder, bool with_steps = true);
/// Undoes what killed runs left half done in the folder, and removes the old files of those that were done.
/// @param trust_journal also undoes journals that are not this user's own. Their new files are not removed: they get
///   names of temporaries
/// @param before is called with all journals before anything is changed
/// @returns the journals, and which of them were undone
/// @throws Error{io}; "io/half-published", after undoing the others: a journal stays
std::vector<LeftJournal> recover_folder(const std::string& folder, bool trust_journal = false,
                                        const std::function<void(const std::vector<LeftJournal>&)>& before = {});

}  // namespace weighbridge
