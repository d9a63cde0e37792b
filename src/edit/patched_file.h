// SPDX-License-Identifier: Apache-2.0
// Changes some bytes of a file in place, so that a kill or a power failure leaves the old or the new bytes. Owns the
// journal beside the file, and undoing it. Callers decide which bytes to write.
//
// ".<name>.weighbridge-edit.journal" holds the old and the new bytes, and is on the disk before the file changes. While
// it exists, a change is incomplete: the next PatchedFile completes or undoes it. Once the change is on the disk, the
// journal is renamed to ".<name>.weighbridge-edit.undo", from which undo() takes the old bytes. Either is used only if
// it is this user's own (io/state_key.h), or trusted.
#pragma once
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>

#include "codecs/checksum.h"
#include "edit/held_file.h"
#include "weighbridge/edit.h"

namespace weighbridge::edit_files {

// Bytes to write in place of others. `length` differs from bytes.size() only if the range ends where the file does.
struct Patch {
  std::uint64_t offset = 0, length = 0;
  std::string bytes{};
};

// The bytes that a journal of a file with such a header may have.
inline std::uint64_t max_journal_size(const Limits& limits) noexcept {
  return 2 * std::min<std::uint64_t>(limits.header, UINT64_MAX / 4) + 4096;
}

class PatchedFile : public HeldFile {
 public:
  // Opens the file and settles what a killed run left. `maximum` bounds the bytes that a journal holds. Error as
  // HeldFile, and io/journal: a journal that cannot be used.
  PatchedFile(const std::string& path, std::uint64_t maximum, Trust = Trust::own, const Show& show = {});

  // How the incomplete change of a killed run was resolved.
  Edited::Left left() const noexcept { return left_; }
  // Makes the change: journal, write, sync, read back, `check`. Error io/write, io/read-back, io/publish, or what
  // `check` throws; then the file is as it was, unless the message says that the journal is left.
  void apply(const Patch&, const std::function<void()>& check = {});
  // What would revert the last change: the old bytes that apply() kept. Error misuse/no-undo if there are none, or
  // the file has changed since.
  Patch undo() const;
  std::string undo_path() const { return io::join_path(target_.folder, undo_name_); }

  struct Journal;

 private:
  PatchedFile(const std::string& path, std::uint64_t maximum, Trust, const Show&, Edited::Left);
  void settle(const Show&);
  JournalFile journal_file(const std::string& name) const;
  std::shared_ptr<const Journal> load(const std::string& name) const;
  // Whether the file has this size, and a range of it this hash.
  bool holds(std::uint64_t size, std::uint64_t offset, std::uint64_t length, const codecs::Hash128& hash) const;
  bool holds_new(const Journal&) const;
  bool holds_old(const Journal&) const;
  bool is_mixed(const Journal&) const;
  void put(std::uint64_t offset, std::span<const std::byte> bytes, std::uint64_t size);
  void restore(const Journal&);

  std::uint64_t maximum_ = 0;
  Trust trust_ = Trust::own;
  std::string journal_name_, undo_name_;
  Edited::Left left_ = Edited::Left::nothing;
};

}  // namespace weighbridge::edit_files
