// SPDX-License-Identifier: Apache-2.0
// Objects that the corpus does not cover: sizes that only decoding can tell, limits that a caller sets, and attributes
// that do not describe a quantization.
#include <gtest/gtest.h>

#include <algorithm>

#include "base/endian.h"
#include "formats/ztensor/v1/format.h"
#include "formats/ztensor/v1/layout.h"
#include "support/cbor_items.h"
#include "support/format_testing.h"

namespace weighbridge::ztensor1 {
namespace {

using wire::items::array;
using wire::items::Fields;
using wire::items::map;

using wire::items::t, wire::items::u;

std::string part(std::string_view dtype, std::uint64_t offset, std::uint64_t length, Fields more = {}) {
  Fields fields{{t(kDtype), t(dtype)}, {t(kOffset), u(offset)}, {t(kLength), u(length)}};
  fields.insert(fields.end(), more.begin(), more.end());
  return map(fields);
}
Fields zstd() { return {{t(kEncoding), t("zstd")}}; }
Fields zstd_of(std::uint64_t size) { return {{t(kEncoding), t("zstd")}, {t(kUncompressedLength), u(size)}}; }

std::string object(const std::vector<std::uint64_t>& shape, std::string_view format, Fields components,
                   Fields attributes = {}) {
  std::vector<std::string> dims;
  for (const std::uint64_t dim : shape) dims.push_back(u(dim));
  Fields fields{{t(kShape), array(dims)}, {t(kFormatKey), t(format)}, {t(kComponents), map(components)}};
  if (!attributes.empty()) fields.emplace_back(t(kAttributes), map(attributes));
  return map(fields);
}
// Payloads from 64 on, each at the next multiple of 64.
std::string file(const std::vector<std::string>& payloads, const std::string& manifest) {
  std::string out(kMagic);
  for (const std::string& payload : payloads) {
    out.resize((out.size() + 63) / 64 * 64, '\0');
    out += payload;
  }
  char size[8];
  base::store_le<std::uint64_t>(size, manifest.size());
  return out + manifest + std::string(size, 8) + std::string(kMagic);
}
std::string root(const Fields& objects, Fields more = {}) {
  Fields fields{{t(kVersion), t("1.1.0")}, {t(kObjects), map(objects)}};
  fields.insert(fields.end(), more.begin(), more.end());
  return map(fields);
}

struct Verdict {
  std::string rule, expected, found;
  bool operator==(const Verdict&) const = default;
};
void PrintTo(const Verdict& v, std::ostream* out) { *out << v.rule << " (" << v.expected << ", " << v.found << ")"; }

test::Outcome walk(const std::vector<std::string>& payloads, const std::string& manifest, const Limits& limits = {}) {
  Context context;
  context.limits = limits;
  return test::walk(kFormat, file(payloads, manifest), context);
}
// The findings about one object "s".
std::vector<Verdict> verdicts(const std::vector<std::string>& payloads, const std::string& entry,
                              const Limits& limits = {}) {
  std::vector<Verdict> out;
  const auto [report, model] = walk(payloads, root({{t("s"), entry}}), limits);
  for (const Finding& f : report.findings()) out.push_back({std::string(f.rule), f.expected, f.found});
  EXPECT_EQ(model.size(), report.valid() ? 1U : 0U);
  return out;
}
using Verdicts = std::vector<Verdict>;

std::string frame(std::string_view data) {
  const std::vector<std::byte> out = codecs::encode(codecs::kZstd, std::as_bytes(std::span(data)));
  return {reinterpret_cast<const char*>(out.data()), out.size()};
}
// A frame of one raw block that does not state its size (RFC 8878, 3.1.1), with the window size that `window` encodes.
std::string unsized(std::string_view data, char window = '\0') {
  const std::uint32_t block = static_cast<std::uint32_t>(data.size()) << 3 | 1;
  std::string out("\x28\xb5\x2f\xfd\0", 5);
  out += window;
  for (int i = 0; i < 3; ++i) out += static_cast<char>(block >> (8 * i));
  return out + std::string(data);
}

const std::string kValuesOfTwo("\x05\x07", 2), kIndptrOfTwo("\0\1\2", 3), kIndicesOfTwo("\0\2", 2);
// [[5, 0, 0], [0, 0, 7]] with u8 indices, and with these components `values` and `indices`.
std::string csr(std::string values, std::string indices, const std::vector<std::uint64_t>& shape = {2, 3}) {
  return object(shape, "sparse_csr",
                {{t(kIndptr), part("u8", 64, 3)}, {t(kIndices), std::move(indices)}, {t(kValues), std::move(values)}});
}

TEST(ZtensorSparse, TheCountIsWhatAnyPartTells) {
  const std::string values = frame(kValuesOfTwo), indices = frame(kIndicesOfTwo);
  const std::vector<std::string> payloads{kIndptrOfTwo, indices, values};
  // The size is stated nowhere, by the indices, by the key.
  EXPECT_EQ(verdicts(payloads, csr(part("u8", 192, values.size(), zstd()), part("u8", 128, indices.size(), zstd()))),
            Verdicts{});
  EXPECT_EQ(
      verdicts({kIndptrOfTwo, kIndicesOfTwo, values}, csr(part("u8", 192, values.size(), zstd()), part("u8", 128, 2))),
      Verdicts{});
  EXPECT_EQ(
      verdicts(payloads, csr(part("u8", 192, values.size(), zstd_of(2)), part("u8", 128, indices.size(), zstd()))),
      Verdicts{});
  // Half a value.
  EXPECT_EQ(verdicts({kIndptrOfTwo, kIndicesOfTwo, "\1\2\3"}, csr(part("u16", 192, 3), part("u8", 128, 2))),
            (Verdicts{{"zt/length", "a multiple of 2 bytes", "3"}}));
  EXPECT_EQ(verdicts(payloads, csr(part("u16", 192, values.size(), zstd_of(3)), part("u8", 128, 2))),
            (Verdicts{{"zt/uncompressed-length", "a multiple of 2 bytes", "3"}}));
  const std::string three = frame("abc");
  EXPECT_EQ(verdicts({kIndptrOfTwo, indices, three},
                     csr(part("u16", 192, three.size(), zstd()), part("u8", 128, indices.size(), zstd()))),
            (Verdicts{{"zt/zstd", "a multiple of 2 bytes", "3"}}));
  // More rows than an indptr can have entries.
  EXPECT_EQ(verdicts({kIndptrOfTwo, kIndicesOfTwo, kValuesOfTwo},
                     csr(part("u8", 192, 2), part("u8", 128, 2), {UINT64_MAX, 0})),
            (Verdicts{{"zt/shape-overflow", "", ""}}));
}

TEST(ZtensorSparse, CoordinatesTellTheCountToo) {
  const std::string values = frame(kValuesOfTwo), coords("\0\1\0\2", 4);
  const auto coo = [](std::string v, std::string c, const std::vector<std::uint64_t>& shape = {2, 3}) {
    return object(shape, "sparse_coo", {{t(kValues), std::move(v)}, {t(kCoords), std::move(c)}});
  };
  const std::string compressed = part("u8", 128, values.size(), zstd());
  EXPECT_EQ(verdicts({coords, values}, coo(compressed, part("u8", 64, 4))), Verdicts{});
  EXPECT_EQ(verdicts({coords, values}, coo(compressed, part("u8", 64, 3))),
            (Verdicts{{"zt/index-count", "a multiple of 2", "3"}}));
  EXPECT_EQ(verdicts({coords, values}, coo(compressed, part("f32", 64, 4))), (Verdicts{{"zt/index-dtype", "", "f32"}}));
  EXPECT_EQ(verdicts({coords, kValuesOfTwo}, coo(part("u8", 128, 2), part("u8", 64, 4), {})),
            (Verdicts{{"zt/unknown-format", "", ""}}));
  // Two values of a matrix whose dense form would exceed 2^64 - 1 bytes.
  EXPECT_EQ(verdicts({coords, std::string(16, '\0')},
                     coo(part("f64", 128, 16), part("u8", 64, 4), {std::uint64_t{1} << 31, std::uint64_t{1} << 31})),
            (Verdicts{{"zt/shape-overflow", "", ""}}));
}

// [[1, 0, 0], [2, 0, 3]]: three values in a frame that states no size, or one that exceeds the caller's limits.
Verdicts of_three(const std::string& values, const Limits& limits) {
  const std::string indices = frame(std::string_view("\0\0\2", 3));
  return verdicts({std::string("\0\1\3", 3), indices, values},
                  csr(part("u8", 192, values.size(), zstd()), part("u8", 128, indices.size(), zstd())), limits);
}

TEST(ZtensorSparse, AFrameWithoutItsSizeIsDecodedWithinTheLimits) {
  Limits limits;
  EXPECT_EQ(of_three(unsized("\1\2\3"), limits), Verdicts{});
  limits.decoded = 3;
  EXPECT_EQ(of_three(unsized("\1\2\3"), limits), Verdicts{}) << "as much as is allowed";
  EXPECT_EQ(of_three(unsized("\1\2\3\4"), limits), (Verdicts{{"limit/decoded", "at most 3 bytes", ""}}));
  EXPECT_EQ(of_three(frame("\1\2\3\4"), limits), (Verdicts{{"limit/decoded", "at most 3 bytes", ""}}));
  limits = {};
  limits.memory = std::uint64_t{1} << 20;
  const Verdicts window = of_three(unsized("\1\2\3", '\x88'), limits);  // 128 MiB
  ASSERT_EQ(window.size(), 1U);
  EXPECT_EQ(window[0].rule, "limit/memory");
  const Verdicts corrupt = of_three("\x28\xb5\x2f\xfd\x08", {});
  ASSERT_EQ(corrupt.size(), 1U);
  EXPECT_EQ(corrupt[0].rule, "zt/zstd");
}

// Opening decodes at most as many stored bytes as the file has, however many objects share them.
TEST(ZtensorSparse, OverlappingFramesAreNotDecodedOverAndOver) {
  std::string noise(40'000, '\0');
  std::uint32_t state = 1;
  for (char& c : noise) c = static_cast<char>((state = state * 1664525 + 1013904223) >> 24);
  const std::string values = frame(noise);
  ASSERT_GT(values.size(), noise.size());
  const auto objects = [&](std::size_t shorter) {
    Fields out;
    for (char name = 'a'; name < 'e'; ++name) {
      const std::size_t length = values.size() - shorter * static_cast<std::size_t>(name - 'a');
      out.emplace_back(t(std::string(1, name)), object({40'000}, "sparse_coo",
                                                       {{t(kCoords), part("u64", 64, 100, zstd())},
                                                        {t(kValues), part("u8", 64, length, zstd())}}));
    }
    return root(out);
  };
  const auto rules_of = [&](std::size_t shorter) {
    std::vector<std::string> out;
    const Report report = walk({values}, objects(shorter)).report;
    for (const Finding& f : report.findings())
      if (f.severity == Severity::error) out.push_back(f.tensor + " " + std::string(f.rule));
    return out;
  };
  const auto same = rules_of(0);
  for (const std::string& rule : same) EXPECT_EQ(rule.find("limit/memory"), rule.npos) << rule;
  const auto others = rules_of(1);
  EXPECT_EQ(std::ranges::count_if(others, [](const auto& rule) { return rule.ends_with("limit/memory"); }), 3);
}

// Components must hold whole elements even in an object that is unsupported anyway.
TEST(ZtensorObjects, UnknownOnesStillHoldWholeElements) {
  const auto unknown = [](std::string data) { return object({1}, "acme_blob", {{t("x"), std::move(data)}}); };
  EXPECT_EQ(verdicts({"abc"}, unknown(part("u16", 64, 3))), (Verdicts{{"zt/length", "a multiple of 2 bytes", "3"}}));
  EXPECT_EQ(verdicts({"abc"}, unknown(part("u16", 64, 3, zstd_of(5)))),
            (Verdicts{{"zt/uncompressed-length", "a multiple of 2 bytes", "5"}}));
  Fields known{{t(kType), t("nf4")}};  // an unknown type, stored as u16
  EXPECT_EQ(verdicts({"abc"}, object({1}, "dense", {{t(kData), part("u16", 64, 3, known)}})),
            (Verdicts{{"zt/length", "a multiple of 2 bytes", "3"}}));
  EXPECT_EQ(verdicts({"abc", "d", "e"}, object({1, 1}, "sparse_csr",
                                               {{t(kValues), part("u16", 64, 3, known)},
                                                {t(kIndices), part("u8", 128, 1)},
                                                {t(kIndptr), part("u8", 192, 1)}})),
            (Verdicts{{"zt/length", "a multiple of 2 bytes", "3"}}));
  EXPECT_EQ(verdicts({"abc", "d"}, object({1}, "sparse_coo",
                                          {{t(kValues), part("u8", 128, 1, known)}, {t(kCoords), part("u16", 64, 3)}})),
            (Verdicts{{"zt/length", "a multiple of 2 bytes", "3"}}));
}

// II.3 with reading Y5: the attributes describe a packing, but the parts do not match it.
TEST(ZtensorQuantized, PartsThatDoNotFitTheSchemeAreUnsupported) {
  const Fields scheme{{t("bits"), u(4)}, {t("group_size"), u(2)}, {t("packing"), t("2_per_u8")}};
  std::vector<std::string> payloads{"\x21", std::string("\0\0\x80\x3f", 4), "\x01"};
  const auto group = [&](const std::vector<std::uint64_t>& shape, std::string packed, std::string scales,
                         std::string zeros, const Limits& limits = {}) {
    std::vector<std::string> rules;
    for (const Verdict& v : verdicts(payloads,
                                     object(shape, "quantized_group",
                                            {{t(kPackedWeight), std::move(packed)},
                                             {t(kScales), std::move(scales)},
                                             {t(kZeros), std::move(zeros)}},
                                            scheme),
                                     limits))
      rules.push_back(v.rule);
    return rules;
  };
  using Rules = std::vector<std::string>;
  const std::string packed = part("u8", 64, 1), scales = part("f32", 128, 4), zeros = part("u8", 192, 1);
  EXPECT_EQ(group({2, 1}, packed, scales, zeros), Rules{});
  EXPECT_EQ(group({2}, packed, scales, zeros), Rules{"zt/quantization"});
  EXPECT_EQ(group({2, 1}, part("i8", 64, 1), scales, zeros), Rules{"zt/quantization"});
  EXPECT_EQ(group({4, 1}, packed, scales, zeros), Rules{"zt/quantization"});
  payloads[2] = frame("\1\1");
  EXPECT_EQ(group({2, 1}, packed, scales, part("u8", 192, payloads[2].size(), zstd_of(2))), Rules{"zt/quantization"});
  payloads[2] = "\x01";
  EXPECT_EQ(group({2, 1}, packed, part("f32", 128, 3), zeros), Rules{"zt/length"});  // not a whole float
  // The caller's limit applies to sizes that only the frames can contradict.
  Limits limits;
  limits.decoded = 0;
  EXPECT_EQ(group({2, 1}, packed, scales, part("u8", 192, 1, zstd()), limits), Rules{"limit/decoded"});
  EXPECT_EQ(group({2, 1}, packed, part("f32", 128, 4, zstd_of(4)), zeros, limits), Rules{"limit/decoded"});
  EXPECT_EQ(group({2, 1}, part("u8", 64, 1, zstd()), scales, zeros, limits), Rules{"limit/decoded"});
}

// Reading Y10.
TEST(ZtensorQuantized, RowsAndBlocksThatDoNotFitAreUnknownFormats) {
  const std::vector<std::string> payloads{"\x01\x02\x03\x04", std::string("\0\0\x80\x3f", 4)};
  const std::string data = part("i8", 64, 4), scales = part("f32", 128, 4);
  const Fields q8{{t(kType), t("q8_0")}, {t("block_size"), u(4)}};
  const auto row = [&](const Fields& components, const Fields& attributes,
                       const std::vector<std::uint64_t>& shape = {1, 4}, const Limits& limits = {}) {
    const Verdicts all = verdicts(payloads, object(shape, "quantized_row", components, attributes), limits);
    return all.empty() ? std::string() : all[0].rule;
  };
  EXPECT_EQ(row({{t(kData), data}, {t(kScales), scales}}, q8), "");
  EXPECT_EQ(row({{t(kData), data}, {t(kScales), scales}}, q8, {4}), "") << "one row";
  const std::string unknown = "zt/unknown-format";
  EXPECT_EQ(row({{t(kData), data}, {t(kScales), scales}}, {}), unknown);
  EXPECT_EQ(row({{t(kData), data}, {t(kScales), scales}}, {{t(kType), u(8)}, {t("block_size"), u(4)}}), unknown);
  EXPECT_EQ(row({{t(kData), data}, {t(kScales), scales}}, {{t(kType), t("q8_0")}}), unknown);
  EXPECT_EQ(row({{t(kData), data}, {t(kScales), scales}}, {{t(kType), t("q8_0")}, {t("block_size"), t("x")}}), unknown);
  EXPECT_EQ(row({{t(kScales), scales}}, q8), unknown);
  EXPECT_EQ(row({{t(kData), data}}, q8), unknown);
  EXPECT_EQ(row({{t(kData), part("u8", 64, 4)}, {t(kScales), scales}}, q8), unknown);
  EXPECT_EQ(row({{t(kData), data}, {t(kScales), part("u32", 128, 4)}}, q8), unknown);
  EXPECT_EQ(row({{t(kData), part("i8", 64, 3)}, {t(kScales), scales}}, q8), unknown);
  EXPECT_EQ(row({{t(kData), data}, {t(kScales), part("f32", 128, 0)}}, q8), unknown);
  EXPECT_EQ(row({{t(kData), part("i8", 64, 4, {{t(kType), t("nf4")}})}, {t(kScales), scales}}, q8), "zt/unknown-type");
  Limits limits;
  limits.decoded = 0;
  EXPECT_EQ(row({{t(kData), part("i8", 64, 4, zstd())}, {t(kScales), scales}}, q8, {1, 4}, limits), "limit/decoded");
  EXPECT_EQ(row({{t(kData), data}, {t(kScales), part("f32", 128, 4, zstd())}}, q8, {1, 4}, limits), "limit/decoded");
  // No rows: an empty matrix has no codes and no scales.
  const auto [report, model] =
      walk({""}, root({{t("s"), object({0, 4}, "quantized_block",
                                       {{t(kData), part("u8", 64, 0)}, {t(kScales), part("f32", 64, 0)}},
                                       {{t(kType), t("q4_0")}, {t("block_size"), u(4)}})}}));
  EXPECT_TRUE(report.valid());
  ASSERT_EQ(model.size(), 1U);
  EXPECT_EQ(model[0].layout(), Layout::quantized_block);
  EXPECT_EQ(model[0].to_dense().size, 0U);
}

TEST(ZtensorManifest, WhatStandsTwiceIsReadOnce) {
  const std::string entry = object({1}, "dense", {{t(kData), part("u8", 64, 1)}});
  const auto rules_of = [](const std::string& manifest) {
    std::vector<std::string> out;
    const Report report = walk({"a"}, manifest).report;
    for (const Finding& f : report.findings()) out.emplace_back(f.rule);
    return out;
  };
  using Rules = std::vector<std::string>;
  EXPECT_EQ(rules_of(root({{t("a"), entry}}, {{t(kObjects), map({{t("b"), entry}})}})), Rules{"zt/duplicate-key"});
  const std::string attributes = map({{t("k"), u(1)}});
  EXPECT_EQ(rules_of(root({{t("a"), entry}}, {{t(kAttributes), attributes}, {t(kAttributes), attributes}})),
            Rules{"zt/duplicate-key"});
  const Fields fields{{t(kShape), array({u(1)})},
                      {t(kFormatKey), t("dense")},
                      {t(kComponents), map({{t(kData), part("u8", 64, 1)}})},
                      {t(kAttributes), attributes}};
  for (const auto& again : fields) {
    Fields twice = fields;
    twice.push_back(again);
    EXPECT_EQ(rules_of(root({{t("a"), map(twice)}})), Rules{"zt/object-duplicate-key"}) << again.first;
  }
}

TEST(ZtensorTokenizer, WhatIsNotOursStaysAnAttribute) {
  for (const std::string& value : {t("no JSON"), t("{}"), t(R"({"kind":"bpe"})"), u(7)}) {
    const auto [report, model] = walk({}, root({}, {{t(kAttributes), map({{t(kTokenizerKey), value}})}}));
    EXPECT_EQ(report.total(), 0U);
    EXPECT_EQ(model.tokenizer(), nullptr);
    EXPECT_NE(model.attribute(kTokenizerKey), nullptr);
  }
}

TEST(ZtensorTokenizer, IsWholeOrNothing) {
  const std::string begin = R"({"kind":"bpe","tokens":[)";
  ASSERT_TRUE(tokenizers::tokenizer_from_json(begin + "]}").has_value());
  ASSERT_TRUE(tokenizers::tokenizer_from_json(begin + R"({"bytes":"/w=="}]})").has_value());
  for (const char* rest :
       {R"(]} x)", R"(],"more":1})", R"(],"vocab_size":4294967296})", R"(],"vocab_size":-1})", R"(],"ids":{}})",
        R"(],"ids":[0.5]})", R"(],"special":[]})", R"(],"special":{"a":"b"}})", R"(],"merges":[[1,2,3]]})",
        R"(],"merges":[[1,2,3,4,5]]})", R"(],"merges":[7]})", R"(7]})", R"({}]})", R"({"text":"/w=="}]})",
        R"({"bytes":7}]})", R"({"bytes":"/w"}]})", R"({"bytes":"/w==","more":1}]})"})
    EXPECT_EQ(tokenizers::tokenizer_from_json(begin + rest), std::nullopt) << rest;
  for (const char* text : {"", "[]", "{}", R"({"tokens":[]})", R"({"kind":"bpe"})", R"({"kind":1,"tokens":[]})"})
    EXPECT_EQ(tokenizers::tokenizer_from_json(text), std::nullopt) << text;
}

}  // namespace
}  // namespace weighbridge::ztensor1
