// SPDX-License-Identifier: Apache-2.0
// Dequantization of zTensor's quantized_group (reading Y5), by rows, so that callers control the memory.
//
// Logical shape [rows, cols]. Codes of `bits` are packed along rows, least significant bits first: word w of column c
// holds rows w*n .. w*n+n-1, words row-major [ceil(rows / n), cols]. scales and zeros are row-major [rows / group_size,
// cols].
//   value[r, c] = (code[r, c] - zeros[r / group_size, c]) * scales[r / group_size, c]
// Codes are unsigned. The arithmetic is f64, rounded once to f32 at the end.
#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "weighbridge/dtype.h"

namespace weighbridge::codecs {

// Of whole bytes: i4 and the like are neither words nor zeros.
inline bool is_integer(DType dtype) noexcept {
  const DTypeKind kind = info(dtype).kind;
  return (kind == DTypeKind::unsigned_integer || kind == DTypeKind::signed_integer) && info(dtype).bits >= 8;
}
inline bool is_scale(DType dtype) noexcept {
  return dtype == DType::f16 || dtype == DType::bf16 || dtype == DType::f32 || dtype == DType::f64;
}

struct Packing {
  std::uint32_t codes_per_word = 0;
  DType word = DType::unknown;
  bool operator==(const Packing&) const = default;
};
// Parses "<n>_per_<dtype>" with an integer dtype; nullopt for anything else, including leading zeros and n = 0.
std::optional<Packing> parse_packing(std::string_view text) noexcept;

struct QuantizedGroup {
  std::uint64_t rows = 0, cols = 0;
  std::uint32_t bits = 0;
  std::uint64_t group_size = 0;
  Packing packing;
  DType scales = DType::unknown;  // f16, bf16, f32 or f64
  DType zeros = DType::unknown;   // the same, or an integer dtype

  // A lower-case sentence that says why this cannot be dequantized; empty if it can.
  std::string problem() const;
  bool usable() const noexcept;  // problem() is empty
  // The members below: only if problem() is empty.
  std::uint32_t word_bytes() const noexcept { return info(packing.word).bits / 8; }
};

// Dequantizes rows [first, first + count) to out[count * cols], row-major. The spans begin with these rows:
//   words   with word row first / n, up to the one of row first + count - 1
//   scales, zeros   with group row first / group_size, up to the one of row first + count - 1
// and may be longer. Returns false and writes nothing if a span is too short, the rows are out of range, or the tensor
// is not usable().
bool dequantize_rows(const QuantizedGroup& tensor, std::uint64_t first, std::uint64_t count,
                     std::span<const std::byte> words, std::span<const std::byte> scales,
                     std::span<const std::byte> zeros, std::span<float> out) noexcept;

}  // namespace weighbridge::codecs
