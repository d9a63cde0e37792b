// SPDX-License-Identifier: Apache-2.0
// The processor is asked as the compiler's own library asks it.
#include "base/cpu.h"

#include <gtest/gtest.h>

namespace weighbridge::base {
namespace {

#if defined(__x86_64__) && !defined(_LIBCPP_VERSION)
TEST(Cpu, HasWhatTheCompilersLibrarySays) {
  __builtin_cpu_init();
#define WB_SAME(feature, name) EXPECT_EQ(cpu_has(Cpu::feature), __builtin_cpu_supports(name) != 0) << name
  WB_SAME(sse41, "sse4.1");
  WB_SAME(pclmul, "pclmul");
  WB_SAME(fma, "fma");
  WB_SAME(bmi, "bmi");
  WB_SAME(bmi2, "bmi2");
  WB_SAME(avx2, "avx2");
  WB_SAME(vpclmulqdq, "vpclmulqdq");
  WB_SAME(avx512f, "avx512f");
  WB_SAME(avx512bw, "avx512bw");
  WB_SAME(avx512dq, "avx512dq");
  WB_SAME(avx512vl, "avx512vl");
  WB_SAME(avx512vnni, "avx512vnni");
#undef WB_SAME
}
#endif

TEST(Cpu, HasSeveralFeaturesIfItHasEach) {
  for (const Cpu one : {Cpu::sse41, Cpu::avx2, Cpu::avx512f})
    for (const Cpu other : {Cpu::bmi, Cpu::fma, Cpu::avx512fp16})
      EXPECT_EQ(cpu_has(one, other), cpu_has(one) && cpu_has(other));
}

}  // namespace
}  // namespace weighbridge::base
