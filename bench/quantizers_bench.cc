// SPDX-License-Identifier: Apache-2.0
// Times the quantizers of GGUF's block types on one core, in turns with GGML's own where $WEIGHBRIDGE_GGML is the path
// of its libggml-base.so: 16 rows of 4,096 normal numbers, without an importance matrix and with one. The bytes are
// compared before the clock starts. Bytes per second are of f32 read.
#include <benchmark/benchmark.h>
#include <dlfcn.h>

#include <cmath>
#include <cstdlib>
#include <random>
#include <string>
#include <vector>

#include "codecs/blocks.h"
#include "codecs/ggml.h"

namespace {

namespace wb = weighbridge;
constexpr std::size_t kRows = 16, kColumns = 4096;

struct Type {
  const char* id;
  int number;  // of enum ggml_type
};
constexpr Type kTypes[] = {{"q4_0", 2},     {"q4_1", 3},    {"q5_0", 6},     {"q5_1", 7},    {"q8_0", 8},
                           {"q2_k", 10},    {"q3_k", 11},   {"q4_k", 12},    {"q5_k", 13},   {"q6_k", 14},
                           {"iq2_xxs", 16}, {"iq2_xs", 17}, {"iq3_xxs", 18}, {"iq4_nl", 20}, {"iq3_s", 21},
                           {"iq2_s", 22},   {"iq4_xs", 23}, {"tq1_0", 34},   {"tq2_0", 35},  {"mxfp4", 39}};

using Quantize = std::size_t (*)(int type, const float* from, void* to, std::int64_t start, std::int64_t rows,
                                 std::int64_t columns, const float* importance);
Quantize theirs() {
  static const Quantize found = [] {
    const char* const path = std::getenv("WEIGHBRIDGE_GGML");
    void* const library = path != nullptr ? dlopen(path, RTLD_NOW) : nullptr;
    return library != nullptr ? reinterpret_cast<Quantize>(dlsym(library, "ggml_quantize_chunk")) : nullptr;
  }();
  return found;
}

struct Data {
  std::vector<float> rows, importance;
  Data() : rows(kRows * kColumns), importance(kColumns) {
    std::mt19937 random(1);
    std::normal_distribution<float> normal;
    for (float& each : rows) each = normal(random) * 0.02F;
    for (float& each : importance) each = std::exp(normal(random));
  }
};
const Data& data() {
  static const Data made;
  return made;
}

void run(benchmark::State& state, const wb::BlockTypeInfo& type, int number, bool matrix, bool own) {
  const Data& in = data();
  const std::size_t bytes = kColumns / type.block_elements * type.block_bytes;
  std::vector<std::byte> out(kRows * bytes), expected(out.size());
  const wb::codecs::GgmlTerms terms{.importance = matrix ? in.importance.data() : nullptr, .as_ggml = true};
  const auto quantize = [&] {
    for (std::size_t r = 0; r < kRows; ++r)
      type.codec->encode(std::span(in.rows).subspan(r * kColumns, kColumns), terms, out.data() + r * bytes);
  };
  const auto reference = [&](void* to) {
    theirs()(number, in.rows.data(), to, 0, kRows, kColumns, matrix ? in.importance.data() : nullptr);
  };
  if (own) {
    quantize();
    if (theirs() != nullptr) {
      reference(expected.data());
      if (out != expected) return state.SkipWithError("the bytes are not those of GGML");
    }
  }
  for ([[maybe_unused]] auto _ : state) {
    own ? quantize() : reference(expected.data());
    benchmark::DoNotOptimize(out.data());
    benchmark::ClobberMemory();
  }
  state.SetBytesProcessed(state.iterations() * std::int64_t{kRows * kColumns * sizeof(float)});
}

const bool kRegistered = [] {
  for (const Type& each : kTypes) {
    const wb::BlockTypeInfo* const type = wb::find_block_type("ggml." + std::string(each.id));
    if (type == nullptr || type->codec->encode == nullptr) continue;
    for (const bool matrix : {false, true}) {
      if (!matrix && type->codec->importance == wb::codecs::Importance::required) continue;
      for (const bool own : {true, false}) {
        if (!own && theirs() == nullptr) continue;
        const std::string name = std::string(each.id) + (matrix ? " with a matrix" : "") + (own ? "" : ", GGML");
        benchmark::RegisterBenchmark(name.c_str(),
                                     [=](benchmark::State& state) { run(state, *type, each.number, matrix, own); });
      }
    }
  }
  return true;
}();

}  // namespace
