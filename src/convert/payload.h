// SPDX-License-Identifier: Apache-2.0
// The bytes of one payload before the output's encoding, whichever of the forms they come in.
#pragma once
#include <cstdint>
#include <functional>
#include <span>

#include "core/format.h"
#include "weighbridge/context.h"

namespace weighbridge::convert {

using Sink = std::function<void(std::span<const std::byte>)>;

// The output's size of it is known only once it has been encoded.
bool needs_encoding(const core::Payload&) noexcept;
// Any range of what is to be written can be read at once: see read_range().
bool has_ranges(const core::Payload&) noexcept;
// [reads] out = bytes [offset, offset + out.size()) of what is written. offset is a multiple of kSegment, out ends at
// one or at the end.
void read_range(const core::Payload&, std::uint64_t offset, std::span<std::byte> out);
// [reads] All bytes before the encoding, in pieces. Throws Error{misuse} when a callback's part gives too few or too
// many.
void stream(const core::Payload&, const Context&, const Sink&);

}  // namespace weighbridge::convert
