// SPDX-License-Identifier: Apache-2.0
// The CRC-32 of the tensor data and of the file, both from one pass over the bytes.
#pragma once
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>

#include "core/progress.h"
#include "weighbridge/context.h"

namespace weighbridge::embd {

struct Sums {
  std::uint32_t data = 0, file = 0;
};

// The ranges to sum: data is [data_begin, data_end), the file is [0, end). data_begin <= data_end <= end.
struct Summed {
  std::uint64_t data_begin = 0, data_end = 0, end = 0;
};

using ReadAt = std::function<void(std::uint64_t offset, std::span<std::byte>)>;

// The executor's threads read and sum pieces, which are then combined in order: the result does not depend on the
// number of threads. Throws what `read` throws, and Cancelled.
Sums sum(const Summed&, const ReadAt& read, Executor&, core::Progress&);

}  // namespace weighbridge::embd
