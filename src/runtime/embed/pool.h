// SPDX-License-Identifier: Apache-2.0
// How the vectors of tokens become one: each pooling of sentence-transformers, over the tokens after the first `apart`.
#pragma once
#include <cstddef>

#include "weighbridge/embed.h"

namespace weighbridge::bert {

// rows [length, width]; apart < length. Writes `width` numbers.
void pool(Pooling, const float* rows, std::size_t length, std::size_t apart, std::size_t width, float* out);

// sum[i] += weight * x[i]; `first`: sum[i] = weight * x[i]. The same bits on every processor.
void add_weighted(const float* x, std::size_t n, float weight, bool first, float* sum);

}  // namespace weighbridge::bert
