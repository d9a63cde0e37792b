// SPDX-License-Identifier: Apache-2.0
// The superblock, from which all of a file is found. Specification II.
#pragma once
#include <cstdint>
#include <optional>
#include <span>

#include "core/findings.h"
#include "formats/hdf5/file.h"

namespace weighbridge::hdf5 {

struct Superblock {
  std::uint8_t version = 0;
  std::uint64_t root = kUndefined;  // address of the root group's object header
};

// Sets the file's base, end and widths. Throws Broken.
Superblock read_superblock(File&, core::Findings&);
// Whether a superblock begins among the first bytes of a file.
bool has_superblock(std::span<const std::byte> head) noexcept;

}  // namespace weighbridge::hdf5
