// SPDX-License-Identifier: Apache-2.0
// Making and applying patches of one bf16 tensor, on one core: with digests, and without, where only comparing,
// encoding and scattering count. The rate is of the model's bytes.
#include <benchmark/benchmark.h>

#include <cstdlib>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "delta/encode.h"
#include "weighbridge/convert.h"
#include "weighbridge/open.h"

namespace weighbridge {
namespace {

constexpr std::uint64_t kElements = std::uint64_t{1} << 26;

struct Pair {
  Model base, result;
  std::string patch;
};
// With so many changes of ±1 in a million elements.
const Pair& pair_of(std::uint64_t per_million) {
  static std::map<std::uint64_t, Pair> made;
  Pair& out = made[per_million];
  if (!out.patch.empty()) return out;
  std::mt19937 random(1);
  std::vector<std::uint16_t> a(kElements);
  for (auto& each : a) each = static_cast<std::uint16_t>(0x3C00 + (random() & 0x3FF));
  const auto save_as = [&](const std::string& name) {
    Builder builder;
    builder.tensor("w", DType::bf16, {kElements}, {std::as_bytes(std::span(a)), nullptr});
    save(builder.build(), name, {.replace = true});
    return open(name);
  };
  const std::string folder =
      std::string(std::getenv("TMPDIR") ? std::getenv("TMPDIR") : "/tmp") + "/weighbridge-patch-bench-";
  out.base = save_as(folder + "a.safetensors");
  for (auto& each : a)
    if (random() % 1'000'000 < per_million) each = static_cast<std::uint16_t>(each + ((random() & 1) != 0 ? 1 : -1));
  out.result = save_as(folder + std::to_string(per_million) + ".safetensors");
  out.patch = folder + std::to_string(per_million) + ".zt";
  save(make_patch(out.base, out.result, {.scratch = out.patch}), out.patch, {.encoding = "zstd", .replace = true});
  return out;
}

void make(benchmark::State& state) {
  const Pair& pair = pair_of(static_cast<std::uint64_t>(state.range(0)));
  for (auto _ : state)
    benchmark::DoNotOptimize(
        delta::make(pair.base, pair.result, {.scratch = pair.patch + ".scratch"}, {}, state.range(1) != 0));
  state.SetBytesProcessed(static_cast<std::int64_t>(state.iterations()) * static_cast<std::int64_t>(kElements * 2));
}
void apply(benchmark::State& state) {
  const Pair& pair = pair_of(static_cast<std::uint64_t>(state.range(0)));
  const Model patch = open(pair.patch);
  std::vector<std::byte> out(std::size_t{1} << 20);
  for (auto _ : state) {
    const Model result = state.range(1) != 0 ? patched(pair.base, {&patch, 1}) : delta::unchecked(pair.base, patch);
    const Part part = result[0].main();
    for (std::uint64_t at = 0; at < kElements; at += out.size() / 2) part.read_range(at, out.size() / 2, out);
  }
  state.SetBytesProcessed(static_cast<std::int64_t>(state.iterations()) * static_cast<std::int64_t>(kElements * 2));
}

const std::vector<std::vector<std::int64_t>> kCases{{1'000, 10'000, 100'000, 600'000}, {0, 1}};
BENCHMARK(make)->ArgsProduct(kCases)->ArgNames({"changed_per_million", "digests"})->Unit(benchmark::kMillisecond);
BENCHMARK(apply)->ArgsProduct(kCases)->ArgNames({"changed_per_million", "digests"})->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace weighbridge
