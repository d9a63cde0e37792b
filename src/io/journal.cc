// SPDX-License-Identifier: Apache-2.0
// The renames, and undoing them. What is left of other runs is in recover.cc.
#include "io/journal.h"

#include <cerrno>
#include <optional>
#include <string_view>
#include <system_error>
#include <utility>

#include "base/fail.h"
#include "io/attributes.h"
#include "io/place.h"

namespace weighbridge::io {
namespace {

using Way = RecoveryStep::Way;

// What a name beneath a folder is; `inode` is 0 if nothing has the name.
struct There {
  std::uint64_t inode = 0, size = 0, time = 0;
  os::Kind kind = os::Kind::other;
  unsigned mode = 0;
  int error = 0;  // errno if the system could not say, in which case `inode` is 0 too
};
There look(int folder, const std::string& name) noexcept try {
  const Beneath at = look_beneath(folder, name);
  const auto there = at.folder < 0 ? std::nullopt : os::status(at.folder, at.name.c_str());
  if (!there) return {.error = errno == ENOENT || errno == ENOTDIR || errno == ELOOP ? 0 : errno};
  const auto time = static_cast<std::uint64_t>(there->modified.seconds) * 1'000'000'000 +
                    static_cast<std::uint64_t>(there->modified.nanoseconds);
  return {there->inode, there->size, time, there->kind, there->mode & 0777U};
} catch (...) {
  return {.error = ENOMEM};
}

// The file of this name; empty with errno if it cannot be opened.
Fd open_to_read_beneath(int folder, const std::string& name) {
  const Beneath at = look_beneath(folder, name);
  return at.folder < 0 ? Fd() : os::open_to_read(at.folder, at.name.c_str());
}
// The hash of a file's first block; empty if it has none or cannot be read (then `error` is errno).
std::string block_of(int folder, const std::string& name, int& error) noexcept try {
  const Fd fd = open_to_read_beneath(folder, name);
  const auto there = fd ? os::status(fd.get()) : std::nullopt;
  error = there ? 0 : errno;
  if (!there || there->kind != os::Kind::file) return {};
  std::vector<std::byte> first(kHashedBytes);
  first.resize(pread_full(fd.get(), 0, first, name));
  return block_hash(first);
} catch (...) {
  error = EIO;
  return {};
}
// Whether the file begins as the journal says; `error` is errno if that cannot be found out. What only its owner may
// read is taken for it by inode and size.
bool begins_so(int folder, const std::string& name, const std::string& block, int& error) noexcept {
  if (block.empty()) return true;
  const std::string found = block_of(folder, name, error);
  if (error != EACCES) return error == 0 && found == block;
  error = 0;
  return true;
}
// Whether the file of this name, as look() saw it, is the new one, or the old one, of a change: inodes may mean other
// files after a power failure. `error` as above.
bool is_new_of(const JournalEntry& entry, int folder, const std::string& name, const There& there,
               int& error) noexcept {
  return there.inode != 0 && there.inode == entry.inode && there.size == entry.size.value_or(there.size) &&
         there.time == entry.time.value_or(there.time) && begins_so(folder, name, entry.block, error);
}
bool is_old_of(const JournalEntry& entry, int folder, const std::string& name, const There& there,
               int& error) noexcept {
  return there.inode != 0 && there.inode == entry.old_inode && there.size == entry.old_size.value_or(there.size) &&
         begins_so(folder, name, entry.old_block, error);
}

// The calls of fd.h on names beneath one folder. Each returns 0, or -1 with errno.
template <typename Rename>
int rename_beneath(int folder, const std::string& from, const std::string& to, Rename&& rename) noexcept try {
  const Beneath a = look_beneath(folder, from), b = look_beneath(folder, to);
  return a.folder < 0 || b.folder < 0 ? -1 : rename(a.folder, a.name.c_str(), b.folder, b.name.c_str());
} catch (...) {
  errno = ENOMEM;
  return -1;
}
int remove_beneath(int folder, const std::string& name) noexcept try {
  const Beneath at = look_beneath(folder, name);
  return at.folder < 0 ? -1 : os::remove(at.folder, at.name.c_str());
} catch (...) {
  errno = ENOMEM;
  return -1;
}
int chmod_beneath(int folder, const std::string& name, unsigned mode) noexcept try {
  const Fd fd = open_to_read_beneath(folder, name);
  return fd ? os::set_mode(fd.get(), mode) : -1;
} catch (...) {
  errno = ENOMEM;
  return -1;
}
// Syncs the folder of a name, which may be a folder below.
int sync_parent(int folder, const std::string& name) noexcept try {
  const Beneath at = look_beneath(folder, name);
  const Fd open = at.folder < 0 ? Fd() : os::open_folder(at.folder, ".");
  return open ? sync_folder(open.get()) : -1;
} catch (...) {
  errno = ENOMEM;
  return -1;
}
int sync_parents(int folder, const std::vector<JournalEntry>& entries) noexcept {
  for (const JournalEntry& each : entries)
    if (each.name.find('/') != std::string::npos && sync_parent(folder, each.name) != 0 && errno != ENOENT) return -1;
  return sync_folder(folder);
}

// errno of steps_of() for an old file whose bytes have changed; the system uses positive numbers only.
constexpr int kOtherBytes = -1;

// The steps that undo one change now. Null, with errno, if it cannot be undone: EEXIST if a file that is neither the
// old nor the new one has the name, kOtherBytes, or what the system says if it cannot be found out which file has the
// name.
std::optional<std::vector<RecoveryStep>> steps_of(int folder, const JournalEntry& entry) {
  const There there = look(folder, entry.name);
  const std::uint64_t now = there.inode;
  int unknown = there.error;
  const bool in_place = is_new_of(entry, folder, entry.name, there, unknown);
  const auto back = [&] {
    const bool gone = look_beneath(folder, entry.new_path).folder < 0;
    return RecoveryStep{.way = Way::rename, .from = entry.name, .to = gone ? spare_name(entry) : entry.new_path};
  };
  const auto blocked = [](int error) {
    errno = error;
    return std::nullopt;
  };
  if (unknown != 0) return blocked(unknown);
  if (entry.aside.empty()) return in_place ? std::vector{back()} : std::vector<RecoveryStep>{};
  const There old = look(folder, entry.aside);
  const bool aside = old.inode != 0;
  const There other = aside || entry.new_path.empty() ? There{} : look(folder, entry.new_path);
  if (old.error != 0 || other.error != 0) return blocked(old.error != 0 ? old.error : other.error);
  const bool exchanged = other.inode != 0 && other.inode == entry.old_inode && now != entry.old_inode;
  std::vector<RecoveryStep> out;
  if (!aside && !exchanged) return out;
  if (now != 0 && !in_place) return blocked(EEXIST);
  if (exchanged) {
    if (!is_old_of(entry, folder, entry.new_path, other, unknown)) return blocked(unknown != 0 ? unknown : kOtherBytes);
    out.push_back({.way = in_place ? Way::exchange : Way::rename, .from = entry.new_path, .to = entry.name});
    return out;
  }
  if (in_place) out.push_back(back());
  out.push_back({.way = Way::rename, .from = entry.aside, .to = entry.name});
  return out;
}

int take_step(int folder, const RecoveryStep& step) noexcept {
  return rename_beneath(folder, step.from, step.to, step.way == Way::exchange ? os::exchange : rename_new);
}

// Whether to undo the first change in two steps: its new file is removed before the files that belong to it.
bool goes_first(const std::vector<RecoveryStep>& steps, const JournalEntry& first) {
  return !steps.empty() && steps.front().way == Way::rename && steps.front().from == first.name;
}

}  // namespace

std::string why_not_undone(const JournalEntry& entry, int error) {
  if (error == EEXIST)
    return "another file has the name '" + entry.name + "' now: move it away, and run again to get the old one back";
  if (error == kOtherBytes)
    return "'" + entry.new_path + "', which is where the old file of the name '" + entry.name +
           "' was put, has other bytes now: if it is yours, move it there by hand, then remove the journal";
  return "'" + entry.name + "' cannot be put back: " + std::generic_category().message(error);
}

std::vector<RecoveryStep> steps_to_undo(int folder, const std::vector<JournalEntry>& entries, std::string& blocked) {
  std::vector<RecoveryStep> out, last;
  for (std::size_t i = 0; i < entries.size(); ++i) {
    const JournalEntry& each = entries[i == 0 ? 0 : entries.size() - i];
    auto steps = steps_of(folder, each);
    if (!steps) {
      blocked = why_not_undone(each, errno);
      continue;
    }
    if (i == 0) {
      const std::ptrdiff_t now = goes_first(*steps, each) ? 1 : 0;
      last.assign(steps->begin() + now, steps->end());
      steps->resize(static_cast<std::size_t>(now));
    }
    out.insert(out.end(), steps->begin(), steps->end());
  }
  out.insert(out.end(), last.begin(), last.end());
  return out;
}

const JournalEntry* undo(int folder, const std::vector<JournalEntry>& entries) noexcept {
  const JournalEntry* at = &entries.front();
  try {
    if (const auto steps = steps_of(folder, *at);
        steps && goes_first(*steps, *at) && take_step(folder, steps->front()) != 0)
      return at;
    for (auto each = entries.rbegin(); each != entries.rend(); ++each) {
      at = &*each;
      const auto steps = steps_of(folder, *each);
      if (!steps) return at;
      for (const RecoveryStep& step : *steps)
        if (take_step(folder, step) != 0) return at;
    }
  } catch (...) {
    errno = ENOMEM;
    return at;
  }
  return sync_parents(folder, entries) == 0 ? nullptr : &entries.front();
}

void remove_new_files(int folder, const std::vector<JournalEntry>& entries) noexcept try {
  for (const JournalEntry& each : entries)
    for (const std::string& name : {each.new_path, spare_name(each)})
      if (int error = 0; is_in_temporary(name) && is_new_of(each, folder, name, look(folder, name), error))
        remove_beneath(folder, name);
} catch (...) {
  // Out of memory: leave the temporaries, which a later run finds stale.
}

Journal::Journal(const std::string& folder, std::vector<Change> changes)
    : path_(folder), folder_lock_(folder), folder_(open_folder(folder)) {
  if (changes.size() > kMaxChanges)
    base::io_error_of(path_, "publish",
                      "more than " + std::to_string(kMaxChanges) + " files cannot be published together");
  const Recovered left = recover(folder);
  const auto look_at = [&](const std::string& name) {
    There there = look(folder_.get(), name);
    if (there.error != 0) base::io_error_of(join_path(path_, name), "publish", "it cannot be looked up", there.error);
    return there;
  };
  // A file that this user may not read is known by its inode and size.
  const auto hash_of = [&](const std::string& name, const There& there) {
    if (there.kind != os::Kind::file) return std::string();
    int error = 0;
    std::string block = block_of(folder_.get(), name, error);
    if (error != 0 && error != EACCES) base::io_error_of(join_path(path_, name), "publish", "it cannot be read", error);
    return block;
  };
  for (Change& change : changes) {
    left.require_free(folder, change.name);
    JournalEntry entry;
    const There old = look_at(change.name);
    if (old.inode != 0 && change.replace) {
      entry.aside = aside_name(change.name);
      entry.old_inode = old.inode;
      entry.old_block = hash_of(change.name, old);
      if (old.kind == os::Kind::file) entry.old_size = old.size;
    }
    if (old.kind == os::Kind::file && change.replace && !change.new_path.empty())
      keep_attributes(open_to_read_beneath(folder_.get(), change.name),
                      open_to_read_beneath(folder_.get(), change.new_path), join_path(path_, change.name), "publish");
    if (!change.new_path.empty()) {
      const There new_file = look_at(change.new_path);
      entry.inode = new_file.inode;
      entry.size = new_file.size;
      entry.time = new_file.time;
      entry.block = hash_of(change.new_path, new_file);
    }
    entry.name = std::move(change.name);
    entry.new_path = std::move(change.new_path);
    entry.replace = change.replace;
    entries_.push_back(std::move(entry));
  }
  write();
}

void Journal::write() {
  name_ = journal_name();
  const auto refuse = [&] {
    const int error = errno;
    os::remove(folder_.get(), name_.c_str());
    base::io_error_of(path_, "publish", "a journal of the files to replace cannot be written", error);
  };
  // Others may read the journal, but a journal that is undone by itself must be writable only by its owner.
  journal_ = os::create(folder_.get(), name_.c_str(), 0644);
  if (!journal_) return refuse();
  os::lock(journal_.get());  // on a filesystem without locks, no run undoes it
  const auto where = os::status(folder_.get()), file = where ? os::status(journal_.get()) : std::nullopt;
  if (!file) return refuse();
  const std::string text = spell_journal(where->inode, file->inode, entries_);
  if (text.size() > JournalText::kMaxBytes) {
    errno = EFBIG;
    return refuse();
  }
  try {
    pwrite_full(journal_.get(), 0, std::as_bytes(std::span(text)), path_);
  } catch (const Error&) {
    os::remove(folder_.get(), name_.c_str());
    throw;
  }
  if (os::sync(journal_.get()) != 0 || sync_folder(folder_.get()) != 0) refuse();
}

Journal::~Journal() {
  // Entries that cannot be undone now stay in the journal for the next run.
  if (!done_ && (entries_.empty() || undo(folder_.get(), entries_) == nullptr))
    os::remove(folder_.get(), name_.c_str());
}

void Journal::set_aside() {
  for (const JournalEntry& each : entries_)
    if (look(folder_.get(), each.name).kind == os::Kind::folder)
      base::misuse_of(join_path(path_, each.name), "output-kind",
                      "cannot be set aside: it is a directory, where a file belongs");
  for (const JournalEntry& each : entries_)
    if (!each.aside.empty() && rename_beneath(folder_.get(), each.name, each.aside, rename_new) != 0)
      base::io_error_of(join_path(path_, each.name), "publish", "cannot be set aside", errno);
  // The removal of the old names must reach the disk before new files take them.
  if (sync_parents(folder_.get(), entries_) != 0)
    base::io_error_of(path_, "publish", "the folder cannot be written to the disk", errno);
}

int Journal::move(std::size_t change) noexcept {
  const JournalEntry& each = entries_[change];
  const int folder = folder_.get();
  if (each.aside.empty()) return rename_beneath(folder, each.new_path, each.name, rename_new);
  if (const There aside = look(folder, each.aside); aside.inode != 0) {
    if (aside.kind == os::Kind::file && chmod_beneath(folder, each.new_path, aside.mode) != 0) return -1;
    return rename_beneath(folder, each.new_path, each.name, rename_new);
  }
  const There old = look(folder, each.name);
  if (old.kind != os::Kind::file || old.inode != each.old_inode) {
    errno = EEXIST;
    return -1;
  }
  if (chmod_beneath(folder, each.new_path, old.mode) != 0) return -1;
  if (rename_beneath(folder, each.new_path, each.name, os::exchange) == 0) {
    if (look(folder, each.new_path).inode == each.old_inode) return 0;
    // Another file took the name in the meantime.
    rename_beneath(folder, each.new_path, each.name, os::exchange);
    errno = EEXIST;
    return -1;
  }
  if (!not_offered(errno) || rename_beneath(folder, each.name, each.aside, rename_new) != 0) return -1;
  return rename_beneath(folder, each.new_path, each.name, rename_new);
}

void Journal::commit() {
  // An empty journal undoes nothing, so this is the moment at which the new files are final.
  if (sync_parents(folder_.get(), entries_) != 0 || os::set_size(journal_.get(), 0) != 0 ||
      os::sync(journal_.get()) != 0)
    base::io_error_of(path_, "publish", "the folder cannot be written to the disk", errno);
  done_ = true;
  os::remove(folder_.get(), name_.c_str());
  for (const JournalEntry& each : entries_)
    if (!each.aside.empty()) os::remove(folder_.get(), each.aside.c_str());
}

std::string edit_file_name(const std::string& name, EditFile kind) {
  constexpr std::string_view kEdit = ".weighbridge-edit";
  const std::string_view ending = kind == EditFile::journal ? kJournalEnding : ".undo";
  const std::size_t room = kMaxName - (1 + kEdit.size() + kJournalEnding.size());
  std::string own = name;
  if (name.size() > room) {
    std::uint64_t hash = 0xcbf29ce484222325;  // FNV-1a: this only has to tell apart files of one folder
    for (const char c : name) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3;
    own.resize(room - 17);
    while (!own.empty() && (static_cast<unsigned char>(own.back()) & 0x80U) != 0) own.pop_back();
    own += '-';
    for (int shift = 60; shift >= 0; shift -= 4) own += "0123456789abcdef"[hash >> shift & 15U];
  }
  return "." + own + std::string(kEdit) + std::string(ending);
}

std::string left_edit_journal(const std::string& path) {
  const SplitPath split = split_path(path);
  if (path.empty() || split.name.empty() || path.find('\0') != std::string::npos) return {};
  std::string journal = join_path(split.folder, edit_file_name(split.name, EditFile::journal));
  return os::status(os::kHere, journal.c_str()) ? journal : std::string();
}

}  // namespace weighbridge::io
