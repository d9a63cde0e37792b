// SPDX-License-Identifier: Apache-2.0
// The corpus of PyTorch's checkpoints: for each rule the smallest file that breaks it, and valid files of every kind.
// The pickles and archives are assembled here, so that reader and writer cannot share a mistake.
#include <string>
#include <utility>
#include <vector>

#include "codecs/checksum.h"
#include "codecs/codec.h"
#include "formats/pytorch/format.h"
#include "formats/pytorch/layout.h"
#include "support/corpus_case.h"

namespace weighbridge::pytorch {
namespace {

std::string number(std::uint64_t value, int bytes) {
  std::string out;
  for (int i = 0; i < bytes; ++i) out += static_cast<char>(i < 8 ? value >> (8 * i) & 0xFF : 0);
  return out;
}

// Values, as opcodes of protocol 2 that push them.
std::string g(const std::string& module, const std::string& name) { return "c" + module + "\n" + name + "\n"; }
std::string t(const std::string& text) { return "X" + number(text.size(), 4) + text; }
std::string i(std::int64_t value) {
  if (value >= 0 && value < 256) return "K" + number(static_cast<std::uint64_t>(value), 1);
  return "\x8a\x08" + number(static_cast<std::uint64_t>(value), 8);
}
std::string joined(const std::vector<std::string>& parts) {
  std::string out;
  for (const std::string& part : parts) out += part;
  return out;
}
std::string tuple(const std::vector<std::string>& items) { return "(" + joined(items) + "t"; }
std::string list(const std::vector<std::string>& items) { return "](" + joined(items) + "e"; }
std::string dict(const std::vector<std::string>& keys_and_values) { return "}(" + joined(keys_and_values) + "u"; }
std::string call(const std::string& callee, const std::vector<std::string>& arguments) {
  return callee + tuple(arguments) + "R";
}
std::string whole(const std::vector<std::uint64_t>& numbers) {
  std::vector<std::string> items;
  for (const std::uint64_t each : numbers) items.push_back(i(static_cast<std::int64_t>(each)));
  return tuple(items);
}
const std::string kNone = "N", kTrue = "\x88", kFalse = "\x89";

std::string storage(const std::string& type, const std::string& key, std::uint64_t count,
                    const std::string& module = "torch") {
  return tuple({t("storage"), g(module, type), t(key), t("cpu"), i(static_cast<std::int64_t>(count))}) + "Q";
}
std::string hooks() { return call(g("collections", "OrderedDict"), {}); }
std::string rebuild(const std::string& from, std::uint64_t first, const std::vector<std::uint64_t>& shape,
                    const std::vector<std::uint64_t>& strides, const std::vector<std::string>& more = {}) {
  std::vector<std::string> arguments{from,   i(static_cast<std::int64_t>(first)), whole(shape), whole(strides), kFalse,
                                     hooks()};
  arguments.insert(arguments.end(), more.begin(), more.end());
  return call(g("torch._utils", "_rebuild_tensor_v2"), arguments);
}
std::string rebuild_v3(const std::string& type, std::uint64_t bytes, const std::vector<std::uint64_t>& shape,
                       const std::vector<std::uint64_t>& strides) {
  return call(g("torch._utils", "_rebuild_tensor_v3"),
              {storage("UntypedStorage", "0", bytes, "torch.storage"), i(0), whole(shape), whole(strides), kFalse,
               hooks(), g("torch", type)});
}
// Bytes of storage 0.
std::string bytes_tensor(const std::vector<std::uint64_t>& shape, const std::vector<std::uint64_t>& strides,
                         std::uint64_t count = 6) {
  return rebuild(storage("ByteStorage", "0", count), 0, shape, strides);
}
const std::string kOne = bytes_tensor({2, 3}, {3, 1});
std::string pickle(const std::string& value) { return "\x80\x02" + value + "."; }
std::string named(const std::string& value) { return pickle(dict({t("w"), value})); }

std::string counting(std::size_t bytes) {
  std::string out;
  for (std::size_t n = 0; n < bytes; ++n) out += static_cast<char>(n + 1);
  return out;
}
std::string floats(std::size_t count) {
  std::string out;
  for (std::size_t n = 0; n < count; ++n) out += number(0x3F800000 + (n << 19), 4);
  return out;
}

// A member, with fields that differ from what they should be.
struct Member {
  std::string name, data;
  bool deflate = false;
  std::uint16_t method = 0, flags = 0;
  std::uint32_t crc_change = 0, size_change = 0;
  std::string local_name{};
  std::uint32_t attributes = 0;
};
struct Changes {
  std::uint16_t disk = 0;
  std::uint32_t offset_change = 0, entry_magic = 0x02014B50;
  std::uint64_t moved = 0;  // how far the last member's header is said to be before its place
  bool padded = true;       // as PyTorch: sizes after the data only, elements at multiples of 64
};

std::string zip(const std::vector<Member>& members, const Changes& changes = {}) {
  std::string out, directory;
  for (const Member& m : members) {
    std::string stored = m.data;
    if (m.deflate) {
      const auto coded = codecs::encode(codecs::kDeflate, std::as_bytes(std::span(m.data)));
      stored.assign(reinterpret_cast<const char*>(coded.data()), coded.size());
    }
    const bool padded = changes.padded && m.flags == 0;
    const std::uint16_t flags = padded ? 0x0808 : m.flags;
    const std::uint16_t method = m.method != 0 ? m.method : m.deflate ? 8 : 0;
    const std::uint32_t crc = codecs::crc32(std::as_bytes(std::span(m.data))) ^ m.crc_change;
    const std::uint64_t size = m.data.size() + m.size_change, at = out.size();
    const std::string& local = m.local_name.empty() ? m.name : m.local_name;
    const std::size_t begin = at + 30 + local.size() + 4, room = padded ? (64 - begin % 64) % 64 : 0;
    const std::string extra = padded ? "FB" + number(room, 2) + std::string(room, 'Z') : std::string();
    out += "PK\x03\x04" + number(0, 2) + number(flags, 2) + number(method, 2) + number(0, 4);
    out += padded ? std::string(12, '\0') : number(crc, 4) + number(stored.size(), 4) + number(size, 4);
    out += number(local.size(), 2) + number(extra.size(), 2) + local + extra + stored;
    if (padded) out += "PK\x07\x08" + number(crc, 4) + number(stored.size(), 4) + number(size, 4);
    directory += number(changes.entry_magic, 4) + number(0, 2) + number(0, 2) + number(flags, 2) + number(method, 2) +
                 number(0, 4) + number(crc, 4) + number(stored.size(), 4) + number(size, 4) + number(m.name.size(), 2) +
                 std::string(8, '\0') + number(m.attributes, 4) +
                 number(&m == &members.back() ? at - changes.moved : at, 4) + m.name;
  }
  const std::uint64_t at = out.size() + changes.offset_change;
  out += directory;
  return out + "PK\x05\x06" + number(changes.disk, 2) + number(0, 2) + number(members.size(), 2) +
         number(members.size(), 2) + number(directory.size(), 4) + number(at, 4) + number(0, 2);
}

std::vector<Member> members(const std::string& content, const std::string& data = counting(6)) {
  return {{"m/data.pkl", content}, {"m/byteorder", "little"}, {"m/data/0", data}, {"m/version", "3\n"}};
}
std::string file(const std::string& content, const std::string& data = counting(6)) {
  return zip(members(content, data));
}
std::string with(std::size_t at, const Member& member, const Changes& changes = {}) {
  std::vector<Member> all = members(named(kOne));
  all[at] = member;
  return zip(all, changes);
}
std::string more(std::vector<Member> extra, const std::string& content = named(kOne)) {
  std::vector<Member> all = members(content);
  all.insert(all.end(), extra.begin(), extra.end());
  return zip(all);
}

// The form before 1.6, and its tensor "w": ids of storages have a view there, or none.
const std::string kOld =
    rebuild(tuple({t("storage"), g("torch", "ByteStorage"), t("0"), t("cpu"), i(6), kNone}) + "Q", 0, {2, 3}, {3, 1});
std::string legacy(const std::string& content, const std::vector<std::string>& keys, const std::string& data,
                   std::int64_t protocol = 1001) {
  std::vector<std::string> all;
  for (const std::string& key : keys) all.push_back(t(key));
  return std::string(kMagicPickle) + pickle(i(protocol)) + pickle(dict({t("little_endian"), kTrue})) + pickle(content) +
         pickle(list(all)) + data;
}
std::string stored(const std::string& bytes, std::uint64_t count) { return number(count, 8) + bytes; }

// The values "cos.system\n" and the like, called.
std::string danger() { return call(g("os", "system"), {t("true")}); }

std::string numpy_type(const std::string& code, const std::string& order) {
  return call(g("numpy", "dtype"), {t(code), kFalse, kTrue}) +
         tuple({i(3), t(order), kNone, kNone, kNone, i(-1), i(-1), i(0)}) + "b";
}
std::string numpy_array(const std::string& bytes, const std::string& shape, const std::string& type,
                        const std::string& fortran = kFalse) {
  return call(g("numpy.core.multiarray", "_reconstruct"), {g("numpy", "ndarray"), tuple({i(0)}),
                                                           "C\x01"
                                                           "b"}) +
         tuple({i(1), shape, type, fortran, bytes}) + "b";
}
std::string raw(const std::string& bytes) { return "C" + number(bytes.size(), 1) + bytes; }
std::string latin1(const std::string& utf8) { return call(g("_codecs", "encode"), {t(utf8), t("latin1")}); }

std::string coo(const std::string& indices, const std::string& values, const std::vector<std::uint64_t>& shape) {
  return call(g("torch._utils", "_rebuild_sparse_tensor"),
              {call(g("torch.serialization", "_get_layout"), {t("torch.sparse_coo")}),
               tuple({indices, values, whole(shape), kTrue})});
}
std::string csr(const std::string& rows, const std::string& columns, const std::string& values,
                const std::vector<std::uint64_t>& shape) {
  return call(g("torch._utils", "_rebuild_sparse_tensor"),
              {g("torch", "sparse_csr"), tuple({rows, columns, values, whole(shape)})});
}
std::string sparse_file(const std::string& content, const std::string& values, const std::string& first,
                        const std::string& second = {}) {
  std::vector<Member> all = members(named(content), values);
  all.push_back({"m/data/1", first});
  if (!second.empty()) all.push_back({"m/data/2", second});
  return zip(all);
}
std::string longs(const std::vector<std::uint64_t>& values) {
  std::string out;
  for (const std::uint64_t each : values) out += number(each, 8);
  return out;
}
std::string indices(const std::string& key, const std::vector<std::uint64_t>& shape) {
  std::uint64_t count = 1;
  for (const std::uint64_t each : shape) count *= each;
  std::vector<std::uint64_t> strides(shape.size(), 1);
  for (std::size_t n = shape.size(); n-- > 1;) strides[n - 1] = strides[n] * shape[n];
  return rebuild(storage("LongStorage", key, count), 0, shape, strides);
}

// A dictionary in a dictionary, and so on.
std::string deep(int depth) {
  std::string out = i(1);
  for (int n = 0; n < depth; ++n) out = dict({t("a"), out});
  return out;
}
// Lists that hold the one before twice.
std::string doubling(int rounds) {
  std::string out = dict({t("x"), i(1)}) + "q" + number(0, 1) + "0";
  for (int n = 0; n < rounds; ++n)
    out += dict({t("a"), "h" + number(static_cast<std::uint64_t>(n), 1), t("b"),
                 "h" + number(static_cast<std::uint64_t>(n), 1)}) +
           "q" + number(static_cast<std::uint64_t>(n) + 1, 1) + "0";
  return out + "h" + number(static_cast<std::uint64_t>(rounds), 1);
}

void add_archives(std::vector<core::CorpusCase>& out) {
  const std::string one = file(named(kOne));
  out.push_back({"end", "pytorch/end", one.substr(0, one.size() - 22)});
  out.push_back({"end-trailing", "pytorch/end", one + "x"});
  out.push_back({"disks", "pytorch/disks", zip(members(named(kOne)), {.disk = 1})});
  out.push_back({"directory", "pytorch/directory", zip(members(named(kOne)), {.offset_change = 1})});
  out.push_back({"entry", "pytorch/entry", zip(members(named(kOne)), {.entry_magic = 0x02014B51})});
  out.push_back({"member-utf8", "pytorch/member-utf8", more({{"m/\xff", "x"}})});
  out.push_back({"member-path", "pytorch/member-path", more({{"m/../../x", "x"}})});
  out.push_back({"duplicate-member", "pytorch/duplicate-member", more({{"m/data/0", counting(6)}})});
  const auto beside = [&](const std::string& name, const std::string& rule, const std::string& member) {
    out.push_back({name, "pytorch/" + rule, more({{member, counting(6)}})});
  };
  beside("member-case", "member-case", "m/DATA.PKL");
  beside("member-case-of-storage", "member-case", "m/Data/0");
  beside("member-case-of-folder", "member-case", "M/data/0");
  beside("member-case-alone", "member-case", "m/Constants.pkl");
  beside("member-case-byteorder", "member-case", "M/byteorder");
  out.push_back({"member-case-beside", "pytorch/member-case-beside", more({{"m/notes", "a"}, {"m/Notes", "b"}})});
  out.push_back({"member-folder", "pytorch/member-folder",
                 with(2, {.name = "m/data/0", .data = counting(6), .attributes = 0x10})});
  beside("member-folder-by-name", "member-folder", "m/data/1/");
  out.push_back({"valid-folder", "", more({{.name = "m/empty", .data = "", .attributes = 0x10}})});
  out.push_back({"overlap", "pytorch/overlap", zip(members(named(kOne)), {.moved = 60})});
  out.push_back({"local-header",
                 "pytorch/local-header",
                 with(2, {.name = "m/data/0", .data = counting(6), .local_name = "m/data/1"}),
                 {"pytorch/storage-missing"}});
  out.push_back({"member-size",
                 "pytorch/member-size",
                 with(2, {.name = "m/data/0", .data = counting(6), .size_change = 1}),
                 {"pytorch/storage-missing"}});
  out.push_back({"encrypted", "pytorch/encrypted", with(2, {.name = "m/data/0", .data = counting(6), .flags = 1})});
  out.push_back({"method", "pytorch/method", with(2, {.name = "m/data/0", .data = counting(6), .method = 12})});
  Member broken{.name = "m/data.pkl", .data = named(kOne), .method = 8};
  out.push_back({"deflate", "pytorch/deflate", with(0, broken), {"pytorch/deflate"}});
  out.push_back({"crc", "pytorch/crc", with(2, {.name = "m/data/0", .data = counting(6), .crc_change = 1})});
  out.push_back({"tar", "pytorch/tar", [] {
                   std::string header = "sys_info" + std::string(149, '\0') + std::string(100, '0') + "ustar";
                   header.resize(1024, '\0');
                   return header;
                 }()});
  out.push_back({"no-pickle", "pytorch/no-pickle", zip({{"m/other.pkl", pickle(i(1))}})});
  out.push_back(
      {"no-pickle-encrypted", "pytorch/no-pickle", with(0, {.name = "m/data.pkl", .data = named(kOne), .flags = 1})});
  out.push_back({"no-pickle-no-folder", "pytorch/no-pickle", zip({{"data.pkl", pickle(i(1))}})});
  out.push_back({"byteorder", "pytorch/byteorder", with(1, {"m/byteorder", "middle"})});
  out.push_back({"code", "pytorch/code", more({{"m/code/__torch__.py", "pass"}})});

  out.push_back({"valid-one", "", one});
  out.push_back({"valid-nested", "",
                 file(pickle(dict({t("model"), dict({t("w"), kOne}), t("epoch"), i(3), t("lr"),
                                   "G" + std::string("\x3f\xb9\x99\x99\x99\x99\x99\x9a"), i(7), t("seven"), t("list"),
                                   list({kOne, i(1)}), t("empty"), dict({}), t("flags"), tuple({kTrue, kFalse}),
                                   t("none"), kNone, t("texts"), list({t("a"), t("b")})})))});
  out.push_back({"valid-tensor-alone", "", file(pickle(kOne))});
  out.push_back({"valid-list", "", file(pickle(list({kOne, kOne})))});
  out.push_back({"valid-views", "",
                 file(pickle(dict({t("base"), kOne, t("row"), rebuild(storage("ByteStorage", "0", 6), 3, {3}, {1}),
                                   t("transposed"), bytes_tensor({3, 2}, {1, 3}), t("expanded"),
                                   bytes_tensor({4, 2}, {0, 1}), t("every_second"), bytes_tensor({3}, {2}), t("scalar"),
                                   rebuild(storage("ByteStorage", "0", 6), 5, {}, {}), t("empty"),
                                   bytes_tensor({0, 3}, {3, 1}), t("one_element"), bytes_tensor({1, 1}, {9, 9})})))});
  out.push_back({"valid-deflate", "", [] {
                   std::vector<Member> all = members(named(kOne));
                   for (Member& each : all) each.deflate = true;
                   all[0].data = pickle(dict({t("w"), kOne, t("end"),
                                              rebuild(storage("ByteStorage", "0", 6), 3, {3}, {1}), t("bool"), kTrue}));
                   return zip(all, {.padded = false});
                 }()});
  out.push_back({"strided-deflate", "pytorch/strided-deflate", [] {
                   std::vector<Member> all = members(named(bytes_tensor({3, 2}, {1, 3})));
                   all[2].deflate = true;
                   return zip(all, {.padded = false});
                 }()});
  out.push_back({"valid-without-padding", "", zip(members(named(kOne)), {.padded = false})});
  out.push_back({"valid-big-endian", "", [] {
                   std::vector<Member> all = members(named(rebuild(storage("ShortStorage", "0", 3), 0, {3}, {1})));
                   all[1].data = "big";
                   return zip(all);
                 }()});
  out.push_back(
      {"valid-other-folder", "", zip({{"x/readme", "text"}, {"m/data.pkl", named(kOne)}, {"m/data/0", counting(6)}})});
  out.push_back(
      {"valid-script", "pytorch/code",
       zip({{"m/data.pkl", pickle(g("__torch__", "Net") + ")\x81" + dict({t("w"), kOne, t("training"), kFalse}) + "b")},
            {"m/code/__torch__.py", "class Net"},
            {"m/constants.pkl", pickle(tuple({bytes_tensor({2}, {1}, 2)}))},
            {"m/data/0", counting(6)},
            {"m/constants/0", counting(2)}})});
}

void add_pickles(std::vector<core::CorpusCase>& out) {
  out.push_back({"pickle", "pytorch/pickle", file("\x80\x02}")});
  out.push_back({"pickle-stack", "pytorch/pickle", file(pickle("u"))});
  out.push_back({"pickle-below-mark", "pytorch/pickle", file(pickle("K\x01(R"))});
  out.push_back({"pickle-memo", "pytorch/pickle", file(pickle("h\x07"))});
  out.push_back({"pickle-opcode", "pytorch/pickle", file(pickle("\xff"))});
  out.push_back({"pickle-odd-items", "pytorch/pickle", file(pickle("}(K\x01u"))});
  out.push_back({"pickle-long-string", "pytorch/pickle", file(pickle("X\xff\xff\xff\xff"))});
  out.push_back({"pickle-protocol-6", "pytorch/pickle", file("\x80\x06N.")});
  out.push_back({"pickle-dict-of-list", "pytorch/pickle", file(pickle("](K\x01K\x02u"))});
  out.push_back({"pickle-number", "pytorch/pickle", file(pickle("Ix\n"))});
  out.push_back({"pickle-text", "pytorch/pickle", file(pickle("S'x\n"))});
  const auto framed = [](std::uint64_t length, const std::string& rest) {
    return "\x80\x04\x95" + number(length, 8) + rest;
  };
  out.push_back({"pickle-frame-in-opcode", "pytorch/pickle", file(framed(2, raw(counting(6)) + "0N."))});
  out.push_back({"pickle-frame-in-line", "pytorch/pickle", framed(3, "Vabc\n.")});
  out.push_back({"pickle-frame-in-frame", "pytorch/pickle", framed(13, "N0\x95" + number(1, 8) + "N.")});
  out.push_back({"pickle-frame-after-end", "pytorch/pickle", framed(4, "K\x07.") + "N."});
  out.push_back({"pickle-frame-past-file", "pytorch/pickle", framed(40, "K\x07.")});
  out.push_back({"protocol", "pytorch/protocol", legacy(dict({}), {}, {}, 1002)});
  out.push_back({"storage-list",
                 "pytorch/storage-list",
                 legacy(dict({t("w"), kOld}), {"0"}, stored(counting(6), 7)),
                 {"file/zero-tail"}});
  out.back().others.clear();
  out.push_back({"storage-list-unnamed", "pytorch/storage-list", legacy(dict({}), {"0"}, stored(counting(6), 6))});
  out.push_back({"storage-list-twice", "pytorch/storage-list",
                 legacy(dict({t("w"), kOld}), {"0", "0"}, stored(counting(6), 6) + stored(counting(6), 6))});
  out.push_back({"storage-list-end", "pytorch/storage-list", legacy(dict({t("w"), kOld}), {"0"}, "123")});
  out.push_back({"names", "pytorch/names", file(pickle(doubling(40)))});
  out.push_back({"name-utf8", "pytorch/name-utf8", file(pickle(dict({t("\xff"), kOne})))});
  out.push_back({"name-utf8-of-value", "pytorch/name-utf8", file(pickle(dict({t("\xff"), i(1)})))});
  core::CorpusCase depth{"limit-depth", "limit/depth", file(pickle(deep(5)))};
  depth.limits.depth = 4;
  depth.generated_only = true;
  out.push_back(std::move(depth));
  core::CorpusCase memory{"limit-memory", "limit/memory", file(pickle("(" + std::string(4096, ']') + "t"))};
  memory.limits.memory = 16384;
  memory.generated_only = true;
  out.push_back(std::move(memory));
  core::CorpusCase tensors{"limit-tensors", "limit/tensors", file(pickle(list({kOne, kOne})))};
  tensors.limits.tensors = 4;
  tensors.generated_only = true;
  out.push_back({"duplicate-name", "pytorch/duplicate-name", file(pickle(dict({i(1), kOne, t("1"), kOne})))});
  out.push_back({"valid-key-twice", "", file(pickle(dict({t("w"), kOne, t("k"), i(1), t("k"), i(2), t("w"), i(5)})))});
  out.push_back({"duplicate-value", "pytorch/duplicate-value", file(pickle(dict({i(1), i(2), t("1"), i(3)})))});
  out.push_back({"opaque",
                 "pytorch/opaque",
                 file(pickle(dict({t("x"), call(g("mine", "Thing"), {i(1)}), t("w"), kOne}))),
                 {"pytorch/unknown-global"}});
  out.push_back({"opaque-itself", "pytorch/opaque",
                 file(pickle("}q" + number(0, 1) + "(" + t("me") + "h" + number(0, 1) + t("w") + kOne + "u"))});
  out.push_back(
      {"trailing-data", "pytorch/trailing-data", legacy(dict({t("w"), kOld}), {"0"}, stored(counting(6), 6) + "x")});
  out.push_back({"trailing-data-of-pickle", "pytorch/trailing-data", pickle(dict({t("a"), i(1)})) + "\n"});

  out.push_back({"valid-legacy", "", legacy(dict({t("w"), kOld, t("n"), i(4)}), {"0"}, stored(counting(6), 6))});
  out.push_back({"valid-legacy-view", "",
                 legacy(dict({t("w"), rebuild(tuple({t("storage"), g("torch", "ByteStorage"), t("0"), t("cpu"), i(6),
                                                     tuple({t("1"), i(2), i(4)})}) +
                                                  "Q",
                                              1, {3}, {1})}),
                        {"0"}, stored(counting(6), 6))});
  out.push_back({"valid-pickle", "", pickle(dict({t("a"), i(1), t("b"), list({t("x"), t("y")})}))});
  out.push_back({"valid-pickle-text", "", "(dp0\nS'a'\np1\nI1\nsS'b'\nF0.5\nsS'c'\nL12L\nsVd\\u00e9\nI01\ns."});
  out.push_back({"valid-pickle-5", "",
                 "\x80\x05\x95" + number(18, 8) +
                     "}\x94(\x8c\x01"
                     "a\x94K\x01\x8c\x01"
                     "b\x94\x8f\x94(K\x01\x90u."});
  out.push_back({"valid-module", "pytorch/unknown-global",
                 file(pickle(g("mine", "Net") + ")\x81" +
                             dict({t("training"), kTrue, t("_parameters"), dict({t("w"), kOne}), t("_buffers"),
                                   dict({}), t("_modules"), dict({t("none"), kNone})}) +
                             "b"))});
  out.push_back(
      {"valid-values", "",
       file(pickle(dict(
           {t("size"),
            call(g("torch", "Size"), {whole({2, 3})}),
            t("device"),
            call(g("torch", "device"), {t("cuda"), i(1)}),
            t("dtype"),
            g("torch", "float16"),
            t("args"),
            g("argparse", "Namespace") + ")\x81" + dict({t("seed"), i(1)}) + "b",
            t("path"),
            call(g("pathlib", "PosixPath"), {t("/"), t("a"), t("b")}),
            t("set"),
            call(g("__builtin__", "set"), {list({i(1), i(2)})}),
            t("bytes"),
            latin1("\xC3\xBF"
                   "a"),
            t("date"),
            call(g("datetime", "datetime"), {latin1("\x07\xC3\xAA\x01\x02\x03\x04\x05" + std::string(3, '\0'))}),
            t("scalar"),
            call(g("numpy.core.multiarray", "scalar"), {numpy_type("i4", "<"), latin1(std::string("\x05\0\0\0", 4))}),
            t("big"),
            "\x8a\x0a" + std::string(9, '\1') + "\x01",
            t("unsigned"),
            "\x8a\x09" + std::string(8, '\xff') + std::string(1, '\0')})))});
  const auto scalar = [](const std::string& code, const std::string& order, const std::string& bytes) {
    return call(g("numpy.core.multiarray", "scalar"), {numpy_type(code, order), raw(bytes)});
  };
  out.push_back(
      {"valid-numpy-scalars", "",
       pickle(dict({t("f8"), scalar("f8", "<", number(0x3FF8000000000000, 8)), t("f4"),
                    scalar("f4", ">", std::string("\x3f\xc0\0\0", 4)), t("f2"), scalar("f2", "<", number(0x3800, 2)),
                    t("i2"), scalar("i2", ">", "\xff\xfe"), t("c8"), scalar("c8", "<", floats(2)), t("U2"),
                    scalar("U2", "<", std::string("a\0\0\0\0\0\0\0", 8)), t("b1"), scalar("b1", "|", "\1")}))});
  // A str of Python 2 has the bytes as they are.
  const auto old = [](const std::string& bytes) { return "U" + number(bytes.size(), 1) + bytes; };
  out.push_back(
      {"valid-numpy-of-python-2", "",
       pickle(dict({old("w"), numpy_array(old("\xff\x80\xc3\xbf"), whole({2}), numpy_type("u2", "<")), old("s"),
                    call(g("numpy.core.multiarray", "scalar"), {numpy_type("u1", "|"), old("\xff")})}))});
  const auto joblib = [](const std::string& code, const std::string& order, std::uint64_t size, const std::string& data,
                         const std::vector<std::string>& more) {
    return g("joblib.numpy_pickle", "NumpyArrayWrapper") + ")\x81" +
           [&] {
             std::vector<std::string> state{
                 t("subclass"), g("numpy", "ndarray"),  t("shape"), whole({size}), t("order"), t("C"),
                 t("dtype"),    numpy_type(code, order)};
             state.insert(state.end(), more.begin(), more.end());
             return dict(state);
           }() +
           "b" + data;
  };
  const std::vector<std::string> aligned{t("numpy_array_alignment_bytes"), i(16)};
  out.push_back({"valid-joblib", "",
                 pickle(dict({t("w"), joblib("u1", "|", 4, "\2\xff\xff" + counting(4), aligned), t("old"),
                              joblib("i2", ">", 2, counting(4), {}), t("n"), i(7)}))});
  const std::string objects = pickle(list({t("a"), t("b")}));
  out.push_back({"object-joblib", "pytorch/object",
                 pickle(dict({t("w"), joblib("O8", "|", 2, objects, aligned), t("n"), i(7)}))});
  const std::string beside = danger() + "0";
  out.push_back({"dangerous-global-in-joblib-objects",
                 "pytorch/object",
                 pickle(dict({t("w"), joblib("O8", "|", 2, pickle(list({danger(), kNone})), aligned)})),
                 {"pytorch/dangerous-global"}});
  out.push_back({"dangerous-global-behind-joblib", "pytorch/dangerous-global",
                 pickle(dict({t("w"), joblib("u1", "|", 4, std::string(1, '\0') + counting(4), aligned) + beside}))});
  out.push_back({"dangerous-global-as-joblib-data", "pytorch/dangerous-global",
                 pickle(dict({t("w"), joblib("u1", "|", beside.size(), beside, {})}))});
  out.push_back(
      {"pickle-joblib-end", "pytorch/pickle", pickle(dict({t("w"), joblib("u1", "|", 4, "\2\xff", aligned)}))});
  out.push_back(
      {"valid-numpy", "",
       file(pickle(dict({t("raw"), numpy_array(raw(counting(6)), whole({2, 3}), numpy_type("u1", "|")), t("text"),
                         numpy_array(latin1("\x01\xC3\xBF"), whole({2}), numpy_type("u1", "|")), t("big"),
                         numpy_array(raw(counting(4)), whole({2}), numpy_type("i2", ">")), t("fortran"),
                         numpy_array(raw(counting(6)), whole({2, 3}), numpy_type("u1", "|"), kTrue)})))});
}

void add_tensors(std::vector<core::CorpusCase>& out) {
  const auto add = [&](const std::string& name, const std::string& rule, const std::string& value,
                       const std::string& data = counting(6), std::vector<std::string> others = {}) {
    out.push_back({name, rule.empty() ? "" : "pytorch/" + rule, file(named(value), data), std::move(others)});
  };
  add("tensor", "tensor", call(g("torch._utils", "_rebuild_tensor_v2"), {storage("ByteStorage", "0", 6), i(0)}));
  add("tensor-rank-of-strides", "tensor", bytes_tensor({2, 3}, {1}));
  add("tensor-negative", "tensor", rebuild(storage("ByteStorage", "0", 6), 0, {2, 3}, {UINT64_MAX, 1}));
  add("tensor-parameter", "tensor", call(g("torch._utils", "_rebuild_parameter"), {i(1), kTrue, hooks()}));
  add("storage-id", "storage-id", rebuild(i(1), 0, {2, 3}, {3, 1}));
  add("storage-id-tuple", "storage-id", rebuild(tuple({t("storage"), i(1)}) + "Q", 0, {2}, {1}));
  add("storage-id-text", "storage-id", rebuild(t("0") + "Q", 0, {2}, {1}));
  out.push_back({"valid-storage-of-two-types", "",
                 file(pickle(dict({t("a"), kOne, t("b"), rebuild(storage("CharStorage", "0", 6), 0, {6}, {1})})))});
  add("storage-type", "storage-type", rebuild(storage("MyStorage", "0", 6), 0, {6}, {1}), counting(6),
      {"pytorch/unknown-global"});
  add("storage-missing", "storage-missing", rebuild(storage("ByteStorage", "9", 6), 0, {6}, {1}));
  add("storage-size", "storage-size", kOne, counting(5));
  add("rank", "rank", bytes_tensor(std::vector<std::uint64_t>(65, 1), std::vector<std::uint64_t>(65, 1)));
  add("size-overflow", "size-overflow",
      bytes_tensor({std::uint64_t{1} << 40, std::uint64_t{1} << 40}, {std::uint64_t{1} << 40, 1}));
  add("view", "view", rebuild(storage("ByteStorage", "0", 6), 1, {2, 3}, {3, 1}));
  add("view-stride", "view", bytes_tensor({2, 3}, {4, 1}));
  add("view-overflow", "view", bytes_tensor({3, 3}, {std::uint64_t{1} << 62, std::uint64_t{1} << 62}));
  add("view-offset-overflow", "view", rebuild(storage("ByteStorage", "0", 6), (std::uint64_t{1} << 63) - 1, {3}, {1}));
  add("unknown-dtype", "unknown-dtype", rebuild(storage("ComplexHalfStorage", "0", 1), 0, {1}, {1}));
  add("unknown-dtype-v3", "unknown-dtype", rebuild_v3("float3_e9m9", 6, {6}, {1}), counting(6),
      {"pytorch/unknown-global"});
  add("unknown-dtype-of-numpy", "unknown-dtype", numpy_array(raw(counting(8)), whole({1}), numpy_type("M8", "<")));
  add("object", "object", numpy_array(list({i(1)}), whole({1}), numpy_type("O8", "|")));
  add("text", "text", numpy_array(raw("ab"), whole({1}), numpy_type("S2", "|")));
  const auto quantized = [](const std::string& type, const std::string& how) {
    return call(g("torch._utils", "_rebuild_qtensor"),
                {storage(type, "0", 6), i(0), whole({2, 3}), whole({3, 1}), how, kFalse, hooks()});
  };
  const std::string half = "G" + std::string("\x3f\xe0\0\0\0\0\0\0", 8);
  const std::string scales = rebuild(storage("DoubleStorage", "1", 2), 0, {2}, {1});
  add("quantized", "quantized",
      quantized("QInt8Storage", tuple({g("torch", "per_channel_affine_float_qparams"), scales, scales, i(0)})));
  add("quantized-packed", "quantized",
      quantized("QUInt4x2Storage", tuple({g("torch", "per_tensor_affine"), half, i(0)})));
  add("quantized-channels", "quantized",
      quantized("QInt8Storage", tuple({g("torch", "per_channel_affine"), scales, indices("2", {3}), i(0)})));
  add("valid-quantized", "", quantized("QUInt8Storage", tuple({g("torch", "per_tensor_affine"), half, i(2)})));
  out.push_back(
      {"valid-quantized-channels", "",
       sparse_file(
           quantized("QInt8Storage", tuple({g("torch", "per_channel_affine"), scales, indices("2", {2}), i(0)})),
           counting(6), number(0x3FE0000000000000, 8) + number(0x4000000000000000, 8), longs({0, 1}))});
  add("valid-conjugated", "", rebuild(storage("ComplexFloatStorage", "0", 2), 0, {2}, {1}, {dict({t("conj"), kTrue})}),
      floats(4));
  add("valid-negated", "", rebuild(storage("ShortStorage", "0", 3), 0, {3}, {1}, {dict({t("neg"), kTrue})}));
  add("conjugate", "conjugate", rebuild(storage("ByteStorage", "0", 6), 0, {6}, {1}, {dict({t("conj"), kTrue})}));
  add("conjugate-false", "conjugate", rebuild(storage("ByteStorage", "0", 6), 0, {6}, {1}, {dict({t("neg"), kFalse})}));
  add("meta", "meta",
      call(g("torch._utils", "_rebuild_meta_tensor_no_storage"),
           {g("torch", "float32"), whole({2, 3}), whole({3, 1}), kFalse}));
  add("subclass", "subclass",
      call(g("torch._utils", "_rebuild_wrapper_subclass"),
           {g("mine", "Wrapped"), g("torch", "float32"), whole({2, 3}), whole({3, 1}), i(0), g("torch", "strided"),
            call(g("torch", "device"), {t("cpu")}), kFalse}),
      counting(6), {"pytorch/unknown-global"});
  add("numpy-size", "storage-size", numpy_array(raw(counting(5)), whole({2, 3}), numpy_type("u1", "|")));
  add("numpy-size-of-text", "storage-size", numpy_array(latin1("abc"), whole({2, 3}), numpy_type("u1", "|")));
  add("bool-byte", "bool-byte", rebuild(storage("BoolStorage", "0", 3), 0, {3}, {1}), std::string("\0\1\2", 3));
  out.push_back({"bool-byte-deflate", "pytorch/bool-byte", [] {
                   std::vector<Member> all =
                       members(named(rebuild(storage("BoolStorage", "0", 3), 1, {2}, {1})), std::string("\2\1\2", 3));
                   all[2].deflate = true;
                   return zip(all, {.padded = false});
                 }()});

  const std::string values = rebuild(storage("FloatStorage", "0", 2), 0, {2}, {1});
  const std::string hybrid = rebuild(storage("FloatStorage", "0", 2), 0, {2, 1}, {1, 1});
  out.push_back({"sparse", "pytorch/sparse",
                 sparse_file(coo(indices("1", {2, 2}), hybrid, {2, 3, 1}), floats(2), longs({0, 1, 0, 2}))});
  out.push_back({"indptr", "pytorch/indptr",
                 sparse_file(csr(indices("1", {3}), indices("2", {2}), values, {2, 3}), floats(2), longs({0, 1, 1}),
                             longs({0, 2}))});
  out.push_back({"index-range", "pytorch/index-range",
                 sparse_file(coo(indices("1", {2, 2}), values, {2, 3}), floats(2), longs({0, 2, 0, 2}))});
  out.push_back({"duplicate-entries", "pytorch/duplicate-entries",
                 sparse_file(coo(indices("1", {2, 2}), values, {2, 3}), floats(2), longs({1, 1, 2, 2}))});
  core::CorpusCase unchecked{
      "duplicate-entries-unchecked", "pytorch/duplicate-entries-unchecked",
      sparse_file(coo(indices("1", {1, 2000}), rebuild(storage("FloatStorage", "0", 2000), 0, {2000}, {1}), {4000}),
                  floats(2000), [] {
                    std::vector<std::uint64_t> at;
                    for (std::uint64_t n = 0; n < 2000; ++n) at.push_back(n);
                    return longs(at);
                  }())};
  unchecked.limits.memory = 8192;
  unchecked.generated_only = true;
  out.push_back(std::move(unchecked));
  out.push_back(
      {"valid-coo", "", sparse_file(coo(indices("1", {2, 2}), values, {2, 3}), floats(2), longs({0, 1, 0, 2}))});
  out.push_back({"valid-csr", "",
                 sparse_file(csr(indices("1", {3}), indices("2", {2}), values, {2, 3}), floats(2), longs({0, 1, 2}),
                             longs({0, 2}))});
  for (const ElementType& type : kTypes)
    if (type.dtype != DType::unknown) {
      const std::string data = type.dtype == DType::boolean ? std::string("\1\0", 2) : counting(2 * type.bytes);
      const std::string from(type.storage);
      add("valid-dtype-" + std::string(type.name), "",
          from.empty() ? rebuild_v3(std::string(type.name), 2 * type.bytes, {2}, {1})
                       : rebuild(storage(from, "0", 2), 0, {2}, {1}),
          data);
    }
  add("valid-parameter", "",
      call(g("torch._utils", "_rebuild_parameter"),
           {rebuild(storage("HalfStorage", "0", 3), 0, {3}, {1}), kTrue, hooks()}));
  add("valid-from-type", "",
      call(g("torch._tensor", "_rebuild_from_type_v2"),
           {g("torch._utils", "_rebuild_tensor_v2"), g("torch.nn.parameter", "Parameter"),
            tuple({storage("ByteStorage", "0", 6), i(0), whole({6}), whole({1}), kFalse, hooks()}), dict({})}));
  add("valid-storage-alone", "", storage("ByteStorage", "0", 6));
}

void add_hostile(std::vector<core::CorpusCase>& out) {
  const auto hostile = [&](const std::string& name, std::string bytes, std::vector<std::string> others = {}) {
    out.push_back({name, "pytorch/dangerous-global", std::move(bytes), std::move(others)});
  };
  hostile("dangerous-global-of-another-pickle", more({{"m/extra.pkl", pickle(danger())}}));
  hostile("dangerous-global-without-extension", more({{"m/extra", pickle(danger())}}));
  hostile("dangerous-global-in-bytes", file(pickle(dict({t("w"), kOne, t("x"), raw(pickle(danger()))}))));
  hostile("dangerous-global-behind-another", pickle(dict({t("a"), i(1)})) + pickle(danger()));
  out.back().rule = "pytorch/trailing-data";
  out.back().others = {"pytorch/dangerous-global"};
  out.push_back({"dangerous-global",
                 "pytorch/dangerous-value",
                 file(pickle(dict({t("x"), danger(), t("w"), kOne}))),
                 {"pytorch/dangerous-global"}});
  hostile("dangerous-global-not-called", file(pickle(g("os", "system") + "0" + dict({t("w"), kOne}))));
  hostile("dangerous-global-computed", file(pickle(t("os") +
                                                   "K\x01\x93"
                                                   "0" +
                                                   dict({t("w"), kOne}))));
  hostile("dangerous-global-by-attributes",
          file(pickle(g("torch.serialization", "os.system") + "0" + dict({t("w"), kOne}))));
  out.push_back(
      {"pickle-before-the-break", "pytorch/pickle", "\x80\x02" + danger() + "X\xff\xff", {"pytorch/dangerous-global"}});
  out.push_back(
      {"unknown-global", "pytorch/unknown-global", file(pickle(g("mine", "Thing") + "0" + dict({t("w"), kOne})))});
  std::string deep = pickle(danger());
  for (int n = 0; n < 9; ++n) deep = pickle(raw(deep));
  out.push_back({"unread-pickle", "pytorch/unread-pickle", deep});
  out.push_back(
      {"unread-pickle-bzip2", "pytorch/unread-pickle", pickle(dict({t("x"), raw("BZh91AY&SY" + counting(20))}))});
  out.push_back({"unread-pickle-frame", "pytorch/unread-pickle",
                 pickle(dict({t("x"), raw("\x80\x04\x95" + number(3, 8) + "Vabc\n.")}))});
  out.push_back({"unknown-global-run", "pytorch/unknown-global",
                 pickle(call(g("transformers.training_args", "TrainingArguments"), {t("x")}) + "0N")});
  hostile("dangerous-global-in-base64", pickle(dict({t("x"), t("gAJjb3MKc3lzdGVtCilSLg==")})));
  out.push_back({"unknown-global-extension", "pytorch/unknown-global",
                 file(pickle("\x82\x07"
                             "0" +
                             dict({t("w"), kOne})))});
}

// An index beside one shard of two tensors, w and v, of six bytes each.
void add_shards(std::vector<core::CorpusCase>& out) {
  const std::string both = file(pickle(dict({t("w"), kOne, t("v"), kOne})));
  const auto add = [&](std::string name, std::string rule, const std::string& index, std::string shard) {
    std::string of_shard = name + "-00001-of-00001.bin", text = index;
    for (std::size_t at; (at = text.find('$')) != std::string::npos;) text.replace(at, 1, of_shard);
    if (!rule.empty()) rule.insert(0, "pytorch/");
    core::CorpusCase& c = out.emplace_back();
    c.name = std::move(name);
    c.rule = std::move(rule);
    c.bytes = std::move(text);
    c.extension = "bin.index.json";
    c.sidecar = core::CorpusSidecar{.extension = {}, .bytes = std::move(shard), .name = std::move(of_shard)};
  };
  // Shards whose metadata differ, for registry/sharded_index_test.cc.
  const auto stepped = [&](const std::string& name, const std::string& tensor, std::int64_t step) {
    core::CorpusCase& c = out.emplace_back();
    c.name = name;
    c.bytes = file(pickle(dict({t(tensor), kOne, t("step"), i(step)})));
  };
  out.push_back({"shard-alone-00001-of-00002", "pytorch/shard-alone", both});
  out.back().extension = "bin";
  stepped("valid-metadata-one", "w", 1);
  stepped("valid-metadata-two", "v", 2);
  const std::string sound = R"({"metadata":{"total_size":12},"weight_map":{"v":"$","w":"$"}})";
  add("valid-index", "", sound, both);
  add("valid-index-without-size", "", R"({"weight_map":{"v":"$","w":"$"}})", both);
  add("index-json", "index-json", R"({"weight_map":{"v":"$","w":"$"})", both);
  add("index-json-behind-a-bad-value", "index-json", R"({"weight_map":{"v":1,"w":"$"})", both);
  add("index-value", "index-value", R"({"map":{"w":"$"}})", both);
  add("index-value-number", "index-value", R"({"weight_map":{"w":1}})", both);
  add("index-value-list", "index-value", R"({"weight_map":{"w":["$"],"v":"$"}})", both);
  add("index-duplicate-key", "index-duplicate-key", R"({"weight_map":{"v":"$","w":"$","v":"$"}})", both);
  add("index-duplicate-key-escaped", "index-duplicate-key", R"({"weight_map":{"v":"$","w":"$","\u0076":"$"}})", both);
  add("shard-path", "shard-path", R"({"weight_map":{"v":"$","w":"$","x":"../x.bin"}})", both);
  add("shard-missing", "shard-missing", R"({"weight_map":{"v":"$","w":"$","x":"other.bin"}})", both);
  add("shard-format", "shard-format", sound,
      std::string("\x93NUMPY\x01\0\x76\0{'descr': '|u1', 'fortran_order': False, "
                  "'shape': (2,), }",
                  65) +
          std::string(62, ' ') + "\nab");
  add("shard-is-text", "", sound, "this is no checkpoint at all");
  out.back().rule = "file/text";
  add("tensor-missing", "tensor-missing", R"({"weight_map":{"v":"$","w":"$","x":"$"}})", both);
  add("tensor-unlisted", "tensor-unlisted", R"({"weight_map":{"w":"$"}})", both);
  add("total-size", "total-size", R"({"metadata":{"total_size":13},"weight_map":{"v":"$","w":"$"}})", both);
}

}  // namespace

std::vector<core::CorpusCase> cases() {
  std::vector<core::CorpusCase> out;
  add_archives(out);
  add_pickles(out);
  add_tensors(out);
  add_hostile(out);
  add_shards(out);
  return out;
}

}  // namespace weighbridge::pytorch
