// SPDX-License-Identifier: Apache-2.0
// Leaves of the parts of a file, found and hashed while the file is read from front to back.
#include "core/payload/leaves.h"

#include <algorithm>

#include "base/checked.h"
#include "core/payload/payload.h"
#include "core/payload/widen.h"

namespace weighbridge::core {
namespace {

// A task hashes at least as many leaves as there are lanes, and there are never more tasks than threads could use.
constexpr std::size_t kPerTask = 16, kMaxTasks = 64;

bool is_stored_as_read(const Part& part) noexcept {
  return is_direct(part) && part.dtype() != DType::boolean &&
         (part.order() == Order::little || info(part.dtype()).swap_bytes <= 1);
}

}  // namespace

FileLeaves::FileLeaves(const Model& model, std::uint64_t file_size) : size_(file_size) {
  const auto sources = model.sources();
  if (sources.size() != 1 || !sources[0] || sources[0]->size() != file_size) return;
  for (std::uint32_t t = 0; t < model.size(); ++t) {
    const Tensor tensor = model[t];
    for (std::uint32_t i = 0; i < tensor.part_count(); ++i) {
      const Part part = tensor.part(i);
      if (part.size() == 0 || !is_stored_as_read(part) || is_index(tensor.layout(), part.role())) continue;
      const Extent extent = *part.extent();
      parts_.push_back({extent.offset, extent.offset + extent.length, 0});
    }
  }
  std::sort(parts_.begin(), parts_.end(),
            [](const Kept& a, const Kept& b) { return a.begin != b.begin ? a.begin < b.begin : a.end < b.end; });
  std::uint64_t reach = 0;
  std::erase_if(parts_, [&](const Kept& part) {
    if (part.begin < reach) return true;  // also one with the bytes of the part before it
    reach = part.end;
    return false;
  });
  std::size_t leaves = 0;
  for (Kept& part : parts_) {
    part.first = leaves;
    leaves += base::to_size((part.end - part.begin - 1) / kLeaf + 1);
  }
  digests_.resize(leaves);
}

std::span<const codecs::Digest256> FileLeaves::find(const Part& part) const noexcept {
  if (!is_stored_as_read(part)) return {};
  const Extent extent = *part.extent();
  const auto at = std::lower_bound(parts_.begin(), parts_.end(), extent.offset,
                                   [](const Kept& kept, std::uint64_t offset) { return kept.begin < offset; });
  if (at == parts_.end() || at->begin != extent.offset || at->end - at->begin != extent.length) return {};
  return std::span(digests_).subspan(at->first, static_cast<std::size_t>((extent.length - 1) / kLeaf + 1));
}

FileLeaves::Reading::Reading(FileLeaves& of, std::uint64_t begin, std::uint64_t end) : of_(of), end_(end) {
  const auto at = std::upper_bound(of.parts_.begin(), of.parts_.end(), begin,
                                   [](std::uint64_t offset, const Kept& kept) { return offset < kept.end; });
  part_ = static_cast<std::size_t>(at - of.parts_.begin());
  if (at == of.parts_.end() || at->begin >= begin) return;
  leaf_ = (begin - at->begin - 1) / kLeaf + 1;
  if (leaf_begin() < at->end) return;
  ++part_;
  leaf_ = 0;
}

std::uint64_t FileLeaves::Reading::leaf_end() const noexcept {
  return std::min(leaf_begin() + kLeaf, of_.parts_[part_].end);
}

void FileLeaves::Reading::next_leaf() noexcept {
  ++leaf_;
  if (leaf_begin() < of_.parts_[part_].end) return;
  ++part_;
  leaf_ = 0;
}

std::size_t FileLeaves::Reading::take(std::uint64_t offset, std::span<const std::byte> bytes) {
  const std::uint64_t end = offset + bytes.size();
  ready_.clear();
  rest_ = {};
  if (at_leaf()) first_ready_ = of_.parts_[part_].first + static_cast<std::size_t>(leaf_);
  for (; at_leaf() && leaf_begin() < end; next_leaf()) {
    const std::uint64_t from = std::max(leaf_begin(), offset);
    const auto piece = bytes.subspan(static_cast<std::size_t>(from - offset),
                                     static_cast<std::size_t>(std::min(leaf_end(), end) - from));
    if (leaf_end() > end) {
      rest_ = piece;
      break;
    }
    if (carried_.empty()) {
      ready_.push_back(piece);
      continue;
    }
    joined_.swap(carried_);
    carried_.clear();
    joined_.insert(joined_.end(), piece.begin(), piece.end());
    ready_.emplace_back(joined_);
  }
  per_task_ = std::max(kPerTask, ready_.size() / kMaxTasks + 1);
  return (ready_.size() + per_task_ - 1) / per_task_;
}

void FileLeaves::Reading::hash(std::size_t task) {
  const std::size_t first = task * per_task_, count = std::min(per_task_, ready_.size() - first);
  hash_leaves(std::span(ready_).subspan(first, count), std::span(of_.digests_).subspan(first_ready_ + first, count));
}

void FileLeaves::Reading::keep_rest() {
  carried_.insert(carried_.end(), rest_.begin(), rest_.end());
  rest_ = {};
}

std::size_t FileLeaves::Reading::missing() const noexcept {
  return carried_.empty() ? 0 : static_cast<std::size_t>(leaf_end() - leaf_begin()) - carried_.size();
}

void FileLeaves::Reading::finish(std::span<const std::byte> bytes) {
  carried_.insert(carried_.end(), bytes.begin(), bytes.end());
  const std::span<const std::byte> leaf = carried_;
  hash_leaves(std::span(&leaf, 1),
              std::span(of_.digests_).subspan(of_.parts_[part_].first + static_cast<std::size_t>(leaf_), 1));
  carried_.clear();
}

}  // namespace weighbridge::core
