// SPDX-License-Identifier: Apache-2.0
// Opens the files of source folders.
#include "chain/source_folder.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <memory>

#include "base/fail.h"
#include "chain/record.h"
#include "chain/source_schemas.h"
#include "io/file_source.h"
#include "io/temporary.h"

namespace weighbridge::chain {
namespace {

constexpr std::string_view kAllowed = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-";
constexpr std::size_t kMaxName = 255;

// openat that restarts after signals.
int open_again(int folder, const char* name, int flags) {
  int fd = -1;
  do {
    fd = ::openat(folder, name, flags);
  } while (fd < 0 && errno == EINTR);
  return fd;
}

}  // namespace

std::string path_problem(std::string_view path) {
  constexpr std::string_view kBefore = "tensors/", kEnding = ".f32";
  if (path.starts_with('/')) return "is absolute";
  if (!path.starts_with(kBefore)) return "does not lie in tensors/";
  const std::string_view name = path.substr(kBefore.size());
  if (name.find("..") != std::string_view::npos) return "has .. in it";
  if (name.find('/') != std::string_view::npos) return "leads below tensors/, which has no folders";
  if (name.find_first_not_of(kAllowed) != std::string_view::npos) return "has a character other than a-z A-Z 0-9 . _ -";
  if (!name.ends_with(kEnding) || name.size() == kEnding.size()) return "does not end in .f32 behind a name";
  if (name.front() == '.' || name.front() == '-') return "begins with a dot or a dash";
  if (name.size() > kMaxName) return "has a name of more than 255 bytes";
  return {};
}

std::vector<std::string> source_files(const std::string& folder) {
  std::vector<std::string> out{folder + "/" + std::string(kSourceManifest), folder + "/" + std::string(kReviewCopy)};
  std::error_code error;
  for (std::filesystem::directory_iterator at(folder + "/" + std::string(kTensorFolder), error), end;
       !error && at != end; at.increment(error))
    out.push_back(at->path().string());
  return out;
}

SourceFolder::SourceFolder(const std::string& path) : path_(path), folder_(io::open_folder(path)) {
  const int fd = open_again(folder_.get(), "tensors", O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  if (fd < 0) {
    if (errno != ENOENT && errno != ELOOP && errno != ENOTDIR)
      base::io_error_of(path_ + "/tensors", "open", "cannot be opened", errno);
    const bool link = errno == ELOOP || errno == ENOTDIR;
    refuse("path", "tensors",
           link ? "is a link or a file, where the folder of the tensors is to be" : "cannot be opened", {}, "a folder",
           link ? "a link or a file" : "none");
  }
  tensors_ = io::Fd(fd);
}

std::shared_ptr<const Source> SourceFolder::open_at(int folder, const std::string& name,
                                                    const std::string& shown) const {
  const int fd = open_again(folder, name.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
  if (fd < 0) {
    const int error = errno;
    if (error == ENOENT) refuse("path", shown, "is missing", {}, "a regular file", "nothing");
    if (error == ELOOP)
      refuse("path", shown, "is a symbolic link, which is not followed", {}, "a regular file", "a link");
    base::io_error_of(path_ + "/" + shown, "open", "cannot be opened", error);
  }
  io::Fd held(fd);
  struct stat status {};
  if (::fstat(fd, &status) != 0) base::io_error_of(path_ + "/" + shown, "open", "cannot be examined", errno);
  if (!S_ISREG(status.st_mode))
    refuse("path", shown, std::string("is ") + io::file_kind(status.st_mode), {}, "a regular file",
           io::file_kind(status.st_mode));
  if (status.st_nlink > 1)
    refuse("path", shown,
           "has " + std::to_string(status.st_nlink) +
               " hard links: under another name it could be changed from elsewhere; copy it",
           {}, "1 link", std::to_string(status.st_nlink) + " links");
  return io::source_from_fd(std::move(held), path_ + "/" + shown);
}

std::shared_ptr<const Source> SourceFolder::file(const std::string& name) const {
  return open_at(folder_.get(), name, name);
}

std::shared_ptr<const Source> SourceFolder::tensor(const std::string& path) const {
  return open_at(tensors_.get(), path.substr(kTensorFolder.size() + 1), path);
}

std::vector<std::string> SourceFolder::tensor_names() const {
  const int fd = open_again(tensors_.get(), ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  const std::unique_ptr<DIR, int (*)(DIR*)> folder(fd < 0 ? nullptr : ::fdopendir(fd), ::closedir);
  if (!folder) base::io_error_of(path_ + "/tensors", "open", "the folder cannot be listed", errno);
  std::vector<std::string> out;
  for (;;) {
    errno = 0;  // tells the end from a failure
    const dirent* const entry = ::readdir(folder.get());
    if (entry == nullptr) break;
    const std::string_view name = entry->d_name;
    if (name != "." && name != "..") out.emplace_back(name);
  }
  if (errno != 0) base::io_error_of(path_ + "/tensors", "read", "the folder cannot be listed", errno);
  std::ranges::sort(out);
  return out;
}

}  // namespace weighbridge::chain
