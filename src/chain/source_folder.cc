// SPDX-License-Identifier: Apache-2.0
// Opens the files of source folders.
#include "chain/source_folder.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>

#include "base/fail.h"
#include "chain/source_schemas.h"
#include "io/file_source.h"
#include "io/temporary.h"

namespace weighbridge::chain::internal {
namespace {

constexpr std::size_t kMaxName = 255, kMaxPath = 4096;
constexpr unsigned kMaxDepth = 64;  // of folders below tensors/

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
  constexpr std::string_view kBefore = "tensors/";
  if (path.starts_with('/')) return "is absolute";
  if (!path.starts_with(kBefore)) return "does not lie in tensors/";
  if (path.size() > kMaxPath) return "has more than 4096 bytes";
  if (path.find('\\') != std::string_view::npos) return "has a backslash, which separates folders on some systems";
  if (std::ranges::any_of(path, [](unsigned char c) { return c < 0x20 || c == 0x7f; }))
    return "has a control character";
  for (std::string_view rest = path.substr(kBefore.size());;) {
    const std::size_t end = std::min(rest.find('/'), rest.size());
    const std::string_view name = rest.substr(0, end);
    if (name.empty()) return "has an empty name in it";
    if (name == ".." || name == ".") return "has " + std::string(name) + " in it";
    if (name.size() > kMaxName) return "has a name of more than 255 bytes";
    if (end == rest.size()) return {};
    rest.remove_prefix(end + 1);
  }
}

std::vector<std::string> source_files(const std::string& folder) {
  std::vector<std::string> out{folder + "/" + std::string(kSourceManifest), folder + "/" + std::string(kReviewCopy)};
  std::error_code error;
  for (std::filesystem::recursive_directory_iterator at(folder + "/" + std::string(kTensorFolder), error), end;
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
  io::Fd inner;
  int folder = tensors_.get();
  std::size_t begin = kTensorFolder.size() + 1;
  for (std::size_t end; (end = path.find('/', begin)) != std::string::npos; begin = end + 1) {
    const int fd =
        open_again(folder, path.substr(begin, end - begin).c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0) {
      if (errno == ENOENT) refuse("path", path, "is missing", {}, "a regular file", "nothing");
      if (errno == ELOOP || errno == ENOTDIR)
        refuse("path", path, "leads through a link or a file", {}, "folders", path.substr(0, end));
      base::io_error_of(path_ + "/" + path, "open", "cannot be opened", errno);
    }
    inner = io::Fd(fd);
    folder = fd;
  }
  return open_at(folder, path.substr(begin), path);
}

void SourceFolder::list(int folder, const std::string& path, unsigned depth, std::vector<std::string>& out) const {
  const int fd = open_again(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  const std::unique_ptr<DIR, int (*)(DIR*)> entries(fd < 0 ? nullptr : ::fdopendir(fd), ::closedir);
  if (!entries) base::io_error_of(path_ + "/" + path, "open", "the folder cannot be listed", errno);
  for (;;) {
    errno = 0;  // tells the end from a failure
    const dirent* const entry = ::readdir(entries.get());
    if (entry == nullptr) break;
    const std::string name = entry->d_name;
    if (name == "." || name == "..") continue;
    std::string below = path + "/" + name;
    const io::Fd inside(open_again(folder, name.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
    if (inside.get() < 0)  // no folder, or one that cannot be opened
      out.push_back(std::move(below));
    else if (depth == kMaxDepth)
      refuse("path", below, "is a folder too deep below tensors/", {}, "at most 64 folders", "more");
    else
      list(inside.get(), below, depth + 1, out);
  }
  if (errno != 0) base::io_error_of(path_ + "/" + path, "read", "the folder cannot be listed", errno);
}

std::vector<std::string> SourceFolder::tensor_paths() const {
  std::vector<std::string> out;
  list(tensors_.get(), std::string(kTensorFolder), 1, out);
  std::ranges::sort(out);
  return out;
}

}  // namespace weighbridge::chain::internal
