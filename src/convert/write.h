// SPDX-License-Identifier: Apache-2.0
// Writes a WriteLayout into a file: the bytes of its payloads, in which order and by which threads; and reads back what
// was written. Leaves publishing to io::AtomicFile.
#pragma once
#include <cstdint>
#include <functional>
#include <span>
#include <string_view>

#include "codecs/cast.h"
#include "convert/hashing.h"
#include "convert/rep.h"
#include "core/model/progress.h"
#include "core/reading/format.h"
#include "core/writing/layout.h"
#include "io/atomic_file.h"
#include "weighbridge/context.h"

namespace weighbridge::convert {

// The bytes of one payload before the output's encoding, whatever its form.

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

// [reads] The bytes depend only on the layout and the level, not on threads or budgets. Where payloads are encoded,
// memory stays below about half of limits.memory; otherwise it is a few megabytes a thread. Throws Error{io},
// Cancelled, and what reading throws.
Record write(const core::WriteLayout&, int level, io::AtomicFile&, const Context&, core::Progress&);

// Verifies the written file: opens it with the ordinary reader and compares it with the layout and the hashes taken
// while writing.

// What the file must be. `format` is the file's, in the spelling of OpenOptions::format.
struct Expected {
  const core::WriteLayout& layout;
  std::string_view format;
  std::uint32_t kept_tensors = 0;  // see PlanRep
};
inline Expected expected(const PlanRep& rep) { return {rep.layout, rep.format->info.name, rep.kept_tensors}; }
// [reads] Syncs the file (io::AtomicFile::sync) and compares it, in parallel where the executor has threads. Throws
// io/read-back at the first difference: in the prefix, head or tail, in a tensor's name, layout, dtype or shape, or in
// a part's offset, length, dtype, encoding or logical bytes.
void sync_and_read_back(const Expected&, const Record&, io::AtomicFile&, const Context&, core::Progress&);

}  // namespace weighbridge::convert
