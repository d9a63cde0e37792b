// SPDX-License-Identifier: Apache-2.0
// The steps of a change in place. The process may die after any of them: until the journal has its final name, the file
// is the old one; from then on, the journal has the old and the new bytes.
#include "edit/patched_file.h"

#include <algorithm>
#include <cerrno>

#include "base/checked.h"
#include "base/endian.h"
#include "base/fail.h"
#include "codecs/checksum.h"
#include "edit/applying.h"
#include "io/abandon.h"
#include "io/journal.h"

namespace weighbridge::edit_files {

// What the file of a journal holds, all numbers little-endian:
//   magic | u64 inode, old size, new size | u64 offset, old length, new length of the header
//   | u64 offset, old length, new length of the bytes that differ | XXH3-128 of the old header, of the new one
//   | old bytes | new bytes, sealed
// It is of this file only, whose inode it states. Version 1, of weighbridge 0.2, has no mark.
struct PatchedFile::Journal {
  static constexpr std::size_t kNumbers = 9, kHash = 16;
  static constexpr std::string_view kMagic = "weighbridge edit 2\n", kMagic1 = "weighbridge edit 1\n";
  static constexpr std::size_t kFixed = kMagic.size() + 8 * kNumbers + 2 * kHash;

  std::uint64_t inode = 0, old_size = 0, new_size = 0;
  std::uint64_t offset = 0, old_length = 0, new_length = 0;  // of the whole header
  std::uint64_t at = 0;                                      // where old and new begin to differ
  std::string old_bytes{}, new_bytes{};                      // what differs
  codecs::Hash128 old_hash{}, new_hash{};                    // of the whole header
  bool marked = false;                                       // by this user's key

  std::string spell() const {
    std::string out(kMagic);
    for (const std::uint64_t value : {inode, old_size, new_size, offset, old_length, new_length, at,
                                      std::uint64_t{old_bytes.size()}, std::uint64_t{new_bytes.size()}})
      base::append_le(out, value);
    for (const codecs::Hash128& hash : {old_hash, new_hash})
      base::append_le(out, hash.low), base::append_le(out, hash.high);
    out += old_bytes;
    out += new_bytes;
    return out;
  }

  // Null if the bytes are not those of a whole journal. `own` is the inode of its file.
  static std::shared_ptr<const Journal> parse(const std::string& bytes, std::uint64_t own) {
    const bool is_new = bytes.starts_with(kMagic);
    const auto found = is_new || bytes.starts_with(kMagic1) ? unseal(bytes, own, is_new) : std::nullopt;
    if (!found || found->text.size() < kFixed) return nullptr;
    const std::string_view text = found->text;
    const auto number = [&](std::size_t place) { return base::load_le<std::uint64_t>(text.data() + place); };
    const auto field = [&](std::size_t i) { return number(kMagic.size() + 8 * i); };
    const auto out = std::make_shared<Journal>();
    out->inode = field(0), out->old_size = field(1), out->new_size = field(2);
    out->offset = field(3), out->old_length = field(4), out->new_length = field(5), out->at = field(6);
    const std::uint64_t olds = field(7), news = field(8);
    out->old_hash = {field(9), field(10)}, out->new_hash = {field(11), field(12)};
    const std::uint64_t rest = text.size() - kFixed;
    if (olds > rest || news != rest - olds) return nullptr;
    out->old_bytes = text.substr(kFixed, base::to_size(olds));
    out->new_bytes = text.substr(kFixed + base::to_size(olds), base::to_size(news));
    out->marked = found->marked;
    return out->is_sound() ? out : nullptr;
  }

  // Whether the ranges lie in files of these sizes, and the bytes that differ in the header. Only a header that ends
  // the file changes its length.
  bool is_sound() const {
    if (!base::fits(offset, old_length, old_size) || !base::fits(offset, new_length, new_size) || at < offset)
      return false;
    if (!base::fits(at - offset, old_bytes.size(), old_length) ||
        !base::fits(at - offset, new_bytes.size(), new_length))
      return false;
    const std::uint64_t before = at - offset;
    if (old_length - before - old_bytes.size() != new_length - before - new_bytes.size()) return false;
    const bool last = offset + old_length == old_size && offset + new_length == new_size;
    return last || (old_length == new_length && old_size == new_size);
  }
};

namespace {

codecs::Hash128 hash_of(std::span<const std::byte> bytes) { return codecs::xxh3_128(bytes); }

}  // namespace

PatchedFile::PatchedFile(const std::string& path, std::uint64_t maximum, Trust trust, const Show& show)
    : PatchedFile(path, maximum, trust, show, settle_applying(path, trust, show)) {}

PatchedFile::PatchedFile(const std::string& path, std::uint64_t maximum, Trust trust, const Show& show,
                         Edited::Left left)
    : HeldFile(path), maximum_(maximum), trust_(trust), left_(left) {
  journal_name_ = io::edit_file_name(target_.name, io::EditFile::journal);
  undo_name_ = io::edit_file_name(target_.name, io::EditFile::undo);
  settle(show);
  io::remove_stale(folder_.get(), target_.name);
}

JournalFile PatchedFile::journal_file(const std::string& name) const {
  return {asked_, target_.folder, folder_.get(), name, name == undo_name_};
}

// Null if there is none.
std::shared_ptr<const PatchedFile::Journal> PatchedFile::load(const std::string& name) const {
  const JournalFile journal = journal_file(name);
  const auto found = journal.find();
  if (!found) return nullptr;
  if (found->there.size > maximum_) journal.refuse("it is larger than any that would be written for this file");
  std::string text(base::to_size(found->there.size), '\0');
  text.resize(io::pread_full(found->fd.get(), 0, std::as_writable_bytes(std::span(text)), name));
  auto out = Journal::parse(text, found->there.inode);
  if (!out) journal.refuse("it is damaged: verify the file, and remove the journal if the file is sound");
  if (std::max(out->old_length, out->new_length) > maximum_)
    journal.refuse("it changes more than would be changed in this file");
  if (trust_ != Trust::any) journal.require_own(found->there, out->marked);
  return out;
}

bool PatchedFile::holds(std::uint64_t size, std::uint64_t offset, std::uint64_t length,
                        const codecs::Hash128& hash) const {
  if (size_ != size) return false;
  const auto bytes = read(offset, length);
  return bytes.size() == length && hash_of(bytes) == hash;
}
bool PatchedFile::holds_new(const Journal& j) const { return holds(j.new_size, j.offset, j.new_length, j.new_hash); }
bool PatchedFile::holds_old(const Journal& j) const { return holds(j.old_size, j.offset, j.old_length, j.old_hash); }

// Whether every byte is the old or the new one, so that the file is one in the middle of this change. After a power
// failure, there may be zeros after the old end.
bool PatchedFile::is_mixed(const Journal& j) const {
  const std::uint64_t minimum = std::min(j.old_size, j.new_size), maximum = std::max(j.old_size, j.new_size);
  if (size_ < minimum || size_ > maximum) return false;
  const std::uint64_t length = std::max(j.old_bytes.size(), j.new_bytes.size());
  const auto now = read(j.at, std::min(length, size_ - j.at));
  for (std::size_t i = 0; i < now.size(); ++i) {
    const bool old = i < j.old_bytes.size() && now[i] == static_cast<std::byte>(j.old_bytes[i]);
    const bool is_new = i < j.new_bytes.size() && now[i] == static_cast<std::byte>(j.new_bytes[i]);
    if (!old && !is_new && !(j.at + i >= j.old_size && now[i] == std::byte{0})) return false;
  }
  // The rest of the header is the old one's.
  auto header = read(j.offset, j.at - j.offset);
  header.insert(header.end(), reinterpret_cast<const std::byte*>(j.old_bytes.data()),
                reinterpret_cast<const std::byte*>(j.old_bytes.data()) + j.old_bytes.size());
  const std::uint64_t rest = j.at + j.old_bytes.size();
  const auto tail = read(rest, j.offset + j.old_length - rest);
  header.insert(header.end(), tail.begin(), tail.end());
  return header.size() == j.old_length && hash_of(header) == j.old_hash;
}

// Finishes or undoes what a killed run began. If this is killed too, the next run does it again.
void PatchedFile::settle(const Show& show) {
  const auto journal = load(journal_name_);
  if (!journal) return;
  if (journal->inode != inode_)
    journal_file(journal_name_)
        .refuse(
            "it belongs to another file that had this name before: remove it if this file "
            "is sound");
  using Way = RecoveryStep::Way;
  const bool is_new = holds_new(*journal), old = !is_new && holds_old(*journal);
  if (!is_new && !old && !is_mixed(*journal))
    journal_file(journal_name_)
        .refuse(
            "something else has changed the file since: remove the journal if the file "
            "is sound");
  if (show) {
    std::vector<RecoveryStep> steps;
    if (is_new) {
      steps.push_back({.way = Way::rename, .from = journal_name_, .to = undo_name_});
    } else {
      if (!old)
        steps.push_back({.way = Way::write,
                         .from = target_.name,
                         .offset = journal->at,
                         .length = std::max(journal->old_bytes.size(), journal->new_bytes.size())});
      steps.push_back({.way = Way::remove, .from = journal_name_});
    }
    show(steps);
  }
  const io::NamesChange settling;
  if (is_new) {
    sync(size_);
    if (io::os::rename_over(folder_.get(), journal_name_.c_str(), folder_.get(), undo_name_.c_str()) != 0)
      base::io_error_of(asked_, "publish", "its journal cannot be renamed", errno);
    io::sync_folder(folder_.get());
    left_ = Edited::Left::finished;
    return;
  }
  if (!old) restore(*journal);
  if (io::os::remove(folder_.get(), journal_name_.c_str()) != 0)
    base::io_error_of(asked_, "publish", "its journal cannot be removed", errno);
  io::sync_folder(folder_.get());
  left_ = Edited::Left::undone;
}

void PatchedFile::put(std::uint64_t offset, std::span<const std::byte> bytes, std::uint64_t size) {
  write(offset, bytes);
  sync(size);
}

// Puts the old bytes back.
void PatchedFile::restore(const Journal& j) {
  put(j.at, std::as_bytes(std::span(j.old_bytes)), j.old_size);
  if (!holds_old(j))
    base::io_error_of(asked_, "read-back",
                      "the old bytes do not read back as they were written; the journal '" +
                          io::join_path(target_.folder, journal_name_) + "' still has them");
}

void PatchedFile::apply(const Patch& patch, const std::function<void()>& check) {
  if (!base::fits(patch.offset, patch.length, size_) ||
      (patch.length != patch.bytes.size() && patch.offset + patch.length != size_))
    base::misuse_of(asked_, "range", "a range outside the file was to be changed");
  const auto old = read(patch.offset, patch.length);
  if (old.size() != patch.length) base::io_error_of(asked_, "short-read", "the file shrank while it was read");
  const auto patch_bytes = std::as_bytes(std::span(patch.bytes));
  // Only what differs is written: the fewer bytes, the less a power failure can tear.
  const std::size_t maximum = std::min(old.size(), patch_bytes.size());
  std::size_t before = 0, behind = 0;
  while (before < maximum && old[before] == patch_bytes[before]) ++before;
  if (old.size() == patch_bytes.size())
    while (behind < maximum - before && old[maximum - 1 - behind] == patch_bytes[maximum - 1 - behind]) ++behind;
  if (before == old.size() && before == patch_bytes.size()) return;
  Journal j;
  j.inode = inode_;
  j.old_size = size_;
  j.new_size = size_ - patch.length + patch.bytes.size();
  j.offset = patch.offset, j.old_length = patch.length, j.new_length = patch.bytes.size();
  j.at = patch.offset + before;
  j.old_bytes.assign(reinterpret_cast<const char*>(old.data()) + before, old.size() - before - behind);
  j.new_bytes = patch.bytes.substr(before, patch_bytes.size() - before - behind);
  j.old_hash = hash_of(old), j.new_hash = hash_of(patch_bytes);
  const io::NamesChange changing;
  journal_file(journal_name_).publish(target_, mode_, [&](std::uint64_t own) { return sealed(j.spell(), own); });
  try {
    put(j.at, std::as_bytes(std::span(j.new_bytes)), j.new_size);
    if (!holds_new(j)) base::io_error_of(asked_, "read-back", "the new bytes do not read back as they were written");
    if (check) check();
    if (io::os::rename_over(folder_.get(), journal_name_.c_str(), folder_.get(), undo_name_.c_str()) != 0)
      base::io_error_of(asked_, "publish", "its journal cannot be renamed", errno);
  } catch (...) {
    try {
      restore(j);
      io::os::remove(folder_.get(), journal_name_.c_str());
    } catch (...) {
      // The journal stays, and the next run undoes the change.
    }
    throw;
  }
  // If this fails, the journal may be back after a power failure; the next run then finds the new bytes.
  io::sync_folder(folder_.get());
}

Patch PatchedFile::undo() const {
  const auto refuse = [&](const std::string& why) { base::misuse_of(asked_, "no-undo", why); };
  const auto j = load(undo_name_);
  if (!j)
    refuse("there is no edit in place to undo: '" + undo_path() +
           "' does not exist; an edit that replaced the file by a new one cannot be undone");
  if (j->inode != inode_) refuse("the old bytes ('" + undo_path() + "') belong to another file");
  if (!holds_new(*j)) refuse("the file has changed since the edit that is to be undone");
  const auto now = read(j->offset, j->new_length);
  Patch out{.offset = j->offset, .length = j->new_length};
  out.bytes.assign(reinterpret_cast<const char*>(now.data()), now.size());
  out.bytes.replace(base::to_size(j->at - j->offset), j->new_bytes.size(), j->old_bytes);
  if (out.bytes.size() != j->old_length || hash_of(std::as_bytes(std::span(out.bytes))) != j->old_hash)
    refuse("the old bytes in '" + undo_path() + "' are not those of this file");
  return out;
}

}  // namespace weighbridge::edit_files
