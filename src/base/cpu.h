// SPDX-License-Identifier: Apache-2.0
// What this x86-64 processor can do, and the system lets programs use. Ours, because __builtin_cpu_supports() needs a
// run-time library of the compiler's, which the one that makes the released wheels (zig's) has only as a stub that says
// no.
#pragma once

namespace weighbridge::base {

enum class Cpu : unsigned {
  sse41,
  pclmul,
  fma,
  f16c,
  bmi,
  bmi2,
  avx2,
  sha,
  vpclmulqdq,
  avx512f,
  avx512bw,
  avx512dq,
  avx512vl,
  avx512vnni,
  avx512fp16,
  avx512bf16,
};

// Whether all of them are there. False on other processors.
bool cpu_has_features(unsigned mask) noexcept;
template <class... Features> bool cpu_has(Features... features) noexcept {
  return cpu_has_features(((1u << static_cast<unsigned>(features)) | ...));
}

}  // namespace weighbridge::base
