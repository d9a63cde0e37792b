// SPDX-License-Identifier: Apache-2.0
// A pickle in memory, as its reader sees it.
#pragma once
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <span>
#include <string>

#include "wire/pickle.h"

namespace weighbridge::test {

inline wire::Pickle read_pickle(const std::string& bytes, std::uint64_t start = 0,
                                std::uint64_t memory = std::uint64_t{1} << 24) {
  const wire::PickleInput input{bytes.size(), [&](std::uint64_t at, std::span<std::byte> out) {
                                  ASSERT_LE(at + out.size(), bytes.size());
                                  std::ranges::copy(std::as_bytes(std::span(bytes)).subspan(at, out.size()),
                                                    out.begin());
                                }};
  return wire::Pickle::read(input, start, memory);
}

}  // namespace weighbridge::test
