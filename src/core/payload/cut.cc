// SPDX-License-Identifier: Apache-2.0
// Collects the elements of a part from its blob, in one pass for a small part and in one per row for a large one.
#include "core/payload/payload.h"

#include <algorithm>
#include <cstring>
#include <memory>
#include <utility>

#include "base/checked.h"
#include "base/endian.h"
#include "core/model/state.h"
#include "core/payload/asking_source.h"
#include "io/read.h"

namespace weighbridge::core {
namespace {

using Sink = std::function<bool(std::span<const std::byte>)>;

struct Rows {
  std::uint64_t count = 1, elements = 0;  // rows; elements of each
};
Rows rows_of(const Cut& cut, const Part& part) noexcept {
  const Shape shape = part.shape();
  if (part.dtype() == DType::unknown) return {1, part.size()};
  return shape.size() < 2 || cut.row == 0 ? Rows{1, part.count()} : Rows{shape[0], shape[1]};
}
std::uint64_t width_of(const Part& part) noexcept { return std::max<std::uint64_t>(1, info(part.dtype()).bits / 8); }

// Delivers the blob's decoded bytes from `begin` to `end`; use(offset, bytes) returns false to stop.
template <class Use>
void read_blob(const Part& part, const Context& context, std::uint64_t begin, std::uint64_t end, Use use) {
  if (part.encoding() != Encoding::raw) {
    std::uint64_t at = 0;
    decode_part(part, context, [&](std::span<const std::byte> piece) {
      const std::uint64_t from = at;
      at += piece.size();
      return use(from, piece);
    });
    return;
  }
  const AskingSource source(source_of(part), context);
  const std::uint64_t offset = part.extent()->offset;
  io::read_pieces(
      source, offset + begin, offset + end,
      [&](std::uint64_t at, std::span<const std::byte> piece) { return use(at - offset, piece); }, kPiece);
}

// The bytes of one row, in order.
class Row {
 public:
  Row(const Cut& cut, std::uint64_t row, std::uint64_t elements, std::uint64_t width)
      : begin_(cut.first + row * cut.row), step_(cut.step), width_(width), left_(elements * width) {}

  std::uint64_t begin() const noexcept { return begin_; }
  std::uint64_t end() const noexcept { return left_ == 0 ? begin_ : begin_ + (left_ / width_ - 1) * step_ + width_; }
  std::uint64_t left() const noexcept { return left_; }

  // Copies the row's bytes in [at, at + piece) that follow those copied before. Returns how many bytes it copied, which
  // is fewer than there are if `out` is full.
  std::size_t take(std::uint64_t at, std::span<const std::byte> piece, std::span<std::byte> out) {
    const std::uint64_t end = at + piece.size();
    std::size_t taken = 0;
    while (left_ > 0 && taken < out.size()) {
      const std::uint64_t inside = done_ % width_, from = begin_ + done_ / width_ * step_ + inside;
      if (from < at || from >= end) break;
      const std::uint64_t run = step_ == width_ ? left_ : width_ - inside;
      const auto n = base::to_size(std::min({run, end - from, std::uint64_t{out.size() - taken}}));
      std::memcpy(out.data() + taken, piece.data() + (from - at), n);
      taken += n;
      done_ += n;
      left_ -= n;
    }
    return taken;
  }

 private:
  std::uint64_t begin_, step_, width_, left_, done_ = 0;
};

// Delivers whole elements, with their bytes in order.
class Collected {
 public:
  Collected(const Cut& cut, std::uint64_t size, const Sink& sink)
      : swap_(cut.swap), sink_(sink), buffer_(base::to_size(std::min(kPiece, size))) {}
  std::span<std::byte> room() { return std::span(buffer_).subspan(used_); }
  bool commit(std::size_t n) {
    used_ += n;
    return used_ < buffer_.size() || flush();
  }
  bool flush() {
    const auto piece = std::span(buffer_).first(std::exchange(used_, 0));
    base::swap_units(piece, swap_);
    return piece.empty() || sink_(piece);
  }

 private:
  const std::uint32_t swap_;
  const Sink& sink_;
  std::vector<std::byte> buffer_;
  std::size_t used_ = 0;
};

// A block of a part in Fortran order: the first dimensions fixed, some rows of one, all of the others.
struct Tile {
  std::uint64_t first = 0;  // element of the blob where it begins
  std::uint64_t step = 1;   // elements of the blob from one row to the next
  std::uint64_t rows = 1;   // of this tile
  std::uint64_t whole = 1;  // elements of the blob from one block of rows to the next
  std::uint64_t elements = 0;
  std::vector<std::uint64_t> shape{};
  std::vector<std::int64_t> strides{};

  std::uint64_t place(std::uint64_t i) const noexcept { return first + i % rows * step + i / rows * whole; }
};

// Divides a part in Fortran order into tiles that are consecutive in row-major order and fit memory. Each tile takes
// one pass over the blob.
struct Tiles {
  static constexpr std::uint64_t kMemory = std::uint64_t{128} << 20;

  explicit Tiles(const Part& part) : shape(part.shape()), width(width_of(part)) {
    std::uint64_t inner = part.size();
    while (dim < shape.size()) {
      inner /= std::max<std::uint64_t>(1, shape[dim]);
      if (inner <= kMemory) break;
      outer *= shape[dim++];
    }
    if (dim == shape.size()) outer /= shape[--dim], inner = width;
    rows = std::clamp<std::uint64_t>(kMemory / std::max<std::uint64_t>(1, inner), 1, shape[dim]);
    per_outer = (shape[dim] - 1) / rows + 1;
    count = outer * per_outer;
    elements_inner = inner / width;
  }
  Tile tile(std::uint64_t t) const {
    Tile out;
    // Counts through the fixed indices: the last is the fastest in row-major order and the slowest in the blob.
    std::uint64_t fixed = t / per_outer, place = outer;
    for (std::size_t d = dim; d-- > 0; fixed /= shape[d]) {
      place /= shape[d];
      out.first += fixed % shape[d] * place;
    }
    const std::uint64_t row = t % per_outer * rows;
    out.step = outer;
    out.first += row * out.step;
    out.rows = std::min(rows, shape[dim] - row);
    out.whole = outer * shape[dim];
    out.elements = out.rows * elements_inner;
    out.shape.assign(shape.begin() + static_cast<std::ptrdiff_t>(dim), shape.end());
    out.shape[0] = out.rows;
    std::int64_t stride = 1;
    for (const std::uint64_t each : out.shape) {
      out.strides.push_back(stride);
      stride *= static_cast<std::int64_t>(each);
    }
    return out;
  }

  Shape shape;
  std::uint64_t width = 1, count = 1, elements_inner = 1;
  std::size_t dim = 0;  // the first dimension that is not fixed
  std::uint64_t outer = 1, rows = 1, per_outer = 1;
};

}  // namespace

std::optional<Cut> cut_of(const Part& part) noexcept {
  const PartRecord& record = Access::record(part);
  return record.side == kNone ? std::nullopt : Access::state(part).part_sides[record.side].cut;
}

std::uint64_t decoded_size(const Part& part) noexcept {
  const auto cut = cut_of(part);
  return cut ? cut->whole : part.size();
}

std::uint64_t place_in(const Cut& cut, const Part& part, std::uint64_t element) noexcept {
  const std::uint64_t per_row = std::max<std::uint64_t>(1, rows_of(cut, part).elements);
  return cut.first + element / per_row * cut.row + element % per_row * cut.step;
}

std::uint64_t cut_work(const Cut& cut, const Part& part) noexcept {
  if (!part.strides().empty()) return base::checked_mul(Tiles(part).count, cut.whole).value_or(UINT64_MAX);
  return base::checked_mul(part.size() <= kPiece ? 1 : rows_of(cut, part).count, cut.whole).value_or(UINT64_MAX);
}

// Tile by tile: collects the elements of a tile in the order of the blob, then delivers them row-major.
void stream_strided_cut(const Part& part, const Cut& cut, const Context& context, const Sink& sink) {
  const Tiles tiles(part);
  const auto buffer = std::make_shared<std::vector<std::byte>>();
  for (std::uint64_t t = 0; t < tiles.count; ++t) {
    const Tile tile = tiles.tile(t);
    buffer->resize(base::to_size(tile.elements * tiles.width));
    std::uint64_t done = 0;  // bytes
    read_blob(part, context, cut.first, cut.first + part.size(),
              [&](std::uint64_t at, std::span<const std::byte> piece) {
                const std::uint64_t end = at + piece.size();
                while (done < buffer->size()) {
                  const std::uint64_t inside = done % tiles.width;
                  const std::uint64_t from = cut.first + tile.place(done / tiles.width) * tiles.width + inside;
                  if (from < at || from >= end) break;
                  const std::uint64_t run =
                      tile.step == 1 ? (tile.rows - done / tiles.width % tile.rows) * tiles.width : tiles.width;
                  const auto n = base::to_size(std::min(run - inside, end - from));
                  std::memcpy(buffer->data() + done, piece.data() + (from - at), n);
                  done += n;
                }
                return true;  // decoded to its end, which shows whether it is sound
              });
    const std::shared_ptr<const Source> source = memory_source({*buffer, buffer});
    if (!stream_strided(*source, {0, 0, buffer->size()}, tile.shape, tile.strides,
                        static_cast<std::uint32_t>(tiles.width), 0, tile.elements, kPiece,
                        [&](std::span<std::byte> piece) { return sink(piece); }))
      return;
  }
}

void stream_cut(const Part& part, const Cut& cut, const Context& context, const Sink& sink) {
  if (!part.strides().empty()) return stream_strided_cut(part, cut, context, sink);
  const Rows rows = rows_of(cut, part);
  const std::uint64_t width = width_of(part), size = part.size();
  if (size == 0) return;
  if (size <= kPiece) {
    std::vector<Row> all;
    for (std::uint64_t r = 0; r < rows.count; ++r) all.emplace_back(cut, r, rows.elements, width);
    std::vector<std::byte> out(base::to_size(size));
    const std::size_t each = base::to_size(rows.elements * width);
    std::uint64_t left = size;
    read_blob(part, context, all.front().begin(), all.back().end(),
              [&](std::uint64_t at, std::span<const std::byte> piece) {
                for (std::size_t r = 0; r < all.size(); ++r) {
                  const auto mine = std::span(out).subspan(r * each, each);
                  left -= all[r].take(at, piece, mine.last(base::to_size(all[r].left())));
                }
                return true;  // decode the frame to its end, to check all of it
              });
    base::swap_units(out, cut.swap);
    if (left == 0) sink(out);
    return;
  }
  Collected out(cut, size, sink);
  for (std::uint64_t r = 0; r < rows.count; ++r) {
    Row row(cut, r, rows.elements, width);
    bool wanted = true;
    read_blob(part, context, row.begin(), row.end(), [&](std::uint64_t at, std::span<const std::byte> piece) {
      while (wanted && row.left() > 0) {
        const std::size_t n = row.take(at, piece, out.room());
        if (n == 0) break;
        wanted = out.commit(n);
      }
      return wanted;
    });
    if (!wanted) return;
  }
  out.flush();
}

}  // namespace weighbridge::core
