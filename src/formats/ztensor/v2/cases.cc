// SPDX-License-Identifier: Apache-2.0
// The corpus of zTensor 2: at least one small file for each rule, and valid files of every layout. They are built with
// a few helpers that write any CBOR, valid or not. Blobs are at multiples of 4096, the least that the text allows.
#include <algorithm>
#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/endian.h"
#include "codecs/checksum.h"
#include "codecs/codec.h"
#include "formats/ztensor/v2/format.h"
#include "formats/ztensor/v2/layout.h"
#include "support/cbor_items.h"
#include "support/corpus_case.h"

namespace weighbridge::ztensor2 {
namespace {

using wire::items::array;
using wire::items::Fields;
using wire::items::kNull;

using wire::items::t, wire::items::u;
// A map in the order of its keys' bytes.
std::string map(Fields fields) {
  std::ranges::sort(fields);
  return wire::items::map(fields);
}
Fields with(Fields fields, const Fields& more) {
  for (const auto& field : more) {
    std::erase_if(fields, [&](const auto& each) { return each.first == field.first; });
    if (!field.second.empty()) fields.push_back(field);  // an empty value leaves the field out
  }
  return fields;
}

std::string part(std::string_view dtype, std::uint64_t offset, std::uint64_t length, const Fields& more = {}) {
  return map(with({{t(kDtype), t(dtype)}, {t(kBlob), array({u(offset), u(length)})}}, more));
}
std::string object(std::vector<std::uint64_t> shape, std::string_view layout, Fields parts, const Fields& more = {}) {
  std::vector<std::string> dims;
  for (const std::uint64_t dim : shape) dims.push_back(u(dim));
  return map(with({{t(kShape), array(dims)}, {t(kLayout), t(layout)}, {t(kParts), map(std::move(parts))}}, more));
}
std::string dense(std::vector<std::uint64_t> shape, std::string data, const Fields& more = {}) {
  return object(std::move(shape), kDense, {{t(kData), std::move(data)}}, more);
}
// The tensor "t" of eight bytes that most cases change.
std::string eight(const Fields& more = {}) { return dense({8}, part("u8", 4096, 8, more)); }
std::string root(Fields objects, const Fields& more = {}) {
  return map(with({{t(kObjects), map(std::move(objects))}}, more));
}
std::string root_of(std::string object) { return root({{t("t"), std::move(object)}}); }
Fields attributes(Fields entries) { return {{t(kAttributes), map(std::move(entries))}}; }

std::string padded(std::string bytes) {
  bytes.resize((bytes.size() + kAlignment - 1) / kAlignment * kAlignment, '\0');
  return bytes;
}
struct MadeFooter {
  std::uint64_t offset, length, hash;
  std::uint32_t version = kVersion, reserved = 0;
  std::string bytes() const {
    std::string out;
    base::append_fields(out, offset, length, hash, version, reserved);
    return out.append(kMagic);
  }
};
std::uint64_t hash(std::string_view bytes) { return codecs::xxh3_64(std::as_bytes(std::span(bytes))); }

// Payloads from 4096 on, each at the next multiple of 4096.
std::string body(std::initializer_list<std::string> payloads) {
  std::string out(kMagic);
  for (const std::string& payload : payloads) out = padded(std::move(out)) + payload;
  return out;
}
std::string file(const std::string& manifest, std::initializer_list<std::string> payloads = {},
                 void (*change)(MadeFooter&) = nullptr) {
  std::string out = padded(body(payloads));
  MadeFooter footer{out.size(), manifest.size(), hash(manifest)};
  if (change) change(footer);
  return out + manifest + footer.bytes();
}
std::string data_shard(std::initializer_list<std::string> payloads) {
  return body(payloads) + MadeFooter{0, 0, 0}.bytes();
}

const std::string kEight = "12345678";
std::string le(std::initializer_list<std::uint64_t> values) {
  std::string out(8 * values.size(), '\0');
  std::size_t at = 0;
  for (const std::uint64_t value : values) base::store_le(out.data() + 8 * at++, value);
  return out;
}
std::string seekable(std::string_view data) {
  const std::vector<std::byte> out = codecs::encode(codecs::kZstdSeekable, std::as_bytes(std::span(data)));
  return {reinterpret_cast<const char*>(out.data()), out.size()};
}
Fields seekable_part(std::uint64_t decoded) { return {{t(kEncoding), t(kSeekable)}, {t(kDecodedLength), u(decoded)}}; }
std::string xxh3(std::string_view bytes) { return "xxh3:" + codecs::to_hex(hash(bytes)); }

std::string nested(int levels) { return std::string(static_cast<std::size_t>(levels), '\x81') + '\0'; }

// [2, 3] with three values, u64 indices.
std::string csr(const Fields& more = {}, const Fields& parts = {}) {
  return object({2, 3}, kCsr,
                with({{t(kValues), part("f32", 4096, 12)},
                      {t(kIndices), part("u64", 8192, 24)},
                      {t(kIndptr), part("u64", 12288, 24)}},
                     parts),
                more);
}
std::string csr_file(std::initializer_list<std::uint64_t> indices, std::initializer_list<std::uint64_t> indptr) {
  return file(root_of(csr()), {std::string(12, '\x01'), le(indices), le(indptr)});
}
// [2, 3] with two values; the rows of both entries, then their columns.
std::string coo(const Fields& parts = {}, std::vector<std::uint64_t> shape = {2, 3}) {
  return object(std::move(shape), kCoo,
                with({{t(kValues), part("u8", 4096, 2)}, {t(kCoords), part("u64", 8192, 32)}}, parts));
}

Fields quant(const Fields& more = {}) {
  return attributes(with({{t(kBits), u(4)},
                          {t(kGroupSize), u(4)},
                          {t(kAxis), u(1)},
                          {t(kPacking), map({{t(kWord), t("u8")}, {t(kOrder), t("lsb_first")}, {t(kPerWord), u(2)}})},
                          {t(kScaleForm), t(kF32Factors)},
                          {t(kZeroPoint), map({{t(kForm), t("implied")}, {t(kValue), u(8)}})}},
                         more));
}
std::string quant_object(const Fields& attribute = {}, const Fields& parts = {}) {
  return object({2, 8}, kQuantGroup,
                with({{t(kData), part("u8", 4096, 8)}, {t(kScales), part("f32", 8192, 16)}}, parts), quant(attribute));
}
std::string mx_object(const Fields& attribute = {}, const Fields& parts = {},
                      std::vector<std::uint64_t> shape = {2, 4}) {
  return object(std::move(shape), kMx,
                with({{t(kData), part("u8", 4096, 4, {{t(kType), t("f4_e2m1")}})},
                      {t(kScales), part("u8", 8192, 4, {{t(kType), t("f8_e8m0")}})}},
                     parts),
                attributes(with({{t(kBlockSize), u(2)}, {t(kScaleForm), t(kExponent)}}, attribute)));
}
std::string gguf_object(const Fields& attribute = {}, const Fields& parts = {}, std::string_view type = "q4_0") {
  return object({2, 32}, "gguf." + std::string(type) + "/1", with({{t(kData), part("u8", 4096, 36)}}, parts),
                attributes(with({{t(kElemsPerBlock), u(32)}, {t(kBlockBytes), u(18)}}, attribute)));
}

Fields shard_row(std::uint64_t size, std::string_view digest) { return {{t(kSize), u(size)}, {t(kDigest), t(digest)}}; }
std::string root_with_shards(Fields shards, std::string object) {
  return root({{t("t"), std::move(object)}}, {{t(kShards), map(std::move(shards))}});
}
const std::string kShardBytes = data_shard({kEight});
std::string with_shard(std::uint64_t size, std::string_view digest) {
  return file(root_with_shards({{t("base"), map(shard_row(size, digest))}}, eight({{t(kShard), t("base")}})));
}

class Corpus : public core::CorpusCases {
 public:
  Corpus() : CorpusCases("zt2") {}
  void add(std::string name, std::string rule, std::string bytes, std::vector<std::string> others = {}) {
    core::CorpusCase& out = CorpusCases::add(std::move(name), std::move(rule), std::move(bytes), std::move(others));
    out.generated_only = out.bytes.size() > 20'000;
    out.extension = "zt";
  }
  // The last case's name is also how the shard's file begins.
  void with_sidecar(std::string shard) {
    last().sidecar = core::CorpusSidecar{.extension = {}, .bytes = std::move(shard), .name = last().name + "-base.zt"};
  }
};

void add_valid(Corpus& c) {
  c.add("valid-one", "", file(root_of(eight()), {kEight}));
  c.add("valid-empty", "", file(root({})));
  c.add(
      "valid-scalar-and-empty", "",
      file(root({{t("s"), dense({}, part("f64", 4096, 8))}, {t("z"), dense({0, 4}, part("f32", 4096, 0))}}), {kEight}));
  c.add("valid-shared", "", file(root({{t("a"), eight()}, {t("b"), dense({2}, part("f32", 4096, 8))}}), {kEight}));
  c.add("valid-reserved", "", file(root_of(eight()), {kEight}, [](MadeFooter& f) { f.reserved = 1; }));
  c.add("valid-unknown-keys", "",
        file(root({{t("t"), dense({8}, part("u8", 4096, 8, {{t("x"), array({u(1), kNull})}, {u(5), u(6)}}),
                                  {{t("y"), kNull}, {u(1), u(2)}})}},
                  {{t("z"), t("more")}, {u(7), u(8)}}),
             {kEight}));
  c.add("valid-attributes", "",
        file(root({}, attributes({{t("float"), std::string("\xf9\x3d\x00", 3)},
                                  {t("nan"), std::string("\xf9\x7e\x00", 3)},
                                  {t("negative"), std::string("\x38\x29", 2)},
                                  {t("nested"), array({kNull, map({{u(1), u(2)}}), std::string("\xf5")})},
                                  {t("bytes"), std::string("\x43"
                                                           "abc")}}))));
  c.add(
      "valid-digests", "",
      file(root({{t("a"), eight({{t(kDigest), t(xxh3(kEight))}})},
                 {t("b"), eight({{t(kDigest),
                                  t("sha256:" + codecs::to_hex(codecs::sha256(std::as_bytes(std::span(kEight)))))}})}}),
           {kEight}));
  const std::string frames = seekable(kEight);
  c.add("valid-seekable", "",
        file(root_of(
                 dense({8}, part("u8", 4096, frames.size(), with(seekable_part(8), {{t(kDigest), t(xxh3(kEight))}})))),
             {frames}));
  int i = 0;
  for (const LogicalType& row : kLogicalTypes) {
    const std::uint64_t size = *packed_size(row.logical, 3);
    c.add("valid-type-" + std::string(row.type), "",
          file(root_of(dense({3}, part(name(row.storage), 4096, size, {{t(kType), t(row.type)}}))),
               {std::string(size, row.logical == DType::boolean || ++i % 2 == 0 ? '\x01' : '\x02')}));
  }
  c.add("valid-sparse-csr", "", csr_file({0, 2, 1}, {0, 2, 3}));
  c.add("valid-sparse-coo", "", file(root_of(coo()), {"ab", le({1, 0, 2, 1})}));
  c.add("valid-quant-group", "", file(root_of(quant_object()), {kEight, std::string(16, '\x3f')}));
  c.add("valid-quant-group-rows", "",
        file(root_of(object(
                 {2, 4}, kQuantGroup, {{t(kData), part("i8", 4096, 8)}, {t(kScales), part("f32", 8192, 8)}},
                 quant({{t(kBits), u(8)},
                        {t(kGroupSize), u(4)},
                        {t(kPacking), map({{t(kWord), t("u8")}, {t(kOrder), t("lsb_first")}, {t(kPerWord), u(1)}})},
                        {t(kZeroPoint), map({{t(kForm), t("none")}})}}))),
             {kEight, std::string(8, '\x3f')}));
  c.add("valid-quant-group-of-1", "",
        file(root_of(object(
                 {8, 2}, kQuantGroup,
                 {{t(kData), part("u32", 4096, 8)},
                  {t(kScales), part("f32", 8192, 16)},
                  {t(kZeros), part("f32", 12288, 16)}},
                 quant({{t(kAxis), u(0)},
                        {t(kPacking), map({{t(kWord), t("u32")}, {t(kOrder), t("lsb_first")}, {t(kPerWord), u(8)}})},
                        {t(kZeroPoint), map({{t(kForm), t("tensor")}, {t(kPacking), t("plain")}})}}))),
             {kEight, std::string(16, '\x3f'), std::string(16, '\x3f')}));
  c.add("valid-mx", "", file(root_of(mx_object()), {"abcd", "\x7f\x80\x81\x7e"}));
  c.add("valid-gguf", "", file(root_of(gguf_object()), {std::string(36, '\x11')}));
  c.add("valid-own-blocks", "",
        file(root_of(object({2, 4}, kOwnBlocks, {{t(kData), part("u8", 4096, 4)}, {t(kScales), part("f32", 8192, 16)}},
                            attributes({{t(kType), t("slm.q4_0")}, {t(kBlockSize), u(2)}}))),
             {"abcd", std::string(16, '\x3f')}));
  c.add("valid-shard", "", with_shard(kShardBytes.size(), xxh3(kShardBytes)));
  c.with_sidecar(kShardBytes);
}

void add_container(Corpus& c) {
  const std::string good = file(root_of(eight()), {kEight});
  const auto changed = [&](std::size_t from_end, std::string_view bytes) {
    std::string out = good;
    return out.replace(out.size() - from_end, bytes.size(), bytes);
  };
  c.add("too-short", "too-short", std::string(kMagic) + std::string(39, '\0'));
  c.add("bad-magic", "bad-magic", "\x89ZT3" + good.substr(4));
  c.add("bad-footer", "bad-footer", changed(1, "\r"));
  c.add("bad-footer-appended", "bad-footer", good + "x");
  c.add("version", "version", changed(16, "\x03"));
  c.add("data-shard-footer", "data-shard-footer", std::string(kMagic) + MadeFooter{4096, 0, 0}.bytes());
  c.add("manifest-too-large", "manifest-too-large", changed(32, std::string("\0\0\0\x80", 4)));
  c.add("manifest-offset", "manifest-offset", changed(40, std::string("\x04\x10", 2)));
  c.add("manifest-offset-0", "manifest-offset", changed(40, std::string(8, '\0')));
  c.add("manifest-range", "manifest-range", changed(40, std::string("\0\0\x10", 3)));
  c.add("manifest-range-2-64", "manifest-range", changed(40, std::string("\0\xf0\xff\xff\xff\xff\xff\xff", 8)));
  c.add("manifest-hash", "manifest-hash", changed(24, "\x01\x02\x03"));
  c.add("data-shard", "data-shard", kShardBytes);
}

void add_manifest(Corpus& c) {
  c.add("cbor-tag", "cbor", file(std::string("\xc0\x00", 2)));
  c.add("cbor-trailing", "cbor", file(root_of(eight()) + '\0', {kEight}));
  c.add("cbor-indefinite", "cbor", file("\xbf\xff"));
  c.add("cbor-undefined", "cbor", file(root({}, attributes({{t("a"), "\xf7"}}))));
  c.add("determinism-width", "determinism", file(std::string("\xa1\x67objects\xb8\x00", 11)));
  c.add("determinism-order", "determinism", file(wire::items::map({{t("objects"), map({})}, {t("shards"), map({})}})));
  c.add("determinism-float", "determinism", file(root({}, attributes({{t("a"), std::string("\xfa\x3f\x80\0\0", 5)}}))));
  c.add("duplicate-key", "duplicate-key", file(wire::items::map({{t("objects"), map({})}, {t("objects"), map({})}})));
  c.add("depth", "depth", file(root({}, attributes({{t("a"), nested(31)}}))));
  c.add("root-type", "root-type", file(array({u(1)})));
  c.add("root-field", "root-field", file(map({{t(kObjects), u(1)}})));
  c.add("root-field-attributes", "root-field", file(root({}, {{t(kAttributes), u(7)}})));
  c.add("root-field-shards", "root-field", file(root({}, {{t(kShards), array({})}})));
  c.add("root-missing", "root-missing", file(map({})));
  c.add("attribute-key-type", "attribute-key-type", file(root({}, attributes({{u(1), kNull}}))));
  c.add("attribute-key", "attribute-key", file(root({}, attributes({{t(""), kNull}}))));
  c.add("shard-key", "shard-key",
        file(root({}, {{t(kShards), map({{u(1), map(shard_row(4096, "xxh3:0011223344556677"))}})}})));
  for (const auto& [name, shard] : {std::pair{"dots", ".."}, {"separator", "a/b"}, {"empty", ""}, {"hidden", ".a"}})
    c.add("shard-name-" + std::string(name), "shard-name",
          file(root({}, {{t(kShards), map({{t(shard), map(shard_row(4096, "xxh3:0011223344556677"))}})}})));
  const auto one_shard = [](std::string row) {
    return file(root({}, {{t(kShards), map({{t("a"), std::move(row)}})}}));
  };
  c.add("shard-field-size", "shard-field", one_shard(map(shard_row(47, "xxh3:0011223344556677"))));
  c.add("shard-field-no-size", "shard-field", one_shard(map({{t(kDigest), t("xxh3:0011223344556677")}})));
  c.add("shard-field-no-digest", "shard-field", one_shard(map({{t(kSize), u(4096)}})));
  c.add("shard-field-digest", "shard-field", one_shard(map(shard_row(4096, "xxh3:00"))));
  c.add("shard-field-type", "shard-field", one_shard(u(1)));
  c.add("name-type", "name-type", file(root({{u(1), eight()}}), {kEight}));
}

void add_objects(Corpus& c) {
  const auto one = [&](std::string name, std::string rule, std::string object, std::vector<std::string> others = {}) {
    c.add(std::move(name), std::move(rule), file(root_of(std::move(object)), {kEight}), std::move(others));
  };
  c.add("name", "name", file(root({{t(""), eight()}}), {kEight}));
  c.add("name-nul", "name", file(root({{t(std::string_view("a\0b", 3)), eight()}}), {kEight}));
  c.add("name-long", "name", file(root({{t(std::string(1025, 'n')), eight()}}), {kEight}));
  one("name-of-part", "name", object({8}, "x.y/1", {{t(""), part("u8", 4096, 8)}}));
  one("object-type", "object-type", u(1));
  one("object-field", "object-field", dense({8}, part("u8", 4096, 8), {{t(kShape), u(8)}}));
  one("object-field-dims", "object-field", dense({8}, part("u8", 4096, 8), {{t(kShape), array({t("8")})}}));
  one("object-field-layout", "object-field", dense({8}, part("u8", 4096, 8), {{t(kLayout), u(1)}}));
  one("object-field-attributes", "object-field", dense({8}, part("u8", 4096, 8), {{t(kAttributes), u(1)}}));
  one("object-field-parts", "object-field", dense({8}, part("u8", 4096, 8), {{t(kParts), array({})}}));
  one("object-missing", "object-missing", dense({8}, part("u8", 4096, 8), {{t(kLayout), ""}}));
  one("object-attribute-key", "object-attribute-key", dense({8}, part("u8", 4096, 8), attributes({{t(""), kNull}})));
  one("rank", "rank", dense(std::vector<std::uint64_t>(65, 1), part("u8", 4096, 1)));
  one("shape-overflow", "shape-overflow", dense({UINT64_MAX, 2}, part("u8", 4096, 8)));
  one("shape-overflow-bytes", "shape-overflow", dense({UINT64_MAX}, part("f32", 4096, 8)));
  one("no-parts", "no-parts", object({8}, "x.y/1", {}));
  one("part-type", "part-type", object({8}, kDense, {{t(kData), u(1)}}));
  one("part-type-name", "part-type", object({8}, kDense, {{u(1), part("u8", 4096, 8)}}));
  one("part-field", "part-field", eight({{t(kDtype), u(1)}}));
  one("part-field-blob", "part-field", eight({{t(kBlob), array({u(4096)})}}));
  one("part-field-blob-of-three", "part-field", eight({{t(kBlob), array({u(4096), u(8), u(0)})}}));
  one("part-field-digest", "part-field", eight({{t(kDigest), kNull}}));
  one("part-missing", "part-missing", eight({{t(kBlob), ""}}));
  one("dtype", "dtype", eight({{t(kDtype), t("bool")}}));
  one("type", "type", dense({2}, part("f32", 4096, 8, {{t(kType), t("bool")}})));
  one("decoded-length", "decoded-length", eight({{t(kEncoding), t(kSeekable)}}));
  one("decoded-length-alone", "decoded-length", eight({{t(kDecodedLength), u(8)}}));
  one("digest-syntax", "digest-syntax", eight({{t(kDigest), t("xxh3:00FF00FF00FF00FF")}}));
  one("digest-syntax-short", "digest-syntax", eight({{t(kDigest), t("sha256:00")}}));
  one("shard-unknown", "shard-unknown", eight({{t(kShard), t("base")}}));
  one("offset", "offset", dense({8}, part("u8", 4100, 8)));
  one("offset-0", "offset", dense({8}, part("u8", 0, 8)));
  one("range", "range", dense({1U << 20}, part("u8", 4096, 1U << 20)));
  one("range-2-64", "range", dense({8}, part("u8", UINT64_MAX - 4095, 8)));
  c.add("overlap", "overlap",
        file(root({{t("a"), dense({4104}, part("u8", 4096, 4104))}, {t("b"), dense({8}, part("u8", 8192, 8))}}),
             {std::string(4104, 'x')}));
  c.add("overlap-manifest", "overlap", file(root_of(dense({4100}, part("u8", 4096, 4100))), {kEight}));
  {
    Fields parts;
    for (int i = 0; i < 257; ++i) parts.emplace_back(t("r" + std::to_string(i)), part("u8", 4096, 8));
    c.add("too-many-roles", "too-many-roles", file(root_of(object({8}, "x.y/1", parts)), {kEight}));
  }
  one("digest-unknown", "digest-unknown", eight({{t(kDigest), t("blake9:00")}}));
  c.add("unknown-layout", "unknown-layout",
        file(root_of(object({8}, "x.y/1", {{t(kData), part("u16", 4096, 7)}})), {"1234567"}));
  one("unknown-layout-version", "unknown-layout", object({8}, "zt.mx/2", {{t(kData), part("u8", 4096, 8)}}));
  one("unknown-type", "unknown-type", dense({999}, part("u8", 4096, 8, {{t(kType), t("x.future/1")}})));
  one("unknown-encoding", "unknown-encoding", eight({{t(kEncoding), t("x.z/1")}, {t(kDecodedLength), u(8)}}));
  c.add("padding", "padding", [] {
    std::string out = file(root_of(eight()), {kEight});
    out[5000] = 'x';
    return out;
  }());
}

void add_layouts(Corpus& c) {
  const auto one = [&](std::string name, std::string rule, std::string object) {
    c.add(std::move(name), std::move(rule),
          file(root_of(std::move(object)), {kEight, le({0, 0, 0, 0}), le({0, 0, 0})}));
  };
  one("layout-parts", "layout-parts",
      object({8}, kDense, {{t(kData), part("u8", 4096, 8)}, {t("extra"), part("u8", 8192, 8)}}));
  one("layout-parts-csr", "layout-parts", csr({}, {{t(kIndptr), ""}}));
  one("layout-shape", "layout-shape", csr({{t(kShape), array({u(6)})}}));
  one("layout-shape-coo", "layout-shape", coo({}, {}));
  one("layout-dtype", "layout-dtype", csr({}, {{t(kIndices), part("i64", 8192, 24)}}));
  one("layout-dtype-indptr", "layout-dtype", csr({}, {{t(kIndptr), part("u32", 12288, 12)}}));
  one("layout-dtype-mx", "layout-dtype", mx_object({}, {{t(kScales), part("u8", 8192, 4)}}));
  one("layout-dtype-gguf", "layout-dtype", gguf_object({}, {{t(kData), part("i8", 4096, 36)}}));
  one("layout-dtype-quant", "layout-dtype", quant_object({}, {{t(kData), part("u16", 4096, 8)}}));
  one("layout-attribute", "layout-attribute", quant_object({{t(kBits), u(7)}}));
  one("layout-attribute-group", "layout-attribute", quant_object({{t(kGroupSize), u(3)}}));
  one("layout-attribute-axis", "layout-attribute", quant_object({{t(kAxis), u(2)}}));
  one("layout-attribute-packing", "layout-attribute", quant_object({{t(kPacking), u(2)}}));
  one("layout-attribute-zero", "layout-attribute", quant_object({{t(kZeroPoint), map({{t(kForm), t("implied")}})}}));
  one("layout-attribute-mx", "layout-attribute", mx_object({{t(kScaleForm), ""}}));
  one("layout-attribute-mx-block", "layout-attribute", mx_object({{t(kBlockSize), u(3)}}));
  one("layout-attribute-gguf", "layout-attribute", gguf_object({{t(kElemsPerBlock), u(0)}}));
  one("layout-attribute-gguf-bytes", "layout-attribute", gguf_object({{t(kBlockBytes), t("18")}}));
  one("dense-size", "dense-size", dense({3}, part("f32", 4096, 8)));
  one("dense-size-f4", "dense-size", dense({5}, part("u8", 4096, 4, {{t(kType), t("f4_e2m1")}})));
  one("layout-size", "layout-size", csr({}, {{t(kIndptr), part("u64", 12288, 16)}}));
  one("layout-size-values", "layout-size", csr({}, {{t(kValues), part("f32", 4096, 8)}}));
  one("layout-size-indices", "layout-size", csr({}, {{t(kIndices), part("u64", 8192, 23)}}));
  one("layout-size-coo", "layout-size", coo({{t(kCoords), part("u64", 8192, 24)}}));
  one("layout-size-mx", "layout-size", mx_object({}, {{t(kScales), part("u8", 8192, 3, {{t(kType), t("f8_e8m0")}})}}));
  one("layout-size-quant", "layout-size", quant_object({}, {{t(kScales), part("f32", 8192, 12)}}));
  c.add("layout-size-gguf", "layout-size",
        file(root_of(gguf_object({}, {{t(kData), part("u8", 4096, 35)}})), {std::string(36, 'x')}));
  c.add("parameters-group-0", "parameters",
        file(root_of(object({2, 4}, kQuantGroup, {{t(kData), part("u8", 4096, 4)}, {t(kScales), part("f32", 8192, 32)}},
                            quant({{t(kGroupSize), u(0)}}))),
             {"abcd", std::string(32, 'x')}));
  c.add("parameters-mx-axis", "parameters", file(root_of(mx_object({{t(kAxis), u(0)}})), {"abcd", "abcd"}));
  c.add("parameters-gguf", "parameters",
        file(root_of(gguf_object({{t(kBlockBytes), u(17)}}, {{t(kData), part("u8", 4096, 34)}})),
             {std::string(34, 'x')}));
  c.add("unknown-layout-gguf", "unknown-layout", file(root_of(gguf_object({}, {}, "q9_9")), {std::string(36, 'x')}));
}

void add_payload(Corpus& c) {
  c.add("digest", "digest", file(root_of(eight({{t(kDigest), t("xxh3:0000000000000000")}})), {kEight}));
  c.add("digest-sha256", "digest", file(root_of(eight({{t(kDigest), t("sha256:" + std::string(64, '0'))}})), {kEight}));
  const std::string frames = seekable(kEight);
  const auto coded = [&](std::string stored, std::uint64_t decoded, const Fields& more = {}) {
    return file(root_of(dense({decoded}, part("u8", 4096, stored.size(), with(seekable_part(decoded), more)))),
                {stored});
  };
  c.add("digest-seekable", "digest", coded(frames, 8, {{t(kDigest), t(xxh3("87654321"))}}));
  c.add("zstd", "zstd", coded(std::string("not zstd at all, but long enough"), 8));
  c.add("zstd-no-table", "zstd", coded(frames.substr(0, frames.size() - 25), 8));
  c.add("zstd-table", "zstd",
        coded(
            [&] {
              std::string out = frames;
              out[out.size() - 13] = '\x07';  // the decoded size of the frame
              return out;
            }(),
            8));
  c.add("zstd-length", "zstd", coded(frames, 9));
  c.add("zstd-trailing", "zstd", coded(frames + "x", 8));
  {
    const std::vector<std::byte> plain = codecs::encode(codecs::kZstd, std::as_bytes(std::span(kEight)));
    c.add("zstd-no-checksum", "zstd",
          coded(std::string(reinterpret_cast<const char*>(plain.data()), plain.size()) +
                    frames.substr(frames.size() - 25),
                8));
  }
  c.add("bool", "bool", file(root_of(eight({{t(kType), t("bool")}})), {std::string("\0\1\2\1\0\1\0\1", 8)}));
  c.add("nibble", "nibble",
        file(root_of(dense({5}, part("u8", 4096, 3, {{t(kType), t("f4_e2m1")}}))), {std::string("\x12\x34\x15", 3)}));
  c.add("indptr", "indptr", csr_file({0, 2, 1}, {1, 2, 3}));
  c.add("indptr-falls", "indptr", csr_file({0, 2, 1}, {0, 4, 3}));
  c.add("index-range", "index-range", csr_file({0, 3, 1}, {0, 2, 3}));
  c.add("index-range-coo", "index-range", file(root_of(coo()), {"ab", le({1, 2, 2, 1})}));
  c.add("index-order", "index-order", csr_file({2, 0, 1}, {0, 2, 3}));
  c.add("duplicate-entries", "duplicate-entries", file(root_of(coo()), {"ab", le({1, 1, 2, 2})}));
  c.add("duplicate-entries-csr", "duplicate-entries", csr_file({1, 1, 1}, {0, 2, 3}));
  c.add("entries-unchecked", "entries-unchecked", csr_file({0, 2, 1}, {0, 2, 3}));
  c.last().generated_only = true;
  c.last().limits.memory = 64;

  c.add("shard-missing", "shard-missing", with_shard(4144, "xxh3:0011223344556677"));
  c.add("shard-size", "shard-size", with_shard(kShardBytes.size() + 1, xxh3(kShardBytes)));
  c.with_sidecar(kShardBytes);
  c.add("shard-file", "shard-file", with_shard(kShardBytes.size(), xxh3(kShardBytes)));
  c.with_sidecar(std::string(kShardBytes.size(), 'x'));
  // A table's shard that no part is in.
  const auto unused = [](std::uint64_t size, std::string_view digest) {
    return file(root_with_shards({{t("base"), map(shard_row(size, digest))}}, eight()), {kEight});
  };
  c.add("valid-shard-unused", "", unused(kShardBytes.size(), xxh3(kShardBytes)));
  c.with_sidecar(kShardBytes);
  c.add("valid-shard-unused-missing", "", unused(kShardBytes.size(), xxh3(kShardBytes)));
  c.add("shard-size-unused", "shard-size", unused(kShardBytes.size() + 1, xxh3(kShardBytes)));
  c.with_sidecar(kShardBytes);
  c.add("shard-digest-unused", "shard-digest", unused(kShardBytes.size(), "xxh3:0011223344556677"));
  c.with_sidecar(kShardBytes);
  c.add("digest-unknown-shard", "digest-unknown", with_shard(kShardBytes.size(), "blake9:00"));
  c.with_sidecar(kShardBytes);
  c.add("shard-digest", "shard-digest", with_shard(kShardBytes.size(), "xxh3:0011223344556677"));
  c.with_sidecar(kShardBytes);
}

}  // namespace

std::vector<core::CorpusCase> cases() {
  Corpus c;
  add_valid(c);
  add_container(c);
  add_manifest(c);
  add_objects(c);
  add_layouts(c);
  add_payload(c);
  return c.take();
}

}  // namespace weighbridge::ztensor2
