// SPDX-License-Identifier: Apache-2.0
// The files of a model on disk: which there are, what identifies one, and their SHA-256. Owns what is left out, what is
// refused, and the digests that are remembered between checks.
#pragma once
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "core/model/progress.h"
#include "core/payload/leaves.h"
#include "weighbridge/context.h"
#include "weighbridge/manifest.h"
#include "weighbridge/place.h"

namespace weighbridge::signing {

// The model at a path: a folder, or one file.
class Root {
 public:
  explicit Root(const std::string& path);  // Error io, misuse

  bool is_folder() const noexcept { return place_ != nullptr; }
  // The last component of the path, also of ".".
  const std::string& name() const noexcept { return name_; }
  // The path of a file of it, for messages and for stat().
  std::string path(std::string_view file) const;
  std::shared_ptr<const Source> open(std::string_view file) const;  // Error io, also if it is not there
  // The name that a file at `path` has below the folder; empty if it is not below it.
  std::string below(const std::string& path) const;

 private:
  std::string path_, name_;
  std::shared_ptr<const Place> place_;  // null: one file
};

// What lies in a folder.
struct Listing {
  enum class Kind : std::uint8_t { file, link, other };  // a link is one to a file if links are followed
  struct Entry {
    std::string name;
    Kind kind = Kind::file;
    std::string what;  // other: "a FIFO", "a symbolic link to a folder"
  };
  std::vector<Entry> entries;  // sorted by name
  bool downloader = false;     // the folder has kDownloader, which is left out
};
// Where the downloader of the Hugging Face Hub keeps its notes in a folder that it filled.
constexpr std::string_view kDownloader = ".cache/huggingface";
// Everything below the folder except the ignored paths and what is below them. Error limit/tensors, limit/depth, io.
Listing list(const Root&, const std::set<std::string, std::less<>>& ignored, const Context&);
// Whether `is` accepts the path, or one of the folders that it is in; asks it from the outermost one on.
template <class Is> bool is_or_is_in(std::string_view path, Is is) {
  for (std::size_t end = path.find('/');; end = path.find('/', end + 1)) {
    if (is(path.substr(0, end))) return true;
    if (end == path.npos) return false;
  }
}
// The paths that are always ignored (section 6.2).
std::set<std::string, std::less<>> always_ignored();

// What changes when a file does: device, inode, size, times.
struct Stamp {
  std::uint64_t device = 0, inode = 0, size = 0;
  std::int64_t modified = 0, modified_ns = 0, changed = 0, changed_ns = 0;
  bool operator==(const Stamp&) const = default;
};
std::optional<Stamp> stamp_of(const std::string& path);

// Digests of files that a former check has read.
class Memory {
 public:
  // Reads the file; a file that is not ours, or is broken, is ignored with a warning.
  Memory(const std::string& path, const Limits&, Report&);
  // The digest of a range if the file still has the stamp.
  std::optional<Digest> find(const std::string& file, const Stamp&, std::uint64_t begin, std::uint64_t end) const;
  // `since`: seconds of the clock before the file was read. A file that changed just before is not remembered: it could
  // change again within the same clock time.
  void add(const std::string& file, const Stamp&, std::uint64_t begin, std::uint64_t end, const Digest&,
           std::int64_t since);
  // Keeps what is known of files that were not added.
  void keep_others() { next_.insert(known_.begin(), known_.end()); }
  // Replaces the file. Error io.
  void write(const std::string& path) const;

 private:
  struct Known {
    Stamp stamp;
    std::map<std::pair<std::uint64_t, std::uint64_t>, Digest> ranges;
  };
  std::map<std::string, Known, std::less<>> known_, next_;
};

// One range to hash, and its result.
struct Piece {
  std::string file;
  std::uint64_t begin = 0, end = 0;
  Digest sha256{};
};
// Leaves of the content digest to hash on the way, by file.
using Leaves = std::map<std::string, core::FileLeaves, std::less<>>;
// Hashes all pieces on the executor, the largest first, and the leaves with the same reads; only a leaf that crosses
// the end of a piece is read once more. Error io if a file changes meanwhile or ends before its range.
void hash(const Root&, std::vector<Piece>&, const Context&, Leaves* = nullptr);

}  // namespace weighbridge::signing
