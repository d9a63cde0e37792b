// SPDX-License-Identifier: Apache-2.0
// Disk space for bytes that must be reordered and do not fit the memory budget. The file has no name and disappears
// with the process.
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "io/fd.h"

namespace weighbridge::io {

class Spill {
 public:
  // Creates it in the folder of `beside` (a path that need not exist), which is on the disk that the caller chose.
  // Error io/open, io/create.
  explicit Spill(const std::string& beside);

  // Error io/write. Both are safe from several threads at once for ranges that do not overlap.
  void write_at(std::uint64_t offset, std::span<const std::byte> data);
  // The range must have been written. Error io/read, io/short-read.
  void read_at(std::uint64_t offset, std::span<std::byte> out) const;

 private:
  std::string name_;  // for messages
  Fd fd_;
};

}  // namespace weighbridge::io
