// SPDX-License-Identifier: Apache-2.0
// The content rules of SLM over a file that passes by in pieces: every f32 value is finite, every scale finite and
// positive. Each byte is looked at once for each of the two, however many entries of the directory name it (reading
// G13); a range with a bad value is reported by its first one.
#pragma once
#include <array>
#include <cstdint>
#include <span>
#include <vector>

namespace weighbridge::slm {

enum class ValueRule : std::uint8_t { finite, positive };

// f32 values in the file that must all keep a rule. `tensor` is the caller's.
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
  // Bytes that a piece must repeat of the one before it, so that a value may straddle two.
  static constexpr std::uint64_t kCarry = 3;

  explicit ValueScan(std::vector<ValueRange> ranges);
  // Pieces come in order of the file, without gaps; `offset` is that of the first byte.
  void piece(std::uint64_t offset, std::span<const std::byte> bytes);
  // The first bad value of each range that has one, by offset, then tensor.
  std::vector<BadValue> take();

 private:
  // The ranges of one rule whose values start at the same remainder by 4, so that one walk serves all.
  struct Lane {
    ValueRule rule = ValueRule::finite;
    std::vector<ValueRange> ranges;     // by offset
    std::size_t first = 0, opened = 0;  // [first, opened) have begun and show no bad value yet
    std::uint64_t at = 0, open_end = 0;
  };
  void open(Lane&, std::uint64_t before);
  void walk(Lane&, std::uint64_t offset, std::span<const std::byte> bytes);
  void blame(Lane&, std::uint64_t offset);

  std::vector<Lane> lanes_;
  std::vector<BadValue> bad_;
};

}  // namespace weighbridge::slm
