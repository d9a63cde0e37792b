// SPDX-License-Identifier: Apache-2.0
// Complete reads and writes of an open file, and what more than one caller of os.h needs: paths, renames, kinds.
#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "io/os.h"
#include "weighbridge/source.h"

namespace weighbridge::io {

// Reads until `out` is full or the file ends; returns the bytes read. Error io/read, naming `path`.
std::size_t pread_full(int fd, std::uint64_t offset, std::span<std::byte> out, const std::string& path);
// Writes all of `data`. Error io/write, naming `path`. Safe from several threads for ranges that do not overlap.
void pwrite_full(int fd, std::uint64_t offset, std::span<const std::byte> data, const std::string& path);

// "a directory", "a FIFO", "a character device", ...
const char* file_kind(os::Kind) noexcept;
// How long a name in a folder, and a path, may be: the limits of Linux.
inline constexpr std::size_t kMaxName = 255, kMaxPath = 4096;
// Throws Error misuse/path if the path is empty or contains a NUL, where the system would cut it.
void require_path(const std::string& path);
// Splits a path into folder and last component: "a/b" -> ("a", "b"), "b" -> (".", "b"), "/b" -> ("/", "b").
struct SplitPath {
  std::string folder, name;
};
SplitPath split_path(const std::string& path);
// folder + "/" + name without the "./" that split_path adds.
std::string join_path(const std::string& folder, const std::string& name);

// Renames a file or a folder unless `to` exists, atomically if the filesystem supports it. 0, or -1 with errno; EEXIST
// if `to` exists.
int rename_new(int from_folder, const char* from, int to_folder, const char* to) noexcept;
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
