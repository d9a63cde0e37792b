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

  // The job will make the dense form of this tensor, whose elements can be read: its parts, and of a sparse one the
  // elements that are not stored too.
  void add_dense(const Tensor&);

  // The bytes that are there: raw ones once, however many parts claim them, and of compressed ranges that share some,
  // the largest part.
  std::uint64_t distinct() const;
  // The finding "limit/work" if the job would do more than Limits::work allows.
  std::optional<Finding> excess(const Limits&) const;
  // Throws it.
  void require(const Limits&) const;
  // Throws the finding "limit/output" if `bytes` of output are more than Limits::output allows, or without one, more
  // than the job's work is worth.
  void require_output(std::uint64_t bytes, const Limits&) const;

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

// Whoever makes elements of one part or tensor calls one of these first, before memory for them is allocated. Part and
// Tensor do it in stream(), read_range(), stream_dense(), to_dense() and read_rows(). They throw "limit/work" if that
// many bytes of a part, or the whole dense form, are out of proportion to what is stored: elements are repeated by
// strides, or not stored because they are zero. An output that Limits::output allows may be made.
void require_work(const Part&, std::uint64_t bytes, const Limits&);
void require_dense_work(const Tensor&, const Limits&);

// How much a job may read, hash or write of `distinct` bytes: `limit` if it is not 0, else 16 times as much, and at
// least 256 MiB.
std::uint64_t allowed_work(std::uint64_t distinct, std::uint64_t limit) noexcept;

}  // namespace weighbridge::core
