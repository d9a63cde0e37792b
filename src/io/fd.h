// SPDX-License-Identifier: Apache-2.0
// A file descriptor, and complete reads and writes on it. Owns the retry loops, and helpers for paths and renames.
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

// Owns a descriptor and closes it. -1 means none.
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

// Reads until `out` is full or the file ends; returns the bytes read. Error io/read, naming `path`.
std::size_t pread_full(int fd, std::uint64_t offset, std::span<std::byte> out, const std::string& path);
// Writes all of `data`. Error io/write, naming `path`. Safe from several threads for ranges that do not overlap.
void pwrite_full(int fd, std::uint64_t offset, std::span<const std::byte> data, const std::string& path);

// "a directory", "a FIFO", "a character device", ...; "a regular file" for S_IFREG.
const char* file_kind(mode_t mode) noexcept;
// Throws Error misuse/path if the path is empty or contains a NUL, where the system would cut it.
void require_path(const std::string& path);
// Splits a path into folder and last component: "a/b" -> ("a", "b"), "b" -> (".", "b"), "/b" -> ("/", "b").
struct SplitPath {
  std::string folder, name;
};
SplitPath split_path(const std::string& path);
// folder + "/" + name without the "./" that split_path adds.
std::string join_path(const std::string& folder, const std::string& name);

// Renames, and replaces `to` if it exists. As renameat: 0, or -1 with errno.
int rename_over(int from_folder, const char* from, int to_folder, const char* to) noexcept;
// Renames a file or a folder unless `to` exists, atomically if the filesystem supports it. 0, or -1 with errno; EEXIST
// if `to` exists.
int rename_new(int from_folder, const char* from, int to_folder, const char* to) noexcept;
// Swaps two names atomically. 0, or -1 with errno; not_offered(errno) if the filesystem does not support it.
int exchange(int folder, const char* name, int other_folder, const char* other_name) noexcept;
// Syncs the names in the folder. 0, or -1 with errno. A filesystem that cannot sync folders (EINVAL) counts as success.
int sync_folder(int folder) noexcept;
// Whether this errno means that the system does not support a call or one of its flags, so the caller should try
// another way.
bool not_offered(int error) noexcept;

// Whether both paths are the same file by device and inode, links followed; false if either is absent.
bool same_file(const std::string& a, const std::string& b);
// Which of these files the path is, through any link; null if none. `besides` is left out, and so is what has no
// Source::path().
const Source* find_file(const std::string& path, std::span<const std::shared_ptr<const Source>> sources,
                        const Source* besides = nullptr);

}  // namespace weighbridge::io
