// SPDX-License-Identifier: Apache-2.0
// The constants of a zTensor 0.1 file: magic, alignment, the keys of a tensor's map, and the dtypes. Numbers are
// sections of the specification (0.1.0), Z and G are the project's readings.
#pragma once
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "weighbridge/dtype.h"

namespace weighbridge::ztensor0 {

inline constexpr std::string_view kMagic = "ZTEN0001";  // 3.1
inline constexpr std::string_view kFamily = "ZTEN0";    // every magic of the 0.x line begins with this
inline constexpr std::uint64_t kMagicSize = 8;
inline constexpr std::uint64_t kFooterSize = 8;  // 3.3.2: bytes of the index, u64 little-endian
inline constexpr std::uint64_t kMinFile = 17;    // 7: magic, an empty array, its size
inline constexpr std::uint64_t kAlignment = 64;  // 3.2; also the first offset that a tensor may have (Z4)
inline constexpr std::size_t kMaxRank = 64;      // a limit of the object model
inline constexpr std::string_view kVersion = "0.1";

// Keys of a tensor's map (4), and the one that real writers add (Z1).
inline constexpr std::string_view kName = "name", kOffset = "offset", kSize = "size", kDtype = "dtype",
                                  kShape = "shape", kEncoding = "encoding", kEndianness = "data_endianness",
                                  kChecksum = "checksum", kLayout = "layout";
inline constexpr std::string_view kDense = "dense", kSparseCoo = "sparsecoo", kSparseCsr = "sparsecsr";
inline constexpr std::string_view kRaw = "raw", kZstd = "zstd", kLittle = "little", kBig = "big";

// Whether section 4 defines the key, so that no custom field may have it. `layout` may be a custom field (Z1).
constexpr bool is_field(std::string_view key) noexcept {
  return key == kName || key == kOffset || key == kSize || key == kDtype || key == kShape || key == kEncoding ||
         key == kEndianness || key == kChecksum;
}
constexpr bool is_layout(std::string_view text) noexcept {
  return text == kDense || text == kSparseCoo || text == kSparseCsr;
}

// 5.1, the most common first.
struct DTypeName {
  std::string_view name;
  DType dtype;
};
inline constexpr DTypeName kDTypes[] = {
    {"float32", DType::f32},  {"bfloat16", DType::bf16}, {"float16", DType::f16}, {"float64", DType::f64},
    {"int64", DType::i64},    {"int32", DType::i32},     {"int16", DType::i16},   {"int8", DType::i8},
    {"uint64", DType::u64},   {"uint32", DType::u32},    {"uint16", DType::u16},  {"uint8", DType::u8},
    {"bool", DType::boolean},
};

constexpr DType dtype_of(std::string_view name) noexcept {
  for (const DTypeName& each : kDTypes)
    if (each.name == name) return each.dtype;
  return DType::unknown;
}
// Empty for a dtype that zTensor 0.1 lacks.
constexpr std::string_view name_of(DType dtype) noexcept {
  for (const DTypeName& each : kDTypes)
    if (each.dtype == dtype) return each.name;
  return {};
}

}  // namespace weighbridge::ztensor0
