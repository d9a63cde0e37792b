// SPDX-License-Identifier: Apache-2.0
// Derives sizes from directory entries.
#include "formats/slm/directory.h"

#include <algorithm>
#include <vector>

#include "base/checked.h"
#include "base/endian.h"
#include "base/order.h"
#include "formats/slm/content.h"

namespace weighbridge::slm_format {
std::uint64_t Directory::hash(std::uint32_t i) const noexcept {
  return base::load_le<std::uint64_t>(bytes_.data() + i * kEntrySize);
}

std::optional<Extents> extents_of(const Entry& e) noexcept {
  Extents out;
  const EntryShape shape = shape_of(e);
  const auto elements = base::element_count(shape.span());
  if (!elements || !base::checked_mul(*elements, sizeof(float))) return std::nullopt;
  out.elements = *elements;
  out.rows = e.rank > 1 ? e.dims[0] : 1;
  out.columns = out.elements / out.rows;
  return out;
}

std::uint64_t payload_size(std::uint32_t dtype, const Extents& x) noexcept {
  switch (static_cast<Stored>(dtype)) {
    case Stored::f32: return x.elements * sizeof(float);
    case Stored::q8_0: return x.elements;
    case Stored::q4_0: break;
  }
  return x.elements / 2;
}

std::uint64_t scale_count(std::uint32_t dtype, std::uint32_t block_size, const Extents& x) noexcept {
  switch (static_cast<Stored>(dtype)) {
    case Stored::f32: return 0;
    case Stored::q8_0: return x.rows;
    case Stored::q4_0: break;
  }
  return x.rows * (x.columns / block_size);
}

EntryShape shape_of(const Entry& e) noexcept {
  EntryShape out;
  out.rank = e.rank;
  for (std::uint32_t i = 0; i < std::min(e.rank, kMaxRank); ++i) out.dims[i] = e.dims[i];
  return out;
}

std::optional<Dims> EntryShape::two() const noexcept {
  if (rank == 1) return Dims{dims[0], 0};
  if (rank == 2) return Dims{dims[0], dims[1]};
  return std::nullopt;
}

std::string EntryShape::text() const {
  std::string out = "[";
  for (std::uint32_t i = 0; i < rank; ++i) out += (i == 0 ? "" : ", ") + std::to_string(dims[i]);
  return out + "]";
}

std::uint64_t layout_checksum(const Directory& directory, codecs::ChecksumForm form) {
  Checksum sum(kFileSeed, form);
  std::string row;
  for (const std::uint32_t i : base::order_by(directory.size(), [&](std::uint32_t at) { return directory.hash(at); })) {
    const Entry e = directory[i];
    row.clear();
    base::append_fields(row, e.name_hash, e.dtype, e.rank, e.dims, e.block_size, e.byte_length);
    sum.update(std::as_bytes(std::span(row)));
  }
  return sum.value();
}

}  // namespace weighbridge::slm_format
