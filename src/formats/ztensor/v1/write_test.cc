// SPDX-License-Identifier: Apache-2.0
// Writing: bytes, plans, options, appending.
#include <gtest/gtest.h>

#include <cstring>

#include "core/payload/compare.h"
#include "core/writing/layout.h"
#include "formats/ztensor/v1/format.h"
#include "formats/ztensor/v1/layout.h"
#include "support/format_testing.h"
#include "support/thrown.h"

namespace weighbridge::ztensor1 {
namespace {

using test::bytes_of;
using test::logical_bytes;
using test::render;
using test::walk;
using test::write;

Model two() {
  Builder builder;
  builder.tensor("b", DType::u8, {2, 1}, bytes_of("\x05\x06"));
  builder.tensor("a", DType::f8_e4m3, {1}, bytes_of("\x38"));
  return builder.build();
}

Options version(std::string v) {
  Options options;
  options.version = std::move(v);
  return options;
}

// Payloads in the given order, objects sorted by name, keys in the order of reading Y6.
TEST(ZtensorWrite, MakesExactlyTheseBytes) {
  const std::string expected_manifest =
      "\xa2\x67"
      "version\x65"
      "1.1.0\x67"
      "objects\xa2"
      "\x61"
      "a\xa3\x65"
      "shape\x81\x01\x66"
      "format\x65"
      "dense\x6a"
      "components\xa1\x64"
      "data\xa3\x65"
      "dtype\x67"
      "f8_e4m3"
      "\x66"
      "offset\x18\x80\x66"
      "length\x01"
      "\x61"
      "b\xa3\x65"
      "shape\x82\x02\x01\x66"
      "format\x65"
      "dense\x6a"
      "components\xa1\x64"
      "data\xa3\x65"
      "dtype\x62"
      "u8"
      "\x66"
      "offset\x18\x40\x66"
      "length\x02";
  std::string expected = "ZTEN1000";
  expected.resize(64, '\0');
  expected += "\x05\x06";
  expected.resize(128, '\0');
  expected += "\x38" + expected_manifest;
  expected += static_cast<char>(expected_manifest.size());
  expected += std::string(7, '\0') + "ZTEN1000";
  const std::string bytes = write(kFormat, two());
  EXPECT_EQ(codecs::to_hex(std::as_bytes(std::span(bytes))), codecs::to_hex(std::as_bytes(std::span(expected))));
}

TEST(ZtensorWrite, Version12SaysTypeAndUncompressedLength) {
  Options options = version("1.2");
  options.encoding = "zstd";
  options.digest = "crc32c";
  const std::string bytes = write(kFormat, two(), options);
  for (const char* text : {"1.2.0", "f8_e4m3fn", "uncompressed_length", "crc32c:0x"})
    EXPECT_NE(bytes.find(text), std::string::npos) << text;
  const auto [report, model] = walk(kFormat, bytes);
  EXPECT_EQ(report.total(), 0U);
  EXPECT_EQ(model["a"].dtype(), DType::f8_e4m3);
  EXPECT_EQ(model["a"].part(0U).encoding(), Encoding::zstd);
  EXPECT_TRUE(core::compare(two(), model).empty());
}

TEST(ZtensorWrite, AnEmptyModelIsAFile) {
  const auto [report, model] = walk(kFormat, write(kFormat, Builder().build()));
  EXPECT_EQ(report.total(), 0U);
  EXPECT_EQ(model.size(), 0U);
}

TEST(ZtensorWrite, KeepsAttributesOfEveryType) {
  Builder builder;
  builder.attribute("text", Value::text("x"));
  builder.attribute("number", Value::integer(std::uint64_t{5}, DType::u32));
  builder.attribute("list", Value::list({Value::integer(std::uint64_t{1}), Value::text("a")}));
  builder.attribute("bytes", Value::bytes({std::byte{1}, std::byte{255}}));
  Tokenizer tokenizer;
  tokenizer.tokens.push_back("t");
  tokenizer.vocab_size = 1;
  builder.tokenizer(tokenizer);
  const Model model = builder.build();
  for (const char* v : {"1.1", "1.2"}) {
    const core::WriteLayout made = layout(model, version(v));
    EXPECT_TRUE(made.losses.empty());
    const Model again = walk(kFormat, render(made)).model;
    const auto differences = core::compare(model, again);
    EXPECT_TRUE(differences.empty()) << differences[0].subject;
  }
}

// Published 1.1 packages fail on any root attribute that is not text.
TEST(ZtensorWrite, Version11HasOnlyTextAtItsRoot) {
  Builder builder;
  builder.attribute("n", Value::integer(std::uint64_t{5}));
  const std::string bytes = write(kFormat, builder.build());
  EXPECT_NE(bytes.find("\x61n\x61"
                       "5"),
            std::string::npos);
  EXPECT_NE(bytes.find(R"({"n":"u64"})"), std::string::npos);
}

TEST(ZtensorWrite, AttributesThatNoTextGivesBackAreALoss) {
  Builder builder;
  builder.attribute("l", Value::list({Value::integer(std::uint64_t{1}, DType::u8)}));
  const core::WriteLayout made = layout(builder.build(), {});
  ASSERT_EQ(made.losses.size(), 1U);
  EXPECT_EQ(made.losses[0].kind, LossKind::attribute_type);
  EXPECT_EQ(made.losses[0].subject, "attributes[\"l\"]");
}

TEST(ZtensorWrite, NamesWhatItCannotHold) {
  Builder builder;
  builder.tensor("x", DType::f8_e8m0, {1}, bytes_of("a"));
  const Model model = builder.build();
  const core::WriteLayout made = layout(model, {});
  ASSERT_EQ(made.blockers.size(), 1U);
  EXPECT_EQ(made.blockers[0].kind, LossKind::dtype);
  EXPECT_TRUE(made.payloads.empty());
  Options options;
  options.cast = DType::f32;
  const core::WriteLayout cast = layout(model, options);
  EXPECT_TRUE(cast.blockers.empty());
  ASSERT_EQ(cast.losses.size(), 1U);
  const Model again = walk(kFormat, render(cast)).model;
  EXPECT_EQ(again["x"].dtype(), DType::f32);
}

TEST(ZtensorWrite, RefusesOptionsItLacks) {
  Options options;
  options.version = "2.0";
  EXPECT_EQ(test::thrown([&] { core::check_written(kFormat, options); }).rule, "misuse/version");
  options = {};
  options.quantize = "q4";
  EXPECT_EQ(test::thrown([&] { core::check_written(kFormat, options); }).rule, "misuse/quantize");
  options = {};
  options.cast = DType::i8;
  EXPECT_EQ(test::thrown([&] { core::check_written(kFormat, options); }).rule, "misuse/cast");
}

TEST(ZtensorWrite, StoresSharedBytesOnce) {
  Builder builder;
  const Model one = walk(kFormat, write(kFormat, two())).model;
  builder.tensor("x", one["b"]);
  builder.tensor("y", one["b"]);
  builder.tensor("z", one["a"]);
  const core::WriteLayout made = layout(builder.build(), {});
  EXPECT_EQ(made.payloads.size(), 2U);
  EXPECT_TRUE(made.losses.empty());
  const auto [report, model] = walk(kFormat, render(made));
  EXPECT_EQ(report.total(), 0U);
  EXPECT_EQ(model["x"].main().extent(), model["y"].main().extent());
}

TEST(ZtensorWrite, KeepsStoredBytesDigestAndUnknownKeys) {
  for (const core::CorpusCase& c : cases()) {
    if (c.name != "valid-unknown-key" && c.name != "valid-sha256" && c.name != "unknown-encoding" &&
        c.name != "unknown-type")
      continue;
    SCOPED_TRACE(c.name);
    const Model model = walk(kFormat, c.bytes).model;
    const core::WriteLayout made = layout(model, {});
    EXPECT_TRUE(made.losses.empty());
    EXPECT_TRUE(made.changes.empty());
    const Model again = walk(kFormat, render(made)).model;
    EXPECT_TRUE(core::compare(model, again).empty());
    const Part part = again["w"].main(), from = model["w"].main();
    EXPECT_EQ(part.digest(), from.digest());
  }
}

TEST(ZtensorAppend, PutsNewObjectsBehindTheOldBytes) {
  const std::string old = write(kFormat, two());
  const Model target = walk(kFormat, old).model;
  Builder builder;
  builder.tensor("aa", DType::u8, {3}, bytes_of("new"));
  const Model more = builder.build();
  const core::WriteLayout made = append(target, more, {});
  EXPECT_TRUE(made.losses.empty());
  const std::string bytes = render(made);
  EXPECT_EQ(bytes.substr(0, made.prefix_length), old.substr(0, made.prefix_length));
  EXPECT_EQ(made.prefix_length, 129U);
  const auto [report, model] = walk(kFormat, bytes);
  EXPECT_EQ(report.total(), 0U);
  ASSERT_EQ(model.size(), 3U);
  EXPECT_EQ(model.name(1), "aa");
  EXPECT_EQ(logical_bytes(model["aa"].main()), "new");
  EXPECT_EQ(logical_bytes(model["b"].main()), "\x05\x06");
}

TEST(ZtensorAppend, KeepsOldEntriesAndTheRootAsTheyStand) {
  for (const core::CorpusCase& c : cases()) {
    if (!c.rule.empty() || c.generated_only) continue;
    SCOPED_TRACE(c.name);
    const Model target = walk(kFormat, c.bytes).model;
    Builder builder;
    builder.tensor("zz", DType::u8, {3}, bytes_of("new"));
    const core::WriteLayout made = append(target, builder.build(), {});
    EXPECT_TRUE(made.losses.empty());
    const auto [report, model] = walk(kFormat, render(made));
    EXPECT_EQ(report.total(), 0U);
    EXPECT_EQ(model.version(), target.version());
    const auto differences = core::compare(target, model);
    ASSERT_EQ(differences.size(), 1U) << differences[0].subject;
    EXPECT_EQ(differences[0].subject, "tensors[\"zz\"]");
  }
}

TEST(ZtensorAppend, RefusesANameThatIsThere) {
  const Model target = walk(kFormat, write(kFormat, two())).model;
  const core::WriteLayout made = append(target, two(), {});
  ASSERT_EQ(made.blockers.size(), 2U);
  EXPECT_EQ(made.blockers[0].kind, LossKind::name);
}

TEST(ZtensorAppend, MergesAttributesAndNamesThoseThatDiffer) {
  Builder first;
  first.attribute("same", Value::text("1")).attribute("other", Value::text("2"));
  const Model target = walk(kFormat, write(kFormat, first.build())).model;
  Builder second;
  second.attribute("same", Value::text("1")).attribute("other", Value::text("3")).attribute("new", Value::text("4"));
  const core::WriteLayout made = append(target, second.build(), {});
  ASSERT_EQ(made.losses.size(), 1U);
  EXPECT_EQ(made.losses[0].subject, "attributes[\"other\"]");
  const Model model = walk(kFormat, render(made)).model;
  EXPECT_EQ(model.attribute("other")->as_text(), "2");
  EXPECT_EQ(model.attribute("new")->as_text(), "4");
}

// Reading Y10: the q8_0 and q4_0 of another container.
TEST(ZtensorWrite, CarriesQuantizedRowsAndBlocks) {
  const auto attributes = [](const char* type, std::int64_t block) {
    return std::vector<Value::Entry>{{"type", Value::text(type)}, {"block_size", Value::integer(block)}};
  };
  const Bytes one = bytes_of(std::string("\0\0\x80\x3f", 4));
  Builder builder;
  builder.object("r", Layout::quantized_row, {1, 4}, attributes("q8_0", 4),
                 {{"data", DType::i8, {1, 4}, bytes_of("\x01\xff\x02\x7f")}, {"scales", DType::f32, {1}, one}});
  builder.object("b", Layout::quantized_block, {1, 4}, attributes("q4_0", 4),
                 {{"data", DType::u8, {2}, bytes_of("\x21\xf8")}, {"scales", DType::f32, {1, 1}, one}});
  builder.object("other", Layout::quantized_row, {1, 4}, attributes("q9_9", 4),
                 {{"data", DType::i8, {1, 4}, bytes_of("abcd")}, {"scales", DType::f32, {1}, one}});
  const Model in = builder.build();
  const auto [report, out] = walk(kFormat, write(kFormat, in));
  EXPECT_EQ(report.errors(), 0U);
  for (const char* name : {"r", "b"}) {
    const Tensor from = in[name], to = out[name];
    EXPECT_EQ(to.layout(), from.layout());
    EXPECT_EQ(to.type_name(), from.type_name());
    const Array dense = to.to_dense();
    std::vector<float> values(4);
    std::memcpy(values.data(), dense.data.get(), dense.size);
    EXPECT_EQ(values, name[0] == 'r' ? (std::vector<float>{1, -1, 2, 127}) : (std::vector<float>{1, 2, -8, -1}));
  }
  const Tensor other = out["other"];
  EXPECT_NE(other.unsupported(), nullptr);
}

// Reading Y10: blocks of GGML, whose `type` is the id. A q4_0 of GGML is not one of SLM.
TEST(ZtensorWrite, CarriesWholeBlocks) {
  std::string blocks(36, '\x99');                   // codes 9 - 8 = 1
  blocks.replace(0, 2, std::string("\0\x3c", 2));   // scale 1
  blocks.replace(18, 2, std::string("\0\x40", 2));  // scale 2
  const auto of = [&](const char* type, std::vector<std::uint64_t> shape, const std::string& data) {
    Builder builder;
    builder.object("w", Layout::quantized_block, std::move(shape), {{"type", Value::text(type)}},
                   {{"data", DType::u8, {data.size()}, bytes_of(data)}});
    return write(kFormat, builder.build());
  };
  const auto [report, out] = walk(kFormat, of("ggml.q4_0", {2, 32}, blocks));
  EXPECT_EQ(report.findings().size(), 0U);
  const Tensor tensor = out["w"];
  ASSERT_EQ(tensor.block_type(), find_block_type("ggml.q4_0"));
  EXPECT_EQ(tensor.dtype(), DType::f32);
  const Array dense = tensor.to_dense();
  std::vector<float> values(64);
  ASSERT_EQ(dense.size, values.size() * sizeof(float));
  std::memcpy(values.data(), dense.data.get(), dense.size);
  for (std::size_t i = 0; i < values.size(); ++i) EXPECT_EQ(values[i], i < 32 ? 1 : 2);
  // An object whose shape or bytes do not fit is one of unknown format.
  const auto unsupported = [&](const char* type, std::vector<std::uint64_t> shape) {
    const Model model = walk(kFormat, of(type, std::move(shape), blocks)).model;
    const Tensor one = model["w"];
    return one.unsupported() != nullptr;
  };
  EXPECT_FALSE(unsupported("ggml.q4_0", {2, 32}));
  EXPECT_TRUE(unsupported("ggml.q4_0", {4, 16}));
  EXPECT_TRUE(unsupported("ggml.q4_0", {3, 32}));
  EXPECT_TRUE(unsupported("q4_0", {2, 32}));
}

}  // namespace
}  // namespace weighbridge::ztensor1
