// SPDX-License-Identifier: Apache-2.0
// Finds out how many bytes zstd frames decode to, for containers that do not state it. Most frame headers state it;
// other frames are decoded.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/reading/budget.h"
#include "weighbridge/context.h"
#include "weighbridge/formats.h"
#include "weighbridge/source.h"

namespace weighbridge::core {

struct Probed {
  std::optional<std::uint64_t> size{};    // nullopt: unknown, for the reason below
  const Rule* limit = nullptr;            // the limit that would be exceeded; null: the frames are malformed
  std::optional<std::uint64_t> offset{};  // in the file; nullopt: no single byte is at fault
  std::string why{}, expected{};          // ", " and a part of a sentence, or a sentence about the bytes
};

// Remembers what it has decoded. In total it reads at most as many bytes as the file has and decodes at most what
// Limits::work allows, so frames that share bytes cannot make it quadratic. Source and context must outlive it.
class SizeProbe {
 public:
  SizeProbe(const Source&, const Context&);
  // [reads] The size of the frames in [offset, offset + length), which lies in the file.
  Probed size_of(std::uint64_t offset, std::uint64_t length);

 private:
  struct Known {
    std::uint64_t offset, length, size;
  };
  const Source& source_;
  const Context& context_;
  std::vector<Known> known_;
  Budget stored_, decoded_;
};

}  // namespace weighbridge::core
