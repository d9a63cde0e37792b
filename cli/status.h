// SPDX-License-Identifier: Apache-2.0
// Owns the exit statuses: their numbers, the status of each kind of error, and which of two is worse.
#pragma once
#include <cstdint>

#include "weighbridge/error.h"

namespace weighbridge::cli {

// Ctrl-C ends with 128 plus the signal's number, 130 (interrupt.h).
enum class Status : std::uint8_t { done = 0, invalid = 1, misuse = 2, unsupported = 3, io = 4 };

constexpr Status status_of(Kind kind) noexcept {
  switch (kind) {
    case Kind::malformed:
    case Kind::limit: return Status::invalid;
    case Kind::unsupported: return Status::unsupported;
    case Kind::misuse: return Status::misuse;
    case Kind::io: break;
  }
  return Status::io;
}

// With several files, the exit status is the first of 4, 1, 2, 3, 0 that occurred.
constexpr Status worse(Status a, Status b) noexcept {
  constexpr std::uint8_t kRank[] = {0, 3, 2, 1, 4};
  return kRank[static_cast<std::uint8_t>(a)] >= kRank[static_cast<std::uint8_t>(b)] ? a : b;
}
static_assert(worse(Status::unsupported, Status::invalid) == Status::invalid);
static_assert(worse(Status::misuse, Status::invalid) == Status::invalid);
static_assert(worse(Status::io, Status::invalid) == Status::io);

}  // namespace weighbridge::cli
