// SPDX-License-Identifier: Apache-2.0
#include "core/payload/probe.h"

#include <algorithm>
#include <span>

#include "codecs/codec.h"
#include "codecs/zstd.h"
#include "core/payload/work.h"
#include "core/reading/rules.h"
#include "io/read.h"

namespace weighbridge::core {

SizeProbe::SizeProbe(const Source& source, const Context& context)
    : source_(source),
      context_(context),
      stored_(source.size()),
      decoded_(allowed_work(source.size(), context.limits.work)) {}

Probed SizeProbe::size_of(std::uint64_t offset, std::uint64_t length) {
  for (const Known& known : known_)
    if (known.offset == offset && known.length == length) return {.size = known.size};
  const std::uint64_t limit = std::min(context_.limits.decoded, decoded_.left());
  if (known_.size() >= 4096 || !stored_.take(length))
    return {.limit = &rules::kLimitMemory, .why = " does not state its size, and too many do not"};
  if (const auto stated = codecs::zstd_stated_size(io::StoredBytes(source_, offset, length));
      stated && *stated <= limit) {
    known_.push_back({offset, length, *stated});
    return {.size = stated};
  }
  const codecs::LentDecoder decoder(codecs::kZstd);
  const auto result = decoder->decode(limit, context_.limits.memory, io::StoredBytes(source_, offset, length),
                                      [](std::span<const std::byte>) { return true; });
  switch (result.fault) {
    case codecs::DecodeFault::none:
    case codecs::DecodeFault::too_short: {
      const std::uint64_t size = result.ok() ? limit : result.found;
      decoded_.take(size);
      known_.push_back({offset, length, size});
      return {.size = size};
    }
    case codecs::DecodeFault::content_size:
    case codecs::DecodeFault::too_long: break;
    case codecs::DecodeFault::memory:
      return {.limit = &rules::kLimitMemory, .offset = offset, .why = ", " + result.sentence};
    default: return {.offset = offset + result.offset, .why = ", " + result.sentence};
  }
  return {.limit = limit < context_.limits.decoded ? &rules::kLimitWork : &rules::kLimitDecoded,
          .why = " does not state its size, and decoding takes too long to learn it",
          .expected = "at most " + std::to_string(limit) + " bytes"};
}

}  // namespace weighbridge::core
