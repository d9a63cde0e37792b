// SPDX-License-Identifier: Apache-2.0
// Derives sizes from directory entries.
#include "formats/slm/directory.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "base/checked.h"
#include "base/endian.h"
#include "base/order.h"
#include "formats/slm/content.h"
#include "formats/slm/format.h"

namespace weighbridge::slm_format {
namespace {

// Checks one directory entry.

class Check {
 public:
  Check(const Entry& entry, const EntryPlace& place, core::Findings& findings)
      : e_(entry), place_(place), findings_(findings) {}

  bool run(Extents& out) {
    if (!is_stored(e_.dtype)) fail(rules::kDtype, &Entry::dtype, "1, 2 or 3", e_.dtype);
    const bool shaped = check_shape();
    if (shaped && is_stored(e_.dtype)) {
      const auto extents = extents_of(e_);
      if (!extents)
        fail(rules::kSizeOverflow, &Entry::dims);
      else
        check_sizes(out = *extents);
    }
    check_place();
    return sound_;
  }

 private:
  bool check_shape() {
    if (e_.rank < 1 || e_.rank > kMaxRank) {
      fail(rules::kRank, &Entry::rank, "1 to 4", e_.rank);
      return false;
    }
    for (std::uint32_t i = 0; i < e_.rank; ++i)
      if (e_.dims[i] == 0) {
        fail(rules::kZeroDim, &Entry::dims, {}, {}, 4 * i);
        return false;
      }
    for (std::uint32_t i = e_.rank; i < kMaxRank; ++i)
      if (e_.dims[i] != 0) {
        report(rules::kDimPastRank, &Entry::dims, "0", e_.dims[i], 4 * i);
        break;
      }
    return true;
  }

  void check_sizes(const Extents& x) {
    const auto dtype = static_cast<Stored>(e_.dtype);
    if (dtype == Stored::q4_0 && x.elements % 2 != 0)
      return fail(rules::kQ4Odd, &Entry::dims, "an even number", x.elements);
    const std::uint64_t needed = payload_size(e_.dtype, x);
    if (e_.byte_length != needed) fail(rules::kPayloadLength, &Entry::byte_length, needed, e_.byte_length);
    if (dtype == Stored::f32) {
      if (e_.scale_offset != 0 || e_.block_size != 0)
        fail(rules::kF32Scales, &Entry::scale_offset, "0 and 0", {e_.scale_offset, " and ", e_.block_size});
      return;
    }
    if (dtype == Stored::q8_0 ? !check_q8_block(x) : !check_q4_block(x)) return;
    check_scales(scale_count(e_.dtype, e_.block_size, x) * sizeof(float));
  }

  bool check_q8_block(const Extents& x) {
    if (e_.block_size == x.columns) return true;
    fail(rules::kQ8Block, &Entry::block_size, x.columns, e_.block_size);
    return false;
  }

  bool check_q4_block(const Extents& x) {
    if (e_.block_size != 0 && e_.block_size % 2 == 0 && x.columns % e_.block_size == 0) return true;
    fail(rules::kQ4Block, &Entry::block_size, {"an even divisor of ", x.columns}, e_.block_size);
    return false;
  }

  void check_scales(std::uint64_t length) {
    constexpr auto kAt = &Entry::scale_offset;
    const std::uint64_t offset = e_.scale_offset;
    if (offset == 0) return fail(rules::kMissingScales, kAt);
    if (offset < place_.data_offset) fail(rules::kScalesBeforeData, kAt, core::at_least(place_.data_offset), offset);
    if (!base::fits(offset, length, place_.file_size))
      fail(rules::kScalesRange, kAt, past_end(), {offset, " + ", length});
    if (offset % kScaleAlignment != 0) report(rules::kScalesAlignment, kAt, "a multiple of 4", offset);
  }

  void check_place() {
    constexpr auto kAt = &Entry::byte_offset;
    if (e_.byte_offset % kAlignment != 0) fail(rules::kPayloadAlignment, kAt, "a multiple of 64", e_.byte_offset);
    if (e_.byte_offset < place_.data_offset)
      fail(rules::kPayloadBeforeData, kAt, core::at_least(place_.data_offset), e_.byte_offset);
    if (!base::fits(e_.byte_offset, e_.byte_length, place_.file_size))
      fail(rules::kPayloadRange, kAt, past_end(), {e_.byte_offset, " + ", e_.byte_length});
  }

  std::string past_end() const { return "an end of at most " + std::to_string(place_.file_size); }

  // `more`: bytes after the beginning of the field.
  template <class T>
  void report(const Rule& rule, T Entry::*field, const core::Said& expected = {}, const core::Said& found = {},
              std::uint64_t more = 0) {
    findings_.report(rule, core::at_field(field, place_.at + more, place_.name), expected, found);
  }
  template <class T>
  void fail(const Rule& rule, T Entry::*field, const core::Said& expected = {}, const core::Said& found = {},
            std::uint64_t more = 0) {
    sound_ = false;
    report(rule, field, expected, found, more);
  }

  const Entry& e_;
  const EntryPlace& place_;
  core::Findings& findings_;
  bool sound_ = true;
};

}  // namespace

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

bool check_entry(const Entry& entry, const EntryPlace& place, core::Findings& findings, Extents& out) {
  return Check(entry, place, findings).run(out);
}

}  // namespace weighbridge::slm_format
