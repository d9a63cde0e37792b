// SPDX-License-Identifier: Apache-2.0
// Finds what killed runs left in a folder, and decides which journals may be undone: automatically, or because the user
// trusts them.
#include "weighbridge/recover.h"

#include <algorithm>
#include <cerrno>
#include <optional>
#include <span>
#include <system_error>
#include <utility>

#include "base/fail.h"
#include "io/journal.h"

namespace weighbridge {
namespace io {
namespace {

// Limits over all journals of a folder, because an unpacked archive can contain any number of them.
constexpr std::size_t kMaxJournals = 64, kMaxBytes = JournalText::kMaxBytes;

// Empty if the folder cannot be listed.
std::optional<std::vector<std::string>> entries_of(int folder, bool (*wanted)(std::string_view) noexcept) {
  auto out = os::list(folder);
  if (!out) return out;
  std::erase_if(*out, [&](const std::string& name) { return !wanted(name); });
  std::ranges::sort(*out);
  return out;
}

bool is_own(int folder, const std::string& name) noexcept {
  const auto file = os::status(folder, name.c_str());
  return file && file->owner == os::user();
}

std::string text_of(int error) { return std::generic_category().message(error); }

// One journal as it is now.
struct Found {
  enum class State : std::uint8_t {
    running,  // its run is alive, or it is gone
    done,     // nothing to undo: it was never completed, or its change is final
    own,      // this user's, so undone automatically
    standing  // neither
  };
  State state = State::running;
  std::string name, why{};
  Fd fd{};
  std::vector<JournalEntry> entries{};  // of a standing one: the entries that trusting it would undo
};

// Looks at the journals of one folder.
class Finder {
 public:
  Finder(std::string path, int folder) : path_(std::move(path)), folder_(folder) {}

  Found look_at(const std::string& name) {
    Found out{.name = name};
    const auto stands = [&](std::string why) {
      out.state = Found::State::standing;
      out.why = std::move(why);
      return std::move(out);
    };
    if (++journals_ > kMaxJournals) return stands("the folder has more journals than a run looks at");
    auto file = os::status(folder_, name.c_str());
    if (!file) return out;  // another run was quicker
    if (file->kind != os::Kind::file) return stands(std::string("it is ") + file_kind(file->kind));
    const bool mine = file->owner == os::user();
    out.fd = mine ? os::open_to_change(folder_, name.c_str()) : os::open_to_read(folder_, name.c_str());
    if (!out.fd) {
      if (errno == ENOENT) return out;
      return stands((mine ? "it cannot be opened: " : "it belongs to another user, and cannot be opened: ") +
                    text_of(errno));
    }
    file = os::status(out.fd.get());
    const auto where = os::status(folder_);
    if (!file || !where || file->kind != os::Kind::file) return stands("it cannot be looked at");
    if (os::lock(out.fd.get()) != 0) return out;
    if (file->size > kMaxBytes - bytes_) return stands("it is larger than the journals of a folder are");
    std::string text(static_cast<std::size_t>(file->size), '\0');
    bytes_ += text.size();
    try {
      text.resize(pread_full(out.fd.get(), 0, std::as_writable_bytes(std::span(text)), path_ + "/" + name));
    } catch (const Error& error) {
      return stands(error.finding().message);
    }
    auto journal = parse_journal(where->inode, file->inode, text);
    if (!journal)
      return stands("it is damaged: move the files named .*.old back by hand if they are yours, then remove it");
    out.entries = std::move(journal->entries);
    if (file->owner != os::user()) return stands("it belongs to another user");
    if (out.entries.empty()) {
      out.state = Found::State::done;
      return out;
    }
    if ((file->mode & 022) != 0) return stands("others can write to it");
    if (file->links != 1) return stands("it has another name (a hard link)");
    if (!journal->marked) return stands(why_unmarked());
    out.state = Found::State::own;
    return out;
  }

 private:
  std::string path_;
  int folder_;
  std::size_t journals_ = 0, bytes_ = 0;
};

// Empty it first: a hard link to it would otherwise remain a valid journal of a change that is already undone.
void remove_journal(int folder, const Found& found) noexcept {
  if (os::set_size(found.fd.get(), 0) == 0) os::sync(found.fd.get());
  os::remove(folder, found.name.c_str());
}

// Why the journal's changes cannot be undone; empty once they are, and the journal is gone.
std::string undo_all(int folder, const Found& found) {
  if (const JournalEntry* const left = undo(folder, found.entries)) return why_not_undone(*left, errno);
  if (found.state == Found::State::own) remove_new_files(folder, found.entries);
  remove_journal(folder, found);
  return {};
}

Standing standing(const std::string& folder, const Found& found) {
  Standing out{.path = join_path(folder, found.name), .why = found.why};
  for (const JournalEntry& each : found.entries) out.names.push_back(each.name);
  std::ranges::sort(out.names);
  return out;
}

bool exists_as_folder(const std::string& path) {
  const auto there = os::is_shared() ? os::status(os::kHere, path.c_str(), os::Last::followed) : std::nullopt;
  return there && there->kind == os::Kind::folder;
}

bool is_left(std::string_view name) noexcept { return is_journal(name) || is_old(name); }

}  // namespace

void Recovered::require_free(const std::string& folder, const std::string& name) const {
  for (const Standing& each : standing)
    if (std::ranges::binary_search(each.names, name))
      refuse_journal(join_path(folder, name), "io/half-published",
                     "a run that was killed may have left this file half published: the journal '" + each.path +
                         "' lists it, and is not undone by itself, because " + each.why);
}

void refuse_journal(const std::string& file, std::string rule, std::string message, std::string purpose) {
  Finding found;
  found.rule = std::move(rule);
  found.kind = Kind::io;
  found.severity = Severity::error;
  found.message = std::move(message);
  found.hint = base::option_hint("trust-journal", std::move(purpose));
  found.file.name = file;
  throw Error(std::move(found));
}

Recovered recover(const std::string& folder, std::chrono::milliseconds patience) {
  Recovered out;
  if (!exists_as_folder(folder)) return out;
  const Fd fd = open_folder(folder);
  const auto left = entries_of(fd.get(), is_left);
  if (!left || left->empty()) return out;
  // If nothing here is this user's, nothing will change, so do not wait for the lock.
  std::optional<FolderLock> folder_lock;
  std::string kept_out;
  if (std::ranges::any_of(*left, [&](const std::string& name) { return is_own(fd.get(), name); })) try {
      folder_lock.emplace(folder, std::function<bool()>(), patience);
    } catch (const Error& error) {
      // A journal must not block writing other names, whoever holds the folder's lock.
      if (error.finding().rule != "io/lock") throw;
      kept_out = error.finding().message;
    }
  // Old files are listed before journals: the journal of a living run is there before its old files.
  const auto old = entries_of(fd.get(), is_old), journals = entries_of(fd.get(), is_journal);
  if (!old || !journals) return out;  // an old file may be of a journal that is not seen
  Finder finder(folder, fd.get());
  bool all = kept_out.empty();
  for (const std::string& name : *journals) {
    Found found = finder.look_at(name);
    if (found.state == Found::State::own && kept_out.empty()) {
      found.why = undo_all(fd.get(), found);
      out.did = true;
    } else if (found.state == Found::State::own) {
      found.why = kept_out;
    } else if (found.state == Found::State::done && kept_out.empty()) {
      remove_journal(fd.get(), found);
      out.did = true;
    }
    all = all && found.state != Found::State::running && found.why.empty();
    if (!found.why.empty()) out.standing.push_back(standing(folder, found));
  }
  for (const std::string& name : *old)
    if (all && is_own(fd.get(), name)) out.did = os::remove(fd.get(), name.c_str()) == 0 || out.did;
  return out;
}

}  // namespace io

namespace {

using io::Found;

// What the front ends show of a journal.
LeftJournal describe(const std::string& folder, int fd, const Found& found, bool with_steps = true) {
  LeftJournal out{.path = io::join_path(folder, found.name), .own = found.state == Found::State::own, .why = found.why};
  if (!with_steps) return out;
  std::string blocked;
  if (!found.entries.empty()) out.steps = io::steps_to_undo(fd, found.entries, blocked);
  if (!blocked.empty()) out.why = std::move(blocked);
  if (found.fd && !found.entries.empty()) out.steps.push_back({.way = RecoveryStep::Way::remove, .from = found.name});
  return out;
}

std::vector<Found> journals_of(const std::string& folder, int fd) {
  io::Finder finder(folder, fd);
  std::vector<Found> out;
  for (const std::string& name : io::entries_of(fd, io::is_journal).value_or(std::vector<std::string>()))
    if (Found found = finder.look_at(name); found.state == Found::State::own || !found.why.empty())
      out.push_back(std::move(found));
  return out;
}

}  // namespace

std::string_view name(RecoveryStep::Way way) noexcept {
  constexpr std::string_view kNames[] = {"rename", "exchange", "remove", "write"};
  return kNames[static_cast<std::size_t>(way)];
}

std::vector<LeftJournal> left_journals(const std::string& folder, bool with_steps) {
  std::vector<LeftJournal> out;
  if (!io::exists_as_folder(folder)) return out;
  const io::Fd fd = io::open_folder(folder);
  for (const Found& found : journals_of(folder, fd.get())) out.push_back(describe(folder, fd.get(), found, with_steps));
  return out;
}

std::vector<LeftJournal> recover_folder(const std::string& folder, bool trust_journal,
                                        const std::function<void(const std::vector<LeftJournal>&)>& before) {
  const io::Fd fd = io::open_folder(folder);
  const io::FolderLock folder_lock(folder);
  std::vector<LeftJournal> out;
  {
    const std::vector<Found> found = journals_of(folder, fd.get());
    for (const Found& each : found) out.push_back(describe(folder, fd.get(), each));
    if (before) before(out);
    for (std::size_t i = 0; i < found.size(); ++i) {
      if (found[i].entries.empty() || (found[i].state != Found::State::own && !trust_journal)) continue;
      out[i].why = io::undo_all(fd.get(), found[i]);
      out[i].undone = out[i].why.empty();
    }
  }  // unlocks the journals, which the next step locks again
  io::recover(folder);
  for (const LeftJournal& each : out)
    if (!each.undone) {
      const std::string said = "the journal '" + each.path + "' is not undone, because " + each.why;
      if (!trust_journal && !each.steps.empty()) io::refuse_journal(each.path, "io/half-published", said);
      base::io_error_of(each.path, "half-published", said);
    }
  return out;
}

}  // namespace weighbridge
