// SPDX-License-Identifier: Apache-2.0
// Files, folders and sets of files as places. Opens a name first, then checks the descriptor: openat2 cannot leave the
// folder, the fallback walk follows no link, and a cache blob is opened without following one. A closed descriptor is
// reopened in the same way, in the same open folder.
#include "io/place.h"

#include <fcntl.h>
#include <unistd.h>
#ifdef __linux__
#include <linux/openat2.h>
#include <sys/syscall.h>
#endif

#include <algorithm>
#include <array>
#include <cerrno>
#include <filesystem>
#include <mutex>
#include <optional>
#include <system_error>
#include <utility>

#include "base/fail.h"
#include "io/descriptor.h"
#include "io/fd.h"
#include "io/file_source.h"

namespace weighbridge::io {
namespace {

namespace fs = std::filesystem;

constexpr int kFolder = O_PATH | O_DIRECTORY | O_CLOEXEC;

void require_relative(std::string_view relative) {
  bool good = !relative.empty() && relative.front() != '/' && relative.back() != '/' &&
              relative.find('\0') == std::string_view::npos;
  for (std::size_t begin = 0; good && begin <= relative.size();) {
    const std::size_t end = std::min(relative.find('/', begin), relative.size());
    good = relative.substr(begin, end - begin) != "..";
    begin = end + 1;
  }
  if (!good)
    base::misuse("neighbor", "'" + std::string(relative) + "' does not name a file in the same folder or below it");
}

// The errno values that mean there is no such file.
bool is_absent(int error) noexcept { return error == ENOENT || error == ENOTDIR || error == ENAMETOOLONG; }
bool leads_out(int error) noexcept { return error == EXDEV || error == ELOOP; }

// An open folder, which the files opened in it keep open.
using Folder = std::shared_ptr<const Fd>;

Folder open_folder_path(const std::string& folder) {
  Fd out = open_making_room([&] { return Fd(::open(folder.c_str(), kFolder)); });
  if (!out) base::io_error_of(folder, "open", "the folder cannot be opened", errno);
  return std::make_shared<const Fd>(std::move(out));
}

bool same_folder(int one, int other) noexcept {
  struct stat a {
  }, b{};
  return ::fstat(one, &a) == 0 && ::fstat(other, &b) == 0 && a.st_dev == b.st_dev && a.st_ino == b.st_ino;
}

std::string text_of_link(int folder, const std::string& name) {
  std::array<char, 4096> text;
  const ssize_t length = ::readlinkat(folder, name.c_str(), text.data(), text.size());
  return length < 0 ? std::string() : std::string(text.data(), static_cast<std::size_t>(length));
}

int open_beneath(int folder, const std::string& relative) {
  Fd found(open_beneath_by_kernel(folder, relative));
  // Some sandboxes return EPERM for an unknown system call.
  if (!found && (errno == ENOSYS || errno == EPERM)) found = Fd(open_beneath_by_hand(folder, relative));
  if (!found && leads_out(errno)) {
    const int reason = errno;
    found = Fd(open_cached_blob(folder, relative));
    if (!found && leads_out(errno)) errno = reason;
  }
  return found.release();
}

// The file `relative` in the open folder, whose path is `there`, and `path` in messages; null if there is none.
std::shared_ptr<const Source> open_in(const Folder& folder, const std::string& path, const std::string& there,
                                      std::string_view relative, Access access) {
  require_relative(relative);
  const std::string below(relative), whole = join_path(path, below);
  const auto look_up = [folder, below] { return Fd(open_beneath(folder->get(), below)); };
  Fd found = open_making_room(look_up);
  if (found) return source_from_fd(std::move(found), whole, access, look_up, join_path(there, below));
  if (is_absent(errno)) return nullptr;
  if (leads_out(errno))
    base::io_error_of(whole, "outside", "cannot be opened: a symbolic link leads out of the folder '" + path + "'");
  base::io_error_of(whole, "open", "cannot be opened", errno);
}

class FilePlace final : public Place {
 public:
  // The files beside it are in the folder of `path`, in another place, or do not exist.
  FilePlace(std::shared_ptr<const Source> file, std::optional<std::string> path, std::shared_ptr<const Place> beside)
      : file_(std::move(file)), path_(std::move(path)), beside_(std::move(beside)), own_(file_->file_name()) {}

  Kind kind() const noexcept override { return Kind::file; }
  std::string_view name() const noexcept override { return file_->name(); }
  std::string_view path() const noexcept override { return file_->path(); }
  std::shared_ptr<const Source> file() const override { return file_; }
  std::vector<std::string> list() const override { return {own_}; }
  std::shared_ptr<const Source> open(std::string_view name) const override {
    if (name == own_) return file_;
    require_relative(name);
    if (!path_) return beside_ ? beside_->open(name) : nullptr;
    return open_in(folder(), split_path(std::string(file_->name())).folder, split_path(*path_).folder, name,
                   Access::positional);
  }

 private:
  const std::shared_ptr<const Source> file_;
  const std::optional<std::string> path_;
  // Opened on the first look at a file beside it, because few files have any.
  Folder folder() const {
    const std::lock_guard lock(opening_);
    if (!folder_) folder_ = open_folder_path(split_path(*path_).folder);
    return folder_;
  }

  const std::shared_ptr<const Place> beside_;
  const std::string own_;
  mutable std::mutex opening_;
  mutable Folder folder_;
};

class FolderPlace final : public Place {
 public:
  FolderPlace(std::string path, Access access)
      : path_(std::move(path)), there_(anchored(path_)), folder_(open_folder_path(path_)), access_(access) {}

  Kind kind() const noexcept override { return Kind::folder; }
  std::string_view name() const noexcept override { return path_; }
  std::string_view path() const noexcept override { return there_; }

  std::vector<std::string> list() const override {
    std::vector<std::string> out;
    std::error_code error, unknown;
    for (fs::directory_iterator at(there_, error), end; !error && at != end; at.increment(error))
      out.push_back(at->path().filename().string() + (at->is_directory(unknown) ? "/" : ""));
    if (error) base::io_error_of(path_, "open", "the folder cannot be listed", error.value());
    std::ranges::sort(out);
    return out;
  }

  std::shared_ptr<const Source> open(std::string_view name) const override {
    return open_in(folder_, path_, there_, name, access_);
  }

  FilesBelow below(std::size_t most, std::size_t deepest) const {
    FilesBelow out;
    std::vector<std::pair<std::string, std::size_t>> left{{"", 0}};  // folders to list, and how deep they are
    while (!left.empty() && out.names.size() < most) {
      const auto [folder, depth] = std::move(left.back());
      left.pop_back();
      std::error_code error, unknown;
      for (fs::directory_iterator at(folder.empty() ? there_ : join_path(there_, folder), error), end;
           !error && at != end; at.increment(error)) {
        const std::string own = at->path().filename().string();
        std::string name = folder.empty() ? own : folder + "/" + own;
        const fs::file_type type = at->symlink_status(unknown).type();
        const bool is_folder = type == fs::file_type::directory;
        if (out.names.size() + left.size() >= most || (is_folder && depth >= deepest)) {
          if (out.left_out.empty()) out.left_out = std::move(name);
        } else if (is_folder) {
          left.emplace_back(std::move(name), depth + 1);
        } else if (type == fs::file_type::regular ||
                   (type == fs::file_type::symlink && is_blob(fs::read_symlink(at->path(), unknown).string()))) {
          out.names.push_back(std::move(name));
        } else if (type == fs::file_type::symlink && out.links.size() < kMostLinks && leads_out(at->path())) {
          if (fs::is_directory(at->path(), unknown)) name += '/';
          out.links.push_back(std::move(name));
        }
      }
      if (error && out.left_out.empty()) out.left_out = folder.empty() ? path_ : folder;
    }
    std::ranges::sort(out.names);
    return out;
  }

 private:
  static constexpr std::size_t kMostLinks = 1000;  // that are named; further ones say nothing new

  bool leads_out(const fs::path& link) const {
    std::error_code error;
    const std::string top = fs::canonical(there_, error).string() + "/",
                      target = fs::canonical(link, error).string() + "/";
    return !error && !target.starts_with(top);
  }
  static bool is_blob(std::string_view link) { return link.starts_with("../") && link.find("/blobs/") != link.npos; }

  const std::string path_, there_;
  const Folder folder_;  // names are looked up in it, even if another folder takes the path
  const Access access_;
};

class FilesPlace final : public Place {
 public:
  using Files = std::map<std::string, std::shared_ptr<const Source>, std::less<>>;
  FilesPlace(Files files, std::string name) : files_(std::move(files)), name_(std::move(name)) {}

  Kind kind() const noexcept override { return Kind::folder; }
  std::string_view name() const noexcept override { return name_; }
  std::vector<std::string> list() const override {
    std::vector<std::string> out;
    for (const auto& [name, source] : files_) {
      const std::size_t slash = name.find('/');
      std::string own = slash == std::string::npos ? name : name.substr(0, slash + 1);
      if (out.empty() || out.back() != own) out.push_back(std::move(own));
    }
    return out;
  }
  FilesBelow below(std::size_t most) const {
    FilesBelow out;
    for (const auto& [name, source] : files_)
      if (out.names.size() < most)
        out.names.push_back(name);
      else if (out.left_out.empty())
        out.left_out = name;
    return out;
  }
  std::shared_ptr<const Source> open(std::string_view name) const override {
    require_relative(name);
    const auto found = files_.find(name);
    return found == files_.end() ? nullptr : found->second;
  }

 private:
  const Files files_;
  const std::string name_;
};

}  // namespace

std::string anchored(const std::string& path) {
  std::error_code error;
  const fs::path out = fs::absolute(path, error);
  return error ? path : out.string();
}

std::shared_ptr<const Place> place_beside(std::shared_ptr<const Source> file, std::string path) {
  return std::make_shared<FilePlace>(std::move(file), std::move(path), nullptr);
}

FilesBelow files_below(const Place& place, std::size_t most, std::size_t deepest) {
  if (const auto* const folder = dynamic_cast<const FolderPlace*>(&place)) return folder->below(most, deepest);
  if (const auto* const files = dynamic_cast<const FilesPlace*>(&place)) return files->below(most);
  FilesBelow out;
  for (std::string& name : place.list())
    if (!name.ends_with('/') && out.names.size() < most) out.names.push_back(std::move(name));
  return out;
}

Beneath look_beneath(int folder, const std::string& relative) {
  Beneath out;
  out.folder = folder;
  std::size_t begin = 0;
  for (;;) {
    const std::size_t slash = relative.find('/', begin);
    if (slash == std::string::npos) break;
    const std::string component = relative.substr(begin, slash - begin);
    if (!component.empty() && component != ".") {
      Fd next(::openat(out.folder, component.c_str(), kFolder | O_NOFOLLOW));
      if (!next) {
        // A link here gives ENOTDIR, which would be mistaken for an absent file.
        struct stat there {};
        const int reason = errno;
        const bool link =
            ::fstatat(out.folder, component.c_str(), &there, AT_SYMLINK_NOFOLLOW) == 0 && S_ISLNK(there.st_mode);
        errno = link ? ELOOP : reason;
        out.folder = -1;
        return out;
      }
      out.held = std::move(next);
      out.folder = out.held.get();
      ++out.depth;
    }
    begin = slash + 1;
  }
  out.name = relative.substr(begin);
  return out;
}

int open_beneath_by_kernel([[maybe_unused]] int folder, [[maybe_unused]] const std::string& relative) noexcept {
#ifdef __linux__
  struct open_how how {};
  how.flags = static_cast<std::uint64_t>(kOpenToRead);
  how.resolve = RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS;
  for (int attempt = 0;; ++attempt) {
    const long fd = ::syscall(SYS_openat2, folder, relative.c_str(), &how, sizeof how);
    // EAGAIN: because of a concurrent rename, the kernel could not prove that the path stays inside.
    if (fd >= 0 || (errno != EINTR && (errno != EAGAIN || attempt >= 100))) return static_cast<int>(fd);
  }
#else
  errno = ENOSYS;
  return -1;
#endif
}

int open_beneath_by_hand(int folder, const std::string& relative) {
  const Beneath last = look_beneath(folder, relative);
  return last.folder < 0 ? -1 : ::openat(last.folder, last.name.c_str(), kOpenToRead | O_NOFOLLOW);
}

int open_cached_blob(int folder, const std::string& relative) {
  const Beneath last = look_beneath(folder, relative);
  if (last.folder < 0) return -1;
  std::string to_blobs = "../../blobs/";
  for (std::size_t i = 0; i < last.depth; ++i) to_blobs.insert(0, "../");
  const std::string text = text_of_link(last.folder, last.name);
  const std::string blob = text.starts_with(to_blobs) ? text.substr(to_blobs.size()) : std::string();
  const Fd above(::openat(folder, "..", kFolder)), model(::openat(folder, "../..", kFolder));
  const Fd snapshots(model ? ::openat(model.get(), "snapshots", kFolder | O_NOFOLLOW) : -1);
  const bool is_snapshot = above && snapshots && same_folder(above.get(), snapshots.get());
  if (!is_snapshot || blob.empty() || blob == "." || blob == ".." || blob.find('/') != std::string::npos) {
    errno = ELOOP;
    return -1;
  }
  const Fd blobs(::openat(model.get(), "blobs", kFolder | O_NOFOLLOW));
  return blobs ? ::openat(blobs.get(), blob.c_str(), kOpenToRead | O_NOFOLLOW) : -1;
}

}  // namespace weighbridge::io

namespace weighbridge {

std::string_view Place::path() const noexcept { return {}; }

std::shared_ptr<const Place> place_at(const std::string& path, Access access) {
  io::require_path(path);
  std::error_code ignored;
  if (std::filesystem::is_directory(path, ignored)) return std::make_shared<io::FolderPlace>(path, access);
  return place_of(open_file(path, access));
}

std::shared_ptr<const Place> place_of(std::shared_ptr<const Source> source) {
  if (!source) base::misuse("source", "there is no source to read");
  auto own = source->place();
  if (own && own->file() == source) return own;
  return std::make_shared<io::FilePlace>(std::move(source), std::nullopt, std::move(own));
}

std::shared_ptr<const Place> folder_of(std::map<std::string, std::shared_ptr<const Source>, std::less<>> files,
                                       std::string name) {
  return std::make_shared<io::FilesPlace>(std::move(files), std::move(name));
}

}  // namespace weighbridge
