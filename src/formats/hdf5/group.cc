// SPDX-License-Identifier: Apache-2.0
// Reads the links of a group.
#include "formats/hdf5/object_header.h"

#include <algorithm>
#include <utility>

#include "formats/hdf5/heap.h"

namespace weighbridge::hdf5 {
namespace {

constexpr std::uint64_t kLinkCost = sizeof(Link) + 32;  // besides the texts

class LinkReader {
 public:
  LinkReader(File& file, const ObjectHeader& header) : file_(file), header_(header) {}

  std::vector<Link> run() {
    if (const HeaderMessage* const table = header_.find(Message::symbol_table)) read_table(*table);
    for (const HeaderMessage& message : header_.messages)
      if (message.type == Message::link) {
        if ((message.flags & kShared) != 0) throw Broken{file_.rules.kMessage, message.at, {}, "a shared link"};
        add(Cursor(file_, message.bytes, message.at, file_.rules.kGroup));
      }
    if (const HeaderMessage* const info = header_.find(Message::link_info)) read_dense(*info);
    const bool ordered = std::ranges::all_of(out_, [](const Link& link) { return link.order.has_value(); });
    std::ranges::stable_sort(
        out_, [&](const Link& a, const Link& b) { return ordered ? *a.order < *b.order : a.name < b.name; });
    return std::move(out_);
  }

 private:
  void keep(Link link) {
    file_.keep(kLinkCost + link.name.size() + link.target.size());
    out_.push_back(std::move(link));
  }

  // III.B and III.C: a B-tree of nodes with entries, whose names are in a local heap.
  void read_table(const HeaderMessage& message) {
    Cursor in(file_, message.bytes, message.at, file_.rules.kGroup);
    const std::uint64_t tree = in.address();
    const LocalHeap heap(file_, in.address());
    Visited nodes;
    walk_tree(file_, tree, 0, file_.length_size, file_.rules.kGroup, [&](const Cursor&, std::uint64_t child) {
      nodes.add(file_, child);
      const std::uint64_t entry = 2 * std::uint64_t{file_.offset_size} + 24;
      const std::string head = file_.block(child, 8, kSymbols, false);
      if (head[4] != 1) throw Broken{file_.rules.kBlock, file_.base + child, "version 1"};
      const std::uint64_t entries = base::load_le<std::uint16_t>(head.data() + 6);
      const std::string bytes = file_.read(child + 8, entries * entry, "entries of a group");
      Cursor rows(file_, bytes, file_.base + child + 8, file_.rules.kGroup);
      for (std::uint64_t i = 0; i < entries; ++i) add_entry(rows.sub(entry), heap);
    });
  }

  void add_entry(Cursor in, const LocalHeap& heap) {
    constexpr std::uint32_t kSoft = 2;  // the entry's cached type: a soft link
    Link link;
    link.at = in.offset();
    link.name = heap.text(in.length());
    link.address = in.address();
    if (in.u32() == kSoft) {
      link.kind = Link::Kind::soft;
      in.skip(4);
      link.target = heap.text(in.u32());
    }
    keep(std::move(link));
  }

  // IV.A.2.g
  void add(Cursor in) {
    constexpr std::uint8_t kSoft = 1, kExternal = 64;
    Link link;
    link.at = in.offset();
    if (in.u8() != 1) in.fail("a link of version 1");
    const std::uint8_t flags = in.u8();
    const std::uint8_t kind = (flags & 8U) != 0 ? in.u8() : 0;
    if ((flags & 4U) != 0) link.order = in.u64();
    if ((flags & 16U) != 0) in.skip(1);
    link.name = in.take(in.number(std::size_t{1} << (flags & 3U)));
    if (kind == 0) {
      link.address = in.address();
    } else {
      link.kind = kind == kSoft ? Link::Kind::soft : kind == kExternal ? Link::Kind::external : Link::Kind::other;
      link.target = in.take(in.u16());
      if (kind == kExternal) {  // a byte with flags, then the file and the object, each with a zero byte
        if (!link.target.empty()) link.target.erase(0, 1);
        while (link.target.ends_with('\0')) link.target.pop_back();
        std::replace(link.target.begin(), link.target.end(), '\0', ':');
      }
    }
    keep(std::move(link));
  }

  // IV.A.2.c: a fractal heap with the links, and a B-tree that finds them by name.
  void read_dense(const HeaderMessage& message) {
    Cursor in(file_, message.bytes, message.at, file_.rules.kGroup);
    if (in.u8() != 0) in.fail("link information of version 0");
    if ((in.u8() & 1U) != 0) in.skip(8);
    const std::uint64_t heap_at = in.address(), tree = in.address();
    if (heap_at == kUndefined || tree == kUndefined) return;
    FractalHeap heap(file_, heap_at);
    walk_tree2(file_, tree, Record::link_name, file_.rules.kGroup, [&](Cursor record) {
      record.skip(4);
      const std::string_view bytes = heap.object(record.sub(heap.id_size()));
      add(Cursor(file_, bytes, heap.found_at(), file_.rules.kGroup));
    });
  }

  File& file_;
  const ObjectHeader& header_;
  std::vector<Link> out_;
};

}  // namespace

bool is_group(const ObjectHeader& header) noexcept {
  return header.has(Message::symbol_table) || header.has(Message::link_info) || header.has(Message::link) ||
         header.has(Message::group_info);
}

std::vector<Link> read_links(File& file, const ObjectHeader& header) { return LinkReader(file, header).run(); }

}  // namespace weighbridge::hdf5
