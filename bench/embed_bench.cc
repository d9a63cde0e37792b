// SPDX-License-Identifier: Apache-2.0
// Times embedding with real or random weights: matrix products as a fraction of the machine's roof, one query of 16
// tokens, 32 texts of 128, texts of $WEIGHBRIDGE_EMBED_TEXTS (one per line), and opening. Checks results before the
// clock starts: products against sums in double, vectors against those of each text alone. $WEIGHBRIDGE_EMBED_MODEL
// names a model (any container; $WEIGHBRIDGE_EMBED_HEADS if it has no metadata). Without it, random weights of the
// same shape are used, which take the same time.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <fstream>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include "runtime/kernels/half.h"
#include "runtime/kernels/kernels.h"
#include "support/kernel_numbers.h"
#include "weighbridge/embed.h"
#include "weighbridge/open.h"

namespace {

namespace wb = weighbridge;
namespace wk = weighbridge::kernels;

using wk::testing::numbers;

// Memory aligned to cache lines, as in the runtime.
template <class T> class Aligned {
 public:
  explicit Aligned(std::size_t count) : room_(count + 64 / sizeof(T)) {}
  T* data() {
    auto* at = room_.data();
    while (reinterpret_cast<std::uintptr_t>(at) % 64 != 0) ++at;
    return at;
  }

 private:
  std::vector<T> room_;
};

// ---- kernels, on one thread ----

enum class Unit { f32, half, bytes };

#if defined(__x86_64__)
constexpr int kOperations[] = {32, 64, 128};  // of one instruction, by Unit

// The peak rate of one core: independent chains of fused multiply-adds or byte products, in registers only.
template <Unit Kind> [[gnu::target("avx512f,avx512vnni")]] double roof() {
  constexpr int kRounds = 100'000;
  double best = 0;
  for (int trial = 0; trial < 20; ++trial) {
    const __m512 a = _mm512_set1_ps(0.999F), b = _mm512_set1_ps(0.001F);
    __m512 s0 = a, s1 = a, s2 = a, s3 = a, s4 = a, s5 = a, s6 = a, s7 = a, s8 = a, s9 = a, s10 = a, s11 = a;
    const auto begin = std::chrono::steady_clock::now();
    for (int round = 0; round < kRounds; ++round) {
      if constexpr (Kind == Unit::bytes)
        asm volatile(
            "vpdpbusd %12, %13, %0\n vpdpbusd %12, %13, %1\n vpdpbusd %12, %13, %2\n vpdpbusd %12, %13, %3\n"
            "vpdpbusd %12, %13, %4\n vpdpbusd %12, %13, %5\n vpdpbusd %12, %13, %6\n vpdpbusd %12, %13, %7\n"
            "vpdpbusd %12, %13, %8\n vpdpbusd %12, %13, %9\n vpdpbusd %12, %13, %10\n vpdpbusd %12, %13, %11"
            : "+v"(s0), "+v"(s1), "+v"(s2), "+v"(s3), "+v"(s4), "+v"(s5), "+v"(s6), "+v"(s7), "+v"(s8), "+v"(s9),
              "+v"(s10), "+v"(s11)
            : "v"(a), "v"(b));
      else if constexpr (Kind == Unit::half)
        asm volatile(
            "vfmadd231ph %12, %13, %0\n vfmadd231ph %12, %13, %1\n vfmadd231ph %12, %13, %2\n vfmadd231ph %12, %13, "
            "%3\n"
            "vfmadd231ph %12, %13, %4\n vfmadd231ph %12, %13, %5\n vfmadd231ph %12, %13, %6\n vfmadd231ph %12, %13, "
            "%7\n"
            "vfmadd231ph %12, %13, %8\n vfmadd231ph %12, %13, %9\n vfmadd231ph %12, %13, %10\n vfmadd231ph %12, %13, "
            "%11"
            : "+v"(s0), "+v"(s1), "+v"(s2), "+v"(s3), "+v"(s4), "+v"(s5), "+v"(s6), "+v"(s7), "+v"(s8), "+v"(s9),
              "+v"(s10), "+v"(s11)
            : "v"(a), "v"(b));
      else
        asm volatile(
            "vfmadd231ps %12, %13, %0\n vfmadd231ps %12, %13, %1\n vfmadd231ps %12, %13, %2\n"
            "vfmadd231ps %12, %13, %3\n vfmadd231ps %12, %13, %4\n vfmadd231ps %12, %13, %5\n"
            "vfmadd231ps %12, %13, %6\n vfmadd231ps %12, %13, %7\n vfmadd231ps %12, %13, %8\n"
            "vfmadd231ps %12, %13, %9\n vfmadd231ps %12, %13, %10\n vfmadd231ps %12, %13, %11"
            : "+v"(s0), "+v"(s1), "+v"(s2), "+v"(s3), "+v"(s4), "+v"(s5), "+v"(s6), "+v"(s7), "+v"(s8), "+v"(s9),
              "+v"(s10), "+v"(s11)
            : "v"(a), "v"(b));
    }
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
    best = std::max(best, 12.0 * kRounds * kOperations[static_cast<int>(Kind)] / took.count());
  }
  return best;
}
#endif
double roof_of(Unit unit) {
#if defined(__x86_64__)
  if (unit == Unit::half) return wk::half_kernels() == nullptr ? 0 : roof<Unit::half>();
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vnni"))
    return unit == Unit::bytes ? roof<Unit::bytes>() : roof<Unit::f32>();
#endif
  return 0;
}

void count_operations(benchmark::State& state, std::size_t m, std::size_t n, std::size_t k, Unit unit) {
  static const double roofs[] = {roof_of(Unit::f32), roof_of(Unit::half), roof_of(Unit::bytes)};
  const double roof = roofs[static_cast<int>(unit)];
  state.counters["roof"] = roof / 1e9;
  const double operations = 2.0 * static_cast<double>(m * n * k);
  state.counters["GOP/s"] = benchmark::Counter(operations / 1e9, benchmark::Counter::kIsIterationInvariantRate);
  if (roof > 0)
    state.counters["of_roof"] = benchmark::Counter(operations / roof, benchmark::Counter::kIsIterationInvariantRate);
}

void product_f32(benchmark::State& state) {
  const auto m = static_cast<std::size_t>(state.range(0)), n = static_cast<std::size_t>(state.range(1)),
             k = static_cast<std::size_t>(state.range(2));
  const auto a = numbers(m * k, 1, 1), w = numbers(n * k, 2, 1), bias = numbers(wk::round_up(n, 16), 3, 1);
  Aligned<float> packed(wk::packed_size(n, k)), c(m * n);
  wk::kernels().pack_f32(w.data(), k, n, k, packed.data());
  const wk::ProductF32 task{
      {n, k, bias.data(), wk::Activation::none, nullptr, 0, c.data(), n}, a.data(), k, packed.data()};
  const wk::Range all{0, m, 0, wk::panel_count(n)};
  wk::kernels().product_f32(task, all);
  double sum = bias[n - 1];
  for (std::size_t p = 0; p < k; ++p) sum += double{a[(m - 1) * k + p]} * double{w[(n - 1) * k + p]};
  if (std::fabs(sum - c.data()[m * n - 1]) > 1e-3) return state.SkipWithError("wrong product");
  for (auto _ : state) {
    wk::kernels().product_f32(task, all);
    benchmark::ClobberMemory();
  }
  count_operations(state, m, n, k, Unit::f32);
}

void product_half(benchmark::State& state) {
  const auto m = static_cast<std::size_t>(state.range(0)), n = static_cast<std::size_t>(state.range(1)),
             k = static_cast<std::size_t>(state.range(2));
  const wk::HalfKernels* half = wk::half_kernels();
  if (half == nullptr) return state.SkipWithError("this processor has no AVX512-FP16");
  const auto a = numbers(m * k, 1, 1), w = numbers(n * k, 2, 1), bias = numbers(wk::round_up(n, 16), 3, 1);
  Aligned<std::uint16_t> packed(wk::half_packed_size(n, k));
  Aligned<std::uint32_t> halves(m * k);
  Aligned<float> c(m * n);
  std::vector<float> scale(bias.size()), a_scale(m);
  half->pack(w.data(), n, k, packed.data(), scale.data());
  for (std::size_t i = 0; i < m; ++i) half->halve_row(a.data() + i * k, k, halves.data() + i * k, a_scale[i]);
  const wk::ProductHalf task{{n, k, bias.data(), wk::Activation::none, nullptr, 0, c.data(), n},
                             halves.data(),
                             k,
                             a_scale.data(),
                             packed.data(),
                             scale.data()};
  const wk::Range all{0, m, 0, wk::half_panel_count(n)};
  half->product(task, all);
  double sum = bias[n - 1];
  for (std::size_t p = 0; p < k; ++p) sum += double{a[(m - 1) * k + p]} * double{w[(n - 1) * k + p]};
  if (std::fabs(sum - c.data()[m * n - 1]) > 0.05) return state.SkipWithError("wrong product");
  for (auto _ : state) {
    half->product(task, all);
    benchmark::ClobberMemory();
  }
  count_operations(state, m, n, k, Unit::half);
}

void product_i8(benchmark::State& state) {
  const auto m = static_cast<std::size_t>(state.range(0)), n = static_cast<std::size_t>(state.range(1)),
             k = static_cast<std::size_t>(state.range(2));
  const auto a = numbers(m * k, 1, 1), w = numbers(n * k, 2, 1), bias = numbers(wk::round_up(n, 16), 3, 1);
  Aligned<std::int8_t> packed(wk::packed_size(n, k));
  Aligned<float> c(m * n);
  std::vector<float> scale(bias.size());
  std::vector<std::int32_t> sums(bias.size());
  std::vector<wk::CodedRow> rows(m);
  std::vector<std::uint8_t> codes(m * k);
  wk::kernels().pack_i8(w.data(), n, k, packed.data(), scale.data(), sums.data());
  for (std::size_t i = 0; i < m; ++i) rows[i] = wk::kernels().quantize_row(a.data() + i * k, k, codes.data() + i * k);
  const wk::ProductI8 task{{n, k, bias.data(), wk::Activation::none, nullptr, 0, c.data(), n},
                           codes.data(),
                           k,
                           rows.data(),
                           packed.data(),
                           scale.data(),
                           sums.data()};
  const wk::Range all{0, m, 0, wk::panel_count(n)};
  wk::kernels().product_i8(task, all);
  double sum = bias[n - 1];
  for (std::size_t p = 0; p < k; ++p) sum += double{a[(m - 1) * k + p]} * double{w[(n - 1) * k + p]};
  if (std::fabs(sum - c.data()[m * n - 1]) > 0.5) return state.SkipWithError("wrong product");
  for (auto _ : state) {
    wk::kernels().product_i8(task, all);
    benchmark::ClobberMemory();
  }
  count_operations(state, m, n, k, Unit::bytes);
}

void attention(benchmark::State& state) {
  const auto length = static_cast<std::size_t>(state.range(0)), head = static_cast<std::size_t>(state.range(1));
  const auto x = numbers(length * 36 * head, 1, 1);
  std::vector<float> out(length * 12 * head);
  Aligned<float> room(wk::attention_scratch(length, head));
  const wk::Attention task{x.data(), x.data() + head, x.data() + 2 * head, 36 * head,  length, head,
                           1,        out.data(),      12 * head,           room.data()};
  for (auto _ : state) {
    wk::kernels().attention(task);
    benchmark::ClobberMemory();
  }
  count_operations(state, length, length, 2 * head, Unit::f32);
}

BENCHMARK(product_f32)->Args({128, 384, 384})->Args({128, 1536, 384})->Args({128, 384, 1536})->Args({16, 1536, 384});
BENCHMARK(product_half)->Args({128, 384, 384})->Args({128, 1536, 384})->Args({128, 384, 1536})->Args({16, 1536, 384});
BENCHMARK(product_i8)->Args({128, 384, 384})->Args({128, 1536, 384})->Args({128, 384, 1536})->Args({16, 1536, 384});
BENCHMARK(attention)->Args({128, 32})->Args({16, 32})->Args({256, 32});

// ---- the whole, on two threads ----

wb::Model made_up() {
  wb::Builder out;
  std::uint64_t seed = 0;
  const auto add = [&](const std::string& name, std::vector<std::uint64_t> shape, float size) {
    std::uint64_t count = 1;
    for (const std::uint64_t d : shape) count *= d;
    const auto held = std::make_shared<std::vector<float>>(numbers(count, ++seed, size));
    out.tensor(name, wb::DType::f32, std::move(shape), {std::as_bytes(std::span(*held)), held});
  };
  const auto linear = [&](const std::string& name, std::uint64_t n, std::uint64_t k) {
    add(name + ".weight", {n, k}, 0.08F);
    add(name + ".bias", {n}, 0.1F);
  };
  const auto norm = [&](const std::string& name) {
    add(name + ".weight", {384}, 1);
    add(name + ".bias", {384}, 0.1F);
  };
  add("embeddings.word_embeddings.weight", {30522, 384}, 0.1F);
  add("embeddings.position_embeddings.weight", {512, 384}, 0.1F);
  add("embeddings.token_type_embeddings.weight", {2, 384}, 0.1F);
  norm("embeddings.LayerNorm");
  for (int i = 0; i < 6; ++i) {
    const std::string at = "encoder.layer." + std::to_string(i) + ".";
    for (const char* which : {"query", "key", "value"}) linear(at + "attention.self." + which, 384, 384);
    linear(at + "attention.output.dense", 384, 384);
    norm(at + "attention.output.LayerNorm");
    linear(at + "intermediate.dense", 1536, 384);
    linear(at + "output.dense", 384, 1536);
    norm(at + "output.LayerNorm");
  }
  out.attribute("num_attention_heads", wb::Value::text("12"));
  return out.build();
}
// The named model, opened again; otherwise the random one.
wb::Model opened() {
  const char* named = std::getenv("WEIGHBRIDGE_EMBED_MODEL");
  if (named != nullptr) return wb::open(named, {}, {.access = wb::Access::mapped});
  static const wb::Model made = made_up();
  return made;
}
wb::EmbedOptions options(wb::Precision precision) {
  const char* heads = std::getenv("WEIGHBRIDGE_EMBED_HEADS");
  const char* threads = std::getenv("WEIGHBRIDGE_EMBED_THREADS");
  return {.heads = heads == nullptr ? 0 : std::strtoull(heads, nullptr, 10),
          .precision = precision,
          .threads = threads == nullptr ? 2 : static_cast<unsigned>(std::strtoul(threads, nullptr, 10))};
}

const wb::Embedder& embedder(wb::Precision precision) {
  static const wb::Model model = opened();
  static std::map<wb::Precision, std::unique_ptr<wb::Embedder>> made;
  auto& one = made[precision];
  if (!one) one = std::make_unique<wb::Embedder>(model, options(precision));
  return *one;
}

void report(benchmark::State& state, std::vector<double> times) {
  std::sort(times.begin(), times.end());
  state.counters["best_ms"] = times.front() * 1e3;
  state.counters["median_ms"] = times[times.size() / 2] * 1e3;
}

void embed(benchmark::State& state, wb::Precision precision, std::size_t texts, std::size_t length) {
  const wb::Embedder& it = embedder(precision);
  std::vector<std::vector<std::uint32_t>> ids(texts, std::vector<std::uint32_t>(length));
  std::uint32_t next = 1;
  for (auto& text : ids)
    for (std::uint32_t& id : text) id = 1996 + (next = next * 1664525 + 1013904223) % 27000;
  const std::vector<std::span<const std::uint32_t>> views(ids.begin(), ids.end());
  std::vector<float> out(texts * it.dimension()), alone(it.dimension());
  it.embed_ids(views, out);
  it.embed_ids(std::span(views).last(1), alone);
  if (!std::equal(alone.begin(), alone.end(), out.end() - static_cast<std::ptrdiff_t>(alone.size())))
    return state.SkipWithError("a text alone gives another vector");
  std::vector<double> times;
  for (auto _ : state) {
    const auto begin = std::chrono::steady_clock::now();
    it.embed_ids(views, out);
    times.push_back(std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count());
  }
  report(state, std::move(times));
}
BENCHMARK_CAPTURE(embed, query16_f32, wb::Precision::f32, 1, 16)->UseRealTime()->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(embed, query16_f16, wb::Precision::f16, 1, 16)->UseRealTime()->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(embed, query16_bf16, wb::Precision::bf16, 1, 16)->UseRealTime()->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(embed, query16_int8, wb::Precision::int8, 1, 16)->UseRealTime()->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(embed, text128_f32, wb::Precision::f32, 1, 128)->UseRealTime()->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(embed, text128_f16, wb::Precision::f16, 1, 128)->UseRealTime()->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(embed, text128_bf16, wb::Precision::bf16, 1, 128)->UseRealTime()->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(embed, text128_int8, wb::Precision::int8, 1, 128)->UseRealTime()->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(embed, batch32x128_f32, wb::Precision::f32, 32, 128)->UseRealTime()->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(embed, batch32x128_f16, wb::Precision::f16, 32, 128)->UseRealTime()->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(embed, batch32x128_bf16, wb::Precision::bf16, 32, 128)->UseRealTime()->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(embed, batch32x128_int8, wb::Precision::int8, 32, 128)->UseRealTime()->Unit(benchmark::kMillisecond);

void embed_texts(benchmark::State& state, wb::Precision precision) {
  const char* named = std::getenv("WEIGHBRIDGE_EMBED_TEXTS");
  if (named == nullptr) return state.SkipWithError("WEIGHBRIDGE_EMBED_TEXTS names no texts");
  std::ifstream file(named);
  std::vector<std::string> texts;
  for (std::string line; std::getline(file, line);) texts.push_back(line);
  const std::vector<std::string_view> views(texts.begin(), texts.end());
  const wb::Embedder& it = embedder(precision);
  std::vector<float> out(texts.size() * it.dimension());
  it.embed(views, out);
  const auto alone = it.embed(views.back());
  if (!std::equal(alone.begin(), alone.end(), out.end() - static_cast<std::ptrdiff_t>(alone.size())))
    return state.SkipWithError("a text alone gives another vector");
  std::vector<double> times;
  for (auto _ : state) {
    const auto begin = std::chrono::steady_clock::now();
    it.embed(views, out);
    times.push_back(std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count());
  }
  report(state, std::move(times));
}
BENCHMARK_CAPTURE(embed_texts, f32, wb::Precision::f32)->UseRealTime()->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(embed_texts, f16, wb::Precision::f16)->UseRealTime()->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(embed_texts, bf16, wb::Precision::bf16)->UseRealTime()->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(embed_texts, int8, wb::Precision::int8)->UseRealTime()->Unit(benchmark::kMillisecond);

// Times opening, from a file in the page cache to a ready Embedder.
void ready(benchmark::State& state, wb::Precision precision) {
  std::vector<double> times;
  for (auto _ : state) {
    const auto begin = std::chrono::steady_clock::now();
    const wb::Embedder it(opened(), options(precision));
    times.push_back(std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count());
    benchmark::DoNotOptimize(it.dimension());
  }
  report(state, std::move(times));
}
BENCHMARK_CAPTURE(ready, f32, wb::Precision::f32)->UseRealTime()->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(ready, f16, wb::Precision::f16)->UseRealTime()->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(ready, bf16, wb::Precision::bf16)->UseRealTime()->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(ready, int8, wb::Precision::int8)->UseRealTime()->Unit(benchmark::kMillisecond);

}  // namespace
