// SPDX-License-Identifier: Apache-2.0
// Room on the disk for bytes that must be reordered and do not fit the memory budget. Nameless: it vanishes with the
// process.
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "io/fd.h"

namespace weighbridge::io {

class Spill {
 public:
  // In the folder of `beside` (a path that need not exist), so that it uses the disk that the caller chose. Error
  // io/open, io/create.
  explicit Spill(const std::string& beside);

  // Error io/write. Both are safe from several threads at once for ranges that do not overlap.
  void write_at(std::uint64_t offset, std::span<const std::byte> data);
  // The range has been written. Error io/read, io/short-read.
  void read_at(std::uint64_t offset, std::span<std::byte> out) const;

 private:
  std::string name_;  // for messages
  Fd fd_;
};

}  // namespace weighbridge::io
