// SPDX-License-Identifier: Apache-2.0
// "Did you mean": the word of a short list that is nearest to one that was typed.
#pragma once
#include <span>
#include <string>
#include <string_view>

namespace weighbridge::cli {

// A word that the typed one begins, where it begins no other; else the one that takes the fewest changes: of a letter,
// or of two neighbors that changed places. Empty where more than a third of the letters, and more than one, would have
// to change. Capitals count as small letters.
std::string_view nearest_word(std::string_view typed, std::span<const std::string_view> words);
// The path whose name is nearest to that of a path where there is nothing, in the same folder; empty where none is
// near.
std::string nearest_file(std::string_view path);

}  // namespace weighbridge::cli
