// SPDX-License-Identifier: Apache-2.0
// The bytes of one payload before the output's encoding, whatever its form.
#pragma once
#include <cstdint>
#include <functional>
#include <span>

#include "codecs/cast.h"
#include "core/format.h"
#include "weighbridge/context.h"

namespace weighbridge::convert {

using Sink = std::function<void(std::span<const std::byte>)>;

// True when the size in the output is unknown until the payload has been encoded.
bool needs_encoding(const core::Payload&) noexcept;
// True when read_range() can read any range of the bytes to be written.
bool has_ranges(const core::Payload&) noexcept;
// [reads] Fills `out` with the bytes to be written from `offset` on. `offset` is a multiple of kSegment; `out` ends at
// a multiple of kSegment or at the end of the payload. A tally, if there is one, gets what a cast did.
void read_range(const core::Payload&, const Context&, std::uint64_t offset, std::span<std::byte> out,
                codecs::CastTally* tally = nullptr);
// [reads] Passes all bytes before the encoding to the sink, in pieces. Throws Error{misuse} when a part made by a
// callback gives too few or too many bytes. The tally is as above.
void stream(const core::Payload&, const Context&, const Sink&, codecs::CastTally* tally = nullptr);

}  // namespace weighbridge::convert
