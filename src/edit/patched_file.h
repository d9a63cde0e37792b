// SPDX-License-Identifier: Apache-2.0
// Changes some bytes of a file in place, so that a kill or a power failure leaves the old or the new bytes. Owns the
// journal beside the file, undoing it, and the lease that shows no other process has the file open. Callers decide
// which bytes to write.
//
// ".<name>.weighbridge-edit.journal" holds the old and the new bytes, and is on the disk before the file changes. While
// it exists, a change is incomplete: the next PatchedFile completes or undoes it. Once the change is on the disk, the
// journal is renamed to ".<name>.weighbridge-edit.undo", from which undo() takes the old bytes. Either is used only if
// it is this user's own (io/state_key.h), or trusted.
#pragma once
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "codecs/checksum.h"
#include "io/fd.h"
#include "io/temporary.h"
#include "weighbridge/edit.h"
#include "weighbridge/recover.h"
#include "weighbridge/source.h"

namespace weighbridge::edit_files {

// Bytes to write in place of others. `length` differs from bytes.size() only if the range ends where the file does.
struct Patch {
  std::uint64_t offset = 0, length = 0;
  std::string bytes{};
};

// Which journals to use: only those with this user's mark, or any that fits the file.
enum class Trust : std::uint8_t { own, any };

class PatchedFile {
 public:
  // Called with what settling does, before it changes anything.
  using Show = std::function<void(const std::vector<RecoveryStep>&)>;

  // Opens the file, with links resolved, for this process alone, and settles what a killed run left. `maximum` bounds
  // the bytes that a journal holds. Error io/open; misuse/not-a-file, misuse/read-only, misuse/hub-cache; io/in-use:
  // another process has it open; io/journal: a journal that cannot be used.
  PatchedFile(const std::string& path, std::uint64_t maximum, Trust = Trust::own, const Show& show = {});
  PatchedFile(const PatchedFile&) = delete;
  PatchedFile& operator=(const PatchedFile&) = delete;

  // How the incomplete change of a killed run was resolved.
  Edited::Left left() const noexcept { return left_; }
  // Names of the file (hard links), all of which show a change.
  std::uint64_t names() const noexcept { return names_; }
  // Whether the OS confirmed that no other process has the file open. Otherwise only our own lock keeps other runs out.
  bool alone() const noexcept { return alone_; }
  std::uint64_t size() const noexcept { return size_; }
  // Reads through the same open file, because opening it again would wait for the lease. Valid until the next change.
  std::shared_ptr<const Source> source() const;

  // Of the open file, for calls of the system that copy between files.
  int descriptor() const noexcept { return file_.get(); }
  // Lets other processes open the file again; our lock stays. For an edit that leaves the file as it is, and replaces
  // it.
  void share() noexcept;

  // Makes the change: journal, write, sync, read back, `check`. Error io/write, io/read-back, io/publish, or what
  // `check` throws; then the file is as it was, unless the message says that the journal is left.
  void apply(const Patch&, const std::function<void()>& check = {});
  // What would revert the last change: the old bytes that apply() kept. Error misuse/no-undo if there are none, or
  // the file has changed since.
  Patch undo() const;
  std::string undo_path() const { return io::join_path(target_.folder, undo_name_); }

  struct Journal;

 private:
  void lock();
  void settle(const Show&);
  std::vector<std::byte> read(std::uint64_t offset, std::uint64_t length) const;
  std::shared_ptr<const Journal> load(const std::string& name) const;
  // Whether the file has this size, and a range of it this hash.
  bool holds(std::uint64_t size, std::uint64_t offset, std::uint64_t length, const codecs::Hash128& hash) const;
  bool holds_new(const Journal&) const;
  bool holds_old(const Journal&) const;
  bool is_mixed(const Journal&) const;
  void put(std::uint64_t offset, std::span<const std::byte> bytes, std::uint64_t size);
  void publish_journal(Journal);
  void restore(const Journal&);
  std::string about_journal(const std::string& name) const;
  [[noreturn]] void refuse_journal(const std::string& name, const std::string& why) const;

  std::string asked_;
  std::uint64_t maximum_ = 0;
  Trust trust_ = Trust::own;
  io::Target target_;
  io::Fd folder_, file_;
  std::uint64_t inode_ = 0, size_ = 0, names_ = 0;
  unsigned mode_ = 0;
  std::string journal_name_, undo_name_;
  bool alone_ = false;
  Edited::Left left_ = Edited::Left::nothing;
};

}  // namespace weighbridge::edit_files
