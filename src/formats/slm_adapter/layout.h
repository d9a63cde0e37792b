// SPDX-License-Identifier: Apache-2.0
// The on-disk layout of an adapter package (docs/slm-adapters.md): header, directory entry, and the one or two payloads
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
inline constexpr std::uint64_t kHeadChecksumAt = 88, kPayloadChecksumAt = 80, kReservedAt = 96;

// The values that must match the base model, in the order of the header.
struct Identity {
  std::uint32_t flags = 0, tensor_count = 0;
  std::uint64_t parameter_count = 0, tensor_layout_checksum = 0, tokenizer_checksum = 0, directory_identity = 0;
  bool operator==(const Identity&) const = default;
};

struct Header {
  char magic[4] = {};
  std::uint32_t version = kVersion, header_length = kHeaderSize, entry_count = 0, base_flags = 0, base_tensor_count = 0;
  std::uint64_t base_parameter_count = 0, base_tensor_layout_checksum = 0, base_tokenizer_checksum = 0,
                base_directory_identity = 0, directory_offset = kHeaderSize, data_offset = 0, file_size = 0,
                payload_checksum = 0, head_checksum = 0;
  std::uint64_t reserved[4] = {};
};
static_assert(sizeof(Header) == kHeaderSize && offsetof(Header, base_parameter_count) == 24 &&
              offsetof(Header, payload_checksum) == kPayloadChecksumAt &&
              offsetof(Header, head_checksum) == kHeadChecksumAt && offsetof(Header, reserved) == kReservedAt);

struct Entry {
  std::uint64_t name_hash = 0;
  std::uint32_t rank = 0, reserved = 0;
  std::uint32_t dims[kMaxRank] = {};
  std::uint64_t count = 0, first_offset = 0, first_length = 0, second_offset = 0, second_length = 0;
};
static_assert(sizeof(Entry) == kEntrySize && offsetof(Entry, dims) == 16 && offsetof(Entry, count) == 32);

// For base/record.h: all but the magic.
template <class F> void each_number(Header& h, F f) {
  f(h.version), f(h.header_length), f(h.entry_count), f(h.base_flags), f(h.base_tensor_count);
  f(h.base_parameter_count), f(h.base_tensor_layout_checksum), f(h.base_tokenizer_checksum);
  f(h.base_directory_identity), f(h.directory_offset), f(h.data_offset), f(h.file_size);
  f(h.payload_checksum), f(h.head_checksum);
  for (std::uint64_t& word : h.reserved) f(word);
}
template <class F> void each_number(Entry& e, F f) {
  f(e.name_hash), f(e.rank), f(e.reserved);
  for (std::uint32_t& dim : e.dims) f(dim);
  f(e.count), f(e.first_offset), f(e.first_length), f(e.second_offset), f(e.second_length);
}

// Names of layouts and roles in the model: a dense delta is a dense tensor, the others have structural layouts.
inline constexpr std::string_view kSparseLayout = "sparse_delta", kLowRankLayout = "low_rank_delta";
inline constexpr std::string_view kData = "data", kIndices = "indices", kValues = "values", kA = "a", kB = "b";

// The prefix of the attributes that hold the header's identity.
inline constexpr std::string_view kPrefix = "slm-adapter.";

}  // namespace weighbridge::slm_adapter
