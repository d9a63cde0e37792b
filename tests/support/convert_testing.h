// SPDX-License-Identifier: Apache-2.0
// Bytes and contexts for the tests of convert.
#pragma once
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "weighbridge/context.h"
#include "weighbridge/source.h"

namespace weighbridge::convert::testing {

template <class T = std::byte> Bytes keep(std::vector<T> values) {
  const auto held = std::make_shared<const std::vector<T>>(std::move(values));
  return {std::as_bytes(std::span(*held)), held};
}

// Bytes without an obvious period, somewhat compressible; with `boolean`, valid as booleans.
inline Bytes pattern(std::uint64_t size, std::uint64_t seed = 0, bool boolean = false) {
  std::vector<std::byte> bytes(static_cast<std::size_t>(size));
  std::uint64_t state = seed * 0x9e3779b97f4a7c15U + 1;
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    if (i % 3 == 0) state = state * 6364136223846793005U + 1442695040888963407U;
    bytes[i] = static_cast<std::byte>(state >> 40);
    if (boolean) bytes[i] &= std::byte{1};
  }
  return keep(std::move(bytes));
}

// 0: no executor.
inline Context threads(unsigned n) {
  Context context;
  context.executor = n == 0 ? nullptr : thread_executor(n);
  return context;
}

}  // namespace weighbridge::convert::testing
