// SPDX-License-Identifier: Apache-2.0
// The table of element types. Owns every name, width and swap unit; containers own the names that they use.
#include "weighbridge/dtype.h"

#include <array>
#include <utility>

namespace weighbridge {
namespace {

using K = DTypeKind;

constexpr std::array<DTypeInfo, kDTypeCount> kTable{{
    {DType::unknown, "unknown", 0, 1, K::unknown},
    {DType::boolean, "bool", 8, 1, K::boolean},
    {DType::u8, "u8", 8, 1, K::unsigned_integer},
    {DType::i8, "i8", 8, 1, K::signed_integer},
    {DType::u16, "u16", 16, 2, K::unsigned_integer},
    {DType::i16, "i16", 16, 2, K::signed_integer},
    {DType::u32, "u32", 32, 4, K::unsigned_integer},
    {DType::i32, "i32", 32, 4, K::signed_integer},
    {DType::u64, "u64", 64, 8, K::unsigned_integer},
    {DType::i64, "i64", 64, 8, K::signed_integer},
    {DType::f16, "f16", 16, 2, K::real},
    {DType::bf16, "bf16", 16, 2, K::real},
    {DType::f32, "f32", 32, 4, K::real},
    {DType::f64, "f64", 64, 8, K::real},
    {DType::complex64, "complex64", 64, 4, K::complex},
    {DType::complex128, "complex128", 128, 8, K::complex},
    {DType::f8_e4m3, "f8_e4m3", 8, 1, K::real},
    {DType::f8_e5m2, "f8_e5m2", 8, 1, K::real},
    {DType::f8_e8m0, "f8_e8m0", 8, 1, K::real},
    {DType::f8_e4m3fnuz, "f8_e4m3fnuz", 8, 1, K::real},
    {DType::f8_e5m2fnuz, "f8_e5m2fnuz", 8, 1, K::real},
    {DType::f6_e2m3, "f6_e2m3", 6, 1, K::real},
    {DType::f6_e3m2, "f6_e3m2", 6, 1, K::real},
    {DType::f4, "f4", 4, 1, K::real},
    {DType::i4, "i4", 4, 1, K::signed_integer},
    {DType::u4, "u4", 4, 1, K::unsigned_integer},
    {DType::i2, "i2", 2, 1, K::signed_integer},
    {DType::u2, "u2", 2, 1, K::unsigned_integer},
}};

// Names of other programs: PyTorch's and NumPy's, those of ml_dtypes, and what people type.
constexpr std::array<std::pair<std::string_view, DType>, 34> kOtherNames{{
    {"float16", DType::f16},
    {"fp16", DType::f16},
    {"half", DType::f16},
    {"bfloat16", DType::bf16},
    {"float32", DType::f32},
    {"fp32", DType::f32},
    {"float", DType::f32},
    {"single", DType::f32},
    {"float64", DType::f64},
    {"fp64", DType::f64},
    {"double", DType::f64},
    {"float8_e4m3fn", DType::f8_e4m3},
    {"f8_e4m3fn", DType::f8_e4m3},
    {"fp8_e4m3", DType::f8_e4m3},
    {"float8_e5m2", DType::f8_e5m2},
    {"fp8_e5m2", DType::f8_e5m2},
    {"float8_e8m0fnu", DType::f8_e8m0},
    {"f8_e8m0fnu", DType::f8_e8m0},
    {"float8_e4m3fnuz", DType::f8_e4m3fnuz},
    {"float8_e5m2fnuz", DType::f8_e5m2fnuz},
    {"float6_e2m3fn", DType::f6_e2m3},
    {"float6_e3m2fn", DType::f6_e3m2},
    {"float4_e2m1fn", DType::f4},
    {"boolean", DType::boolean},
    {"uint8", DType::u8},
    {"byte", DType::u8},
    {"int8", DType::i8},
    {"uint16", DType::u16},
    {"int16", DType::i16},
    {"uint32", DType::u32},
    {"int32", DType::i32},
    {"uint64", DType::u64},
    {"int64", DType::i64},
    {"long", DType::i64},
}};

// Rows are indexed by dtype, so their order must match the enumeration.
constexpr bool in_order() {
  for (std::size_t i = 0; i < kTable.size(); ++i)
    if (static_cast<std::size_t>(kTable[i].dtype) != i) return false;
  return true;
}
static_assert(in_order());

}  // namespace

const DTypeInfo& info(DType dtype) noexcept {
  const auto index = static_cast<std::size_t>(dtype);
  return kTable[index < kTable.size() ? index : 0];
}

std::string_view name(DType dtype) noexcept { return info(dtype).name; }

std::optional<DType> dtype_from_name(std::string_view text) noexcept {
  for (const DTypeInfo& row : all_dtypes())
    if (row.name == text) return row.dtype;
  return std::nullopt;
}

std::string_view short_dtype_name(std::string_view text) noexcept {
  const std::string_view plain = text.starts_with("torch.") ? text.substr(6) : text;
  for (const auto& [other, dtype] : kOtherNames)
    if (other == plain) return name(dtype);
  return text;
}

std::optional<DType> dtype_from_any_name(std::string_view text) noexcept {
  return dtype_from_name(short_dtype_name(text));
}

std::span<const DTypeInfo> all_dtypes() noexcept { return std::span(kTable).subspan(1); }

std::optional<std::uint64_t> packed_size(DType dtype, std::uint64_t elements) noexcept {
  const std::uint64_t bits = info(dtype).bits;
  if (bits == 0) return std::nullopt;
  // Eight elements take `bits` whole bytes. The total in bits may exceed 2^64 when the bytes do not, so it is never
  // computed.
  std::uint64_t whole = 0;
  if (__builtin_mul_overflow(elements / 8, bits, &whole)) return std::nullopt;
  const std::uint64_t rest = ((elements % 8) * bits + 7) / 8;
  std::uint64_t total = 0;
  if (__builtin_add_overflow(whole, rest, &total)) return std::nullopt;
  return total;
}

}  // namespace weighbridge
