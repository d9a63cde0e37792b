// SPDX-License-Identifier: Apache-2.0
// Elements as streams and files. tests/cli/test_extract.py reads the files with NumPy.
#include "weighbridge/extract.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "support/convert_testing.h"
#include "support/temporary_folder.h"
#include "support/thrown.h"
#include "weighbridge/convert.h"
#include "weighbridge/npy.h"

namespace weighbridge {
namespace {

using convert::testing::keep;
using test::thrown;

Model sample() {
  Builder builder;
  builder.tensor("w", DType::f32, {2, 2}, keep<float>({1, -2, 0.5F, 8}));
  builder.tensor("packed", DType::f4, {4}, keep<std::uint8_t>({0x21, 0x43}));
  return builder.build();
}

std::string text_of(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

std::string streamed(const Elements& elements) {
  std::string out;
  elements.stream({}, [&](std::span<const std::byte> piece) {
    out += text_of(piece);
    return true;
  });
  return out;
}

TEST(Elements, OfAPartAndDense) {
  const Model model = sample();
  const Elements part = Elements::part(model["w"]), dense = Elements::dense(model["w"]),
                 half = Elements::dense(model["w"], DType::f16);
  EXPECT_EQ(part.facts().part, "data");
  EXPECT_EQ(dense.facts().part, "");
  EXPECT_EQ(half.facts().dtype, DType::f16);
  EXPECT_EQ(half.facts().shape, (std::vector<std::uint64_t>{2, 2}));
  EXPECT_EQ(streamed(part).size(), 16U);
  EXPECT_EQ(streamed(part), streamed(dense));
  EXPECT_EQ(streamed(half), std::string("\x00\x3c\x00\xc0\x00\x38\x00\x48", 8));
}

TEST(Elements, StreamInPiecesOfAtMost4MiB) {
  constexpr std::uint64_t kCount = 3'000'000, kMaxPieceBytes = std::uint64_t{4} << 20;
  Builder builder;
  builder.tensor("w", DType::f32, {kCount}, keep<float>(std::vector<float>(kCount)));
  const Model model = builder.build();
  const Tensor w = model["w"];
  const auto require = [&](const Elements& elements) {
    std::uint64_t sum = 0;
    elements.stream({}, [&](std::span<const std::byte> piece) {
      EXPECT_LE(piece.size(), kMaxPieceBytes);
      sum += piece.size();
      return true;
    });
    EXPECT_EQ(sum, elements.size());
  };
  require(Elements::part(w));
  require(Elements::dense(w));
  require(Elements::dense(w, DType::f64));
  require(Elements::dense(w, DType::f16));
  w.main().stream({}, [&](std::span<const std::byte> piece) {
    EXPECT_LE(piece.size(), kMaxPieceBytes);
    return true;
  });
}

// There were two writers of headers, and two tables of types, which differed.
TEST(Elements, HaveTheNumPyHeaderThatConversionsWrite) {
  for (const DType dtype : {DType::f32, DType::boolean, DType::complex128, DType::bf16, DType::f8_e4m3, DType::f8_e5m2})
    for (const std::vector<std::uint64_t>& shape : {std::vector<std::uint64_t>{}, {2, 3}, {0, 10'000'000'000, 99}}) {
      std::size_t size = info(dtype).bits / 8;
      for (const std::uint64_t dim : shape) size *= dim;
      Builder builder;
      builder.tensor("w", dtype, shape, keep(std::vector<std::byte>(size)));
      const Model model = builder.build();
      const test::TemporaryFolder folder;
      plan(model, "npy", {.allow = {LossKind::name, LossKind::dtype}}).execute(folder / "all.npy");
      Elements::dense(model["w"], dtype).write(folder / "w.npy", {});
      EXPECT_EQ(test::read_file(folder / "w.npy"), test::read_file(folder / "all.npy")) << name(dtype);
    }
  EXPECT_EQ(npy_type(DType::f8_e4m3), "<V1");
  EXPECT_EQ(npy_type(DType::f8_e5m2), "|V1");
  EXPECT_EQ(npy_type(DType::f4), "");
}

TEST(Elements, BecomeANumPyFileOrBareBytes) {
  const test::TemporaryFolder folder;
  const Model model = sample();
  const Tensor w = model["w"];
  const Elements elements = Elements::part(w, "data");
  const Extracted npy = elements.write(folder / "w.npy", {});
  EXPECT_EQ(npy.bytes, 16U);
  EXPECT_EQ(npy.output, folder / "w.npy");
  EXPECT_EQ(test::read_file(folder / "w.npy"), npy_header("<f4", w.shape()) + streamed(elements));
  elements.write(folder / "w.bin", {.npy = false});
  EXPECT_EQ(test::read_file(folder / "w.bin"), streamed(elements));
}

TEST(Elements, ReplaceOnlyWhenAskedAndNeverTheInput) {
  const test::TemporaryFolder folder;
  const std::string path = folder / "w.npy";
  const Model model = sample();
  const Elements elements = Elements::part(model["w"]);
  test::write_file(path, "old");
  EXPECT_EQ(thrown([&] { elements.write(path, {}); }).kind, Kind::misuse);
  const std::vector<std::shared_ptr<const Source>> inputs{open_file(path)};
  EXPECT_EQ(thrown([&] { elements.write(path, {.replace = true, .inputs = inputs}); }).rule, "misuse/output-is-input");
  EXPECT_EQ(test::read_file(path), "old");
  elements.write(path, {.replace = true});
  EXPECT_NE(test::read_file(path), "old");
}

TEST(Elements, TellProgressAndStop) {
  const test::TemporaryFolder folder;
  const Model model = sample();
  Context context;
  std::vector<std::uint64_t> reported;
  context.progress = [&](std::uint64_t done, std::uint64_t total) {
    reported.push_back(done);
    return total == 8;
  };
  Elements::dense(model["w"], DType::f16).write(folder / "half.npy", {}, context);
  EXPECT_EQ(reported.back(), 8U);
  EXPECT_THROW(Elements::part(model["w"]).write(folder / "full.npy", {}, context), Cancelled);  // the part has 16 bytes
  EXPECT_EQ(folder.entries(), std::set<std::string>{"half.npy"});
}

TEST(Elements, RefuseWhatIsNotThere) {
  const test::TemporaryFolder folder;
  const Model model = sample();
  const Finding part = thrown([&] { Elements::part(model["w"], "scales"); });
  EXPECT_EQ(part.rule, "misuse/unknown-part");
  EXPECT_EQ(part.message, "tensor 'w' has no part 'scales', it has 'data'");
  const Elements packed = Elements::part(model["packed"]);
  EXPECT_EQ(thrown([&] { packed.npy_header(); }).rule, "misuse/npy-type");
  EXPECT_EQ(thrown([&] { packed.write(folder / "p.npy", {}); }).rule, "misuse/npy-type");
  EXPECT_TRUE(folder.entries().empty());
  EXPECT_EQ(packed.write(folder / "p.bin", {.npy = false}).bytes, 2U);
}

}  // namespace
}  // namespace weighbridge
