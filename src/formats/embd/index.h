// SPDX-License-Identifier: Apache-2.0
// Reads the tensor index into the draft, and checks the tensors against the metadata.
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

// Adds the tensors of an index (descriptors, then all their names) that the draft's retained header holds and that
// begins at header.tensor_index_offset of the file. The data section must lie inside the file. Without numbers, because
// the metadata is broken, the tensors are not checked against them. Broken tensors are left out.
void read_index(std::string_view index, const Header&, const std::optional<Numbers>&, core::Findings&, core::Draft&);

}  // namespace weighbridge::embd
