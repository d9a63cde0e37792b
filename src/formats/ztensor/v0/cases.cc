// SPDX-License-Identifier: Apache-2.0
// The corpus of zTensor 0.1: at least one small file for each rule, and valid files of every kind.
#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/endian.h"
#include "codecs/checksum.h"
#include "codecs/codec.h"
#include "formats/ztensor/v0/format.h"
#include "formats/ztensor/v0/layout.h"
#include "support/cbor_items.h"
#include "support/corpus_case.h"

namespace weighbridge::ztensor0 {
namespace {

using wire::items::array;
using wire::items::Fields;
using wire::items::indefinite;
using wire::items::kNull;
using wire::items::map;

using wire::items::t, wire::items::u;

std::string le(std::uint64_t value) {
  std::string bytes(8, '\0');
  base::store_le<std::uint64_t>(bytes.data(), value);
  return bytes;
}
std::string frame(std::string_view data) {
  const std::vector<std::byte> out = codecs::encode(codecs::kZstd, std::as_bytes(std::span(data)));
  return {reinterpret_cast<const char*>(out.data()), out.size()};
}
// A frame of four bytes that decoders skip (RFC 8878, 3.1.2).
const std::string kSkippable("\x50\x2a\x4d\x18\x04\0\0\0abcd", 12);
std::string sha256(std::string_view data) {
  return "sha256:" + codecs::to_hex(codecs::sha256(std::as_bytes(std::span(data))));
}
std::string crc32c(std::string_view data) {
  return "crc32c:0x" + codecs::to_hex(codecs::crc32c(std::as_bytes(std::span(data))));
}

const std::string kFour("\x01\x02\x03\x04", 4);

// Payloads from 64 on, each at the next multiple of 64, then the index.
std::string file(const std::string& index, std::initializer_list<std::string> payloads = {}) {
  std::string out(kMagic);
  for (const std::string& payload : payloads) {
    out.resize((out.size() + 63) / 64 * 64, '\0');
    out += payload;
  }
  return out + index + le(index.size());
}

// One map of the index: the fields of a valid raw u8 [4] at 64. Each case changes some.
struct Item {
  std::string name = t("w"), offset = u(64), size = u(4), dtype = t("uint8"), shape = array({u(4)}),
              encoding = t("raw");
  Fields more{};

  std::string cbor() const {
    Fields fields{{t(kName), name},   {t(kOffset), offset}, {t(kSize), size},
                  {t(kDtype), dtype}, {t(kShape), shape},   {t(kEncoding), encoding}};
    fields.insert(fields.end(), more.begin(), more.end());
    return map(fields);
  }
};

class Corpus : public core::CorpusCases {
 public:
  Corpus() : CorpusCases("zt0") {}
  // Adds a file with one tensor and four bytes of payload.
  void one(std::string name, std::string rule, const Item& item) {
    add(std::move(name), std::move(rule), file(array({item.cbor()}), {kFour}));
  }
  void entry(std::string name, std::string rule, std::string item) {
    add(std::move(name), std::move(rule), file(array({std::move(item)}), {kFour}));
  }
  void more(std::string name, std::string rule, Fields fields) {
    one(std::move(name), std::move(rule), {.more = std::move(fields)});
  }
};

void add_frame(Corpus& c) {
  const std::string empty = file(array({}));
  c.add("valid-no-tensors", "", empty);
  c.add("too-short", "too-short", empty.substr(0, 8));
  c.add("too-short-16", "too-short", std::string(kMagic) + le(0));
  c.add("bad-magic", "bad-magic", "ZTEN0002" + empty.substr(8));
  c.add("bad-magic-cut", "bad-magic", "ZTEN0x");
  c.add("index-range", "index-range", empty.substr(0, 9) + le(2));
  c.add("index-range-zero", "index-range", empty.substr(0, 9) + le(0));
  c.add("index-range-2-64", "index-range", empty.substr(0, 9) + le(UINT64_MAX));
}

void add_index(Corpus& c) {
  c.add("cbor", "cbor", file("\x81"));
  c.add("cbor-count", "cbor", file(std::string("\x9b\x7f\xff\xff\xff\xff\xff\xff\xff", 9)));
  c.one("cbor-utf8", "cbor", {.name = "\x61\xff"});
  c.add("cbor-break", "cbor", file("\xff"));
  c.add("trailing-bytes", "trailing-bytes", file(array({}) + kNull));
  c.add("index-type", "index-type", file(map({})));
  c.add("index-type-text", "index-type", file(t("w")));
  c.add("duplicate-name", "duplicate-name", file(array({Item{}.cbor(), Item{}.cbor()}), {kFour}));
  c.add("duplicate-name-apart", "duplicate-name",
        file(array({Item{}.cbor(), Item{.name = t("a")}.cbor(), Item{}.cbor()}), {kFour}));
  c.add("valid-indefinite", "", file(indefinite(array({indefinite(Item{}.cbor())})), {kFour}));
  c.one("valid-name-in-chunks", "", {.name = "\x7f" + t("a") + t("") + t("b") + "\xff"});
  c.one("valid-empty-name", "", {.name = t("")});
  c.add("valid-wide-integers", "",
        file(std::string("\x9b\0\0\0\0\0\0\0\x01", 9) + Item{.size = std::string("\x19\0\x04", 3)}.cbor(), {kFour}));
}

void add_entries(Corpus& c) {
  c.entry("entry-type", "entry-type", array({}));
  c.entry("entry-type-null", "entry-type", kNull);
  c.more("entry-key", "entry-key", {{u(1), t("x")}});
  c.one("field-name", "field", {.name = u(1)});
  c.one("field-offset", "field", {.offset = "\x20"});
  c.one("field-offset-float", "field", {.offset = std::string("\xf9\x54\0", 3)});
  c.one("field-size", "field", {.size = t("4")});
  c.one("field-size-tagged", "field", {.size = "\xc1\x04"});
  c.one("field-dtype", "field", {.dtype = kNull});
  c.one("field-shape", "field", {.shape = u(4)});
  c.one("field-shape-dimension", "field", {.shape = array({"\x20"})});
  c.one("field-encoding", "field", {.encoding = kNull});
  c.more("field-checksum", "field", {{t(kChecksum), kNull}});
  c.more("field-data-endianness", "field", {{t(kEndianness), kNull}});
  for (const std::string_view key : {kName, kOffset, kSize, kDtype, kShape, kEncoding}) {
    Fields fields;
    for (const auto& [name, value] : Fields{{t(kName), t("w")},
                                            {t(kOffset), u(64)},
                                            {t(kSize), u(4)},
                                            {t(kDtype), t("uint8")},
                                            {t(kShape), array({u(4)})},
                                            {t(kEncoding), t("raw")}})
      if (name != t(key)) fields.push_back({name, value});
    c.entry("missing-" + std::string(key), "missing", map(fields));
  }
  c.more("duplicate-key", "duplicate-key", {{t(kDtype), t("uint8")}});
  c.more("duplicate-key-custom", "duplicate-key", {{t("note"), u(1)}, {t("note"), u(2)}});
  c.more("duplicate-key-layout", "duplicate-key", {{t(kLayout), t(kDense)}, {t(kLayout), t(kDense)}});
  c.more("duplicate-key-inside", "duplicate-key", {{t("note"), array({map({{t("a"), u(1)}, {t("a"), u(1)}})})}});
  c.more("data-endianness", "data-endianness", {{t(kEndianness), t("middle")}});
  c.one("rank", "rank", {.shape = array(std::vector<std::string>(65, u(1)))});
  c.one("shape-overflow", "shape-overflow", {.shape = array({u(UINT64_MAX), u(2)})});
  c.one("shape-overflow-bytes", "shape-overflow", {.dtype = t("float64"), .shape = array({u(std::uint64_t{1} << 61)})});
  c.one("valid-shape-with-zero", "", {.size = u(0), .shape = array({u(UINT64_MAX), u(UINT64_MAX), u(0)})});
}

void add_places(Corpus& c) {
  c.one("offset-zero", "offset", {.offset = u(0)});
  c.one("offset-unaligned", "offset", {.offset = u(65)});
  c.one("offset-empty", "offset", {.offset = u(8), .size = u(0), .shape = array({u(0)})});
  c.one("range", "range", {.offset = u(128)});
  c.one("range-into-index", "range", {.size = u(5), .shape = array({u(5)})});
  c.one("range-2-64", "range", {.offset = u(UINT64_MAX - 63), .size = u(64), .shape = array({u(64)})});
  c.one("size", "size", {.size = u(3)});
  c.one("size-dtype", "size", {.dtype = t("uint16")});
  c.one("size-empty", "size", {.shape = array({u(0)})});
  c.one("valid-scalar", "", {.dtype = t("float32"), .shape = array({})});
  const std::string long_one(128, 'x');
  const auto two = [&](std::uint64_t at_a, std::uint64_t size_a, std::uint64_t at_b, std::uint64_t size_b) {
    return array({Item{.name = t("a"), .offset = u(at_a), .size = u(size_a), .shape = array({u(size_a)})}.cbor(),
                  Item{.name = t("b"), .offset = u(at_b), .size = u(size_b), .shape = array({u(size_b)})}.cbor()});
  };
  c.add("valid-alias", "", file(two(64, 4, 64, 4), {kFour}));
  c.add("valid-empty-at-the-index", "", file(two(64, 64, 128, 0), {long_one.substr(64)}));
  c.add("valid-any-padding", "", file(two(64, 4, 128, 4), {kFour + std::string(60, '\x7f') + kFour}));
  c.add("overlap", "overlap", file(two(64, 128, 128, 64), {long_one}));
  c.add("overlap-other-size", "overlap", file(two(64, 128, 64, 4), {long_one}));
}

void add_contents(Corpus& c) {
  c.more("checksum-spelling", "checksum-spelling", {{t(kChecksum), t("sha256:00")}});
  c.more("checksum-spelling-crc32c", "checksum-spelling", {{t(kChecksum), t("crc32c:0X" + crc32c(kFour).substr(9))}});
  c.more("valid-crc32c-bare", "", {{t(kChecksum), t(crc32c(kFour).replace(7, 2, ""))}});
  c.more("checksum-crc32c-bare", "checksum", {{t(kChecksum), t(crc32c("other").replace(7, 2, ""))}});
  c.more("checksum-unknown", "checksum-unknown", {{t(kChecksum), t("md5:00")}});
  c.more("checksum-empty", "checksum-unknown", {{t(kChecksum), t("")}});
  c.more("checksum", "checksum", {{t(kChecksum), t(sha256("other"))}});
  c.more("checksum-crc32c", "checksum", {{t(kChecksum), t(crc32c("other"))}});
  c.more("valid-sha256", "", {{t(kChecksum), t(sha256(kFour))}});
  c.more("valid-crc32c", "", {{t(kChecksum), t(crc32c(kFour))}});
  const auto zstd = [&](std::string name, std::string_view rule, const std::string& stored, std::uint64_t count,
                        std::string_view dtype = "uint8", Fields more = {}) {
    const Item item{.size = u(stored.size()),
                    .dtype = t(dtype),
                    .shape = array({u(count)}),
                    .encoding = t(kZstd),
                    .more = std::move(more)};
    c.add(std::move(name), std::string(rule), file(array({item.cbor()}), {stored}));
  };
  zstd("valid-zstd", "", frame(kFour), 4, "uint8", {{t(kChecksum), t(sha256(frame(kFour)))}});
  zstd("valid-zstd-endianness-says-nothing", "", frame(kFour), 1, "uint32", {{t(kEndianness), t(kBig)}});
  zstd("zstd", "zstd", kFour, 4);
  zstd("zstd-too-short", "zstd", frame(kFour), 5);
  zstd("valid-zstd-two-frames", "", frame(kFour) + frame(kFour), 8);
  zstd("valid-zstd-skippable", "", kSkippable + frame(kFour) + kSkippable, 4);
  zstd("zstd-two-frames", "zstd", frame(kFour) + frame(kFour), 4);
  zstd("zstd-skippable-cut", "zstd", frame(kFour) + kSkippable.substr(0, 11), 4);
  zstd("zstd-trailing", "zstd", frame(kFour) + '\0', 4);
  zstd("zstd-cut", "zstd", frame(kFour).substr(0, 6), 4);
  c.one("valid-bool-of-any-byte", "", {.dtype = t("bool")});
  c.one("valid-big-endian", "", {.dtype = t("float32"), .shape = array({}), .more = {{t(kEndianness), t(kBig)}}});
  c.one("valid-little-endian", "",
        {.dtype = t("int16"), .shape = array({u(2)}), .more = {{t(kEndianness), t(kLittle)}}});
}

void add_kinds(Corpus& c) {
  c.one("unknown-dtype", "unknown-dtype", {.dtype = t("float8"), .more = {{t(kEndianness), t(kBig)}}});
  c.one("unknown-dtype-short-name", "unknown-dtype", {.dtype = t("f32")});
  c.one("unknown-encoding", "unknown-encoding", {.encoding = t("lz4")});
  c.one("unknown-dtype-sparse", "unknown-dtype",
        {.dtype = t("float8"), .shape = array({u(9), u(9)}), .more = {{t(kLayout), t(kSparseCoo)}}});
  c.one("unknown-encoding-sparse", "unknown-encoding",
        {.dtype = t("float32"), .shape = array({u(9)}), .encoding = t("lz4"), .more = {{t(kLayout), t(kSparseCsr)}}});
  c.more("valid-layout", "", {{t(kLayout), t(kDense)}});
  c.more("valid-other-layout", "", {{t(kLayout), t("tiled")}});
  c.more("valid-custom-fields", "",
         {{t("z"), array({u(1), kNull, "\xf5"})},
          {t("half"), std::string("\xf9\x3e\0", 3)},
          {t("single"), "\xfa\x3d\xcc\xcc\xcd"},
          {t("tagged"), "\xc1\x04"},
          {t("map"), indefinite(map({{t("k"), map({{u(1), u(2)}})}}))}});
}

std::string words(std::initializer_list<std::uint64_t> values) {
  std::string out;
  for (const std::uint64_t value : values) out += le(value);
  return out;
}
std::string reversed(std::string_view bytes, std::size_t unit) {
  std::string out;
  for (std::size_t at = 0; at < bytes.size(); at += unit)
    out.append(bytes.substr(at, unit).rbegin(), bytes.substr(at, unit).rend());
  return out;
}
// u16 [3, 4] with the elements 7 at [2, 1] and 9 at [0, 3].
const std::string kCoo = words({2, 1}) + std::string("\x07\0", 2) + words({0, 3}) + std::string("\x09\0", 2);
const std::string kCsr = words({0, 1, 1, 2, 3, 1}) + std::string("\x09\0\x07\0", 4);

struct Blob {
  std::string_view layout = kSparseCoo;
  std::string bytes = kCoo;
  std::vector<std::uint64_t> shape{3, 4};
  std::string_view encoding = kRaw;
  Fields more{};
};
std::string sparse_file(const Blob& blob) {
  std::vector<std::string> dims;
  for (const std::uint64_t dim : blob.shape) dims.push_back(u(dim));
  Item item{.size = u(blob.bytes.size()),
            .dtype = t("uint16"),
            .shape = array(dims),
            .encoding = t(blob.encoding),
            .more = {{t(kLayout), t(blob.layout)}}};
  item.more.insert(item.more.end(), blob.more.begin(), blob.more.end());
  return file(array({item.cbor()}), {blob.bytes});
}

void add_sparse(Corpus& c) {
  const auto coo = [&](std::string name, std::string_view rule, std::string bytes) {
    c.add(std::move(name), std::string(rule), sparse_file({.bytes = std::move(bytes)}));
  };
  const auto csr = [&](std::string name, std::string_view rule, std::string bytes) {
    c.add(std::move(name), std::string(rule), sparse_file({.layout = kSparseCsr, .bytes = std::move(bytes)}));
  };
  const std::string one("\1\0", 2), two = one + one;
  coo("valid-sparse-coo", "", kCoo);
  csr("valid-sparse-csr", "", kCsr);
  coo("valid-sparse-coo-empty", "", {});
  csr("valid-sparse-csr-empty", "", words({0, 0, 0, 0}));
  c.add("valid-sparse-coo-rank-1", "", sparse_file({.bytes = words({8}) + one, .shape = {9}}));
  c.add("valid-sparse-csr-no-rows", "", sparse_file({.layout = kSparseCsr, .bytes = words({0}), .shape = {0, 4}}));
  csr("valid-sparse-csr-columns-in-any-order", "", words({0, 2, 2, 2, 3, 1}) + two);
  c.add("valid-sparse-coo-zstd", "", sparse_file({.bytes = frame(kCoo), .encoding = kZstd}));
  c.add("valid-sparse-csr-zstd", "",
        sparse_file({.layout = kSparseCsr,
                     .bytes = frame(kCsr.substr(0, 30)) + kSkippable + frame(kCsr.substr(30)),
                     .encoding = kZstd}));
  c.add("valid-sparse-coo-big-endian", "",
        sparse_file({.bytes = reversed(kCoo, 2), .more = {{t(kEndianness), t(kBig)}}}));
  c.add("valid-sparse-csr-big-endian", "",
        sparse_file({.layout = kSparseCsr, .bytes = reversed(kCsr, 2), .more = {{t(kEndianness), t(kBig)}}}));
  c.add("valid-sparse-coo-checksum", "", sparse_file({.more = {{t(kChecksum), t(crc32c(kCoo))}}}));
  c.add("sparse-checksum", "checksum", sparse_file({.more = {{t(kChecksum), t(crc32c("other"))}}}));
  const auto twins = [&](std::string_view layout) {
    const auto item = [&](std::string_view name, std::string_view kind) {
      return Item{.name = t(name),
                  .size = u(kCoo.size()),
                  .dtype = t("uint16"),
                  .shape = array({u(3), u(4)}),
                  .more = {{t(kLayout), t(kind)}}}
          .cbor();
    };
    return file(array({item("a", kSparseCoo), item("b", layout)}), {kCoo});
  };
  c.add("valid-sparse-alias", "", twins(kSparseCoo));

  c.add("sparse-rank", "sparse-rank", sparse_file({.layout = kSparseCsr, .bytes = kCsr, .shape = {12}}));
  c.add("sparse-rank-3", "sparse-rank", sparse_file({.layout = kSparseCsr, .bytes = kCsr, .shape = {3, 2, 2}}));
  c.add("sparse-rank-scalar", "sparse-rank", sparse_file({.shape = {}}));
  coo("sparse-size", "sparse-size", kCoo.substr(0, 35));
  coo("sparse-size-long", "sparse-size", kCoo + '\0');
  csr("sparse-size-bounds", "sparse-size", kCsr.substr(0, 31));
  csr("sparse-size-entries", "sparse-size", kCsr.substr(0, 51));
  c.add("sparse-size-zstd", "sparse-size", sparse_file({.bytes = frame(kCoo.substr(1)), .encoding = kZstd}));
  c.add("sparse-size-2-64", "sparse-size",
        sparse_file({.layout = kSparseCsr, .bytes = kCsr, .shape = {UINT64_MAX, 0}}));
  c.add("sparse-zstd", "zstd", sparse_file({.encoding = kZstd}));
  c.add("sparse-zstd-cut", "zstd", sparse_file({.bytes = frame(kCoo).substr(0, 20), .encoding = kZstd}));
  c.add("sparse-shape-overflow", "shape-overflow", sparse_file({.shape = {UINT64_MAX, 2}}));

  csr("indptr-start", "indptr", words({1, 1, 1, 2, 3, 1}) + two);
  csr("indptr-order", "indptr", words({0, 2, 1, 2, 3, 1}) + two);
  csr("indptr-end", "indptr", words({0, 1, 1, 1, 3, 1}) + two);
  csr("indptr-end-past", "indptr", words({0, 1, 1, 3, 3, 1}) + two);
  csr("indptr-2-64", "indptr", words({0, 1, 1, UINT64_MAX, 3, 1}) + two);
  csr("entry-range-csr", "entry-range", words({0, 1, 1, 2, 4, 1}) + two);
  coo("entry-range-coo", "entry-range", words({3, 0}) + one);
  coo("entry-range-last-dimension", "entry-range", words({0, UINT64_MAX}) + one);
  c.add("entry-range-zstd", "entry-range", sparse_file({.bytes = frame(words({0, 4}) + one), .encoding = kZstd}));
  c.add("entry-range-empty-dimension", "entry-range", sparse_file({.bytes = words({0, 0}) + one, .shape = {3, 0}}));
  coo("duplicate-entries-coo", "duplicate-entries", words({1, 1}) + one + words({0, 1}) + one + words({1, 1}) + one);
  csr("duplicate-entries-csr", "duplicate-entries", words({0, 2, 2, 2, 1, 1}) + two);
}

// Files that are valid except under the low limits that the caller sets, so none of them is committed.
void add_limits(Corpus& c) {
  const std::string one = file(array({Item{}.cbor()}), {kFour});
  Limits limits;
  limits.header = 10;
  c.limited("limit-header", "limit/header", one, limits);
  limits = {};
  limits.tensors = 1;
  c.limited("limit-tensors", "limit/tensors", file(array({Item{}.cbor(), Item{.name = t("v")}.cbor()}), {kFour}),
            limits);
  limits = {};
  limits.depth = 2;
  c.limited("limit-depth", "limit/depth", one, limits);
  limits = {};
  limits.decoded = 3;
  const std::string stored = frame(kFour);
  c.limited("limit-decoded", "limit/decoded",
            file(array({Item{.size = u(stored.size()), .encoding = t(kZstd)}.cbor()}), {stored}), limits);
  c.limited("limit-decoded-sparse", "limit/decoded", sparse_file({.bytes = frame(kCoo), .encoding = kZstd}), limits);
  limits = {};
  limits.memory = 1200;
  std::string entries;
  for (std::uint64_t i = 0; i < 64; ++i) entries += words({0, i}) + std::string("\1\0", 2);
  c.limited("duplicate-entries-unchecked", "duplicate-entries-unchecked",
            sparse_file({.bytes = entries, .shape = {1, 64}}), limits);
  limits = {};
  limits.memory = 100;
  c.limited("limit-memory", "limit/memory", file(array({Item{.more = {{t("a"), t("b")}}}.cbor()}), {kFour}), limits);
}

}  // namespace

std::vector<core::CorpusCase> cases() {
  Corpus corpus;
  add_frame(corpus);
  add_index(corpus);
  add_entries(corpus);
  add_places(corpus);
  add_contents(corpus);
  add_kinds(corpus);
  add_sparse(corpus);
  add_limits(corpus);
  return corpus.take();
}

}  // namespace weighbridge::ztensor0
