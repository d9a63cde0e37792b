// SPDX-License-Identifier: Apache-2.0
// Structures of several blocks for the HDF5 corpus: indexes of chunks, heaps, groups of both kinds.
#pragma once
#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "codecs/checksum.h"
#include "codecs/codec.h"
#include "support/hdf5_blocks.h"

namespace weighbridge::hdf5::build {

inline std::string zlib(const std::string& data) {
  const auto coded = codecs::encode(codecs::kDeflate, std::as_bytes(std::span(data)));
  std::string out("\x78\x9C", 2);
  out.append(reinterpret_cast<const char*>(coded.data()), coded.size());
  const std::uint32_t sum = codecs::adler32(std::as_bytes(std::span(data)));
  for (int shift = 24; shift >= 0; shift -= 8) out += static_cast<char>(sum >> shift & 0xFF);
  return out;
}
inline std::string shuffled(const std::string& data, std::size_t element) {
  std::string out;
  for (std::size_t b = 0; b < element; ++b)
    for (std::size_t i = b; i < data.size(); i += element) out += data[i];
  return out;
}
inline std::string with_fletcher(const std::string& data) { return data + n32(fletcher32(data)); }

// A chunk in an index: place in elements, bytes as stored.
struct Piece {
  std::vector<std::uint64_t> place;
  std::string stored;
  std::uint32_t skipped = 0;
  std::uint64_t size_change = 0;
};

// The layout of version 3: a B-tree of version 1 with one leaf. `whole`: with its last key, and in its full size, which
// libhdf5 reads.
inline std::string tree_layout(Builder& b, const std::vector<std::uint32_t>& chunk, const std::vector<Piece>& pieces,
                               int element = 4, bool whole = false) {
  std::string node = "TREE" + n8(1) + n8(0) + n16(pieces.size()) + n64(kUndefined) + n64(kUndefined);
  for (const Piece& piece : pieces) {
    const std::uint64_t at = b.add(piece.stored);
    node += n32(piece.stored.size() + piece.size_change) + n32(piece.skipped);
    for (const std::uint64_t each : piece.place) node += n64(each);
    node += n64(0) + n64(at);
  }
  const std::size_t key = 8 + 8 * (chunk.size() + 1);
  if (whole) {
    node += n64(0);
    for (std::size_t i = 0; i < chunk.size(); ++i) node += n64(pieces.back().place[i] + chunk[i]);
    node += n64(static_cast<std::uint64_t>(element));
    node.resize(24 + 64 * 8 + 65 * key);
  } else {
    node += std::string(key, '\0');
  }
  std::string out = n8(3) + n8(2) + n8(chunk.size() + 1) + n64(b.add(node));
  for (const std::uint32_t each : chunk) out += n32(each);
  return out + n32(static_cast<std::uint64_t>(element));
}

// The layout of version 4 with an index of this kind; `info` is between its kind and its address.
inline std::string new_layout(const std::vector<std::uint32_t>& chunk, Index kind, const std::string& info,
                              std::uint64_t address, int flags = 0, int element = 4) {
  std::string out = n8(4) + n8(2) + n8(static_cast<std::uint64_t>(flags)) + n8(chunk.size() + 1) + n8(4);
  for (const std::uint32_t each : chunk) out += n32(each);
  return out + n32(static_cast<std::uint64_t>(element)) + n8(static_cast<std::uint64_t>(kind)) + info + n64(address);
}

inline std::string fixed_array(Builder& b, const std::vector<std::string>& entries, int client, int entry,
                               int page_bits, std::uint64_t count_change = 0) {
  const std::uint64_t header_at = b.next();
  const std::uint64_t size = 4 + 4 + 8 + 8 + 4, page = std::uint64_t{1} << page_bits;
  const std::string prefix = "FADB" + n8(0) + n8(static_cast<std::uint64_t>(client)) + n64(header_at);
  std::string block;
  if (entries.size() <= page) {
    for (const std::string& each : entries) block += each;
    block = sealed(prefix + block);
  } else {
    const std::uint64_t pages = (entries.size() + page - 1) / page;
    std::string bitmap((pages + 7) / 8, '\0'), rest;
    for (std::uint64_t p = 0; p < pages; ++p) {
      bitmap[p / 8] = static_cast<char>(bitmap[p / 8] | 0x80 >> (p % 8));
      std::string one_page;
      for (std::uint64_t i = p * page; i < std::min<std::uint64_t>(entries.size(), (p + 1) * page); ++i)
        one_page += entries[i];
      rest += sealed(one_page);
    }
    block = sealed(prefix + bitmap) + rest;
  }
  const std::uint64_t block_at = (header_at + size + 7) / 8 * 8;
  b.add(sealed("FAHD" + n8(0) + n8(static_cast<std::uint64_t>(client)) + n8(static_cast<std::uint64_t>(entry)) +
               n8(static_cast<std::uint64_t>(page_bits)) + n64(entries.size() + count_change) + n64(block_at)));
  b.add(block);
  return n64(header_at);
}

inline std::string fixed_file(int page_bits, std::uint64_t count_change = 0) {
  Builder b;
  std::vector<std::string> entries;
  for (int i = 0; i < 3; ++i) entries.push_back(n64(i == 1 ? kUndefined : b.add(counting(8))));
  const std::uint64_t at = base::load_le<std::uint64_t>(fixed_array(b, entries, 0, 8, page_bits, count_change).data());
  return one(b, b.dataset(dataspace({6}), f32(),
                          new_layout({2}, Index::fixed, n8(static_cast<std::uint64_t>(page_bits)), at)));
}

// An extensible array: one element in the index block, two blocks of one, and a super block with two blocks of two.
inline std::string extensible_file(int page_bits, std::uint64_t minimum = 1) {
  Builder b;
  std::vector<std::uint64_t> chunks;
  for (int i = 0; i < 6; ++i) chunks.push_back(b.add(counting(8)));
  const std::uint64_t head_at = b.next(), o = 8, size = 4 + 8 + 6 * 8 + o + 4;
  b.add(std::string(size, '\0'));
  const auto block = [&](std::uint64_t offset, const std::vector<std::uint64_t>& elements) {
    const std::string prefix = "EADB" + n8(0) + n8(0) + n64(head_at) + n8(offset);
    std::string rows;
    for (const std::uint64_t each : elements) rows += n64(each);
    const bool paged = page_bits == 0 && elements.size() > 1;
    if (!paged) return b.add(sealed(prefix + rows));
    std::string out = sealed(prefix);
    for (const std::uint64_t each : elements) out += sealed(n64(each));
    return b.add(out);
  };
  // Super block 0 has one block of one element, super block 1 one of two, super block 2 two of two.
  const std::uint64_t first = block(0, {chunks[1]}), last = block(3, {chunks[4], chunks[5]});
  const bool paged = page_bits == 0;
  const std::uint64_t super = b.add(sealed("EASB" + n8(0) + n8(0) + n64(head_at) + n8(3) +
                                           (paged ? std::string("\xC0\0", 2) : "") + n64(last) + n64(kUndefined)));
  const std::uint64_t second = paged ? kUndefined : block(1, {chunks[2], chunks[3]});
  const std::uint64_t supers = 1 + 4;
  std::string index = "EAIB" + n8(0) + n8(0) + n64(head_at) + n64(chunks[0]) + n64(first) + n64(second) + n64(super);
  for (std::uint64_t s = 3; s < supers; ++s) index += n64(kUndefined);
  const std::uint64_t index_at = b.add(sealed(index));
  const std::string head = sealed("EAHD" + n8(0) + n8(0) + n8(8) + n8(4) + n8(1) + n8(minimum) + n8(2) +
                                  n8(static_cast<std::uint64_t>(page_bits)) + n64(1) + n64(0) + n64(0) + n64(0) +
                                  n64(6) + n64(6) + n64(index_at));
  b.put(head_at, head);
  const std::string layout = new_layout(
      {2}, Index::extensible, n8(4) + n8(1) + n8(2) + n8(1) + n8(static_cast<std::uint64_t>(page_bits)), head_at);
  return one(b, b.dataset(dataspace({12}, {kUndefined}), f32(), layout));
}

// A node of such a tree has its full size in the file, whatever it holds.
inline std::string node2(const std::string& node) {
  std::string out = sealed(node);
  out.resize(512, '\0');
  return out;
}

// A B-tree of version 2 with one leaf of these records.
inline std::uint64_t tree2(Builder& b, int type, const std::vector<std::string>& records, std::size_t record_size,
                           std::uint64_t total_change = 0) {
  std::string leaf = "BTLF" + n8(0) + n8(static_cast<std::uint64_t>(type));
  for (const std::string& each : records) leaf += each;
  const std::uint64_t at = b.add(node2(leaf));
  return b.add(sealed("BTHD" + n8(0) + n8(static_cast<std::uint64_t>(type)) + n32(512) + n16(record_size) + n16(0) +
                      n8(100) + n8(40) + n64(at) + n16(records.size()) + n64(records.size() + total_change)));
}
// The same with an inner node over two leaves.
inline std::uint64_t deep_tree2(Builder& b, int type, const std::vector<std::string>& records,
                                std::size_t record_size) {
  const auto leaf = [&](const std::string& record) {
    return b.add(node2("BTLF" + n8(0) + n8(static_cast<std::uint64_t>(type)) + record));
  };
  const std::uint64_t left = leaf(records[0]), right = leaf(records[2]);
  const std::uint64_t root = b.add(node2("BTIN" + n8(0) + n8(static_cast<std::uint64_t>(type)) + records[1] +
                                         n64(left) + n8(1) + n64(right) + n8(1)));
  return b.add(sealed("BTHD" + n8(0) + n8(static_cast<std::uint64_t>(type)) + n32(512) + n16(record_size) + n16(1) +
                      n8(100) + n8(40) + n64(root) + n16(1) + n64(3)));
}

inline std::string tree2_file(bool deep) {
  Builder b;
  std::vector<std::string> records;
  for (std::uint64_t i = 0; i < 3; ++i) records.push_back(n64(b.add(counting(8))) + n64(i) + n64(0));
  const std::uint64_t at = deep ? deep_tree2(b, 10, records, 24) : tree2(b, 10, records, 24);
  return one(b, b.dataset(dataspace({3, 2}, {kUndefined, kUndefined}), f32(),
                          new_layout({1, 2}, Index::tree2, n32(512) + n8(100) + n8(40), at)));
}

// A fractal heap whose root is one direct block, or an indirect one with a block in its second row.
struct Heap {
  std::uint64_t at = 0;
  std::vector<std::uint64_t> offsets{};
};
inline Heap heap(Builder& b, const std::vector<std::string>& objects, int id_size, bool indirect = false,
                 int filters = 0, int checksum_change = 0, std::uint64_t owner_change = 0) {
  const std::uint64_t size = 26 + 12 * 8 + 3 * 8, at = b.next(), start = 512;
  b.add(std::string(size, '\0'));
  Heap out{at};
  const std::uint64_t offset = indirect ? start : 0;
  std::string block = "FHDB" + n8(0) + n64(at + owner_change) + n32(offset) + n32(0);
  for (const std::string& each : objects) {
    out.offsets.push_back(offset + block.size());
    block += each;
  }
  block.resize(start, '\0');
  block.replace(17, 4, n32(lookup3(block) + static_cast<std::uint32_t>(checksum_change)));
  std::uint64_t root = b.add(block);
  if (indirect)
    root = b.add(
        sealed("FHIB" + n8(0) + n64(at) + n32(0) + n64(kUndefined) + n64(root) + n64(kUndefined) + n64(kUndefined)));
  const std::string head =
      sealed("FRHP" + n8(0) + n16(static_cast<std::uint64_t>(id_size)) + n16(static_cast<std::uint64_t>(filters)) +
             n8(2) + n32(256) + n64(0) + n64(kUndefined) + n64(0) + n64(kUndefined) + n64(start) + n64(start) +
             n64(start) + n64(objects.size()) + std::string(32, '\0') + n16(2) + n64(start) + n64(1024) + n16(32) +
             n16(1) + n64(root) + n16(indirect ? 2 : 0));
  b.put(at, head);
  return out;
}

// A group whose link "w" is in a heap, with what is broken.
struct Dense {
  bool indirect = false;
  int filters = 0, checksum_change = 0;
  std::uint64_t owner_change = 0, offset_change = 0, total_change = 0;
};
inline std::string dense_group(const Dense& with = {}) {
  Builder b;
  const std::string one_link = link("w", b.simple());
  const Heap links = heap(b, {one_link}, 7, with.indirect, with.filters, with.checksum_change, with.owner_change);
  const std::string id = n8(0) + n32(links.offsets[0] + with.offset_change) + n16(one_link.size());
  const std::uint64_t names = tree2(b, 5, {n32(lookup3("w")) + id}, 11, with.total_change);
  return b.finish(b.add(header(message(Message::link_info, n8(0) + n8(0) + n64(links.at) + n64(names)))));
}

// Attributes in a heap: one in its block, one beside it, and a tiny one cannot be.
inline std::string dense_attributes() {
  Builder b;
  const std::string small = attribute("small", integer(4, true), dataspace({}), n32(7)),
                    large = attribute("large", integer(1, false), dataspace({300}), counting(300));
  const std::uint64_t huge = b.add(large);
  const std::uint64_t huge_tree = tree2(b, 1, {n64(huge) + n64(large.size()) + n64(1)}, 24);
  const Heap values = heap(b, {small}, 8);
  // At offset 22 is the address of the tree of huge objects.
  std::string head = b.get(values.at, 26 + 12 * 8 + 3 * 8 - 4);
  head.replace(22, 8, n64(huge_tree));
  b.put(values.at, sealed(head));
  const std::string managed = n8(0) + n32(values.offsets[0]) + n16(small.size()) + n8(0);
  const std::uint64_t names =
      tree2(b, 8, {n8(0x10) + number(1, 7) + n8(0) + n32(0) + n32(1), managed + n8(0) + n32(1) + n32(2)}, 17);
  return one(b, b.simple(message(Message::attribute_info, n8(0) + n8(0) + n64(values.at) + n64(names))));
}

// A group of the old kind with the dataset "w" and a soft link, in a file of superblock 0 or 1.
struct Old {
  int version = 0;
  std::uint64_t name_at = 8;
  int node_level = 0;
  std::uint64_t end_change = 0, driver = kUndefined;
  bool node_twice = false;
  std::string heap_magic = "HEAP";
};
inline std::string old_group(const Old& with = {}) {
  Builder b(with.version);
  const std::uint64_t data = b.add(counting(16));
  const auto old_message = [](Message type, std::string data_of) {
    data_of.resize((data_of.size() + 7) / 8 * 8);
    return n16(static_cast<std::uint64_t>(type)) + n16(data_of.size()) + n8(0) + std::string(3, '\0') + data_of;
  };
  const auto old_header = [&](const std::string& messages, std::uint64_t count) {
    return b.add(n8(1) + n8(0) + n16(count) + n32(1) + n32(messages.size()) + n32(0) + messages);
  };
  std::string space = n8(1) + n8(1) + n8(0) + std::string(5, '\0') + n64(4);
  // The layout is in a continuation, and the attribute is of version 1, whose parts are padded.
  const std::string more =
      old_message(Message::layout, n8(1) + n8(1) + n8(1) + std::string(5, '\0') + n64(data) + n32(4) + n32(4));
  const std::uint64_t continued = b.add(more);
  const std::string old_attribute = n8(1) + n8(0) + n16(5) + n16(12) + n16(8) + std::string("note\0\0\0\0", 8) +
                                    integer(4, true) + n32(0) + n8(1) + n8(0) + n8(0) + std::string(5, '\0') + n32(3);
  const std::string first = old_message(Message::dataspace, space) + old_message(Message::datatype, f32()) +
                            old_message(Message::attribute, old_attribute) +
                            old_message(Message::continuation, n64(continued) + n64(more.size()));
  const std::uint64_t object = old_header(first, 5);
  const std::uint64_t names = b.add(std::string("\0\0\0\0\0\0\0\0w\0soft\0/w\0\0\0\0\0\0\0", 24));
  const std::uint64_t names_at = b.add(with.heap_magic + n8(0) + std::string(3, '\0') + n64(24) + n64(1) + n64(names));
  const std::uint64_t node =
      b.add("SNOD" + n8(1) + n8(0) + n16(2) + n64(10) + n64(kUndefined) + n32(2) + n32(0) + n32(15) +
            std::string(12, '\0') + n64(with.name_at) + n64(object) + std::string(24, '\0'));
  const std::uint64_t tree =
      b.add("TREE" + n8(0) + n8(static_cast<std::uint64_t>(with.node_level)) + n16(with.node_twice ? 2 : 1) +
            n64(kUndefined) + n64(kUndefined) + n64(0) + n64(node) + n64(8) + n64(node) + n64(8));
  const std::uint64_t root = old_header(old_message(Message::symbol_table, n64(tree) + n64(names_at)), 1);
  b.add(std::string(1024, '\0'));  // nodes have their full size in the file, and libhdf5 reads all of it
  return b.finish(root, kUndefined, with.end_change, 0, with.driver);
}

}  // namespace weighbridge::hdf5::build
