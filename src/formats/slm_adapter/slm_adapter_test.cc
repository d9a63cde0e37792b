// SPDX-License-Identifier: Apache-2.0
// Adapter packages: the model of each kind, and shared payloads.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <initializer_list>
#include <string>
#include <utility>

#include "formats/slm_adapter/format.h"
#include "support/format_testing.h"
#include "support/thrown.h"

namespace weighbridge::slm_adapter {
namespace {

test::Outcome walk(std::string_view name) { return test::walk(kFormat, test::case_of(cases(), name).bytes); }

TEST(SlmAdapter, ADenseDeltaIsADenseTensor) {
  const auto out = walk("valid-dense");
  EXPECT_EQ(out.report.total(), 0U);
  ASSERT_EQ(out.model.size(), 1U);
  const Tensor tensor = out.model[0U];
  EXPECT_EQ(tensor.name(), "#000000000000aaaa");
  EXPECT_EQ(tensor.id(), 0xaaaaU);
  EXPECT_EQ(tensor.layout(), Layout::dense);
  EXPECT_EQ(tensor.main().size(), 16U);
}

TEST(SlmAdapter, SparseAndLowRankDeltasKeepTheirParts) {
  const auto sparse = walk("valid-sparse"), low_rank = walk("valid-low-rank");
  const Tensor scattered = sparse.model[0U], factors = low_rank.model[0U];
  EXPECT_EQ(scattered.layout_name(), kSparseLayout);
  EXPECT_EQ(scattered.part(kIndices).value().count(), 2U);
  EXPECT_EQ(factors.layout_name(), kLowRankLayout);
  const Part a = factors.part(kA).value(), b = factors.part(kB).value();
  EXPECT_EQ(a.shape()[0], 3U);
  EXPECT_EQ(b.shape()[1], 2U);
}

TEST(SlmAdapter, TheIdentityOfTheBaseStandsInAttributes) {
  const auto out = walk("valid-dense");
  const auto number = [&](const char* key) { return out.model.attribute(key)->as_u64(); };
  EXPECT_EQ(number("slm-adapter.base_tensor_count"), 12U);
  EXPECT_EQ(number("slm-adapter.base_parameter_count"), 4824U);
  EXPECT_EQ(number("slm-adapter.base_directory_identity"), 0x3333U);
  EXPECT_EQ(out.model.checksums().size(), 2U);
}

// Structs were read as they stand: on a big-endian processor every package was malformed.
TEST(SlmAdapter, HeaderAndEntryAreLittleEndianOnEveryProcessor) {
  std::string bytes(kHeaderSize, '\0');
  for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<char>(i);
  const auto number = [&](std::size_t at, std::size_t size) {
    std::uint64_t value = 0;
    for (std::size_t i = size; i-- > 0;) value = value << 8U | static_cast<unsigned char>(bytes[at + i]);
    return value;
  };
  const auto header = base::load_record<Header>(bytes.data());
  EXPECT_EQ(std::string_view(header.magic, 4), bytes.substr(0, 4));
  EXPECT_EQ(header.version, number(4, 4));
  EXPECT_EQ(header.base_tensor_count, number(20, 4));
  EXPECT_EQ(header.base_parameter_count, number(24, 8));
  EXPECT_EQ(header.file_size, number(72, 8));
  EXPECT_EQ(header.head_checksum, number(kHeadChecksumAt, 8));
  EXPECT_EQ(std::to_integer<std::uint64_t>(header.reserved[31]), number(127, 1));
  EXPECT_EQ(base::store_record(header), bytes);
  const auto entry = base::load_record<Entry>(bytes.data());
  EXPECT_EQ(entry.name_hash, number(0, 8));
  EXPECT_EQ(entry.dims[3], number(28, 4));
  EXPECT_EQ(entry.second_length, number(64, 8));
  EXPECT_EQ(base::store_record(entry), bytes.substr(0, kEntrySize));
}

TEST(SlmAdapter, EqualRangesAreOnePayload) {
  const auto out = walk("valid-shared");
  EXPECT_EQ(out.report.total(), 0U);
  EXPECT_EQ(out.model[0U].main().extent(), out.model[1U].main().extent());
}

TEST(SlmAdapter, TheDirectoryIsHeldToTheCallersLimits) {
  const auto rule = [](const Limits& limits) {
    Context context;
    context.limits = limits;
    const auto out = test::walk(kFormat, test::case_of(cases(), "valid-shared").bytes, context);
    EXPECT_EQ(out.report.total(), 1U);
    return std::string(out.report.total() == 0 ? "" : out.report.findings()[0].rule);
  };
  Limits header;
  header.header = 2 * kEntrySize - 1;
  EXPECT_EQ(rule(header), "limit/header");
  Limits tensors;
  tensors.tensors = 1;
  EXPECT_EQ(rule(tensors), "limit/tensors");
}

TEST(SlmAdapter, APackageHasDeltasThatAFileCanHold) {
  EXPECT_EQ(test::thrown([] { package_layout(Kind::dense, {}, {}); }).rule, "misuse/adapter");
  // The payload would end in the last 64 bytes below 2^64, and its padding beyond 2^64.
  constexpr std::uint64_t kData = 256, kCount = (UINT64_MAX - kData) / 4;
  Builder builder;
  builder.tensor("w", DType::f32, {kCount}, [](std::uint64_t, std::span<std::byte>) -> std::size_t { return 0; });
  const Model model = builder.build();
  const std::vector<Delta> deltas{{.name_hash = 1, .dims = {1}, .count = 1, .parts = {model[0U]}}};
  EXPECT_EQ(test::thrown([&] { package_layout(Kind::dense, {}, deltas); }).rule, "misuse/too-large");
}

TEST(SlmAdapter, PayloadsWhoseSumWrapsAreTooLarge) {
  Builder builder;
  for (const char* name : {"a", "b"})
    builder.tensor(name, DType::f32, {std::uint64_t{1} << 61},
                   [](std::uint64_t, std::span<std::byte>) -> std::size_t { return 0; });
  const Model model = builder.build();
  std::vector<Delta> deltas;
  for (std::uint32_t i = 0; i < 2; ++i)
    deltas.push_back({.name_hash = i, .dims = {1}, .count = 1, .parts = {model[i]}});
  EXPECT_EQ(test::thrown([&] { package_layout(Kind::dense, {}, deltas); }).rule, "misuse/too-large");
}

}  // namespace
}  // namespace weighbridge::slm_adapter
