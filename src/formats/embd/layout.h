// SPDX-License-Identifier: Apache-2.0
// The on-disk structs, flags and dtypes of an EMBD .weights file, and the hash of a name. Fields are named as in the
// "Binary Weight Format Specification" 1.0; quoted words are its headings.
#pragma once
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/endian.h"
#include "base/record.h"
#include "weighbridge/dtype.h"

namespace weighbridge::embd {

inline constexpr char kMagic[4] = {'E', 'M', 'B', 'D'};
inline constexpr char kMagicEnd[4] = {'D', 'B', 'M', 'E'};
inline constexpr std::uint16_t kVersionMajor = 1, kVersionMinor = 0;
inline constexpr std::uint64_t kAlignment = 64;            // of payloads, with TENSORS_ALIGNED
inline constexpr std::uint64_t kMostGap = kAlignment - 1;  // a larger gap is not padding
inline constexpr std::size_t kMaxRank = 4;                 // Descriptor::shape has four
inline constexpr std::size_t kMaxText = UINT16_MAX;        // names, keys, values, tokens: a length has two bytes

// "Flags Field"
inline constexpr std::uint32_t kVocabEmbedded = 1, kTensorsAligned = 2, kChecksumEnabled = 4, kCompressed = 8;
inline constexpr std::uint32_t kKnownFlags = kVocabEmbedded | kTensorsAligned | kChecksumEnabled;

// "File Header (64 bytes)"
struct Header {
  char magic[4];
  std::uint16_t version_major, version_minor;
  std::uint32_t flags;
  std::uint32_t metadata_offset, metadata_size;
  std::uint32_t vocab_offset, vocab_size;  // in bytes; the metadata key of that name counts tokens (reading E13)
  std::uint32_t tensor_index_offset, tensor_index_count;
  std::uint32_t tensor_data_offset;
  std::uint64_t tensor_data_size, total_file_size;
  std::uint32_t header_checksum;  // CRC-32 of the bytes before it
  std::uint32_t reserved;
};
inline constexpr std::uint64_t kHeaderSize = 64, kHeaderSummed = 56;
static_assert(sizeof(Header) == kHeaderSize && offsetof(Header, tensor_data_size) == 40 &&
              offsetof(Header, header_checksum) == kHeaderSummed);

// "Footer (16 bytes)": the last bytes of the file
struct Footer {
  std::uint32_t data_checksum;  // CRC-32 of the tensor data section
  std::uint32_t file_checksum;  // CRC-32 of all bytes before the footer
  char magic_end[4];
  std::uint32_t reserved;
};
inline constexpr std::uint64_t kFooterSize = 16;
static_assert(sizeof(Footer) == kFooterSize && offsetof(Footer, magic_end) == 8);

// "Tensor Descriptor (32 bytes each)"
struct Descriptor {
  std::uint32_t name_hash;
  std::uint8_t dtype, ndim;
  std::uint16_t name_length;
  std::uint32_t shape[kMaxRank];
  std::uint64_t data_offset;  // from tensor_data_offset
};
inline constexpr std::uint64_t kDescriptorSize = 32;
static_assert(sizeof(Descriptor) == kDescriptorSize && offsetof(Descriptor, data_offset) == 24);

// "Metadata Header", then for each entry u16 key_length, u16 value_length, key, value
inline constexpr std::uint64_t kMetadataHeaderSize = 8, kMetadataEntrySize = 4;
// "Vocabulary Header", then for each token u16 token_length, token; and five u32 at special_tokens
inline constexpr std::uint64_t kVocabHeaderSize = 12, kTokenSize = 2, kSpecialSize = 20;

// For base/record.h.
template <class F> void each_number(Header& h, F f) {
  f(h.version_major), f(h.version_minor), f(h.flags), f(h.metadata_offset), f(h.metadata_size), f(h.vocab_offset);
  f(h.vocab_size), f(h.tensor_index_offset), f(h.tensor_index_count), f(h.tensor_data_offset), f(h.tensor_data_size);
  f(h.total_file_size), f(h.header_checksum), f(h.reserved);
}
template <class F> void each_number(Footer& f, F to) { to(f.data_checksum), to(f.file_checksum), to(f.reserved); }
template <class F> void each_number(Descriptor& d, F f) {
  f(d.name_hash), f(d.name_length), f(d.data_offset);
  for (std::uint32_t& dim : d.shape) f(dim);
}
template <class Number> void append_le(std::string& to, Number number) {
  char bytes[sizeof number];
  base::store_le<Number>(bytes, number);
  to.append(bytes, sizeof bytes);
}

// "Data Types": the index of a dtype is its value in the file.
inline constexpr DType kDTypes[] = {DType::f32, DType::f16, DType::bf16, DType::i32, DType::i16,
                                    DType::i8,  DType::u32, DType::u16,  DType::u8};
inline constexpr std::size_t kDTypeValues = sizeof kDTypes / sizeof kDTypes[0];
// Returns kDTypeValues for a dtype that EMBD lacks.
constexpr std::size_t dtype_value(DType dtype) noexcept {
  std::size_t value = 0;
  while (value < kDTypeValues && kDTypes[value] != dtype) ++value;
  return value;
}

// name_hash: FNV-1a, 32 bits, over the bytes of the name (reading E5)
constexpr std::uint32_t fnv1a32(std::string_view name) noexcept {
  std::uint32_t hash = 0x811C9DC5;
  for (const char c : name) hash = (hash ^ static_cast<unsigned char>(c)) * 0x01000193U;
  return hash;
}
static_assert(fnv1a32("") == 0x811C9DC5 && fnv1a32("a") == 0xE40C292C);
static_assert(fnv1a32("costarring") == fnv1a32("liquid"));  // names may collide

// Attributes (u32, u16) that exist only if the file's values differ from what the writer would choose.
inline constexpr std::string_view kFlagsAttribute = "embd.flags", kMinorAttribute = "embd.version_minor";

}  // namespace weighbridge::embd
