// SPDX-License-Identifier: Apache-2.0
// Plans for options and parts that no test of whole files has: byte order, strides, digests, parts that are not stored,
// sizes beyond the format.
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>

#include "base/endian.h"
#include "codecs/quantize.h"
#include "core/model/draft.h"
#include "core/writing/layout.h"
#include "support/items.h"
#include "support/slm_testing.h"
#include "support/thrown.h"

namespace weighbridge::slm_format {
namespace {

using testing::header_of;
using testing::render;
using testing::tiny;
using testing::values_of;
using testing::walk;

using test::text_of;

// A copy of the model, edited, in a draft of its own with one part for each tensor.
template <class Edit> Model edited(const Model& from, Edit edit) {
  core::Draft draft;
  draft.adopt_metadata(from);
  for (std::uint32_t i = 0; i < from.size(); ++i) draft.adopt(from.name(i), from[i]);
  edit(draft);
  draft.index_names();
  return draft.finish();
}

constexpr std::uint32_t kNorm = 1;  // the second of the required tensors
constexpr std::string_view kNormPart = "tensors[\"norm.weight\"].parts[\"data\"]";

TEST(SlmPlan, OptionsThatAnSlmLacksAreMisuse) {
  const Model model = tiny().build();
  const auto rule = [&](auto set) {
    Options options;
    set(options);
    return test::thrown([&] { core::check_written(kFormat, options), layout(model, options); }).rule;
  };
  EXPECT_EQ(rule([](Options& o) { o.digest = "sha256"; }), "misuse/digest");
  EXPECT_EQ(rule([](Options& o) { o.version = "2"; }), "misuse/version");
  EXPECT_EQ(rule([](Options& o) { o.cast = DType::f16; }), "misuse/cast");
  EXPECT_EQ(rule([](Options& o) { o.cast = DType::f32, o.quantize = "q8_0"; }), "misuse/cast");
  Options fine;
  fine.encoding = "raw";
  fine.digest = "none";
  fine.version = "1";
  fine.cast = DType::f32;
  EXPECT_TRUE(render(layout(model, fine)) == render(layout(model, {})));
}

TEST(SlmPlan, PartsThatAreStoredOtherwiseAreRespelt) {
  const Model plain = tiny().build();
  const auto changes = [&](auto edit) { return text_of(layout(edited(plain, edit), {}).changes); };
  const std::string part(kNormPart);
  EXPECT_EQ(changes([](core::Draft& d) { d.part(kNorm).order(Order::big); }), part + ": big-endian -> little-endian\n");
  EXPECT_EQ(changes([](core::Draft& d) { d.part(kNorm).strides({1}); }), part + ": strided -> row-major\n");
  EXPECT_EQ(changes([](core::Draft& d) { d.part(kNorm).digest("sha256:00"); }), part + ": sha256:00 -> no digest\n");
  EXPECT_EQ(changes([](core::Draft& d) { d.part(kNorm).encoding(Encoding::zstd); }), part + ": zstd -> raw\n");
}

TEST(SlmPlan, BigEndianValuesAreSwapped) {
  Builder builder = tiny();
  std::vector<float> swapped{1, 2, -3, 0.5};
  for (float& value : swapped) value = std::bit_cast<float>(base::byteswap(std::bit_cast<std::uint32_t>(value)));
  builder.tensor("#00000000000000aa", DType::f32, {4}, testing::floats(swapped));
  const Model from = builder.build();
  const Model big = edited(from, [](core::Draft& d) { d.first_part(d.size() - 1).order(Order::big); });
  const Model out = walk(render(layout(big, {}))).model;
  EXPECT_EQ(values_of(out["#00000000000000aa"]), (std::vector<float>{1, 2, -3, 0.5}));
}

TEST(SlmPlan, PartsAndKeysWithoutAPlaceAreLosses) {
  const Model plain = tiny().build();
  const Model more = edited(plain, [](core::Draft& d) {
    d.add_part("bias", DType::f32, std::vector<std::uint64_t>{1}, Encoding::raw, {0, 0, 4}, 4);
    d.part(kNorm).extra("x", Value::boolean(true));
    d.set_extra(std::string(kHeaderExtra), Value::text("no bytes of an .slm"));
    d.set_extra("y", Value::text("z"));
  });
  const core::WriteLayout made = layout(more, {});
  const std::string last(plain.name(plain.size() - 1));
  EXPECT_EQ(text_of(made.losses), "extra[\"" + std::string(kHeaderExtra) +
                                      "\"]: no bytes of an .slm -> dropped\n"
                                      "extra[\"y\"]: z -> dropped\n" +
                                      std::string(kNormPart) + ".extra[\"x\"]: true -> dropped\n" + "tensors[\"" +
                                      last + "\"].parts[\"bias\"]: bias -> dropped\n");
  EXPECT_TRUE(render(made) == render(layout(plain, {})));

  Options q8;
  q8.quantize = "q8_0";
  const Model quantized = walk(render(layout(plain, q8))).model;
  const Model zeros = edited(quantized, [](core::Draft& d) {
    d.add_part("zeros", DType::u8, std::vector<std::uint64_t>{1}, Encoding::raw, {0, 0, 1}, 1);
  });
  EXPECT_EQ(text_of(layout(zeros, {}).losses), "tensors[\"" + last + "\"].parts[\"zeros\"]: zeros -> dropped\n");
}

TEST(SlmPlan, SizesPastTheFormatsAreBlockers) {
  const auto none = [](std::uint64_t, std::span<std::byte>) -> std::size_t { return 0; };
  Builder row = tiny();
  row.tensor("#00000000000000aa", DType::f32, {1, 65'536, 65'536}, none);
  Options q8;
  q8.quantize = "q8_0";
  EXPECT_EQ(text_of(layout(row.build(), q8).blockers),
            "tensors[\"#00000000000000aa\"]: [1, 65536, 65536] -> a row too long for its block_size\n");
  Builder large = tiny();
  for (const char* name : {"#00000000000000aa", "#00000000000000bb"})
    large.tensor(name, DType::f32, {std::uint64_t{1} << 30, std::uint64_t{1} << 29}, none);
  EXPECT_EQ(text_of(layout(large.build(), {}).blockers),
            "tensors[\"#00000000000000bb\"]: its size -> more than 2^62 bytes in all\n");
  Builder whole = tiny();
  whole.tensor("#00000000000000aa", DType::f32, {std::uint64_t{1} << 31, std::uint64_t{1} << 30}, none);
  EXPECT_EQ(layout(whole.build(), {}).blockers.size(), 1U);
}

TEST(SlmPlan, MoreRowsThanATileOfScales) {
  constexpr std::uint64_t kRows = 70'000;
  Builder builder = tiny();
  builder.tensor("#00000000000000aa", DType::f32, {kRows, 2}, testing::pattern(kRows * 2, 9));
  const Model in = builder.build();
  Options q8;
  q8.quantize = "q8_0";
  const Model out = walk(render(layout(in, q8))).model;
  const auto from = values_of(in["#00000000000000aa"]), to = values_of(out["#00000000000000aa"]);
  ASSERT_EQ(to.size(), from.size());
  for (std::size_t row = 0; row < kRows; ++row) {
    const auto one = std::span(from).subspan(row * 2, 2);
    const float scale = codecs::q8_scale(codecs::largest_magnitude(one));
    std::byte codes[2];
    float expected[2];
    codecs::q8_encode(one, scale, codes);
    codecs::q8_decode(codes, scale, expected);
    ASSERT_EQ(to[row * 2], expected[0]) << row;
    ASSERT_EQ(to[row * 2 + 1], expected[1]) << row;
  }
}

// A head of 256 x 512 values comes in two pieces.
TEST(SlmPlan, AHeadLargerThanATileIsRepeatedWhole) {
  const Header h = header_of({.hidden = 512, .heads = 2});
  Builder builder;
  testing::add_hyperparameters(builder, h);
  builder.tokenizer(byte_tokenizer());
  std::uint64_t seed = 0;
  for (auto& [name, dims] : testing::required(h)) {
    if (name.ends_with("wk.weight") || name.ends_with("wv.weight")) dims[0] = 256;
    builder.tensor(name, DType::f32, dims, testing::pattern(dims.size() > 1 ? dims[0] * dims[1] : dims[0], ++seed));
  }
  const Model in = builder.build();
  const Model out = walk(render(layout(in, {}))).model;
  const auto from = values_of(in["layers.0.wk.weight"]), to = values_of(out["layers.0.wk.weight"]);
  ASSERT_EQ(to.size(), 2 * from.size());
  EXPECT_TRUE(std::equal(from.begin(), from.end(), to.begin()));
  EXPECT_TRUE(std::equal(from.begin(), from.end(), to.begin() + static_cast<std::ptrdiff_t>(from.size())));
}

// If more tensors have bad values than a report keeps, all of them are counted.
TEST(SlmRead, BadValuesPastTheReportAreCounted) {
  constexpr std::uint64_t kMore = 50, kTensors = Report::kMaxFindings + kMore;
  Builder builder = tiny();
  for (std::uint64_t i = 0; i < kTensors; ++i)
    builder.tensor(spell_hash(0xf0000000U + i), DType::f32, {1}, testing::floats({1234567}));
  std::string bytes = render(layout(builder.build(), {}));
  const std::string good = {"\x38\xb4\x96\x49", 4}, nan = {"\0\0\xc0\x7f", 4};
  std::uint64_t replaced = 0;
  for (std::size_t at = bytes.find(good); at != bytes.npos; at = bytes.find(good, at + 4), ++replaced)
    bytes.replace(at, 4, nan);
  ASSERT_EQ(replaced, kTensors);
  const Report report = walk(bytes).report;
  EXPECT_EQ(report.errors(), kTensors + 1);  // and the checksum
  EXPECT_EQ(report.findings().size(), Report::kMaxFindings);
}

}  // namespace
}  // namespace weighbridge::slm_format
