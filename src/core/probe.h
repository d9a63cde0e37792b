// SPDX-License-Identifier: Apache-2.0
// Finds out how many bytes zstd frames decode to, where a container does not state it. The frames' headers mostly do;
// otherwise they are decoded.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "weighbridge/context.h"
#include "weighbridge/formats.h"
#include "weighbridge/source.h"

namespace weighbridge::core {

struct Probed {
  std::optional<std::uint64_t> size{};    // nullopt: it was not found out, for the reason below
  const Rule* limit = nullptr;            // the limit in the way; null: the frames are broken
  std::optional<std::uint64_t> offset{};  // in the file; nullopt: the fault is in no certain byte
  std::string why{}, expected{};          // ", " and a part of a sentence, or a sentence about the bytes
};

// Remembers what it has decoded. In all, it decodes at most the file's bytes, to at most what Limits::work allows, so
// that frames that share bytes cannot make it quadratic. Source and context must outlive it.
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
  std::uint64_t stored_left_, decoded_left_;
};

}  // namespace weighbridge::core
