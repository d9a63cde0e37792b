// SPDX-License-Identifier: Apache-2.0
// The two records of an STB 0.1 file and its two enumerations. Source: stb-format.md v0.1, sections 3 and 4. All
// integers are little-endian (reading S9).
#pragma once
#include <cstdint>
#include <string_view>

#include "base/record.h"
#include "weighbridge/dtype.h"

namespace weighbridge::stb {

// Section 3.
WB_RECORD(Header, (u32, magic, text), (u8, version), (u8, flags), (u16, tensor_count), (u32, reserved0),
          (u32, reserved1), (u64, data_offset), (u64, file_size));

// Section 4. The offset counts from the start of the file (reading S9); for a rank above 3, dims[0] is the index of the
// shape in the shape table.
WB_RECORD(Descriptor, (u8, tensor_id), (u8, dtype), (u8, rank), (u8, layout), (u64, offset), (u64, size_bytes),
          (u32[3], dims));

inline constexpr std::uint64_t kHeaderSize = 32, kDescriptorSize = 32;
static_assert(base::record_size<Header>() == kHeaderSize && base::record_size<Descriptor>() == kDescriptorSize);

inline constexpr std::string_view kMagic = "STB0";
inline constexpr std::uint32_t kMagicWord = 0x30425453;  // the same four bytes, little-endian
inline constexpr std::uint8_t kVersion = 1;
inline constexpr std::uint64_t kAlignment = 64;
inline constexpr std::uint64_t kMaxTensors = 256;  // ids are one byte and may not repeat (readings S5, G2)
inline constexpr std::uint8_t kMaxDirectRank = 3, kMaxRank = 8;  // Descriptor::dims has three; section 4

// Section 4.1: the index in the array is the number in the file.
inline constexpr DType kDTypes[] = {DType::f32, DType::f16, DType::i8, DType::i32};
inline constexpr std::uint8_t kDTypeCount = sizeof kDTypes / sizeof kDTypes[0];
// The number of a dtype; kDTypeCount if STB has no such dtype.
constexpr std::uint8_t dtype_number(DType dtype) noexcept {
  std::uint8_t number = 0;
  while (number < kDTypeCount && kDTypes[number] != dtype) ++number;
  return number;
}

// Section 4.2 and reading S8.
enum class Storage : std::uint8_t { row_major = 0, col_major = 1, channels_last = 2 };
inline constexpr std::uint8_t kStorageCount = 3;

}  // namespace weighbridge::stb
