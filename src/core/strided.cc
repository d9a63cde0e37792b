// SPDX-License-Identifier: Apache-2.0
// Strided parts: gathers whole tiles of rows, run by run. A run goes along the dimension with the smallest stride.
#include "core/strided.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <vector>

#include "base/checked.h"
#include "base/fail.h"

namespace weighbridge::core {

namespace {

// Lowest and highest offset, in elements, that the strides reach.
struct Reach {
  std::int64_t low = 0, high = 0;
};
Reach reach_of(Shape shape, std::span<const std::int64_t> strides) {
  Reach reach;
  for (std::size_t d = 0; d < shape.size(); ++d) {
    std::int64_t span = 0;
    if (shape[d] - 1 > INT64_MAX ||
        __builtin_mul_overflow(static_cast<std::int64_t>(shape[d] - 1), strides[d], &span) ||
        __builtin_add_overflow(span < 0 ? reach.low : reach.high, span, span < 0 ? &reach.low : &reach.high)) {
      base::malformed("part/strides", "the strides of a part reach further than 2^63 elements");
    }
  }
  return reach;
}

}  // namespace

bool stream_strided(const Source& source, Extent extent, Shape shape, std::span<const std::int64_t> strides,
                    std::uint32_t width, std::uint64_t piece, const std::function<bool(std::span<std::byte>)>& sink) {
  const std::uint64_t count = base::element_count(shape).value_or(0);
  if (count == 0) return true;
  const Reach reach = reach_of(shape, strides);
  // The extent starts at the lowest element.
  const std::uint64_t elements = extent.length / width;
  if (static_cast<std::uint64_t>(reach.high) - static_cast<std::uint64_t>(reach.low) >= elements) {
    base::malformed("part/strides", fmt::format("the strides of a part reach past its {} bytes", extent.length));
  }
  const std::size_t rank = shape.size();
  // Rows of the slowest dimension per tile. A row larger than a piece is split in its inner dimensions below.
  std::size_t cut = 0;  // dimensions before `cut` are walked one index at a time
  std::uint64_t inner = count * width;
  while (cut < rank) {
    inner /= shape[cut];
    if (inner <= piece) break;
    ++cut;
  }
  if (cut == rank) cut = rank - 1, inner = width;
  const std::uint64_t rows_at_once = std::clamp<std::uint64_t>(piece / inner, 1, shape[cut]);

  // Within a tile, runs go along the dimension with the smallest stride.
  std::size_t run = cut;
  for (std::size_t d = cut; d < rank; ++d)
    if (shape[d] > 1 && (shape[run] <= 1 || std::abs(strides[d]) < std::abs(strides[run]))) run = d;

  const auto tile = std::make_unique_for_overwrite<std::byte[]>(base::to_size(rows_at_once * inner));
  std::vector<std::byte> gathered;
  std::vector<std::uint64_t> outer(cut, 0), at(rank, 0), place(rank, 0);
  for (;;) {
    for (std::uint64_t first = 0; first < shape[cut]; first += rows_at_once) {
      const std::uint64_t rows = std::min(rows_at_once, shape[cut] - first);
      std::vector<std::uint64_t> box(shape.begin(), shape.end());
      box[cut] = rows;
      // Row-major steps inside the tile, in elements.
      std::uint64_t step = 1;
      for (std::size_t d = rank; d-- > cut;) place[d] = step, step *= box[d];
      std::int64_t base_offset = -reach.low + static_cast<std::int64_t>(first) * strides[cut];
      for (std::size_t d = 0; d < cut; ++d) base_offset += static_cast<std::int64_t>(outer[d]) * strides[d];
      std::fill(at.begin(), at.end(), 0);
      for (;;) {
        std::int64_t from = base_offset;
        std::uint64_t to = 0;
        for (std::size_t d = cut; d < rank; ++d)
          from += static_cast<std::int64_t>(at[d]) * strides[d], to += at[d] * place[d];
        const std::uint64_t n = box[run];
        const std::int64_t stride = strides[run];
        const std::uint64_t spread = static_cast<std::uint64_t>(std::abs(stride)) * (n - 1) + 1;
        if (spread <= 4 * n || spread * width <= (64U << 10)) {
          // One read covers the run, including gaps.
          const std::int64_t lowest = stride < 0 ? from + stride * static_cast<std::int64_t>(n - 1) : from;
          gathered.resize(base::to_size(spread * width));
          source.read_at(extent.offset + static_cast<std::uint64_t>(lowest) * width, gathered);
          for (std::uint64_t i = 0; i < n; ++i) {
            const auto offset = static_cast<std::uint64_t>(from + stride * static_cast<std::int64_t>(i) - lowest);
            std::memcpy(tile.get() + (to + i * place[run]) * width, gathered.data() + offset * width, width);
          }
        } else {
          for (std::uint64_t i = 0; i < n; ++i) {
            const auto offset = static_cast<std::uint64_t>(from + stride * static_cast<std::int64_t>(i));
            source.read_at(extent.offset + offset * width, {tile.get() + (to + i * place[run]) * width, width});
          }
        }
        std::size_t d = rank;
        while (d-- > cut) {
          if (d == run) continue;
          if (++at[d] < box[d]) break;
          at[d] = 0;
        }
        if (d + 1 == cut || d == static_cast<std::size_t>(-1)) break;
      }
      if (!sink({tile.get(), base::to_size(rows * inner)})) return false;
    }
    std::size_t d = cut;
    while (d-- > 0) {
      if (++outer[d] < shape[d]) break;
      outer[d] = 0;
    }
    if (d == static_cast<std::size_t>(-1)) return true;
  }
}

StridedRows strided_rows(const Extent& extent, Shape shape, std::span<const std::int64_t> strides, std::uint32_t width,
                         std::uint64_t first, std::uint64_t count) {
  StridedRows out{extent, {shape.begin(), shape.end()}, 0};
  if (shape.empty()) return out;
  const std::uint64_t row = base::element_count(shape.subspan(1)).value_or(1);  // not 0, because there are elements
  const std::uint64_t begin = first / row, rows = (first + count - 1) / row - begin + 1;
  const std::int64_t low = reach_of(shape, strides).low;
  out.shape[0] = rows;
  out.first_element = begin * row;
  // The distance from the lowest element of the whole to the first element of these rows, then to their lowest.
  const std::int64_t shift = static_cast<std::int64_t>(begin) * strides[0] - low + reach_of(out.shape, strides).low;
  const std::uint64_t bytes = static_cast<std::uint64_t>(shift) * width;
  if (bytes > extent.length)
    base::malformed("part/strides", fmt::format("the strides of a part reach past its {} bytes", extent.length));
  out.extent.offset += bytes;
  out.extent.length -= bytes;
  return out;
}

}  // namespace weighbridge::core
