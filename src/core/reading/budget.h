// SPDX-License-Identifier: Apache-2.0
// What a walk may still take of something that a file can claim in a few bytes: memory that is kept, bytes that are
// read, values that are made. The only such counter; what one unit costs is a constant of its user.
#pragma once
#include <cstdint>
#include <string_view>

#include "core/reading/findings.h"
#include "core/reading/rules.h"

namespace weighbridge::core {

class Budget {
 public:
  constexpr explicit Budget(std::uint64_t maximum) noexcept : maximum_(maximum), left_(maximum) {}

  // `n` things that cost `each`. False, and nothing is taken, if less is left.
  constexpr bool take(std::uint64_t n, std::uint64_t each = 1) noexcept {
    if (n > left_ / each) return false;
    left_ -= n * each;
    return true;
  }
  constexpr void give_back(std::uint64_t n, std::uint64_t each = 1) noexcept { left_ += n * each; }
  constexpr void take_all() noexcept { left_ = 0; }
  constexpr std::uint64_t left() const noexcept { return left_; }

  // What a finding expects: "at most 64 bytes", and more.
  Said said(std::string_view more = {}) const { return at_most(in_bytes(maximum_), more); }
  // take(), and a finding of limit/memory if that fails.
  bool keep(Findings& findings, const At& at, std::uint64_t n, std::uint64_t each, const Said& detail = {}) {
    return take(n, each) || findings.fail(rules::kLimitMemory, at, said(), {}, detail);
  }

 private:
  std::uint64_t maximum_, left_;
};

}  // namespace weighbridge::core
