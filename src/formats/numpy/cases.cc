// SPDX-License-Identifier: Apache-2.0
// The corpora of npy and npz: for each rule the smallest file that breaks it, and valid files of every kind. The files
// are built by hand, not by the writer, so that reader and writer cannot share a mistake.
#include <string>
#include <utility>

#include "codecs/checksum.h"
#include "codecs/codec.h"
#include "core/model/numpy_types.h"
#include "formats/numpy/format.h"
#include "formats/numpy/layout.h"
#include "support/corpus_case.h"

namespace weighbridge::numpy {
namespace {

std::string number(std::uint64_t value, int bytes) {
  std::string out;
  for (int i = 0; i < bytes; ++i) out += static_cast<char>(i < 8 ? value >> (8 * i) & 0xFF : 0);
  return out;
}

// An array with this dictionary, padded as NumPy does.
std::string array(std::string dictionary, const std::string& data, int major = 1) {
  const std::size_t preamble = major == 1 ? kPreamble1 : kPreamble2;
  dictionary.append(kAlignment - 1 - (preamble + dictionary.size()) % kAlignment, ' ');
  dictionary += '\n';
  return std::string(kMagic) + static_cast<char>(major) + '\0' + number(dictionary.size(), major == 1 ? 2 : 4) +
         dictionary + data;
}
std::string dictionary(const std::string& descr, const std::string& shape, const std::string& fortran = "False") {
  return "{'descr': " + descr + ", 'fortran_order': " + fortran + ", 'shape': " + shape + ", }";
}
std::string typed(const std::string& type, const std::string& shape, const std::string& data,
                  const std::string& fortran = "False") {
  return array(dictionary("'" + type + "'", shape, fortran), data);
}

std::string counting(std::size_t bytes) {
  std::string out;
  for (std::size_t i = 0; i < bytes; ++i) out += static_cast<char>(i);
  return out;
}

const std::string kFour = "\x01\x02\x03\x04";
const std::string kOne = typed("|u1", "(4,)", kFour);

std::uint32_t crc_of(const std::string& bytes) { return codecs::crc32(std::as_bytes(std::span(bytes))); }
std::string deflated(const std::string& bytes) {
  const auto out = codecs::encode(codecs::kDeflate, std::as_bytes(std::span(bytes)));
  return {reinterpret_cast<const char*>(out.data()), out.size()};
}

// A member, with fields that differ from what they should be.
struct Member {
  std::string name{}, data{};
  bool deflate = false;
  std::uint16_t method = 0, flags = 0;
  bool descriptor = false;  // sizes behind the data, and none before it
  bool zip64 = false;       // sizes in the extra field of the directory
  std::string local_name{}, extra{};
  bool local_zip64 = false;  // the sizes of the local header are full, so that the extra field has to say them
  std::string stored{};      // in place of what data is stored as
  std::uint32_t crc_change = 0, size_change = 0, local_change = 0;
};

struct Archive {
  std::vector<Member> members;
  std::string comment{}, before_end{};
  std::uint32_t offset_change = 0, size_change = 0;
  std::uint16_t disk = 0, count_change = 0;
  std::uint32_t entry_magic = 0x02014B50;
  std::uint64_t moved = 0;  // how far the last member's local header is said to be before its place
  bool zip64 = false;
};

std::string zip(const Archive& archive) {
  std::string out, directory;
  for (const Member& m : archive.members) {
    const bool final_one = &m == &archive.members.back();
    const std::string stored = !m.stored.empty() ? m.stored : m.deflate ? deflated(m.data) : m.data;
    const std::uint16_t method = m.method != 0 ? m.method : m.deflate ? 8 : 0;
    const std::uint16_t flags = static_cast<std::uint16_t>(m.flags | (m.descriptor ? 8 : 0));
    const std::uint32_t crc = crc_of(m.data) ^ m.crc_change;
    const std::uint64_t size = m.data.size() + m.size_change, at = out.size();
    const std::string& local_name = m.local_name.empty() ? m.name : m.local_name;
    out += "PK\x03\x04" + number(20, 2) + number(flags, 2) + number(method, 2) + number(0x00210000, 4);
    out += m.descriptor ? std::string(4, '\0') : number(crc, 4);
    out += m.local_zip64  ? number(UINT64_MAX, 8)
           : m.descriptor ? std::string(8, '\0')
                          : number(stored.size() + m.local_change, 4) + number(size, 4);
    out += number(local_name.size(), 2) + number(m.extra.size(), 2) + local_name + m.extra + stored;
    if (m.descriptor) out += "PK\x07\x08" + number(crc, 4) + number(stored.size(), 4) + number(size, 4);
    const std::string wide =
        !m.zip64 ? std::string()
                 : number(1, 2) + number(24, 2) + number(size, 8) + number(stored.size(), 8) + number(at, 8);
    directory += number(archive.entry_magic, 4) + number(45, 2) + number(20, 2) + number(flags, 2) + number(method, 2) +
                 number(0x00210000, 4) + number(crc, 4);
    directory += m.zip64 ? number(UINT64_MAX, 8) : number(stored.size(), 4) + number(size, 4);
    directory += number(m.name.size(), 2) + number(wide.size(), 2) + std::string(10, '\0');
    directory += m.zip64 ? number(UINT64_MAX, 4) : number(final_one ? at - archive.moved : at, 4);
    directory += m.name + wide;
  }
  const std::uint64_t at = out.size() + archive.offset_change, size = directory.size() + archive.size_change,
                      count = archive.members.size() + archive.count_change;
  out += directory;
  if (archive.zip64) {
    const std::uint64_t end = out.size();
    out += "PK\x06\x06" + number(44, 8) + number(45, 2) + number(45, 2) + std::string(8, '\0') + number(count, 8) +
           number(count, 8) + number(size, 8) + number(at, 8);
    out += "PK\x06\x07" + number(0, 4) + number(end, 8) + number(1, 4);
    out += "PK\x05\x06" + std::string(4, '\0') + number(UINT32_MAX, 4) + number(UINT64_MAX, 8) + number(0, 2);
    return out;
  }
  out += archive.before_end;
  out += "PK\x05\x06" + number(archive.disk, 2) + number(archive.disk, 2) + number(count, 2) + number(count, 2) +
         number(size, 4) + number(at, 4) + number(archive.comment.size(), 2) + archive.comment;
  return out;
}
std::string zip(const std::string& name, const std::string& data) { return zip({.members = {{name, data}}}); }

using Corpus = core::CorpusCases;

// A pickle of protocol 4.
std::string pickle(const std::string& opcodes) { return "\x80\x04" + opcodes + "."; }
std::string global(const std::string& module, const std::string& name) { return "c" + module + "\n" + name + "\n"; }
std::string text(const std::string& value) { return "\x8c" + number(value.size(), 1) + value; }
// What numpy.save() pickles of an array of two objects, which are those on the stack.
std::string two_objects(const std::string& objects) {
  return pickle(global("numpy._core.multiarray", "_reconstruct") + global("numpy", "ndarray") +
                std::string("K\0\x85", 3) + std::string("C\x01", 2) + "b" + "\x87R(K\x01K\x02\x85" +
                global("numpy", "dtype") + text("O8") + "\x89\x88\x87R(K\x03" + text("|") +
                "NNNJ\xff\xff\xff\xffJ\xff\xff\xff\xffK\x3ft" + "b\x89](" + objects + "etb");
}

// Calls each(name, rule, array, further rules) for each way in which one array can be valid or broken. An npz has the
// same in a member.
template <class Each> void for_each_array(Each each) {
  const auto use = [&](const std::string& name, const std::string& rule, const std::string& bytes,
                       const std::vector<std::string>& others = {}) { each(name, rule, bytes, others); };
  use("valid-one", "", kOne);
  use("valid-scalar", "", typed("<f8", "()", counting(8)));
  use("valid-empty", "", typed("<f4", "(0, 3)", ""));
  use("valid-empty-large-dimensions", "", typed("|u1", "(9223372036854775807, 0)", ""));
  use("valid-big-endian", "", typed(">f4", "(2,)", counting(8)));
  use("valid-fortran-order", "", typed("<i2", "(2, 3)", counting(12), "True"));
  use("valid-fortran-order-big-endian", "", typed(">c8", "(2, 1, 2)", counting(32), "True"));
  use("valid-fortran-order-one-dimension", "", typed("<i4", "(3,)", counting(12), "True"));
  use("valid-fortran-order-empty", "", typed("<i4", "(3, 0)", "", "True"));
  use("valid-bool", "", typed("|b1", "(2, 2)", std::string("\0\1\1\0", 4)));
  use("valid-version-2", "", array(dictionary("'<u4'", "(1,)"), kFour, 2));
  use("valid-version-3", "", array(dictionary("'<u4'", "(1,)"), kFour, 3));
  use("valid-python-2-numbers", "", typed("<u4", "(1L, 1L)", kFour));
  use("valid-double-quotes", "", array("{\"shape\": (1, 4) , \"descr\": \"<i1\",\"fortran_order\":True}", kFour));
  use("valid-native-order", "", typed("=i4", "(1,)", kFour));
  std::string ones = "(";
  for (std::size_t i = 0; i < kMaxRank; ++i) ones += "1, ";
  use("valid-rank-64", "", typed("<i4", ones + ")", kFour));
  for (const core::NumpyType& type : core::kNumpyTypes)
    if (type.ml_dtype.empty())
      use("valid-dtype-" + std::string(name(type.dtype)), "",
          typed(std::string(type.text), "(2, 2)",
                type.dtype == DType::boolean ? std::string("\1\0\0\1", 4) : counting(info(type.dtype).bits / 2)));

  use("magic", "magic", "\x92NUMPY" + kOne.substr(6));
  use("version-0", "version", kOne.substr(0, 6) + std::string("\0\0", 2) + kOne.substr(8));
  use("version-4", "version", kOne.substr(0, 6) + std::string("\4\0", 2) + kOne.substr(8));
  use("version-1.1", "version", kOne.substr(0, 6) + "\1\1" + kOne.substr(8));
  use("truncated-header", "truncated-header", kOne.substr(0, 40));
  use("truncated-header-length", "truncated-header", kOne.substr(0, 9));
  use("header-length", "header-length", array(dictionary("'<u4'", "(1,)") + std::string(10'000, ' '), kFour));
  use("header-length-most", "header-length",
      kOne.substr(0, 6) + std::string("\2\0", 2) + number(UINT32_MAX, 4) + kOne.substr(10));
  use("header-utf8", "header-utf8", array(dictionary("[('\xff', '<f4')]", "(1,)"), kFour, 3));
  const auto literal = [&](const char* name, const std::string& text) { use(name, "header", array(text, kFour)); };
  literal("header", "[1, 2]");
  literal("header-empty", "");
  literal("header-call", "{'descr': eval('1'), 'fortran_order': False, 'shape': (4,)}");
  literal("header-not-closed", "{'descr': '|u1', 'fortran_order': False, 'shape': (4,), ");
  literal("header-trailing", dictionary("'|u1'", "(4,)") + " + {}");
  literal("header-escape", dictionary("'\\x7cu1'", "(4,)"));
  literal("header-deep", dictionary(std::string(100, '['), "(4,)"));
  literal("header-text-not-closed", "{'descr': '|u1");
  literal("header-brackets", dictionary("[('a', '<f4'])", "(4,)"));
  literal("header-no-comma", "{'descr': '|u1' 'fortran_order': False, 'shape': (4,)}");
  use("keys", "keys", array("{'descr': '|u1', 'fortran_order': False}", kFour));
  use("keys-twice", "keys", array("{'descr': '|u1', 'descr': '|u1', 'fortran_order': False, 'shape': (4,)}", kFour));
  use("keys-other", "keys", array("{'descr': '|u1', 'fortran_order': False, 'shape': (4,), 'a': 1}", kFour));
  use("fortran-order", "fortran-order", typed("|u1", "(4,)", kFour, "1"));
  use("shape", "shape", typed("|u1", "4", kFour));
  use("shape-number", "shape", typed("|u1", "(4)", kFour));
  use("shape-negative", "shape", typed("|u1", "(-4,)", kFour));
  use("shape-float", "shape", typed("|u1", "(4.0,)", kFour));
  use("shape-bool", "shape", typed("|u1", "(True, 4)", kFour));
  use("shape-octal", "shape", typed("|u1", "(04,)", kFour));
  use("shape-2-63", "shape", typed("|u1", "(9223372036854775808,)", kFour));
  use("shape-2-64", "shape", typed("|u1", "(18446744073709551620,)", kFour));
  use("shape-no-comma", "shape", typed("|u1", "(2 2)", kFour));
  use("shape-list", "shape", typed("|u1", "[2, 2]", kFour));
  use("shape-open", "shape", array("{'descr': '|u1', 'fortran_order': False, 'shape': (4, ", kFour));
  use("shape-long-of-version-3", "shape", array(dictionary("'|u1'", "(4L,)"), kFour, 3));
  use("rank", "rank", typed("|u1", ones + "1)", kFour));
  use("descr", "descr", typed("<f3", "(4,)", kFour));
  use("descr-empty", "descr", typed("", "(4,)", kFour));
  use("descr-order-only", "descr", typed("<", "(4,)", kFour));
  use("descr-name", "descr", typed("float33", "(1,)", kFour));
  use("descr-name-with-order", "descr", typed("<float32", "(1,)", kFour));
  use("valid-name", "", typed("float32", "(1,)", kFour));
  use("valid-letter", "", typed(">H", "(2,)", kFour));
  use("valid-letter-bool", "", typed("?", "(1,)", "\1"));
  use("valid-f8-e5m2", "", typed("<f1", "(4,)", kFour));
  use("valid-ml-dtypes-name", "", typed("bfloat16", "(2,)", kFour));
  use("descr-number", "header", array(dictionary("4", "(4,)"), kFour));
  use("object", "object", typed("|O", "(2,)", two_objects("K\x01" + text("a"))));
  const std::string calls = global("posix", "system") + text("true") + "\x85R", unknown = global("mine", "Thing");
  const auto objects = [&](const std::string& name, const std::string& data, const std::vector<std::string>& others) {
    use(name, "object", typed("|O", "(2,)", data), others);
  };
  objects("dangerous-global", two_objects("N" + calls), {"dangerous-global"});
  objects("dangerous-global-behind-another", two_objects("NN") + pickle(calls), {"dangerous-global"});
  objects("dangerous-global-in-bytes", two_objects("NC" + number(pickle(calls).size(), 1) + pickle(calls)),
          {"dangerous-global"});
  objects("dangerous-global-before-the-break", "\x80\x04" + calls + "X\xff\xff", {"dangerous-global", "pickle"});
  objects("unknown-global", two_objects("N" + unknown), {"unknown-global"});
  const std::string packed = "BZh91AY&SY" + counting(20);
  objects("unread-pickle", two_objects("NC" + number(packed.size(), 1) + packed), {"unread-pickle"});
  objects("pickle", two_objects("NN").substr(0, 60), {"pickle"});
  objects("pickle-missing", "", {"pickle"});
  use("dangerous-global-of-a-field", "structured",
      array(dictionary("[('a', '<i2'), ('b', '|O')]", "(1,)"), pickle(calls)), {"dangerous-global"});
  use("structured-field-called-o", "structured", array(dictionary("[('O', '<i4')]", "(1,)"), "\x80\x02q\0"));
  use("structured", "structured", array(dictionary("[('a', '<i2'), ('b', '<i2', (1,))]", "(1,)"), kFour));
  use("structured-sub-array", "structured", array(dictionary("('<i2', (2,))", "(1,)"), kFour));
  use("text", "text", typed("<U1", "(1,)", kFour));  // beyond U+10FFFF
  use("text-bytes", "text", typed("|S4", "(1,)", "\xFF\xFF\xFF\xFF"));
  use("raw", "raw", typed("|V2", "(2,)", kFour));
  use("unknown-dtype-time", "unknown-dtype", typed("<M8[ns]", "(1,)", counting(8)));
  use("unknown-dtype-int4", "unknown-dtype", typed("int4", "(4,)", kFour));
  use("unknown-dtype-long-double", "unknown-dtype", typed("<f16", "(1,)", counting(16)));
  use("size-overflow", "size-overflow", typed("<f8", "(1152921504606846976,)", ""));
  use("size-overflow-product", "size-overflow", typed("|u1", "(4294967296, 4294967296)", ""));
  use("size-overflow-with-0", "size-overflow", typed("<f8", "(0, 1152921504606846976)", ""));
  use("truncated", "truncated", kOne.substr(0, kOne.size() - 1));
  use("truncated-no-element", "truncated", kOne.substr(0, kOne.size() - 4));
  use("truncated-large", "truncated", typed("<f8", "(1000000000000,)", kFour));
  use("trailing-data", "trailing-data", kOne + "x");
  use("bool-byte", "bool-byte", typed("|b1", "(4,)", std::string("\0\1\2\1", 4)));
}

void add_directory(Corpus& c) {
  const Member one{"a.npy", kOne};
  c.add("end", "end", zip("a.npy", kOne).substr(0, 200));
  c.add("end-trailing", "end", zip("a.npy", kOne) + "x");
  c.add("end-comment", "end", zip({.members = {one}, .comment = "PK\x05\x06 is the end of every archive"}));
  c.add("disks", "disks", zip({.members = {one}, .disk = 1}));
  c.add("directory", "directory", zip({.members = {one}, .offset_change = 1}));
  c.add("directory-size", "directory", zip({.members = {one}, .size_change = 0xFFFFFF00}));
  c.add("directory-prefix", "directory", zip({.members = {one}, .before_end = "x"}));
  c.add("directory-count", "directory", zip({.members = {one}, .count_change = 0xFFFF}));
  c.add("directory-count-many", "directory", zip({.members = {one}, .count_change = 1000}));
  std::string wide = zip({.members = {one}, .zip64 = true});
  wide[wide.size() - 22 - 20 - 56 + 4] = 45;
  c.add("directory-zip64", "directory", wide);
  wide = zip({.members = {one}, .zip64 = true});
  wide[wide.size() - 22 + 10] = 2, wide[wide.size() - 22 + 11] = 0;
  c.add("directory-zip64-count", "directory", wide);
  c.add("entry", "entry", zip({.members = {one}, .entry_magic = 0x02014B51}));
  std::string past = zip("a.npy", kOne);
  past[past.size() - 22 - 5 - 46 + 28] = 90;
  c.add("entry-past-directory", "entry", past);
  std::string far = zip("a.npy", kOne);
  far[far.size() - 22 - 5 - 46 + 45] = 1;
  c.add("entry-offset", "entry", far);
  c.add("member-utf8", "member-utf8", zip("\xff.npy", kOne));
  for (const auto& [name, path] : {std::pair<const char*, const char*>{"absolute", "/a.npy"},
                                   {"climbs", "a/../../b.npy"},
                                   {"drive", "c:a.npy"},
                                   {"backslash", "a\\b.npy"},
                                   {"parent", "../a.npy"}})
    c.add("member-path-" + std::string(name), "member-path", zip(path, kOne));
  c.add("duplicate-member", "duplicate-member", zip({.members = {one, one}}));
  const std::uint64_t length = 30 + 5 + kOne.size();
  c.add("overlap", "overlap", zip({.members = {one, {"b.npy", kOne}}, .moved = length}));
  c.add("overlap-by-one", "overlap", zip({.members = {one, {"b.npy", kOne}}, .moved = 1}));
  // The second member lies in the data of the first, where a local header of its own is.
  const std::string inner = "PK\x03\x04" + number(20, 2) + number(0, 4) + number(0x00210000, 4) + number(0, 12);
  c.add("overlap-inside", "overlap",
        zip({.members = {{"a.npy", kOne + inner}, {"b.npy", kOne}}, .moved = inner.size()}));
}

void add_members(Corpus& c) {
  const Member one{"a.npy", kOne};
  c.add("local-header", "local-header",
        zip({.members = {one, {.name = "b.npy", .data = kOne, .extra = std::string(4, '\0')}}, .moved = UINT64_MAX}));
  c.add("local-header-name", "local-header",
        zip({.members = {{.name = "a.npy", .data = kOne, .local_name = "b.npy"}}}));
  c.add("local-header-size", "local-header", zip({.members = {{.name = "a.npy", .data = kOne, .local_change = 1}}}));
  std::string extra = zip("a.npy", kOne);
  extra[28] = 100;
  c.add("local-header-extra", "local-header", extra);
  // Sizes of 64 bits, which are those of the directory or not.
  const auto wide = [](std::uint64_t size, std::uint64_t stored) {
    return number(1, 2) + number(16, 2) + number(size, 8) + number(stored, 8);
  };
  const auto local = [&](const std::string& name, const std::string& rule, const std::string& fields,
                         const Member& but = {}) {
    Member member = but;
    member.name = "a.npy", member.data = kOne, member.extra = fields, member.local_zip64 = true;
    c.add(name, rule, zip({.members = {member, {"b.npy", kOne}}}));
  };
  const std::uint64_t size = kOne.size();
  local("valid-local-zip64", "", wide(size, size));
  local("valid-local-zip64-behind-another", "", "FB" + number(30, 2) + std::string(30, 'Z') + wide(size, size));
  local("valid-local-zip64-descriptor", "", wide(0, 0), {.descriptor = true});
  local("valid-local-zip64-deflate", "", wide(size, deflated(kOne).size()), {.deflate = true});
  local("local-header-zip64-size", "local-header", wide(size + 1, size));
  local("local-header-zip64-stored", "local-header", wide(size, size - 1));
  local("local-header-zip64-behind-another", "local-header",
        "FB" + number(30, 2) + std::string(30, 'Z') + wide(size, size + (std::uint64_t{1} << 32)));
  local("local-header-zip64-missing", "local-header", "");
  local("local-header-zip64-short", "local-header", number(1, 2) + number(4, 2) + std::string(4, '\0'));
  local("local-header-zip64-past", "local-header", number(1, 2) + number(17, 2) + std::string(16, '\0'));
  std::string method = zip("a.npy", kOne);
  method[8] = 8;
  c.add("local-header-method", "local-header", method);
  c.add("member-size", "member-size", zip({.members = {{.name = "a.npy", .data = kOne, .size_change = 1}}}));
  c.add("member-size-bomb", "member-size",
        zip({.members = {{.name = "a.npy", .data = kOne, .deflate = true, .size_change = 0x7FFFFFFF}}}));
  c.add("encrypted", "encrypted", zip({.members = {{.name = "a.npy", .data = kOne, .flags = 1}}}));
  c.add("entry-masked", "entry", zip({.members = {{.name = "a.npy", .data = kOne, .flags = 1U << 13}}}));
  c.add("name-flag", "name-flag", zip({.members = {one, {"\xC3\xA9.npy", kOne}}}));
  std::string fronted = zip("a.npy", kOne);
  const std::size_t directory = fronted.find("PK\x01\x02");
  fronted.replace(directory + 42, 4, number(2, 4));
  fronted.replace(fronted.size() - 22 + 16, 4, number(directory + 2, 4));
  c.add("front", "front", "N." + fronted);
  c.add("method", "method", zip({.members = {{.name = "a.npy", .data = kOne, .method = 12}}}));
  c.add("method-beside-another", "method",
        zip({.members = {{.name = "a.npy", .data = kOne, .method = 77}, {"b.npy", kOne}}}));
  c.add("deflate", "deflate",
        zip({.members = {{.name = "a.npy", .data = kOne, .deflate = true, .stored = std::string(40, '\xff')}}}));
  c.add("deflate-longer", "deflate",
        zip({.members = {{.name = "a.npy", .data = kOne, .deflate = true, .stored = deflated(kOne + "x")}}}));
  c.add("deflate-shorter", "deflate",
        zip({.members = {{.name = "a.npy", .data = kOne, .deflate = true, .stored = deflated(kOne.substr(1))}}}));
  c.add("deflate-trailing", "deflate",
        zip({.members = {{.name = "a.npy", .data = kOne, .deflate = true, .stored = deflated(kOne) + "x"}}}));
  // Its header decodes, so that only verify sees that the end is missing.
  const std::string large = typed("<u4", "(5000,)", counting(20'000));
  c.add(
      "deflate-cut-off", "deflate",
      zip({.members = {{.name = "a.npy", .data = large, .deflate = true, .stored = deflated(large).substr(0, 300)}}}));
  c.add("other-member-pickle", "other-member",
        zip({.members = {one, {"archive/data.pkl", pickle(global("posix", "system") + text("true") + "\x85R")}}}),
        {"dangerous-global"});
  c.add("other-member", "other-member", zip({.members = {one, {"notes.txt", "text"}}}));
  c.add("ambiguous-name", "ambiguous-name", zip({.members = {one, {"a", kOne}}}));
  c.add("ambiguous-name-of-other-member", "ambiguous-name", zip({.members = {one, {"a", "text"}}}), {"other-member"});
  c.add("ambiguous-name-twice", "ambiguous-name", zip({.members = {{"a.npy.npy", kOne}, one}}));
  c.add("valid-names-by-case", "", zip({.members = {one, {"A.npy", kOne}, {"b.npy.npy", kOne}}}));
  c.add("crc", "crc", zip({.members = {{.name = "a.npy", .data = kOne, .crc_change = 1}}}));
  c.add("crc-deflate", "crc", zip({.members = {{.name = "a.npy", .data = kOne, .deflate = true, .crc_change = 1}}}));
  c.add("crc-of-another-member", "other-member",
        zip({.members = {one, {.name = "notes.txt", .data = "text", .crc_change = 1}}}), {"crc"});
  c.add("bool-byte-deflate", "bool-byte",
        zip({.members = {{.name = "a.npy",
                          .data = typed("|b1", "(2, 2)", std::string("\0\1\2\1", 4), "True"),
                          .deflate = true}}}));
  core::CorpusCase& decoded =
      c.add("limit-decoded", "limit/decoded", zip({.members = {{.name = "a.npy", .data = kOne, .deflate = true}}}));
  decoded.limits.decoded = 100;
  decoded.generated_only = true;
  core::CorpusCase& header = c.add("limit-header", "limit/header", zip("a.npy", kOne));
  header.limits.header = 40;
  header.generated_only = true;
  core::CorpusCase& tensors = c.add("limit-tensors", "limit/tensors", zip({.members = {one, {"b.npy", kOne}}}));
  tensors.limits.tensors = 1;
  tensors.generated_only = true;
}

void add_valid_archives(Corpus& c) {
  const Member one{"a.npy", kOne};
  c.add("valid-no-member", "", zip({.members = {}}));
  c.add("valid-several", "", zip({.members = {one, {"layers/0/b.npy", typed("<f4", "()", kFour)}, {".npy", kOne}}}));
  c.add("valid-deflate", "", zip({.members = {{.name = "a.npy", .data = kOne, .deflate = true}, {"b.npy", kOne}}}));
  c.add("valid-deflate-fortran-order", "",
        zip({.members = {{.name = "a.npy", .data = typed(">i2", "(3, 4, 5)", counting(120), "True"), .deflate = true},
                         {"b.npy", typed(">i2", "(3, 4, 5)", counting(120), "True")}}}));
  c.add("valid-texts", "",
        zip({.members = {{.name = "a.npy", .data = typed("|S4", "()", std::string("csr\0", 4))},
                         {.name = "b.npy",
                          .data = typed(">U2", "(2,)", std::string("\0\0\0a\0\0\0b\0\1\xF6\0\0\0\0\0", 16)),
                          .deflate = true},
                         {.name = "c.npy", .data = kOne}}}));
  const std::string raw2 = typed("<V2", "(2,)", kFour), raw1 = typed("|V1", "(4,)", kFour);
  c.add("valid-dtypes-in-comment", "",
        zip({.members = {{.name = "a.npy", .data = raw2},
                         {.name = "b.npy", .data = raw1},
                         {.name = "c d.npy", .data = raw1}},
             .comment = "weighbridge dtypes: V2=bf16 V1=f8_e4m3\nf8_e5m2 c d"}));
  c.add("raw-other-dtypes-in-comment", "raw",
        zip({.members = {{.name = "a.npy", .data = raw2}, {.name = "b.npy", .data = raw1}},
             .comment = "weighbridge dtypes: V2=f32 V1=f8_e4m3 V=\nf8_e4m3 a\n\nbf16"}));
  c.add("valid-descriptor", "",
        zip({.members = {{.name = "a.npy", .data = kOne, .descriptor = true},
                         {.name = "b.npy", .data = kOne, .deflate = true, .descriptor = true}}}));
  c.add("valid-zip64", "",
        zip({.members = {{.name = "a.npy", .data = kOne, .zip64 = true}, {.name = "b.npy", .data = kOne}},
             .zip64 = true}));
  c.add("valid-comment", "", zip({.members = {one}, .comment = "by hand"}));
  c.add("valid-folder", "", zip({.members = {{"b/", ""}, {"b/a.npy", kOne}}}));
  c.add("valid-without-extension", "", zip({.members = {{"a", kOne}, {"b.npy", kOne}}}));
  c.add("valid-utf8-name", "",
        zip({.members = {{.name = "\xC3\xA9\xE6\x97\xA5.npy", .data = kOne, .flags = 1U << 11}}}));
  c.add("valid-extra-field", "",
        zip({.members = {{.name = "a.npy", .data = kOne, .extra = "FB" + number(7, 2) + std::string(7, 'Z')}}}));
}

}  // namespace

std::vector<core::CorpusCase> npy_cases() {
  Corpus c("npy");
  for_each_array([&](const std::string& name, const std::string& rule, const std::string& bytes,
                     const std::vector<std::string>& others) { c.add(name, rule, bytes, others); });
  c.add("truncated-header-magic", "truncated-header", kOne.substr(0, 6));
  // A part of the file, and all of it behind that.
  const std::string whole = typed("|u1", "(200,)", counting(200));
  c.add("begins-again", "trailing-data", whole.substr(0, 180) + whole, {"file/begins-again"});
  return c.take();
}

std::vector<core::CorpusCase> npz_cases() {
  Corpus c("npz");
  add_valid_archives(c);
  for_each_array(
      [&](const std::string& name, const std::string& rule, const std::string& bytes,
          const std::vector<std::string>& others) { c.add("array-" + name, rule, zip("a.npy", bytes), others); });
  add_directory(c);
  add_members(c);
  return c.take();
}

}  // namespace weighbridge::numpy
