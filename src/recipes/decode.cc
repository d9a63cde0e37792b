// SPDX-License-Identifier: Apache-2.0
// Reads tiles of codes and their parameters, and computes. A tile is some whole rows, or a piece of one, and stays in
// the cache: codes of one byte each, then results in the type that the caller gets. Codes of at most four bits have
// only 16 results in a run of elements that share their parameters: these are computed, and looked up.
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <memory>
#include <mutex>
#include <utility>

#include "base/checked.h"
#include "base/endian.h"
#include "base/fail.h"
#include "codecs/cast.h"
#include "codecs/kernels.h"
#include "recipes/recipe.h"

namespace weighbridge::recipes {
namespace {

using codecs::Kernels;

constexpr std::uint64_t kTile = std::uint64_t{1} << 16;   // elements
constexpr std::uint64_t kTileRows = 128;                  // of packings along columns: some cache lines of words
constexpr std::size_t kSome = 2048;                       // numbers that are computed together
constexpr std::size_t kTable = 16;                        // results of codes of four bits
constexpr std::uint64_t kPanel = std::uint64_t{1} << 21;  // bytes
constexpr std::uint64_t kPiece = 512;                     // bytes of a line: to read less takes as long
constexpr std::uint64_t kParameters = std::uint64_t{1} << 24;
constexpr std::uint64_t kLine = 64;  // bytes between rows, so that they share no set of a cache
constexpr std::size_t kPast = 8;     // bytes: the last code is read with what follows

// The bytes of the elements, at any offset.
void read_bytes(const core::Elements& from, std::uint64_t offset, std::span<std::byte> out, const Context& context) {
  const std::uint64_t width = info(from.dtype()).bits / 8;
  if (width == 1 || (offset % width == 0 && out.size() % width == 0))
    return from.read(offset / width, out.size() / width, out, context);
  const std::uint64_t first = offset / width, end = std::min(from.count(), (offset + out.size() + width - 1) / width);
  std::vector<std::byte> whole(base::to_size((end - first) * width));
  from.read(first, end - first, whole, context);
  std::ranges::copy(std::span(whole).subspan(base::to_size(offset - first * width), out.size()), out.begin());
}

void round_to(DType dtype, std::span<float> values) {
  if (dtype == DType::f32 || dtype == DType::unknown) return;
  std::array<std::byte, 2048> room;
  const std::size_t width = info(dtype).bits / 8, step = room.size() / width;
  for (std::size_t at = 0; at < values.size(); at += step) {
    const auto some = values.subspan(at, std::min(step, values.size() - at));
    const auto narrow = std::span(room).first(some.size() * width);
    codecs::cast(DType::f32, std::as_bytes(some), dtype, narrow, some.size());
    codecs::cast(dtype, narrow, DType::f32, std::as_writable_bytes(some), some.size());
  }
}

// Some rows of one matrix, and some of their columns.
struct Tile {
  std::uint64_t lead = 0, row = 0, rows = 0, column = 0, columns = 0;
  std::size_t size() const noexcept { return static_cast<std::size_t>(rows * columns); }
};

// ---- panels ----

// A block of bytes that several reads need a part of each, such as the columns of words of some thousand rows. It goes
// when all of it was used, or when others were read since, so that memory is bounded.
struct Panel {
  std::weak_ptr<const core::Elements> of{};
  std::array<std::uint64_t, 4> at{};
  std::mutex reading{};
  std::unique_ptr<std::byte[]> bytes{};  // null: not yet read
  std::uint64_t used = 0;
};
using PanelPtr = std::shared_ptr<const Panel>;

class Panels {
 public:
  // The panel of these elements at `at`, of which the caller will use so many bytes. fill(bytes) makes it.
  template <class Fill>
  PanelPtr get(const core::ElementsPtr& of, const std::array<std::uint64_t, 4>& at, std::uint64_t size,
               std::uint64_t use, Fill&& fill) {
    const std::shared_ptr<Panel> panel = find(of, at);
    const std::scoped_lock lock(panel->reading);
    if (!panel->bytes) {
      auto bytes = std::make_unique_for_overwrite<std::byte[]>(base::to_size(size) + kPast);
      fill(std::span(bytes.get(), base::to_size(size)));
      panel->bytes = std::move(bytes);
    }
    if ((panel->used += use) >= size) forget(panel);
    return panel;
  }

 private:
  std::shared_ptr<Panel> find(const core::ElementsPtr& of, const std::array<std::uint64_t, 4>& at) {
    const std::scoped_lock lock(mutex_);
    for (const auto& each : recent_)
      if (each && each->at == at && each->of.lock() == of) return each;
    auto made = std::make_shared<Panel>();
    made->of = of;
    made->at = at;
    return recent_[next_++ % recent_.size()] = std::move(made);
  }
  void forget(const std::shared_ptr<Panel>& panel) {
    const std::scoped_lock lock(mutex_);
    for (auto& each : recent_)
      if (each == panel) each.reset();
  }

  std::mutex mutex_;
  std::array<std::shared_ptr<Panel>, 6> recent_{};
  std::size_t next_ = 0;
};
Panels& panels() {
  static Panels all;
  return all;
}

// ---- codes ----

class Codes {
 public:
  // large: neighboring reads are as large as this one, and may share what is read.
  Codes(const Recipe& recipe, const Kernels& kernels, bool large, const Context& context)
      : r_(recipe), k_(kernels), large_(large), context_(context) {}

  // Some lines of bytes, each `step` bytes after the one before.
  struct Lines {
    const std::byte* at = nullptr;
    std::size_t step = 0;
    const std::byte* operator[](std::uint64_t i) const noexcept { return at + base::to_size(i) * step; }
  };

  // The rows of a tile whose codes are nibbles in order, and which layout of Kernels::scale_few they have; 3: as
  // nibble_row() says; 0: they are not. Valid until the next call.
  std::pair<Lines, unsigned> nibbles_of(const Tile& t) {
    if (r_.bits != 4 || t.column % 2 != 0) return {};
    const std::uint64_t begin = t.column / 2, width = (t.columns + 1) / 2;
    switch (r_.packing) {
      case Packing::stream: return {lines_of(t, begin, width), 1};
      case Packing::columns:
        if (begin % 4 == 0) return {turned(t, begin, width), 1};
        break;
      case Packing::nibbles:
        read_bytes(*r_.codes, begin, room(bytes_, width), context_);
        return {{bytes_.data(), 0}, 2};
      case Packing::awq: return {fields(t), 3};
      default: break;
    }
    return {};
  }

  // Row i of these lines, which is `row` of the matrix, and its layout.
  static std::pair<const std::byte*, unsigned> nibble_row(const Lines& lines, unsigned layout, std::uint64_t row,
                                                          std::uint64_t i) {
    if (layout < 3) return {lines[i], layout};
    const std::uint32_t shift = kShift[base::to_size(row % 8)];
    return {lines[row / 8 - (row - i) / 8] + shift / 8, layout + shift % 8 / 4};
  }

  // A byte for each code, row by row.
  void read(const Tile& t, std::span<std::byte> out) {
    switch (r_.packing) {
      case Packing::elements: return elements(t, out);
      case Packing::stream:
      case Packing::padded:
      case Packing::planar_rows: return rows(t, out);
      case Packing::columns:
      case Packing::planar: return words(t, out);
      case Packing::awq: return awq(t, out);
      case Packing::nibbles: return nibbles(t, out);
      case Packing::parts: return parts(t, out);
    }
  }

 private:
  static std::span<std::byte> room(std::vector<std::byte>& bytes, std::uint64_t size) {
    bytes.resize(base::to_size(size) + kPast);
    return std::span(bytes).first(base::to_size(size));
  }

  // Some lines of `all`, which begin at line `first`, each of `length` bytes.
  struct Area {
    std::uint64_t first = 0, all = 0, length = 0;
  };
  // Bytes [begin, begin + width) of the lines [at, at + count) of an area.
  Lines read_lines(const Area& area, std::uint64_t at, std::uint64_t count, std::uint64_t begin, std::uint64_t width) {
    if (large_ && count >= 8 && width < area.length) {
      const std::uint64_t most = std::max(kPanel / area.all / kPiece * kPiece, kPiece), from = begin / most * most;
      if (begin + width <= std::min(from + most, area.length)) {
        const std::uint64_t size = std::min(most, area.length - from);
        panel_ = panels().get(
            r_.codes, {area.first, area.all, from, size}, area.all * size, count * width,
            [&](std::span<std::byte> bytes) { fill(bytes, area.first, area.all, area.length, from, size); });
        return {panel_->bytes.get() + base::to_size(at * size + begin - from), base::to_size(size)};
      }
    }
    const std::uint64_t first = area.first + at, length = area.length;
    fill(room(bytes_, count * width), first, count, length, begin, width);
    return {bytes_.data(), base::to_size(width)};
  }
  void fill(std::span<std::byte> bytes, std::uint64_t first, std::uint64_t count, std::uint64_t length,
            std::uint64_t begin, std::uint64_t width) const {
    if (width == length) return read_bytes(*r_.codes, first * length, bytes, context_);
    for (std::uint64_t i = 0; i < count; ++i)
      read_bytes(*r_.codes, (first + i) * length + begin, bytes.subspan(base::to_size(i * width), base::to_size(width)),
                 context_);
  }

  void elements(const Tile& t, std::span<std::byte> out) {
    const std::uint64_t first = (t.lead * r_.rows + t.row) * r_.columns + t.column;
    if (t.columns == r_.columns || t.rows == 1) return read_bytes(*r_.codes, first, out, context_);
    const Lines lines = read_lines({t.lead * r_.rows, r_.rows, r_.columns}, t.row, t.rows, t.column, t.columns);
    for (std::uint64_t row = 0; row < t.rows; ++row)
      std::memcpy(out.data() + base::to_size(row * t.columns), lines[row], base::to_size(t.columns));
  }

  // The bit at which the code of a column begins in its row.
  std::uint64_t bit_of(std::uint64_t column) const noexcept {
    if (r_.packing != Packing::padded) return column * r_.bits;
    const std::uint64_t in_word = 32 / r_.bits;
    return column / in_word * 32 + column % in_word * r_.bits;
  }
  // The bytes of a row that have the codes of the tile.
  std::pair<std::uint64_t, std::uint64_t> bytes_of(const Tile& t, bool planar) const noexcept {
    const std::uint64_t last = t.column + t.columns - 1;
    if (planar) return {t.column / 32 * r_.bits * 4, (last / 32 + 1) * r_.bits * 4};
    return {bit_of(t.column) / 8, (bit_of(last) + r_.bits + 7) / 8};
  }

  Lines lines_of(const Tile& t, std::uint64_t begin, std::uint64_t width) {
    return read_lines({t.lead * r_.rows, r_.rows, r_.row_bytes}, t.row, t.rows, begin, width);
  }
  void rows(const Tile& t, std::span<std::byte> out) {
    const bool whole = t.columns == r_.columns, planar = r_.packing == Packing::planar_rows;
    const auto [from, end] = bytes_of(t, planar);
    const std::uint64_t begin = whole ? 0 : from, width = whole ? r_.row_bytes : end - from;
    const Lines lines = lines_of(t, begin, width);
    for (std::uint64_t row = 0; row < t.rows; ++row)
      unpack(lines[row], begin, planar, t.column,
             out.subspan(base::to_size(row * t.columns), base::to_size(t.columns)));
  }

  // The codes of columns from `column` on, of a row whose bytes from `begin` on are given.
  void unpack(const std::byte* bytes, std::uint64_t begin, bool planar, std::uint64_t column,
              std::span<std::byte> out) const {
    if (planar) return unpack_planes(bytes, begin, column, out);
    const std::uint64_t first = bit_of(column) - begin * 8;
    if (r_.bits == 4 && first % 8 == 0)
      return k_.unpack_nibbles[0](bytes + base::to_size(first / 8), out.data(), out.size());
    if (r_.bits == 8 && r_.packing != Packing::padded)
      return static_cast<void>(std::memcpy(out.data(), bytes + base::to_size(first / 8), out.size()));
    const std::uint32_t mask = (1U << r_.bits) - 1;
    const bool stream = r_.packing != Packing::padded;
    std::uint64_t bit = first;
    for (std::size_t i = 0; i < out.size(); ++i) {
      if (!stream) bit = bit_of(column + i) - begin * 8;
      const auto both = base::load_le<std::uint16_t>(bytes + base::to_size(bit / 8));
      out[i] = static_cast<std::byte>(both >> bit % 8 & mask);
      bit += r_.bits;
    }
  }

  void unpack_planes(const std::byte* bytes, std::uint64_t begin, std::uint64_t column,
                     std::span<std::byte> out) const {
    for (std::size_t i = 0; i < out.size(); ++i) {
      const std::uint64_t at = column + i, k = at % 32;
      const std::byte* const block = bytes + base::to_size(at / 32 * r_.bits * 4 - begin);
      std::uint32_t code = 0, below = 0;  // the bits of the planes so far
      for (const std::uint32_t width : {4U, 2U, 1U}) {
        if ((r_.bits & width) == 0) continue;
        const std::uint64_t bit = k * width;
        const auto word = base::load_le<std::uint32_t>(block + base::to_size((below + bit / 32) * 4));
        code |= (word >> bit % 32 & ((1U << width) - 1)) << below;
        below += width;
      }
      out[i] = static_cast<std::byte>(code);
    }
  }

  // Columns of words become rows of bytes, those from `begin` on.
  Lines turned(const Tile& t, std::uint64_t begin, std::uint64_t width) {
    const std::uint64_t first = begin / 4, count = (begin + width + 3) / 4 - first, step = count * 4 + kLine;
    const std::uint64_t bytes = r_.codes->count() * (info(r_.codes->dtype()).bits / 8), length = r_.rows * 4;
    const Lines lines = read_lines({0, bytes / length, length}, first, count, t.row * 4, t.rows * 4);
    room(turned_, t.rows * step);
    k_.transpose_words(lines.at, lines.step, base::to_size(count), base::to_size(t.rows), turned_.data(),
                       base::to_size(step));
    return {turned_.data(), base::to_size(step)};
  }
  void words(const Tile& t, std::span<std::byte> out) {
    const bool planar = r_.packing == Packing::planar;
    const auto [begin, end] = bytes_of(t, planar);
    const Lines lines = turned(t, begin, end - begin);
    for (std::uint64_t row = 0; row < t.rows; ++row)
      unpack(lines[row], begin / 4 * 4, planar, t.column,
             out.subspan(base::to_size(row * t.columns), base::to_size(t.columns)));
  }

  static constexpr std::array<std::uint32_t, 8> kShift{0, 16, 4, 20, 8, 24, 12, 28};  // AWQ: of row i of eight

  // Lines of AWQ's words, each of eight rows.
  Lines fields(const Tile& t) {
    const std::uint64_t first = t.row / 8, count = (t.row + t.rows - 1) / 8 + 1 - first;
    const Lines lines = read_lines({0, r_.columns, r_.rows / 8 * 4}, t.column, t.columns, first * 4, count * 4);
    const std::size_t step = base::to_size(t.columns * 4 + kLine);
    room(turned_, step * count);
    k_.transpose_words(lines.at, lines.step, base::to_size(t.columns), base::to_size(count), turned_.data(), step);
    return {turned_.data(), step};
  }
  void awq(const Tile& t, std::span<std::byte> out) {
    const Lines lines = fields(t);
    for (std::uint64_t row = 0; row < t.rows; ++row)
      k_.unpack_fields[2](lines[(t.row + row) / 8 - t.row / 8], kShift[base::to_size((t.row + row) % 8)], 15,
                          out.data() + base::to_size(row * t.columns), base::to_size(t.columns));
  }

  void nibbles(const Tile& t, std::span<std::byte> out) {
    const std::uint64_t begin = t.column / 2, end = (t.column + t.columns + 1) / 2;
    read_bytes(*r_.codes, begin, room(bytes_, end - begin), context_);
    const std::size_t odd = t.column % 2;
    if (odd == 1) out[0] = bytes_[0] & std::byte{15};
    k_.unpack_nibbles[1](bytes_.data() + odd, out.data() + odd, out.size() - odd);
  }

  void parts(const Tile& t, std::span<std::byte> out) {
    const std::uint64_t width = info(r_.codes->dtype()).bits / 8;
    const std::uint64_t parts = r_.bits == 3 && width == 4 ? 10 : width * 8 / r_.bits;
    const std::uint32_t mask = (1U << r_.bits) - 1;
    for (std::uint64_t row = 0; row < t.rows; ++row) {
      const std::uint64_t at = t.row + row, part = at / r_.part_rows;
      const auto shift = static_cast<unsigned>((r_.first_high ? parts - 1 - part : part) * r_.bits);
      const Lines line =
          read_lines({0, r_.part_rows, r_.columns * width}, at % r_.part_rows, 1, t.column * width, t.columns * width);
      k_.unpack_fields[width == 4 ? 2 : 0](line.at, shift, mask, out.data() + base::to_size(row * t.columns),
                                           base::to_size(t.columns));
    }
  }

  const Recipe& r_;
  const Kernels& k_;
  const bool large_;
  const Context& context_;
  std::vector<std::byte> bytes_, turned_;
  PanelPtr panel_;
};

// ---- parameters ----

// Numbers for a row of elements: each[(i + skip) / run] is that of element i. Null: there are none.
struct Runs {
  const float* each = nullptr;
  std::size_t skip = 0, run = 0;
};

// The parameters of a tile.
class Window {
 public:
  Window(const Grid& grid, const Kernels& kernels, std::span<const std::uint32_t> groups, bool large, DType rounded)
      : g_(grid), k_(kernels), groups_(groups), large_(large), rounded_(rounded) {
    if (!groups.empty()) columns_ = std::uint64_t{*std::max_element(groups.begin(), groups.end())} + 1;
  }

  std::size_t groups() const noexcept { return base::to_size(columns_); }

  void read(const Tile& t, const Context& context) {
    if (!g_.values) return;
    row0_ = t.row / g_.rows;
    rows_ = (t.row + t.rows - 1) / g_.rows + 1 - row0_;
    if (groups_.empty()) {
      column0_ = t.column / g_.columns;
      columns_ = (t.column + t.columns - 1) / g_.columns + 1 - column0_;
    }
    values_.resize(base::to_size(rows_ * columns_));
    fetch(t.lead * g_.lead_step + row0_ * g_.row_step + column0_ * g_.column_step, context);
    round_to(rounded_, values_);
  }

  // Of a row of the tile from a column on.
  Runs of(std::uint64_t row, std::uint64_t column) const noexcept {
    if (!g_.values || !groups_.empty()) return {};
    return {line(row) + base::to_size(column / g_.columns - column0_), base::to_size(column % g_.columns),
            base::to_size(g_.columns)};
  }
  // Of a row, the first column's or group's first.
  const float* line(std::uint64_t row) const noexcept {
    if (!g_.values) return nullptr;
    return values_.data() + base::to_size((row / g_.rows - row0_) * columns_);
  }
  // Whether the rows of a tile follow each other: of() of the first one is true for all of its elements.
  bool is_flat(const Tile& t) const noexcept {
    return !g_.values || (groups_.empty() && g_.rows == 1 && t.column % g_.columns == 0 && t.columns % g_.columns == 0);
  }

 private:
  void fetch(std::uint64_t first, const Context& context) {
    const auto take = [&](std::uint64_t at, std::span<float> out) {
      g_.values->read(at, out.size(), std::as_writable_bytes(out), context);
    };
    const auto row = [&](std::uint64_t r) {
      return std::span(values_).subspan(base::to_size(r * columns_), base::to_size(columns_));
    };
    if (columns_ == 1 ? g_.row_step == 1 : g_.column_step == 1 && (rows_ == 1 || g_.row_step == columns_))
      return take(first, values_);
    if (columns_ == 1 || g_.column_step == 1) {
      for (std::uint64_t r = 0; r < rows_; ++r) take(first + r * g_.row_step, row(r));
      return;
    }
    const std::uint64_t all = g_.values->count();
    if (large_ && g_.row_step == 1 && all * sizeof(float) <= kParameters) {
      const PanelPtr panel =
          panels().get(g_.values, {0, all, 0, 0}, all * sizeof(float), values_.size() * sizeof(float),
                       [&](std::span<std::byte> bytes) { g_.values->read(0, all, bytes, context); });
      k_.transpose_words(panel->bytes.get() + base::to_size(first) * sizeof(float),
                         base::to_size(g_.column_step) * sizeof(float), base::to_size(columns_), base::to_size(rows_),
                         reinterpret_cast<std::byte*>(values_.data()), base::to_size(columns_) * sizeof(float));
      return;
    }
    line_.resize(base::to_size(rows_));
    for (std::uint64_t c = 0; c < columns_; ++c) {
      if (g_.row_step == 1 || rows_ == 1)
        take(first + c * g_.column_step, line_);
      else
        for (std::uint64_t r = 0; r < rows_; ++r)
          take(first + c * g_.column_step + r * g_.row_step, std::span(line_).subspan(base::to_size(r), 1));
      for (std::uint64_t r = 0; r < rows_; ++r) values_[base::to_size(r * columns_ + c)] = line_[base::to_size(r)];
    }
  }

  const Grid& g_;
  const Kernels& k_;
  std::span<const std::uint32_t> groups_;
  const bool large_;
  const DType rounded_;
  std::uint64_t row0_ = 0, rows_ = 0, column0_ = 0, columns_ = 0;
  std::vector<float> values_, line_;
};

// ---- arithmetic ----

// The loop that gives the values of a table, if there is one.
class Decoder {
 public:
  Decoder(const Recipe& r, const Kernels& k)
      : bf16_(std::ranges::none_of(r.value, [](float v) { return (std::bit_cast<std::uint32_t>(v) & 0xffff) != 0; })) {
    const std::size_t count = std::size_t{1} << r.bits;
    std::vector<std::byte> codes(count);
    for (std::size_t i = 0; i < count; ++i) codes[i] = static_cast<std::byte>(i);
    std::vector<float> values(count);
    const auto same = [&] { return std::memcmp(values.data(), r.value.data(), count * sizeof(float)) == 0; };
    for (std::size_t d = 0; d < kDTypeCount; ++d) {
      if (k.to_f32[d] == nullptr || info(static_cast<DType>(d)).bits != r.bits) continue;
      k.to_f32[d](codes.data(), values.data(), count);
      if (!same()) continue;
      decode_ = k.to_f32[d];
      return;
    }
    for (const unsigned flip : {0U, 1U << (r.bits - 1)}) {
      flip_ = flip;
      subtracted_ = static_cast<float>(flip) - r.value[0];
      k.integer_values(codes.data(), flip_, subtracted_, values.data(), count);
      if ((integers_ = same())) return;
    }
  }

  // Whether bf16 has all of the values.
  bool is_bf16() const noexcept { return bf16_; }

  void operator()(const Kernels& k, const Recipe& r, const std::byte* codes, float* to, std::size_t n) const {
    if (decode_) return decode_(codes, to, n);
    if (integers_) return k.integer_values(codes, flip_, subtracted_, to, n);
    for (std::size_t i = 0; i < n; ++i) to[i] = r.value[std::to_integer<std::size_t>(codes[i])];
  }

 private:
  const bool bf16_;
  void (*decode_)(const std::byte*, float*, std::size_t) = nullptr;
  bool integers_ = false;
  unsigned flip_ = 0;
  float subtracted_ = 0;
};

// Computes elements of one row, or of several if their parameters follow each other.
class Arithmetic {
 public:
  Arithmetic(const Recipe& recipe, const Kernels& kernels, const Decoder& decoder, DType to)
      : r_(recipe), k_(kernels), decoder_(decoder), to_(to), width_(info(to).bits / 8) {}

  static bool is_few(const Recipe& r) noexcept { return r.bits <= 4 && r.packing != Packing::elements; }

  void operator()(std::span<const std::byte> codes, Runs scale, Runs zero, std::byte* to) {
    const std::size_t n = codes.size();
    const auto [each, skip, run] = scale.each ? scale : zero.each ? zero : Runs{nullptr, 0, n};
    if (!is_few(r_) || run < kTable || (scale.each && zero.each && scale.run != zero.run))
      return one_by_one(codes, scale, zero, to);
    if (is_plain() && scale.each)
      return k_.scale_few[to_ == DType::bf16 ? 1 : 0][0](codes.data(), r_.value.data(), zero.each, scale.each, skip,
                                                         run, to, n);
    for (std::size_t at = 0; at < n;) {
      const std::size_t from = (at + skip) / run, within = (at + skip) % run;
      const std::size_t some = std::min(n - at, kSome / kTable * run - within), count = (within + some - 1) / run + 1;
      make_tables(scale.each ? scale.each + from : nullptr, zero.each ? zero.each + from : nullptr, count, tables_);
      k_.look_up[width_ / 4](codes.data() + at, tables_, within, run, to + at * width_, some);
      at += some;
    }
  }

  // Whether nibbles() is for this recipe: then runs begin at even columns.
  bool takes_nibbles() const noexcept {
    return k_.scale_few[0][1] != nullptr && r_.bits == 4 && is_plain() && r_.groups.empty() && r_.scale.values &&
           r_.scale.columns >= kTable && r_.scale.columns % 2 == 0 &&
           (!r_.zero.values || r_.zero.columns == r_.scale.columns);
  }
  // The same from nibbles, of a layout of Kernels::scale_few.
  void nibbles(const std::byte* codes, unsigned layout, std::size_t n, Runs scale, Runs zero, std::byte* to) const {
    k_.scale_few[to_ == DType::bf16 ? 1 : 0][layout](codes, r_.value.data(), zero.each, scale.each, scale.skip,
                                                     scale.run, to, n);
  }

  // With the group of each element, of so many.
  void operator()(std::span<const std::byte> codes, const std::uint32_t* groups, std::size_t count, const float* scales,
                  const float* zeros, std::byte* to) {
    if (!is_few(r_)) {
      std::array<float, kSome> s, z;
      for (std::size_t at = 0; at < codes.size(); at += kSome) {
        const std::size_t some = std::min(kSome, codes.size() - at);
        for (std::size_t i = 0; scales && i < some; ++i) s[i] = scales[groups[at + i]];
        for (std::size_t i = 0; zeros && i < some; ++i) z[i] = zeros[groups[at + i]];
        one_by_one(codes.subspan(at, some), {scales ? s.data() : nullptr, 0, 1}, {zeros ? z.data() : nullptr, 0, 1},
                   to + at * width_);
      }
      return;
    }
    all_tables_.resize(count * kTable * width_);
    for (std::size_t at = 0; at < count; at += kSome / kTable)
      make_tables(scales ? scales + at : nullptr, zeros ? zeros + at : nullptr, std::min(kSome / kTable, count - at),
                  all_tables_.data() + at * kTable * width_);
    const auto each = [&]<class Result>(Result) {
      const std::byte* const tables = all_tables_.data();
      for (std::size_t i = 0; i < codes.size(); ++i) {
        const std::size_t at = groups[i] * kTable + std::to_integer<std::size_t>(codes[i]);
        std::memcpy(to + i * sizeof(Result), tables + at * sizeof(Result), sizeof(Result));
      }
    };
    width_ == 2 ? each(std::uint16_t{}) : each(std::uint32_t{});
  }

 private:
  void compute(float* v, std::size_t n, Runs scale, Runs zero) const {
    const std::span all(v, n);
    if (zero.each && r_.step == Step::subtract) {
      k_.subtract_runs(v, zero.each, zero.skip, zero.run, n);
      round_to(r_.rounded, all);
    }
    if (scale.each) k_.multiply_runs(v, scale.each, scale.skip, scale.run, n);
    if (zero.each && r_.step == Step::add) {
      round_to(r_.rounded, all);
      k_.add_runs(v, zero.each, zero.skip, zero.run, n);
    }
    if (r_.factor != 1) k_.multiply_runs(v, &r_.factor, 0, n, n);
    if (r_.keeps_rounding) round_to(r_.result, all);
  }

  // One product, and one rounding of it to 16 bits.
  bool is_plain() const noexcept {
    return width_ == 2 && r_.step != Step::add && r_.rounded == DType::unknown && r_.factor == 1 && !r_.keeps_rounding;
  }

  void store(const float* v, std::size_t n, std::byte* to) const {
    k_.from_f32[static_cast<std::size_t>(to_)](v, to, n);
  }

  // The results of each code, for each of some parameters.
  void make_tables(const float* scales, const float* zeros, std::size_t count, std::byte* to) {
    for (std::size_t i = 0; i < count; ++i) std::memcpy(values_ + i * kTable, r_.value.data(), kTable * sizeof(float));
    compute(values_, count * kTable, {scales, 0, kTable}, {zeros, 0, kTable});
    store(values_, count * kTable, to);
  }

  void one_by_one(std::span<const std::byte> codes, Runs scale, Runs zero, std::byte* to) {
    if (k_.scale_many && decoder_.is_bf16() && to_ == DType::bf16 && is_plain() && scale.each && !zero.each)
      return k_.scale_many(codes.data(), r_.value.data(), scale.each, scale.skip, scale.run, to, codes.size());
    for (std::size_t at = 0; at < codes.size(); at += kSome) {
      const std::size_t n = std::min(kSome, codes.size() - at);
      decoder_(k_, r_, codes.data() + at, values_, n);
      compute(values_, n, scale, zero);
      store(values_, n, to + at * width_);
      scale.skip += n;
      zero.skip += n;
    }
  }

  const Recipe& r_;
  const Kernels& k_;
  const Decoder& decoder_;
  const DType to_;
  const std::size_t width_;
  alignas(64) float values_[kSome];
  alignas(64) std::byte tables_[kSome * sizeof(float)];
  std::vector<std::byte> all_tables_;
};

template <class Element> void turn(const Tile& t, const std::byte* from, std::byte* to) {
  constexpr std::size_t kSquare = 16;
  const std::size_t rows = base::to_size(t.rows), columns = base::to_size(t.columns);
  for (std::size_t r = 0; r < rows; r += kSquare)
    for (std::size_t c = 0; c < columns; ++c)
      for (std::size_t i = r; i < std::min(rows, r + kSquare); ++i)
        std::memcpy(to + (c * rows + i) * sizeof(Element), from + (i * columns + c) * sizeof(Element), sizeof(Element));
}

class RecipeElements final : public core::Elements {
 public:
  RecipeElements(std::shared_ptr<const Recipe> recipe, bool rounded, DType to, const Kernels& kernels)
      : Elements(to, recipe->lead * recipe->rows * recipe->columns),
        recipe_(std::move(recipe)),
        k_(kernels),
        rounded_(rounded),
        decoder_(*recipe_, kernels) {}

  void read(std::uint64_t first, std::uint64_t n, std::span<std::byte> out, const Context& context,
            codecs::CastTally*) const override {
    const Recipe& r = *recipe_;
    const bool large = n >= kAtOnce;
    const std::size_t width = info(dtype()).bits / 8;
    Codes codes(r, k_, large, context);
    Window scale(r.scale, k_, r.groups, large, rounded_ ? r.rounded_scale : DType::unknown);
    Window zero(r.zero, k_, r.groups, large, DType::unknown);
    Arithmetic compute(r, k_, decoder_, dtype());
    std::vector<std::byte> raw, turned;
    const std::uint64_t columns = r.transposed ? r.rows : r.columns, rows = r.transposed ? r.columns : r.rows;
    const bool across =
        r.transposed || r.packing == Packing::columns || r.packing == Packing::planar || r.packing == Packing::awq;
    const std::uint64_t maximum = std::max<std::uint64_t>(across ? kTileRows : 1, kTile / columns);
    // The elements of a tile, whose rows begin so many bytes apart.
    const auto make = [&](const Tile& t, std::byte* to, std::size_t step) {
      const auto [lines, layout] = compute.takes_nibbles() ? codes.nibbles_of(t) : std::pair<Codes::Lines, unsigned>{};
      if (layout == 0) {
        raw.resize(t.size());
        codes.read(t, raw);
      }
      scale.read(t, context);
      zero.read(t, context);
      const bool flat = (t.rows == 1 || (step == t.columns * width && (layout == 0 || lines.step * 2 == t.columns))) &&
                        scale.is_flat(t) && zero.is_flat(t);
      const std::size_t length = flat ? t.size() : base::to_size(t.columns);
      for (std::uint64_t i = 0; i < (flat ? 1 : t.rows); ++i, to += step) {
        const std::uint64_t row = t.row + i;
        const Runs s = scale.of(row, t.column), z = zero.of(row, t.column);
        if (layout != 0) {
          const auto [at, form] = Codes::nibble_row(lines, layout, row, i);
          compute.nibbles(at, form, length, s, z, to);
          continue;
        }
        const auto line = std::span<const std::byte>(raw).subspan(base::to_size(i) * length, length);
        if (r.groups.empty())
          compute(line, s, z, to);
        else
          compute(line, &r.groups[base::to_size(t.column)], scale.groups(), scale.line(row), zero.line(row), to);
      }
    };
    for (std::uint64_t end = first + n; first < end;) {
      const std::uint64_t column = first % columns, row = first / columns % rows;
      Tile t{.lead = first / columns / rows, .row = row, .rows = 1, .column = column};
      if (column > 0 || end - first < columns) {
        t.columns = std::min({end - first, columns - column, kTile});
      } else {
        t.columns = std::min(columns, kTile);
        if (t.columns == columns) t.rows = std::min({(end - first) / columns, rows - row, maximum});
      }
      const std::size_t size = t.size(), step = base::to_size(t.columns) * width;
      if (r.transposed) {
        const Tile stored{t.lead, t.column, t.columns, t.row, t.rows};
        turned.resize(size * width);
        make(stored, turned.data(), base::to_size(t.rows) * width);
        width == 2 ? turn<std::uint16_t>(stored, turned.data(), out.data())
                   : turn<std::uint32_t>(stored, turned.data(), out.data());
      } else {
        make(t, out.data(), step);
      }
      out = out.subspan(size * width);
      first += size;
    }
  }

 private:
  std::shared_ptr<const Recipe> recipe_;
  const Kernels& k_;
  const bool rounded_;
  const Decoder decoder_;
};

class HeldElements final : public core::Elements {
 public:
  explicit HeldElements(core::ElementsPtr of) : Elements(of->dtype(), of->count()), of_(std::move(of)) {}

  void read(std::uint64_t first, std::uint64_t n, std::span<std::byte> out, const Context& context,
            codecs::CastTally*) const override {
    const std::scoped_lock lock(mutex_);
    if (held_.empty()) {
      const std::uint64_t size = packed_size(dtype(), count()).value_or(UINT64_MAX);
      if (size > context.limits.decoded)
        base::over_limit("decoded", "the codes of a layer are decoded as a whole, and are larger than the limit", size);
      held_.resize(base::to_size(size));
      of_->read(0, count(), held_, context);
    }
    const std::size_t bits = info(dtype()).bits;
    std::ranges::copy(std::span(held_).subspan(base::to_size(first * bits / 8), out.size()), out.begin());
    if (first + n == count()) held_ = {};
  }

 private:
  const core::ElementsPtr of_;
  mutable std::mutex mutex_;
  mutable std::vector<std::byte> held_;
};

}  // namespace

core::ElementsPtr stored_elements(const Part& part) {
  core::ElementsPtr out = core::elements_of(part);
  return out->at_once() > core::Elements::kAtOnce ? std::make_shared<HeldElements>(std::move(out)) : out;
}

core::ElementsPtr elements_of(std::shared_ptr<const Recipe> recipe, bool rounded, const codecs::Kernels* kernels) {
  const Kernels& k = kernels ? *kernels : codecs::kernels();
  const DType to = rounded ? recipe->result : DType::f32;
  if (to == DType::f32 || to == DType::f16 || to == DType::bf16)
    return std::make_shared<RecipeElements>(std::move(recipe), rounded, to, k);
  return core::mapped(std::make_shared<RecipeElements>(std::move(recipe), rounded, DType::f32, k),
                      {.dtype = to,
                       .make = [to](std::uint64_t, std::span<const std::byte> in, std::span<std::byte> out,
                                    const Context&, codecs::CastTally* tally) {
                         codecs::cast(DType::f32, in, to, out, in.size() / sizeof(float), tally);
                       }});
}

std::array<float, 256> integers(std::uint32_t bits, std::int32_t subtracted) {
  std::array<float, 256> out{};
  for (std::int32_t code = 0; code < 1 << bits; ++code)
    out[static_cast<std::size_t>(code)] = static_cast<float>(code - subtracted);
  return out;
}

std::array<float, 256> twos_complement() {
  std::array<float, 256> out{};
  for (std::size_t code = 0; code < 256; ++code) out[code] = static_cast<float>(static_cast<std::int8_t>(code));
  return out;
}

std::array<float, 256> floats(DType dtype) {
  std::array<std::uint8_t, 256> codes{};
  for (std::size_t code = 0; code < 256; ++code) codes[code] = static_cast<std::uint8_t>(code);
  std::array<float, 256> out{};
  codecs::cast(dtype, std::as_bytes(std::span(codes)), DType::f32, std::as_writable_bytes(std::span(out)), 256);
  return out;
}

std::array<float, 256> e2m1(bool negative_zero) {
  constexpr std::array<float, 8> kValues{0, .5F, 1, 1.5F, 2, 3, 4, 6};
  std::array<float, 256> out{};
  for (std::size_t code = 0; code < 16; ++code) out[code] = code < 8 ? kValues[code] : -kValues[code - 8];
  if (!negative_zero) out[8] = 0;
  return out;
}

std::array<float, 256> e2m3() {
  std::array<float, 256> out{};
  for (std::size_t code = 0; code < 64; ++code) {
    const auto fraction = static_cast<float>(code % 8) / 8;
    const std::size_t exponent = code / 8 % 4;
    const float value = exponent == 0 ? fraction : std::ldexp(1 + fraction, static_cast<int>(exponent) - 1);
    out[code] = code < 32 ? value : -value;
  }
  return out;
}

}  // namespace weighbridge::recipes
