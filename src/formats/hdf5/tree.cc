// SPDX-License-Identifier: Apache-2.0
// Walks B-trees. A node must be one level below the one that refers to it, so that no chain is longer than 255; and no
// node may be reached twice.
#include "formats/hdf5/heap.h"

#include <vector>

namespace weighbridge::hdf5 {
namespace {

class Tree {
 public:
  Tree(File& file, std::uint8_t type, std::uint64_t key_size, const Rule& rule,
       const std::function<void(Cursor, std::uint64_t)>& visit)
      : file_(file), type_(type), key_size_(key_size), rule_(rule), visit_(visit) {}

  void walk(std::uint64_t address, std::optional<std::uint8_t> expected) {
    visited_.add(file_, address);
    const std::uint64_t head = 8 + 2 * std::uint64_t{file_.offset_size};
    const std::string start = file_.block(address, head, kTree, false);
    Cursor in(file_, start, file_.base + address, rule_);
    in.skip(4);
    if (const std::uint8_t type = in.u8(); type != type_) in.fail({"a node of type ", type_}, type);
    const std::uint8_t level = in.u8();
    if (expected && level != *expected) in.fail({"level ", *expected}, level);
    const std::uint64_t entries = in.u16();
    const std::string body =
        file_.read(address + head, entries * (key_size_ + file_.offset_size), "keys of a B-tree node");
    Cursor rows(file_, body, file_.base + address + head, rule_);
    for (std::uint64_t i = 0; i < entries; ++i) {
      const Cursor key = rows.sub(key_size_);
      const std::uint64_t child = rows.address();
      if (level == 0)
        visit_(key, child);
      else
        walk(child, static_cast<std::uint8_t>(level - 1));
    }
  }

 private:
  File& file_;
  const std::uint8_t type_;
  const std::uint64_t key_size_;
  const Rule& rule_;
  const std::function<void(Cursor, std::uint64_t)>& visit_;
  Visited visited_;
};

class Tree2 {
 public:
  Tree2(File& file, Record type, const Rule& rule, const std::function<void(Cursor)>& visit)
      : file_(file), type_(type), rule_(rule), visit_(visit) {}

  void run(std::uint64_t address) {
    const std::uint64_t length =
        4 + 1 + 1 + 4 + 2 + 2 + 1 + 1 + std::uint64_t{file_.offset_size} + 2 + std::uint64_t{file_.length_size} + 4;
    const std::string head = file_.block(address, length, kTree2, true);
    Cursor in(file_, head, file_.base + address, rule_);
    in.skip(4);
    if (in.u8() != 0) throw Broken{file_.rules.kBlock, file_.base + address, "version 0"};
    if (const auto type = static_cast<Record>(in.u8()); type != type_)
      in.fail({"records of type ", static_cast<int>(type_)}, static_cast<int>(type));
    node_size_ = in.u32();
    record_size_ = in.u16();
    const std::uint16_t depth = in.u16();
    in.skip(2);
    const std::uint64_t root = in.address();
    const std::uint64_t records = in.u16();
    const std::uint64_t total = in.number(file_.length_size);
    if (root == kUndefined) {
      if (total != 0) disagree(address, total, 0);
      return;
    }
    if (record_size_ == 0 || node_size_ < kOverhead + record_size_ || depth > kMaxDepth) in.fail();
    size_levels(depth, in);
    if (const std::uint64_t there = walk(root, depth, records); there != total) disagree(address, total, there);
  }

 private:
  static constexpr std::uint64_t kOverhead = 10;  // signature, version, type and checksum of a node
  static constexpr std::uint16_t kMaxDepth = 64;  // each level at least doubles the records

  // Computes the width of the child counts in a node, from the largest number of records in a subtree.
  void size_levels(std::uint16_t depth, const Cursor& in) {
    std::uint64_t maximum = (node_size_ - kOverhead) / record_size_, total = maximum;
    count_size_ = encoded_size(maximum);
    total_sizes_.push_back(0);
    for (std::uint16_t level = 1; level <= depth; ++level) {
      const std::uint64_t pointer = file_.offset_size + count_size_ + total_sizes_.back();
      if (node_size_ < kOverhead + pointer) in.fail();
      maximum = (node_size_ - kOverhead - pointer) / (record_size_ + pointer);
      const auto product = base::checked_mul(maximum + 1, total);
      total = product ? base::checked_add(*product, maximum).value_or(UINT64_MAX) : UINT64_MAX;
      total_sizes_.push_back(encoded_size(total));
    }
  }

  // libhdf5 relies on these totals in some calls, and on the nodes in others.
  [[noreturn]] void disagree(std::uint64_t address, std::uint64_t total, std::uint64_t there) const {
    throw Broken{rule_, file_.place(address, 0), {total, " records in a B-tree"}, there};
  }

  // Returns the number of records in the node and below it.
  std::uint64_t walk(std::uint64_t address, std::uint16_t depth, std::uint64_t records) {
    visited_.add(file_, address);
    std::uint64_t there = records;
    const std::uint64_t pointer = file_.offset_size + count_size_ + (depth > 1 ? total_sizes_[depth - 1U] : 0);
    const std::uint64_t length = kOverhead + records * record_size_ + (depth == 0 ? 0 : (records + 1) * pointer);
    if (length > node_size_)
      throw Broken{rule_, file_.place(address, 0), core::at_most(node_size_, " bytes in a node"), length};
    const std::string node = file_.block(address, length, depth == 0 ? kTree2Leaf : kTree2Inner, true);
    Cursor in(file_, node, file_.base + address, rule_);
    in.skip(4);
    if (in.u8() != 0) throw Broken{file_.rules.kBlock, file_.base + address, "version 0"};
    in.skip(1);
    std::vector<Cursor> rows;
    rows.reserve(static_cast<std::size_t>(records));
    for (std::uint64_t i = 0; i < records; ++i) rows.push_back(in.sub(record_size_));
    for (std::uint64_t i = 0; i <= records; ++i) {
      if (depth > 0) {
        const std::uint64_t child = in.address(), count = in.number(count_size_);
        const std::uint64_t total = depth > 1 ? in.number(total_sizes_[depth - 1U]) : count;
        const std::uint64_t below = walk(child, static_cast<std::uint16_t>(depth - 1), count);
        if (below != total) disagree(child, total, below);
        there += below;
      }
      if (i < records) visit_(rows[static_cast<std::size_t>(i)]);
    }
    return there;
  }

  File& file_;
  const Record type_;
  const Rule& rule_;
  const std::function<void(Cursor)>& visit_;
  std::uint64_t node_size_ = 0, record_size_ = 0;
  unsigned count_size_ = 0;
  std::vector<unsigned> total_sizes_;  // by level
  Visited visited_;
};

}  // namespace

void walk_tree(File& file, std::uint64_t address, std::uint8_t type, std::uint64_t key_size, const Rule& rule,
               const std::function<void(Cursor, std::uint64_t)>& visit) {
  Tree(file, type, key_size, rule, visit).walk(address, std::nullopt);
}

void walk_tree2(File& file, std::uint64_t address, Record type, const Rule& rule,
                const std::function<void(Cursor)>& visit) {
  Tree2(file, type, rule, visit).run(address);
}

}  // namespace weighbridge::hdf5
