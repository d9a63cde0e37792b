// SPDX-License-Identifier: Apache-2.0
// The on-disk layout of an adapter package (README.md): header, directory entry, and the one or two payloads
// of each kind. All integers and floats are little-endian.
#pragma once
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/record.h"

namespace weighbridge::slm_adapter {

// The magic of each kind.
enum class Kind : std::uint8_t { dense, sparse, low_rank };
inline constexpr std::string_view kMagics[] = {"ADP1", "ASP1", "ALR1"};
inline constexpr std::string_view magic(Kind kind) noexcept { return kMagics[static_cast<std::size_t>(kind)]; }

inline constexpr std::uint32_t kVersion = 1, kMaxRank = 4;  // as .slm
inline constexpr std::uint64_t kHeaderSize = 128, kEntrySize = 72, kAlignment = 64;

// The values that must match the base model, in the order of the header.
struct Identity {
  std::uint32_t flags = 0, tensor_count = 0;
  std::uint64_t parameter_count = 0, tensor_layout_checksum = 0, tokenizer_checksum = 0, directory_identity = 0;
  bool operator==(const Identity&) const = default;
};

WB_RECORD(Header, (char[4], magic), (u32, version), (u32, header_length), (u32, entry_count), (u32, base_flags),
          (u32, base_tensor_count), (u64, base_parameter_count), (u64, base_tensor_layout_checksum, hex),
          (u64, base_tokenizer_checksum, hex), (u64, base_directory_identity, hex), (u64, directory_offset),
          (u64, data_offset), (u64, file_size), (u64, payload_checksum, hex), (u64, head_checksum, hex),
          (std::byte[32], reserved));
static_assert(base::record_size<Header>() == kHeaderSize);
inline constexpr std::size_t kPayloadChecksumAt = base::offset_of(&Header::payload_checksum),
                             kHeadChecksumAt = base::offset_of(&Header::head_checksum);

WB_RECORD(Entry, (u64, name_hash, hex), (u32, rank), (u32, reserved), (u32[kMaxRank], dims), (u64, count),
          (u64, first_offset), (u64, first_length), (u64, second_offset), (u64, second_length));
static_assert(base::record_size<Entry>() == kEntrySize);

// Names of layouts and roles in the model: a dense delta is a dense tensor, the others have structural layouts.
inline constexpr std::string_view kSparseLayout = "sparse_delta", kLowRankLayout = "low_rank_delta";
inline constexpr std::string_view kData = "data", kIndices = "indices", kValues = "values", kA = "a", kB = "b";

// The prefix of the attributes that hold the header's identity.
inline constexpr std::string_view kPrefix = "slm-adapter.";

}  // namespace weighbridge::slm_adapter
