// SPDX-License-Identifier: Apache-2.0
// The corpus of zTensor 1.x: at least one small file for each rule, and valid files of every layout. They are built
// with a few helpers that write any CBOR, valid or not.
#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/endian.h"
#include "codecs/checksum.h"
#include "codecs/codec.h"
#include "formats/ztensor/v1/format.h"
#include "formats/ztensor/v1/layout.h"
#include "support/cbor_items.h"
#include "support/corpus_case.h"

namespace weighbridge::ztensor1 {
namespace {

using wire::items::array;
using wire::items::Fields;
using wire::items::kNull;
using wire::items::map;

using wire::items::t, wire::items::u;

std::string component(std::string_view dtype, std::uint64_t offset, std::uint64_t length, Fields more = {}) {
  Fields fields{{t(kDtype), t(dtype)}, {t(kOffset), u(offset)}, {t(kLength), u(length)}};
  fields.insert(fields.end(), more.begin(), more.end());
  return map(fields);
}
std::string object(std::string shape, std::string_view format, Fields components, Fields more = {}) {
  Fields fields{{t(kShape), std::move(shape)}, {t(kFormatKey), t(format)}, {t(kComponents), map(components)}};
  fields.insert(fields.end(), more.begin(), more.end());
  return map(fields);
}
std::string dense(std::string shape, std::string data, Fields more = {}) {
  return object(std::move(shape), "dense", {{t(kData), std::move(data)}}, std::move(more));
}
std::string root(const Fields& objects, Fields more = {}) {
  Fields fields{{t(kVersion), t("1.1.0")}, {t(kObjects), map(objects)}};
  fields.insert(fields.end(), more.begin(), more.end());
  return map(fields);
}

std::string footer(std::string_view manifest) {
  std::string size(8, '\0');
  base::store_le<std::uint64_t>(size.data(), manifest.size());
  return std::string(manifest) + size + std::string(kMagic);
}
// Payloads from 64 on, each at the next multiple of 64.
std::string body(std::initializer_list<std::string> payloads) {
  std::string out(kMagic);
  for (const std::string& payload : payloads) {
    out.resize((out.size() + 63) / 64 * 64, '\0');
    out += payload;
  }
  return out;
}
std::string file(const std::string& manifest, std::initializer_list<std::string> payloads = {}) {
  return body(payloads) + footer(manifest);
}

std::string le(std::initializer_list<std::uint64_t> values) {
  std::string out;
  for (const std::uint64_t value : values) {
    char bytes[8];
    base::store_le<std::uint64_t>(bytes, value);
    out.append(bytes, 8);
  }
  return out;
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
const std::string kShapeFour = array({u(4)});

class Corpus : public core::CorpusCases {
 public:
  Corpus() : CorpusCases("zt") {}
  // Adds a file with one object "w" and four bytes of payload.
  void one(std::string name, std::string rule, std::string entry, std::vector<std::string> others = {}) {
    add(std::move(name), std::move(rule), file(root({{t("w"), std::move(entry)}}), {kFour}), std::move(others));
  }
  // Adds a file with one dense u8 [4] that has the component `data`.
  void part(std::string name, std::string rule, std::string data, std::vector<std::string> others = {}) {
    one(std::move(name), std::move(rule), dense(kShapeFour, std::move(data)), std::move(others));
  }
};

void add_envelope(Corpus& c) {
  const std::string empty = file(root({}));
  c.add("valid-no-objects", "", empty);
  c.add("too-short", "too-short", "ZTEN1000");
  c.add("too-short-23", "too-short", "ZTEN1000" + std::string(15, '\0'));
  c.add("bad-magic", "bad-magic", "ZTEN1001" + empty.substr(8));
  c.add("bad-footer", "bad-footer", empty.substr(0, empty.size() - 1));
  c.add("bad-footer-trailing", "bad-footer", empty + "\n");
  c.add("draft-1.0", "draft-1.0", [] {
    const std::string manifest = map({{t("version"), t("1.0")}, {t("tensors"), map({})}});
    return "ZTEN1000" + manifest + le({manifest.size()});
  }());
  const auto with_size = [&](std::uint64_t size) {
    return empty.substr(0, empty.size() - 16) + le({size}) + "ZTEN1000";
  };
  c.add("manifest-too-large", "manifest-too-large", with_size(kMaxManifest + 1));
  c.add("manifest-too-large-2-64", "manifest-too-large", with_size(UINT64_MAX));
  c.add("manifest-range", "manifest-range", with_size(empty.size() - 23));
}

void add_root(Corpus& c) {
  c.add("cbor-empty", "cbor", file(""));
  c.add("cbor-cut", "cbor", file(root({}).substr(0, 12)));
  c.add("cbor-length-2-64", "cbor", file("\xbb\xff\xff\xff\xff\xff\xff\xff\xff"));
  c.add("cbor-utf8", "cbor", file(root({}, {{"\x61\xff", u(1)}})));
  c.add("trailing-bytes", "trailing-bytes", file(root({}) + '\0'));
  c.add("root-type", "root-type", file(array({})));
  c.add("root-key", "root-key", file(root({}, {{u(1), u(2)}})));
  c.add("attribute-key", "attribute-key",
        file(root({}, {{t(kAttributes), map({{u(1), u(2)}, {t("a"), t("b")}, {array({}), kNull}})}})));
  c.add("valid-attributes-null", "", file(root({}, {{t(kAttributes), kNull}})));
  c.add("root-field-version", "root-field", file(map({{t(kVersion), u(1)}, {t(kObjects), map({})}})));
  c.add("root-field-version-tagged", "root-field",
        file(map({{t(kVersion), "\xc6" + t("1.1.0")}, {t(kObjects), map({})}})));
  c.add("root-field-objects", "root-field", file(map({{t(kVersion), t("1.1.0")}, {t(kObjects), array({})}})));
  c.add("root-field-attributes", "root-field", file(root({}, {{t(kAttributes), array({})}})));
  c.add("root-missing-version", "root-missing", file(map({{t(kObjects), map({})}})));
  c.add("root-missing-objects", "root-missing", file(map({{t(kVersion), t("1.1.0")}})));
  c.add("version-2", "version", file(map({{t(kVersion), t("2.0.0")}, {t(kObjects), map({})}})));
  c.add("version-two-parts", "version", file(map({{t(kVersion), t("1.1")}, {t(kObjects), map({})}})));
  c.add("valid-version-1.9.12", "", file(map({{t(kVersion), t("1.9.12")}, {t(kObjects), map({})}})));
  c.add("valid-keys-in-any-order", "",
        file(map({{t(kObjects), map({})}, {t("x-more"), array({u(1)})}, {t(kVersion), t("1.1.0")}})));
  c.add("valid-indefinite", "",
        file("\xbf" + t(kVersion) + "\x7f" + t("1.1") + t(".0") + "\xff" + t(kObjects) + "\xbf\xff\xff"));
  c.add("duplicate-key", "duplicate-key", file(root({}, {{t(kVersion), t("1.1.0")}})));
  c.add("duplicate-key-attributes", "duplicate-key",
        file(root({}, {{t(kAttributes), map({{t("a"), u(1)}, {t("a"), u(1)}})}})));
  c.add("duplicate-key-nested", "duplicate-key",
        file(root({}, {{t(kAttributes), map({{t("a"), map({{t("k"), u(1)}, {t("k"), u(2)}})}})}})));
  const std::string entry = dense(kShapeFour, component("u8", 64, 4));
  c.add("duplicate-name", "duplicate-name", file(root({{t("w"), entry}, {t("w"), entry}}), {kFour}));
  c.add("name-type", "name-type", file(root({{u(7), entry}}), {kFour}));
  c.add("valid-attributes", "",
        file(root({}, {{t(kAttributes), map({{t(""), t("empty key")},
                                             {t("tag"), "\xc1" + u(0)},
                                             {t("undefined"), "\xf7"},
                                             {t("other keys"), map({{u(1), u(2)}})},
                                             {t("below -2^63"), "\x3b\xff\xff\xff\xff\xff\xff\xff\xff"}})}})));
}

void add_objects(Corpus& c) {
  const std::string data = component("u8", 64, 4);
  c.one("valid-dense", "", dense(kShapeFour, data));
  c.one("valid-scalar-name", "",
        dense(array({u(2), u(2)}), data, {{t(kAttributes), map({{t("n"), u(1)}})}, {t("x-own"), kNull}}));
  c.one("object-type", "object-type", array({}));
  c.one("object-key", "object-key", dense(kShapeFour, data, {{u(1), u(1)}}));
  c.one("object-field-shape", "object-field", dense(u(4), data));
  c.one("object-field-dimension", "object-field", dense(array({"\x23"}), data));
  c.one("object-field-format", "object-field",
        map({{t(kShape), kShapeFour}, {t(kFormatKey), u(1)}, {t(kComponents), map({})}}));
  c.one("object-field-components", "object-field",
        map({{t(kShape), kShapeFour}, {t(kFormatKey), t("dense")}, {t(kComponents), t("x")}}));
  c.one("attribute-key-object", "attribute-key",
        dense(kShapeFour, data, {{t(kAttributes), map({{u(1), u(2)}, {t("a"), t("b")}})}}));
  c.one("valid-object-attributes-null", "", dense(kShapeFour, data, {{t(kAttributes), kNull}}));
  c.one("object-field-attributes", "object-field", dense(kShapeFour, data, {{t(kAttributes), u(1)}}));
  c.one("object-missing-shape", "object-missing",
        map({{t(kFormatKey), t("dense")}, {t(kComponents), map({{t(kData), data}})}}));
  c.one("object-missing-format", "object-missing",
        map({{t(kShape), kShapeFour}, {t(kComponents), map({{t(kData), data}})}}));
  c.one("object-missing-components", "object-missing", map({{t(kShape), kShapeFour}, {t(kFormatKey), t("dense")}}));
  c.one("object-duplicate-key", "object-duplicate-key", dense(kShapeFour, data, {{t(kShape), kShapeFour}}));
  c.one("object-duplicate-key-unknown", "object-duplicate-key",
        dense(kShapeFour, data, {{t("x"), u(1)}, {t("x"), u(2)}}));
  c.one("object-duplicate-key-role", "object-duplicate-key",
        object(kShapeFour, "dense", {{t(kData), data}, {t(kData), data}}));
  c.part("object-duplicate-key-component", "object-duplicate-key", component("u8", 64, 4, {{t(kOffset), u(64)}}));
  c.part("object-duplicate-key-null", "object-duplicate-key",
         component("u8", 64, 4, {{t(kDigest), kNull}, {t(kDigest), t(crc32c(kFour))}}));
  wire::CborWriter deep;
  deep.array(65);
  for (int i = 0; i < 65; ++i) deep.u64(1);
  c.one("rank", "rank", dense(deep.data(), data));
  c.one("shape-overflow", "shape-overflow", dense(array({u(1ULL << 32), u(1ULL << 32)}), data));
  c.one("shape-overflow-bytes", "shape-overflow", dense(array({u(1ULL << 61)}), component("f64", 64, 4)));
  c.one("shape-overflow-wraps-to-0", "shape-overflow", dense(array({u(1ULL << 62)}), component("f32", 64, 0)));
  c.add("valid-zero-times-anything", "",
        file(root({{t("w"), dense(array({u(UINT64_MAX), u(0), u(UINT64_MAX)}), component("f64", 64, 0))}}), {""}));
  c.one("component-type", "component-type", dense(kShapeFour, u(1)));
  c.part("component-key", "component-key", component("u8", 64, 4, {{u(1), u(1)}}));
  c.one("component-key-role", "component-key", object(kShapeFour, "dense", {{u(1), data}}));
  c.part("component-field-dtype", "component-field", map({{t(kDtype), u(1)}, {t(kOffset), u(64)}, {t(kLength), u(4)}}));
  c.part("component-field-offset", "component-field",
         map({{t(kDtype), t("u8")}, {t(kOffset), "\x20"}, {t(kLength), u(4)}}));
  c.part("component-field-digest", "component-field", component("u8", 64, 4, {{t(kDigest), u(1)}}));
  c.part("component-missing-dtype", "component-missing", map({{t(kOffset), u(64)}, {t(kLength), u(4)}}));
  c.part("component-missing-offset", "component-missing", map({{t(kDtype), t("u8")}, {t(kLength), u(4)}}));
  c.part("component-missing-length", "component-missing", map({{t(kDtype), t("u8")}, {t(kOffset), u(64)}}));
  c.one("role-missing", "role-missing", object(kShapeFour, "dense", {}));
  c.one("role-missing-zeros", "role-missing",
        object(array({u(1), u(4)}), "quantized_group", {{t(kPackedWeight), data}, {t(kScales), data}}));
}

void add_components(Corpus& c) {
  c.part("offset-zero", "offset", component("u8", 0, 4));
  c.part("offset-unaligned", "offset", component("u8", 65, 4));
  c.one("offset-empty", "offset", dense(array({u(0)}), component("u8", 8, 0)));
  c.part("range", "range", component("u8", 128, 4));
  c.part("range-2-64", "range", component("u8", UINT64_MAX - 63, 64));
  c.one("range-into-manifest", "range", dense(array({u(5)}), component("u8", 64, 5)));
  c.part("length", "length", component("u8", 64, 3));
  c.part("length-dtype", "length", component("u16", 64, 4));
  c.part("uncompressed-length", "uncompressed-length",
         component("u8", 64, 4, {{t(kEncoding), t("zstd")}, {t(kUncompressedLength), u(5)}}));
  c.part("type", "type", component("u8", 64, 4, {{t(kType), t("complex64")}}));
  c.part("valid-type", "", component("u8", 64, 4, {{t(kType), t("f8_e4m3fn")}}));
  c.part("valid-nulls", "",
         component("u8", 64, 4,
                   {{t(kType), kNull}, {t(kDigest), kNull}, {t(kUncompressedLength), kNull}, {t(kEncoding), kNull}}));
  c.part("valid-unknown-key", "", component("u8", 64, 4, {{t("x-note"), t("kept")}}));
  c.part("digest-syntax", "digest-syntax", component("u8", 64, 4, {{t(kDigest), t("sha256:00")}}));
  c.part("digest-syntax-crc32c", "digest-syntax", component("u8", 64, 4, {{t(kDigest), t("crc32c:E3069283")}}));
  c.part("valid-sha256", "", component("u8", 64, 4, {{t(kDigest), t(sha256(kFour))}}));
  c.part("valid-crc32c", "", component("u8", 64, 4, {{t(kDigest), t(crc32c(kFour))}}));
  c.part("digest", "digest", component("u8", 64, 4, {{t(kDigest), t(sha256("other"))}}));
  c.part("digest-crc32c", "digest", component("u8", 64, 4, {{t(kDigest), t(crc32c("other"))}}));
  c.part("digest-unknown", "digest-unknown", component("u8", 64, 4, {{t(kDigest), t("md5:00")}}));
  c.part("bool", "bool", component("bool", 64, 4));
  c.part("zstd", "zstd", component("u8", 64, 4, {{t(kEncoding), t("zstd")}}));
  const auto zstd = [&](std::string name, std::string_view rule, const std::string& stored, std::uint64_t count,
                        std::string_view dtype = "u8") {
    c.add(std::move(name), std::string(rule),
          file(root({{t("w"),
                      dense(array({u(count)}), component(dtype, 64, stored.size(), {{t(kEncoding), t("zstd")}}))}}),
               {stored}));
  };
  zstd("valid-zstd", "", frame(kFour), 4);
  zstd("zstd-too-short", "zstd", frame(kFour), 5);
  zstd("valid-zstd-two-frames", "", frame(kFour) + frame(kFour), 8);
  zstd("valid-zstd-skippable", "", kSkippable + frame(kFour) + kSkippable, 4);
  zstd("zstd-two-frames", "zstd", frame(kFour) + frame(kFour), 4);
  zstd("zstd-skippable-cut", "zstd", frame(kFour) + kSkippable.substr(0, 11), 4);
  zstd("zstd-trailing", "zstd", frame(kFour) + '\0', 4);
  zstd("zstd-cut", "zstd", frame(kFour).substr(0, 6), 4);
  zstd("bool-zstd", "bool", frame(kFour), 4, "bool");
  c.part("unknown-dtype", "unknown-dtype", component("i4", 64, 4));
  c.part("unknown-dtype-of-the-project", "unknown-dtype", component("f8_e8m0", 64, 4));
  c.part("unknown-type", "unknown-type", component("u8", 64, 4, {{t(kType), t("nf4")}}));
  c.part("unknown-encoding", "unknown-encoding", component("u8", 64, 4, {{t(kEncoding), t("lz4")}}));
  c.one("unknown-format", "unknown-format", object(kShapeFour, "acme_blob", {{t("stuff"), component("u16", 64, 4)}}));
  c.one("extra-role", "extra-role",
        object(kShapeFour, "dense", {{t(kData), component("u8", 64, 4)}, {t("scale"), component("f32", 64, 4)}}));
  Fields roles;
  for (std::size_t i = 0; i <= kMaxRoles; ++i) roles.push_back({t("r" + std::to_string(i)), component("u8", 64, 0)});
  c.one("too-many-roles", "too-many-roles", object(array({}), "acme_blob", roles));
}

void add_layouts(Corpus& c) {
  // [[5, 0, 0], [0, 0, 7]]
  const std::string indptr = le({0, 1, 2}), indices = le({0, 2}), values("\x05\x07", 2);
  const auto csr = [&](std::string name, std::string_view rule, const std::string& p, const std::string& i,
                       std::string index_dtype = "u64", std::string shape = array({u(2), u(3)})) {
    c.add(std::move(name), std::string(rule),
          file(root({{t("s"), object(std::move(shape), "sparse_csr",
                                     {{t(kIndices), component(index_dtype, 64, i.size())},
                                      {t(kIndptr), component("u64", 128, p.size())},
                                      {t(kValues), component("u8", 192, 2)}})}}),
               {i, p, values}));
  };
  csr("valid-csr", "", indptr, indices);
  csr("sparse-rank", "sparse-rank", indptr, indices, "u64", array({u(6)}));
  csr("index-dtype", "index-dtype", indptr, indices, "f64");
  csr("index-count-indptr", "index-count", le({0, 2}), indices);
  csr("index-count-indices", "index-count", indptr, le({0}));
  csr("indptr-start", "indptr", le({1, 1, 2}), indices);
  csr("indptr-end", "indptr", le({0, 1, 1}), indices);
  csr("index-range", "index-range", indptr, le({0, 3}));
  csr("index-range-negative", "index-range", indptr, le({0, UINT64_MAX}), "i64");
  csr("duplicate-entries", "duplicate-entries", le({0, 2, 2}), le({1, 1}));
  const auto coo = [&](std::string name, std::string_view rule, const std::string& coords) {
    c.add(std::move(name), std::string(rule),
          file(root({{t("s"), object(array({u(2), u(3)}), "sparse_coo",
                                     {{t(kCoords), component("u64", 64, coords.size())},
                                      {t(kValues), component("u8", 128, 2)}})}}),
               {coords, values}));
  };
  coo("valid-coo", "", le({0, 1, 0, 2}));
  coo("index-count-coords", "index-count", le({0, 1, 0}));
  coo("index-range-coords", "index-range", le({0, 2, 0, 2}));
  coo("duplicate-entries-coords", "duplicate-entries", le({1, 1, 2, 2}));
  const auto zstd = [&](const std::string& stored) {
    return Fields{{t(kEncoding), t("zstd")}, {t(kDigest), t(sha256(stored))}};
  };
  const std::string i = frame(indices), p = frame(indptr), v = frame(values);
  c.add("valid-csr-zstd-without-sizes", "",
        file(root({{t("s"), object(array({u(2), u(3)}), "sparse_csr",
                                   {{t(kIndices), component("u64", 64, i.size(), zstd(i))},
                                    {t(kIndptr), component("u64", 128, p.size(), zstd(p))},
                                    {t(kValues), component("u8", 192, v.size(), zstd(v))}})}}),
             {i, p, v}));
  c.add("zstd-size-cannot-be-told", "zstd",
        file(root({{t("s"), object(array({u(1)}), "sparse_coo",
                                   {{t(kCoords), component("u64", 64, 8, {{t(kEncoding), t("zstd")}})},
                                    {t(kValues), component("u8", 128, 2, {{t(kEncoding), t("zstd")}})}})}}),
             {le({0}), values}));
  const auto group = [&](std::string name, std::string_view rule, Fields attributes) {
    c.add(std::move(name), std::string(rule),
          file(root({{t("q"), object(array({u(2), u(1)}), "quantized_group",
                                     {{t(kPackedWeight), component("u8", 64, 1)},
                                      {t(kScales), component("f32", 128, 4)},
                                      {t(kZeros), component("u8", 192, 1)}},
                                     {{t(kAttributes), map(attributes)}})}}),
               {"\x21", std::string("\0\0\x80\x3f", 4), "\x01"}));
  };
  group("valid-quantized", "", {{t("bits"), u(4)}, {t("group_size"), u(2)}, {t("packing"), t("2_per_u8")}});
  group("quantization-bits-3", "quantization",
        {{t("bits"), u(3)}, {t("group_size"), u(2)}, {t("packing"), t("2_per_u8")}});
  group("quantization-no-attributes", "quantization", {});
  group("quantization-group-size", "quantization",
        {{t("bits"), u(4)}, {t("group_size"), u(1)}, {t("packing"), t("2_per_u8")}});
}

void add_gaps(Corpus& c) {
  const auto two = [&](std::uint64_t at_a, std::uint64_t size_a, std::uint64_t at_b, std::uint64_t size_b) {
    return root({{t("a"), dense(array({u(size_a)}), component("u8", at_a, size_a))},
                 {t("b"), dense(array({u(size_b)}), component("u8", at_b, size_b))}});
  };
  const std::string long_one(128, 'x');
  c.add("valid-alias", "", file(two(64, 4, 64, 4), {kFour}));
  c.add("valid-empty-at-the-manifest", "", file(two(64, 64, 128, 0), {long_one.substr(64)}));
  c.add("overlap", "overlap", file(two(64, 128, 128, 64), {long_one}));
  c.add("overlap-other-length", "overlap", file(two(64, 128, 64, 4), {long_one}));
  c.add("gap", "gap",
        file(two(64, 4, 192, 4), {kFour, "", kFour}).replace(128, 0, std::string(64, '\0')).erase(256, 0));
  std::string padded = file(two(64, 4, 128, 4), {kFour, kFour});
  padded[100] = 1;
  c.add("padding", "padding", padded);
  padded = file(two(64, 4, 128, 4), {kFour, kFour});
  padded[63] = 1;
  c.add("padding-behind-the-magic", "padding", padded);
}

// Files that are valid except under the low limits that the caller sets, so none of them is committed.
void add_limits(Corpus& c) {
  const std::string entry = dense(kShapeFour, component("u8", 64, 4));
  Limits limits;
  limits.header = 10;
  c.limited("limit-header", "limit/header", file(root({})), limits);
  limits = {};
  limits.tensors = 1;
  c.limited("limit-tensors", "limit/tensors", file(root({{t("a"), entry}, {t("b"), entry}}), {kFour}), limits);
  limits = {};
  limits.depth = 3;
  c.limited("limit-depth", "limit/depth", file(root({{t("a"), entry}}), {kFour}), limits);
  limits = {};
  limits.decoded = 3;
  const std::string stored = frame(kFour);
  c.limited("limit-decoded", "limit/decoded",
            file(root({{t("w"), dense(kShapeFour, component("u8", 64, stored.size(), {{t(kEncoding), t("zstd")}}))}}),
                 {stored}),
            limits);
  limits = {};
  limits.memory = 4;
  const std::string coords = le({1, 0, 2, 0}), values(2, '\1');
  c.limited("duplicate-entries-unchecked", "duplicate-entries-unchecked",
            file(root({{t("s"), object(array({u(2), u(3)}), "sparse_coo",
                                       {{t(kCoords), component("u64", 64, coords.size())},
                                        {t(kValues), component("u8", 128, 2)}})}}),
                 {coords, values}),
            limits);
  limits.memory = 100;
  c.limited("limit-memory", "limit/memory", file(root({}, {{t(kAttributes), map({{t("a"), t("b")}})}})), limits);
}

// A patch of "w" (docs/patching.md), right unless a member is changed: 65,537 bytes in two chunks, of which one
// changes.
struct PatchFile {
  std::string version = "1", metadata = "keep", base{}, result{};  // empty: that of the nodes
  std::string names = name("w"), nodes = std::string(32, 'a') + std::string(32, 'b');
  std::string shape = "65537", counts = "1,0", data = frame("\5") + frame(std::string(1, '\0')) + frame("\2"), frames{};
  std::uint64_t decoded = 3;
  Fields more{};                           // attributes of the object
  std::string object = "w", dtype = "u8";  // its name, and that of its bytes
  bool coded = true;                       // else it is a tensor of four bytes
  Fields objects{};                        // more of them

  static std::string name(std::string_view text) { return le32(text.size()) + std::string(text); }
  static std::string le32(std::uint64_t value) { return le({value}).substr(0, 4); }
  // Of nodes under one name, on the side that begins there.
  std::string id(std::size_t side) const {
    const std::string node = nodes.substr(side, 32), none(32, '\0');
    const std::string body = node.size() < 32 || node == none ? le({0}) : le({1, 1}) + "w" + node;
    return "wb2:" + sha256("wbdig2.M" + body).substr(7);
  }
  std::string bytes() const {
    const auto part = [](std::string_view payload, std::uint64_t offset, std::uint64_t size, Fields encoding) {
      return dense(array({u(size)}), component("u8", offset, payload.size(), std::move(encoding)));
    };
    const std::uint64_t at_nodes = 64 + (names.size() + 63) / 64 * 64,
                        at_data = at_nodes + (nodes.size() + 63) / 64 * 64;
    Fields attributes = more;
    const auto set = [&](std::string_view key, const std::string& value) {
      if (!value.empty()) attributes.emplace_back(t(key), t(value));
    };
    if (coded) {
      if (more.empty()) set("delta.op", "sparse");
      set("dtype", "u8");
      set("shape", shape);
      set("chunk", "65536");
      set("counts", counts);
      set("frames", frames.empty() ? std::to_string(frame("x").size()) + "," + std::to_string(frame("x").size()) + "," +
                                         std::to_string(frame("x").size())
                                   : frames);
    }
    std::string entry =
        dense(array({u(coded ? decoded : 4)}),
              component(dtype, at_data, coded ? data.size() : 4, coded ? Fields{{t(kEncoding), t("zstd")}} : Fields{}),
              {{t(kAttributes), map(attributes)}});
    Fields all{{t("weighbridge.delta/names"), part(names, 64, names.size(), {})},
               {t("weighbridge.delta/nodes"), part(nodes, at_nodes, nodes.size(), {})}};
    if (!object.empty()) all.emplace_back(t(object), std::move(entry));
    all.insert(all.end(), objects.begin(), objects.end());
    const std::string payloads = object.empty() ? body({names, nodes}) : body({names, nodes, coded ? data : kFour});
    return payloads +
           footer(root(all, {{t(kAttributes), map({{t("weighbridge.delta"), t(version)},
                                                   {t("weighbridge.delta.base"), t(base.empty() ? id(0) : base)},
                                                   {t("weighbridge.delta.result"), t(result.empty() ? id(32) : result)},
                                                   {t("weighbridge.delta.metadata"), t(metadata)}})}}));
  }
};

void add_patches(Corpus& c) {
  const auto add = [&](std::string name, std::string rule, const auto& change) {
    PatchFile patch;
    change(patch);
    if (!rule.empty()) rule = "delta/" + rule;
    c.add("patch-" + std::move(name), std::move(rule), patch.bytes());
  };
  using P = PatchFile&;
  c.add("valid-patch", "", PatchFile{}.bytes());
  c.add("valid-patch-of-nothing", "", PatchFile{.nodes = std::string(64, 'a'), .object = ""}.bytes());
  add("version-2", "version", [](P p) { p.version = "2"; });
  add("version-none", "version", [](P p) { p.version = "one"; });
  add("base-version-1", "root", [](P p) { p.base = std::string(64, 'a'); });
  add("result-cut", "root", [](P p) { p.result = p.id(32).substr(0, 67); });
  add("metadata", "metadata", [](P p) { p.metadata = "sha256:" + std::string(64, '0'); });
  add("metadata-of-config", "metadata", [](P p) {
    p.metadata = sha256("wbdig2.A" + le({1, 9}) + "hf.config" + le({1}) + "x" + le({0}));
    p.objects = {{t("weighbridge.delta/metadata"),
                  dense(array({u(0)}), component("u8", 64, 0), {{t(kAttributes), map({{t("+hf.config"), t("x")}})}})}};
  });
  add("names-cut", "names", [](P p) { p.names.pop_back(); });
  add("names-more", "names", [](P p) { p.names += "x"; });
  add("names-reserved", "names", [](P p) { p.names = PatchFile::name("weighbridge.delta/w"); });
  add("names-twice", "names", [](P p) { p.names += p.names, p.nodes += p.nodes; });
  add("nodes-cut", "names", [](P p) { p.nodes.pop_back(); });
  add("nodes-none", "names", [](P p) { p.nodes = std::string(64, '\0'); });
  add("nodes-swapped", "nodes", [](P p) { p.base = p.id(32), p.result = p.id(0); });
  add("row-without-object", "row", [](P p) { p.object = ""; });
  add("row-of-no-tensor", "row", [](P p) { p.nodes = std::string(32, 'a') + std::string(32, '\0'); });
  add("row-without-base", "row", [](P p) { p.nodes = std::string(32, '\0') + std::string(32, 'b'); });
  add("row-from-nothing", "row", [](P p) { p.more = {{t("delta.op"), t("sparse")}, {t("from"), t("v")}}; });
  add("row-of-a-rename", "row", [](P p) { p.more = {{t("delta.op"), t("rename")}}; });
  add("object-op", "object", [](P p) { p.more = {{t("delta.op"), t("bitmap")}}; });
  add("object-code", "object", [](P p) { p.more = {{t("delta.op"), t("sparse")}, {t("code"), t("add")}}; });
  add("object-dense-set", "object", [](P p) { p.more = {{t("delta.op"), t("dense")}, {t("code"), t("set")}}; });
  add("object-gap", "object", [](P p) { p.more = {{t("delta.op"), t("sparse")}, {t("gap"), t("5")}}; });
  add("object-shape", "object", [](P p) { p.shape = "65537,"; });
  add("object-shape-2-64", "object", [](P p) { p.shape = "4294967296,4294967296"; });
  add("object-counts", "object", [](P p) { p.counts = "1"; });
  add("length", "length", [](P p) { p.counts = "1,1"; });
  add("count", "count", [](P p) { p.counts = "1,2"; });
  add("gap", "gap", [](P p) { p.data = frame("\5") + frame("\xff") + frame("\2"), p.shape = "65280", p.counts = "1"; });
  add("gap-in-the-second-chunk", "gap",
      [](P p) { p.data = frame("\1") + frame(std::string(1, '\0')) + frame("\2"), p.counts = "0,1"; });
  const std::string size = std::to_string(frame("x").size());
  add("frame-skippable", "frame", [&](P p) {
    p.data = kSkippable + p.data;
    p.frames = std::to_string(frame("x").size() + kSkippable.size()) + "," + size + "," + size;
  });
  add("frame-sizes-lie", "frame", [&](P p) {
    p.frames = std::to_string(frame("x").size() + 1) + "," + std::to_string(frame("x").size() - 1) + "," + size;
  });
  add("frame-of-two", "frame", [&](P p) {
    p.data = frame("\5") + frame(std::string("\0\2", 2)),
    p.frames = size + "," + std::to_string(frame("ab").size() - 1) + ",1";
  });
  add("node", "node", [](P p) { p.coded = false, p.nodes = std::string(32, '\0') + std::string(32, 'b'); });
  PatchFile no_dtype{.nodes = std::string(32, '\0') + std::string(32, 'b'), .dtype = "t8", .coded = false};
  c.add("patch-node-of-no-dtype", "unknown-dtype", no_dtype.bytes(), {"delta/node"});
  add("reencoded", "reencoded", [](P p) { p.frames = "1,1,1"; });
}

}  // namespace

std::vector<core::CorpusCase> cases() {
  Corpus corpus;
  add_envelope(corpus);
  add_root(corpus);
  add_objects(corpus);
  add_components(corpus);
  add_layouts(corpus);
  add_gaps(corpus);
  add_limits(corpus);
  add_patches(corpus);
  return corpus.take();
}

}  // namespace weighbridge::ztensor1
