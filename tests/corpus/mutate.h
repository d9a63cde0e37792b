// SPDX-License-Identifier: Apache-2.0
// Structured changes of a file's bytes, the same for one seed on every machine. Callers choose the files; repair.h
// repairs checksums.
#pragma once
#include <cstddef>
#include <cstdint>
#include <string>

namespace weighbridge::test {

class Mutator {
 public:
  explicit Mutator(std::uint64_t seed) : state_(seed) {}

  // A number below `end`, which is not 0.
  std::uint64_t below(std::uint64_t end);
  bool one_in(std::uint64_t n) { return below(n) == 0; }
  // One of the elements.
  template <class List> auto& pick(List& list) { return list[static_cast<std::size_t>(below(std::size(list)))]; }

  // Makes one to four changes: fields, blocks, splices with `donor`, tokens of JSON and CBOR.
  void change(std::string& bytes, const std::string& donor);
  // Repeats a block up to 256 times: long names, many entries.
  void repeat(std::string& bytes);

 private:
  static constexpr std::size_t kMaxBlock = 1024;  // bytes duplicated, moved or removed at once
  static constexpr std::size_t kMaxRepeated = 16 * kMaxBlock;
  struct Block {
    std::size_t at, size;
  };
  // A block inside `bytes`, which is not empty; at most `maximum` bytes, usually few, and often at a multiple of 4, 8
  // or 64.
  Block block(const std::string& bytes, std::size_t maximum);
  // A troublesome value for a number of `width` bytes: from the table in mutate.cc, sizes and offsets of the file, or
  // another number in the file.
  std::uint64_t awkward(const std::string& bytes, std::uint64_t now, std::size_t width);

  void overwrite_field(std::string& bytes);
  void change_block(std::string& bytes);
  void repeat(std::string& bytes, const Block&);
  void splice(std::string& bytes, const std::string& donor);
  void change_number_text(std::string& bytes);
  void change_json(std::string& bytes);
  void change_cbor(std::string& bytes);

  std::uint64_t state_;
};

}  // namespace weighbridge::test
