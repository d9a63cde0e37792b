// SPDX-License-Identifier: Apache-2.0
// The bytes before the elements of an array, and the type strings of NumPy. Source: numpy/lib/format.py and NEP 1.
#pragma once
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "weighbridge/dtype.h"

namespace weighbridge::numpy {

// "\x93NUMPY", u8 major, u8 minor, then the length of the header: u16 in version 1.0, u32 in 2.0 and 3.0,
// little-endian. The header is text: Latin-1 in 1.0 and 2.0, UTF-8 in 3.0.
inline constexpr std::string_view kMagic("\x93NUMPY", 6);
inline constexpr std::size_t kVersionAt = 6, kLengthAt = 8;
inline constexpr std::size_t kPreamble1 = 10, kPreamble2 = 12;
// numpy.load() takes no longer header by default.
inline constexpr std::uint64_t kMaxHeader = 10'000;
inline constexpr std::size_t kAlignment = 64;  // of the elements, in what NumPy writes
inline constexpr std::size_t kMaxRank = 64;    // of NumPy 2, and of the object model
// The name of the tensor in an .npy file, which has none.
inline constexpr std::string_view kArray = "array";
// The end of a member's name in an .npz file, which is not a part of the array's name.
inline constexpr std::string_view kSuffix = ".npy";

// A type of elements as NumPy writes it, little-endian. ml_dtypes saves types that NumPy lacks as void items of the
// same size, so files do not say which type they have. (It saves float8_e5m2 as "<f1", which numpy.load() refuses.)
struct TypeName {
  std::string_view text;
  DType dtype;
  std::string_view ml_dtype{};  // the name in ml_dtypes; empty: a type of NumPy itself

  constexpr std::string_view code() const noexcept { return text.substr(1); }  // without the byte order
};
inline constexpr TypeName kTypes[] = {
    {"|b1", DType::boolean},
    {"|u1", DType::u8},
    {"|i1", DType::i8},
    {"<u2", DType::u16},
    {"<i2", DType::i16},
    {"<u4", DType::u32},
    {"<i4", DType::i32},
    {"<u8", DType::u64},
    {"<i8", DType::i64},
    {"<f2", DType::f16},
    {"<f4", DType::f32},
    {"<f8", DType::f64},
    {"<c8", DType::complex64},
    {"<c16", DType::complex128},
    {"<V2", DType::bf16, "bfloat16"},
    {"<V1", DType::f8_e4m3, "float8_e4m3fn"},
    {"|V1", DType::f8_e5m2, "float8_e5m2"},
    {"<V1", DType::f8_e8m0, "float8_e8m0fnu"},
    {"<V1", DType::f8_e4m3fnuz, "float8_e4m3fnuz"},
    {"<V1", DType::f8_e5m2fnuz, "float8_e5m2fnuz"},
};
inline constexpr std::size_t kTypeCount = sizeof kTypes / sizeof kTypes[0];

}  // namespace weighbridge::numpy
