// SPDX-License-Identifier: Apache-2.0
// Reading what the corpus cannot show: what quantized profiles are in the model, and the content digest.
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "formats/ztensor/v2/format.h"
#include "formats/ztensor/v2/layout.h"
#include "support/format_testing.h"
#include "support/thrown.h"

namespace weighbridge::ztensor2 {
namespace {

const core::CorpusCase& corpus(std::string_view name) {
  static const std::vector<core::CorpusCase> all = cases();
  return test::case_of(all, name);
}
test::Outcome walk(std::string_view name) { return test::walk(kFormat, corpus(name).bytes); }

TEST(Ztensor2, QuantizedProfilesAreTheBlockTypesOfOtherContainers) {
  for (const auto& [name, id] : {std::pair{"valid-quant-group", "zt.quant"},
                                 {"valid-quant-group-rows", "slm.q8_0"},
                                 {"valid-quant-group-of-1", "zt.group"},
                                 {"valid-mx", "zt.mx"},
                                 {"valid-gguf", "ggml.q4_0"},
                                 {"valid-own-blocks", "slm.q4_0"}}) {
    const Model model = walk(name).model;
    ASSERT_EQ(model.size(), 1U) << name;
    const Tensor tensor = model[0U];
    ASSERT_NE(tensor.block_type(), nullptr) << name;
    EXPECT_EQ(tensor.block_type()->id, id) << name;
    EXPECT_EQ(tensor.unsupported(), nullptr) << name;
    EXPECT_EQ(tensor.to_dense().dtype, DType::f32) << name;
  }
}

TEST(Ztensor2, AttributesHaveTheTypesOfCbor) {
  const Model model = walk("valid-attributes").model;
  EXPECT_EQ(model.attribute("float")->as_f64(), 1.25);
  EXPECT_EQ(model.attribute("negative")->as_i64(), -42);
  EXPECT_EQ(model.attribute("nested")->kind(), Value::Kind::list);
}

TEST(Ztensor2, AnUnknownLayoutHasPartsAndNoElements) {
  const Model model = walk("unknown-layout").model;
  const Tensor tensor = model[0U];
  EXPECT_EQ(tensor.layout(), Layout::structural);
  EXPECT_EQ(tensor.layout_name(), "x.y/1");
  EXPECT_EQ(tensor.part(0).stored().span.size(), 7U);
  EXPECT_NE(tensor.unsupported(), nullptr);
}

// Counts the bytes that are read.
class Counting final : public Source {
 public:
  explicit Counting(std::string bytes) : bytes_(std::move(bytes)) {}
  std::uint64_t size() const noexcept override { return bytes_.size(); }
  void read_at(std::uint64_t offset, std::span<std::byte> out) const override {
    taken += out.size();
    std::ranges::copy(std::as_bytes(std::span(bytes_)).subspan(offset, out.size()), out.begin());
  }
  std::string_view name() const noexcept override { return "counted.zt"; }
  mutable std::uint64_t taken = 0;

 private:
  std::string bytes_;
};

// Eight MiB of numbers that do not compress, in nine frames: eight whole ones and half a one.
std::string large_seekable(std::vector<std::uint32_t>& numbers, void (*change)(std::string&) = nullptr) {
  std::uint32_t state = 1;
  for (std::uint32_t i = 0; i < (17U << 17); ++i) numbers.push_back(state = state * 1664525U + 1013904223U);
  Builder builder;
  builder.tensor("t", DType::u32, {numbers.size() / 4, 4}, {std::as_bytes(std::span(numbers)), nullptr});
  std::string bytes = test::render(layout(builder.build(), {.encoding = "zstd"}));
  if (change) change(bytes);
  return bytes;
}
Model opened(const std::shared_ptr<Counting>& source) {
  Report report;
  core::Findings findings(report, core::Findings::Mode::all);
  core::Draft draft;
  draft.add_source(source);
  read(*source, {}, findings, draft);
  EXPECT_TRUE(report.valid());
  return draft.finish();
}

TEST(Ztensor2, ARangeOfSeekableZstdReadsOnlyItsFrames) {
  std::vector<std::uint32_t> numbers;
  const auto source = std::make_shared<Counting>(large_seekable(numbers));
  const Tensor tensor = opened(source)[0U];
  ASSERT_EQ(tensor.main().encoding(), Encoding::zstd_seekable);
  const auto expect = [&](std::uint64_t first, std::uint64_t count, std::uint64_t frames) {
    std::vector<std::uint32_t> out(count);
    source->taken = 0;
    tensor.main().read_range(first, count, std::as_writable_bytes(std::span(out)));
    EXPECT_TRUE(std::equal(out.begin(), out.end(), numbers.begin() + static_cast<std::ptrdiff_t>(first))) << first;
    EXPECT_LT(source->taken, frames * ((1U << 20) + 1024) + 1024) << first;
  };
  constexpr std::uint64_t kFrame = 1U << 18, kAll = 17U << 17;  // in numbers
  expect(0, 1, 1);
  expect(kFrame - 1, 1, 1);
  expect(kFrame - 1, 2, 2);
  expect(3 * kFrame, kFrame, 1);
  expect(3 * kFrame + 5, 2 * kFrame, 3);
  expect(kAll - 1, 1, 1);
  expect(8 * kFrame - 1, kFrame / 2 + 1, 2);
  expect(0, kAll, 9);
  // Rows, including as another dtype.
  std::vector<double> rows(8);
  source->taken = 0;
  tensor.rows_into(2 * kFrame, 2, DType::f64, std::as_writable_bytes(std::span(rows)));
  for (std::size_t i = 0; i < rows.size(); ++i) EXPECT_EQ(rows[i], static_cast<double>(numbers[8 * kFrame + i]));
  EXPECT_LT(source->taken, (1U << 20) + 4096);
}

TEST(Ztensor2, ARangeOfBrokenFramesIsRefused) {
  std::vector<std::uint32_t> numbers;
  // A byte of the second frame.
  const auto source = std::make_shared<Counting>(
      large_seekable(numbers, [](std::string& bytes) { bytes[kPlacement + (3U << 19)] ^= 1; }));
  const Part part = opened(source)[0U].main();
  std::uint32_t number = 0;
  part.read_range(0, 1, std::as_writable_bytes(std::span(&number, 1)));
  EXPECT_EQ(number, numbers[0]);
  const auto refused =
      test::thrown([&] { part.read_range(3U << 17, 1, std::as_writable_bytes(std::span(&number, 1))); });
  EXPECT_EQ(refused.rule, "part/zstd-seekable");
  EXPECT_GT(refused.offset.value_or(0), kPlacement + (1U << 20));
  // With a wrong table, everything is decoded, which shows what is wrong.
  std::vector<std::uint32_t> again;
  const auto other = std::make_shared<Counting>(large_seekable(again, [](std::string& bytes) {
    const auto table = bytes.find(std::string("\x5E\x2A\x4D\x18", 4), 8U << 20);
    bytes[table + 8] ^= 1;
  }));
  const Part wrong = opened(other)[0U].main();
  EXPECT_EQ(
      test::thrown([&] { wrong.read_range(again.size() - 1, 1, std::as_writable_bytes(std::span(&number, 1))); }).rule,
      "part/zstd-seekable");
}

TEST(Ztensor2, TheContentDigestNeedsAllDigests) {
  const Model with = walk("valid-digests").model, without = walk("valid-one").model;
  EXPECT_EQ(content_identity(with).hex().size(), 64U);
  EXPECT_EQ(test::thrown([&] { content_identity(without); }).rule, "misuse/no-digest");
  EXPECT_EQ(test::thrown([&] { content_identity(Model()); }).rule, "misuse/identity");
}

TEST(Ztensor2, TheContentDigestDoesNotDependOnPlaces) {
  // The same objects at another offset, written anew and compressed.
  const Model model = walk("valid-digests").model;
  Options options;
  const Digest before = content_identity(model);
  EXPECT_EQ(content_identity(test::walk(kFormat, test::render(layout(model, options))).model), before);
}

TEST(Ztensor2, AShardThatIsNotThereIsNamed) {
  const auto [report, model] = walk("shard-missing");
  ASSERT_EQ(model.size(), 1U);
  EXPECT_TRUE(report.valid());
  const Tensor tensor = model[0U];
  EXPECT_EQ(tensor.unsupported()->rule, "zt2/shard-missing");
  EXPECT_EQ(test::thrown([&] { tensor.part(0).stream({}, [](auto) { return true; }); }).rule, "zt2/shard-missing");
}

}  // namespace
}  // namespace weighbridge::ztensor2
