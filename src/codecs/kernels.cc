// SPDX-License-Identifier: Apache-2.0
// Compiles kernels.inc for each instruction set and chooses among them. The compiler vectorizes its plain loops.
#include "codecs/kernels.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <type_traits>
#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include "base/cpu.h"
#include "base/endian.h"
#include "codecs/cast.h"
#include "codecs/ggml_grid.h"
#include "codecs/ggml_tables.h"
#include "codecs/small_float.h"

namespace weighbridge::codecs {
namespace {

namespace plain {
#include "codecs/kernels.inc"
constexpr Kernels kKernels = make_kernels("plain");
}  // namespace plain

// Encoders alone, contracted.
#define WEIGHBRIDGE_CONTRACTED
namespace contracted {
using plain::Byte, plain::ggml_f16;
#include "codecs/ggml_lattice.inc"
constexpr GgmlEncoders kEncoders = make_ggml_encoders();
}  // namespace contracted
#undef WEIGHBRIDGE_CONTRACTED

#if defined(__x86_64__)
// Code between the two pragmas may use the named instructions. Functions from headers are not affected, and are
// inlined.
#if defined(__clang__)
#pragma clang attribute push(__attribute__((target("avx2,bmi,bmi2"))), apply_to = function)
#else
#pragma GCC push_options
#pragma GCC target("avx2,bmi,bmi2")
#endif
namespace avx2 {
#define WEIGHBRIDGE_AVX2
#include "codecs/kernels.inc"
#undef WEIGHBRIDGE_AVX2
constexpr Kernels kKernels = make_kernels("avx2");
}  // namespace avx2
#if defined(__clang__)
#pragma clang attribute pop
#pragma clang attribute push(__attribute__((target("avx2,bmi,bmi2,fma"))), apply_to = function)
#else
#pragma GCC pop_options
#pragma GCC push_options
#pragma GCC target("avx2,bmi,bmi2,fma")
#endif
namespace fma {
#define WEIGHBRIDGE_AVX2
#define WEIGHBRIDGE_CONTRACTED
using plain::Byte, plain::ggml_f16;
#include "codecs/ggml_lattice.inc"
constexpr GgmlEncoders kEncoders = make_ggml_encoders();
#undef WEIGHBRIDGE_CONTRACTED
#undef WEIGHBRIDGE_AVX2
}  // namespace fma
#if defined(__clang__)
#pragma clang attribute pop
#pragma clang attribute push(__attribute__((target("avx2,bmi,bmi2,avx512f,avx512bw,avx512dq,avx512vl"))), \
                                 apply_to = function)
#else
#pragma GCC pop_options
#pragma GCC push_options
#pragma GCC target("avx2,bmi,bmi2,avx512f,avx512bw,avx512dq,avx512vl")
#endif
namespace avx512 {
#define WEIGHBRIDGE_AVX512
#include "codecs/kernels.inc"
#undef WEIGHBRIDGE_AVX512
constexpr Kernels kKernels = make_kernels("avx512");
}  // namespace avx512
#if defined(__clang__)
#pragma clang attribute pop
#else
#pragma GCC pop_options
#endif
#endif  // __x86_64__

struct Choice {
  const Kernels* sets[3] = {&plain::kKernels, nullptr, nullptr};
  std::size_t count = 1;
  const GgmlEncoders* contracted[2] = {&contracted::kEncoders, nullptr};
  std::size_t contracted_count = 1;

  Choice() noexcept {
#if defined(__x86_64__)
    using base::Cpu;
    const bool has_avx2 = base::cpu_has(Cpu::avx2, Cpu::bmi, Cpu::bmi2);
    if (has_avx2) sets[count++] = &avx2::kKernels;
    if (has_avx2 && base::cpu_has(Cpu::avx512f, Cpu::avx512bw, Cpu::avx512dq, Cpu::avx512vl))
      sets[count++] = &avx512::kKernels;
    if (has_avx2 && base::cpu_has(Cpu::fma)) contracted[contracted_count++] = &fma::kEncoders;
#endif
  }
};

const Choice& choice() noexcept {
  static const Choice made;
  return made;
}

// The elements as whole bytes: `in`, or those of a packed dtype in `codes`.
const std::byte* unpacked(DType from, const std::byte* in, std::byte (&codes)[kBlock], std::size_t n) noexcept {
  const std::uint32_t bits = info(from).bits;
  if (bits >= 8) return in;
  unpack_codes(bits, {in, (n * bits + 7) / 8}, {codes, n});
  return codes;
}

}  // namespace

const Kernels& kernels() noexcept { return *choice().sets[choice().count - 1]; }
std::span<const Kernels* const> all_kernels() noexcept { return {choice().sets, choice().count}; }
const GgmlEncoders& contracted_encoders() noexcept { return *all_contracted_encoders().back(); }
std::span<const GgmlEncoders* const> all_contracted_encoders() noexcept {
  return {choice().contracted, choice().contracted_count};
}

void load_f32(DType from, const std::byte* in, float* to, std::size_t n) noexcept {
  alignas(64) std::byte codes[kBlock];
  kernels().to_f32[static_cast<std::size_t>(from)](unpacked(from, in, codes, n), to, n);
}

void load_i64(DType from, const std::byte* in, std::int64_t* to, std::size_t n) noexcept {
  alignas(64) std::byte codes[kBlock];
  kernels().to_i64[static_cast<std::size_t>(from)](unpacked(from, in, codes, n), to, n);
}

void load_f64(DType from, const std::byte* in, double* to, std::size_t n) noexcept {
  if (from == DType::f64) {
    for (std::size_t i = 0; i < n; ++i) to[i] = std::bit_cast<double>(base::load_le<std::uint64_t>(in + 8 * i));
  } else if (info(from).kind == DTypeKind::real) {
    alignas(64) float values[kBlock];
    load_f32(from, in, values, n);
    for (std::size_t i = 0; i < n; ++i) to[i] = static_cast<double>(values[i]);
  } else {
    alignas(64) std::int64_t values[kBlock];
    load_i64(from, in, values, n);
    if (from == DType::u64)
      for (std::size_t i = 0; i < n; ++i) to[i] = static_cast<double>(static_cast<std::uint64_t>(values[i]));
    else
      for (std::size_t i = 0; i < n; ++i) to[i] = static_cast<double>(values[i]);
  }
}

}  // namespace weighbridge::codecs
