// SPDX-License-Identifier: Apache-2.0
// Heaps that hold the members and attributes of an object: the local heap, for names of old groups, and the fractal
// heap, for links and attributes of new ones. Specification III.D and III.G. Also owns the B-trees of both versions.
#pragma once
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "formats/hdf5/file.h"

namespace weighbridge::hdf5 {

class LocalHeap {
 public:
  LocalHeap(File&, std::uint64_t address);
  // The text that begins there and ends with a zero byte. Throws Broken.
  std::string_view text(std::uint64_t offset) const;

 private:
  const File& file_;
  std::uint64_t at_ = 0;
  std::string bytes_;
};

class FractalHeap {
 public:
  FractalHeap(File&, std::uint64_t address);
  std::uint64_t id_size() const noexcept { return id_size_; }
  // The object with an id of id_size() bytes. Valid until the next call. Throws Broken.
  std::string_view object(Cursor id);
  // Where it was found.
  std::uint64_t found_at() const noexcept { return found_at_; }

 private:
  struct Huge {
    std::uint64_t address = 0, length = 0;
  };
  std::string_view managed(std::uint64_t offset, std::uint64_t length, const Cursor& id);
  std::string_view huge(Cursor id);
  std::uint64_t row_size(std::uint64_t row) const noexcept;
  std::uint64_t row_offset(std::uint64_t row) const noexcept;
  const std::string& block(std::uint64_t address, std::uint64_t size, std::uint64_t offset, bool direct);

  File& file_;
  const std::uint64_t address_;
  std::uint64_t id_size_ = 0, width_ = 0, start_ = 0, max_direct_ = 0, offset_size_ = 0, length_size_ = 0;
  std::uint64_t root_ = kUndefined, rows_ = 0, huge_tree_ = kUndefined, found_at_ = 0;
  bool checksums_ = false;
  std::optional<std::map<std::uint64_t, Huge>> huge_{};
  std::map<std::uint64_t, std::string> blocks_;
  std::uint64_t cached_ = 0;
  std::string object_;
};

// The B-trees of both versions. Each visits its entries in order, and every node once. Specification III.A.

// Version 1, whose keys and children alternate. Calls visit(key, child) for each child of the leaves; `key` is the one
// before it. Throws Broken.
void walk_tree(File&, std::uint64_t address, std::uint8_t type, std::uint64_t key_size, const Rule&,
               const std::function<void(Cursor key, std::uint64_t child)>& visit);

// Version 2. Calls visit(record) for each record. Throws Broken.
void walk_tree2(File&, std::uint64_t address, Record type, const Rule&,
                const std::function<void(Cursor record)>& visit);

}  // namespace weighbridge::hdf5
