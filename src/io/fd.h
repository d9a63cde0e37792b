// SPDX-License-Identifier: Apache-2.0
// A file descriptor and whole reads and writes on it. Owns the retry loops; leaves policy and names to its callers.
#pragma once
#include <sys/stat.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>

#include "weighbridge/source.h"

namespace weighbridge::io {

// Closes what it holds. Empty is -1.
class Fd {
 public:
  Fd() = default;
  explicit Fd(int fd) noexcept : fd_(fd) {}
  Fd(Fd&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Fd& operator=(Fd&& other) noexcept {
    Fd(std::move(other)).swap(*this);
    return *this;
  }
  ~Fd();
  int get() const noexcept { return fd_; }
  // The descriptor, which the caller closes.
  int release() noexcept { return std::exchange(fd_, -1); }
  explicit operator bool() const noexcept { return fd_ >= 0; }
  void swap(Fd& other) noexcept { std::swap(fd_, other.fd_); }

 private:
  int fd_ = -1;
};

// Reads until `out` is full, the file ends or the machine says no; returns the bytes read. Error io/read, naming
// `path`.
std::size_t pread_full(int fd, std::uint64_t offset, std::span<std::byte> out, const std::string& path);
// Writes all of `data`. Error io/write, naming `path`. Safe from several threads for ranges that do not overlap.
void pwrite_full(int fd, std::uint64_t offset, std::span<const std::byte> data, const std::string& path);

// "a directory", "a FIFO", "a character device", ...; "a regular file" for S_IFREG.
const char* file_kind(mode_t mode) noexcept;
// Refuses a path that the system would read only up to its first NUL, or that is empty. Error misuse/path.
void require_path(const std::string& path);
// Where a path is looked up and what for: ("a/b" -> "a", "b"), ("b" -> ".", "b"), ("/b" -> "/", "b").
struct SplitPath {
  std::string folder, name;
};
SplitPath split_path(const std::string& path);
// folder + "/" + name without the "./" that split_path adds.
std::string join_path(const std::string& folder, const std::string& name);

// Renames in the place of what may have the name `to`. As renameat: 0, or -1 with errno.
int rename_over(int from_folder, const char* from, int to_folder, const char* to) noexcept;
// Renames a file or a folder only where nothing has the name `to`, in one step where the filesystem can. 0, or -1 with
// errno: EEXIST where something has the name.
int rename_new(int from_folder, const char* from, int to_folder, const char* to) noexcept;
// Two names change places in one step. 0, or -1 with errno: not_offered() where the filesystem has no such step.
int exchange(int folder, const char* name, int other_folder, const char* other_name) noexcept;
// Waits until the disk has the names in the folder. 0, or -1 with errno; a filesystem that cannot do so, which says
// EINVAL, has done all that it can.
int sync_folder(int folder) noexcept;
// True of an errno by which the system says that it knows a call or a flag of it not at all, so that another way is
// worth trying.
bool not_offered(int error) noexcept;

// The same file by device and inode, links followed; false when either is absent.
bool same_file(const std::string& a, const std::string& b);
// Whether the path is one of these files by any link. A name in angle brackets is no path and is none of them.
bool is_one_of(const std::string& path, std::span<const std::shared_ptr<const Source>> sources);

}  // namespace weighbridge::io
