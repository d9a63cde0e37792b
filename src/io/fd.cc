// SPDX-License-Identifier: Apache-2.0
// Loops around reads and writes, and the few path helpers that io shares.
#include "io/fd.h"

#include <cerrno>

#include "base/fail.h"

namespace weighbridge::io {

std::size_t pread_full(int fd, std::uint64_t offset, std::span<std::byte> out, const std::string& path) {
  std::size_t done = 0;
  while (done < out.size()) {
    const std::int64_t got = os::read_at(fd, offset + done, out.subspan(done));
    if (got == 0) break;
    if (got < 0) base::io_error_of(path, "read", "cannot be read", errno);
    done += static_cast<std::size_t>(got);
  }
  return done;
}

void pwrite_full(int fd, std::uint64_t offset, std::span<const std::byte> data, const std::string& path) {
  std::size_t done = 0;
  while (done < data.size()) {
    const std::int64_t put = os::write_at(fd, offset + done, data.subspan(done));
    if (put < 0) base::io_error_of(path, "write", "cannot be written", errno);
    // POSIX allows 0 for a nonzero count; treating it as progress would loop forever.
    if (put == 0) base::io_error_of(path, "write", "cannot be written", ENOSPC);
    done += static_cast<std::size_t>(put);
  }
}

const char* file_kind(os::Kind kind) noexcept {
  constexpr const char* kWords[] = {"a regular file", "a directory",        "a symbolic link", "a FIFO",
                                    "a socket",       "a character device", "a block device",  "a special file"};
  return kWords[static_cast<std::size_t>(kind)];
}

void require_path(const std::string& path) {
  if (path.empty()) base::misuse("path", "the path is empty");
  if (path.find('\0') != std::string::npos) base::misuse("path", "the path contains a NUL byte");
}

SplitPath split_path(const std::string& path) {
  const std::size_t slash = path.rfind('/');
  if (slash == std::string::npos) return {".", path};
  return {slash == 0 ? "/" : path.substr(0, slash), path.substr(slash + 1)};
}

std::string join_path(const std::string& folder, const std::string& name) {
  if (folder == ".") return name;
  return folder.back() == '/' ? folder + name : folder + "/" + name;
}

// Emscripten's filesystem has no hard links and reports EMLINK; link() reports EPERM for a folder.
bool not_offered(int error) noexcept {
  return error == EOPNOTSUPP || error == ENOTSUP || error == ENOSYS || error == EINVAL || error == EPERM ||
         error == EMLINK;
}

int rename_new(int from_folder, const char* from, int to_folder, const char* to) noexcept {
  if (os::rename_unless_taken(from_folder, from, to_folder, to) == 0) return 0;
  if (!not_offered(errno)) return -1;
  if (os::add_name(from_folder, from, to_folder, to) == 0) {
    os::remove(from_folder, from);
    return 0;
  }
  if (!not_offered(errno)) return -1;
  // Neither call exists (FAT, Emscripten): check, then rename. The race between the two cannot be avoided there.
  if (os::status(to_folder, to)) {
    errno = EEXIST;
    return -1;
  }
  return os::rename_over(from_folder, from, to_folder, to);
}

int sync_folder(int folder) noexcept { return os::sync(folder) == 0 || errno == EINVAL ? 0 : -1; }

namespace {
std::optional<os::Status> status_of(std::string_view path) noexcept {
  return os::status(os::kHere, std::string(path).c_str(), os::Last::followed);
}
}  // namespace

bool same_file(const std::string& a, const std::string& b) {
  const auto one = status_of(a), other = one ? status_of(b) : std::nullopt;
  return other && one->is_same_file(*other);
}

const Source* find_file(const std::string& path, std::span<const std::shared_ptr<const Source>> sources,
                        const Source* besides) {
  const auto file = status_of(path);
  if (!file) return nullptr;
  std::string_view last;
  for (const auto& each : sources) {
    if (each.get() == besides || each->path().empty() || each->path() == last) continue;
    last = each->path();
    if (const auto there = status_of(last); there && there->is_same_file(*file)) return each.get();
  }
  return nullptr;
}

}  // namespace weighbridge::io
