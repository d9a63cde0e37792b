// SPDX-License-Identifier: Apache-2.0
// Names, locks and removal of temporaries.
#include "io/temporary.h"

#include <algorithm>
#include <cerrno>
#include <optional>
#include <string_view>

#include "base/fail.h"
#include "io/place.h"

namespace weighbridge::io {
namespace {

constexpr std::string_view kMark = ".weighbridge-", kEnding = ".tmp";
constexpr std::size_t kDigits = 16;
constexpr int kMaxLinks = 40;  // the kernel's limit

// ".<name>.weighbridge-"
std::string prefix_of(const std::string& name) {
  return "." + std::string(name_in_temporaries(name)) + std::string(kMark);
}

bool is_temporary_of(std::string_view entry, std::string_view prefix) noexcept {
  return entry.size() == prefix.size() + kDigits + kEnding.size() && entry.starts_with(prefix) && is_temporary(entry);
}

std::string random_digits() {
  unsigned char bytes[kDigits / 2];
  if (!os::random_bytes(std::as_writable_bytes(std::span(bytes))))
    base::io_error("create", "the system provides no random numbers", errno);
  std::string out;
  for (const unsigned char byte : bytes) {
    out += "0123456789abcdef"[byte >> 4];
    out += "0123456789abcdef"[byte & 15];
  }
  return out;
}

// Whether `name` in the folder is still the file that `fd` holds.
bool still_named(int folder, const char* name, int fd) noexcept {
  const auto held = os::status(fd), there = held ? os::status(folder, name) : std::nullopt;
  return there && held->is_same_file(*there);
}

// The text of the link at this path; none if it is no link. Error io/create for a link that another user put into a
// world-writable folder (/tmp): it could lead to any of our files. The kernel does not follow such links either
// (protected_symlinks), but it does let us read them, as here.
std::optional<std::string> link_at(const std::string& path, const std::string& folder) {
  auto link = os::link_at(os::kHere, path.c_str());
  if (!link) return std::nullopt;
  constexpr unsigned kSticky = 01000, kForEverybody = 0002;
  const auto parent = os::status(os::kHere, folder.c_str(), os::Last::followed);
  if (!parent || ((parent->mode & kSticky) != 0 && (parent->mode & kForEverybody) != 0 &&
                  link->status.owner != os::user() && link->status.owner != parent->owner))
    base::io_error_of(path, "create", "cannot be written: somebody else put this link into a folder for everybody");
  return std::move(link->text);
}

// Calls visit(name) for each entry of the folder; for none if it cannot be listed.
template <typename Visit> void for_each_entry(int folder, Visit&& visit) {
  if (const auto names = os::list(folder))
    for (const std::string& name : *names) visit(name);
}

// Removes a temporary, and what is in it, if nobody holds it.
void remove_if_stale(int folder, const char* entry, os::Kind kind) {
  const Fd fd = os::open_to_read(folder, entry);
  const auto held = fd ? os::status(fd.get()) : std::nullopt;
  if (!held || held->kind != kind || os::lock(fd.get()) != 0) return;
  // Its owner may have published it between our open and our lock; then the name is gone or belongs to another file.
  if (!still_named(folder, entry, fd.get())) return;
  kind == os::Kind::folder ? remove_folder(folder, entry) : static_cast<void>(os::remove(folder, entry));
}

// A locked temporary that `make(name)` opens; if that returns none, errno is EEXIST if another name should be tried.
template <typename Make, typename Refuse>
Temporary create_locked(int folder, const Target& target, Make&& make, Refuse&& refuse) {
  for (int attempt = 0; attempt < 100; ++attempt) {
    std::string name = temporary_name(target.name);
    Fd fd = make(name.c_str());
    if (!fd) {
      if (errno == EEXIST || errno == EINTR) continue;
      refuse(errno);
    }
    // Until it is locked, another run may take it for stale, and may have locked or removed it already.
    if (os::lock(fd.get()) != 0 && errno == EWOULDBLOCK) continue;
    // Without flock, no run can lock it, so none treats it as stale.
    if (!still_named(folder, name.c_str(), fd.get())) continue;
    return {std::move(fd), std::move(name)};
  }
  refuse(EEXIST);
  return {};
}

}  // namespace

Target resolve_target(const std::string& path) {
  require_path(path);
  std::string at = path;
  for (int links = 0; links <= kMaxLinks; ++links) {
    SplitPath split = split_path(at);
    if (split.name.empty() || split.name == "." || split.name == "..")
      base::misuse_of(path, "output-kind", "this names a directory, not a file to write");
    const std::optional<std::string> to = link_at(at, split.folder);
    if (!to) return {std::move(split.folder), std::move(split.name)};
    at = to->starts_with('/') ? *to : join_path(split.folder, *to);
  }
  base::io_error_of(path, "create", "cannot be written", ELOOP);
}

Fd open_folder(const std::string& folder) {
  Fd fd = os::open_folder(os::kHere, folder.c_str(), os::Last::followed);
  if (!fd) base::io_error_of(folder, "open", "the folder cannot be opened", errno);
  return fd;
}

Fd open_folder_beneath(const std::string& root, const std::string& file) {
  Fd top = open_folder(root);
  const std::string start = join_path(root, "");
  const Beneath at = look_beneath(top.get(), file.substr(std::min(start.size(), file.size())));
  if (at.folder >= 0 && !at.held) return top;
  Fd out = at.folder < 0 ? Fd() : os::open_folder(at.folder, ".");
  if (!out) base::io_error_of(file, "open", "its folder cannot be opened", errno);
  return out;
}

void sync_folder(const std::string& folder) {
  if (sync_folder(open_folder(folder).get()) != 0)
    base::io_error_of(folder, "publish", "the folder cannot be written to the disk", errno);
}

bool has_our_digits(std::string_view entry, std::string_view ending) noexcept {
  const std::size_t tail = kMark.size() + kDigits + ending.size();
  if (entry.size() < tail || !entry.ends_with(ending)) return false;
  entry.remove_prefix(entry.size() - tail);
  return entry.starts_with(kMark) &&
         entry.substr(kMark.size(), kDigits).find_first_not_of("0123456789abcdef") == std::string_view::npos;
}
bool is_temporary(std::string_view entry) noexcept {
  return entry.size() > kMark.size() + kDigits + kEnding.size() && entry.starts_with('.') &&
         has_our_digits(entry, kEnding);
}
bool is_journal(std::string_view entry) noexcept {
  return entry.size() == kMark.size() + kDigits + kJournalEnding.size() && has_our_digits(entry, kJournalEnding);
}

void remove_folder(int folder, const std::string& name) noexcept {
  const Fd fd = os::open_folder(folder, name.c_str());
  if (fd) for_each_entry(fd.get(), [&](const std::string& entry) { os::remove(fd.get(), entry.c_str()); });
  os::remove_folder(folder, name.c_str());
}

void remove_stale(int folder, const std::string& name, os::Kind kind) noexcept try {
  if (!os::is_shared()) return;
  const std::string prefix = prefix_of(name);
  bool has_journal = false;
  if (kind == os::Kind::folder)
    for_each_entry(folder, [&](const std::string& entry) { has_journal |= is_journal(entry); });
  if (has_journal) return;
  for_each_entry(folder, [&](const std::string& entry) {
    if (is_temporary_of(entry, prefix)) remove_if_stale(folder, entry.c_str(), kind);
  });
} catch (...) {
  // Out of memory: stale temporaries stay until the next run.
}

void remove_stale_of(int folder, const std::function<bool(std::string_view name)>& is_target) noexcept try {
  if (!os::is_shared()) return;
  for_each_entry(folder, [&](const std::string& entry) {
    std::string_view name = entry;
    if (!is_temporary(name)) return;
    name.remove_prefix(1);
    name.remove_suffix(kMark.size() + kDigits + kEnding.size());
    if (is_target(name)) remove_if_stale(folder, entry.c_str(), os::Kind::file);
  });
} catch (...) {
  // As above.
}

std::string_view name_in_temporaries(std::string_view name) noexcept {
  std::size_t length = std::min(name.size(), kMaxName - (1 + kMark.size() + kDigits + kEnding.size()));
  if (length < name.size())  // between UTF-8 characters
    while (length > 0 && (static_cast<unsigned char>(name[length]) & 0xC0U) == 0x80) --length;
  return name.substr(0, length);
}

std::string temporary_name(const std::string& name) { return prefix_of(name) + random_digits() + std::string(kEnding); }

std::string temporary_name_like(const std::string& name, std::string_view other) {
  return prefix_of(name) + std::string(other.substr(other.size() - kDigits - kEnding.size()));
}

Fd lock_file(int folder, const std::string& name) noexcept {
  Fd fd = os::open_to_read(folder, name.c_str());
  return fd && os::lock(fd.get()) == 0 ? std::move(fd) : Fd();
}

Temporary create_temporary(int folder, const Target& target, unsigned mode) {
  const auto make = [&](const char* name) { return os::create(folder, name, mode); };
  return create_locked(folder, target, make, [&](int error) {
    base::io_error_of(target.folder, "create", "no file can be created in the folder", error);
  });
}

Temporary create_temporary_folder(int folder, const Target& target, unsigned mode) {
  const auto make = [&](const char* name) {
    if (os::make_folder(folder, name, mode) != 0) return Fd();
    Fd fd = os::open_folder(folder, name);
    if (fd) return fd;
    const int error = errno == ENOENT ? EEXIST : errno;  // another run took it for stale and removed it
    os::remove_folder(folder, name);                     // the umask may deny access even to its owner
    errno = error;
    return fd;
  };
  return create_locked(folder, target, make, [&](int error) {
    base::io_error_of(target.folder, "create", "the folder cannot be written into", error);
  });
}

}  // namespace weighbridge::io
