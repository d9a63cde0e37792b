// SPDX-License-Identifier: Apache-2.0
// The tensor index: descriptors and names into the draft, and the tensors against the metadata.
#pragma once
#include <cstdint>
#include <optional>
#include <string_view>

#include "core/draft.h"
#include "core/findings.h"
#include "formats/embd/layout.h"
#include "formats/embd/metadata.h"

namespace weighbridge::embd {

// The sum of name_length over `count` descriptors.
std::uint64_t names_size(const char* descriptors, std::uint64_t count) noexcept;

// Adds the tensors of an index that stands in the draft's retained header and at header.tensor_index_offset of the
// file: descriptors, then all their names. The data section lies inside the file. Without numbers, which the metadata
// failed to give, what follows from them is not checked. Broken tensors are left out.
void read_index(std::string_view index, const Header&, const std::optional<Numbers>&, core::Findings&, core::Draft&);

}  // namespace weighbridge::embd
