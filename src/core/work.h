// SPDX-License-Identifier: Apache-2.0
// Bounds the work of a job by the tensor data that is there. A small file can claim the same bytes for many tensors, or
// ranges that overlap, and a job that reads each of them would never end.
#pragma once
#include <cstdint>
#include <optional>
#include <vector>

#include "core/extents.h"
#include "weighbridge/context.h"
#include "weighbridge/error.h"

namespace weighbridge::core {

// Collects the parts that a job will read.
class Work {
 public:
  // The job will read or decode `bytes` for this part, by default its logical bytes.
  void add(const Part&, std::uint64_t bytes);
  void add(const Part& part) { add(part, part.size()); }

  // The bytes that are there: raw ones once, however many parts claim them, and of compressed ranges that share some,
  // the largest part.
  std::uint64_t distinct() const;
  // The finding "limit/work" if the job would do more than Limits::work allows.
  std::optional<Finding> excess(const Limits&) const;
  // Throws it.
  void require(const Limits&) const;

 private:
  std::uint64_t wanted_ = 0;
  std::vector<Range> raw_;
  struct Coded {
    Range range;
    std::uint64_t size = 0;
  };
  std::vector<Coded> coded_;
  std::uint64_t computed_ = 0;
};

// How much a job may read, hash or write of `distinct` bytes: `limit` if it is not 0, else 16 times as much, and at
// least 256 MiB.
std::uint64_t allowed_work(std::uint64_t distinct, std::uint64_t limit) noexcept;

}  // namespace weighbridge::core
