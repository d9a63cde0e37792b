// SPDX-License-Identifier: Apache-2.0
// Renames the old file away and back.
#include "io/set_aside.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>

#include "base/fail.h"

namespace weighbridge::io {

SetAside::SetAside(const std::string& path, bool replace) {
  SplitPath split = split_path(path);
  target_ = {std::move(split.folder), std::move(split.name)};
  struct stat there {};
  const std::string cannot = "cannot be moved aside";
  if (::lstat(path.c_str(), &there) != 0) {
    if (errno != ENOENT && errno != ENOTDIR) base::io_error_of(path, "publish", cannot, errno);
    if (::stat(target_.folder.c_str(), &there) == 0 && S_ISDIR(there.st_mode)) folder_ = open_folder(target_.folder);
    if (folder_) remove_stale(folder_.get(), target_.name);
    return;
  }
  if (S_ISDIR(there.st_mode))
    base::misuse_of(path, "output-kind", cannot + ": it is a directory, and a file is expected");
  folder_ = open_folder(target_.folder);
  remove_stale(folder_.get(), target_.name);
  if (!replace) return;
  lock_ = lock_file(folder_.get(), target_.name);
  std::string aside = temporary_name(target_.name);
  if (::renameat(folder_.get(), target_.name.c_str(), folder_.get(), aside.c_str()) != 0)
    base::io_error_of(path, "publish", cannot, errno);
  aside_ = std::move(aside);
  // The removal of the name must reach the disk before new files get their names.
  if (sync_folder(folder_.get()) != 0) {
    const int error = errno;
    put_back(false);
    base::io_error_of(path, "publish", cannot, error);
  }
}

SetAside::~SetAside() { put_back(false); }

void SetAside::put_back(bool published) noexcept {
  if (!folder_) return;
  if (!aside_.empty())
    rename_over(folder_.get(), aside_.c_str(), folder_.get(), target_.name.c_str());
  else if (published)
    ::unlinkat(folder_.get(), target_.name.c_str(), 0);
  folder_ = Fd();
}

void SetAside::settle() noexcept {
  if (folder_ && !aside_.empty()) ::unlinkat(folder_.get(), aside_.c_str(), 0);
  folder_ = Fd();
}

}  // namespace weighbridge::io
