// SPDX-License-Identifier: Apache-2.0
// XXH3 with AVX-512F.
#define WB_XXH3_KERNEL kXxh3Avx512
#define WB_XXH3_NAME "avx512"
#include "codecs/xxh3_kernel.inc"
