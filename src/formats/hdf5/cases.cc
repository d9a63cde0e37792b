// SPDX-License-Identifier: Apache-2.0
// The corpora of hdf5 and keras: for each rule the smallest file that breaks it, and valid files of every kind. A
// .keras has the same file as its weights.
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "codecs/checksum.h"
#include "codecs/codec.h"
#include "formats/hdf5/format.h"
#include "formats/hdf5/layout.h"
#include "support/corpus_case.h"
#include "support/hdf5_structures.h"

namespace weighbridge::hdf5 {
namespace {

using namespace build;  // NOLINT: the vocabulary of this file

using Corpus = core::CorpusCases;

// A file whose root group has these messages; its address is kRoot.
constexpr std::uint64_t kRoot = 48;
std::string rooted(const std::string& messages) {
  Builder b;
  return b.finish(b.add(header(messages)));
}

std::uint64_t type_only(Builder& b) { return b.add(header(message(Message::datatype, f32()))); }

std::string attributed(const std::string& more) {
  Builder b;
  return one(b, b.simple(more));
}
std::string attributed(const std::string& name, const std::string& type, const std::string& space,
                       const std::string& data) {
  return attributed(message(Message::attribute, attribute(name, type, space, data)));
}

// Texts of any length in a global heap.
std::string variable_texts(std::uint64_t index_change = 0) {
  Builder b;
  const std::string objects = n16(1) + n16(1) + n32(0) + n64(3) + std::string("abc\0\0\0\0\0", 8) + n16(2) + n16(1) +
                              n32(0) + n64(1) + std::string("x\0\0\0\0\0\0\0", 8) + n64(0) + n64(0);
  const std::uint64_t at = b.add("GCOL" + n8(1) + std::string(3, '\0') + n64(16 + objects.size()) + objects);
  const std::string data =
      n32(3) + n64(at) + n32(1 + index_change) + n32(0) + n64(0) + n32(0) + n32(1) + n64(at) + n32(2);
  return one(b, b.simple(message(Message::attribute, attribute("t", variable_text(), dataspace({3}), data))));
}

std::string e4m3() { return real(1, 7, 3, 4, 3, 7); }

// LibLZF's form of some 400 zeros: one byte, then references to the byte before, the first of 264 bytes.
std::string lzf_zeros(std::uint64_t count) {
  return std::string("\0\0\xE0\xFF\0\xE0", 6) + n8(count - 265 - 9) + n8(0);
}

// A chunked dataset of f32 with these extents and filters.
std::string chunked(const std::vector<std::uint64_t>& shape, const std::vector<std::uint32_t>& chunk,
                    const std::vector<Piece>& pieces, const std::vector<FilterOf>& all = {},
                    const std::string& more = {}, bool whole = false) {
  Builder b;
  const std::string layout = tree_layout(b, chunk, pieces, 4, whole);
  return one(b, b.dataset(dataspace(shape), f32(), layout,
                          (all.empty() ? "" : message(Message::filters, filters(all))) + more));
}

template <class Use> void for_each_valid(Use use) {
  use("valid-one", attributed(""));
  use("valid-empty-group", rooted(message(Message::group_info, n16(0))));
  use("valid-scalar-and-empty", [] {
    Builder b;
    const std::uint64_t a = b.dataset(dataspace({}), f32(), compact(counting(4))),
                        c = b.dataset(dataspace({0, 3}), f32(), contiguous(kUndefined, 0));
    return b.finish(b.group({link("a", a), link("empty", c)}));
  }());
  use("valid-types", [] {
    Builder b;
    std::vector<std::string> links;
    const auto add = [&](const std::string& name, const std::string& type, std::size_t size) {
      links.push_back(link(name, b.dataset(dataspace({2}), type, compact(counting(2 * size)))));
    };
    for (const int size : {1, 2, 4, 8})
      for (const bool is_signed : {false, true})
        for (const bool big : {false, true})
          add((is_signed ? "i" : "u") + std::to_string(size) + (big ? "-big" : ""), integer(size, is_signed, big),
              static_cast<std::size_t>(size));
    add("f16", real(2, 15, 10, 5, 10, 15), 2);
    add("bf16", real(2, 15, 7, 8, 7, 127), 2);
    add("f32-big", f32(true), 4);
    add("f64", real(8, 63, 52, 11, 52, 1023), 8);
    add("complex64", compound("r", "i", f32(), 4), 8);
    add("complex64-new", n8(0x5B) + n8(1) + n16(0) + n32(8) + f32(), 8);
    add("bool", boolean(), 1);
    return b.finish(b.group(links));
  }());
  use("valid-shared-type", [] {
    Builder b;
    const std::uint64_t type = type_only(b);
    return one(b, b.add(header(message(Message::dataspace, dataspace({4})) +
                               message(Message::datatype, n8(3) + n8(2) + n64(type), kShared) +
                               message(Message::layout, compact(counting(16))))));
  }());
  // Before HDF5 1.6: a length, which was the offset of a name, comes before the address.
  use("valid-shared-type-1", [] {
    Builder b;
    const std::uint64_t type = type_only(b);
    return one(b, b.add(header(message(Message::dataspace, dataspace({4})) +
                               message(Message::datatype, n8(1) + std::string(7, '\0') + n64(16) + n64(type), kShared) +
                               message(Message::layout, compact(counting(16))))));
  }());
  use("valid-small-floats", [] {
    Builder b;
    std::string more;
    const auto add = [&](const std::string& name, const std::string& type, const std::string& space,
                         const std::string& data) {
      more += message(Message::attribute, attribute(name, type, space, data));
    };
    add("f16", real(2, 15, 10, 5, 10, 15), dataspace({2}), n16(0x3C00) + n16(0xC200));  // 1, -3
    add("bf16", real(2, 15, 7, 8, 7, 127), dataspace({}), n16(0x3F00));                 // 0.5
    add("f8", e4m3(), dataspace({2}), "\x38\xC4");                                      // 1, -3
    return b.finish(b.group({link("e4m3", b.dataset(dataspace({2}), e4m3(), compact("\x30\xC4"))),
                             link("e5m2", b.dataset(dataspace({2}), real(1, 7, 2, 5, 2, 15), compact("\x38\xC2")))},
                            more));
  }());
  use("valid-opaque-bf16", [] {
    Builder b;
    const std::string type = n8(0x15) + n8(0) + n16(0) + n32(2), layout = compact(n16(0x3F80) + n16(0xC040));
    const std::uint64_t named = b.dataset(dataspace({2}), type, layout, text_attribute("dtype", "bfloat16"));
    return b.finish(b.group({link("w", named)}));
  }());
  use("valid-lzf", chunked({100}, {100}, {{{0}, lzf_zeros(400)}}, {{kShuffle, {4}}, {kLzf}}, {}, true));
  use("valid-texts", [] {
    Builder b;
    const std::uint64_t scalar = b.dataset(dataspace({}), text_type(4, 1), compact(std::string("ab\0\0", 4)),
                                           text_attribute("note", "n")),
                        list = b.dataset(dataspace({2}), text_type(2, 2), compact("a bc"));
    return b.finish(b.group({link("g", b.group({link("s", scalar)})), link("t", list), link("w", b.simple())}));
  }());
  use("valid-superblock-3", [] {
    Builder b(3);
    return one(b, b.simple());
  }());
  use("valid-userblock", [] {
    Builder b(2, 512);
    return one(b, b.simple());
  }());
  use("valid-aliases", [] {
    Builder b;
    const std::uint64_t w = b.simple();
    return b.finish(b.group({link("a", w), link("b", w)}));
  }());
  use("valid-groups", [] {
    Builder b;
    const std::uint64_t inner = b.group({link("w", b.simple())}, text_attribute("note", "inner"));
    return b.finish(b.group({link("g", b.group({link("h", inner)}))},
                            text_attribute("note", "root") + message(Message::comment, std::string("c\0", 2))));
  }());
  use("valid-continuation", [] {
    Builder b;
    const std::string more = message(Message::layout, compact(counting(16)));
    const std::string block = sealed("OCHK" + more);
    const std::uint64_t at = b.add(block);
    return one(b, b.add(header(message(Message::dataspace, dataspace({4})) + message(Message::datatype, f32()) +
                               message(Message::continuation, n64(at) + n64(block.size())))));
  }());
  use("valid-fill-value",
      one_dataset(dataspace({3}), f32(), contiguous(kUndefined, 12), message(Message::fill_value, fill("\1\2\3\4"))));
  use("valid-chunks", chunked({3, 3}, {2, 2}, {{{0, 0}, counting(16)}, {{0, 2}, counting(16)}, {{2, 2}, counting(16)}},
                              {}, message(Message::fill_value, fill("\7\7\7\7"))));
  use("valid-filters", chunked({5}, {4},
                               {{{0}, with_fletcher(zlib(shuffled(counting(16), 4)))},
                                {{4}, with_fletcher(shuffled(counting(16), 4)), 2}},
                               {{kShuffle, {4}}, {kDeflate, {6}}, {kFletcher32}}));
  use("valid-checksum-first",
      chunked({4}, {4}, {{{0}, zlib(with_fletcher(counting(16)))}}, {{kFletcher32}, {kDeflate, {6}}}));
  use("valid-single-chunk", [] {
    Builder b;
    const std::string stored = zlib(counting(16));
    const std::uint64_t at = b.add(stored), plain = b.add(counting(16));
    const std::uint64_t first =
        b.dataset(dataspace({3}), f32(), new_layout({4}, Index::single, n64(stored.size()) + n32(0), at, 2),
                  message(Message::filters, filters({{kDeflate, {6}}})));
    const std::uint64_t second = b.dataset(dataspace({4}), f32(), new_layout({4}, Index::single, "", plain));
    const std::uint64_t third =
        b.dataset(dataspace({3}), f32(), new_layout({4}, Index::single, n64(16) + n32(0), plain, 3),
                  message(Message::filters, filters({{kDeflate, {6}}})));
    return b.finish(b.group({link("a", first), link("b", second), link("c", third)}));
  }());
  use("valid-implicit-chunks", [] {
    Builder b;
    const std::uint64_t at = b.add(counting(48));
    return one(b, b.dataset(dataspace({3}, {6}), f32(), new_layout({2}, Index::implicit, "", at)));
  }());
  use("valid-fixed-array", fixed_file(10));
  use("valid-fixed-array-pages", fixed_file(1));
  use("valid-extensible-array", extensible_file(4));
  use("valid-tree-2", tree2_file(false));
  use("valid-tree-2-inner", tree2_file(true));
  use("valid-dense-group", dense_group());
  use("valid-dense-group-indirect", dense_group({.indirect = true}));
  use("valid-dense-attributes", dense_attributes());
  use("valid-variable-texts", variable_texts());
  use("valid-attributes", [] {
    std::string more;
    const auto add = [&](const std::string& name, const std::string& type, const std::string& space,
                         const std::string& data) {
      more += message(Message::attribute, attribute(name, type, space, data));
    };
    add("i8", integer(1, true), dataspace({}), "\xFF");
    add("u64", integer(8, false), dataspace({}), n64(UINT64_MAX));
    add("i16-big", integer(2, true, true), dataspace({2}), std::string("\0\1\xFF\xFF", 4));
    add("f16", real(2, 15, 10, 5, 10, 15), dataspace({}), n16(0x3E00));
    add("f32", f32(), dataspace({}), n32(0x3F800000));
    add("f64", real(8, 63, 52, 11, 52, 1023), dataspace({2, 1}), n64(0) + n64(0x3FF0000000000000));
    add("bool", boolean(), dataspace({}), "\1");
    add("bools", boolean(), dataspace({2}), std::string("\1\0", 2));
    add("complex", compound("r", "i", f32(), 4), dataspace({}), counting(8));
    add("spaces", text_type(4, 2), dataspace({}), "a   ");
    add("zeros", text_type(4, 1), dataspace({2}), std::string("ab\0\0cdef", 8));
    add("null", f32(), n8(2) + n8(0) + n8(0) + n8(2), "");
    return attributed(more);
  }());
}

// Calls use(name, rule, bytes, other rules) for each way in which a file can be broken.
template <class Use> void for_each_broken(Use use) {
  const std::vector<std::string> none;
  const std::string ok = attributed("");
  const auto changed = [&](std::size_t at, const std::string& to) {
    std::string out = ok;
    return out.replace(at, to.size(), to);
  };
  use("signature", "signature", changed(0, "H"), none);
  use("version", "version", changed(8, "\4"), none);
  use("superblock-widths", "superblock", changed(9, "\3"), none);
  use("superblock-truncated", "superblock", ok.substr(0, 30), none);
  use("superblock-checksum", "superblock-checksum", changed(44, "\1\2\3\4"), none);
  use("truncated", "truncated", ok.substr(0, ok.size() - 1), none);
  use("truncated-2-63", "truncated", old_group({.end_change = std::uint64_t{1} << 63}), none);
  use("trailing-data", "trailing-data", ok + "more", none);
  use(
      "open-for-writing", "open-for-writing",
      [] {
        Builder b(3);
        return b.finish(b.group({}), kUndefined, 0, 1);
      }(),
      none);
  use("driver-superblock-0", "driver", old_group({.driver = 8}), none);
  const auto extended = [](Message type) {
    Builder b;
    const std::uint64_t root = b.group({});
    return b.finish(root, b.add(header(message(type, counting(8)))));
  };
  use("driver", "driver", extended(Message::driver_info), none);
  use("cache-image", "cache-image", extended(Message::cache_image), none);
  use("address-of-root", "address", Builder().finish(kUndefined), none);
  use(
      "address-of-object", "address",
      [] {
        Builder b;
        return one(b, 1 << 20);
      }(),
      none);
  use("address-of-data", "address", one_dataset(dataspace({4}), f32(), contiguous(1 << 20, 16)), none);
  use("address-2-64", "address", one_dataset(dataspace({4}), f32(), contiguous(UINT64_MAX - 8, 16)), none);
  use("address-of-chunk", "address", one_dataset(dataspace({3}), f32(), new_layout({4}, Index::single, "", 1 << 20)),
      none);
  use("address-of-implicit-chunks", "address",
      one_dataset(dataspace({3}, {1000}), f32(), new_layout({2}, Index::implicit, "", 48)), none);
  use("address-of-heap", "address",
      one_dataset(
          dataspace({4}), f32(), compact(counting(16)),
          message(Message::attribute, attribute("t", variable_text(), dataspace({}), n32(3) + n64(1 << 20) + n32(1)))),
      none);
  use(
      "block-object", "block",
      [] {
        Builder b;
        return one(b, b.add(std::string(64, 'x')));
      }(),
      none);
  use(
      "block-object-2", "block",
      [] {
        Builder b;
        return one(b, b.add("OHDR" + n8(3) + n8(0) + std::string(64, 'x')));
      }(),
      none);
  use("block-heap", "block", old_group({.heap_magic = "heap"}), none);
  use(
      "block-of-fractal-heap", "block",
      [] {
        Builder b;
        const std::uint64_t bad = b.add(std::string(200, 'x'));
        return b.finish(b.add(header(message(Message::link_info, n8(0) + n8(0) + n64(bad) + n64(bad)))));
      }(),
      none);
  use(
      "checksum", "checksum",
      [&] {
        Builder b;
        std::string head = header(message(Message::dataspace, dataspace({4})));
        head.back() = static_cast<char>(head.back() ^ 1);
        return one(b, b.add(head));
      }(),
      none);
  use("checksum-of-heap-block", "checksum", dense_group({.checksum_change = 1}), none);
  use(
      "cycle", "cycle",
      [] {
        Builder b;
        const std::uint64_t at = b.next();
        b.add(sealed("OCHK" + message(Message::continuation, n64(at) + n64(28))));
        return one(b, b.add(header(message(Message::continuation, n64(at) + n64(28)))));
      }(),
      none);
  use("cycle-of-nodes", "cycle", old_group({.node_twice = true}), none);
  use(
      "object-header", "object-header",
      [] {
        Builder b;
        return one(b, b.add(header(n8(1) + n16(100) + n8(0))));
      }(),
      none);
  use(
      "message", "message",
      [] {
        Builder b;
        return one(b, b.add(header(message(static_cast<Message>(0x30), "", kMustKnow))));
      }(),
      none);
  use(
      "message-shared", "message",
      [] {
        Builder b;
        return one(b, b.add(header(message(Message::dataspace, dataspace({4})) +
                                   message(Message::datatype, n8(3) + n8(1) + n64(0), kShared) +
                                   message(Message::layout, compact(counting(16))))));
      }(),
      none);
  use("group-link-version", "group", rooted(message(Message::link, n8(2) + n8(0) + n8(1) + "w" + n64(0))), none);
  use("group-link-length", "group", rooted(message(Message::link, n8(1) + n8(0) + n8(200) + "w" + n64(0))), none);
  use("group-tree-total", "group", dense_group({.total_change = UINT64_MAX}), none);  // 0, for one link
  use("block-node", "block", old_group({.node_level = 1}), none);
  use("heap-name", "heap", old_group({.name_at = 24}), none);
  use("heap-object", "heap", variable_texts(5), none);
  use("heap-owner", "heap", dense_group({.owner_change = 8}), none);
  use("heap-offset", "heap", dense_group({.offset_change = 500}), none);
  use("heap-kind", "heap-kind", dense_group({.filters = 12}), none);
  const auto named = [](const std::string& name) {
    Builder b;
    return b.finish(b.group({link(name, b.simple())}));
  };
  use("name-slash", "name", named("a/b"), none);
  use("name-empty", "name", named(""), none);
  use("name-utf8", "name-bytes", named("\xFF"), none);
  use("name-bytes-of-attribute", "name-bytes", attributed(text_attribute("\xFF", "1")), none);
  use("name-bytes-twice", "name-bytes",
      [] {
        Builder b;
        const std::uint64_t w = b.simple();
        return b.finish(b.group({link("\xFF", w), link("\\xff", b.simple())}));
      }(),
      {"duplicate-name"});
  use(
      "duplicate-name", "duplicate-name",
      [] {
        Builder b;
        const std::uint64_t w = b.simple();
        return b.finish(b.group({link("w", w), link("w", b.simple())}));
      }(),
      none);
  use("link", "link", rooted(message(Message::link, soft_link("s", "/w"))), none);
  use("link-external", "link", rooted(message(Message::link, external_link("e", "/etc/passwd"))), none);
  use("link-old", "link", old_group(), none);
  use("link-old-1", "link", old_group({.version = 1}), none);
  use("group-again", "group-again", rooted(message(Message::link, link("self", kRoot))), none);
  use(
      "other-object", "other-object",
      [] {
        Builder b;
        return one(b, type_only(b));
      }(),
      none);
  const std::string four = compact(counting(16));
  use("dataspace-version", "dataspace", one_dataset(n8(3) + n8(0) + n8(0) + n8(0), f32(), four), none);
  use("dataspace-rank", "dataspace", one_dataset(dataspace(std::vector<std::uint64_t>(33, 1)), f32(), four), none);
  use("dataspace-most", "dataspace", one_dataset(dataspace({4}, {3}), f32(), four), none);
  use("dataspace-truncated", "dataspace", one_dataset(n8(2) + n8(1) + n8(0) + n8(1) + n32(4), f32(), four), none);
  use("null", "null", one_dataset(n8(2) + n8(0) + n8(0) + n8(2), f32(), compact("")), none);
  use("datatype-class", "datatype", one_dataset(dataspace({4}), n8(0x1C) + n8(0) + n16(0) + n32(4), four), none);
  use("datatype-version", "datatype", one_dataset(dataspace({4}), n8(0x60) + n8(0) + n16(0) + n32(4), four), none);
  use(
      "datatype-nesting", "datatype",
      [&] {
        std::string type = f32();
        for (int i = 0; i < 20; ++i) type = n8(0x19) + n8(0) + n16(0) + n32(16) + type;
        return one_dataset(dataspace({1}), type, compact(counting(16)));
      }(),
      none);
  use("text-utf8", "text", one_dataset(dataspace({4}), text_type(4), compact("\xFF" + std::string(15, ' '))), none);
  use("text-matrix", "text", one_dataset(dataspace({2, 2}), text_type(4, 2), compact(std::string(16, 'x'))), none);
  use("object", "object", one_dataset(dataspace({1}), n8(0x19) + n8(0) + n16(0) + n32(16) + f32(), four), none);
  use("object-reference", "object", one_dataset(dataspace({2}), n8(0x17) + n8(0) + n16(0) + n32(8), four), none);
  use("unknown-type-bits", "unknown-type",
      one_dataset(dataspace({4}), n8(0x14) + n8(0) + n16(0) + n32(4) + n16(0) + n16(32), four), none);
  use("unknown-type-float", "unknown-type", one_dataset(dataspace({4}), real(4, 31, 22, 9, 22, 255), four), none);
  use(
      "text-chunks", "text",
      [] {
        Builder b;
        const std::string layout = tree_layout(b, {4}, {{{0}, counting(16)}});
        return one(b, b.dataset(dataspace({4}), text_type(4), layout));
      }(),
      none);
  use("size-overflow", "size-overflow", one_dataset(dataspace({std::uint64_t{1} << 61}), f32(), four), none);
  use("size-overflow-with-0", "size-overflow", one_dataset(dataspace({0, UINT64_MAX, 2}), f32(), four), none);
  use("layout-version", "layout", one_dataset(dataspace({4}), f32(), n8(6) + n8(0) + n16(0)), none);
  use(
      "layout-missing", "layout",
      [] {
        Builder b;
        return one(b, b.add(header(message(Message::dataspace, dataspace({4})) + message(Message::datatype, f32()))));
      }(),
      none);
  use("layout-rank", "layout", chunked({4, 4}, {4}, {}), none);
  use(
      "layout-element", "layout",
      [] {
        Builder b;
        const std::string layout = tree_layout(b, {4}, {}, 8);
        return one(b, b.dataset(dataspace({4}), f32(), layout));
      }(),
      none);
  use("layout-chunk-0", "layout", chunked({4}, {0}, {}), none);
  use("layout-index", "layout", one_dataset(dataspace({4}), f32(), new_layout({2}, static_cast<Index>(9), "", 0)),
      none);
  use("external-storage", "external-storage",
      one_dataset(dataspace({4}), f32(), contiguous(kUndefined, 16), message(Message::external_files, counting(8))),
      none);
  use("virtual", "virtual", one_dataset(dataspace({4}), f32(), n8(4) + n8(3) + n64(48) + n32(0)), none);
  use("storage-size", "storage-size", one_dataset(dataspace({4}), f32(), compact(counting(15))), none);
  use("storage-size-contiguous", "storage-size", one_dataset(dataspace({4}), f32(), contiguous(48, 15)), none);
  use("fill-value", "fill-value",
      one_dataset(dataspace({4}), f32(), four, message(Message::fill_value, fill("12345678"))), none);
  use("filters", "filters",
      one_dataset(dataspace({4}), f32(), new_layout({2}, Index::single, "", 48),
                  message(Message::filters, n8(3) + n8(1))),
      none);
  use("filters-count", "filters",
      one_dataset(dataspace({4}), f32(), new_layout({2}, Index::single, "", 48),
                  message(Message::filters, n8(2) + n8(33))),
      none);
  use("unknown-filter", "unknown-filter", chunked({4}, {4}, {{{0}, counting(9)}}, {{32004}}), none);
  use("unknown-filter-after-lzf", "unknown-filter", chunked({4}, {4}, {{{0}, counting(9)}}, {{kLzf}, {kDeflate, {1}}}),
      none);
  use("unknown-filter-twice", "unknown-filter",
      chunked({4}, {4}, {{{0}, zlib(zlib(counting(16)))}}, {{kDeflate, {1}}, {kDeflate, {1}}}), none);
  use("chunk-index-twice", "chunk-index", chunked({4}, {2}, {{{0}, counting(8)}, {{0}, counting(8)}}), none);
  use("chunk-index-place", "chunk-index", chunked({4}, {2}, {{{4}, counting(8)}}), none);
  use("chunk-index-between", "chunk-index", chunked({4}, {2}, {{{1}, counting(8)}}), none);
  use("chunk-index-count", "chunk-index", fixed_file(10, 1), none);
  use("chunk-index-pages", "chunk-index", fixed_file(0, std::uint64_t{1} << 63), none);
  use("chunk-index-least", "chunk-index", extensible_file(4, 3), none);
  use("chunk-size", "chunk-size", chunked({4}, {2}, {{{0}, counting(8), 0, 8}}), none);
  use("chunk-size-filtered", "chunk-size", chunked({100'000}, {100'000}, {{{0}, counting(16)}}, {{kDeflate, {1}}}),
      none);
  use("chunk-size-shuffled", "chunk-size", chunked({4}, {4}, {{{0}, counting(17)}}, {{kShuffle, {4}}}), none);
  use("attribute", "attribute", attributed(message(Message::attribute, n8(4) + n8(0) + n16(0))), none);
  use("attribute-value", "attribute", attributed("a", f32(), dataspace({2}), n32(0)), none);
  use("attribute-count", "attribute", attributed("a", f32(), dataspace({UINT64_MAX, 2}), n32(0)), none);
  use("attribute-type", "attribute-type", attributed("a", n8(0x15) + n8(0) + n16(0) + n32(3), dataspace({}), "abc"),
      none);
  use("attribute-type-utf8", "attribute-type", attributed("a", text_type(1), dataspace({}), "\xFF"), none);
  use("attribute-key", "attribute-key", attributed(text_attribute("a", "1") + text_attribute("a", "2")), none);
  use(
      "lambda", "lambda",
      [] {
        Builder b;
        return b.finish(
            b.group({}, text_attribute("model_config", R"({"config": {"layers": [{"class_name": "Lambd\u0061"}]}})")));
      }(),
      none);
  const std::string sixteen = counting(16);
  std::string bad_sum = zlib(sixteen);
  bad_sum.back() = static_cast<char>(bad_sum.back() ^ 1);
  use("deflate", "deflate", chunked({4}, {4}, {{{0}, bad_sum}}, {{kDeflate, {1}}}), none);
  use("deflate-header", "deflate", chunked({4}, {4}, {{{0}, counting(16)}}, {{kDeflate, {1}}}), none);
  use("deflate-short", "deflate", chunked({4}, {4}, {{{0}, zlib(counting(15))}}, {{kDeflate, {1}}}), none);
  use("deflate-long", "deflate", chunked({4}, {4}, {{{0}, zlib(counting(17))}}, {{kDeflate, {1}}}), none);
  use("lzf", "lzf", chunked({100}, {100}, {{{0}, lzf_zeros(399)}}, {{kLzf}}), none);
  use("lzf-long", "lzf", chunked({100}, {100}, {{{0}, lzf_zeros(401)}}, {{kLzf}}), none);
  use("lzf-truncated", "lzf", chunked({100}, {100}, {{{0}, lzf_zeros(400).substr(0, 7)}}, {{kLzf}}), none);
  use("lzf-before-its-beginning", "lzf", chunked({100}, {100}, {{{0}, std::string("\0\0\xE0\xFF\1", 5)}}, {{kLzf}}),
      none);
  use("fletcher32", "fletcher32", chunked({4}, {4}, {{{0}, sixteen + n32(1)}}, {{kFletcher32}}), none);
  use("bool-byte", "bool-byte", one_dataset(dataspace({2}), boolean(), compact("\1\2")), none);
}

void add_limits(Corpus& corpus, const std::function<std::string(std::string)>& wrap) {
  const auto add = [&](std::string name, std::string rule, std::uint64_t Limits::*which, std::uint64_t value,
                       std::string bytes) {
    core::CorpusCase& c = corpus.add(std::move(name), std::move(rule), wrap(std::move(bytes)));
    c.generated_only = true;
    c.limits.*which = value;
  };
  add("limit-memory-chunk", "limit/memory", &Limits::memory, 16'000,
      chunked({4096}, {4096}, {{{0}, zlib(std::string(16'384, 'x'))}}, {{kDeflate, {1}}}));
  add("limit-memory-attributes", "limit/memory", &Limits::memory, 1'000,
      attributed(text_attribute("a", std::string(2'000, 'x'))));
  // What was never written is read by nobody who only checks a file.
  const std::string two_chunks = chunked({4}, {3}, {{{0}, counting(12)}});
  add("limit-decoded", "limit/decoded", &Limits::decoded, 11, two_chunks);
  add("limit-work", "limit/work", &Limits::work, 11, two_chunks);
  corpus.add("limit-work-claimed", "limit/work", wrap(chunked({std::uint64_t{1} << 30}, {4}, {{{0}, counting(16)}})));
  add("limit-depth", "limit/depth", &Limits::tensors, UINT64_MAX, [] {
    Builder b;
    std::uint64_t inner = b.simple();
    for (int i = 0; i < 70; ++i) inner = b.group({link("g", inner)});
    return b.finish(inner);
  }());
  add("limit-tensors", "limit/tensors", &Limits::tensors, 1, [] {
    Builder b;
    const std::uint64_t w = b.simple();
    return b.finish(b.group({link("a", w), link("b", w)}));
  }());
}

// A member of an archive, with fields that differ from what they should be.
struct Member {
  std::string name, data;
  bool deflate = false;
  std::uint16_t method = 0, flags = 0;
  std::string stored{}, local_name{};
  std::uint32_t crc_change = 0, size_change = 0;
};
struct Archive {
  std::vector<Member> members;
  std::string comment{}, after{};
  std::uint16_t disk = 0;
  std::uint32_t offset_change = 0;
  std::uint32_t entry_magic = 0x02014B50;
  std::uint64_t moved = 0;  // how far the last member's header is said to be before its place
};
std::string zip(const Archive& archive) {
  std::string out, directory;
  for (const Member& m : archive.members) {
    std::string stored = m.stored.empty() ? m.data : m.stored;
    if (m.deflate && m.stored.empty()) {
      const auto coded = codecs::encode(codecs::kDeflate, std::as_bytes(std::span(m.data)));
      stored.assign(reinterpret_cast<const char*>(coded.data()), coded.size());
    }
    const std::uint64_t at = out.size(), method = m.method != 0 ? m.method : m.deflate ? 8 : 0;
    const std::uint32_t crc = codecs::crc32(std::as_bytes(std::span(m.data))) ^ m.crc_change;
    const std::string common = n16(m.flags) + n16(method) + n32(0x00210000) + n32(crc) + n32(stored.size()) +
                               n32(m.data.size() + m.size_change);
    const std::string& local = m.local_name.empty() ? m.name : m.local_name;
    out += "PK\x03\x04" + n16(20) + common + n16(local.size()) + n16(0) + local + stored;
    directory += n32(archive.entry_magic) + n16(20) + n16(20) + common + n16(m.name.size()) + std::string(12, '\0') +
                 n32(&m == &archive.members.back() ? at - archive.moved : at) + m.name;
  }
  const std::uint64_t at = out.size() + archive.offset_change;
  return out + directory + "PK\x05\x06" + n16(archive.disk) + n16(archive.disk) + n16(archive.members.size()) +
         n16(archive.members.size()) + n32(directory.size()) + n32(at) + n16(0) + archive.after;
}

const Member kMetadata{"metadata.json", R"({"keras_version": "3.15.1"})"},
    kConfiguration{"config.json", R"({"class_name": "Sequential"})"};
std::string keras_file(std::string weights) {
  return zip({.members = {kMetadata, kConfiguration, {std::string(kKerasWeights), std::move(weights)}}});
}

void add_archives(Corpus& corpus) {
  const std::string weights = attributed("");
  const Member stored{std::string(kKerasWeights), weights};
  const auto three = [&](Member last) { return Archive{.members = {kMetadata, kConfiguration, std::move(last)}}; };
  const auto with = [&](auto change) {
    Archive out = three(stored);
    change(out);
    return zip(out);
  };
  corpus.add("valid-weights-only", "", zip({.members = {stored}}));
  corpus.add("valid-deflated-config", "", with([](Archive& a) { a.members[1].deflate = true; }));
  corpus.add("valid-folder", "", with([](Archive& a) { a.members.insert(a.members.begin() + 1, {"assets/", ""}); }));
  corpus.add("end", "end", with([](Archive& a) { a.after = "x"; }));
  corpus.add("disks", "disks", with([](Archive& a) { a.disk = 1; }));
  corpus.add("directory", "directory", with([](Archive& a) { a.offset_change = 1; }));
  corpus.add("entry", "entry", with([](Archive& a) { a.entry_magic = 0; }));
  corpus.add("member-utf8", "member-utf8", with([](Archive& a) { a.members[1].name = "\xFF"; }));
  corpus.add("member-path", "member-path", with([](Archive& a) { a.members[1].name = "../config.json"; }));
  corpus.add("duplicate-member", "duplicate-member", with([](Archive& a) { a.members[1].name = "metadata.json"; }));
  corpus.add("overlap", "overlap", with([](Archive& a) { a.moved = 20; }));
  corpus.add("local-header", "local-header", with([](Archive& a) { a.members[2].local_name = "model.weights.h6"; }));
  corpus.add("member-size", "member-size", with([](Archive& a) { a.members[2].size_change = 1; }));
  corpus.add("encrypted", "encrypted", with([](Archive& a) { a.members[2].flags = 1; }));
  corpus.add("method", "method", with([](Archive& a) { a.members[1].method = 93; }));
  corpus.add("weights", "weights", zip({.members = {kMetadata, kConfiguration}}));
  corpus.add("weights-deflated", "weights", with([](Archive& a) { a.members[2].deflate = true; }));
  corpus.add("weights-npz", "other-member", with([](Archive& a) { a.members[2].name = "model.weights.npz"; }),
             {"weights"});
  corpus.add("config", "config", with([](Archive& a) { a.members[1].data = "{"; }));
  corpus.add("config-deflate", "config", with([](Archive& a) {
               a.members[1].method = 8;
               a.members[1].stored = std::string(30, '\xFF');
             }),
             {"crc"});
  corpus.add("other-member", "other-member", with([](Archive& a) {
               a.members.insert(a.members.begin() + 1, {"assets/a.txt", "a"});
             }));
  corpus.add("lambda-config", "lambda",
             with([](Archive& a) { a.members[1].data = R"([[{"class_name": "__lambda__"}]])"; }));
  corpus.add("crc", "crc", with([](Archive& a) { a.members[2].crc_change = 1; }));
}

// An index of Keras beside one shard with the dataset "w" in its root group.
void add_index(Corpus& corpus) {
  Builder b;
  const std::string shard = one(b, b.simple());
  const auto add = [&](std::string name, std::string rule, const std::string& index, std::string bytes,
                       std::vector<std::string> others = {}) {
    std::string of_shard = name + "_00000.weights.h5", text = index;
    for (std::size_t at; (at = text.find('$')) != std::string::npos;) text.replace(at, 1, of_shard);
    core::CorpusCase& c = corpus.add(std::move(name), std::move(rule), std::move(text), std::move(others));
    c.extension = "weights.json";
    c.sidecar = core::CorpusSidecar{.extension = {}, .bytes = std::move(bytes), .name = std::move(of_shard)};
  };
  const std::string sound = R"({"metadata":{"total_size":16.0},"weight_map":{"/":["$"]}})";
  add("valid-index", "", sound, shard);
  add("valid-index-of-texts", "", R"({"metadata":{"total_size":16},"weight_map":{"/":"$"}})", shard);
  add("valid-index-of-one-file-twice", "", R"({"weight_map":{"/":["$","$"]}})", shard);
  core::CorpusCase& alone = corpus.add("shard-alone_00000", "shard-alone", shard);
  alone.extension = "weights.h5";
  alone.sidecar = core::CorpusSidecar{
      .extension = {},
      .bytes = R"({"weight_map":{"/":["shard-alone_00000.weights.h5","shard-alone_00001.weights.h5"]}})",
      .name = "shard-alone.weights.json"};
  add("index-json", "index-json", R"({"weight_map":{"/":["$"]})", shard);
  add("index-value", "index-value", R"({"weights":{"/":["$"]}})", shard);
  add("index-value-empty", "index-value", R"({"weight_map":{"/":[]}})", shard);
  add("index-value-number", "index-value", R"({"weight_map":{"/":["$",1]}})", shard);
  add("index-duplicate-key", "index-duplicate-key", R"({"weight_map":{"/":["$"],"/":["$"]}})", shard);
  add("shard-path", "shard-path", R"({"weight_map":{"/":["$"],"/a":["../a.weights.h5"]}})", shard);
  add("shard-missing", "shard-missing", R"({"weight_map":{"/":["$"],"/a":["other.weights.h5"]}})", shard);
  add("shard-format", "shard-format", sound, "ZTEN1000" + std::string(64, '\0') + "ZTEN1000");
  add("shard-truncated", "truncated", sound, shard.substr(0, shard.size() - 1));
  add("group-missing", "group-missing", R"({"weight_map":{"/":["$"],"/a":["$"]}})", shard);
  add("group-missing-and-unlisted", "group-missing", R"({"weight_map":{"/a":["$"]}})", shard, {"group-unlisted"});
  Builder two;
  const std::uint64_t inner = two.group({link("x", two.simple())}), first = two.simple();
  const std::string both = two.finish(two.group({link("w", first), link("g", inner)}));
  add("valid-index-of-two-groups", "", R"({"weight_map":{"/g":["$"],"/":["$"]}})", both);
  add("group-unlisted", "group-unlisted", R"({"weight_map":{"/":["$"]}})", both);
  add("total-size", "total-size", R"({"metadata":{"total_size":17.0},"weight_map":{"/":["$"]}})", shard);
}

std::vector<core::CorpusCase> cases(const std::string& format, const std::function<std::string(std::string)>& wrap) {
  Corpus corpus(format);
  for_each_valid([&](const std::string& name, const std::string& bytes) { corpus.add(name, "", wrap(bytes)); });
  for_each_broken([&](const std::string& name, const std::string& rule, const std::string& bytes,
                      const std::vector<std::string>& others) { corpus.add(name, rule, wrap(bytes), others); });
  add_limits(corpus, wrap);
  if (format == "keras") add_archives(corpus);
  if (format == "hdf5") add_index(corpus);
  return corpus.take();
}

}  // namespace

std::vector<core::CorpusCase> hdf5_cases() {
  return cases("hdf5", [](std::string bytes) { return bytes; });
}
std::vector<core::CorpusCase> keras_cases() { return cases("keras", keras_file); }

}  // namespace weighbridge::hdf5
