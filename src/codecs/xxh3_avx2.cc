// SPDX-License-Identifier: Apache-2.0
// XXH3 with AVX2.
#define WB_XXH3_KERNEL kXxh3Avx2
#define WB_XXH3_NAME "avx2"
#include "codecs/xxh3_kernel.inc"
