// SPDX-License-Identifier: Apache-2.0
// One object of the manifest as it is read, before it is checked.
#pragma once
#include "core/cbor_entry.h"
#include "formats/ztensor1/layout.h"

namespace weighbridge::ztensor1 {

struct Component : core::CborPart {
  Component() noexcept {}  // as the base's
  bool has_offset = false, has_length = false;
  bool undecodable = false;  // set while it is checked: zstd whose decoded size is not stated
};
using Entry = core::CborObject<Component>;

}  // namespace weighbridge::ztensor1
