// SPDX-License-Identifier: Apache-2.0
// Plans for models that no zTensor 0.1 file gives: names and fields that are not UTF-8, frames of other formats,
// strides, sums beyond 2^64.
#include <gtest/gtest.h>

#include "base/endian.h"
#include "core/model/draft.h"
#include "core/writing/layout.h"
#include "formats/ztensor/v0/format.h"
#include "support/format_testing.h"
#include "support/items.h"

namespace weighbridge::ztensor0 {
namespace {

using test::text_of;
std::size_t none(std::uint64_t, std::span<std::byte>) { return 0; }

// A dense tensor "w" of u8 [4] over `stored`, changed by `edit`.
template <class Edit> Model crafted(std::string format, const std::string& stored, Encoding encoding, Edit edit) {
  core::Draft draft;
  draft.set_format(std::move(format));
  draft.add_source(memory_source(test::bytes_of(stored)));
  draft.add_tensor("w", Layout::dense, DType::u8, std::vector<std::uint64_t>{4});
  draft.add_part("data", DType::u8, std::vector<std::uint64_t>{4}, encoding, {0, 0, stored.size()}, 4);
  edit(draft);
  draft.index_names();
  return draft.finish();
}

std::string frame(std::string_view data) {
  const std::vector<std::byte> out = codecs::encode(codecs::kZstd, std::as_bytes(std::span(data)));
  return {reinterpret_cast<const char*>(out.data()), out.size()};
}

TEST(Ztensor0Plan, FramesOfOthersAreMadeAnew) {
  const Model model = crafted("other", frame("abcd"), Encoding::zstd, [](core::Draft&) {});
  for (const auto& [encoding, to] : {std::pair{"zstd", "zstd, compressed anew"}, {"raw", "raw"}, {"", "raw"}}) {
    Options options;
    options.encoding = encoding;
    const core::WriteLayout made = layout(model, options);
    EXPECT_EQ(text_of(made.changes), "tensors[\"w\"].parts[\"data\"]: zstd -> " + std::string(to) + "\n");
    const auto [report, out] = test::walk(kFormat, test::render(made));
    EXPECT_EQ(report.total(), 0U);
    EXPECT_EQ(test::logical_bytes(out["w"].main()), "abcd");
  }
}

TEST(Ztensor0Plan, StridesAreStraightened) {
  const Model model = crafted("", "abcd", Encoding::raw, [](core::Draft& d) { d.part(0).strides({1}); });
  EXPECT_EQ(text_of(layout(model, {}).changes), "tensors[\"w\"].parts[\"data\"]: strided -> row-major\n");
}

TEST(Ztensor0Plan, WhatIsNotUtf8IsNamed) {
  const Model name = crafted("", "abcd", Encoding::raw, [](core::Draft& d) { d.tensor(0).name("\xff"); });
  const std::string blockers = text_of(layout(name, {}).blockers);
  EXPECT_NE(blockers.find(": a name that is not UTF-8 -> names are UTF-8\n"), blockers.npos) << blockers;
  const Model fields = crafted("", "abcd", Encoding::raw, [](core::Draft& d) {
    d.tensor(0).attribute("t", Value::text("\xff"));
    d.tensor(0).attribute("\xff", Value::boolean(true));
    d.tensor(0).attribute("name", Value::text("x"));
    d.tensor(0).attribute("layout", Value::text("dense"));
  });
  const core::WriteLayout made = layout(fields, {});
  ASSERT_EQ(made.losses.size(), 4U) << text_of(made.losses);
  EXPECT_EQ(made.losses[0].to, "dropped: it would say how the data is laid out");
  EXPECT_EQ(made.losses[1].to, "dropped: zTensor 0.1 has a field of this name");
  EXPECT_EQ(made.losses[2].to, "dropped: it is not UTF-8");
  EXPECT_EQ(made.losses[3].to, "dropped: it is not UTF-8");
}

TEST(Ztensor0Plan, SizesPast2To64AreBlockers) {
  Options cast;
  cast.cast = DType::f32;
  Builder one;
  one.tensor("x", DType::f16, {std::uint64_t{1} << 62}, none);
  EXPECT_EQ(text_of(layout(one.build(), cast).blockers), "tensors[\"x\"]: its shape -> more than 2^64 - 1 bytes\n");
  Builder sum;
  for (const char* name : {"a", "b"}) sum.tensor(name, DType::u8, {std::uint64_t{1} << 63}, none);
  EXPECT_EQ(text_of(layout(sum.build(), {}).blockers), "tensors[\"b\"]: its size -> more than 2^64 - 1 bytes in all\n");
}

TEST(Ztensor0Plan, ScalesOfF64AreRounded) {
  const std::string one("\0\0\0\0\0\0\xf0\x3f", 8);
  Builder builder;
  builder.object("q", Layout::quantized_group, {2, 1},
                 {{"bits", Value::integer(std::int64_t{4})},
                  {"group_size", Value::integer(std::int64_t{2})},
                  {"packing", Value::text("2_per_u8")}},
                 {{"packed_weight", DType::u8, {1, 1}, test::bytes_of("\x21")},
                  {"scales", DType::f64, {1, 1}, test::bytes_of(one)},
                  {"zeros", DType::u8, {1, 1}, test::bytes_of("\x01")}});
  EXPECT_EQ(text_of(layout(builder.build(), {}).losses),
            "tensors[\"q\"]: quantized_group -> dense f32\n"
            "tensors[\"q\"].parts[\"scales\"]: f64 -> f32\n");
}

// CBOR can also hold a text in chunks, and the same key twice.
TEST(Ztensor0Read, LayoutsInChunksAndFieldsTwice) {
  const std::string whole = test::render(layout(crafted("", "abcd", Encoding::raw, [](core::Draft&) {}), {}));
  const auto replaced = [&](std::string_view from, std::string_view to) {
    std::string out = whole;
    const std::size_t at = out.find(from);
    EXPECT_NE(at, out.npos) << from;
    out.replace(at, from.size(), to);
    const std::uint64_t size = base::load_le<std::uint64_t>(out.data() + out.size() - 8) + to.size() - from.size();
    base::store_le<std::uint64_t>(out.data() + out.size() - 8, size);
    return test::walk(kFormat, std::move(out));
  };
  const std::string field = "\x66layout", dense =
                                              "\x65"
                                              "dense";
  const auto [sound, model] = replaced(dense,
                                       "\x7f\x62"
                                       "de\x63nse\xff");
  EXPECT_EQ(sound.total(), 0U);
  EXPECT_EQ(model["w"].layout(), Layout::dense);
  EXPECT_EQ(model["w"].attributes().size(), 0U);
  for (const char* name : {"sparsecoo", "sparsecsr"}) {
    const std::string item = "\x69" + std::string(name);
    const auto in_one = replaced(dense, item), in_chunks = replaced(dense, "\x7f" + item + "\xff");
    ASSERT_EQ(in_one.report.total(), 1U);
    ASSERT_EQ(in_chunks.report.total(), 1U);
    EXPECT_EQ(in_one.report.findings()[0].rule,
              std::string_view(name) == "sparsecoo" ? "zt0/sparse-size" : "zt0/sparse-rank");
    EXPECT_EQ(in_chunks.report.findings()[0].rule, in_one.report.findings()[0].rule);
  }
  const auto rule = [&](std::string_view from, std::string_view to) {
    const Report report = replaced(from, to).report;
    return report.total() == 1 ? std::string(report.findings()[0].rule) : std::to_string(report.total());
  };
  // Replaces the layout with a second shape or size.
  EXPECT_EQ(rule(field + dense, "\x65shape\x81\x04"), "zt0/duplicate-key");
  EXPECT_EQ(rule(field + dense, "\x64size\x04"), "zt0/duplicate-key");
}

}  // namespace
}  // namespace weighbridge::ztensor0
