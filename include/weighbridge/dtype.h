// SPDX-License-Identifier: Apache-2.0
/// \file
/// The element types that a tensor can have. Owns DType and the table of their properties.
///
/// The names are zTensor 1.1's short names (f32, bf16, f8_e4m3, complex64, ...) for every format; types that zTensor
/// lacks are named in the same style (f6_e2m3, f4, i4, ...).
#pragma once
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <string_view>

namespace weighbridge {

/// The type of one element.
enum class DType : std::uint8_t {
  unknown,
  boolean,  ///< one byte, 0 or 1
  u8,
  i8,
  u16,
  i16,
  u32,
  i32,
  u64,
  i64,
  f16,
  bf16,
  f32,
  f64,
  complex64,
  complex128,  ///< complex types are pairs (real, imaginary) of f32, f64
  f8_e4m3,
  f8_e5m2,
  f8_e8m0,
  f8_e4m3fnuz,
  f8_e5m2fnuz,
  f6_e2m3,
  f6_e3m2,
  f4,  ///< f6, f4 and the integers below are packed without gaps, least significant bits first
  i4,
  u4,
  i2,
  u2,
};
inline constexpr std::size_t kDTypeCount = 28;  ///< enumerators of DType

/// What the bits of an element mean.
enum class DTypeKind : std::uint8_t { unknown, boolean, unsigned_integer, signed_integer, real, complex };

/// One row of the table.
struct DTypeInfo {
  DType dtype;               ///< of this row
  std::string_view name;     ///< the project's short name
  std::uint32_t bits;        ///< of one element; 0 only for unknown
  std::uint32_t swap_bytes;  ///< size of the unit to byte-swap: 1 (never), 2, 4 or 8
  DTypeKind kind;            ///< what its bits mean
};

/// The row of a dtype. Any enumerator is valid.
const DTypeInfo& info(DType) noexcept;
std::string_view name(DType) noexcept;  ///< the short name, "f32"
/// The dtype with this short name, exact spelling; nullopt if there is none. "unknown" is not a name.
std::optional<DType> dtype_from_name(std::string_view) noexcept;
/// The short name for a name that PyTorch, NumPy, JAX or C has for the same dtype ("bfloat16", "half",
/// "float8_e4m3fn"); any other text is returned as it is.
std::string_view short_dtype_name(std::string_view) noexcept;
/// The dtype that a person means: a short name, or a name as for short_dtype_name(); nullopt for any other text.
std::optional<DType> dtype_from_any_name(std::string_view) noexcept;
/// Every dtype except unknown, in table order.
std::span<const DTypeInfo> all_dtypes() noexcept;

/// The size of `elements` packed elements, rounded up to a whole byte; nullopt if it exceeds 2^64 - 1 or the dtype is
/// unknown.
std::optional<std::uint64_t> packed_size(DType, std::uint64_t elements) noexcept;

/// The DType of a C++ type; unknown if it has none.
template <class T> inline constexpr DType dtype_of = DType::unknown;
template <> inline constexpr DType dtype_of<std::uint8_t> = DType::u8;
template <> inline constexpr DType dtype_of<std::int8_t> = DType::i8;
template <> inline constexpr DType dtype_of<std::uint16_t> = DType::u16;
template <> inline constexpr DType dtype_of<std::int16_t> = DType::i16;
template <> inline constexpr DType dtype_of<std::uint32_t> = DType::u32;
template <> inline constexpr DType dtype_of<std::int32_t> = DType::i32;
template <> inline constexpr DType dtype_of<std::uint64_t> = DType::u64;
template <> inline constexpr DType dtype_of<std::int64_t> = DType::i64;
template <> inline constexpr DType dtype_of<float> = DType::f32;   ///< likewise
template <> inline constexpr DType dtype_of<double> = DType::f64;  ///< likewise

}  // namespace weighbridge
