// SPDX-License-Identifier: Apache-2.0
// Opens the files of source folders.
#include "chain/source_folder.h"

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
  tensors_ = io::os::open_folder(folder_.get(), "tensors");
  if (!tensors_) {
    if (errno != ENOENT && errno != ELOOP && errno != ENOTDIR)
      base::io_error_of(path_ + "/tensors", "open", "cannot be opened", errno);
    const bool link = errno == ELOOP || errno == ENOTDIR;
    refuse("path", "tensors",
           link ? "is a link or a file, where the folder of the tensors is to be" : "cannot be opened", {}, "a folder",
           link ? "a link or a file" : "none");
  }
}

std::shared_ptr<const Source> SourceFolder::open_at(int folder, const std::string& name,
                                                    const std::string& shown) const {
  io::Fd held = io::os::open_to_read(folder, name.c_str());
  if (!held) {
    const int error = errno;
    if (error == ENOENT) refuse("path", shown, "is missing", {}, "a regular file", "nothing");
    if (error == ELOOP)
      refuse("path", shown, "is a symbolic link, which is not followed", {}, "a regular file", "a link");
    base::io_error_of(path_ + "/" + shown, "open", "cannot be opened", error);
  }
  const auto status = io::os::status(held.get());
  if (!status) base::io_error_of(path_ + "/" + shown, "open", "cannot be examined", errno);
  if (status->kind != io::os::Kind::file)
    refuse("path", shown, std::string("is ") + io::file_kind(status->kind), {}, "a regular file",
           io::file_kind(status->kind));
  if (status->links > 1)
    refuse("path", shown,
           "has " + std::to_string(status->links) +
               " hard links: under another name it could be changed from elsewhere; copy it",
           {}, "1 link", std::to_string(status->links) + " links");
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
    io::Fd next = io::os::open_folder(folder, path.substr(begin, end - begin).c_str());
    if (!next) {
      if (errno == ENOENT) refuse("path", path, "is missing", {}, "a regular file", "nothing");
      if (errno == ELOOP || errno == ENOTDIR)
        refuse("path", path, "leads through a link or a file", {}, "folders", path.substr(0, end));
      base::io_error_of(path_ + "/" + path, "open", "cannot be opened", errno);
    }
    inner = std::move(next);
    folder = inner.get();
  }
  return open_at(folder, path.substr(begin), path);
}

void SourceFolder::list(int folder, const std::string& path, unsigned depth, std::vector<std::string>& out) const {
  const auto names = io::os::list(folder);
  if (!names) base::io_error_of(path_ + "/" + path, "open", "the folder cannot be listed", errno);
  for (const std::string& name : *names) {
    std::string below = path + "/" + name;
    const io::Fd inside = io::os::open_folder(folder, name.c_str());
    if (!inside)  // no folder, or one that cannot be opened
      out.push_back(std::move(below));
    else if (depth == kMaxDepth)
      refuse("path", below, "is a folder too deep below tensors/", {}, "at most 64 folders", "more");
    else
      list(inside.get(), below, depth + 1, out);
  }
}

std::vector<std::string> SourceFolder::tensor_paths() const {
  std::vector<std::string> out;
  list(tensors_.get(), std::string(kTensorFolder), 1, out);
  std::ranges::sort(out);
  return out;
}

}  // namespace weighbridge::chain::internal
