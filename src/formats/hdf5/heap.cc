// SPDX-License-Identifier: Apache-2.0
// Reads local and fractal heaps.
#include "formats/hdf5/heap.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <utility>

#include "core/model/words.h"

namespace weighbridge::hdf5 {

LocalHeap::LocalHeap(File& file, std::uint64_t address) : file_(file) {
  const std::string head =
      file.block(address, 8 + 2 * std::uint64_t{file.length_size} + file.offset_size, kLocalHeap, false);
  Cursor in(file, head, file.base + address, file.rules.kHeap);
  in.skip(4);
  if (in.u8() != 0) throw Broken{file.rules.kBlock, file.base + address, "version 0"};
  in.skip(3);
  const std::uint64_t size = in.length();
  in.length();
  const std::uint64_t segment = in.address();
  bytes_ = file.read(segment, size, "names of a group");
  at_ = file.base + segment;
}

std::string_view LocalHeap::text(std::uint64_t offset) const {
  if (offset >= bytes_.size()) throw Broken{file_.rules.kHeap, at_, {"an offset below ", bytes_.size()}, offset};
  const std::string_view rest = std::string_view(bytes_).substr(static_cast<std::size_t>(offset));
  const std::size_t end = rest.find('\0');
  if (end == rest.npos) throw Broken{file_.rules.kHeap, at_ + offset, "a text that ends with a zero byte"};
  return rest.substr(0, end);
}

FractalHeap::FractalHeap(File& file, std::uint64_t address) : file_(file), address_(address) {
  const std::uint64_t o = file.offset_size, l = file.length_size;
  const std::string head = file.read(address, 26 + 12 * l + 3 * o, "fractal heap");
  Cursor in(file, head, file.base + address, file.rules.kHeap);
  if (in.take(4) != kFractal) throw Broken{file.rules.kBlock, file.base + address, kFractal};
  if (in.u8() != 0) throw Broken{file.rules.kBlock, file.base + address, "version 0"};
  id_size_ = in.u16();
  if (in.u16() != 0) throw Broken{file.rules.kHeapKind, file.base + address};  // filters
  file.verify(head, address);
  checksums_ = (in.u8() & 2U) != 0;
  const std::uint64_t max_managed = in.u32();
  in.length();
  huge_tree_ = in.address();
  in.length();
  in.address();
  in.skip(8 * l);
  width_ = in.u16();
  start_ = in.length();
  max_direct_ = in.length();
  const std::uint64_t bits = in.u16();
  in.skip(2);
  root_ = in.address();
  rows_ = in.u16();
  if (!std::has_single_bit(width_) || !std::has_single_bit(start_) || !std::has_single_bit(max_direct_) ||
      start_ > max_direct_ || max_direct_ > (std::uint64_t{1} << 32) || bits == 0 || bits > 64 || rows_ > 64)
    in.fail();
  offset_size_ = (bits + 7) / 8;
  length_size_ = std::min<std::uint64_t>((static_cast<std::uint64_t>(std::bit_width(max_direct_)) - 1 + 7) / 8,
                                         encoded_size(max_managed));
}

// III.G: rows 0 and 1 have blocks of the starting size, each further one twice the size of the one before.
std::uint64_t FractalHeap::row_size(std::uint64_t row) const noexcept {
  const std::uint64_t shift = row == 0 ? 0 : row - 1;
  return shift >= 64 || start_ > (UINT64_MAX >> shift) ? UINT64_MAX : start_ << shift;
}
std::uint64_t FractalHeap::row_offset(std::uint64_t row) const noexcept {
  return row == 0 ? 0 : base::checked_mul(width_, row_size(row)).value_or(UINT64_MAX);
}

const std::string& FractalHeap::block(std::uint64_t address, std::uint64_t size, std::uint64_t offset, bool direct) {
  if (const auto found = blocks_.find(address); found != blocks_.end()) {
    if (found->second.size() != size) throw Broken{file_.rules.kHeap, file_.base + address};
    return found->second;
  }
  if (cached_ > file_.limits.memory / 4) {
    blocks_.clear();
    cached_ = 0;
  }
  std::string bytes = file_.block(address, size, direct ? kFractalDirect : kFractalIndirect, !direct);
  Cursor in(file_, bytes, file_.base + address, file_.rules.kHeap);
  in.skip(4);
  if (in.u8() != 0) throw Broken{file_.rules.kBlock, file_.base + address, "version 0"};
  if (in.address() != address_) in.fail({"a block of the heap at ", address_});
  if (in.number(static_cast<std::size_t>(offset_size_)) != offset) in.fail({"a block at ", offset, " of the heap"});
  if (direct && checksums_) {  // over the block, with zeros in place of the checksum
    const std::size_t at = in.place();
    const std::uint32_t stated = in.u32();
    std::string zeroed = bytes;
    std::memset(zeroed.data() + at, 0, 4);
    if (const std::uint32_t found = lookup3(zeroed); found != stated)
      throw Broken{file_.rules.kChecksum, file_.base + address, stated, found};
  }
  cached_ += size;
  return blocks_[address] = std::move(bytes);
}

std::string_view FractalHeap::managed(std::uint64_t offset, std::uint64_t length, const Cursor& id) {
  std::uint64_t address = root_, rows = rows_, base = 0;
  while (rows > 0) {
    const auto direct_rows = static_cast<std::uint64_t>(std::bit_width(max_direct_) - std::bit_width(start_)) + 2;
    const std::uint64_t direct = std::min(rows, direct_rows), children = rows * width_;
    const std::string& bytes =
        block(address, 4 + 1 + file_.offset_size + offset_size_ + children * file_.offset_size + 4, base, false);
    const std::uint64_t within = offset - base;
    std::uint64_t row = 0;
    while (row < rows && within >= row_offset(row + 1)) ++row;
    if (row == rows) id.fail("an object in the heap");
    const std::uint64_t column = (within - row_offset(row)) / row_size(row);
    Cursor in(file_, bytes, file_.base + address, file_.rules.kHeap);
    in.skip(5 + file_.offset_size + offset_size_ + (row * width_ + column) * file_.offset_size);
    address = in.address();
    base += row_offset(row) + column * row_size(row);
    if (row < direct) {
      found_at_ = file_.base + address + (offset - base);
      const std::string& last = block(address, row_size(row), base, true);
      if (!base::fits(offset - base, length, last.size())) id.fail("an object within its block");
      return std::string_view(last).substr(static_cast<std::size_t>(offset - base), static_cast<std::size_t>(length));
    }
    const std::uint64_t size = row_size(row);
    const std::uint64_t first = start_ * width_;
    const std::uint64_t next =
        size < first ? 0 : static_cast<std::uint64_t>(std::bit_width(size) - std::bit_width(first)) + 1;
    if (next == 0 || next >= rows) id.fail("a smaller block in a block");
    rows = next;
  }
  found_at_ = file_.base + address + offset;
  const std::string& only = block(address, start_, 0, true);
  if (!base::fits(offset - base, length, only.size())) id.fail("an object within its block");
  return std::string_view(only).substr(static_cast<std::size_t>(offset), static_cast<std::size_t>(length));
}

std::string_view FractalHeap::huge(Cursor id) {
  Huge object;
  if (id_size_ - 1 >= std::uint64_t{file_.offset_size} + file_.length_size) {
    object = {id.address(), 0};
    object.length = id.length();
  } else {
    if (!huge_) {
      huge_.emplace();
      if (huge_tree_ != kUndefined)
        walk_tree2(file_, huge_tree_, Record::huge, file_.rules.kHeap, [&](Cursor record) {
          Huge each{record.address(), 0};
          each.length = record.length();
          huge_->emplace(record.length(), each);
          file_.keep(sizeof(Huge) + 48);
        });
    }
    const std::uint64_t key = id.number(static_cast<std::size_t>(std::min<std::uint64_t>(8, id_size_ - 1)));
    const auto found = huge_->find(key);
    if (found == huge_->end()) id.fail({"object ", key}, "none");
    object = found->second;
  }
  found_at_ = file_.base + object.address;
  return object_ = file_.read(object.address, object.length, "object of a fractal heap");
}

std::string_view FractalHeap::object(Cursor id) {
  id = id.by(file_.rules.kHeap);
  const std::uint8_t first = id.u8();
  if ((first & 0xC0U) != 0) id.fail("an id of version 0");
  switch (first >> 4U & 3U) {
    case 0: {
      const std::uint64_t offset = id.number(static_cast<std::size_t>(offset_size_));
      return managed(offset, id.number(static_cast<std::size_t>(length_size_)), id);
    }
    case 1: return huge(id);
    case 2: {
      std::uint64_t length = (first & 0x0FU) + 1U;
      if (id_size_ > 17) length = (((first & 0x0FU) << 8U) | id.u8()) + 1U;
      found_at_ = id.offset();
      return object_ = std::string(id.take(length));
    }
    default: id.fail("an object that is managed, huge or tiny");
  }
}

}  // namespace weighbridge::hdf5
