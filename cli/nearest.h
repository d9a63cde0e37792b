// SPDX-License-Identifier: Apache-2.0
// "Did you mean": the word of a short list that is nearest to one that was typed.
#pragma once
#include <span>
#include <string_view>

namespace weighbridge::cli {

// Empty where none is near: more than a third of the letters, and more than two, would have to change.
std::string_view nearest_word(std::string_view typed, std::span<const std::string_view> words);

}  // namespace weighbridge::cli
