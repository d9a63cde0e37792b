// SPDX-License-Identifier: Apache-2.0
// Reads the filters and the index of a chunked dataset: a B-tree of either version, one chunk, chunks end to end, a
// fixed array or an extensible array.
#include "formats/hdf5/chunks.h"

#include <algorithm>
#include <bit>
#include <optional>
#include <utility>

#include "core/model/words.h"
#include "formats/hdf5/heap.h"

namespace weighbridge::hdf5 {
namespace {

// No data that a filter compressed decodes to more than this many times its bytes; 0: the filter does not compress.
std::uint64_t max_expansion(std::uint16_t filter) noexcept {
  return filter == kDeflate ? 1032 : filter == kLzf ? 88 : 0;
}

std::string filter_name(std::uint16_t id) {
  switch (id) {
    case 4: return "szip";
    case 5: return "nbit";
    case 6: return "scaleoffset";
    case kLzf: return "lzf";
    case 32001: return "blosc";
    case 32004: return "lz4";
    case 32008: return "bitshuffle";
    case 32013: return "zfp";
    case 32015: return "zstd";
    case 32026: return "blosc2";
    default: return "filter " + std::to_string(id);
  }
}

class ChunkReader {
 public:
  ChunkReader(File& file, const ChunkIndex& index, std::span<const std::uint64_t> maximum, Chunked& out)
      : file_(file), index_(index), maximum_(maximum), out_(out), rule_(file.rules.kChunkIndex) {}

  void run() {
    if (index_.address == kUndefined) return;
    switch (index_.kind) {
      case Index::tree: read_tree(); break;
      case Index::single:
        add(0, index_.address, filtered() ? index_.single_size : out_.bytes, index_.single_skipped);
        break;
      case Index::implicit: read_implicit(); break;
      case Index::fixed: read_fixed(); break;
      case Index::extensible: read_extensible(); break;
      case Index::tree2: read_tree2(); break;
    }
    std::ranges::sort(out_.chunks, {}, &Chunk::index);
    const auto twice = std::ranges::adjacent_find(out_.chunks, std::ranges::equal_to{}, &Chunk::index);
    if (twice != out_.chunks.end()) broken("each chunk once", {"chunk ", twice->index, " twice"});
  }

 private:
  bool filtered() const noexcept { return !out_.filters.empty(); }
  std::size_t rank() const noexcept { return out_.shape.size(); }
  [[noreturn]] void broken(const core::Said& expected, const core::Said& found) const {
    throw Broken{rule_, file_.base + index_.address, expected, found};
  }

  void add(std::uint64_t index, std::uint64_t address, std::uint64_t stored, std::uint32_t skipped) {
    file_.keep(sizeof(Chunk));
    Chunk chunk{index, file_.place(address, stored), stored, skipped};
    if (filtered()) check_size(chunk);
    out_.chunks.push_back(chunk);
  }

  // Whether so many stored bytes can be a chunk.
  void check_size(const Chunk& chunk) const {
    std::uint64_t size = out_.bytes;
    std::uint64_t expansion = 0;
    if (!out_.partial_unfiltered || !is_partial(chunk.index))
      for (std::size_t i = 0; i < out_.filters.size(); ++i)
        if ((chunk.skipped >> i & 1U) == 0) {
          if (out_.filters[i].id == kFletcher32) size += 4;
          expansion = std::max(expansion, max_expansion(out_.filters[i].id));
        }
    if (expansion > 0 ? size / expansion > chunk.stored : size != chunk.stored)
      throw Broken{file_.rules.kChunkSize,
                   chunk.at,
                   {core::in_bytes(size), (expansion > 0 ? " once decompressed" : "")},
                   core::in_bytes(chunk.stored)};
  }
  bool is_partial(std::uint64_t index) const noexcept {
    for (std::size_t i = rank(); i-- > 0;) {
      if ((index % out_.grid[i] + 1) > out_.shape[i] / out_.chunk[i]) return true;
      index /= out_.grid[i];
    }
    return false;
  }

  // The chunk at these coordinates, in chunks.
  std::uint64_t index_of(std::span<const std::uint64_t> place) const {
    std::uint64_t out = 0;
    for (std::size_t i = 0; i < rank(); ++i) {
      if (place[i] >= out_.grid[i])
        broken({"a chunk within the shape ", core::of_shape(out_.shape)}, {"chunk ", core::of_shape(place)});
      out = out * out_.grid[i] + place[i];
    }
    return out;
  }

  // III.A.1: the keys have size, filter mask, and the offset of the first element.
  void read_tree() {
    walk_tree(file_, index_.address, 1, 8 + 8 * (std::uint64_t{rank()} + 1), rule_, [&](Cursor key, std::uint64_t at) {
      const std::uint64_t size = key.u32();
      const std::uint32_t skipped = key.u32();
      std::vector<std::uint64_t> place(rank());
      for (std::size_t i = 0; i < rank(); ++i) {
        const std::uint64_t first = key.u64();
        if (first % out_.chunk[i] != 0) key.fail(core::multiple_of(out_.chunk[i]), first);
        place[i] = first / out_.chunk[i];
      }
      if (!filtered() && size != out_.bytes)
        throw Broken{file_.rules.kChunkSize, key.offset(), core::in_bytes(out_.bytes), core::in_bytes(size)};
      add(index_of(place), at, size, skipped);
    });
  }

  // An entry of the other indexes: the address, and for a filtered chunk also its size and filter mask. `size` is the
  // size of the entry without coordinates.
  struct Entry {
    std::uint64_t address = 0, stored = 0;
    std::uint32_t skipped = 0;
  };
  Entry entry(Cursor& in, std::uint64_t size) const {
    Entry out{in.address(), out_.bytes, 0};
    const std::uint64_t minimum = std::uint64_t{file_.offset_size} + (filtered() ? 5 : 0);
    if (filtered() ? size < minimum || size - minimum > 7 : size != minimum) in.fail();
    if (filtered()) {
      out.stored = in.number(static_cast<std::size_t>(size - file_.offset_size - 4));
      out.skipped = in.u32();
    }
    return out;
  }

  void read_tree2() {
    const Record type = filtered() ? Record::filtered_chunk : Record::chunk;
    walk_tree2(file_, index_.address, type, rule_, [&](Cursor record) {
      if (record.left() < 8 * rank()) record.fail();
      const Entry each = entry(record, record.left() - 8 * rank());
      std::vector<std::uint64_t> place(rank());
      for (std::uint64_t& at : place) at = record.u64();
      add(index_of(place), each.address, each.stored, each.skipped);
    });
  }

  // The grid in which arrays number chunks: that of the largest extents, with an unlimited dimension first.
  void set_array_grid() {
    array_.clear();
    order_.clear();
    for (std::size_t i = 0; i < rank(); ++i) {
      array_.push_back(maximum_[i] == kUndefined ? kUndefined
                                                 : maximum_[i] / out_.chunk[i] + (maximum_[i] % out_.chunk[i] != 0));
      order_.push_back(i);
    }
    if (index_.kind == Index::extensible)
      if (const auto unlimited = std::ranges::find(maximum_, kUndefined); unlimited != maximum_.end()) {
        const auto at = static_cast<std::size_t>(unlimited - maximum_.begin());
        std::rotate(order_.begin(), order_.begin() + static_cast<std::ptrdiff_t>(at),
                    order_.begin() + static_cast<std::ptrdiff_t>(at) + 1);
      }
  }
  // The coordinates of an element of the array.
  std::vector<std::uint64_t> place_of(std::uint64_t element) const {
    std::vector<std::uint64_t> place(rank());
    for (std::size_t i = rank(); i-- > 1;) {
      const std::uint64_t extent = std::max<std::uint64_t>(array_[order_[i]], 1);
      place[order_[i]] = element % extent;
      element /= extent;
    }
    place[order_[0]] = element;
    return place;
  }
  // The number of elements of an array with all chunks of the largest extents; kUndefined if there is no limit.
  std::uint64_t array_size() const noexcept {
    std::uint64_t out = 1;
    for (const std::uint64_t extent : array_) {
      if (extent == kUndefined) return kUndefined;
      const auto product = base::checked_mul(out, extent);
      if (!product) return kUndefined;
      out = *product;
    }
    return out;
  }

  void read_implicit() {
    if (filtered()) broken("chunks without filters", "filters");
    set_array_grid();
    const auto whole = base::checked_mul(array_size(), out_.bytes);
    if (!whole) broken("chunks within the file", "too many");
    file_.place(index_.address, *whole);
    std::vector<std::uint64_t> place(rank(), 0);
    for (;;) {  // the chunks of the shape
      std::uint64_t element = 0;
      for (std::size_t i = 0; i < rank(); ++i) element = element * array_[i] + place[i];
      add(index_of(place), index_.address + element * out_.bytes, out_.bytes, 0);
      std::size_t i = rank();
      while (i > 0 && ++place[i - 1] == out_.grid[i - 1]) place[--i] = 0;
      if (i == 0) return;
    }
  }

  // `count` entries from element `first` on.
  void add_entries(Cursor& in, std::uint64_t first, std::uint64_t count, std::uint64_t size) {
    for (std::uint64_t i = 0; i < count; ++i) {
      const Entry each = entry(in, size);
      if (each.address != kUndefined) add(index_of(place_of(first + i)), each.address, each.stored, each.skipped);
    }
  }

  // A block's signature, version, client and the address of its header.
  Cursor begin_block(const std::string& bytes, std::uint64_t address, std::uint64_t owner) const {
    Cursor in(file_, bytes, file_.base + address, rule_);
    in.skip(4);
    if (in.u8() != 0) throw Broken{file_.rules.kBlock, file_.base + address, "version 0"};
    check_client(in);
    if (owner != kUndefined && in.address() != owner) in.fail({"a block of the array at ", owner});
    return in;
  }
  void check_client(Cursor& in) const {
    if (in.u8() != (filtered() ? 1 : 0)) in.fail(filtered() ? "filtered chunks" : "chunks without filters");
  }

  void read_fixed() {
    const std::uint64_t o = file_.offset_size;
    const std::string head = file_.block(index_.address, 4 + 4 + file_.length_size + o + 4, kFixedArray, true);
    Cursor in = begin_block(head, index_.address, kUndefined);
    const std::uint64_t size = in.u8(), page_bits = in.u8(), count = in.length(), at = in.address();
    set_array_grid();
    if (page_bits >= 32 || size < o || count != array_size()) in.fail({array_size(), " elements"}, count);
    if (at == kUndefined) return;
    const std::uint64_t page = std::uint64_t{1} << page_bits, prefix = 6 + o, elements = sized(count, size, in);
    if (count <= page) {
      const std::string block = file_.block(at, prefix + elements + 4, kFixedBlock, true);
      Cursor rows = begin_block(block, at, index_.address);
      return add_entries(rows, 0, count, size);
    }
    const std::uint64_t pages = count / page + (count % page != 0), bitmap = (pages + 7) / 8;
    const std::string block = file_.block(at, prefix + bitmap + 4, kFixedBlock, true);
    Cursor rows = begin_block(block, at, index_.address);
    read_pages(at + prefix + bitmap + 4, {rows.take(bitmap), 0}, 0, count, page, size);
  }

  // Which pages were written: one bit each, the highest bit of a byte first, from bit `first` on. No bytes: there are
  // no pages.
  struct Bitmap {
    std::string_view bytes{};
    std::uint64_t first = 0;
    bool operator[](std::uint64_t i) const {
      const std::uint64_t at = first + i;
      return at / 8 < bytes.size() &&
             (static_cast<unsigned char>(bytes[static_cast<std::size_t>(at / 8)]) >> (7 - at % 8) & 1U) != 0;
    }
  };

  // Pages with their own checksums.
  void read_pages(std::uint64_t address, const Bitmap& written, std::uint64_t first, std::uint64_t count,
                  std::uint64_t page, std::uint64_t size) {
    for (std::uint64_t i = 0; i * page < count; ++i) {
      const std::uint64_t here = std::min(page, count - i * page);
      if (written[i]) {
        const std::string bytes = file_.block(address, here * size + 4, {}, true);
        Cursor rows(file_, bytes, file_.base + address, rule_);
        add_entries(rows, first + i * page, here, size);
      }
      address += page * size + 4;
    }
  }

  std::uint64_t sized(std::uint64_t count, std::uint64_t size, const Cursor& in) const {
    const auto out = base::checked_mul(count, size);
    if (!out || *out > file_.end() - file_.base) in.fail("elements within the file", count);
    return *out;
  }

  // Elements in the index block, then in data blocks that grow; super blocks have the addresses of further ones.
  void read_extensible() {
    const std::uint64_t o = file_.offset_size;
    const std::string head =
        file_.block(index_.address, 4 + 8 + 6 * std::uint64_t{file_.length_size} + o + 4, kExtensible, true);
    Cursor in = begin_block(head, index_.address, kUndefined);
    const std::uint64_t size = in.u8(), bits = in.u8(), in_index = in.u8(), minimum = in.u8(), pointers = in.u8(),
                        page_bits = in.u8();
    for (int i = 0; i < 4; ++i) in.length();
    const std::uint64_t used = in.length();  // the largest index that was set, and one
    in.length();
    const std::uint64_t at = in.address();
    if (size < o || bits == 0 || bits > 64 || !std::has_single_bit(minimum) || !std::has_single_bit(pointers) ||
        pointers < 2 || page_bits >= 32 || static_cast<std::uint64_t>(std::bit_width(minimum)) > bits)
      in.fail();
    set_array_grid();
    if (at == kUndefined) return;
    const std::uint64_t supers = 1 + bits - static_cast<std::uint64_t>(std::bit_width(minimum) - 1);
    const std::uint64_t direct_supers = std::min(supers, 2 * static_cast<std::uint64_t>(std::bit_width(pointers) - 1));
    const std::uint64_t blocks = 2 * (pointers - 1), super_pointers = supers - direct_supers, width = (bits + 7) / 8;
    const std::string index =
        file_.block(at, 6 + o + sized(in_index, size, in) + (blocks + super_pointers) * o + 4, kExtensibleIndex, true);
    Cursor rows = begin_block(index, at, index_.address);
    add_entries(rows, 0, in_index, size);
    const std::uint64_t page = std::uint64_t{1} << page_bits;
    std::uint64_t first = in_index;
    for (std::uint64_t s = 0; s < supers && first < used; ++s) {
      const std::uint64_t count = std::uint64_t{1} << (s / 2);
      const auto each = base::checked_mul(std::uint64_t{1} << ((s + 1) / 2), minimum);
      const auto all = each ? base::checked_mul(*each, count) : std::nullopt;
      if (!all || first > UINT64_MAX - *all) in.fail();
      if (s < direct_supers) {
        for (std::uint64_t i = 0; i < count; ++i)
          if (const std::uint64_t block = rows.address(); block != kUndefined)
            read_data_block(block, first + i * *each, *each, size, width, {{}, 0}, page, in);
      } else if (const std::uint64_t super = rows.address(); super != kUndefined) {
        const bool paged = *each > page;
        const std::uint64_t bitmap = paged ? (*each / page + 7) / 8 : 0;
        const auto length = base::checked_mul(count, bitmap + o);
        if (!length || *length > file_.end() - file_.base) in.fail();
        const std::string bytes = file_.block(super, 6 + o + width + *length + 4, kExtensibleSuper, true);
        Cursor parts = begin_block(bytes, super, index_.address);
        parts.skip(width);
        const std::string_view written = parts.take(count * bitmap);
        for (std::uint64_t i = 0; i < count; ++i)
          if (const std::uint64_t block = parts.address(); block != kUndefined)
            read_data_block(block, first + i * *each, *each, size, width, {written, i * (*each / page)}, page, in);
      }
      first += *all;
    }
  }

  void read_data_block(std::uint64_t address, std::uint64_t first, std::uint64_t count, std::uint64_t size,
                       std::uint64_t width, const Bitmap& written, std::uint64_t page, const Cursor& in) {
    const std::uint64_t prefix = 6 + std::uint64_t{file_.offset_size} + width;
    if (written.bytes.empty()) {
      const std::string bytes = file_.block(address, prefix + sized(count, size, in) + 4, kExtensibleBlock, true);
      Cursor rows = begin_block(bytes, address, index_.address);
      rows.skip(width);
      return add_entries(rows, first, count, size);
    }
    const std::string bytes = file_.block(address, prefix + 4, kExtensibleBlock, true);
    begin_block(bytes, address, index_.address);
    read_pages(address + prefix + 4, written, first, count, page, size);
  }

  File& file_;
  const ChunkIndex& index_;
  const std::span<const std::uint64_t> maximum_;
  Chunked& out_;
  const Rule& rule_;
  std::vector<std::uint64_t> array_;  // the grid that arrays count in, by dimension
  std::vector<std::size_t> order_;    // of the dimensions in it, slowest first
};

}  // namespace

std::vector<Filter> read_filters(Cursor in, std::string& unknown) {
  const std::uint8_t version = in.u8(), count = in.u8();
  if (version < 1 || version > 2) in.fail("filters of version 1 or 2", version);
  if (count > kMaxFilters) in.fail(core::at_most(kMaxFilters, " filters"), count);
  if (version == 1) in.skip(6);
  std::vector<Filter> out;
  for (std::uint8_t i = 0; i < count; ++i) {
    Filter filter;
    filter.id = in.u16();
    const std::uint16_t name = version == 2 && filter.id < 256 ? 0 : in.u16();
    in.skip(2);
    const std::uint16_t values = in.u16();
    in.skip(version == 1 ? (name + 7U) / 8 * 8 : name);
    for (std::uint16_t v = 0; v < values; ++v)
      if (const std::uint32_t value = in.u32(); v == 0) filter.element = value;
    if (version == 1 && values % 2 != 0) in.skip(4);
    const bool compresses = max_expansion(filter.id) > 0;
    const bool known = compresses || filter.id == kShuffle || filter.id == kFletcher32;
    // What two compressions need between them is stated nowhere.
    const bool again = std::ranges::any_of(
        out, [&](const Filter& each) { return each.id == filter.id || (compresses && max_expansion(each.id) > 0); });
    if (unknown.empty() && (!known || again))
      unknown = filter_name(filter.id) + (known ? " after another of its kind" : "");
    if (filter.id == kShuffle && filter.element == 0) in.fail("the size of an element to shuffle");
    out.push_back(filter);
  }
  return out;
}

void read_chunks(File& file, const ChunkIndex& index, std::span<const std::uint64_t> maximum, Chunked& out) {
  ChunkReader(file, index, maximum, out).run();
}

}  // namespace weighbridge::hdf5
