// SPDX-License-Identifier: Apache-2.0
// The rules of one directory entry by itself: dtype, shape, block size, where payload and scales lie.
#pragma once
#include <cstdint>
#include <string_view>

#include "core/findings.h"
#include "formats/slm/directory.h"

namespace weighbridge::slm {

// Where payloads may lie, and where the entry stands.
struct EntryPlace {
  std::uint64_t at = 0;  // of the entry in the file
  std::uint64_t data_offset = 0, file_size = 0;
  std::string_view name;  // of the tensor, for findings
};

// Reports all that is wrong. True: the entry is sound, and its Extents are `out`.
bool check_entry(const Entry&, const EntryPlace&, core::Findings&, Extents& out);

}  // namespace weighbridge::slm
