// SPDX-License-Identifier: Apache-2.0
// Reading: values, offsets, messages and speed, which the corpus cannot show. Writing: layouts, compared byte for byte
// with the output of the reference package.
#include <gtest/gtest.h>

#include <array>
#include <ctime>
#include <memory>
#include <tuple>

#include "base/endian.h"
#include "core/writing/layout.h"
#include "formats/safetensors/format.h"
#include "formats/safetensors/layout.h"
#include "support/corpus_case.h"
#include "support/peak_memory.h"
#include "support/rounds.h"
#include "support/sanitized.h"
#include "support/thrown.h"

namespace weighbridge::safetensors {
namespace {

using Mode = core::Findings::Mode;

std::string file(const std::string& header, std::string_view data = {}) {
  std::string out(kLengthSize, '\0');
  base::store_le<std::uint64_t>(out.data(), header.size());
  return (out + header).append(data);
}

struct Outcome {
  Report report;
  Model model;
};

Outcome walk(std::string bytes, Mode mode = Mode::all, const Context& context = {}) {
  const auto kept = std::make_shared<const std::string>(std::move(bytes));
  const auto source = memory_source({std::as_bytes(std::span(*kept)), kept});
  Outcome out;
  core::Findings findings(out.report, mode);
  core::Draft draft;
  draft.add_source(source);
  read(*source, context, findings, draft);
  out.model = draft.finish();
  return out;
}

Bytes bytes_of(std::string text) {
  const auto kept = std::make_shared<const std::string>(std::move(text));
  return {std::as_bytes(std::span(*kept)), kept};
}

// The file that a layout describes, for payloads that are in memory.
std::string render(const core::WriteLayout& layout) {
  std::string out = layout.head;
  for (const core::Payload& payload : layout.payloads) {
    payload.tensor.part(payload.part).stream({}, [&](std::span<const std::byte> piece) {
      out.append(reinterpret_cast<const char*>(piece.data()), piece.size());
      return true;
    });
  }
  EXPECT_EQ(out.size(), layout.size);
  return out;
}

TEST(SafetensorsRead, TellsNamesShapesAndPlaces) {
  const auto [report, model] = walk(file(R"({"w":{"dtype":"BF16","shape":[2,1],"data_offsets":[2,6]},)"
                                         R"("\u00e9":{"dtype":"I16","shape":[],"data_offsets":[0,2]}})",
                                         "abcdef"));
  EXPECT_EQ(report.total(), 0U);
  ASSERT_EQ(model.size(), 2U);
  EXPECT_EQ(model.name(0), "w");  // the order of the index, not of the data
  EXPECT_EQ(model.name(1), "\xC3\xA9");
  const Tensor w = model["w"], scalar = model["\xC3\xA9"];
  EXPECT_EQ(w.dtype(), DType::bf16);
  EXPECT_EQ(std::vector(w.shape().begin(), w.shape().end()), (std::vector<std::uint64_t>{2, 1}));
  EXPECT_EQ(scalar.shape().size(), 0U);
  EXPECT_EQ(model.format(), "safetensors");
  const std::uint64_t data = model.sources()[0]->size() - 6;
  const Part part = w.main();
  EXPECT_EQ(part.extent(), (Extent{0, data + 2, 4}));
  EXPECT_EQ(scalar.main().extent(), (Extent{0, data, 2}));
  EXPECT_EQ(part.role(), "data");
}

TEST(SafetensorsRead, KeepsMetadataInTheOrderOfTheFile) {
  const auto [report, model] = walk(file(R"({"__metadata__":{"z":"1","a":"\u00e9\n"}})"));
  EXPECT_EQ(report.total(), 0U);
  const auto entries = model.attributes();
  ASSERT_EQ(entries.size(), 2U);
  EXPECT_EQ(entries[0].first, "z");
  EXPECT_EQ(entries[0].second.as_u64(), 1U);
  EXPECT_EQ(entries[1].second.as_text(), "\xC3\xA9\n");
}

TEST(SafetensorsRead, KeepsUnknownKeysWordForWord) {
  const auto [report, model] =
      walk(file(R"({"a":{"x":[1, {"y":null}],"dtype":"U8","shape":[1],"data_offsets":[0,1]}})", "a"));
  EXPECT_EQ(report.warnings(), 1U);
  const Attributes unknown = model["a"].extra();
  const Value* extra = unknown.find("x");
  ASSERT_NE(extra, nullptr);
  EXPECT_EQ(extra->grammar(), "json");
  EXPECT_EQ(std::string(reinterpret_cast<const char*>(extra->bytes().data()), extra->bytes().size()),
            R"([1, {"y":null}])");
}

TEST(SafetensorsRead, SaysWhereExpectedAndFound) {
  const std::string bytes = file(R"({"a":{"dtype":"F32","shape":[3],"data_offsets":[0,4]}})", "abcd");
  const auto [report, model] = walk(bytes);
  ASSERT_EQ(report.total(), 1U);
  const Finding& finding = report.findings()[0];
  EXPECT_EQ(finding.rule, "safetensors/size-mismatch");
  EXPECT_EQ(finding.offset, bytes.find("[0,4]"));
  EXPECT_EQ(finding.tensor, "a");
  EXPECT_EQ(finding.expected, "12 bytes");
  EXPECT_EQ(finding.found, "4 bytes");
  EXPECT_EQ(finding.message,
            "data_offsets does not span the size that shape and dtype require (expected 12 bytes, found 4 bytes)");
  EXPECT_EQ(model.size(), 0U);
}

TEST(SafetensorsRead, SaysHowManyBytesATruncatedFileLacks) {
  const std::string bytes = file(R"({"a":{"dtype":"U8","shape":[9],"data_offsets":[0,9]}})", "abcd");
  const auto header = walk(bytes.substr(0, 20));
  EXPECT_NE(header.report.first_error()->message.find(std::to_string(bytes.size() - 4 - 20) + " bytes are missing"),
            std::string::npos)
      << header.report.first_error()->message;
  const auto data = walk(bytes);
  EXPECT_EQ(data.report.first_error()->rule, "safetensors/truncated");
  EXPECT_NE(data.report.first_error()->message.find("5 bytes are missing"), std::string::npos);
  EXPECT_EQ(data.report.first_error()->offset, bytes.size());
}

TEST(SafetensorsRead, LeavesOnlyTheBrokenTensorsOut) {
  const auto [report, model] = walk(file(R"({"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},)"
                                         R"("b":{"dtype":"U8","shape":[2],"data_offsets":[1,2]},)"
                                         R"("c":{"dtype":"U8","shape":[1],"data_offsets":[2,3]}})",
                                         "abc"));
  EXPECT_EQ(report.errors(), 1U);
  ASSERT_EQ(model.size(), 2U);
  EXPECT_TRUE(model.find("a").has_value());
  EXPECT_FALSE(model.find("b").has_value());
  EXPECT_EQ(model["c"].index(), 1U);
}

TEST(SafetensorsRead, ListsWhatItCannotInterpret) {
  const auto [report, model] = walk(file(R"({"a":{"dtype":"Q4","shape":[5],"data_offsets":[0,2]}})", "ab"));
  EXPECT_TRUE(report.valid());
  EXPECT_EQ(report.unsupported(), 1U);
  ASSERT_EQ(model.size(), 1U);
  const Tensor tensor = model[0];
  const Part part = tensor.main();
  ASSERT_NE(tensor.unsupported(), nullptr);
  EXPECT_EQ(*tensor.unsupported(), report.findings()[0]);
  EXPECT_EQ(tensor.type_name(), "Q4");
  EXPECT_EQ(part.dtype_name(), "Q4");
  EXPECT_EQ(tensor.shape()[0], 5U);
}

TEST(SafetensorsRead, StopsAtTheFirstErrorWhenAsked) {
  EXPECT_THROW(walk(file(R"({"a":1,"b":2})"), Mode::first_error), core::Stop);
}

// A header of 10 MB. The target is 20 ms, but a slow machine or a sanitizer needs far longer, so this bound is wider.
// What was read and which rules were broken, but not where: a header with more spaces is longer.
std::string outcome_text(const Outcome& outcome) {
  std::string out;
  for (const Finding& finding : outcome.report.findings()) out += finding.rule + " of " + finding.tensor + "; ";
  const std::uint64_t data = outcome.model.size() == 0 ? 0 : outcome.model[0].main().extent()->offset;
  for (std::uint32_t i = 0; i < outcome.model.size(); ++i) {
    const Tensor tensor = outcome.model[i];
    const Extent extent = *tensor.main().extent();
    out += std::string(outcome.model.name(i)) + " " + std::string(tensor.type_name());
    for (const std::uint64_t dim : tensor.has_shape() ? tensor.shape() : Shape{}) out += "," + std::to_string(dim);
    out += " " + std::to_string(extent.offset - data) + "+" + std::to_string(extent.length) + "; ";
  }
  return out;
}

TEST(SafetensorsRead, TheUsualSpellingIsReadAsAnyOther) {
  const std::string plain[] = {R"({"dtype":"F32","shape":[2,3],"data_offsets":[0,24]})",
                               R"({"dtype":"F8_E4M3","shape":[],"data_offsets":[24,25]})",
                               R"({"dtype":"BF16","shape":[0,12345678901],"data_offsets":[25,25]})",
                               R"({"dtype":"I64","shape":[1],"data_offsets":[25,33]})"};
  const auto header = [](const std::array<std::string, 4>& entries) {
    std::string out = "{";
    for (std::size_t i = 0; i < entries.size(); ++i)
      out += (i > 0 ? ",\"t" : "\"t") + std::to_string(i) + "\":" + entries[i];
    return out + "}          ";
  };
  constexpr std::string_view kBytes = "0123456789.eE-+[]{}:,\"\\ _AFzd\x80\x01";
  std::uint64_t seed = 1;
  const auto random = [&](std::uint64_t below) {
    seed = seed * 6364136223846793005 + 1442695040888963407;
    return (seed >> 33) % below;
  };
  int sound = 0;
  const int all = test::rounds(20'000);
  for (int round = 0; round < all; ++round) {
    std::array<std::string, 4> usual{plain[0], plain[1], plain[2], plain[3]};
    if (round > 0) {
      std::string& entry = usual[random(4)];
      const std::size_t at = random(entry.size());
      const std::string byte(1, kBytes[random(kBytes.size())]);
      switch (random(3)) {
        case 0: entry.replace(at, 1, byte); break;
        case 1: entry.insert(at, byte); break;
        default: entry.erase(at, 1 + random(9)); break;
      }
    }
    std::array<std::string, 4> other = usual;
    for (std::string& entry : other) entry.insert(entry.starts_with('{') ? 1 : 0, " ");
    const std::string data(33, 'd');
    const std::string first = outcome_text(walk(file(header(usual), data)));
    ASSERT_EQ(first, outcome_text(walk(file(header(other), data)))) << header(usual);
    sound += first.find(" of ") == std::string::npos ? 1 : 0;
  }
  EXPECT_GT(sound, all / 200);
}

TEST(SafetensorsRead, TheUsualSpellingCountsItsDepth) {
  const std::string bytes = file(R"({"w":{"dtype":"I8","shape":[1],"data_offsets":[0,1]}}      )", "x");
  Context context;
  context.limits.depth = 3;
  EXPECT_EQ(walk(bytes, Mode::all, context).report.total(), 0U);
  context.limits.depth = 2;
  const Report report = walk(bytes, Mode::all, context).report;
  ASSERT_EQ(report.findings().size(), 1U);
  EXPECT_EQ(report.findings()[0].rule, "limit/depth");
  EXPECT_EQ(report.findings()[0].offset, kLengthSize + 27);
}

TEST(SafetensorsRead, NamesThatDoNotAscendAreFoundAndDuplicatesReported) {
  const auto entry = [](std::string_view name, int at) {
    return "\"" + std::string(name) + R"(":{"dtype":"I8","shape":[1],"data_offsets":[)" + std::to_string(at) + "," +
           std::to_string(at + 1) + "]}";
  };
  const auto header = [&](std::string_view a, std::string_view b, std::string_view c) {
    return "{" + entry(a, 0) + "," + entry(b, 1) + "," + entry(c, 2) + "}        ";
  };
  for (const auto& [a, b, c] : {std::tuple{"a", "b", "c"}, {"c", "b", "a"}, {"a", "c", "b"}, {"a", "\\u0061a", "b"}}) {
    const auto [report, model] = walk(file(header(a, b, c), "xyz"));
    EXPECT_EQ(report.total(), 0U);
    for (std::uint32_t i = 0; i < 3; ++i) EXPECT_EQ(model[model.name(i)].index(), i);
  }
  for (const auto& [a, b, c] : {std::tuple{"a", "a", "b"}, {"a", "b", "b"}, {"b", "a", "b"}, {"a", "\\u0061", "b"}}) {
    const auto [report, model] = walk(file(header(a, b, c), "xyz"));
    ASSERT_GE(report.total(), 1U);
    EXPECT_EQ(report.findings()[0].rule, rules::kDuplicateName.id);
    EXPECT_EQ(model.size(), 2U);
  }
}

TEST(SafetensorsRead, HundredThousandTensorsOpenInWellUnderASecond) {
  std::string header = "{";
  for (int i = 0; i < 100'000; ++i) {
    if (i > 0) header += ',';
    header += "\"model.layers." + std::to_string(i) +
              R"(.mlp.up_proj.weight":{"dtype":"U8","shape":[2],"data_offsets":[)" + std::to_string(2 * i) + "," +
              std::to_string(2 * i + 2) + "]}";
  }
  const std::string bytes = file(header + "}", std::string(200'000, '\1'));
  const std::clock_t start = std::clock();
  const auto [report, model] = walk(bytes);
  EXPECT_LT(std::clock() - start, CLOCKS_PER_SEC);
  EXPECT_EQ(model.size(), 100'000U);
  EXPECT_EQ(report.total(), 0U);
}

// Reading G13: a header full of errors costs little memory besides itself and at most a second.
TEST(SafetensorsRead, MillionsOfBrokenEntriesStayWithinTheBounds) {
  for (const std::string_view entry : {R"("":0,)", R"("":{},)", R"("":{"data_offsets":[]},)", R"("":{"dtype":0},)"}) {
    SCOPED_TRACE(entry);
    constexpr std::size_t kHeader = 10'000'000;
    std::string header = "{";
    header.reserve(kHeader + 100);
    while (header.size() < kHeader) header += entry;
    header.back() = '}';
    const std::string bytes = file(header);
    const std::uint64_t before = test::restart_peak_memory();
    const std::clock_t start = std::clock();
    const auto [report, model] = walk(bytes);
    const std::clock_t took = std::clock() - start;
    EXPECT_GT(report.errors(), 500'000U);
    EXPECT_EQ(report.findings().size(), Report::kMaxFindings);
    if (test::kSanitized) continue;
    EXPECT_LT(took, CLOCKS_PER_SEC);
    EXPECT_LT(test::peak_memory() - before,
              2 * kHeader + (std::uint64_t{64} << 20));  // walk() copies the file once more
  }
}

TEST(SafetensorsWrite, IsWhatTheReferencePackageMakes) {
  Builder b;
  b.tensor("b.weight", DType::f32, {1}, bytes_of(std::string("\0\0\x80\x3f", 4)));
  b.tensor("a", DType::u8, {2, 1}, bytes_of("ab"));
  b.tensor("\x01\x1f\x7f/\"\\\n\b\f\r\t\xC3\xA9\xF0\x9F\x98\x80", DType::u8, {1}, bytes_of("z"));
  b.tensor("m", DType::boolean, {1}, bytes_of("\1"));
  b.tensor("i", DType::i64, {}, bytes_of("12345678"));
  b.tensor("h", DType::bf16, {0}, bytes_of(""));
  b.tensor("g", DType::f16, {1}, bytes_of("hh"));
  b.attribute("k\x01\b\f\r\t", Value::text("v\xC3\xA9\"/"));
  const Model model = b.build();
  const core::WriteLayout made = layout(model, {});
  EXPECT_TRUE(made.blockers.empty() && made.losses.empty() && made.changes.empty());
  // package 0.8.0, serialize()
  const std::string expected = file(
      R"({"__metadata__":{"k\u0001\b\f\r\t":")"
      "v\xC3\xA9"
      R"(\"/"},"i":{"dtype":"I64","shape":[],"data_offsets":[0,8]},)"
      R"("b.weight":{"dtype":"F32","shape":[1],"data_offsets":[8,12]},)"
      R"("h":{"dtype":"BF16","shape":[0],"data_offsets":[12,12]},"g":{"dtype":"F16","shape":[1],"data_offsets":[12,14]},)"
      R"("\u0001\u001f)"
      "\x7f"
      R"(/\"\\\n\b\f\r\t)"
      "\xC3\xA9\xF0\x9F\x98\x80"
      R"(":{"dtype":"U8","shape":[1],"data_offsets":[14,15]},"a":{"dtype":"U8","shape":[2,1],"data_offsets":[15,17]},)"
      R"("m":{"dtype":"BOOL","shape":[1],"data_offsets":[17,18]}}    )",
      std::string("12345678\0\0\x80\x3fhhzab\1", 18));
  EXPECT_EQ(render(made), expected);
}

TEST(SafetensorsWrite, ASoundFileOfTheReferenceComesBackByteForByte) {
  for (const core::CorpusCase& c : cases()) {
    if (c.name != "valid-one" && c.name != "valid-scalar") continue;
    const auto [report, model] = walk(c.bytes);
    std::string again = render(layout(model, {}));
    const std::size_t data = c.bytes.size() - 4;
    EXPECT_EQ(again.substr(kLengthSize, data - kLengthSize), c.bytes.substr(kLengthSize, data - kLengthSize));
    EXPECT_TRUE(again.ends_with(c.bytes.substr(data)));
    EXPECT_EQ((again.size() - 4) % kHeaderAlignment, 0U);
  }
}

TEST(SafetensorsWrite, UnknownKeysGoBackToSafetensors) {
  const std::string text = R"({"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1],"x":[1, {"y":null}]}})";
  const auto [report, model] = walk(file(text, "a"));
  const core::WriteLayout made = layout(model, {});
  EXPECT_TRUE(made.losses.empty());
  EXPECT_NE(made.head.find(text), std::string::npos);
}

TEST(SafetensorsWrite, ReadsBackWithoutFindings) {
  for (const core::CorpusCase& c : cases()) {
    if (!c.rule.empty()) continue;
    SCOPED_TRACE(c.name);
    const auto first = walk(c.bytes);
    const core::WriteLayout made = layout(first.model, {});
    EXPECT_TRUE(made.blockers.empty() && made.losses.empty());
    const std::string bytes = render(made);
    const auto second = walk(bytes);
    EXPECT_EQ(second.report.total(), 0U);
    EXPECT_EQ(second.model.size(), first.model.size());
    EXPECT_EQ(render(layout(second.model, {})), bytes);  // a fixed point
  }
}

bool has(const std::vector<Item>& items, LossKind kind, std::string_view subject) {
  for (const Item& item : items)
    if (item.kind == kind && item.subject == subject) return true;
  return false;
}

TEST(SafetensorsWrite, NamesWhatItCannotSay) {
  Builder b;
  b.attribute("n", Value::integer(std::uint64_t{7}));
  b.attribute("t", Value::text("7"));
  b.tokenizer({});
  b.tensor("__metadata__", DType::u8, {1}, bytes_of("a"));
  b.tensor("c", DType::complex128, {0}, bytes_of(""));
  b.tensor("f4", DType::f4, {3}, bytes_of("ab"));
  b.object("o", Layout::dense, {1}, {{"k", Value::text("v")}}, {{"data", DType::u8, {1}, bytes_of("a")}});
  const Model model = b.build();
  const core::WriteLayout made = layout(model, {});
  EXPECT_TRUE(has(made.losses, LossKind::attribute_type, "attributes[\"n\"]"));
  EXPECT_FALSE(has(made.losses, LossKind::attribute_type, "attributes[\"t\"]"));
  EXPECT_TRUE(has(made.losses, LossKind::tokenizer, "tokenizer"));
  EXPECT_TRUE(has(made.losses, LossKind::attribute, "tensors[\"o\"].attributes[\"k\"]"));
  EXPECT_TRUE(has(made.blockers, LossKind::name, "tensors[\"__metadata__\"]"));
  EXPECT_TRUE(has(made.blockers, LossKind::dtype, "tensors[\"c\"]"));
  EXPECT_TRUE(has(made.blockers, LossKind::shape, "tensors[\"f4\"]"));
  EXPECT_EQ(made.blockers.size(), 3U);
  EXPECT_EQ(made.losses.size(), 3U);
}

TEST(SafetensorsWrite, CastsFloatingPointTensorsOnly) {
  Builder b;
  b.tensor("w", DType::f32, {1}, bytes_of("abcd"));
  b.tensor("h", DType::f16, {1}, bytes_of("ab"));
  b.tensor("i", DType::i32, {1}, bytes_of("abcd"));
  const Model model = b.build();
  const core::WriteLayout made = layout(model, {.cast = DType::f16});
  EXPECT_TRUE(has(made.losses, LossKind::precision, "tensors[\"w\"]"));
  EXPECT_EQ(made.losses.size(), 1U);
  ASSERT_EQ(made.tensors.size(), 3U);
  EXPECT_EQ(made.tensors[0].name, "i");
  EXPECT_EQ(made.tensors[1].name, "h");
  EXPECT_EQ(made.payloads[1].form, core::Payload::Form::logical);
  EXPECT_EQ(made.tensors[2].name, "w");
  EXPECT_EQ(made.payloads[2].form, core::Payload::Form::dense);
  EXPECT_EQ(made.payloads[2].stored_size, 2U);
  const core::WriteLayout wider = layout(model, {.cast = DType::f32});
  EXPECT_TRUE(has(wider.changes, LossKind::dtype, "tensors[\"h\"]"));
}

TEST(SafetensorsWrite, NamesTensorsThatShareTheirBytes) {
  Builder b;
  const Bytes shared = bytes_of("abcd");
  Builder whole;
  const Model from = std::move(whole.tensor("w", DType::u8, {4}, shared)).build();
  b.tensor("embed", from[0]).tensor("head", from[0]);
  const Model model = b.build();
  const core::WriteLayout made = layout(model, {});
  EXPECT_TRUE(has(made.losses, LossKind::alias, "tensors[\"head\"]"));
  EXPECT_EQ(made.losses.size(), 1U);
  EXPECT_TRUE(render(made).ends_with("abcdabcd"));
}

TEST(SafetensorsWrite, RefusesOptionsThatItLacks) {
  const Model model = Builder().build();
  const auto misuse = [&](const Options& options) {
    return test::thrown([&] { core::check_written(kFormat, options); }).kind == Kind::misuse;
  };
  EXPECT_TRUE(misuse({.encoding = "zstd"}));
  EXPECT_TRUE(misuse({.digest = "sha256"}));
  EXPECT_TRUE(misuse({.quantize = "q8_0"}));
  EXPECT_TRUE(misuse({.version = "1.2"}));
  EXPECT_TRUE(misuse({.cast = DType::i8}));
  EXPECT_EQ(layout(model, {.encoding = "raw", .digest = "none"}).head, file("{}      "));
}

TEST(SafetensorsContent, BoolBytesThatAreNeither0Nor1AreAWarning) {
  const std::string bytes =
      file(R"({"a":{"dtype":"BOOL","shape":[4],"data_offsets":[0,4]}})", std::string("\0\1\2\1", 4));
  const auto [structure, model] = walk(bytes);
  EXPECT_EQ(structure.total(), 0U);
  Report report;
  core::Findings findings(report, Mode::all);
  check_content(model, {}, findings);
  ASSERT_EQ(report.total(), 1U);
  EXPECT_EQ(report.warnings(), 1U);
  EXPECT_EQ(report.findings()[0].offset, bytes.size() - 2);
  EXPECT_EQ(report.findings()[0].tensor, "a");
}

}  // namespace
}  // namespace weighbridge::safetensors
