// SPDX-License-Identifier: Apache-2.0
// What plans say of tensors that are codes of a scheme (core/coded.h): they are copied as they are, with what completes
// them, or not at all.
#pragma once
#include <string_view>
#include <vector>

#include "core/format.h"
#include "weighbridge/convert.h"

namespace weighbridge::convert {

// Whether the options, or the target (which takes every tensor for numbers), need the values of tensors.
bool needs_values(const Options&, std::string_view target) noexcept;
// A blocker for each scheme that the model's tensors belong to.
std::vector<Item> refuse_codes(const Model&);
// The options of a copy.
Options without_values(Options);

// Of a layout of `model`: codes that the writer would change or leave out become blockers, which name the scheme. Codes
// that the output does not show as such are losses. In a container of another format than `from`, copied codes are a
// change that is listed.
void judge_codes(core::WriteLayout&, const Model& model, std::string_view from, std::string_view to);

}  // namespace weighbridge::convert
