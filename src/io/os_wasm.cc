// SPDX-License-Identifier: Apache-2.0
// WebAssembly by Emscripten: POSIX over a disk in memory, which ends with the run and has one user.
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <climits>
#include <cstdio>

#include "io/os.h"

namespace weighbridge::io::os {
namespace {

int not_here() noexcept {
  errno = ENOSYS;
  return -1;
}

}  // namespace

Fd open_beneath(Handle, const char*) noexcept { return Fd(not_here()); }
std::optional<Link> link_at(Handle folder, const char* name) {
  std::array<char, PATH_MAX> text;
  const ssize_t length = ::readlinkat(folder, name, text.data(), text.size());
  const auto found = length < 0 ? std::nullopt : status(folder, name);
  if (!found) return std::nullopt;
  return Link{*found, std::string(text.data(), static_cast<std::size_t>(length))};
}

// Emscripten keeps a file that another was renamed over, and shows it again once that one is removed, so remove it
// first. Nobody sees the moment in between.
int rename_over(Handle from_folder, const char* from, Handle to_folder, const char* to) noexcept {
  ::unlinkat(to_folder, to, 0);
  return ::renameat(from_folder, from, to_folder, to);
}
int rename_unless_taken(Handle, const char*, Handle, const char*) noexcept { return not_here(); }
int exchange(Handle, const char*, Handle, const char*) noexcept { return not_here(); }

std::int64_t read_at(Handle, std::uint64_t, std::span<const std::span<std::byte>>) noexcept { return not_here(); }
// Emscripten would copy the bytes instead of mapping them.
std::shared_ptr<const std::byte> map(Handle, std::uint64_t, std::uint64_t) {
  errno = ENOTSUP;
  return nullptr;
}
void will_need(Handle, std::uint64_t, std::uint64_t) noexcept {}
std::int64_t next_data(Handle fd, std::uint64_t offset) noexcept {
  const auto there = status(fd);
  if (!there || offset < there->size) return static_cast<std::int64_t>(offset);
  errno = ENXIO;
  return -1;
}
std::int64_t next_hole(Handle fd, std::uint64_t) noexcept {
  const auto there = status(fd);
  return there ? static_cast<std::int64_t>(there->size) : -1;
}
int allocate(Handle, std::uint64_t) noexcept { return not_here(); }
void start_writing(Handle, std::uint64_t, std::uint64_t) noexcept {}
int clone_range(Handle, std::uint64_t, std::uint64_t, Handle, std::uint64_t) noexcept { return not_here(); }
std::int64_t copy_range(Handle, std::uint64_t, std::uint64_t, Handle, std::uint64_t) noexcept { return not_here(); }

std::optional<std::string> attribute_names(Handle) {
  errno = ENOTSUP;
  return std::nullopt;
}
std::optional<std::string> attribute(Handle, const char*) { return attribute_names(kHere); }
int set_attribute(Handle, const char*, std::string_view) noexcept { return not_here(); }
int remove_attribute(Handle, const char*) noexcept { return not_here(); }

bool is_shared() noexcept { return false; }
int lock(Handle) noexcept { return 0; }
int take_lease(Handle) noexcept { return not_here(); }
void end_lease(Handle) noexcept {}

bool random_bytes(std::span<std::byte> out) noexcept { return ::getentropy(out.data(), out.size()) == 0; }
std::size_t max_open_files() noexcept { return SIZE_MAX; }

}  // namespace weighbridge::io::os
