// SPDX-License-Identifier: Apache-2.0
// The tensor directory: its entries, the sizes that follow from an entry, and the tensor layout
// checksum ("Tensor Directory Entry", "f32 Payloads" to "q4_0 Payloads", readings M3, M5). Also checks an entry by
// itself.
#pragma once
#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "codecs/indexed_checksum.h"
#include "core/reading/findings.h"
#include "formats/slm/layout.h"
#include "formats/slm/names.h"

namespace weighbridge::slm_format {

// The directory's bytes. Entries are decoded on access.
class Directory {
 public:
  Directory() = default;
  explicit Directory(std::string bytes) : bytes_(std::move(bytes)) {}
  std::uint32_t size() const noexcept { return static_cast<std::uint32_t>(bytes_.size() / kEntrySize); }
  Entry operator[](std::uint32_t i) const noexcept { return base::load_record<Entry>(bytes_.data() + i * kEntrySize); }
  std::uint64_t hash(std::uint32_t i) const noexcept;
  std::string_view bytes() const noexcept { return bytes_; }

 private:
  std::string bytes_;
};

// The sizes that follow from rank and dimensions (M5): rows is the first dimension for a rank above 1, else 1; columns
// is the product of the rest. The rank must be 1 to 4, and no dimension 0.
struct Extents {
  std::uint64_t elements = 0, rows = 0, columns = 0;
};
std::optional<Extents> extents_of(const Entry&) noexcept;  // nullopt: more than 2^64 - 1 bytes as f32

// Bytes of the payload, and number of scales. The dtype must be valid; for q4_0, block_size must divide the columns.
std::uint64_t payload_size(std::uint32_t dtype, const Extents&) noexcept;
std::uint64_t scale_count(std::uint32_t dtype, std::uint32_t block_size, const Extents&) noexcept;

// The dimensions within the rank.
struct EntryShape {
  std::array<std::uint64_t, kMaxRank> dims{};
  std::uint32_t rank = 0;
  std::span<const std::uint64_t> span() const noexcept { return {dims.data(), rank}; }
  // In the form of dims_of(); nullopt for a rank above 2, which dims_of() never returns.
  std::optional<Dims> two() const noexcept;
  std::string text() const;
};
EntryShape shape_of(const Entry&) noexcept;

// M3: the checksum over the entries sorted by name hash, with dimensions as stored.
std::uint64_t layout_checksum(const Directory&, codecs::ChecksumForm = codecs::ChecksumForm::add);

// The rules about a single directory entry: dtype, shape, block size, and the ranges of payload and scales.

// The offset of the entry, and the range where payloads may lie.
struct EntryPlace {
  std::uint64_t at = 0;  // file offset of the entry
  std::uint64_t data_offset = 0, file_size = 0;
  std::string_view name;  // the tensor's, for findings
};

// Reports every error. True if the entry is valid; then `out` is its Extents.
bool check_entry(const Entry&, const EntryPlace&, core::Findings&, Extents& out);

}  // namespace weighbridge::slm_format
