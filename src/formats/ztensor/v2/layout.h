// SPDX-License-Identifier: Apache-2.0
// The constants of a zTensor 2 file: magic, footer, alignments, limits, the keys of the manifest, types and profiles.
// Sections are those of the specification (Draft 4), "profile ID" one of its registered profiles, X the project's
// readings.
#pragma once
#include <array>
#include <cstdint>
#include <string_view>

#include "base/record.h"
#include "formats/ztensor/cbor_entry.h"
#include "weighbridge/dtype.h"

namespace weighbridge::ztensor2 {

// 2.2: at the start and at the end.
inline constexpr std::string_view kMagic{"\x89ZT2\r\n\x1a\n", 8};
inline constexpr std::uint64_t kMagicSize = 8;

// 2.3: the last 40 bytes.
WB_RECORD(Footer, (u64, manifest_offset, "offset of the manifest"), (u64, manifest_length, "length of the manifest"),
          (u64, manifest_hash, hex, "XXH3-64 of the manifest"), (u32, version), (u32, reserved), (char[8], magic));
inline constexpr std::uint64_t kFooterSize = 40;
static_assert(base::record_size<Footer>() == kFooterSize);
inline constexpr std::uint32_t kVersion = 2;
inline constexpr std::uint64_t kMinFile = kMagicSize + kFooterSize;  // 2.1

inline constexpr std::uint64_t kAlignment = 4096;             // 2.4; also the first offset that a blob may have
inline constexpr std::uint64_t kPlacement = 65536;            // 6.3, where a written blob begins
inline constexpr std::uint64_t kMaxManifest = 1'073'741'824;  // 3.1
inline constexpr std::uint32_t kMaxDepth = 32;                // 3.1, from the root
inline constexpr std::size_t kMaxName = 1024, kMaxRank = 64;  // 3.5, 3.3
inline constexpr std::size_t kMaxShardName = 64;              // 7.1
inline constexpr std::size_t kMaxRoles = 256;                 // different roles in one file; real files have seven

// Keys of the manifest (3.2 to 3.4, 7.1).
inline constexpr std::string_view kAttributes = "attributes", kShards = "shards", kObjects = "objects";
inline constexpr std::string_view kShape = "shape", kLayout = "layout", kParts = "parts";
inline constexpr std::string_view kDtype = "dtype", kType = "type", kBlob = "blob", kShard = "shard",
                                  kEncoding = "encoding", kDecodedLength = "decoded_length", kDigest = "digest";
inline constexpr std::string_view kSize = "size";

// The files of a model in shards that is written, and of one that is opened by its folder.
inline constexpr std::string_view kStem = "model", kWholeName = "model.zt";

// Roles.
inline constexpr std::string_view kData = "data", kValues = "values", kIndices = "indices", kIndptr = "indptr",
                                  kCoords = "coords", kScales = "scales", kZeros = "zeros";

// Profiles (5.2, 5.3). The last is this project's own: the block types that no registered profile describes (X9).
inline constexpr std::string_view kDense = "dense", kCsr = "zt.sparse_csr/1", kCoo = "zt.sparse_coo/1",
                                  kQuantGroup = "zt.quant_group/1", kMx = "zt.mx/1", kGgufPrefix = "gguf.",
                                  kFirstVersion = "/1", kOwnBlocks = "weighbridge.blocks/1";
inline constexpr std::string_view kSeekable = "zt.zstd-seekable/1";
// Profile gguf: the types that it lists.
inline constexpr std::array<std::string_view, 22> kGgufTypes{
    "q4_0", "q4_1",  "q5_0",  "q5_1",    "q8_0",   "q8_1",  "q2_k",    "q3_k",  "q4_k",   "q5_k",   "q6_k",
    "q8_k", "iq1_s", "iq1_m", "iq2_xxs", "iq2_xs", "iq2_s", "iq3_xxs", "iq3_s", "iq4_nl", "iq4_xs", "mxfp4"};
inline constexpr std::string_view kElemsPerBlock = "elems_per_block", kBlockBytes = "block_bytes";
inline constexpr std::string_view kBlockSize = "block_size", kAxis = "axis", kScaleForm = "scale_form",
                                  kExponent = "e8m0_exponent", kF32Factors = "f32_factors", kF16Factors = "f16_factors";
inline constexpr std::string_view kBits = "bits", kGroupSize = "group_size", kPacking = "packing",
                                  kZeroPoint = "zero_point", kWord = "word", kOrder = "order", kPerWord = "per_word",
                                  kForm = "form", kValue = "value";

// 4.1: the storage types, which have the project's names.
inline constexpr std::array kStorage{DType::f64, DType::f32, DType::f16, DType::bf16, DType::i64, DType::i32,
                                     DType::i16, DType::i8,  DType::u64, DType::u32,  DType::u16, DType::u8};
// Appendix A.
using ztensor::LogicalType;
inline constexpr std::array<LogicalType, 9> kLogicalTypes{{{"bool", DType::boolean, DType::u8},
                                                           {"f8_e4m3fn", DType::f8_e4m3, DType::u8},
                                                           {"f8_e5m2", DType::f8_e5m2, DType::u8},
                                                           {"f8_e4m3fnuz", DType::f8_e4m3fnuz, DType::u8},
                                                           {"f8_e5m2fnuz", DType::f8_e5m2fnuz, DType::u8},
                                                           {"f8_e8m0", DType::f8_e8m0, DType::u8},
                                                           {"f4_e2m1", DType::f4, DType::u8},
                                                           {"complex64", DType::complex64, DType::f32},
                                                           {"complex128", DType::complex128, DType::f64}}};

// The row of a dtype that is not a storage type; null for the others.
constexpr const LogicalType* logical_type(DType dtype) noexcept {
  for (const LogicalType& row : kLogicalTypes)
    if (row.logical == dtype) return &row;
  return nullptr;
}
constexpr bool is_storage(DType dtype) noexcept {
  for (const DType each : kStorage)
    if (each == dtype) return true;
  return false;
}
constexpr bool holds(DType dtype) noexcept { return is_storage(dtype) || logical_type(dtype) != nullptr; }

// 3.5; UTF-8 is checked elsewhere.
constexpr bool is_name(std::string_view name) noexcept {
  return !name.empty() && name.size() <= kMaxName && name.find('\0') == name.npos;
}
// 7.1
constexpr bool is_shard_name(std::string_view name) noexcept {
  if (name.empty() || name.size() > kMaxShardName || name.front() == '.') return false;
  for (const char c : name)
    if (!((c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '.' || c == '_' ||
          c == '-'))
      return false;
  return true;
}

}  // namespace weighbridge::ztensor2
