// SPDX-License-Identifier: Apache-2.0
// Floating-point formats narrower than f32. Owns their bit layout and rounding (nearest even). Converts one code at a
// time without branches, so that compilers vectorize loops over it. Formats: IEEE 754 (f16), OCP OFP8 and MX v1.0
// (f8_e4m3, f8_e5m2, f6, f4, f8_e8m0), the "fnuz" pair of Graphcore and AMD, bfloat16. All f32 arithmetic here is exact
// except the one intended rounding.
#pragma once
#include <bit>
#include <cstdint>

namespace weighbridge::codecs {

enum class Special : std::uint8_t {
  ieee,    // the top exponent holds infinities and NaNs
  fn,      // no infinities; all ones is NaN
  fnuz,    // no infinities; the code of negative zero is the only NaN
  finite,  // neither infinities nor NaNs
};

struct FloatFormat {
  int exponent_bits, mantissa_bits, bias;
  Special special;
};

inline constexpr FloatFormat kF16{5, 10, 15, Special::ieee}, kBf16{8, 7, 127, Special::ieee},
    kF8E4m3{4, 3, 7, Special::fn}, kF8E5m2{5, 2, 15, Special::ieee}, kF8E4m3fnuz{4, 3, 8, Special::fnuz},
    kF8E5m2fnuz{5, 2, 16, Special::fnuz}, kF6E2m3{2, 3, 1, Special::finite}, kF6E3m2{3, 2, 3, Special::finite},
    kF4{2, 1, 1, Special::finite};

// The nearest code of format F for the f32 with these bits, ties to even. Overflow gives infinity (ieee), NaN (fn,
// fnuz) or the largest finite value (finite). NaN becomes quiet and keeps its sign and, in f16 and bf16, the top of its
// payload. Format `finite` has no NaN and gives 0; callers exclude NaN first.
template <FloatFormat F>
[[gnu::always_inline]] inline constexpr std::uint32_t encode_float(std::uint32_t bits) noexcept {
  constexpr int kShift = 23 - F.mantissa_bits;
  constexpr std::uint32_t kSign = 1u << (F.exponent_bits + F.mantissa_bits);
  constexpr std::uint32_t kTop = ((1u << F.exponent_bits) - 1) << F.mantissa_bits;  // the top exponent, mantissa 0
  constexpr std::uint32_t kMax = F.special == Special::ieee ? kTop - 1
                                 : F.special == Special::fn ? kSign - 2
                                                            : kSign - 1;
  constexpr std::uint32_t kOverflow = F.special == Special::ieee   ? kTop
                                      : F.special == Special::fnuz ? kSign
                                                                   : kSign - 1;
  constexpr std::uint32_t kQuiet = 1u << (F.mantissa_bits - 1);
  constexpr std::uint32_t kRebias = static_cast<std::uint32_t>(127 - F.bias) << 23;
  constexpr std::uint32_t kSmallestNormal = static_cast<std::uint32_t>(128 - F.bias) << 23;
  // A float whose last bit has the weight of the format's smallest subnormal: adding it rounds to that bit, ties to
  // even.
  constexpr std::uint32_t kMagic = static_cast<std::uint32_t>(128 - F.bias + kShift) << 23;

  const std::uint32_t magnitude = bits & 0x7FFFFFFFu;
  const std::uint32_t sign = (bits >> 31) * kSign;
  const std::uint32_t odd = (magnitude >> kShift) & 1;
  const std::uint32_t normal = (magnitude + ((1u << (kShift - 1)) - 1) + odd - kRebias) >> kShift;
  std::uint32_t code = normal;
  if constexpr (F.bias != 127) {  // bf16 has the same subnormals as f32
    const float sum = std::bit_cast<float>(magnitude) + std::bit_cast<float>(kMagic);
    const std::uint32_t subnormal = std::bit_cast<std::uint32_t>(sum) - kMagic;
    code = magnitude < kSmallestNormal ? subnormal : normal;
  }
  code = code > kMax ? kOverflow : code;
  std::uint32_t nan = F.special == Special::ieee   ? kTop | kQuiet
                      : F.special == Special::fn   ? kSign - 1
                      : F.special == Special::fnuz ? kSign
                                                   : 0;
  if constexpr (F.special == Special::ieee && F.mantissa_bits >= 7) nan |= (magnitude >> kShift) & (kQuiet - 1);
  code = magnitude > 0x7F800000u ? nan : code;
  if constexpr (F.special == Special::fnuz)
    return code == 0 || code == kSign ? code : code | sign;
  else
    return code | sign;
}

// The bits of the f32 for a code of format F; exact for every code. Ignores bits above the code.
template <FloatFormat F>
[[gnu::always_inline]] inline constexpr std::uint32_t decode_float(std::uint32_t code) noexcept {
  constexpr int kShift = 23 - F.mantissa_bits;
  constexpr std::uint32_t kSign = 1u << (F.exponent_bits + F.mantissa_bits);
  constexpr std::uint32_t kTop = ((1u << F.exponent_bits) - 1) << F.mantissa_bits;
  const std::uint32_t magnitude = code & (kSign - 1);
  const std::uint32_t sign = (code & kSign) != 0 ? 0x80000000u : 0;
  if constexpr (F.bias == 127) return sign | magnitude << kShift;
  // With the format's smallest exponent as an offset, the mantissa is a plain number; subtracting the offset normalizes
  // it.
  constexpr std::uint32_t kRebias = static_cast<std::uint32_t>(127 - F.bias) << 23;
  constexpr std::uint32_t kFloor = kRebias + (1u << 23);
  const std::uint32_t wide = magnitude << kShift;
  const float subnormal = std::bit_cast<float>(wide + kFloor) - std::bit_cast<float>(kFloor);
  std::uint32_t value = magnitude < (1u << F.mantissa_bits) ? std::bit_cast<std::uint32_t>(subnormal) : wide + kRebias;
  if constexpr (F.special == Special::ieee) value = magnitude >= kTop ? wide | 0x7F800000u : value;
  if constexpr (F.special == Special::fn) value = magnitude == kSign - 1 ? 0x7FC00000u : value;
  if constexpr (F.special == Special::fnuz) return (code & (2 * kSign - 1)) == kSign ? 0x7FC00000u : value | sign;
  return value | sign;
}

// f8_e8m0: 2^(code - 127), 255 is NaN. Exact in f32 (code 0 is subnormal there).
[[gnu::always_inline]] inline constexpr std::uint32_t decode_e8m0(std::uint32_t code) noexcept {
  const std::uint32_t value = code == 0 ? 0x00400000u : code << 23;
  return code == 255 ? 0x7FC00000u : value;
}

// `value` truncated to f32's 24 bits of precision, with the last bit set if anything was cut off.
[[gnu::always_inline]] inline constexpr double cut_to_odd24(double value) noexcept {
  constexpr std::uint64_t kCut = (std::uint64_t{1} << 29) - 1;
  const std::uint64_t bits = std::bit_cast<std::uint64_t>(value);
  return std::bit_cast<double>((bits & ~kCut) | (((bits & kCut) + kCut) & (kCut + 1)));
}
// Nonzero, and smaller in magnitude than every normal f32.
[[gnu::always_inline]] inline constexpr bool is_tiny(double value) noexcept {
  return (std::bit_cast<std::uint64_t>(value) & ~(std::uint64_t{1} << 63)) - 1 <
         std::bit_cast<std::uint64_t>(0x1p-126) - 1;
}

// The bits of `value` as f32 if that is exact, else of the neighboring f32 whose last bit is odd. Rounding the result
// to a format with at least two fewer bits equals rounding `value` once. Infinity beyond f32's range; NaN stays NaN.
inline constexpr std::uint32_t round_to_odd(double value) noexcept {
  if (!is_tiny(value)) return std::bit_cast<std::uint32_t>(static_cast<float>(cut_to_odd24(value)));
  const float near = static_cast<float>(value);  // subnormal, zero or the smallest normal
  const double back = static_cast<double>(near);
  const std::uint32_t bits = std::bit_cast<std::uint32_t>(near);
  if (back == value) return bits;
  const bool above = (back < 0 ? -back : back) > (value < 0 ? -value : value);
  return (bits - (above ? 1u : 0u)) | 1u;
}

}  // namespace weighbridge::codecs
