// SPDX-License-Identifier: Apache-2.0
// The bytes before the elements of an array. Source: numpy/lib/format.py and NEP 1.
#pragma once
#include <cstddef>
#include <cstdint>
#include <string_view>

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

// The comment of an archive that we wrote states what its void items are, which no reader of NumPy looks at: the mark,
// " V2=bf16" for each size of items, and then a line "f8_e5m2 NAME" for each array of another type. Arrays whose line
// would not fit are not stated.
inline constexpr std::string_view kMark = "weighbridge dtypes:";
inline constexpr std::size_t kLongestComment = 0xFFFF;

}  // namespace weighbridge::numpy
