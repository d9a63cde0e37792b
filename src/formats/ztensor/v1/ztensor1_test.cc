// SPDX-License-Identifier: Apache-2.0
// Reading what the corpus cannot show: values, offsets and messages of findings, speed, and real files of published
// writers.
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cmath>

#include "core/payload/compare.h"
#include "core/writing/layout.h"
#include "formats/ztensor/cbor_value.h"
#include "formats/ztensor/v1/format.h"
#include "formats/ztensor/v1/layout.h"
#include "support/format_testing.h"
#include "support/test_data.h"
#include "support/thrown.h"
#include "support/ztensor_manifest.h"

namespace weighbridge::ztensor1 {
namespace {

using test::bytes_of;
using test::contents;
using test::dense_bytes;
using test::expect_attributes;
using test::expect_tensors;
using test::Json;
using test::logical_bytes;
using test::render;
using test::walk;
using test::write;

const core::CorpusCase& corpus(std::string_view name) {
  static const std::vector<core::CorpusCase> all = cases();
  return test::case_of(all, name);
}

TEST(RealZtensor, EveryFileOfThe1xLineIsAsItsManifestSays) {
  WB_REQUIRE_TEST_DATA(folder, "ztensor");
  const Json manifest = Json::parse(contents(folder + "/MANIFEST.json"));
  int files = 0;
  for (const Json& file : manifest.at("files")) {
    if (file.at("generation") == "0.1") continue;
    SCOPED_TRACE(file.at("file"));
    ++files;
    const auto [report, model] = walk(kFormat, contents(folder + "/" + file.at("file").get<std::string>()));
    const std::string verdict = file.at("expect");
    EXPECT_EQ(report.valid(), verdict != "reject");
    EXPECT_EQ(report.unsupported() > 0, verdict == "unsupported");
    if (verdict == "reject") {
      EXPECT_EQ(report.first_error()->rule, "zt/draft-1.0");
      continue;
    }
    EXPECT_EQ(report.warnings(), 0U);
    EXPECT_EQ(model.version(), file.at("generation").get<std::string>());
    expect_tensors(model, file.at("tensors"));
    if (file.contains("attributes")) expect_attributes(model.attributes(), file["attributes"]);
  }
  EXPECT_EQ(files, 13);
}

TEST(RealZtensor, EveryFileComesBackTheSameThroughTheWriter) {
  WB_REQUIRE_TEST_DATA(folder, "ztensor");
  const Json manifest = Json::parse(contents(folder + "/MANIFEST.json"));
  for (const Json& file : manifest.at("files")) {
    if (file.at("generation") == "0.1" || file.at("expect") == "reject") continue;
    SCOPED_TRACE(file.at("file"));
    const Model model = walk(kFormat, contents(folder + "/" + file.at("file").get<std::string>())).model;
    for (const std::string version : {"", "1.1", "1.2"}) {
      for (const std::string encoding : {"", "raw", "zstd"}) {
        SCOPED_TRACE(version + " " + encoding);
        Options options;
        options.version = version;
        options.encoding = encoding;
        const core::WriteLayout made = layout(model, options);
        EXPECT_TRUE(made.losses.empty()) << made.losses[0].subject;
        const std::string bytes = render(made);
        EXPECT_EQ(bytes, write(kFormat, model, options)) << "not deterministic";
        const auto [report, again] = walk(kFormat, bytes);
        EXPECT_TRUE(report.valid()) << report.first_error()->message;
        EXPECT_EQ(report.warnings(), 0U);
        const auto differences = core::compare(model, again);
        EXPECT_TRUE(differences.empty()) << differences[0].subject << ": " << differences[0].from << " / "
                                         << differences[0].to;
        EXPECT_EQ(write(kFormat, again, options), bytes) << "not stable";
      }
    }
  }
}

TEST(ZtensorRead, SaysWhereExpectedAndFound) {
  const core::CorpusCase& c = corpus("length");
  const auto [report, model] = walk(kFormat, c.bytes);
  ASSERT_EQ(report.total(), 1U);
  const Finding& finding = report.findings()[0];
  EXPECT_EQ(finding.rule, "zt/length");
  EXPECT_EQ(finding.tensor, "w");
  EXPECT_TRUE(finding.has_tensor);
  EXPECT_EQ(finding.expected, "4 bytes");
  EXPECT_EQ(finding.found, "3");
  EXPECT_EQ(finding.offset, c.bytes.find("data") + 4);  // the component's map
  EXPECT_EQ(finding.message,
            "a raw component's length is not the size that shape and dtype require: component \"data\" (expected 4 "
            "bytes, found 3)");
  EXPECT_EQ(model.size(), 0U);
}

TEST(ZtensorRead, LeavesOutTheBrokenObjectAlone) {
  Builder builder;
  builder.tensor("a", DType::u8, {4}, bytes_of("abcd"));
  builder.tensor("b", DType::u8, {4}, bytes_of("efgh"));
  std::string bytes = write(kFormat, builder.build());
  const std::size_t length = bytes.find("length", bytes.find("\x61"
                                                             "b",
                                                             192)) +
                             6;
  bytes[length] = 3;
  const auto [report, model] = walk(kFormat, bytes);
  EXPECT_EQ(report.errors(), 1U);
  ASSERT_EQ(model.size(), 1U);
  EXPECT_EQ(model.name(0), "a");
}

// Such a file was rejected.
TEST(ZtensorRead, AnAttributeWhoseKeyIsNotTextIsAWarningAndANamedLoss) {
  const auto [report, model] = walk(kFormat, corpus("attribute-key").bytes);
  EXPECT_TRUE(report.valid());
  ASSERT_EQ(report.total(), 1U);
  EXPECT_EQ(report.findings()[0].found, "2 of them");
  EXPECT_EQ(model.attributes().size(), 1U);
  EXPECT_EQ(model.attribute("a")->as_text(), "b");
  EXPECT_EQ(model.extra().size(), 1U);
  const auto made = layout(model, {});
  ASSERT_EQ(made.losses.size(), 1U);
  EXPECT_EQ(made.losses[0].subject, "extra[\"attributes\"]");
  EXPECT_TRUE(walk(kFormat, render(made)).report.valid());

  const auto [object_report, object_model] = walk(kFormat, corpus("attribute-key-object").bytes);
  EXPECT_EQ(object_report.findings()[0].tensor, "w");
  ASSERT_EQ(object_model.size(), 1U);
  EXPECT_EQ(object_model[0].attributes().size(), 1U);
  const auto again = layout(object_model, {});
  ASSERT_EQ(again.losses.size(), 1U);
  EXPECT_TRUE(walk(kFormat, render(again)).report.valid());
}

TEST(ZtensorRead, PointsAtTheByteThatIsNoBool) {
  const auto [report, model] = walk(kFormat, corpus("bool").bytes);
  ASSERT_EQ(report.errors(), 1U);
  EXPECT_EQ(report.findings()[0].offset, 65U);
  EXPECT_EQ(report.findings()[0].found, "2");
}

TEST(ZtensorRead, KeepsOddAttributesAsTheyStand) {
  const Model model = walk(kFormat, corpus("valid-attributes").bytes).model;
  const auto kind = [&](std::string_view key) { return model.attribute(key)->kind(); };
  EXPECT_EQ(kind(""), Value::Kind::text);
  for (const std::string_view key : {"tag", "undefined", "other keys", "below -2^63"}) {
    EXPECT_EQ(kind(key), Value::Kind::foreign) << key;
    EXPECT_EQ(model.attribute(key)->grammar(), "cbor");
  }
  EXPECT_EQ(codecs::to_hex(model.attribute("other keys")->bytes()), "a10102");
}

TEST(ZtensorRead, TakesNamesInChunks) {
  std::string bytes = write(kFormat, [] {
    Builder builder;
    builder.tensor("name", DType::u8, {0}, Bytes{});
    return builder.build();
  }());
  bytes.replace(bytes.find("\x64name"), 5, "\x7f\x62na\x62me\xff");
  const std::size_t footer = bytes.size() - 16;
  bytes[footer] = static_cast<char>(bytes[footer] + 3);
  const auto [report, model] = walk(kFormat, bytes);
  EXPECT_EQ(report.total(), 0U);
  ASSERT_EQ(model.size(), 1U);
  EXPECT_EQ(model.name(0), "name");
}

// A frame that decodes to far more than its stored size is not decoded again for each object that shares it.
TEST(ZtensorRead, DecodesASharedFrameOfUnknownSizeOnce) {
  const core::CorpusCase& c = corpus("valid-csr-zstd-without-sizes");
  const auto [report, model] = walk(kFormat, c.bytes);
  EXPECT_EQ(report.total(), 0U);
  EXPECT_EQ(model["s"].part("values").value().count(), 2U);
  EXPECT_EQ(dense_bytes(model["s"]), std::string("\x05\0\0\0\0\x07", 6));
}

Model many(std::uint32_t count) {
  Builder builder;
  for (std::uint32_t i = 0; i < count; ++i)
    builder.tensor("model.layers." + std::to_string(i % 1000) + ".block." + std::to_string(i) + ".weight", DType::f32,
                   {4, 4}, bytes_of(std::string(64, 'x')));
  return builder.build();
}

TEST(ZtensorRead, OpensManyObjectsQuickly) {
  const Model model = many(100'000);
  using Clock = std::chrono::steady_clock;
  const auto begin = Clock::now();
  const core::WriteLayout made = layout(model, {});
  const auto planned = Clock::now();
  const std::string bytes = render(made);
  const auto source = memory_source(bytes_of(bytes));
  auto best = std::chrono::nanoseconds::max();
  for (int i = 0; i < 5; ++i) {
    const auto start = Clock::now();
    Report report;
    core::Findings findings(report, core::Findings::Mode::all);
    core::Draft draft;
    draft.add_source(source);
    read(*source, {}, findings, draft);
    const Model again = draft.finish();
    best = std::min<std::chrono::nanoseconds>(best, Clock::now() - start);
    ASSERT_EQ(again.size(), 100'000U);
    EXPECT_EQ(report.total(), 0U);
  }
  const auto milliseconds = [](auto d) {
    return static_cast<int>(std::chrono::duration_cast<std::chrono::milliseconds>(d).count());
  };
  RecordProperty("layout_ms", milliseconds(planned - begin));
  RecordProperty("open_ms", milliseconds(best));
  std::printf("layout %d ms, open %d ms, file %zu bytes\n", milliseconds(planned - begin), milliseconds(best),
              bytes.size());
  EXPECT_LT(bytes.size(), 38'000'000U);
  EXPECT_LT(best, std::chrono::seconds(2));  // generous: sanitizers and busy machines
}

TEST(ZtensorTokenizer, ComesBackFromJson) {
  Tokenizer tokenizer;
  tokenizer.kind = Tokenizer::Kind::bpe;
  tokenizer.vocab_size = 7;
  for (const char* token : {"a", "\xff\xfe", "", "\xC3\xA9\""}) tokenizer.tokens.push_back(token);
  tokenizer.ids = {3, 1, 0, 2};
  tokenizer.merges = {{1, 2, 3, 4}, {5, 6, 7, 0}};
  tokenizer.special = {{"unk", 3}, {"pad", 0}};
  const std::string json = tokenizers::tokenizer_to_json(tokenizer);
  EXPECT_EQ(tokenizers::tokenizer_from_json(json), tokenizer);
  for (std::size_t n = 0; n < json.size(); ++n)
    EXPECT_EQ(tokenizers::tokenizer_from_json(json.substr(0, n)), std::nullopt);
  EXPECT_EQ(tokenizers::tokenizer_from_json(R"({"kind":"bpe","tokens":[],"kind":"bpe"})"), std::nullopt);
  EXPECT_EQ(tokenizers::tokenizer_from_json(R"({"kind":"other","tokens":[]})"), std::nullopt);
}

// One value of every kind and width.
std::vector<Value> sample_values() {
  const auto bytes = [](std::string_view text) {
    const auto data = std::as_bytes(std::span(text));
    return std::vector<std::byte>(data.begin(), data.end());
  };
  Texts texts;
  texts.push_back("one");
  texts.push_back("");
  return {Value(),
          Value::boolean(true),
          Value::integer(std::uint64_t{UINT64_MAX}),
          Value::integer(std::int64_t{INT64_MIN}),
          Value::integer(std::uint64_t{7}, DType::u8),
          Value::integer(std::int64_t{-7}, DType::i16),
          Value::integer(std::int64_t{7}, DType::i64),
          Value::real(0.1),
          Value::real(1.5, DType::f16),
          Value::real(static_cast<double>(0.1f), DType::f32),
          Value::real(-0.0),
          Value::real(6.103515625e-05, DType::f16),
          Value::real(5.9604644775390625e-08, DType::f16),
          Value::real(HUGE_VAL, DType::f32),
          Value::text("text"),
          Value::text("12"),
          Value::bytes(bytes("\x00\xff\x10")),
          Value::list({Value::integer(std::uint64_t{1}), Value::real(2.5), Value::text("x"), Value()}),
          Value::map({{"k", Value::list({})}, {"a", Value::boolean(false)}}),
          Value::numbers(DType::u32, bytes("abcdefgh")),
          Value::numbers(DType::f32, bytes(std::string_view("\0\0\x80\x3f\0\0\0\xc0", 8))),
          Value::texts(texts),
          Value::foreign("cbor", bytes("\xc1\x01")),
          Value::foreign("json", bytes("[1]"))};
}

TEST(ZtensorValues, ComeBackWithTheirTypeAsTextAndAsTheyAre) {
  for (const Value& value : sample_values()) {
    SCOPED_TRACE(value.to_text());
    for (const bool as_text : {false, true}) {
      const ztensor::Stated stated = ztensor::state(value, as_text);
      EXPECT_TRUE(stated.exact);
      if (as_text) {
        EXPECT_EQ(stated.value.kind(), Value::Kind::text);
      }
      wire::CborWriter out;
      ztensor::write_value(out, stated.value);
      wire::CborReader in(out.data());
      core::Budget budget{UINT64_MAX};
      std::optional<std::size_t> duplicate;
      const Value stored = ztensor::read_value(in, budget, duplicate);
      EXPECT_TRUE(in.finish());
      const auto back = stated.type.empty() ? std::optional(stored) : ztensor::restore(stored, stated.type);
      ASSERT_TRUE(back.has_value()) << stated.type;
      EXPECT_TRUE(*back == value) << stated.type;
    }
  }
}

TEST(ZtensorValues, StayAsTheyStandWhereATypeDoesNotFit) {
  std::vector<Value::Entry> entries{
      {"a", Value::text("7")}, {"b", Value::text("x")}, {"weighbridge.types", Value::text(R"({"a":"u8","b":"u8"})")}};
  const auto before = entries;
  ztensor::restore_types(entries);
  EXPECT_EQ(entries.size(), 3U);
  EXPECT_TRUE(entries[0].second == before[0].second);
  entries[1].second = Value::text("9");
  ztensor::restore_types(entries);
  ASSERT_EQ(entries.size(), 2U);
  EXPECT_TRUE(entries[0].second == Value::integer(std::uint64_t{7}, DType::u8));
}

}  // namespace
}  // namespace weighbridge::ztensor1
