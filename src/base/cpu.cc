// SPDX-License-Identifier: Apache-2.0
// Asks CPUID, and XGETBV for the registers that the system saves.
#include "base/cpu.h"

#if defined(__x86_64__)
#include <cpuid.h>
#endif

namespace weighbridge::base {
namespace {

#if defined(__x86_64__)
// What of XCR0 says that the registers of AVX, and of AVX-512, are saved (Intel's manual, volume 1, section 14.3
// and 15.2).
constexpr unsigned kAvxState = 0x6, kAvx512State = 0xE6;

unsigned saved_state() noexcept {
  unsigned low = 0, high = 0;
  asm volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));  // _xgetbv() wants an option of the compiler
  return low;
}

unsigned find() noexcept {
  unsigned found = 0;
  const auto add = [&](Cpu feature, bool there) { found |= unsigned{there} << static_cast<unsigned>(feature); };
  const auto bit = [](unsigned of, unsigned at) { return (of >> at & 1) != 0; };
  unsigned a = 0, b = 0, c = 0, d = 0;
  if (__get_cpuid(1, &a, &b, &c, &d) == 0) return 0;
  const unsigned state = bit(c, 27) ? saved_state() : 0;  // OSXSAVE
  const bool avx = bit(c, 28) && (state & kAvxState) == kAvxState;
  add(Cpu::sse41, bit(c, 19));
  add(Cpu::pclmul, bit(c, 1));
  add(Cpu::fma, avx && bit(c, 12));
  add(Cpu::f16c, avx && bit(c, 29));
  if (__get_cpuid_count(7, 0, &a, &b, &c, &d) == 0) return found;
  const bool avx512 = avx && bit(b, 16) && (state & kAvx512State) == kAvx512State;
  add(Cpu::bmi, bit(b, 3));
  add(Cpu::bmi2, bit(b, 8));
  add(Cpu::sha, bit(b, 29));
  add(Cpu::avx2, avx && bit(b, 5));
  add(Cpu::vpclmulqdq, avx && bit(c, 10));
  add(Cpu::avx512f, avx512);
  add(Cpu::avx512dq, avx512 && bit(b, 17));
  add(Cpu::avx512bw, avx512 && bit(b, 30));
  add(Cpu::avx512vl, avx512 && bit(b, 31));
  add(Cpu::avx512vnni, avx512 && bit(c, 11));
  add(Cpu::avx512fp16, avx512 && bit(d, 23));
  if (__get_cpuid_count(7, 1, &a, &b, &c, &d) != 0) add(Cpu::avx512bf16, avx512 && bit(a, 5));
  return found;
}
#else
unsigned find() noexcept { return 0; }
#endif

}  // namespace

bool cpu_has_features(unsigned mask) noexcept {
  static const unsigned found = find();
  return (found & mask) == mask;
}

}  // namespace weighbridge::base
