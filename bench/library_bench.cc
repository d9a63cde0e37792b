// SPDX-License-Identifier: Apache-2.0
// Times functions of the library: opening indexes of 1 to 100,000 tensors, decoding block types, and the machine's
// roofs, which the other benchmarks are compared with. Each benchmark checks its result before the clock starts.
#include <benchmark/benchmark.h>

#include <array>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <string>
#include <vector>

#include "codecs/blocks.h"
#include "codecs/checksum.h"
#include "codecs/indexed_checksum.h"
#include "weighbridge/convert.h"
#include "weighbridge/hash.h"
#include "weighbridge/open.h"

namespace {

namespace wb = weighbridge;

// `count` tensors of 64 f32, named like the experts of a large model, saved with `extension`.
const std::string& sample(const std::string& extension, int count) {
  static std::vector<std::pair<std::string, std::string>> made;
  const std::string key = std::to_string(count) + "." + extension;
  for (const auto& [known, path] : made)
    if (known == key) return path;
  const auto path = std::filesystem::temp_directory_path() / ("weighbridge-bench-" + key);
  wb::Builder builder;
  const auto zeros = std::make_shared<std::vector<std::byte>>(256);
  for (int i = 0; i < count; ++i) {
    builder.tensor("model.layers." + std::to_string(i / 100) + ".experts." + std::to_string(i % 100) + ".weight",
                   wb::DType::f32, {8, 8}, {*zeros, zeros});
  }
  wb::Options options;
  options.replace = true;
  wb::save(builder.build(), path.string(), options);
  made.emplace_back(key, path.string());
  return made.back().second;
}

void open_file(benchmark::State& state, const std::string& extension) {
  const int count = static_cast<int>(state.range(0));
  const std::string& path = sample(extension, count);
  const wb::Model once = wb::open(path);
  if (once.size() != static_cast<std::uint32_t>(count) || !once.find("model.layers.0.experts.0.weight")) {
    state.SkipWithError("the file was not opened as it was written");
    return;
  }
  for (auto _ : state) benchmark::DoNotOptimize(wb::open(path).size());
  state.counters["tensors/s"] =
      benchmark::Counter(static_cast<double>(count), benchmark::Counter::kIsIterationInvariantRate);
}
void counts(benchmark::internal::Benchmark* bench) {
  bench->RangeMultiplier(10)->Range(1, 100000)->Unit(benchmark::kMicrosecond);
}
BENCHMARK_CAPTURE(open_file, safetensors, "safetensors")->Apply(counts);
BENCHMARK_CAPTURE(open_file, zt, "zt")->Apply(counts);

void find_by_name(benchmark::State& state) {
  const wb::Model model = wb::open(sample("safetensors", 100000));
  if (!model.find("model.layers.999.experts.99.weight")) {
    state.SkipWithError("a name is not found");
    return;
  }
  for (auto _ : state) benchmark::DoNotOptimize(model.find("model.layers.512.experts.31.weight"));
}
BENCHMARK(find_by_name);

std::vector<std::byte> noise(std::size_t size) {
  std::vector<std::byte> out(size);
  std::uint64_t x = 1;
  for (std::size_t i = 0; i + 8 <= size; i += 8) {
    x = x * 6364136223846793005U + 1442695040888963407U;
    std::memcpy(out.data() + i, &x, 8);
  }
  return out;
}

// A row of so many elements.
wb::codecs::BlockForm row_form(const wb::BlockTypeInfo& type, std::uint64_t elements) {
  wb::codecs::BlockForm form;
  form.type = &type;
  form.rank = 1;
  form.rows = 1;
  form.columns = form.row = elements;
  form.dtypes = {wb::DType::u8};
  return form;
}

// One row, near the end, of an embedding as q4_k with arbitrary blocks.
void row_of_blocks(benchmark::State& state) {
  constexpr std::uint64_t kRows = 128256, kColumns = 4096, kRow = 100000;
  const wb::BlockTypeInfo& type = *wb::find_block_type("ggml.q4_k");
  const std::uint64_t row = kColumns / type.block_elements * type.block_bytes;
  const auto blocks = std::make_shared<const std::vector<std::byte>>(noise(kRows * row));
  wb::Builder builder;
  builder.object("w", type.layout, {kRows, kColumns}, {{"type", wb::Value::text(std::string(type.type_attribute))}},
                 {{std::string(type.roles[0]), wb::DType::u8, {kRows * row}, {*blocks, blocks}}});
  const wb::Model model = builder.build();
  std::vector<float> out(kColumns), expected(kColumns);
  const auto bytes = std::as_writable_bytes(std::span(out));
  model["w"].rows_into(kRow, 1, wb::DType::f32, bytes);
  const wb::codecs::BlockForm form = row_form(type, kColumns);
  const std::array<std::span<const std::byte>, 1> parts{std::span(*blocks).subspan(kRow * row, row)};
  type.codec->decode(form, 0, kColumns, parts, expected.data());
  if (std::memcmp(out.data(), expected.data(), bytes.size()) != 0) return state.SkipWithError("the row is wrong");
  for (auto _ : state) {
    model["w"].rows_into(kRow, 1, wb::DType::f32, bytes);
    benchmark::ClobberMemory();
  }
}
BENCHMARK(row_of_blocks);

// Each thread works on its own megabyte in cache: the rate of one core. The sum over threads is the machine's roof.
template <class Function> void roof(benchmark::State& state, Function&& function) {
  const std::vector<std::byte> data = noise(std::size_t{1} << 20);
  for (auto _ : state) benchmark::DoNotOptimize(function(data));
  state.SetBytesProcessed(static_cast<std::int64_t>(state.iterations()) * static_cast<std::int64_t>(data.size()));
}
void roof_sha256(benchmark::State& state) {
  roof(state, [](std::span<const std::byte> d) { return wb::codecs::sha256(d); });
}
void roof_crc32c(benchmark::State& state) {
  roof(state, [](std::span<const std::byte> d) { return wb::codecs::crc32c(d); });
}
void roof_xxh3(benchmark::State& state) {
  roof(state, [](std::span<const std::byte> d) { return wb::codecs::xxh3_128(d); });
}
void roof_crc32(benchmark::State& state) {
  roof(state, [](std::span<const std::byte> d) { return wb::codecs::crc32(d); });
}
// The checksum is serial: a file needs one chain, so the roof is that of one thread.
void roof_slm(benchmark::State& state) {
  roof(state, [](std::span<const std::byte> d) { return wb::codecs::indexed_checksum(d); });
}
// Decodes blocks to 256 KiB of f32, which a core has in its second cache: GB/s of f32 on one core. Scales are finite.
void decode_blocks(benchmark::State& state, const wb::BlockTypeInfo& type) {
  constexpr std::size_t kElements = std::size_t{1} << 16;
  std::vector<std::byte> blocks = noise(kElements / type.block_elements * type.block_bytes);
  for (std::byte& b : blocks) b &= std::byte{0x3B};  // an f16 below 1, whichever bytes it has
  std::vector<float> out(kElements);
  const wb::codecs::BlockForm form = row_form(type, kElements);
  if (!wb::codecs::block_problem(form).empty()) return state.SkipWithError("the blocks cannot be decoded");
  const std::array<std::span<const std::byte>, 1> parts{blocks};
  for (auto _ : state) {
    type.codec->decode(form, 0, kElements, parts, out.data());
    benchmark::DoNotOptimize(out.data());
    benchmark::ClobberMemory();
  }
  state.SetBytesProcessed(state.iterations() * static_cast<std::int64_t>(kElements * sizeof(float)));
}
[[maybe_unused]] const int kRegistered = [] {
  for (const wb::BlockTypeInfo& type : wb::all_block_types())
    if (type.block_bytes != 0)
      benchmark::RegisterBenchmark(("decode_blocks/" + std::string(type.id)).c_str(), decode_blocks, type);
  return 0;
}();

BENCHMARK(roof_crc32)->Threads(1)->Threads(2)->UseRealTime();
BENCHMARK(roof_slm)->Threads(1)->UseRealTime();
BENCHMARK(roof_sha256)->Threads(1)->Threads(2)->UseRealTime();
BENCHMARK(roof_crc32c)->Threads(1)->Threads(2)->UseRealTime();
BENCHMARK(roof_xxh3)->Threads(1)->Threads(2)->UseRealTime();

}  // namespace
