// SPDX-License-Identifier: Apache-2.0
// Bounds the work of a job by the tensor data that exists. A small file can claim the same bytes for many tensors, or
// overlapping ranges, and a job that reads each of them would never end.
#pragma once
#include <cstdint>
#include <optional>
#include <vector>

#include "core/payload/extents.h"
#include "weighbridge/context.h"
#include "weighbridge/error.h"

namespace weighbridge::core {

// Collects the parts that a job will read.
class Work {
 public:
  // The job will read or decode `bytes` for this part, by default its logical bytes.
  void add(const Part&, std::uint64_t bytes);
  void add(const Part& part) { add(part, part.size()); }

  // The job will compute the dense form of this readable tensor: it reads the parts, and for a sparse tensor also
  // produces the elements that are not stored.
  void add_dense(const Tensor&);

  // The bytes that exist: raw bytes once, however many parts claim them, and for compressed ranges that overlap, only
  // the largest part.
  std::uint64_t distinct() const;
  // The finding "limit/work", if the job would do more than Limits::work allows.
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

// Code that produces elements of one part or tensor calls one of these first, before it allocates memory for them. Part
// and Tensor do so in stream(), read_range(), stream_dense(), to_dense() and read_rows(). They throw "limit/work" if
// that many bytes of a part, or the whole dense form, are out of proportion to the stored bytes, because strides repeat
// elements or zeros are not stored. Limits::output, if set, allows that much.
void require_work(const Part&, std::uint64_t bytes, const Limits&);
void require_dense_work(const Tensor&, const Limits&);

// How many bytes a job may read, hash or write if `distinct` bytes exist: `limit` if it is not 0, else 16 times
// `distinct`, and at least 256 MiB.
std::uint64_t allowed_work(std::uint64_t distinct, std::uint64_t limit) noexcept;

}  // namespace weighbridge::core
