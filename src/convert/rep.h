// SPDX-License-Identifier: Apache-2.0
// What a Plan holds behind its public face, and the few constants that writing and reading back must agree on.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "core/format.h"
#include "weighbridge/convert.h"

namespace weighbridge::convert {

struct PlanRep {
  core::WriteLayout layout;
  const core::Format* format = nullptr;
  std::vector<Model> models;       // the input; for an append the target, then what goes behind it
  std::uint32_t kept_tensors = 0;  // append: tensors of the target, which the new file has too
  // What PlanMaker::make() adds: see Plan.
  Options options{};
  std::string from{};
  std::uint64_t output_size = 0, payload_size = 0;
  std::uint32_t tensors = 0;
};

// Payload is hashed in segments of this many bytes, read, written and compared a segment at a time: small enough to
// stay in a processor's second-level cache from the read to the write, large enough that calls cost nothing.
inline constexpr std::uint64_t kSegment = std::uint64_t{1} << 20;
// Payloads up to this size share one write.
inline constexpr std::uint64_t kSmall = kSegment / 4;

constexpr std::uint64_t segments(std::uint64_t bytes) noexcept {
  return bytes / kSegment + (bytes % kSegment != 0 ? 1 : 0);
}

}  // namespace weighbridge::convert
