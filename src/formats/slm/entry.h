// SPDX-License-Identifier: Apache-2.0
// The rules about a single directory entry: dtype, shape, block size, and the ranges of payload and scales.
#pragma once
#include <cstdint>
#include <string_view>

#include "core/findings.h"
#include "formats/slm/directory.h"

namespace weighbridge::slm {

// The offset of the entry, and the range where payloads may lie.
struct EntryPlace {
  std::uint64_t at = 0;  // file offset of the entry
  std::uint64_t data_offset = 0, file_size = 0;
  std::string_view name;  // the tensor's, for findings
};

// Reports every error. True if the entry is valid; then `out` is its Extents.
bool check_entry(const Entry&, const EntryPlace&, core::Findings&, Extents& out);

}  // namespace weighbridge::slm
