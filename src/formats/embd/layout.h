// SPDX-License-Identifier: Apache-2.0
// The records, flags and dtypes of an EMBD .weights file, and the hash of a name. Fields are named as in the
// "Binary Weight Format Specification" 1.0; quoted words are its headings.
#pragma once
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/record.h"
#include "weighbridge/dtype.h"

namespace weighbridge::embd {

inline constexpr char kMagic[4] = {'E', 'M', 'B', 'D'};
inline constexpr char kMagicEnd[4] = {'D', 'B', 'M', 'E'};
inline constexpr std::uint16_t kVersionMajor = 1, kVersionMinor = 0;
inline constexpr std::uint64_t kAlignment = 64;           // of payloads, with TENSORS_ALIGNED
inline constexpr std::uint64_t kMaxGap = kAlignment - 1;  // a larger gap is not padding
inline constexpr std::size_t kMaxRank = 4;                // Descriptor::shape has four
inline constexpr std::size_t kMaxText = UINT16_MAX;       // names, keys, values, tokens: a length has two bytes

// "Flags Field"
inline constexpr std::uint32_t kVocabEmbedded = 1, kTensorsAligned = 2, kChecksumEnabled = 4, kCompressed = 8;
inline constexpr std::uint32_t kKnownFlags = kVocabEmbedded | kTensorsAligned | kChecksumEnabled;

// "File Header (64 bytes)". Offsets and sizes are in bytes; the metadata key vocab_size counts tokens (reading E13).
// The checksum is the CRC-32 of the bytes before it.
WB_RECORD(Header, (char[4], magic), (u16, version_major), (u16, version_minor), (u32, flags, hex),
          (u32, metadata_offset), (u32, metadata_size), (u32, vocab_offset), (u32, vocab_size),
          (u32, tensor_index_offset), (u32, tensor_index_count), (u32, tensor_data_offset), (u64, tensor_data_size),
          (u64, total_file_size), (u32, header_checksum, hex), (u32, reserved));
inline constexpr std::uint64_t kHeaderSize = 64, kHeaderSummed = 56;
static_assert(base::record_size<Header>() == kHeaderSize && base::offset_of(&Header::header_checksum) == kHeaderSummed);

// "Footer (16 bytes)": the last bytes of the file. The checksums are CRC-32 of the tensor data section, and of all
// bytes before the footer.
WB_RECORD(Footer, (u32, data_checksum, hex), (u32, file_checksum, hex), (char[4], magic_end), (u32, reserved));
inline constexpr std::uint64_t kFooterSize = 16;
static_assert(base::record_size<Footer>() == kFooterSize);

// "Tensor Descriptor (32 bytes each)". The offset counts from tensor_data_offset.
WB_RECORD(Descriptor, (u32, name_hash, hex), (u8, dtype), (u8, ndim), (u16, name_length), (u32[kMaxRank], shape),
          (u64, data_offset));
inline constexpr std::uint64_t kDescriptorSize = 32;
static_assert(base::record_size<Descriptor>() == kDescriptorSize);

// "Metadata Header", then for each entry its header, key and value
WB_RECORD(MetadataHeader, (u32, count, "number of entries"), (u32, total, "bytes of entries"));
WB_RECORD(MetadataEntry, (u16, key_length), (u16, value_length));
inline constexpr std::uint64_t kMetadataHeaderSize = 8, kMetadataEntrySize = 4;
// "Vocabulary Header", then for each token u16 token_length, token; and five u32 at special_tokens
WB_RECORD(VocabularyHeader, (u32, vocab_size), (u32, total_bytes), (u32, special_tokens));
inline constexpr std::uint64_t kVocabHeaderSize = 12, kTokenSize = 2, kSpecialSize = 20;

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
