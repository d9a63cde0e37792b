// SPDX-License-Identifier: Apache-2.0
// Strided parts: gathers whole tiles of rows. A run goes along the dimension with the smallest stride. The reads of
// many runs are one call of the source, which may be a round trip.
#include "core/payload/payload.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <memory>

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

// Elements of a run that are this many bytes apart or closer are read with what lies between them. Not the source's
// gap: the ranges of one call share a round trip, and a column would be read with its whole matrix.
constexpr std::uint64_t kApart = 4096;
// Of one call: bytes, and ranges, which take about a hundred bytes each.
constexpr std::uint64_t kAtOnce = std::uint64_t{1} << 20;
constexpr std::size_t kMaxRanges = std::size_t{1} << 14;

// What all boxes of one part share.
struct Gather {
  const Source& source;
  std::uint64_t offset;  // of the extent
  std::uint32_t width;
  std::uint64_t piece;
  const std::function<bool(std::span<std::byte>)>& sink;

  // A range that is to be read, and where its elements go.
  struct Wanted {
    std::uint64_t at, length;  // of the range in the file
    std::int64_t first;        // element of the range
    std::int64_t stride;
    std::uint64_t n;
    std::byte* out;
    std::uint64_t step;
  };
  std::vector<Wanted> wanted{};
  std::uint64_t bytes = 0;  // of all that are wanted
  std::vector<ReadRange> ranges{};
  std::vector<std::byte> gathered{};

  // Reads `n` elements that are `stride` apart, the first at element `from` of the extent, to `out` and every `step`
  // bytes after it; at the latest with read_wanted().
  void run(std::int64_t from, std::int64_t stride, std::uint64_t n, std::byte* out, std::uint64_t step) {
    const auto apart = static_cast<std::uint64_t>(std::abs(stride));
    const std::uint64_t maximum =
        apart > kApart / width ? 1 : std::max<std::uint64_t>(1, kAtOnce / (width * std::max<std::uint64_t>(1, apart)));
    for (std::uint64_t done = 0; done < n;) {
      const std::uint64_t take = std::min(maximum, n - done), length = (apart * (take - 1) + 1) * width;
      const std::int64_t last = from + stride * static_cast<std::int64_t>(take - 1);
      const std::int64_t lowest = std::min(from, last);
      if (bytes + length > kAtOnce || wanted.size() == kMaxRanges) read_wanted();
      wanted.push_back({offset + static_cast<std::uint64_t>(lowest) * width, length, from - lowest, stride, take,
                        out + done * step, step});
      bytes += length;
      done += take;
      if (done < n) from = last + stride;
    }
  }

  void read_wanted() {
    if (wanted.empty()) return;
    gathered.resize(base::to_size(bytes));
    ranges.clear();
    std::size_t used = 0;
    for (const Wanted& each : wanted) {  // single elements are read to their place
      const std::size_t length = base::to_size(each.length);
      ranges.push_back({each.at, {each.n == 1 ? each.out : gathered.data() + used, length}});
      used += length;
    }
    source.read(ranges);
    used = 0;
    for (const Wanted& each : wanted) {
      for (std::uint64_t i = 0; each.n > 1 && i < each.n; ++i) {
        const auto at = static_cast<std::uint64_t>(each.first + each.stride * static_cast<std::int64_t>(i));
        std::memcpy(each.out + i * each.step, gathered.data() + used + at * width, width);
      }
      used += base::to_size(each.length);
    }
    wanted.clear();
    bytes = 0;
  }

  bool box(std::int64_t origin, Shape shape, std::span<const std::int64_t> strides);
  bool range(std::int64_t origin, Shape shape, std::span<const std::int64_t> strides, std::uint64_t first,
             std::uint64_t count);
};

// All elements of a box, of which the first is element `origin` of the extent.
bool Gather::box(std::int64_t origin, Shape shape, std::span<const std::int64_t> strides) {
  const std::uint64_t count = base::element_count(shape).value_or(0);
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
  std::size_t along = cut;
  for (std::size_t d = cut; d < rank; ++d)
    if (shape[d] > 1 && (shape[along] <= 1 || std::abs(strides[d]) < std::abs(strides[along]))) along = d;

  const auto tile = std::make_unique_for_overwrite<std::byte[]>(base::to_size(rows_at_once * inner));
  std::vector<std::uint64_t> outer(cut, 0), at(rank, 0), place(rank, 0);
  for (;;) {
    for (std::uint64_t first = 0; first < shape[cut]; first += rows_at_once) {
      const std::uint64_t rows = std::min(rows_at_once, shape[cut] - first);
      std::vector<std::uint64_t> box(shape.begin(), shape.end());
      box[cut] = rows;
      // Row-major steps inside the tile, in elements.
      std::uint64_t step = 1;
      for (std::size_t d = rank; d-- > cut;) place[d] = step, step *= box[d];
      std::int64_t base_offset = origin + static_cast<std::int64_t>(first) * strides[cut];
      for (std::size_t d = 0; d < cut; ++d) base_offset += static_cast<std::int64_t>(outer[d]) * strides[d];
      std::fill(at.begin(), at.end(), 0);
      for (;;) {
        std::int64_t from = base_offset;
        std::uint64_t to = 0;
        for (std::size_t d = cut; d < rank; ++d)
          from += static_cast<std::int64_t>(at[d]) * strides[d], to += at[d] * place[d];
        run(from, strides[along], box[along], tile.get() + to * width, place[along] * width);
        std::size_t d = rank;
        while (d-- > cut) {
          if (d == along) continue;
          if (++at[d] < box[d]) break;
          at[d] = 0;
        }
        if (d + 1 == cut || d == static_cast<std::size_t>(-1)) break;
      }
      read_wanted();
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

// Elements [first, first + count) of a box: a part of one row, whole rows, a part of another row.
bool Gather::range(std::int64_t origin, Shape shape, std::span<const std::int64_t> strides, std::uint64_t first,
                   std::uint64_t count) {
  const std::uint64_t row = base::element_count(shape.subspan(1)).value_or(1);
  const auto row_at = [&](std::uint64_t i) { return origin + static_cast<std::int64_t>(i) * strides[0]; };
  const auto in_row = [&](std::uint64_t n) {
    return range(row_at(first / row), shape.subspan(1), strides.subspan(1), first % row, n);
  };
  if (const std::uint64_t rest = (row - first % row) % row, n = std::min(rest, count); n > 0) {
    if (!in_row(n)) return false;
    first += n;
    count -= n;
  }
  if (const std::uint64_t rows = count / row; rows > 0) {
    std::vector<std::uint64_t> whole(shape.begin(), shape.end());
    whole[0] = rows;
    if (!box(row_at(first / row), whole, strides)) return false;
    first += rows * row;
    count -= rows * row;
  }
  return count == 0 || in_row(count);
}

}  // namespace

bool stream_strided(const Source& source, Extent extent, Shape shape, std::span<const std::int64_t> strides,
                    std::uint32_t width, std::uint64_t first, std::uint64_t count, std::uint64_t piece,
                    const std::function<bool(std::span<std::byte>)>& sink) {
  if (count == 0) return true;
  const Reach reach = reach_of(shape, strides);
  // The extent starts at the lowest element.
  const std::uint64_t elements = extent.length / width;
  if (static_cast<std::uint64_t>(reach.high) - static_cast<std::uint64_t>(reach.low) >= elements) {
    base::malformed("part/strides", fmt::format("the strides of a part reach past its {} bytes", extent.length));
  }
  Gather gather{source, extent.offset, width, piece, sink};
  return gather.range(-reach.low, shape, strides, first, count);
}

std::uint64_t strided_cost(Shape shape, std::span<const std::int64_t> strides, std::uint32_t width) noexcept {
  constexpr std::uint64_t kCall = 512;  // what a call costs, in bytes that could be copied meanwhile
  std::uint64_t nearest = UINT64_MAX;
  for (std::size_t d = 0; d < std::min(shape.size(), strides.size()); ++d)
    if (shape[d] > 1) nearest = std::min(nearest, static_cast<std::uint64_t>(std::abs(strides[d])));
  return std::max<std::uint64_t>(width, std::min(kCall, nearest > kCall ? kCall : nearest * width));
}

}  // namespace weighbridge::core
