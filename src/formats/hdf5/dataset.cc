// SPDX-License-Identifier: Apache-2.0
// Reads the messages of a dataset's header.
#include "formats/hdf5/dataset.h"

#include <algorithm>
#include <utility>

#include "core/model/words.h"
#include "core/reading/rules.h"

namespace weighbridge::hdf5 {
namespace {

constexpr std::uint64_t kMaxBytes = std::uint64_t{1} << 63;  // of a dataset or a chunk; hsize_t products must not wrap

class DatasetReader {
 public:
  DatasetReader(File& file, const ObjectHeader& header, std::uint64_t at) : file_(file), header_(header), at_(at) {}

  Dataset run() {
    out_.space = read_dataspace(content(Message::dataspace, file_.rules.kDataspace));
    out_.type = read_datatype(content(Message::datatype, file_.rules.kDatatype));
    if (out_.space.null) {
      out_.storage = Dataset::Storage::elsewhere;
      refuse(file_.rules.kNull, at_, {});
      return std::move(out_);
    }
    set_size();
    if (out_.type.kind == Class::opaque) name_opaque();
    if (out_.type.dtype == DType::unknown) refuse(rule_of_type(), at_, out_.type.name);
    read_fill();
    if (const HeaderMessage* const files = header_.find(Message::external_files)) {
      out_.storage = Dataset::Storage::elsewhere;
      refuse(file_.rules.kExternal, files->at, {});
      return std::move(out_);
    }
    read_layout(content(Message::layout, file_.rules.kLayout));
    return std::move(out_);
  }

 private:
  Cursor content(Message type, const Rule& rule) {
    const HeaderMessage* const found = header_.find(type);
    if (found == nullptr) throw Broken{rule, at_, {"a message of kind ", static_cast<int>(type)}, "none"};
    return content_of(file_, *found, rule, shared_.emplace_back());
  }

  void refuse(const Rule& rule, std::uint64_t at, const core::Said& found) {
    if (out_.unsupported != nullptr) return;
    out_.unsupported = &rule;
    out_.unsupported_at = at;
    out_.unsupported_found = found.text();
  }

  // Without the attribute, nothing tells the bytes from other ones. What is wrong with attributes is found later.
  void name_opaque() {
    const auto take = [&](const Attribute& found) {
      if (const auto text = found.value.as_text(); text && found.name == kOpaqueType)
        out_.type.dtype = opaque_dtype(*text, out_.type.size);
    };
    read_attributes(file_, header_, take, [](const Broken&) {});
  }

  const Rule& rule_of_type() const {
    const Class kind = out_.type.kind;
    if (kind == Class::text || out_.type.variable_text) return file_.rules.kText;
    return kind == Class::reference || kind == Class::variable ? file_.rules.kObject : file_.rules.kUnknownType;
  }

  void set_size() {
    std::uint64_t size = out_.type.size;
    bool empty = false, overflow = false;
    for (const std::uint64_t dim : out_.space.shape) {
      empty = empty || dim == 0;
      const auto product = base::checked_mul(size, std::max<std::uint64_t>(dim, 1));
      overflow = overflow || !product || *product >= kMaxBytes;
      size = product.value_or(kMaxBytes);
    }
    if (overflow) throw Broken{file_.rules.kSizeOverflow, at_, {}, core::of_shape(out_.space.shape)};
    out_.size = empty ? 0 : size;
  }

  // IV.A.2.e and f. An undefined fill value means zeros, as in libhdf5.
  void read_fill() {
    const HeaderMessage* found = header_.find(Message::fill_value);
    const bool old = found == nullptr;
    if (old) found = header_.find(Message::fill_value_old);
    if (found == nullptr) return;
    Cursor in = content_of(file_, *found, file_.rules.kFillValue, shared_.emplace_back());
    bool there = true;
    if (!old) {
      const std::uint8_t version = in.u8();
      if (version < 1 || version > 3) in.fail("a fill value of version 1, 2 or 3", version);
      if (version == 3) {
        there = (in.u8() & 0x20U) != 0;
      } else {
        in.skip(2);
        there = in.u8() != 0 || version == 1;
      }
    }
    if (!there) return;
    const std::uint32_t size = in.u32();
    if (size == 0 || size > INT32_MAX) return;
    if (size != out_.type.size) in.fail(core::in_bytes(out_.type.size), core::in_bytes(size));
    out_.fill = in.take(size);
  }

  void stored(std::uint64_t at, std::uint64_t size) {
    if (size < out_.size) throw Broken{file_.rules.kStorage, at, core::in_bytes(out_.size), core::in_bytes(size)};
    out_.at = at;
  }
  void contiguous(std::uint64_t address, std::uint64_t size) {
    if (address == kUndefined) {
      out_.storage = out_.size == 0 ? Dataset::Storage::stored : Dataset::Storage::filled;
      out_.at = file_.base;
      return;
    }
    stored(out_.size == 0 ? file_.base : file_.place(address, out_.size), size);
  }

  void read_layout(Cursor in) {
    const std::uint8_t version = in.u8();
    if (version < 1 || version > 5) in.fail("a layout of version 1 to 5", version);
    if (version < 3) return read_layout_old(in);
    const std::uint8_t kind = in.u8();
    switch (kind) {
      case 0: {
        const std::uint16_t size = in.u16();
        const std::uint64_t at = in.offset();
        in.skip(size);
        return stored(at, size);
      }
      case 1: {
        const std::uint64_t address = in.address();
        return contiguous(address, in.length());
      }
      case 2: return version == 3 ? read_chunks_3(in) : read_chunks_4(in);
      case 3: out_.storage = Dataset::Storage::elsewhere; return refuse(file_.rules.kVirtual, in.offset(), {});
      default: in.fail("compact, contiguous, chunked or virtual storage", {"kind ", kind});
    }
  }

  // Versions 1 and 2 repeat the extents here, and lack the size of contiguous storage.
  void read_layout_old(Cursor in) {
    const std::uint8_t rank = in.u8(), kind = in.u8();
    in.skip(5);
    const std::uint64_t address = kind == 0 ? kUndefined : in.address();
    if (kind == 2) {
      Chunked chunked = begin_chunked(rank, in);
      for (std::uint64_t& extent : chunked.chunk) extent = in.u32();
      return finish_chunked(std::move(chunked), in.u32(), {.address = address}, in);
    }
    in.skip(4 * std::uint64_t{rank});
    if (kind == 1) return contiguous(address, out_.size);
    if (kind != 0) in.fail("compact, contiguous or chunked storage", {"kind ", kind});
    const std::uint32_t size = in.u32();
    const std::uint64_t at = in.offset();
    in.skip(size);
    stored(at, size);
  }

  Chunked begin_chunked(std::uint8_t rank, const Cursor& in) const {
    Chunked out;
    out.shape = out_.space.shape;
    if (rank != out.shape.size() + 1 || rank < 2)
      in.fail({"chunks of ", out.shape.size(), " dimensions and one of bytes"}, {rank, " dimensions"});
    out.chunk.resize(out.shape.size());
    return out;
  }

  void read_chunks_3(Cursor in) {
    const std::uint8_t rank = in.u8();
    const std::uint64_t address = in.address();
    Chunked chunked = begin_chunked(rank, in);
    for (std::uint64_t& extent : chunked.chunk) extent = in.u32();
    finish_chunked(std::move(chunked), in.u32(), {.address = address}, in);
  }

  void read_chunks_4(Cursor in) {
    constexpr std::uint8_t kPartialUnfiltered = 1, kSingleFiltered = 2;
    const std::uint8_t flags = in.u8(), rank = in.u8(), width = in.u8();
    if (width == 0 || width > 8) in.fail("extents of 1 to 8 bytes", width);
    Chunked chunked = begin_chunked(rank, in);
    chunked.partial_unfiltered = (flags & kPartialUnfiltered) != 0;
    for (std::uint64_t& extent : chunked.chunk) extent = in.number(width);
    const std::uint64_t element = in.number(width);
    ChunkIndex index;
    const std::uint8_t kind = in.u8();
    index.kind = static_cast<Index>(kind);
    switch (index.kind) {
      case Index::single:
        if ((flags & kSingleFiltered) != 0) {
          index.single_size = in.length();
          index.single_skipped = in.u32();
        }
        break;
      case Index::implicit: break;
      case Index::fixed: in.skip(1); break;
      case Index::extensible: in.skip(5); break;
      case Index::tree2: in.skip(6); break;
      default: in.fail("an index of chunks of kind 1 to 5", kind);
    }
    index.address = in.address();
    finish_chunked(std::move(chunked), element, index, in);
  }

  void finish_chunked(Chunked chunked, std::uint64_t element, const ChunkIndex& index, const Cursor& in) {
    out_.storage = Dataset::Storage::chunked;
    if (element != out_.type.size) in.fail({"elements of ", core::in_bytes(out_.type.size)}, core::in_bytes(element));
    chunked.element = chunked.bytes = element;
    for (std::size_t i = 0; i < chunked.chunk.size(); ++i) {
      const std::uint64_t extent = chunked.chunk[i];
      const auto product = base::checked_mul(chunked.bytes, extent);
      if (extent == 0 || !product || *product >= kMaxBytes) in.fail("chunks below 2^63 bytes", extent);
      chunked.bytes = *product;
      chunked.grid.push_back(chunked.shape[i] / extent + (chunked.shape[i] % extent != 0));
    }
    std::string unknown;
    if (const HeaderMessage* const filters = header_.find(Message::filters))
      chunked.filters =
          read_filters(content_of(file_, *filters, file_.rules.kFilters, shared_.emplace_back()), unknown);
    if (!unknown.empty()) refuse(file_.rules.kUnknownFilter, in.offset(), unknown);
    if (out_.size == 0) {
      out_.storage = Dataset::Storage::stored;
      out_.at = file_.base;
      return;
    }
    if (out_.unsupported != nullptr) return;
    chunked.fill = out_.fill;
    chunked.deflate = &file_.rules.kDeflateRule;
    chunked.fletcher = &file_.rules.kFletcher;
    chunked.lzf = &file_.rules.kLzfRule;
    read_chunks(file_, index, out_.space.maximum, chunked);
    if (chunked.chunks.empty()) {
      out_.storage = Dataset::Storage::filled;
      return;
    }
    // One chunk of exactly the shape, without filters, is like contiguous storage.
    if (chunked.filters.empty() && chunked.chunk == chunked.shape && chunked.chunks.size() == 1) {
      out_.storage = Dataset::Storage::stored;
      out_.at = chunked.chunks[0].at;
      return;
    }
    if (const std::uint64_t needed = chunked.needed(file_.limits.memory); needed > file_.limits.memory)
      throw Broken{core::rules::kLimitMemory, at_, core::at_most(core::in_bytes(file_.limits.memory)),
                   core::in_bytes(needed)};
    out_.chunks = std::make_shared<const Chunked>(std::move(chunked));
  }

  File& file_;
  const ObjectHeader& header_;
  const std::uint64_t at_;
  std::list<ObjectHeader> shared_;  // headers that messages refer to
  Dataset out_;
};

}  // namespace

bool is_dataset(const ObjectHeader& header) noexcept {
  return header.has(Message::layout) || (header.has(Message::dataspace) && header.has(Message::datatype));
}

Dataset read_dataset(File& file, const ObjectHeader& header, std::uint64_t at) {
  return DatasetReader(file, header, at).run();
}

}  // namespace weighbridge::hdf5
