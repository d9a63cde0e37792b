// SPDX-License-Identifier: Apache-2.0
// Reading what the corpus cannot show (values, element orders, names, messages, files of the specification's own tool),
// and the layouts of the writer.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cstring>
#include <deque>

#include "core/writing/layout.h"
#include "formats/stb/format.h"
#include "formats/stb/layout.h"
#include "formats/stb/sidecar.h"
#include "support/format_testing.h"
#include "support/test_data.h"
#include "support/thrown.h"

namespace weighbridge::stb {
namespace {

using test::bytes_of;
using test::Outcome;

Outcome walk(std::string bytes, const std::optional<std::string>& sidecar = {}, const std::string& name = "a.stb") {
  const auto source = memory_source(bytes_of(std::move(bytes)), name);
  Outcome out;
  core::Findings findings(out.report, core::Findings::Mode::all);
  core::Draft draft;
  draft.add_source(source);
  if (sidecar) draft.sidecar = memory_source(bytes_of(*sidecar), "a.khm.json");
  read(*source, {}, findings, draft);
  out.model = draft.finish();
  return out;
}
Outcome walk(const core::CorpusCase& c) {
  return walk(c.bytes, c.sidecar ? std::optional(c.sidecar->bytes) : std::nullopt);
}
Outcome walk_case(std::string_view name) { return walk(test::case_of(cases(), name)); }

// Keeps the model alive, because tensors must not outlive it.
const Model& opened(std::string_view name) {
  static std::deque<Model> kept;
  return kept.emplace_back(walk_case(name).model);
}

std::vector<std::uint64_t> shape_of(const Tensor& tensor) { return {tensor.shape().begin(), tensor.shape().end()}; }

using Numbers = std::vector<float>;
Bytes floats(const Numbers& values) {
  std::string text(values.size() * 4, '\0');
  std::memcpy(text.data(), values.data(), text.size());
  return bytes_of(text);
}
std::string sidecar_of(const core::WriteLayout& layout, std::string_view name = "a.stb") {
  return layout.companion->text(name);
}
bool has(const std::vector<Item>& items, LossKind kind, std::string_view subject) {
  return std::ranges::any_of(items, [&](const Item& item) { return item.kind == kind && item.subject == subject; });
}
bool is_strided(const Part& part) { return !part.strides().empty(); }

TEST(StbRead, TellsIdsShapesAndPlaces) {
  const auto [report, model] = walk_case("valid-dtypes");
  EXPECT_EQ(report.total(), 0U);
  ASSERT_EQ(model.size(), 4U);
  EXPECT_EQ(model.format(), "stb");
  EXPECT_EQ(model.version(), "0.1");
  EXPECT_EQ(model.name(1), "255");
  EXPECT_EQ(model[1].id(), 255U);
  EXPECT_EQ(model["255"].dtype(), DType::f16);
  EXPECT_EQ(model["3"].dtype(), DType::i32);
  EXPECT_EQ(model["0"].main().extent(), (Extent{0, 320, 4}));
}

TEST(StbRead, EveryOrderComesOutRowMajor) {
  EXPECT_EQ(test::logical_bytes(opened("valid-col-major")[0].main()), "abcdef");
  // Stored at h, w, c: the element (c, h, w) of (2, 3, 4) is number (h * 4 + w) * 2 + c.
  const auto chw = walk_case("valid-channels-last");
  std::string expected;
  for (int c = 0; c < 2; ++c)
    for (int h = 0; h < 3; ++h)
      for (int w = 0; w < 4; ++w) expected += static_cast<char>((h * 4 + w) * 2 + c);
  EXPECT_EQ(test::logical_bytes(chw.model[0].main()), expected);
  EXPECT_EQ(test::dense_bytes(chw.model[0]), expected);
  // (N, C, D, H, W) of (1, 2, 3, 2, 2): number ((d * 2 + h) * 2 + w) * 2 + c.
  const auto ncdhw = walk_case("valid-channels-last-5");
  expected.clear();
  for (int c = 0; c < 2; ++c)
    for (int rest = 0; rest < 12; ++rest) expected += static_cast<char>(rest * 2 + c);
  EXPECT_EQ(test::logical_bytes(ncdhw.model[0].main()), expected);
}

TEST(StbRead, AnOrderThatMakesNoDifferenceIsRowMajor) {
  EXPECT_FALSE(is_strided(opened("valid-col-major-vector")[0].main()));
  EXPECT_FALSE(is_strided(opened("valid-channels-last-24x1x1x1")[0].main()));  // (24, 1, 1, 1)
  EXPECT_FALSE(is_strided(opened("valid-col-major-empty")[0].main()));
  const auto strided = walk_case("valid-col-major").model;
  EXPECT_EQ(strided[0].main().why_no_view(), NoView::strided);
}

TEST(StbRead, TheSidecarNamesAndShapes) {
  const auto named = walk_case("valid-sidecar-names");
  EXPECT_EQ(named.model.name(0), "\xC3\xA9 \"w\"");
  EXPECT_EQ(named.model[0].id(), 0U);
  EXPECT_EQ(shape_of(opened("valid-rank-4")[0]), (std::vector<std::uint64_t>{1, 2, 3, 4}));
  const auto stated = walk_case("valid-rank-4-stated");
  EXPECT_EQ(stated.model.name(0), "w");
  EXPECT_EQ(shape_of(stated.model[0]), (std::vector<std::uint64_t>{4, 3, 2, 1}));
}

TEST(StbRead, TheSidecarIsAnInputToo) {
  const core::CorpusCase plain = test::case_of(cases(), "valid-dtypes");
  EXPECT_EQ(walk(plain.bytes).model.sources().size(), 1U);
  const Model model =
      walk(plain.bytes, R"({"schema":1,"files":[{"id":0,"path":"another.stb"},{"id":1,"path":"b.stb"}]})").model;
  ASSERT_EQ(model.sources().size(), 2U);
  EXPECT_EQ(model.sources()[1]->name(), "a.khm.json");  // even if it turns out to list other files
}

TEST(StbRead, ASidecarOfManyFilesSpeaksOfEachByItsPath) {
  const std::string sidecar =
      R"({"schema":1,"files":[{"id":0,"path":"b.stb"},{"id":1,"path":"x/a.stb"},{"id":2,"path":"y/a.stb"}],)"
      R"("tensors":[{"file":0,"id":9,"name":"n"},{"file":1,"id":8,"name":"m"},{"file":2,"id":0,"name":"w"}]})";
  const std::string bytes = test::case_of(cases(), "valid-one").bytes;
  const auto [report, model] = walk(bytes, sidecar, "/models/y/a.stb");
  EXPECT_EQ(report.total(), 0U);
  EXPECT_EQ(model.name(0), "w");
  const auto other = walk(bytes, sidecar, "/models/z/a.stb");
  EXPECT_EQ(other.model.name(0), "0");
  EXPECT_EQ(other.report.findings().at(0).rule, "stb/sidecar-other");
}

TEST(StbRead, ShapesThatNobodyKnowsAreUnsupportedWithTheirSize) {
  const auto [report, model] = walk_case("no-shape");
  EXPECT_TRUE(report.valid());
  EXPECT_EQ(report.unsupported(), 1U);
  ASSERT_EQ(model.size(), 1U);
  const Tensor tensor = model[0];
  EXPECT_FALSE(tensor.has_shape());
  ASSERT_NE(tensor.unsupported(), nullptr);
  EXPECT_EQ(tensor.main().size(), 4U);
  EXPECT_EQ(test::thrown([&] { (void)tensor.shape(); }).kind, Kind::unsupported);
}

TEST(StbRead, ListsWhatItCannotInterpret) {
  const Tensor dtype = walk_case("unknown-dtype").model[0];
  EXPECT_EQ(dtype.type_name(), "unknown-4");
  EXPECT_EQ(shape_of(dtype), (std::vector<std::uint64_t>{3}));
  const Tensor layout = opened("unknown-layout")[0], rank = opened("channels-last-rank")[0];
  EXPECT_EQ(layout.layout_name(), "unknown-3");
  EXPECT_EQ(rank.layout_name(), "channels_last");
}

TEST(StbRead, SaysWhereExpectedAndFound) {
  const auto [report, model] = walk_case("unaligned");
  ASSERT_EQ(report.total(), 1U);
  const Finding& finding = report.findings()[0];
  EXPECT_EQ(finding.offset, kHeaderSize + base::offset_of(&Descriptor::offset));
  EXPECT_EQ(finding.tensor, "0");
  EXPECT_NE(finding.message.find("small tool"), std::string::npos);
  EXPECT_NE(finding.message.find("(expected a multiple of 64, found 66)"), std::string::npos);
  EXPECT_EQ(model.size(), 0U);
  EXPECT_NE(walk_case("file-size").report.findings()[0].message.find("2 bytes are missing"), std::string::npos);
}

TEST(StbRead, LeavesOnlyTheBrokenTensorsOut) {
  const auto [report, model] = walk_case("two-errors");
  EXPECT_EQ(report.errors(), 2U);
  ASSERT_EQ(model.size(), 1U);
  EXPECT_EQ(model.name(0), "1");
}

// Files of the specification's own small tool match their manifest.
TEST(StbRead, FilesOfTheReferenceToolAreWhatTheirManifestSays) {
  WB_REQUIRE_TEST_DATA(folder, "stb");
  const auto manifest = nlohmann::json::parse(test::contents(folder + "/MANIFEST.json"));
  int files = 0;
  for (const auto& file : manifest["files"]) {
    const std::string path = file["file"], expect = file["expect"];
    SCOPED_TRACE(path);
    ++files;
    const std::string bytes = test::contents(folder + "/" + path);
    ASSERT_EQ(test::sha256(bytes), file["sha256"].get<std::string>());
    const auto [report, model] = walk(bytes);
    EXPECT_EQ(report.valid(), expect != "reject");
    EXPECT_EQ(report.unsupported() > 0, expect == "unsupported");
    if (expect == "reject") {
      EXPECT_EQ(report.first_error()->rule, "stb/unaligned");
    }
    if (expect != "accept") continue;
    EXPECT_EQ(report.total(), 0U);
    ASSERT_EQ(model.size(), file["tensors"].size());
    for (std::uint32_t i = 0; i < model.size(); ++i) {
      const auto& expected = file["tensors"][i];
      EXPECT_EQ(model.name(i), expected["name"].get<std::string>());
      EXPECT_EQ(name(model[i].dtype()), expected["dtype"].get<std::string>());
      EXPECT_EQ(shape_of(model[i]), expected["shape"].get<std::vector<std::uint64_t>>());
      EXPECT_EQ(test::sha256(test::logical_bytes(model[i].main())), expected["sha256"].get<std::string>());
    }
    EXPECT_EQ(test::render(layout(model, {})), bytes);  // our output equals the input
  }
  EXPECT_EQ(files, 5);
}

TEST(StbWrite, ReadsBackWithoutFindings) {
  for (const core::CorpusCase& c : cases()) {
    if (!c.rule.empty()) continue;
    SCOPED_TRACE(c.name);
    const auto first = walk(c);
    const core::WriteLayout made = layout(first.model, {});
    EXPECT_TRUE(made.blockers.empty() && made.losses.empty());
    const std::string bytes = test::render(made);
    const auto sidecar = made.companion->text ? std::optional(sidecar_of(made)) : std::nullopt;
    const auto second = walk(bytes, sidecar);
    EXPECT_EQ(second.report.total(), 0U);
    ASSERT_EQ(second.model.size(), first.model.size());
    for (std::uint32_t i = 0; i < first.model.size(); ++i) {
      const Tensor a = first.model[i], b = second.model[i];
      EXPECT_EQ(a.name(), b.name());
      EXPECT_EQ(a.id(), b.id());
      EXPECT_EQ(shape_of(a), shape_of(b));
      EXPECT_EQ(test::logical_bytes(a.main()), test::logical_bytes(b.main()));
      EXPECT_FALSE(is_strided(b.main()));
    }
    const core::WriteLayout again = layout(second.model, {});
    EXPECT_EQ(test::render(again), bytes);  // a fixed point
    EXPECT_EQ(again.companion->text ? std::optional(sidecar_of(again)) : std::nullopt, sidecar);
  }
}

TEST(StbWrite, NoTensorsTake64Bytes) {
  const core::WriteLayout made = layout(Builder().build(), {});
  EXPECT_EQ(test::render(made), test::case_of(cases(), "valid-empty").bytes);
  EXPECT_FALSE(made.companion->text);
}

TEST(StbWrite, NamesAndHighRanksGoToTheSidecar) {
  Builder b;
  b.tensor("w", DType::i8, {1, 1, 2, 2}, bytes_of("abcd"));
  b.tensor("1", DType::i8, {2}, bytes_of("ab"));
  b.tensor("v", DType::i8, {1, 1, 2, 2}, bytes_of("efgh"));
  const Model model = b.build();
  const core::WriteLayout made = layout(model, {});
  EXPECT_TRUE(has(made.changes, LossKind::name, "names"));
  EXPECT_TRUE(has(made.changes, LossKind::shape, "shapes"));
  EXPECT_TRUE(made.losses.empty());
  EXPECT_EQ(made.companion->extension, ".khm.json");
  const auto sidecar = nlohmann::json::parse(sidecar_of(made, "out.stb"));
  EXPECT_EQ(sidecar, nlohmann::json::parse(R"({"schema":1,"files":[{"id":0,"path":"out.stb","size":260}],)"
                                           R"("shapes":[[1,1,2,2]],"tensors":[{"file":0,"id":0,"name":"w"},)"
                                           R"({"file":0,"id":2,"name":"v"}]})"));
  EXPECT_EQ(made.size, 260U);
  EXPECT_EQ(nlohmann::json::parse(sidecar_of(made, "c:x.stb"))["files"][0]["path"], "./c:x.stb");
  EXPECT_EQ(test::thrown([&] { sidecar_of(made, "a\\b.stb"); }).rule, "misuse/output-name");
}

TEST(StbWrite, IdsThatSomeLackAreNumberedAnew) {
  Builder b;
  const auto stb = walk_case("valid-dtypes").model;
  b.tensor("w", stb["255"]).tensor("plain", DType::i8, {1}, bytes_of("a"));
  const Model model = b.build();
  const core::WriteLayout made = layout(model, {});
  EXPECT_TRUE(has(made.changes, LossKind::name, "tensors"));
  const Model back = walk(test::render(made), sidecar_of(made)).model;
  EXPECT_EQ(back["w"].id(), 0U);
}

TEST(StbWrite, NamesWhatItCannotSay) {
  Builder b;
  b.attribute("t", Value::text("7"));
  b.tokenizer({});
  b.tensor("half", DType::bf16, {2}, bytes_of("abcd"));
  b.tensor("long", DType::i64, {1}, bytes_of("12345678"));
  b.tensor("byte", DType::u8, {1}, bytes_of("1"));
  b.tensor("rank9", DType::i8, {1, 1, 1, 1, 1, 1, 1, 1, 1}, bytes_of("1"));
  b.tensor("wide", DType::i8, {0, std::uint64_t{1} << 32}, bytes_of(""));
  b.tensor("wide4", DType::i8, {0, 1, 1, std::uint64_t{1} << 32}, bytes_of(""));
  b.object("o", Layout::dense, {1}, {{"k", Value::text("v")}}, {{"data", DType::i8, {1}, bytes_of("a")}});
  const Model model = b.build();
  const core::WriteLayout made = layout(model, {});
  EXPECT_TRUE(has(made.losses, LossKind::attribute, "attributes[\"t\"]"));
  EXPECT_TRUE(has(made.losses, LossKind::tokenizer, "tokenizer"));
  EXPECT_TRUE(has(made.losses, LossKind::attribute, "tensors[\"o\"].attributes[\"k\"]"));
  EXPECT_EQ(made.losses.size(), 3U);
  EXPECT_TRUE(has(made.blockers, LossKind::dtype, "tensors[\"half\"]"));
  EXPECT_NE(made.blockers[0].to.find("a cast to f32"), std::string::npos);
  EXPECT_TRUE(has(made.blockers, LossKind::dtype, "tensors[\"long\"]"));
  EXPECT_TRUE(has(made.blockers, LossKind::dtype, "tensors[\"byte\"]"));
  EXPECT_TRUE(has(made.blockers, LossKind::shape, "tensors[\"rank9\"]"));
  EXPECT_TRUE(has(made.blockers, LossKind::shape, "tensors[\"wide\"]"));
  EXPECT_EQ(made.blockers.size(), 5U);
}

TEST(StbWrite, MoreThan256TensorsAreRefusedWithTheirCount) {
  Builder full, over;
  for (int i = 0; i < 257; ++i) {
    if (i < 256) full.tensor(std::to_string(i), DType::i8, {1}, bytes_of("a"));
    over.tensor(std::to_string(i), DType::i8, {1}, bytes_of("a"));
  }
  const Model maximum = full.build(), more = over.build();
  const core::WriteLayout made = layout(maximum, {});
  EXPECT_TRUE(made.blockers.empty());
  EXPECT_FALSE(made.companion->text);  // every name is the tensor's id
  EXPECT_EQ(walk(test::render(made)).model.size(), 256U);
  const core::WriteLayout refused = layout(more, {});
  ASSERT_EQ(refused.blockers.size(), 1U);
  EXPECT_EQ(refused.blockers[0].from, "257 tensors");
}

TEST(StbWrite, CastsFloatingPointTensorsOnly) {
  Builder b;
  b.tensor("w", DType::f32, {2}, floats({1, -2}));
  b.tensor("half", DType::bf16, {1}, bytes_of(std::string("\x80\x3f", 2)));
  b.tensor("i", DType::i32, {1}, bytes_of("abcd"));
  const Model model = b.build();
  const core::WriteLayout made = layout(model, {.cast = DType::f16});
  EXPECT_TRUE(has(made.losses, LossKind::precision, "tensors[\"w\"]"));
  const auto back = walk(test::render(made), sidecar_of(made)).model;
  EXPECT_EQ(test::logical_bytes(back["w"].main()), std::string("\0\x3c\0\xc0", 4));
  EXPECT_EQ(test::logical_bytes(back["half"].main()), std::string("\0\x3c", 2));
  EXPECT_EQ(test::logical_bytes(back["i"].main()), "abcd");
  EXPECT_TRUE(has(layout(model, {.cast = DType::f32}).changes, LossKind::dtype, "tensors[\"half\"]"));
}

TEST(StbWrite, TensorsThatShareTheirBytesStillDo) {
  Builder whole;
  const Model from = std::move(whole.tensor("w", DType::f32, {2}, floats({1, 2}))).build();
  Builder b;
  b.tensor("0", from[0]).tensor("1", from[0]);
  const Model model = b.build();
  const core::WriteLayout made = layout(model, {});
  EXPECT_TRUE(made.losses.empty());
  EXPECT_EQ(made.size, 128U + 8U);
  const auto back = walk(test::render(made));
  EXPECT_EQ(back.report.total(), 0U);
  EXPECT_EQ(back.model[0].main().extent(), back.model[1].main().extent());
  EXPECT_TRUE(has(layout(model, {.cast = DType::f16}).losses, LossKind::alias, "tensors[\"1\"]"));
}

TEST(StbWrite, RefusesOptionsThatItLacks) {
  const Model model = Builder().build();
  const auto misuse = [&](const Options& options) {
    return test::thrown([&] { core::check_written(kFormat, options); }).kind == Kind::misuse;
  };
  EXPECT_TRUE(misuse({.encoding = "zstd"}));
  EXPECT_TRUE(misuse({.digest = "sha256"}));
  EXPECT_TRUE(misuse({.quantize = "q8_0"}));
  EXPECT_TRUE(misuse({.version = "1"}));
  EXPECT_TRUE(misuse({.cast = DType::bf16}));
  EXPECT_EQ(layout(model, {.encoding = "raw", .digest = "none", .version = "0.1"}).size, 64U);
}

TEST(StbWrite, SizesPast2To64AreBlockers) {
  const auto none = [](std::uint64_t, std::span<std::byte>) -> std::size_t { return 0; };
  constexpr std::uint64_t kHalf = std::uint64_t{1} << 31;
  Builder wide;
  wide.tensor("0", DType::f16, {kHalf, kHalf}, none);
  const core::WriteLayout cast = layout(wide.build(), {.cast = DType::f32});
  ASSERT_EQ(cast.blockers.size(), 1U);
  EXPECT_EQ(cast.blockers[0], (Item{LossKind::shape, "tensors[\"0\"]", "its shape", "more than 2^64 - 1 bytes"}));
  Builder sum;
  for (const char* name : {"0", "1"}) sum.tensor(name, DType::f32, {kHalf, kHalf / 2}, none);
  const core::WriteLayout made = layout(sum.build(), {});
  ASSERT_EQ(made.blockers.size(), 1U);
  EXPECT_EQ(made.blockers[0], (Item{LossKind::shape, "tensors[\"1\"]", "its size", "more than 2^64 - 1 bytes in all"}));
}

TEST(StbWrite, ASidecarNamesNoFileThatItCannotSpell) {
  Builder builder;
  builder.tensor("weight", DType::f32, {1}, floats({1}));
  const core::WriteLayout made = layout(builder.build(), {});
  for (const char* name : {"\xff.stb", "a\\b.stb"})
    EXPECT_EQ(test::thrown([&] { sidecar_of(made, name); }).rule, "misuse/output-name") << name;
  EXPECT_NE(sidecar_of(made, "c:a.stb").find("\"./c:a.stb\""), std::string::npos);
}

}  // namespace
}  // namespace weighbridge::stb
