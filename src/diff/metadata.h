// SPDX-License-Identifier: Apache-2.0
// Differences of metadata and of tokenizers.
#pragma once
#include <vector>

#include "weighbridge/diff.h"

namespace weighbridge::comparison {

// With `exact`, values of different types differ; else those with the same text are equal.
std::vector<MetadataDiff> compare_metadata(const Model& a, const Model& b, bool exact);
// The attributes of a dense tensor that both models have.
void compare_attributes(const Tensor& a, const Tensor& b, bool exact, bool same_format, std::vector<MetadataDiff>& out);
std::vector<MetadataDiff> compare_tokenizers(const Model& a, const Model& b);

}  // namespace weighbridge::comparison
