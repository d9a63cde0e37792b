// SPDX-License-Identifier: Apache-2.0
// The content rules of SLM over a file that arrives in pieces: every f32 value is finite, every scale finite and
// positive. Each byte is checked once per rule, however many directory entries refer to it (reading G13). Only the
// first bad value of a range is reported.
#pragma once
#include <cstdint>
#include <span>
#include <vector>

namespace weighbridge::slm_format {

enum class ValueRule : std::uint8_t { finite, positive };

// f32 values in the file that must all satisfy a rule. `tensor` is for the caller's use.
struct ValueRange {
  std::uint64_t offset = 0, length = 0;  // length is a multiple of 4
  std::uint32_t tensor = 0;
  ValueRule rule = ValueRule::finite;
};
struct BadValue {
  std::uint64_t offset = 0;
  std::uint32_t tensor = 0;
  ValueRule rule = ValueRule::finite;
};

class ValueScan {
 public:
  // A piece must repeat this many bytes of the previous one, because a value may straddle two pieces.
  static constexpr std::uint64_t kCarry = 3;

  explicit ValueScan(std::vector<ValueRange> ranges);
  // Pieces must come in file order without gaps; `offset` is that of the first byte.
  void piece(std::uint64_t offset, std::span<const std::byte> bytes);
  // The first bad value of each range that has one, by offset, then tensor.
  std::vector<BadValue> take();

 private:
  // The ranges of one rule whose offsets have the same remainder modulo 4, so that one walk covers all of them.
  struct Lane {
    ValueRule rule = ValueRule::finite;
    std::vector<ValueRange> ranges;     // sorted by offset
    std::size_t first = 0, opened = 0;  // [first, opened) have begun and have no bad value so far
    std::uint64_t at = 0, open_end = 0;
  };
  void open(Lane&, std::uint64_t before);
  void walk(Lane&, std::uint64_t offset, std::span<const std::byte> bytes);
  void blame(Lane&, std::uint64_t offset);

  std::vector<Lane> lanes_;
  std::vector<BadValue> bad_;
};

}  // namespace weighbridge::slm_format
