// SPDX-License-Identifier: Apache-2.0
// A cache of the Hugging Face Hub: a folder for each repository with blobs/, which are named after their digest, and
// snapshots/, whose files are links to blobs. Hub 2.4 may keep the bytes in a store that the repositories share; a blob
// is then a link too, and its own name still is the digest.
#include <algorithm>
#include <filesystem>
#include <map>
#include <set>
#include <system_error>
#include <utility>

#include "base/checked.h"
#include "base/fail.h"
#include "codecs/checksum.h"
#include "core/model/progress.h"
#include "core/payload/asking_source.h"
#include "doctor/damage.h"
#include "io/read.h"
#include "weighbridge/doctor.h"
#include "weighbridge/hash.h"

namespace weighbridge {
namespace {

namespace fs = std::filesystem;
using State = CacheEntry::State;

constexpr std::string_view kKinds[] = {"models--", "datasets--", "spaces--", "kernels--"};
// Of hub 2.4, in the cache's folder: the bytes that repositories share.
constexpr std::string_view kStore = "blobs";
// Entries of all folders together. A cache has a few for each file.
constexpr std::size_t kMaxEntries = 1'000'000;

bool is_repository(std::string_view name) {
  return std::ranges::any_of(kKinds, [&](std::string_view kind) { return name.starts_with(kind); });
}

// Whether it is a folder itself, not a link to one.
bool is_real_folder(const fs::path& path) {
  std::error_code error;
  return fs::is_directory(fs::symlink_status(path, error)) && !error;
}

// The entries of a folder, sorted; empty if it cannot be listed.
std::vector<fs::path> entries_of(const fs::path& folder) {
  std::vector<fs::path> out;
  if (!is_real_folder(folder)) return out;
  std::error_code error;
  for (fs::directory_iterator at(folder, error), end; !error && at != end && out.size() < kMaxEntries;
       at.increment(error))
    out.push_back(at->path());
  if (error) base::io_error_of(folder.string(), "list", "the folder cannot be listed", error.value());
  std::ranges::sort(out);
  return out;
}

class CacheExamination {
 public:
  CacheExamination(const std::string& folder, const Context& context) : root_(folder), context_(context) {
    // The blobs of one repository may be links into the store beside it.
    const fs::path cache = root_.has_parent_path() ? root_.parent_path() : fs::path(".");
    const bool shares = is_repository(root_.filename().string()) && is_real_folder(cache / kStore);
    place_ = place_at(shares ? cache.string() : folder);
    if (shares) beneath_ = root_.filename().string() + "/";
  }

  CacheReport run() {
    if (is_repository(root_.filename().string())) {
      add_repository(root_);
    } else {
      for (const fs::path& path : entries_of(root_))
        if (is_repository(path.filename().string()) && is_real_folder(path)) add_repository(path);
      add_store();
    }
    hash_all();
    std::ranges::sort(out_.entries, {}, &CacheEntry::path);
    return std::move(out_);
  }

 private:
  std::string relative(const fs::path& path) const { return path.lexically_relative(root_).generic_string(); }

  void add(State state, std::string path, std::string used_by = {}) {
    if (out_.entries.size() >= kMaxEntries)
      base::over_limit("tensors", "the cache has more than " + std::to_string(kMaxEntries) + " files");
    out_.entries.push_back({.state = state, .path = std::move(path), .used_by = std::move(used_by)});
  }

  void add_repository(const fs::path& repository) {
    std::map<std::string, std::string> users;  // a blob's name -> the first file of a snapshot that refers to it
    for (const fs::path& snapshot : entries_of(repository / "snapshots")) add_snapshot(snapshot, users, 0);
    const fs::path blobs = repository / "blobs";
    for (const fs::path& path : entries_of(blobs)) {
      const std::string name = path.filename().string();
      const auto user = users.find(name);
      const std::string used_by = user == users.end() ? std::string() : user->second;
      std::error_code error;
      if (const fs::path target = fs::read_symlink(path, error); !error) stored_.insert(target.filename().string());
      if (user != users.end()) users.erase(user);
      if (name.ends_with(".incomplete"))
        add(State::unfinished, relative(path));
      else if (doctor::digest_in(name) != name)
        add(State::unknown, relative(path), used_by);
      else
        add(used_by.empty() ? State::stray : State::sound, relative(path), used_by);
    }
    for (const auto& [name, user] : users) add(State::missing, relative(blobs / name), user);
  }

  // What is in the shared store for no repository. Its names are not digests that can be computed, so what a repository
  // uses is checked under the name that it has there.
  void add_store() {
    for (const fs::path& part : entries_of(root_ / kStore)) {
      if (!codecs::is_hex(part.filename().string(), 2)) continue;
      for (const fs::path& path : entries_of(part)) {
        const std::string name = path.filename().string();
        if (name.ends_with(".incomplete"))
          add(State::unfinished, relative(path));
        else if (!stored_.contains(name))
          add(State::unknown, relative(path));
      }
    }
  }

  void add_snapshot(const fs::path& folder, std::map<std::string, std::string>& users, unsigned depth) {
    if (depth > context_.limits.depth) return;
    for (const fs::path& path : entries_of(folder)) {
      std::error_code error;
      const fs::file_status status = fs::symlink_status(path, error);
      if (fs::is_symlink(status)) {
        const fs::path target = fs::read_symlink(path, error);
        if (!error && target.parent_path().filename() == "blobs")
          users.try_emplace(target.filename().string(), relative(path));
      } else if (fs::is_directory(status)) {
        add_snapshot(path, users, depth + 1);
      } else if (fs::is_regular_file(status)) {
        add(State::unknown, relative(path));  // a copy, where the disk has no links
      }
    }
  }

  // Opens every blob beneath the cache, and compares its digest with its name.
  void hash_all() {
    std::uint64_t total = 0;
    for (CacheEntry& entry : out_.entries) {
      if (entry.state == State::missing) continue;
      std::shared_ptr<const Source> source;
      try {
        source = open(entry);
      } catch (const Error& error) {
        if (error.finding().rule != "io/outside" && error.kind() != Kind::misuse) throw;
        entry.state = State::unknown;  // a link that leads out of what was given, or not a file
        continue;
      }
      if (!source) {
        entry.state = State::missing;  // a link into a store that no longer has it
        continue;
      }
      entry.size = source->size();
      if (entry.state == State::unfinished || entry.state == State::unknown) continue;
      total += entry.size;
    }
    core::Progress progress(context_, total);
    std::vector<CacheEntry*> by_size;
    for (CacheEntry& entry : out_.entries)
      if (entry.state == State::sound || entry.state == State::stray) by_size.push_back(&entry);
    std::ranges::stable_sort(by_size, std::ranges::greater{},
                             &CacheEntry::size);  // so that no large one is left for last
    const auto job = [&](std::uint64_t i) {
      CacheEntry& entry = *by_size[base::to_size(i)];
      const auto source = open(entry);
      if (!source) base::io_error_of(entry.path, "changed", "the file has gone while the cache was read");
      const std::string name = fs::path(entry.path).filename().string();
      const Context inner = progress.inner();
      entry.found = doctor::digest_of(*source, name, inner);
      if (entry.found != name)
        entry.state = State::damaged;
      else
        entry.found.clear();
      progress.add(entry.size);
    };
    core::executor_of(context_).for_each(by_size.size(), job);
    progress.finish();
    out_.bytes = total;
  }

  std::shared_ptr<const Source> open(const CacheEntry& entry) const { return place_->open(beneath_ + entry.path); }

  const fs::path root_;
  const Context& context_;
  std::shared_ptr<const Place> place_;  // the cache, or one repository
  std::string beneath_;                 // the way from there to what was given
  std::set<std::string> stored_;        // names in the shared store that blobs link to
  CacheReport out_;
};

// With the folder's name as the last component, also for "." and with a slash at the end.
std::string plain(const std::string& folder) {
  std::string out = fs::path(folder).lexically_normal().string();
  std::error_code error;
  if (const fs::path last = fs::path(out).filename(); last == "." || last == "..")
    if (const fs::path whole = fs::canonical(out, error); !error) return whole.string();
  while (out.size() > 1 && out.back() == '/') out.pop_back();
  return out;
}

}  // namespace

namespace doctor {

std::string_view digest_in(std::string_view name) noexcept {
  if (name.starts_with("sha256-")) name.remove_prefix(7);
  return codecs::is_hex(name, 64) || codecs::is_hex(name, 40) ? name : std::string_view();
}

std::string digest_of(const Source& source, std::string_view stated, const Context& context) {
  if (stated.size() == 64) return file_sha256(source, context).hex();
  // What Git calls a file with these bytes: the SHA-1 of "blob", its size and the bytes.
  codecs::Sha1 hash;
  const std::string head = "blob " + std::to_string(source.size()) + '\0';
  hash.update(std::as_bytes(std::span(head)));
  core::Progress progress(context, source.size());
  io::read_pieces(source, 0, source.size(), [&](std::uint64_t, std::span<const std::byte> bytes) {
    hash.update(bytes);
    progress.add(bytes.size());
    return true;
  });
  return codecs::to_hex(hash.finish());
}

}  // namespace doctor

std::string_view name(CacheEntry::State state) noexcept {
  constexpr std::string_view kNames[] = {"sound", "damaged", "unfinished", "missing", "stray", "unknown"};
  return kNames[static_cast<std::size_t>(state)];
}

std::uint64_t CacheReport::of(CacheEntry::State state) const noexcept {
  return static_cast<std::uint64_t>(
      std::ranges::count_if(entries, [&](const CacheEntry& each) { return each.state == state; }));
}
bool CacheReport::sound() const noexcept {
  return of(State::damaged) == 0 && of(State::unfinished) == 0 && of(State::missing) == 0;
}

bool is_hub_cache(const std::string& folder) {
  const fs::path root = plain(folder);
  std::error_code error;
  if (!fs::is_directory(root, error)) return false;
  if (is_repository(root.filename().string()) && is_real_folder(root / "blobs")) return true;
  for (fs::directory_iterator at(root, error), end; !error && at != end; at.increment(error))
    if (is_repository(at->path().filename().string()) && is_real_folder(at->path() / "blobs")) return true;
  return false;
}

CacheReport check_cache(const std::string& folder, const Context& context) {
  return CacheExamination(plain(folder), context).run();
}

}  // namespace weighbridge
