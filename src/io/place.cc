// SPDX-License-Identifier: Apache-2.0
// Files, folders and sets of files as places. Opens a name first, then checks the descriptor: os::open_beneath() cannot
// leave the folder, the fallback walk follows no link, and a cache blob is opened without following one. A closed
// descriptor is reopened in the same way, in the same open folder.
#include "io/place.h"

#include <algorithm>
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
  Fd out = open_making_room([&] { return os::enter_folder(os::kHere, folder.c_str(), os::Last::followed); });
  if (!out) base::io_error_of(folder, "open", "the folder cannot be opened", errno);
  return std::make_shared<const Fd>(std::move(out));
}

bool same_folder(int one, int other) noexcept {
  const auto a = os::status(one), b = os::status(other);
  return a && b && a->is_same_file(*b);
}

// The file `relative` in the open folder, whose path is `there`, and `path` in messages; null if there is none.
std::shared_ptr<const Source> open_in(const Folder& folder, const std::string& path, const std::string& there,
                                      std::string_view relative, Access access) {
  require_relative(relative);
  const std::string below(relative), whole = join_path(path, below);
  const auto look_up = [folder, below] { return open_beneath(folder->get(), below); };
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

  FilesBelow below(std::size_t maximum, std::size_t deepest) const {
    FilesBelow out;
    std::vector<std::pair<std::string, std::size_t>> left{{"", 0}};  // folders to list, and how deep they are
    while (!left.empty() && out.names.size() < maximum) {
      const auto [folder, depth] = std::move(left.back());
      left.pop_back();
      std::error_code error, unknown;
      for (fs::directory_iterator at(folder.empty() ? there_ : join_path(there_, folder), error), end;
           !error && at != end; at.increment(error)) {
        const std::string own = at->path().filename().string();
        std::string name = folder.empty() ? own : folder + "/" + own;
        const fs::file_type type = at->symlink_status(unknown).type();
        const bool is_folder = type == fs::file_type::directory;
        if (out.names.size() + left.size() >= maximum || (is_folder && depth >= deepest)) {
          if (out.left_out.empty()) out.left_out = std::move(name);
        } else if (is_folder) {
          left.emplace_back(std::move(name), depth + 1);
        } else if (type == fs::file_type::regular ||
                   (type == fs::file_type::symlink && is_blob(fs::read_symlink(at->path(), unknown).string()))) {
          out.names.push_back(std::move(name));
        } else if (type == fs::file_type::symlink && out.links.size() < kMaxLinksNamed && leads_out(at->path())) {
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
  static constexpr std::size_t kMaxLinksNamed = 1000;  // that are named; further ones say nothing new

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
  FilesBelow below(std::size_t maximum) const {
    FilesBelow out;
    for (const auto& [name, source] : files_)
      if (out.names.size() < maximum)
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

class WithFiles final : public Place {
 public:
  WithFiles(std::shared_ptr<const Place> of, OtherFiles files) : of_(std::move(of)), files_(std::move(files)) {}
  Kind kind() const noexcept override { return of_->kind(); }
  std::string_view name() const noexcept override { return of_->name(); }
  std::string_view path() const noexcept override { return of_->path(); }
  std::shared_ptr<const Source> file() const override {
    const auto own = of_->file();
    const auto at = own ? files_.find(own->file_name()) : files_.end();
    return at == files_.end() ? own : at->second;
  }
  std::vector<std::string> list() const override {
    std::vector<std::string> out = of_->list();
    for (const auto& [name, file] : files_) {
      const auto at = std::ranges::lower_bound(out, name);
      const bool there = at != out.end() && *at == name;
      if (there && !file) out.erase(at);
      if (!there && file && kind() == Kind::folder) out.insert(at, name);
    }
    return out;
  }
  std::shared_ptr<const Source> open(std::string_view name) const override {
    const auto at = files_.find(name);
    return at == files_.end() ? of_->open(name) : at->second;
  }

 private:
  const std::shared_ptr<const Place> of_;
  const OtherFiles files_;
};

}  // namespace

std::shared_ptr<const Place> with_files(std::shared_ptr<const Place> of, OtherFiles files) {
  return std::make_shared<const WithFiles>(std::move(of), std::move(files));
}

std::shared_ptr<const Place> with_text(std::shared_ptr<const Place> of, std::string name, std::string text) {
  const auto held = std::make_shared<const std::string>(std::move(text));
  auto file = memory_source({std::as_bytes(std::span(*held)), held}, name);
  return with_files(std::move(of), {{std::move(name), std::move(file)}});
}

std::string anchored(const std::string& path) {
  std::error_code error;
  const fs::path out = fs::absolute(path, error);
  return error ? path : out.string();
}

std::shared_ptr<const Place> place_beside(std::shared_ptr<const Source> file, std::string path) {
  return std::make_shared<FilePlace>(std::move(file), std::move(path), nullptr);
}

FilesBelow files_below(const Place& place, std::size_t maximum, std::size_t deepest) {
  if (const auto* const folder = dynamic_cast<const FolderPlace*>(&place)) return folder->below(maximum, deepest);
  if (const auto* const files = dynamic_cast<const FilesPlace*>(&place)) return files->below(maximum);
  FilesBelow out;
  for (std::string& name : place.list())
    if (!name.ends_with('/') && out.names.size() < maximum) out.names.push_back(std::move(name));
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
      Fd next = os::enter_folder(out.folder, component.c_str());
      if (!next) {
        // A link here gives ENOTDIR, which would be mistaken for an absent file.
        const int reason = errno;
        const auto there = os::status(out.folder, component.c_str());
        errno = there && there->kind == os::Kind::link ? ELOOP : reason;
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

Fd open_beneath(int folder, const std::string& relative) {
  Fd found = os::open_beneath(folder, relative.c_str());
  // Some sandboxes return EPERM for an unknown system call.
  if (!found && (errno == ENOSYS || errno == EPERM)) found = open_beneath_by_hand(folder, relative);
  if (!found && leads_out(errno)) {
    const int reason = errno;
    found = open_cached_blob(folder, relative);
    if (!found && leads_out(errno)) errno = reason;
  }
  return found;
}

Fd open_beneath_by_hand(int folder, const std::string& relative) {
  const Beneath last = look_beneath(folder, relative);
  return last.folder < 0 ? Fd() : os::open_to_read(last.folder, last.name.c_str());
}

Fd open_cached_blob(int folder, const std::string& relative) {
  const Beneath last = look_beneath(folder, relative);
  if (last.folder < 0) return Fd();
  std::string to_blobs = "../../blobs/";
  for (std::size_t i = 0; i < last.depth; ++i) to_blobs.insert(0, "../");
  const auto link = os::link_at(last.folder, last.name.c_str());
  const std::string blob = link && link->text.starts_with(to_blobs) ? link->text.substr(to_blobs.size()) : "";
  const Fd above = os::enter_folder(folder, ".."), model = os::enter_folder(folder, "../..");
  const Fd snapshots = model ? os::enter_folder(model.get(), "snapshots") : Fd();
  const bool is_snapshot = above && snapshots && same_folder(above.get(), snapshots.get());
  if (!is_snapshot || blob.empty() || blob == "." || blob == ".." || blob.find('/') != std::string::npos) {
    errno = ELOOP;
    return Fd();
  }
  const Fd blobs = os::enter_folder(model.get(), "blobs");
  return blobs ? os::open_to_read(blobs.get(), blob.c_str()) : Fd();
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
