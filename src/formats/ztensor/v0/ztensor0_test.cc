// SPDX-License-Identifier: Apache-2.0
// Reading what the corpus cannot show: values, offsets and messages of findings, and real files of published writers.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>

#include "base/endian.h"
#include "core/payload/compare.h"
#include "core/payload/payload.h"
#include "core/writing/layout.h"
#include "formats/ztensor/v0/format.h"
#include "formats/ztensor/v0/layout.h"
#include "support/cbor_items.h"
#include "support/corpus_case.h"
#include "support/test_data.h"
#include "support/thrown.h"
#include "support/ztensor_manifest.h"

namespace weighbridge::ztensor0 {
namespace {

using test::Json;
using test::logical_bytes;
using test::walk;
using wire::items::number;
using wire::items::text;

test::Outcome walk_case(std::string_view name) {
  static const std::vector<core::CorpusCase> all = cases();
  return walk(kFormat, test::case_of(all, name).bytes);
}

TEST(RealZtensor0, EveryFileIsAsItsManifestSays) {
  WB_REQUIRE_TEST_DATA(folder, "ztensor");
  const Json manifest = Json::parse(test::contents(folder + "/MANIFEST.json"));
  int files = 0;
  for (const Json& file : manifest.at("files")) {
    if (file.at("generation") != "0.1") continue;
    SCOPED_TRACE(file.at("file"));
    ++files;
    const auto [report, model] = walk(kFormat, test::contents(folder + "/" + file.at("file").get<std::string>()));
    EXPECT_TRUE(report.valid());
    EXPECT_EQ(report.warnings(), 0U);
    EXPECT_EQ(report.unsupported(), 0U);
    EXPECT_EQ(model.format(), "zt0");
    EXPECT_EQ(model.version(), "0.1");
    const Json& tensors = file.at("tensors");
    test::expect_tensors(model, tensors);
    for (std::uint32_t i = 0; i < model.size(); ++i)
      test::expect_attributes(model[i].attributes(), tensors[i].value("custom", Json::object()));
  }
  EXPECT_EQ(files, 7);
}

TEST(RealZtensor0, EveryFileComesBackTheSameThroughTheWriter) {
  WB_REQUIRE_TEST_DATA(folder, "ztensor");
  const Json manifest = Json::parse(test::contents(folder + "/MANIFEST.json"));
  for (const Json& file : manifest.at("files")) {
    if (file.at("generation") != "0.1") continue;
    SCOPED_TRACE(file.at("file"));
    const Model model = walk(kFormat, test::contents(folder + "/" + file.at("file").get<std::string>())).model;
    for (const std::string encoding : {"", "raw", "zstd"}) {
      for (const std::string digest : {"", "sha256", "crc32c"}) {
        SCOPED_TRACE(encoding + " " + digest);
        Options options;
        options.encoding = encoding;
        options.digest = digest;
        const core::WriteLayout made = layout(model, options);
        EXPECT_TRUE(made.losses.empty()) << made.losses[0].subject;
        const std::string bytes = test::render(made);
        EXPECT_EQ(bytes, test::render(layout(model, options))) << "not deterministic";
        const auto [report, again] = walk(kFormat, bytes);
        EXPECT_TRUE(report.valid()) << report.first_error()->message;
        const auto differences = core::compare(model, again);
        EXPECT_TRUE(differences.empty()) << differences[0].subject << ": " << differences[0].from << " / "
                                         << differences[0].to;
        EXPECT_EQ(test::render(layout(again, options)), bytes) << "not stable";
      }
    }
  }
}

TEST(Ztensor0Read, SaysWhereExpectedAndFound) {
  static const std::vector<core::CorpusCase> all = cases();
  const core::CorpusCase& c = test::case_of(all, "size");
  const auto [report, model] = walk(kFormat, c.bytes);
  ASSERT_EQ(report.total(), 1U);
  const Finding& finding = report.findings()[0];
  EXPECT_EQ(finding.tensor, "w");
  EXPECT_TRUE(finding.has_tensor);
  EXPECT_EQ(finding.offset, c.bytes.find("name") - 2);  // the tensor's map
  EXPECT_EQ(finding.message,
            "the size of a raw dense tensor is not what shape and dtype require (expected 4 bytes, found 3)");
  EXPECT_EQ(model.size(), 0U);
}

TEST(Ztensor0Read, ABrokenTensorLeavesTheOthers) {
  const std::string good = "\xa6" + text("name") + text("good") + text("offset") + number(64) + text("size") +
                           number(0) + text("dtype") + text("int8") + text("shape") + wire::items::array({number(0)}) +
                           text("encoding") + text("raw");
  const std::string index = wire::items::array({wire::items::map({}), good});
  std::string bytes = std::string(kMagic) + std::string(56, '\0') + index + std::string(8, '\0');
  base::store_le<std::uint64_t>(bytes.data() + bytes.size() - 8, index.size());
  const auto [report, model] = walk(kFormat, bytes);
  EXPECT_EQ(report.errors(), 6U);  // one for each missing field
  ASSERT_EQ(model.size(), 1U);
  EXPECT_EQ(model.name(0), "good");
}

// Without an early stop, eight million one-byte entries that lack all six fields took five seconds.
TEST(Ztensor0Read, StopsWhereNoReportKeepsMore) {
  constexpr std::uint32_t kEntries = 100000;
  std::string index(1, '\x9a');
  for (int shift = 24; shift >= 0; shift -= 8) index += static_cast<char>(kEntries >> shift);
  index.append(kEntries, '\xa0');
  std::string size(8, '\0');
  base::store_le<std::uint64_t>(reinterpret_cast<std::byte*>(size.data()), index.size());
  const auto [report, model] = walk(kFormat, "ZTEN0001" + index + size);
  EXPECT_EQ(report.findings().size(), Report::kMaxFindings);
  EXPECT_LT(report.errors(), 2 * Report::kMaxFindings);
  EXPECT_EQ(model.size(), 0U);
}

// The specification leaves the spelling to producers and consumers: none makes a file that cannot be opened.
TEST(Ztensor0Read, NoSpellingOfAChecksumMakesAFileThatCannotBeOpened) {
  const auto rules_of = [](std::string_view spelled) {
    const std::string tensor = "\xa7" + text("name") + text("w") + text("offset") + number(64) + text("size") +
                               number(4) + text("dtype") + text("uint8") + text("shape") +
                               wire::items::array({number(4)}) + text("encoding") + text("raw") + text("checksum") +
                               text(spelled);
    const std::string index = wire::items::array({tensor});
    std::string bytes = std::string(kMagic) + std::string(56, '\0') + "\1\2\3\4" + index + std::string(8, '\0');
    base::store_le<std::uint64_t>(bytes.data() + bytes.size() - 8, index.size());
    const auto [report, model] = walk(kFormat, std::move(bytes));
    EXPECT_EQ(model.size(), 1U) << spelled;
    for (const Tensor& read : model) {
      const Part part = read.main();
      EXPECT_EQ(part.digest(), spelled);
    }
    std::string out;
    for (const Finding& finding : report.findings()) out += std::string(finding.rule) + ' ';
    return out;
  };
  for (const char* right : {"crc32c:0x29308CF4", "crc32c:0x29308cf4", "crc32c:29308cf4", "crc32c:29308CF4"})
    EXPECT_EQ(rules_of(right), "") << right;
  for (const char* other : {"crc32c:0X29308CF4", "crc32c:", "crc32c:690006260", "sha256:00", "sha256-9f64a747"})
    EXPECT_EQ(rules_of(other).find("zt0/checksum "), std::string::npos) << other;
  EXPECT_EQ(rules_of("sha256:00"), "zt0/checksum-spelling ");
  EXPECT_EQ(rules_of("CRC32C:0x29308cf4"), "zt0/checksum-unknown ");
  EXPECT_EQ(rules_of("xxh3:0011223344556677"), "zt0/checksum-unknown ");
  for (const char* wrong : {"crc32c:0x29308CF5", "crc32c:29308cf5"})
    EXPECT_EQ(rules_of(wrong), "zt0/checksum ") << wrong;
}

TEST(Ztensor0Read, BigEndianComesOutLittleEndianByEveryDoor) {
  const Model model = walk_case("valid-big-endian").model;
  const Part part = model["w"].main();
  const std::string_view swapped("\x04\x03\x02\x01", 4);
  EXPECT_EQ(part.order(), Order::big);
  EXPECT_EQ(part.why_no_view(), NoView::byte_order);
  EXPECT_EQ(logical_bytes(part), swapped);
  EXPECT_EQ(test::dense_bytes(model["w"]), swapped);
  std::array<std::byte, 4> direct{};
  core::read_direct(part, 0, direct);
  EXPECT_TRUE(std::ranges::equal(direct, std::as_bytes(std::span(swapped))));
  EXPECT_EQ(codecs::to_hex(part.stored().span), "01020304");
}

TEST(Ztensor0Read, EndiannessCountsForRawDataOnly) {
  const Model model = walk_case("valid-zstd-endianness-says-nothing").model;
  EXPECT_EQ(logical_bytes(model["w"].main()), "\x01\x02\x03\x04");
}

TEST(Ztensor0Read, AnyNonzeroBoolIsTrue) {
  const Model model = walk_case("valid-bool-of-any-byte").model;
  EXPECT_EQ(logical_bytes(model["w"].main()), "\x01\x01\x01\x01");
}

TEST(Ztensor0Read, WhatCannotBeInterpretedKeepsItsBytes) {
  for (const char* name : {"unknown-dtype-sparse", "unknown-dtype", "unknown-encoding", "unknown-encoding-sparse"}) {
    SCOPED_TRACE(name);
    const Model model = walk_case(name).model;
    ASSERT_EQ(model.size(), 1U);
    const Tensor w = model["w"];
    EXPECT_NE(w.unsupported(), nullptr);
    EXPECT_EQ(codecs::to_hex(w.main().stored().span), "01020304");
    EXPECT_EQ(test::thrown([&] { w.to_dense(); }).kind, Kind::unsupported);
  }
  const Tensor sparse = walk_case("unknown-dtype-sparse").model["w"], dtype = walk_case("unknown-dtype").model["w"];
  const Part lz4 = walk_case("unknown-encoding-sparse").model["w"].main();
  EXPECT_EQ(sparse.layout_name(), "sparsecoo");
  EXPECT_EQ(lz4.encoding_name(), "lz4");
  EXPECT_EQ(dtype.type_name(), "float8");
}

// Issue 16, A.7.
TEST(Ztensor0Read, SparseTensorsAreReadAsThePackagesWroteThem) {
  const std::string dense("\0\0\0\0\0\0\x09\0\0\0\0\0\0\0\0\0\0\0\x07\0\0\0\0\0", 24);
  for (const char* name : {"valid-sparse-coo", "valid-sparse-coo-big-endian", "valid-sparse-coo-zstd"}) {
    SCOPED_TRACE(name);
    const Model model = walk_case(name).model;
    const Tensor w = model["w"];
    EXPECT_EQ(w.layout(), Layout::sparse_coo);
    EXPECT_EQ(test::dense_bytes(w), dense);
    EXPECT_EQ(logical_bytes(*w.part("values")), std::string("\x07\0\x09\0", 4));
    // All first indices, then all second ones, as in zTensor 1.1.
    const std::string coords = logical_bytes(*w.part("coords"));
    EXPECT_EQ(codecs::to_hex(std::as_bytes(std::span(coords))),
              "0200000000000000000000000000000001000000000000000300000000000000");
    EXPECT_EQ(w.main().why_no_view(), std::string_view(name).ends_with("zstd") ? NoView::encoded : NoView::strided);
  }
  for (const char* name : {"valid-sparse-csr", "valid-sparse-csr-big-endian", "valid-sparse-csr-zstd"}) {
    SCOPED_TRACE(name);
    const Model model = walk_case(name).model;
    EXPECT_EQ(model["w"].layout(), Layout::sparse_csr);
    EXPECT_EQ(test::dense_bytes(model["w"]), dense);
    const Part bounds = *model["w"].part("indptr");
    EXPECT_EQ(bounds.count(), 4U);
  }
}

TEST(Ztensor0Read, KeepsCustomFieldsUnderTheirOwnKeys) {
  const Model model = walk_case("valid-custom-fields").model;
  const Attributes attributes = model["w"].attributes();
  ASSERT_EQ(attributes.size(), 5U);
  EXPECT_TRUE(*attributes.find("half") == Value::real(1.5));  // the width of a float says nothing here (Z5)
  EXPECT_TRUE(*attributes.find("single") == Value::real(static_cast<double>(0.1f)));
  EXPECT_EQ(attributes.find("tagged")->kind(), Value::Kind::foreign);
  EXPECT_EQ(attributes.find("map")->map()[0].second.kind(), Value::Kind::foreign);
  const Tensor tiled = walk_case("valid-other-layout").model["w"];
  EXPECT_EQ(tiled.layout(), Layout::dense);
  EXPECT_EQ(tiled.attribute("layout")->as_text(), "tiled");
}

TEST(Ztensor0Read, MatchesEveryMagicOfItsLine) {
  const auto matched = [](std::string_view head) {
    const auto bytes = std::as_bytes(std::span(head));
    return matches({.head = bytes, .tail = bytes, .size = bytes.size(), .extension = "zt"});
  };
  EXPECT_TRUE(matched("ZTEN0001"));
  EXPECT_TRUE(matched("ZTEN0002"));
  EXPECT_FALSE(matched("ZTEN1000"));
  EXPECT_FALSE(matched("ZTEN"));
}

}  // namespace
}  // namespace weighbridge::ztensor0
