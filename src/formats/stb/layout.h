// SPDX-License-Identifier: Apache-2.0
// The on-disk structs of an STB 0.1 file, each with one list of fields that reader and writer share, and the two
// enumerations. Source: stb-format.md v0.1, sections 3 and 4. All integers are little-endian (reading S9).
#pragma once
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/endian.h"
#include "weighbridge/dtype.h"

namespace weighbridge::stb {

// Section 3.
struct Header {
  std::uint32_t magic = 0;  // "STB0"
  std::uint8_t version = 0;
  std::uint8_t flags = 0;
  std::uint16_t tensor_count = 0;
  std::uint32_t reserved0 = 0, reserved1 = 0;
  std::uint64_t data_offset = 0;
  std::uint64_t file_size = 0;

  template <class Self, class F> static constexpr void fields(Self& h, F field) {
    field(h.magic), field(h.version), field(h.flags), field(h.tensor_count), field(h.reserved0), field(h.reserved1);
    field(h.data_offset), field(h.file_size);
  }
};

// Section 4.
struct Descriptor {
  std::uint8_t tensor_id = 0;
  std::uint8_t dtype = 0;
  std::uint8_t rank = 0;
  std::uint8_t layout = 0;
  std::uint64_t offset = 0;  // from the start of the file (reading S9)
  std::uint64_t size_bytes = 0;
  std::uint32_t dims[3] = {};  // for a rank above 3, dims[0] is the index of the shape in the shape table

  template <class Self, class F> static constexpr void fields(Self& d, F field) {
    field(d.tensor_id), field(d.dtype), field(d.rank), field(d.layout), field(d.offset), field(d.size_bytes);
    for (auto& dim : d.dims) field(dim);
  }
};

// The bytes of the fields in the file, without the compiler's padding.
template <class T> constexpr std::uint64_t stored_size() {
  T t{};
  std::uint64_t size = 0;
  T::fields(t, [&](const auto& field) { size += sizeof field; });
  return size;
}
inline constexpr std::uint64_t kHeaderSize = 32, kDescriptorSize = 32;
static_assert(stored_size<Header>() == kHeaderSize && stored_size<Descriptor>() == kDescriptorSize);

// There must be stored_size<T>() bytes at `from`, or at `to`.
template <class T> T load(const std::byte* from) {
  T out;
  T::fields(out, [&](auto& field) {
    field = base::load_le<std::remove_reference_t<decltype(field)>>(from);
    from += sizeof field;
  });
  return out;
}
template <class T> void store(std::byte* to, const T& value) {
  T::fields(value, [&](const auto& field) {
    base::store_le(to, field);
    to += sizeof field;
  });
}

// Offsets of fields in their structs, for findings.
inline constexpr std::uint64_t kVersionAt = 4, kFlagsAt = 5, kTensorCountAt = 6, kReserved0At = 8, kReserved1At = 12,
                               kDataOffsetAt = 16, kFileSizeAt = 24;
inline constexpr std::uint64_t kDtypeAt = 1, kRankAt = 2, kLayoutAt = 3, kOffsetAt = 4, kSizeAt = 12, kDimsAt = 20;

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
