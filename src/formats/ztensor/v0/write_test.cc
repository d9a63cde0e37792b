// SPDX-License-Identifier: Apache-2.0
// Writing: bytes, blockers, losses and changes.
#include <gtest/gtest.h>

#include <algorithm>

#include "core/payload/compare.h"
#include "core/writing/layout.h"
#include "formats/ztensor/v0/format.h"
#include "formats/ztensor/v0/layout.h"
#include "support/cbor_items.h"
#include "support/format_testing.h"
#include "support/thrown.h"

namespace weighbridge::ztensor0 {
namespace {

using test::bytes_of;
using test::render;
using test::walk;
using test::write;
using wire::items::number;
using wire::items::text;

Model two() {
  Builder builder;
  builder.tensor("b", DType::i16, {2, 1}, bytes_of("\x05\x06\x07\x08"));
  builder.object("a", Layout::dense, {}, {{"z", Value::integer(std::uint64_t{300})}, {"h", Value::real(1.5)}},
                 {{"data", DType::u8, {}, bytes_of("x")}});
  return builder.build();
}

std::string map_of(std::string_view name, std::uint64_t offset, std::uint64_t size, std::string_view dtype,
                   std::string shape, std::string_view layout, const wire::items::Fields& more = {}) {
  wire::items::Fields fields{{text("name"), text(name)},
                             {text("offset"), number(offset)},
                             {text("size"), number(size)},
                             {text("dtype"), text(dtype)}};
  if (!layout.empty()) fields.push_back({text("layout"), text(layout)});
  fields.push_back({text("shape"), std::move(shape)});
  fields.push_back({text("encoding"), text("raw")});
  fields.insert(fields.end(), more.begin(), more.end());
  return wire::items::map(fields);
}

std::vector<Item> of_kind(const std::vector<Item>& items, LossKind kind) {
  std::vector<Item> out;
  std::ranges::copy_if(items, std::back_inserter(out), [&](const Item& i) { return i.kind == kind; });
  return out;
}

TEST(Ztensor0Write, LaysOutAsReadingZ6Says) {
  const std::string made = write(kFormat, two());
  const auto index = [](std::string_view layout_text) {
    return wire::items::array({map_of("b", 64, 4, "int16", wire::items::array({number(2), number(1)}), layout_text),
                               map_of("a", 128, 1, "uint8", wire::items::array({}), layout_text,
                                      {{text("h"), std::string("\xf9\x3e\0", 3)}, {text("z"), number(300)}})});
  };
  std::string expected(kMagic);
  expected.resize(64, '\0');
  expected += "\x05\x06\x07\x08";
  expected.resize(128, '\0');
  expected += "x";
  const std::string start = expected;
  expected += index("dense");
  expected += static_cast<char>(index("dense").size());
  expected.resize(expected.size() + 7, '\0');
  EXPECT_EQ(made, expected);
  Options options;
  options.zt0.omit_layout_field = true;
  EXPECT_EQ(write(kFormat, two(), options).substr(0, start.size() + index("").size()), start + index(""));
}

TEST(Ztensor0Write, TheEmptyModelIsSeventeenBytes) {
  EXPECT_EQ(write(kFormat, Model()), std::string("ZTEN0001\x80\x01\0\0\0\0\0\0\0", 17));
}

TEST(Ztensor0Write, ComesBackWithEveryOption) {
  const Model model = two();
  for (const char* encoding : {"", "raw", "zstd"}) {
    for (const char* digest : {"", "none", "sha256", "crc32c"}) {
      Options options;
      options.encoding = encoding;
      options.digest = digest;
      const auto [report, again] = walk(kFormat, write(kFormat, model, options));
      EXPECT_EQ(report.total(), 0U);
      EXPECT_TRUE(core::compare(model, again).empty());
      const Part b = again["b"].main();
      const std::string_view text = b.digest();
      EXPECT_EQ(text.substr(0, 6), std::string_view(digest).size() == 6 ? digest : "");
      if (options.digest == "crc32c") {
        EXPECT_EQ(std::ranges::count_if(text.substr(9), [](char c) { return c >= 'a'; }), 0) << text;
      }
    }
  }
}

TEST(Ztensor0Write, CastsAndNamesIt) {
  Builder builder;
  builder.tensor("w", DType::f32, {1}, bytes_of(std::string("\0\0\xc0\x3f", 4)));
  builder.tensor("f8", DType::f8_e4m3, {1}, bytes_of("\x38"));
  const Model model = builder.build();
  const auto blockers = layout(model, {}).blockers;
  ASSERT_EQ(blockers.size(), 1U);
  EXPECT_EQ(blockers[0].kind, LossKind::dtype);
  EXPECT_EQ(blockers[0].subject, "tensors[\"f8\"]");
  Options options;
  options.cast = DType::f16;
  const core::WriteLayout made = layout(model, options);
  ASSERT_EQ(made.losses.size(), 2U);
  const Model again = walk(kFormat, render(made)).model;
  EXPECT_EQ(test::logical_bytes(again["w"].main()), std::string("\0\x3e", 2));
  EXPECT_EQ(test::logical_bytes(again["f8"].main()), std::string("\0\x3c", 2));
}

TEST(Ztensor0Write, MakesSparseAndQuantizedTensorsDense) {
  Builder builder;
  const std::string one("\1\0\0\0\0\0\0\0", 8);
  builder.object("s", Layout::sparse_coo, {3}, {{"note", Value::text("kept")}},
                 {{"values", DType::u8, {1}, bytes_of("\x07")}, {"coords", DType::u64, {1}, bytes_of(one)}});
  builder.object("q", Layout::quantized_group, {2, 1},
                 {{"bits", Value::integer(std::uint64_t{4})},
                  {"group_size", Value::integer(std::uint64_t{2})},
                  {"packing", Value::text("2_per_u8")}},
                 {{"packed_weight", DType::u8, {1}, bytes_of("\x21")},
                  {"scales", DType::f32, {1}, bytes_of(std::string("\0\0\x80\x3f", 4))},
                  {"zeros", DType::u8, {1}, bytes_of("\x01")}});
  const Model model = builder.build();
  const core::WriteLayout made = layout(model, {});
  EXPECT_TRUE(made.blockers.empty());
  ASSERT_EQ(made.losses.size(), 2U);
  EXPECT_EQ(made.losses[0], (Item{LossKind::layout, "tensors[\"s\"]", "sparse_coo", "dense u8"}));
  EXPECT_EQ(made.losses[1].to, "dense f32");
  const Model again = walk(kFormat, render(made)).model;
  EXPECT_EQ(test::logical_bytes(again["s"].main()), std::string("\0\x07\0", 3));
  const Tensor s = again["s"];
  EXPECT_EQ(s.attribute("note")->as_text(), "kept");
  EXPECT_EQ(test::dense_bytes(again["q"]), test::dense_bytes(model["q"]));
  EXPECT_TRUE(again["q"].attributes().empty());
}

TEST(Ztensor0Write, NamesWhatItHasNoPlaceFor) {
  Builder builder;
  builder.attribute("license", Value::text("x"));
  builder.tokenizer({});
  builder.object("w", Layout::dense, {1},
                 {{"offset", Value::text("x")},
                  {"layout", Value::text("dense")},
                  {"small", Value::integer(std::uint64_t{7}, DType::u8)},
                  {"single", Value::real(0.5, DType::f32)},
                  {"plain", Value::real(0.1)}},
                 {{"data", DType::u8, {1}, bytes_of("x")}});
  const core::WriteLayout made = layout(builder.build(), {});
  const auto attributes = of_kind(made.losses, LossKind::attribute);
  ASSERT_EQ(attributes.size(), 3U);
  EXPECT_EQ(attributes[0].subject, "attributes[\"license\"]");
  EXPECT_EQ(attributes[1].subject, "tensors[\"w\"].attributes[\"layout\"]");
  EXPECT_EQ(attributes[2].subject, "tensors[\"w\"].attributes[\"offset\"]");
  const auto types = of_kind(made.losses, LossKind::attribute_type);
  ASSERT_EQ(types.size(), 2U);
  EXPECT_EQ(types[0].subject, "tensors[\"w\"].attributes[\"single\"]");
  EXPECT_EQ(types[1].subject, "tensors[\"w\"].attributes[\"small\"]");
  EXPECT_EQ(of_kind(made.losses, LossKind::tokenizer).size(), 1U);
  EXPECT_EQ(made.losses.size(), 6U);
  const auto [report, again] = walk(kFormat, render(made));
  EXPECT_TRUE(report.valid());
  EXPECT_EQ(again["w"].attributes().size(), 3U);
}

TEST(Ztensor0Write, EveryCaseThatOpensComesBack) {
  for (const core::CorpusCase& c : cases()) {
    if (c.generated_only) continue;
    SCOPED_TRACE(c.name);
    const auto [report, model] = walk(kFormat, c.bytes);
    if (!report.valid()) continue;
    const core::WriteLayout made = layout(model, {});
    // Partial overlaps are not written.
    const bool overlaps = c.name.starts_with("overlap");
    EXPECT_EQ(made.losses.size(), overlaps ? 1U : 0U);
    if (overlaps) {
      EXPECT_EQ(made.losses[0].kind, LossKind::alias);
    }
    const auto [again_report, again] = walk(kFormat, render(made));
    EXPECT_TRUE(again_report.valid());
    const auto differences = core::compare(model, again);
    EXPECT_TRUE(differences.empty()) << differences[0].subject;
    for (std::uint32_t i = 0; i < model.size(); ++i) EXPECT_EQ(again.name(i), model.name(i));
  }
}

TEST(Ztensor0Write, BigEndianBecomesLittleEndianAndSaysSo) {
  static const std::vector<core::CorpusCase> all = cases();
  const Model model = walk(kFormat, test::case_of(all, "valid-big-endian").bytes).model;
  const core::WriteLayout made = layout(model, {});
  ASSERT_EQ(made.changes.size(), 1U);
  EXPECT_EQ(made.changes[0], (Item{LossKind::layout, "tensors[\"w\"].parts[\"data\"]", "big-endian", "little-endian"}));
  const std::string bytes = render(made);
  EXPECT_EQ(bytes.find("data_endianness"), std::string::npos);
  EXPECT_EQ(bytes.substr(64, 4), "\x04\x03\x02\x01");
}

TEST(Ztensor0Write, WhatItCannotInterpretGoesOverAsItIs) {
  static const std::vector<core::CorpusCase> all = cases();
  Options options;
  options.encoding = "zstd";
  options.cast = DType::f16;
  options.zt0.omit_layout_field = true;
  for (const char* name : {"unknown-dtype", "unknown-encoding", "unknown-dtype-sparse", "unknown-encoding-sparse"}) {
    SCOPED_TRACE(name);
    const Model model = walk(kFormat, test::case_of(all, name).bytes).model;
    const core::WriteLayout made = layout(model, options);
    EXPECT_TRUE(made.losses.empty());
    const Model again = walk(kFormat, render(made)).model;
    EXPECT_TRUE(core::compare(model, again).empty());
    EXPECT_EQ(again["w"].main().stored().span.size(), 4U);
  }
  EXPECT_NE(write(kFormat, walk(kFormat, test::case_of(all, "unknown-dtype").bytes).model).find("data_endianness"),
            std::string::npos);
}

// Issue 16, A.7: one that could be read would otherwise become dense.
TEST(Ztensor0Write, SparseTensorsOfThisFormatGoOverAsTheyAre) {
  static const std::vector<core::CorpusCase> all = cases();
  Options options;
  options.encoding = "zstd";
  options.cast = DType::f16;
  options.zt0.omit_layout_field = true;
  for (const core::CorpusCase& each : all) {
    if (!each.name.starts_with("valid-sparse")) continue;
    SCOPED_TRACE(each.name);
    const Model model = walk(kFormat, each.bytes).model;
    for (const Options& o : {Options{}, options}) {
      const core::WriteLayout made = layout(model, o);
      EXPECT_TRUE(made.losses.empty());
      const Model again = walk(kFormat, render(made)).model;
      EXPECT_TRUE(core::compare(model, again).empty());
      const Tensor from = model[0], to = again[0];
      EXPECT_TRUE(std::ranges::equal(from.main().stored().span, to.main().stored().span));
      EXPECT_EQ(made.payloads.size(), 1U);
    }
  }
}

TEST(Ztensor0Write, StoredBytesGoOverWithTheirChecksum) {
  static const std::vector<core::CorpusCase> all = cases();
  const Model model = walk(kFormat, test::case_of(all, "valid-zstd").bytes).model;
  const core::WriteLayout made = layout(model, {});
  EXPECT_TRUE(made.changes.empty());
  EXPECT_TRUE(made.size_exact);
  const Model again = walk(kFormat, render(made)).model;
  const Part part = again["w"].main(), from = model["w"].main();
  EXPECT_EQ(part.encoding(), Encoding::zstd);
  EXPECT_EQ(part.digest(), from.digest());
  Options raw;
  raw.encoding = "raw";
  EXPECT_EQ(layout(model, raw).changes.size(), 2U);  // decompressed, and no checksum
}

TEST(Ztensor0Write, EqualExtentsAreStoredOnce) {
  static const std::vector<core::CorpusCase> all = cases();
  const Model model = walk(kFormat, test::case_of(all, "valid-alias").bytes).model;
  const core::WriteLayout made = layout(model, {});
  EXPECT_EQ(made.payloads.size(), 1U);
  EXPECT_TRUE(made.losses.empty());
  const Model again = walk(kFormat, render(made)).model;
  EXPECT_EQ(again["a"].main().extent(), again["b"].main().extent());
}

TEST(Ztensor0Write, RefusesOptionsThatItLacks) {
  const auto refused = [](auto set) {
    Options options;
    set(options);
    return test::thrown([&] { core::check_written(kFormat, options); }).kind == Kind::misuse;
  };
  EXPECT_TRUE(refused([](Options& o) { o.quantize = "q8_0"; }));
  EXPECT_TRUE(refused([](Options& o) { o.encoding = "gzip"; }));
  EXPECT_TRUE(refused([](Options& o) { o.digest = "md5"; }));
  EXPECT_TRUE(refused([](Options& o) { o.version = "1.1"; }));
  EXPECT_TRUE(refused([](Options& o) { o.cast = DType::f8_e4m3; }));
}

}  // namespace
}  // namespace weighbridge::ztensor0
