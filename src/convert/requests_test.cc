// SPDX-License-Identifier: Apache-2.0
// How many requests a source gets whose ranges cost a round trip each: when a file is opened, and when it is verified.
// src/README.md says these numbers.
#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "support/convert_testing.h"
#include "support/far_source.h"
#include "support/temporary_folder.h"
#include "weighbridge/convert.h"
#include "weighbridge/model.h"
#include "weighbridge/open.h"
#include "weighbridge/verify.h"

namespace weighbridge {
namespace {

using convert::testing::pattern;

constexpr std::uint64_t kKiB = 1024, kMiB = 1024 * kKiB;

// So many tensors of each size, in this order.
using Sizes = std::vector<std::pair<std::size_t, std::uint64_t>>;
Model tensors(const Sizes& sizes) {
  Builder builder;
  std::size_t made = 0;
  for (const auto& [count, size] : sizes)
    for (std::size_t i = 0; i < count; ++i, ++made)
      builder.tensor("layer." + std::to_string(100'000 + made), DType::u8, {size}, pattern(size, made));
  return builder.build();
}

Model with_words() {
  Texts words;
  while (words.blob.size() + 8 * words.size() < 10'000'000) words.push_back("word " + std::to_string(words.size()));
  Builder builder;
  builder.attribute("words", Value::texts(std::move(words)));
  builder.tensor("w", DType::f32, {kMiB}, pattern(4 * kMiB));
  return builder.build();
}

std::string field(char tag, const std::string& bytes) {
  std::string length;
  std::uint64_t n = bytes.size();
  for (; n >= 0x80; n >>= 7) length += static_cast<char>(n | 0x80);
  return tag + (length + static_cast<char>(n)) + bytes;
}

// A graph of 5,000 nodes and 2,000 tensors, all of which are in the file "weights".
std::string onnx_graph() {
  std::string graph;
  for (int i = 0; i < 5000; ++i)
    graph += field('\x0A', field('\x0A', "in") + field('\x12', "out" + std::to_string(i)) + field('\x22', "MatMul"));
  for (int i = 0; i < 2000; ++i) {
    const auto entry = [](const std::string& key, const std::string& value) {
      return field('\x6A', field('\x0A', key) + field('\x12', value));
    };
    graph += field('\x2A', std::string("\x08\x40\x10\x02", 4) + field('\x42', "w" + std::to_string(i)) +
                               entry("location", "weights") + entry("offset", std::to_string(i * 256)) +
                               entry("length", "64") + "\x70\x01");
  }
  return "\x08\x0A" + field('\x3A', graph);
}

struct Row {
  const char *name, *format;
  Sizes sizes;  // of its tensors; empty: of another model
  std::uint64_t requests, calls;
};
constexpr std::uint64_t kApart = 3 * kMiB;

std::shared_ptr<const test::FarSource> made(const Row& row, const test::TemporaryFolder& folder) {
  if (std::string_view(row.format) == "onnx") {
    const std::string graph = onnx_graph();
    const auto weights = std::make_shared<test::FarSource>(memory_source(pattern(2000 * 256), "weights"));
    return std::make_shared<test::FarSource>(
        memory_source(convert::testing::keep(std::vector<char>(graph.begin(), graph.end())), "model.onnx"), kMiB,
        folder_of({{"weights", weights}}));
  }
  Options options;
  options.allow = {LossKind::name};
  plan(row.sizes.empty() ? with_words() : tensors(row.sizes), row.format, options).execute(folder / "file");
  return std::make_shared<test::FarSource>(open_file(folder / "file"));
}

TEST(Requests, OpeningTakesAtMost) {
  const Row rows[] = {
      {"safetensors", "safetensors", {{3000, 3 * kKiB}}, 2, 2},
      {"npy", "npy", {{1, 8 * kMiB}}, 1, 1},
      {"pt", "pytorch", {{300, 64 * kKiB}}, 3, 3},
      {"pt, members far apart", "pytorch", {{6, kApart}}, 2 + 6, 3},
      {"npz, one run", "npz", {{300, 64 * kKiB}}, 2 + 1, 3},
      {"npz, three runs", "npz", {{1, kApart}, {5, kKiB}, {1, kApart}, {5, kKiB}, {1, kApart}}, 2 + 3, 3},
      {"gguf, a header of 10 MB", "gguf", {}, 6, 6},
      {"zt", "zt", {{300, 64 * kKiB}}, 2, 2},
      {"onnx, weights outside", "onnx", {}, 2, 2},
  };
  for (const Row& row : rows) {
    const test::TemporaryFolder folder;
    const auto source = made(row, folder);
    const Model model = open(source);
    EXPECT_GT(model.size(), 0U) << row.name;
    EXPECT_LE(source->requests, row.requests) << row.name;
    EXPECT_LE(source->calls, row.calls) << row.name;
    EXPECT_EQ(source->read_again(), 0U) << row.name << ": what detection has read is kept";
    for (const auto& other : model.sources()) {
      const auto* const beside = dynamic_cast<const test::FarSource*>(other.get());
      ASSERT_NE(beside, nullptr);
      EXPECT_TRUE(beside == source.get() || beside->requests == 0) << row.name;
    }
  }
}

// A verifier read 256 KiB at once, and decoders 128 KiB.
TEST(Requests, VerifyReadsPiecesOfAtLeastTheGap) {
  for (const char* const format : {"zt", "zt2", "npz", "pytorch"})
    for (const char* const encoding : {"", "zstd"}) {
      if (*encoding != '\0' && *format != 'z') continue;
      for (const auto& model : {tensors({{2, 20 * kMiB}}), tensors({{1500, 8 * kKiB}})}) {
        const test::TemporaryFolder folder;
        Options options;
        options.allow = {LossKind::name};
        options.encoding = encoding;
        if (*format == 'z') options.digest = format == std::string("zt2") ? "xxh3" : "sha256";
        plan(model, format, options).execute(folder / "file");
        const auto source = std::make_shared<test::FarSource>(open_file(folder / "file"));
        EXPECT_TRUE(verify(source).report.valid()) << format;
        EXPECT_LE(source->requests, 30 + source->size() / kMiB) << format << encoding << model.size();
      }
    }
}

}  // namespace
}  // namespace weighbridge
