// SPDX-License-Identifier: Apache-2.0
// Listing, stamps and hashing.
#include "manifest/files.h"

#include <algorithm>
#include <filesystem>
#include <span>
#include <system_error>
#include <utility>

#include "base/checked.h"
#include "base/fail.h"
#include "codecs/checksum.h"
#include "core/model/buffers.h"
#include "io/fd.h"

namespace weighbridge::signing {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kMaxEntries = 1'000'000;

// Whether the link of a snapshot in a cache of the Hugging Face Hub leads to a blob of its repository, or of the store
// that the repositories share. Its bytes are then as good as those of a file in the folder.
bool leads_to_blob(const Root& root, const fs::path& link) {
  std::error_code error;
  const fs::path snapshot = fs::canonical(root.path({}), error);
  const fs::path target = fs::canonical(link, error);
  if (error || snapshot.parent_path().filename() != "snapshots") return false;
  const fs::path repository = snapshot.parent_path().parent_path(), at = target.parent_path();
  return at == repository / "blobs" || at == repository.parent_path() / "blobs";
}

void list_folder(const Root& root, const std::string& folder, const std::set<std::string, std::less<>>& ignored,
                 const Context& context, unsigned depth, Listing& out) {
  if (depth > context.limits.depth)
    base::over_limit("depth", "the folders are nested more than " + std::to_string(context.limits.depth) + " deep");
  const std::string path = root.path(folder);
  std::error_code error;
  fs::directory_iterator at(path, error);
  for (const fs::directory_iterator end; !error && at != end; at.increment(error)) {
    const std::string name = (folder.empty() ? "" : folder + "/") + at->path().filename().string();
    if (ignored.contains(name)) continue;
    std::error_code failed;
    const fs::file_status status = fs::symlink_status(at->path(), failed);
    if (failed) base::io_error_of(at->path().string(), "open", "its type cannot be determined", failed.value());
    if (name == kDownloader && status.type() == fs::file_type::directory) {
      out.downloader = true;
      continue;
    }
    if (status.type() == fs::file_type::directory) {
      core::check_cancelled(context);
      list_folder(root, name, ignored, context, depth + 1, out);
      continue;
    }
    Listing::Entry entry{.name = name, .kind = Listing::Kind::file, .what = {}};
    if (status.type() == fs::file_type::symlink) {
      const fs::file_status target = fs::status(at->path(), failed);
      entry.kind = target.type() != fs::file_type::regular ? Listing::Kind::other
                   : leads_to_blob(root, at->path())       ? Listing::Kind::file
                                                           : Listing::Kind::link;
      entry.what = target.type() == fs::file_type::directory ? "a symbolic link to a folder"
                   : entry.kind == Listing::Kind::link       ? "a symbolic link"
                                                             : "a symbolic link to nothing";
    } else if (status.type() != fs::file_type::regular) {
      const auto info = io::os::status(io::os::kHere, at->path().c_str());
      entry.kind = Listing::Kind::other;
      entry.what = info ? io::file_kind(info->kind) : "no regular file";
    }
    out.entries.push_back(std::move(entry));
    if (out.entries.size() > kMaxEntries)
      base::over_limit("tensors", "the folder has more than " + std::to_string(kMaxEntries) + " files");
  }
  if (error) base::io_error_of(path, "list", "the folder cannot be listed", error.value());
}

constexpr std::size_t kWindow = std::size_t{1} << 20;  // read and hashed at a time, while it is in the cache

// SHA-256 is serial, so other threads hash the leaves and read ahead. `room` has two windows.
void hash_piece(const Root& root, Piece& piece, core::FileLeaves* leaves, std::span<std::byte> room, Executor& executor,
                core::Progress& progress) {
  const std::shared_ptr<const Source> source = root.open(piece.file);
  const auto require = [&](std::uint64_t end) {
    if (end > source->size())
      base::io_error_of(root.path(piece.file), "changed", "the file became shorter while the folder was read");
  };
  require(piece.end);
  const auto read = [&](std::span<std::byte> window, std::uint64_t offset) {
    const auto bytes = window.first(static_cast<std::size_t>(std::min<std::uint64_t>(kWindow, piece.end - offset)));
    if (!bytes.empty()) source->read_at(offset, bytes);
    return bytes;
  };
  std::optional<core::FileLeaves::Reading> reading;
  if (leaves != nullptr) reading.emplace(*leaves, piece.begin, piece.end);
  codecs::Sha256 hasher;
  std::span<const std::byte> bytes = read(room.first(kWindow), piece.begin);
  for (std::uint64_t offset = piece.begin; offset < piece.end;) {
    const std::uint64_t next = offset + bytes.size();
    const auto free = bytes.data() == room.data() ? room.last(kWindow) : room.first(kWindow);
    std::span<const std::byte> ahead;
    const std::size_t tasks = reading ? reading->take(offset, bytes) : 0;
    executor.for_each(2 + tasks, [&](std::uint64_t i) {
      if (i == 0)
        hasher.update(bytes);
      else if (i <= tasks)
        reading->hash(base::to_size(i - 1));
      else
        ahead = read(free, next);
    });
    if (reading) reading->keep_rest();
    progress.add(bytes.size());
    bytes = ahead;
    offset = next;
  }
  if (const std::size_t missing = reading ? reading->missing() : 0; missing > 0) {
    require(piece.end + missing);
    source->read_at(piece.end, room.first(missing));
    reading->finish(room.first(missing));
  }
  source->check_unchanged();
  piece.sha256 = {hasher.finish(), 0};
}

}  // namespace

Root::Root(const std::string& path) : path_(path) {
  std::error_code error;
  if (fs::is_directory(path, error))
    place_ = place_at(path);
  else
    open_file(path);  // says what is wrong with it
  const fs::path whole = fs::canonical(path, error);
  name_ = whole.filename().string();
  // The name that the user gave, not that of the blob behind it.
  if (const std::string given = fs::path(path).filename().string(); !given.empty() && given != "." && given != "..")
    name_ = given;
  if (name_.empty()) name_ = "model";
}

std::string Root::path(std::string_view file) const {
  if (!is_folder()) return path_;
  return file.empty() ? path_ : (fs::path(path_) / file).string();
}

std::shared_ptr<const Source> Root::open(std::string_view file) const {
  if (!is_folder()) return open_file(path_);
  std::shared_ptr<const Source> out = place_->open(file);
  if (!out) base::io_error_of(path(file), "changed", "the file disappeared while the folder was read");
  return out;
}

std::string Root::below(const std::string& path) const {
  if (!is_folder() || path.empty()) return {};
  std::error_code error;
  const fs::path folder = fs::canonical(path_, error);
  fs::path parent = fs::path(path).parent_path();
  parent = fs::weakly_canonical(parent.empty() ? fs::path(".") : parent, error);
  if (error) return {};
  const std::string out = (parent / fs::path(path).filename()).lexically_relative(folder).generic_string();
  return out.empty() || out == "." || out == ".." || out.starts_with("../") ? std::string() : out;
}

std::set<std::string, std::less<>> always_ignored() { return {".git", ".gitattributes", ".github", ".gitignore"}; }

Listing list(const Root& root, const std::set<std::string, std::less<>>& ignored, const Context& context) {
  Listing out;
  if (root.is_folder())
    list_folder(root, {}, ignored, context, 0, out);
  else
    out.entries.push_back({.name = root.name(), .kind = Listing::Kind::file, .what = {}});
  std::sort(out.entries.begin(), out.entries.end(), [](const auto& a, const auto& b) { return a.name < b.name; });
  return out;
}

std::optional<Stamp> stamp_of(const std::string& path) {
  const auto info = io::os::status(io::os::kHere, path.c_str(), io::os::Last::followed);
  if (!info) return std::nullopt;
  return Stamp{.device = info->device,
               .inode = info->inode,
               .size = info->size,
               .modified = info->modified.seconds,
               .modified_ns = info->modified.nanoseconds,
               .changed = info->changed.seconds,
               .changed_ns = info->changed.nanoseconds};
}

void hash(const Root& root, std::vector<Piece>& pieces, const Context& context, Leaves* leaves) {
  std::uint64_t total = 0;
  std::vector<Piece*> order;
  for (Piece& each : pieces) {
    total += each.end - each.begin;
    order.push_back(&each);
  }
  std::stable_sort(order.begin(), order.end(),
                   [](const Piece* a, const Piece* b) { return a->end - a->begin > b->end - b->begin; });
  core::Progress progress(context, total);
  Executor& executor = core::executor_of(context);
  core::BufferPool rooms(2 * kWindow);
  const auto perform = [&](Piece& piece) {
    core::FileLeaves* of_file = nullptr;
    if (leaves != nullptr)
      if (const auto found = leaves->find(piece.file); found != leaves->end()) of_file = &found->second;
    const core::BufferPool::Lease room(rooms);
    hash_piece(root, piece, of_file, room.span(), executor, progress);
  };
  // Threads share pieces; one that is larger than all others together goes first, and all threads work on it.
  const bool alone = !order.empty() && order.front()->end - order.front()->begin > total / 2;
  if (alone) perform(*order.front());
  executor.for_each(order.size() - (alone ? 1 : 0),
                    [&](std::uint64_t i) { perform(*order[base::to_size(i) + (alone ? 1 : 0)]); });
  progress.finish();
}

}  // namespace weighbridge::signing
