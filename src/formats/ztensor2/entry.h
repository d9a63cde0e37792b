// SPDX-License-Identifier: Apache-2.0
// One object of the manifest as it is read, before it is checked. All texts are slices of the manifest, which is
// deterministic: each is in one piece.
#pragma once
#include <cstdint>
#include <string_view>

#include "core/cbor_entry.h"
#include "formats/ztensor2/layout.h"

namespace weighbridge::ztensor2 {

struct PartEntry : core::CborPart {
  PartEntry() noexcept {}  // as the base's
  std::string_view shard;
  bool has_blob = false, has_encoding = false, has_shard = false;
  std::uint32_t shard_index = 0;  // in the table; set while it is checked, if has_shard
};
using Entry = core::CborObject<PartEntry>;

}  // namespace weighbridge::ztensor2
