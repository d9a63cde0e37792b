// SPDX-License-Identifier: Apache-2.0
// What a plan refuses, and how: options that a container lacks, losses without consent, outputs of the wrong kind or
// beside the wrong files.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <fstream>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "convert/rep.h"
#include "core/model/draft.h"
#include "support/convert_testing.h"
#include "support/temporary_folder.h"
#include "support/thrown.h"
#include "weighbridge/convert.h"
#include "weighbridge/open.h"

namespace weighbridge {
namespace {

using convert::testing::pattern;
using test::thrown;
using Folder = test::TemporaryFolder;
using Names = std::set<std::string>;

Model bytes_called(const std::string& name) {
  Builder builder;
  builder.tensor(name, DType::i8, {4}, pattern(4));
  return builder.build();
}

Item item(LossKind kind, std::string subject, std::string from = {}, std::string to = {}) {
  return {kind, std::move(subject), std::move(from), std::move(to)};
}

// Values of an nvfp4 matrix were written without the factor that llama.cpp multiplies them by, and nothing said so.
TEST(Plan, NamesTheFactorThatAnNvfp4MatrixIsMultipliedBy) {
  const std::string blocks(36, '\x22');
  const float factor = 0.5F;
  for (const bool has_factor : {true, false}) {
    core::Draft draft;
    const std::uint32_t source = draft.add_source(memory_source({std::as_bytes(std::span(blocks)), nullptr}));
    const std::uint32_t other = draft.add_source(memory_source({std::as_bytes(std::span(&factor, 1)), nullptr}));
    const std::uint64_t dims[] = {1, 64}, bytes[] = {36}, one[] = {1};
    const BlockTypeInfo* const type = find_block_type("ggml.nvfp4");
    ASSERT_NE(type, nullptr);
    const std::uint32_t at = draft.add_tensor("blk.0.attn_q.weight", type->layout, DType::f32, dims);
    draft.add_part("data", DType::u8, bytes, Encoding::raw, {source, 0, 36}, 36);
    draft.tensor(at).block_type(type).attribute("type", Value::text(std::string(type->type_attribute)));
    draft.add_tensor(has_factor ? "blk.0.attn_q.scale" : "scale", Layout::dense, DType::f32, one);
    draft.add_part("data", DType::f32, one, Encoding::raw, {other, 0, 4}, 4);
    draft.index_names();
    const Model model = draft.finish();
    const Plan dense = plan(model, "safetensors", {.cast = DType::f16});
    EXPECT_EQ(std::ranges::count_if(dense.changes(),
                                    [](const Item& each) { return each.to.find("attn_q.scale") != std::string::npos; }),
              has_factor ? 1 : 0);
    const Plan kept = plan(model, "gguf");
    EXPECT_TRUE(std::ranges::none_of(kept.changes(), [](const Item& each) { return each.from == "nvfp4"; }));
  }
}

// A tensor of one block of q8_0, "q", and a dense one.
Model with_one_block() {
  static const std::string block =
      std::string("\x00\x3c\x01\xff\x7f\x80", 6) + std::string(28, '\x02');  // a scale of 1, and codes
  static const float other[] = {1.5F, 65536.0F};
  core::Draft draft;
  const std::uint32_t codes = draft.add_source(memory_source({std::as_bytes(std::span(block)), nullptr}));
  const std::uint32_t values = draft.add_source(memory_source({std::as_bytes(std::span(other)), nullptr}));
  const std::uint64_t dims[] = {1, 32}, bytes[] = {34}, two[] = {2};
  const BlockTypeInfo* const type = find_block_type("ggml.q8_0");
  const std::uint32_t at = draft.add_tensor("q", type->layout, DType::f32, dims);
  draft.add_part("data", DType::u8, bytes, Encoding::raw, {codes, 0, 34}, 34);
  draft.tensor(at).block_type(type).attribute("type", Value::text(std::string(type->type_attribute)));
  draft.add_tensor("dense", Layout::dense, DType::f32, two);
  draft.add_part("data", DType::f32, two, Encoding::raw, {values, 0, 8}, 8);
  draft.index_names();
  return draft.finish();
}

TEST(Plan, DequantizingChecksTheDigestsOfItsInput) {
  const Folder folder;
  plan(with_one_block(), "zt", {.digest = "sha256"}).execute(folder / "q.zt");
  const Extent extent = *open(folder / "q.zt")["q"].main().extent();
  {
    std::fstream file(folder / "q.zt", std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(static_cast<std::streamoff>(extent.offset + 5));
    file.put('\x01');
  }
  for (const std::string_view to : {"safetensors", "zt", "gguf"}) {
    SCOPED_TRACE(to);
    const Plan made = plan(open(folder / "q.zt"), to, {.dequantize = DType::f16});
    EXPECT_EQ(thrown([&] { made.execute(folder / "out"); }).rule, "zt/digest");
  }
}

TEST(Plan, DequantizeMakesOnlyQuantizedTensorsDenseWhereverTheyCouldBeKept) {
  const Model model = with_one_block();
  for (const std::string_view to : {"safetensors", "zt", "zt2", "gguf", "npz", "pytorch"}) {
    SCOPED_TRACE(to);
    const Plan made = plan(model, to, {.dequantize = DType::f16});
    EXPECT_TRUE(made.possible());
    EXPECT_EQ(std::ranges::count(made.losses(), item(LossKind::layout, "tensors[\"q\"]", "q8_0", "dense f16")), 1);
    const Folder folder;
    made.execute(folder / "out");
    const Model back = open(folder / "out");
    EXPECT_EQ(back["q"].dtype(), DType::f16);
    EXPECT_EQ(back["dense"].dtype(), DType::f32);  // 65536 is no f16
    std::vector<float> got;
    back["q"].stream_dense(DType::f32, {}, [&](std::span<const std::byte> piece) {
      got.resize(got.size() + piece.size() / sizeof(float));
      std::memcpy(got.data() + got.size() - piece.size() / sizeof(float), piece.data(), piece.size());
      return true;
    });
    ASSERT_EQ(got.size(), 32U);
    EXPECT_EQ((std::vector<float>{got[0], got[1], got[2], got[3], got[31]}), (std::vector<float>{1, -1, 127, -128, 2}));
  }
  EXPECT_EQ(plan(model, "safetensors", {.cast = DType::bf16, .dequantize = DType::f32}).refused().size(), 0U);
  EXPECT_THROW(plan(model, "gguf", {.quantize = "q8_0", .dequantize = DType::f16}), Error);
  EXPECT_THROW(plan(model, "safetensors", {.dequantize = DType::f64}), Error);
  EXPECT_THROW(plan(model, "slm", {.dequantize = DType::f16}), Error);
}

// Views of one storage, each overlapping most of the previous one. No container can hold them so, and a small file of
// many such views would become very large.
TEST(Plan, PartialOverlapsAreANamedLossInEveryContainer) {
  const std::string bytes(1064, 'x');
  core::Draft draft;
  const std::uint32_t source = draft.add_source(memory_source({std::as_bytes(std::span(bytes)), nullptr}));
  const std::uint64_t dims[] = {1000};
  for (const std::uint64_t i : {0U, 1U, 2U}) {
    draft.add_tensor(std::to_string(i), Layout::dense, DType::i8, dims);
    draft.add_part("data", DType::i8, dims, Encoding::raw, {source, i, 1000}, 1000);
  }
  draft.index_names();
  const Model model = draft.finish();
  for (const std::string_view to : {"zt", "zt0", "stb", "safetensors"}) {
    const Plan made = plan(model, to, {});
    std::vector<std::string> said;
    for (const Item& loss : made.losses())
      if (loss.kind == LossKind::alias) said.push_back(loss.from);
    EXPECT_EQ(said,
              (std::vector<std::string>{"some of the bytes of tensors[\"0\"]", "some of the bytes of tensors[\"1\"]"}))
        << to;
    EXPECT_EQ(made.refused().size(), 2U) << to;
  }
}

TEST(Plan, AnOptionOfAnotherContainerIsRefusedWithTheOnesThatHaveIt) {
  const Model model = bytes_called("w");
  const auto said = [&](std::string_view format, const Options& options) {
    const Finding finding = thrown([&] { plan(model, format, options); });
    EXPECT_EQ(finding.rule, "misuse/option");
    return finding.message;
  };
  EXPECT_EQ(said("zt", {.slm = {.keep_gqa = true}}), "the format zt has no keep-gqa, slm has");
  EXPECT_EQ(said("safetensors", {.slm = {.quantize_norms = true}}),
            "the format safetensors has no quantize-norms, slm has");
  EXPECT_EQ(said("zt", {.zt0 = {.omit_layout_field = true}}), "the format zt has no omit-layout-field, zt0 has");
  EXPECT_EQ(said("slm", {.metadata = {.created_at = "now"}}), "the format slm has no created-at, embd has, hf has");
  EXPECT_EQ(said("zt", {.metadata = {.model_name = "m"}}), "the format zt has no model-name, embd has, hf has");
  EXPECT_EQ(said("stb", {.metadata = {.model_version = "1"}}), "the format stb has no model-version, embd has, hf has");
  EXPECT_TRUE(plan(model, "zt0", {.zt0 = {.omit_layout_field = true}}).possible());
}

TEST(Plan, ATimeOfMakingIsAnIso8601TimeForEachFormatThatHasOne) {
  for (const char* const format : {"embd", "hf"}) {
    const Finding finding = thrown([&] { plan(bytes_called("w"), format, {.metadata = {.created_at = "to\nday"}}); });
    EXPECT_EQ(finding.rule, "misuse/created-at") << format;
    EXPECT_EQ(finding.message, "'to\nday' is not an ISO 8601 time such as 2025-01-16T12:00:00Z") << format;
    EXPECT_NO_THROW(plan(bytes_called("w"), format, {.metadata = {.created_at = "2026-05-04T03:02:01Z"}})) << format;
  }
}

TEST(Plan, AFormatThatIsOnlyReadIsNoTarget) {
  const Finding finding = thrown([] { plan(bytes_called("w"), "llama2c"); });
  EXPECT_EQ(finding.rule, "misuse/read-only-format");
  EXPECT_EQ(finding.message, "the format llama2c can be read, not written");
}

TEST(Plan, AQuantizationThatTheTargetCannotMakeIsRefused) {
  for (const char* const format : {"zt", "safetensors"})
    EXPECT_EQ(thrown([&] { plan(bytes_called("w"), format, {.quantize = "q8_0"}); }).rule, "misuse/quantize") << format;
}

// A plan for one tensor with these losses.
Plan losing(std::vector<Item> losses, const Options& options = {}) {
  const Model model = bytes_called("w");
  auto rep = std::make_shared<convert::PlanRep>(*convert::PlanMaker::rep(plan(model, "zt")));
  rep->layout.losses = std::move(losses);
  return convert::PlanMaker::make(std::move(rep), model, options);
}

TEST(Plan, CastingAndQuantizingAreTheConsentToTheirOwnLossesOnly) {
  const std::vector<Item> losses{item(LossKind::dtype, "a"), item(LossKind::precision, "b"),
                                 item(LossKind::shape, "c")};
  const std::vector<Item> shape{losses[2]};
  EXPECT_EQ(losing(losses).refused(), losses);
  EXPECT_EQ(losing(losses, {.cast = DType::f16}).refused(), shape);
  EXPECT_EQ(losing(losses, {.quantize = "q8_0"}).refused(), shape);
  EXPECT_TRUE(losing(losses, {.allow = {LossKind::shape}, .quantize = "q8_0"}).possible());
}

// Expressions that must not compile with a plan. Each compiles for a struct with public members, so that a concept does
// not fail by itself.
template <class P>
concept ClearsLosses = requires(P& p) { p.losses().clear(); };
template <class P>
concept ClearsBlockers = requires(P& p) { p.blockers() = {}; };
template <class P>
concept ClearsChanges = requires(P& p) { p.changes().pop_back(); };
template <class P>
concept AddsConsent = requires(P& p) { p.options().allow.push_back(LossKind::name); };
template <class P>
concept SetsSize = requires(P& p) { p.output_size() = 0; };
template <class P>
concept HasOpenMembers = requires(P& p) { p.rep_; };
struct Loose {
  std::vector<Item> items;
  Options own;
  std::uint64_t size = 0;
  int rep_ = 0;
  std::vector<Item>& losses() { return items; }
  std::vector<Item>& blockers() { return items; }
  std::vector<Item>& changes() { return items; }
  Options& options() { return own; }
  std::uint64_t& output_size() { return size; }
};
static_assert(ClearsLosses<Loose> && ClearsBlockers<Loose> && ClearsChanges<Loose> && AddsConsent<Loose> &&
              SetsSize<Loose> && HasOpenMembers<Loose>);
static_assert(!ClearsLosses<Plan> && !ClearsBlockers<Plan> && !ClearsChanges<Plan> && !AddsConsent<Plan> &&
              !SetsSize<Plan> && !HasOpenMembers<Plan>);

TEST(Plan, SaysNothingWhereThereIsNone) {
  const Plan none;
  EXPECT_TRUE(none.blockers().empty() && none.losses().empty() && none.changes().empty());
  EXPECT_EQ(none.output_size() + none.payload_size() + none.tensors(), 0U);
  EXPECT_TRUE(none.from().empty() && none.to().empty() && none.output_size_exact());
  EXPECT_EQ(thrown([&] { none.execute("out"); }).rule, "misuse/empty-plan");
}

TEST(Plan, KeepsWhatItSaysForAsLongAsOneCopyLives) {
  auto first = std::make_unique<Plan>(losing({item(LossKind::name, "b", "b")}));
  const Plan copy = *first;
  const std::vector<Item>& losses = first->losses();
  first.reset();
  EXPECT_EQ(losses, (std::vector{item(LossKind::name, "b", "b")}));
  EXPECT_EQ(&losses, &copy.losses());
  EXPECT_EQ(copy.to(), "zt");
}

TEST(Plan, NamesTenOfTheLossesThatItRefusesAndCountsTheRest) {
  const Folder folder;
  const auto said = [&](std::vector<Item> losses) {
    const Finding finding = thrown([&] { losing(std::move(losses)).execute(folder / "out.zt"); });
    EXPECT_EQ(finding.rule, "misuse/loss");
    return finding.message;
  };
  const std::string begin = "writing zt would lose data that is not allowed to be lost";
  EXPECT_EQ(
      said({item(LossKind::attribute, "a\n"), item(LossKind::name, "b", "b"), item(LossKind::dtype, "c", "", "u8")}),
      begin +
          ": a\n"
          R"( (attribute); b (name), b; c (dtype) becomes u8)");
  EXPECT_EQ(said(std::vector(10, item(LossKind::alias, "t"))).find("more"), std::string::npos);
  const std::string message = said(std::vector(12, item(LossKind::alias, "t")));
  EXPECT_TRUE(message.ends_with("; t (alias); and 2 more")) << message;
  EXPECT_EQ(folder.entries(), Names{});
}

TEST(Save, TheExtensionCountsInAnyCaseAndOnlyThatOfTheLastName) {
  const Folder folder;
  save(bytes_called("w"), folder / "a.ZT");
  save(bytes_called("w"), folder / "b.SafeTensors");
  const Model zt = open(folder / "a.ZT");
  EXPECT_EQ(zt.format(), "zt");
  const Model safetensors = open(folder / "b.SafeTensors");
  EXPECT_EQ(safetensors.format(), "safetensors");
  for (const char* const name : {"zt", "c.z_t", "d.", "e.zt0"})
    EXPECT_EQ(thrown([&] { save(bytes_called("w"), folder / name); }).rule, "misuse/unknown-extension") << name;
  EXPECT_EQ(thrown([] { save(bytes_called("w"), "noextension"); }).rule, "misuse/unknown-extension");
  EXPECT_EQ(folder.entries(), (Names{"a.ZT", "b.SafeTensors"}));
}

TEST(Save, APathThatEndsInASlashIsAHuggingFaceFolder) {
  const Folder folder;
  Builder builder;
  builder.attribute("hf.model_type", Value::text("other"));
  builder.tensor("w", DType::i8, {4}, pattern(4));
  save(builder.build(), folder / "out.zt/");
  const Model weights = open(folder / "out.zt/model.safetensors");
  EXPECT_EQ(weights.format(), "safetensors");
  EXPECT_EQ(open(folder / "out.zt").size(), 1U);
}

// A file with only ids needs no sidecar; an existing one describes another file.
TEST(Save, ASidecarOfAnOldFileStandsInTheWayUnlessItMayGo) {
  const Folder folder;
  test::write_file(folder / "a.khm.json", "old");
  const Finding finding = thrown([&] { save(bytes_called("0"), folder / "a.stb"); });
  EXPECT_EQ(finding.rule, "misuse/output-exists");
  EXPECT_EQ(finding.message, "the file exists and would be taken for the sidecar of the new file");
  EXPECT_EQ(finding.file.name, folder / "a.khm.json");
  EXPECT_EQ(folder.entries(), Names{"a.khm.json"});
  save(bytes_called("0"), folder / "a.stb", {.replace = true});
  EXPECT_EQ(folder.entries(), Names{"a.stb"});
}

TEST(Save, ANameThatIsAllExtensionKeepsItBeforeTheSidecars) {
  const Folder folder;
  save(bytes_called("w"), folder / ".stb");
  EXPECT_EQ(folder.entries(), (Names{".stb", ".stb.khm.json"}));
}

}  // namespace
}  // namespace weighbridge
