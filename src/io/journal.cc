// SPDX-License-Identifier: Apache-2.0
// The journal's file, the renames, and the undoing. Every step may be the last one before a kill, and undoing may be
// killed too: it can begin again at any point.
#include "io/journal.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <climits>
#include <memory>
#include <string_view>
#include <utility>

#include "base/fail.h"
#include "io/place.h"

namespace weighbridge::io {
namespace {

using Entry = Journal::Entry;

constexpr std::string_view kMark = ".weighbridge-", kEnding = ".journal", kOld = ".old";
constexpr std::string_view kFirst = "weighbridge journal 1", kLast = "end";
// WebAssembly's disk in memory dies with the run, and it has no locks to tell a killed run by.
#ifdef __EMSCRIPTEN__
constexpr bool kOutlivesRuns = false;
#else
constexpr bool kOutlivesRuns = true;
#endif
constexpr std::size_t kMaxBytes = std::size_t{16} << 20;

// What a name beneath a folder is; `inode` is 0 if nothing has the name.
struct There {
  std::uint64_t inode = 0;
  mode_t mode = 0;
};
There look(int folder, const std::string& name) noexcept try {
  const Beneath at = look_beneath(folder, name);
  struct stat there {};
  if (at.folder < 0 || ::fstatat(at.folder, at.name.c_str(), &there, AT_SYMLINK_NOFOLLOW) != 0) return {};
  return {there.st_ino, there.st_mode};
} catch (...) {
  return {};
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
  return at.folder < 0 ? -1 : ::unlinkat(at.folder, at.name.c_str(), 0);
} catch (...) {
  errno = ENOMEM;
  return -1;
}
int chmod_beneath(int folder, const std::string& name, mode_t mode) noexcept try {
  const Beneath at = look_beneath(folder, name);
  return at.folder < 0 ? -1 : ::fchmodat(at.folder, at.name.c_str(), mode, 0);
} catch (...) {
  errno = ENOMEM;
  return -1;
}
// Syncs the folder of a name, which may be a folder below.
int sync_parent(int folder, const std::string& name) noexcept try {
  const Beneath at = look_beneath(folder, name);
  const Fd open(at.folder < 0 ? -1 : ::openat(at.folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  return open ? sync_folder(open.get()) : -1;
} catch (...) {
  errno = ENOMEM;
  return -1;
}
int sync_parents(int folder, const std::vector<Entry>& entries) noexcept {
  for (const Entry& each : entries)
    if (each.name.find('/') != std::string::npos && sync_parent(folder, each.name) != 0 && errno != ENOENT) return -1;
  return sync_folder(folder);
}

bool has_digits(std::string_view entry, std::string_view ending) noexcept {
  const std::size_t tail = kMark.size() + 16 + ending.size();
  if (entry.size() < tail || !entry.ends_with(ending)) return false;
  entry.remove_prefix(entry.size() - tail);
  return entry.starts_with(kMark) &&
         entry.substr(kMark.size(), 16).find_first_not_of("0123456789abcdef") == std::string_view::npos;
}
bool is_journal(std::string_view entry) noexcept {
  return entry.size() == kMark.size() + 16 + kEnding.size() && has_digits(entry, kEnding);
}
bool is_old(std::string_view entry) noexcept { return entry.starts_with('.') && has_digits(entry, kOld); }

// The name for the old file of `name`, which may be beneath a folder: made from a temporary's, so equally unique.
std::string aside_name(const std::string& name) {
  std::string out = temporary_name(name.substr(name.rfind('/') + 1));
  out.replace(out.rfind('.'), std::string::npos, kOld);
  return out;
}
std::string journal_name() {
  std::string out = temporary_name("");
  out.replace(out.rfind('.'), std::string::npos, kEnding);
  return out.substr(1);  // without the dot before an empty name
}

std::vector<std::string> entries_of(int folder, bool (*wanted)(std::string_view) noexcept) {
  std::vector<std::string> out;
  const int again = ::openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (again < 0) return out;
  const std::unique_ptr<DIR, int (*)(DIR*)> listing(::fdopendir(again), ::closedir);
  if (!listing) {
    ::close(again);
    return out;
  }
  while (const dirent* entry = ::readdir(listing.get()))
    if (wanted(entry->d_name)) out.emplace_back(entry->d_name);
  return out;
}

// Puts one old file back, or removes the new one where there was none. 0, or -1 with errno; EEXIST if a file that is
// neither old nor new has the name.
int undo_one(int folder, const Entry& entry) noexcept {
  const std::uint64_t now = look(folder, entry.name).inode;
  if (entry.aside.empty()) return now != 0 && now == entry.inode ? remove_beneath(folder, entry.name) : 0;
  const bool aside = look(folder, entry.aside).inode != 0;
  const bool exchanged =
      !aside && !entry.fresh.empty() && now != entry.old_inode && look(folder, entry.fresh).inode == entry.old_inode;
  if (!aside && !exchanged) return 0;
  if (now != 0 && now != entry.inode) {
    errno = EEXIST;
    return -1;
  }
  return rename_beneath(folder, aside ? entry.aside : entry.fresh, entry.name, rename_over);
}

// Undoes all, the first change last, because without the first file the others are not a model. Returns the entry that
// cannot be undone, with errno; null if all are.
const Entry* undo(int folder, const std::vector<Entry>& entries) noexcept {
  // The new first file goes before the files that belong to it.
  if (const Entry& first = entries.front(); first.inode != 0 && look(folder, first.name).inode == first.inode &&
                                            (first.aside.empty() || look(folder, first.aside).inode != 0) &&
                                            remove_beneath(folder, first.name) != 0)
    return &first;
  for (auto each = entries.rbegin(); each != entries.rend(); ++each)
    if (undo_one(folder, *each) != 0) return &*each;
  return sync_parents(folder, entries) == 0 ? nullptr : &entries.front();
}

// The journal's bytes: fields, each ended by a NUL.
std::string spell(const std::vector<Entry>& entries) {
  std::string out;
  const auto field = [&](std::string_view text) { out.append(text).push_back('\0'); };
  field(kFirst);
  for (const Entry& each : entries) {
    for (const std::string* text : {&each.name, &each.fresh, &each.aside}) field(*text);
    for (const std::uint64_t inode : {each.inode, each.old_inode}) field(std::to_string(inode));
  }
  field(kLast);
  return out;
}

bool is_beneath(std::string_view name) noexcept {
  if (name.empty() || name.front() == '/' || name.back() == '/') return false;
  for (std::size_t begin = 0; begin <= name.size();) {
    const std::size_t end = std::min(name.find('/', begin), name.size());
    const std::string_view component = name.substr(begin, end - begin);
    if (component.empty() || component == "." || component == "..") return false;
    begin = end + 1;
  }
  return true;
}

// What a journal says. Empty if it was never finished: then nothing was renamed. Null if it is not a journal.
std::optional<std::vector<Entry>> parse(std::string_view text) {
  std::vector<std::string_view> fields;
  for (std::size_t begin = 0, end = 0; (end = text.find('\0', begin)) != std::string_view::npos; begin = end + 1)
    fields.push_back(text.substr(begin, end - begin));
  const bool whole = text.ends_with('\0') && fields.size() >= 2 && fields.back() == kLast && fields.size() % 5 == 2;
  std::vector<Entry> out;
  if (!whole) return out;
  if (fields.front() != kFirst) return std::nullopt;
  const auto number = [](std::string_view digits, std::uint64_t& to) {
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), to);
    return error == std::errc() && end == digits.data() + digits.size();
  };
  for (std::size_t i = 1; i + 5 < fields.size(); i += 5) {
    Entry each;
    each.name = fields[i];
    each.fresh = fields[i + 1];
    each.aside = fields[i + 2];
    const bool good = is_beneath(each.name) && (each.fresh.empty() || is_beneath(each.fresh)) &&
                      (each.aside.empty() || is_old(each.aside)) && each.aside.find('/') == std::string::npos &&
                      number(fields[i + 3], each.inode) && number(fields[i + 4], each.old_inode);
    if (!good) return std::nullopt;
    out.push_back(std::move(each));
  }
  return out;
}

// In a folder like /tmp, only what this user left counts: others could plant a journal there.
bool is_ours(const struct stat& folder, const struct stat& file) noexcept {
  return (folder.st_mode & S_ISVTX) == 0 || file.st_uid == ::geteuid();
}

// Undoes what one journal lists. Returns false if it is of a living run, or not ours.
bool recover_one(int folder, const struct stat& where, const std::string& path, const std::string& name) {
  const auto refuse = [&](const std::string& why, int error) {
    base::io_error_of(path, "publish",
                      "a run that was killed left files in this folder half replaced (" + name + "), and " + why,
                      error);
  };
  const Fd fd(::openat(folder, name.c_str(), O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
  struct stat file {};
  if (!fd) {
    if (errno == ENOENT) return true;  // another run was quicker
    const int error = errno;
    if (::fstatat(folder, name.c_str(), &file, AT_SYMLINK_NOFOLLOW) == 0 && !is_ours(where, file)) return false;
    refuse("this user cannot undo that", error);
  }
  if (::fstat(fd.get(), &file) != 0 || !S_ISREG(file.st_mode) || !is_ours(where, file)) return false;
  if (::flock(fd.get(), LOCK_EX | LOCK_NB) != 0) return false;
  std::string text(
      static_cast<std::size_t>(std::min<std::uint64_t>(static_cast<std::uint64_t>(file.st_size), kMaxBytes)), '\0');
  text.resize(pread_full(fd.get(), 0, std::as_writable_bytes(std::span(text)), path + "/" + name));
  const std::optional<std::vector<Entry>> entries = parse(text);
  if (!entries) refuse("its journal cannot be read: move the files named .*.old back by hand, then remove it", 0);
  if (!entries->empty())
    if (const Entry* const left = undo(folder, *entries)) {
      const int error = errno;
      if (error == EEXIST)
        refuse(
            "another file has the name '" + left->name + "' now: move it away, and run again to get the old one back",
            0);
      refuse("'" + left->name + "' cannot be put back", error);
    }
  ::unlinkat(folder, name.c_str(), 0);
  return true;
}

}  // namespace

Journal::Journal(const std::string& folder, std::vector<Change> changes)
    : path_(folder), turn_(folder), folder_(open_folder(folder)) {
  recover(folder);
  for (Change& change : changes) {
    Entry entry;
    const There old = look(folder_.get(), change.name);
    if (old.inode != 0 && change.replace) {
      entry.aside = aside_name(change.name);
      entry.old_inode = old.inode;
    }
    if (!change.fresh.empty()) entry.inode = look(folder_.get(), change.fresh).inode;
    entry.name = std::move(change.name);
    entry.fresh = std::move(change.fresh);
    entry.replace = change.replace;
    entries_.push_back(std::move(entry));
  }
  write();
}

void Journal::write() {
  name_ = journal_name();
  const auto refuse = [&] {
    const int error = errno;
    ::unlinkat(folder_.get(), name_.c_str(), 0);
    base::io_error_of(path_, "publish", "a journal of the files to replace cannot be written", error);
  };
  journal_ = Fd(::openat(folder_.get(), name_.c_str(), O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0666));
  if (!journal_) return refuse();
  ::flock(journal_.get(), LOCK_EX | LOCK_NB);  // without locks, nobody undoes it
  const std::string text = spell(entries_);
  try {
    pwrite_full(journal_.get(), 0, std::as_bytes(std::span(text)), path_);
  } catch (const Error&) {
    ::unlinkat(folder_.get(), name_.c_str(), 0);
    throw;
  }
  if (::fsync(journal_.get()) != 0 || sync_folder(folder_.get()) != 0) refuse();
}

Journal::~Journal() {
  // What cannot be undone now stays in the journal for the next run.
  if (!done_ && (entries_.empty() || undo(folder_.get(), entries_) == nullptr))
    ::unlinkat(folder_.get(), name_.c_str(), 0);
}

void Journal::set_aside() {
  for (const Entry& each : entries_)
    if (S_ISDIR(look(folder_.get(), each.name).mode))
      base::misuse_of(join_path(path_, each.name), "output-kind",
                      "cannot be set aside: it is a directory, where a file belongs");
  for (const Entry& each : entries_)
    if (!each.aside.empty() && rename_beneath(folder_.get(), each.name, each.aside, rename_new) != 0)
      base::io_error_of(join_path(path_, each.name), "publish", "cannot be set aside", errno);
  // That the names are gone must reach the disk before new files get them.
  if (sync_parents(folder_.get(), entries_) != 0)
    base::io_error_of(path_, "publish", "the folder cannot be written to the disk", errno);
}

int Journal::move(std::size_t change) noexcept {
  const Entry& each = entries_[change];
  const int folder = folder_.get();
  if (each.aside.empty()) return rename_beneath(folder, each.fresh, each.name, rename_new);
  if (const There aside = look(folder, each.aside); aside.inode != 0) {
    if (S_ISREG(aside.mode) && chmod_beneath(folder, each.fresh, aside.mode & 0777U) != 0) return -1;
    return rename_beneath(folder, each.fresh, each.name, rename_new);
  }
  const There old = look(folder, each.name);
  if (!S_ISREG(old.mode) || old.inode != each.old_inode) {
    errno = EEXIST;
    return -1;
  }
  if (chmod_beneath(folder, each.fresh, old.mode & 0777U) != 0) return -1;
  if (rename_beneath(folder, each.fresh, each.name, exchange) == 0) {
    if (look(folder, each.fresh).inode == each.old_inode) return 0;
    // Something else took the name in the meantime.
    rename_beneath(folder, each.fresh, each.name, exchange);
    errno = EEXIST;
    return -1;
  }
  if (!not_offered(errno) || rename_beneath(folder, each.name, each.aside, rename_new) != 0) return -1;
  return rename_beneath(folder, each.fresh, each.name, rename_new);
}

void Journal::commit() {
  // An empty journal undoes nothing, so this is the moment at which the new files are final.
  if (sync_parents(folder_.get(), entries_) != 0 || ::ftruncate(journal_.get(), 0) != 0 || ::fsync(journal_.get()) != 0)
    base::io_error_of(path_, "publish", "the folder cannot be written to the disk", errno);
  done_ = true;
  ::unlinkat(folder_.get(), name_.c_str(), 0);
  for (const Entry& each : entries_)
    if (!each.aside.empty()) ::unlinkat(folder_.get(), each.aside.c_str(), 0);
}

bool recover(const std::string& folder) {
  if (!kOutlivesRuns) return false;
  struct stat where {};
  if (::stat(folder.c_str(), &where) != 0 || !S_ISDIR(where.st_mode)) return false;
  const Fd fd = open_folder(folder);
  const auto left =
      entries_of(fd.get(), [](std::string_view name) noexcept { return is_journal(name) || is_old(name); });
  struct stat file {};
  const auto ours = [&](const std::string& name) {
    return ::fstatat(fd.get(), name.c_str(), &file, AT_SYMLINK_NOFOLLOW) == 0 && is_ours(where, file);
  };
  if (std::ranges::none_of(left, ours)) return false;
  const FolderLock turn(folder);
  // Old files are listed before journals: the journal of a living run is there before its old files.
  const std::vector<std::string> old = entries_of(fd.get(), is_old);
  bool all = true;
  for (const std::string& name : entries_of(fd.get(), is_journal))
    all = recover_one(fd.get(), where, folder, name) && all;
  for (const std::string& name : old)
    if (all && ours(name)) ::unlinkat(fd.get(), name.c_str(), 0);
  return true;
}

std::string edit_file_name(const std::string& name, EditFile kind) {
  constexpr std::string_view kEdit = ".weighbridge-edit";
  const std::string_view ending = kind == EditFile::journal ? kEnding : ".undo";
  const std::size_t room = NAME_MAX - (1 + kEdit.size() + kEnding.size());
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
  struct stat there {};
  return ::lstat(journal.c_str(), &there) == 0 ? journal : std::string();
}

}  // namespace weighbridge::io
