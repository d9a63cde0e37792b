// SPDX-License-Identifier: Apache-2.0
// Hashes leaves of the content digest (README.md) during a job that reads a whole file for another
// purpose, so that the digest need not read these parts again. Decides which parts can be hashed that way.
#pragma once
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "codecs/checksum.h"
#include "weighbridge/hash.h"
#include "weighbridge/model.h"

namespace weighbridge::core {

constexpr std::size_t kLeaf = 65536;

// out[i] = the digest of the leaf whose logical bytes are leaves[i], at most kLeaf of them.
void hash_leaves(std::span<const std::span<const std::byte>> leaves, std::span<codecs::Digest256> out);

// The digests of a part's leaves, in order; empty: unknown, so the part is read.
using GivenLeaves = std::function<std::span<const codecs::Digest256>(const Part&)>;
// [reads] content_digests() without reading the parts whose leaves are given.
ContentDigests content_digests(const Model&, const Context&, const GivenLeaves&);

// The parts of one file whose stored bytes are their logical bytes. Leaves out parts that overlap another part without
// being equal to it, so every byte belongs to at most one leaf.
class FileLeaves {
 public:
  // Empty unless the model has exactly one source and it has the file's length; otherwise offsets in the model are not
  // offsets in the file.
  FileLeaves(const Model&, std::uint64_t file_size);

  bool empty() const noexcept { return parts_.empty(); }
  std::uint64_t file_size() const noexcept { return size_; }
  // The digests of the part's leaves, if it is one of these parts. The part may belong to another model of the same
  // file.
  std::span<const codecs::Digest256> find(const Part&) const noexcept;

  // Hashes the leaves that begin in one range of the file, while the range is read from front to back.
  class Reading;

 private:
  struct Kept {
    std::uint64_t begin, end;
    std::size_t first;  // index of its first leaf
  };
  std::uint64_t size_;
  std::vector<Kept> parts_;  // by offset
  std::vector<codecs::Digest256> digests_;
};

class FileLeaves::Reading {
 public:
  Reading(FileLeaves& of, std::uint64_t begin, std::uint64_t end);
  // Takes the next bytes of the range, which must stay in place until the leaves are hashed: [offset, offset + size).
  // Returns how many tasks hash the leaves that are complete now.
  std::size_t take(std::uint64_t offset, std::span<const std::byte> bytes);
  void hash(std::size_t task);  // tasks may run at the same time
  // Keeps the beginning of an incomplete leaf. Call it after the tasks are done and before the bytes are released.
  void keep_rest();
  // The bytes after the range that the last leaf needs, at most kLeaf; 0: none. Give them to finish().
  std::size_t missing() const noexcept;
  void finish(std::span<const std::byte> bytes);

 private:
  bool at_leaf() const noexcept { return part_ < of_.parts_.size() && leaf_begin() < end_; }
  std::uint64_t leaf_begin() const noexcept { return of_.parts_[part_].begin + leaf_ * kLeaf; }
  std::uint64_t leaf_end() const noexcept;
  void next_leaf() noexcept;

  FileLeaves& of_;
  const std::uint64_t end_;
  std::size_t part_ = 0;
  std::uint64_t leaf_ = 0;  // of the part
  std::vector<std::byte> carried_, joined_;
  std::span<const std::byte> rest_;  // of the last bytes: the beginning of a leaf
  std::vector<std::span<const std::byte>> ready_;
  std::size_t first_ready_ = 0;  // index of its digest; those of the other ready leaves follow it
  std::size_t per_task_ = 1;
};

}  // namespace weighbridge::core
