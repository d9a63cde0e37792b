// SPDX-License-Identifier: Apache-2.0
// "Did you mean": the nearest word of a short list to a mistyped one.
#pragma once
#include <span>
#include <string>
#include <string_view>

namespace weighbridge::cli {

// The one word that begins with what was typed. If there is not exactly one, the word at the smallest edit distance,
// where swapping two neighboring letters counts as one edit. Empty if that takes more than one edit and more than a
// third of the letters. Ignores case.
std::string_view nearest_word(std::string_view typed, std::span<const std::string_view> words);
// The file in the same folder whose name is nearest to that of a missing path; empty if none is near.
std::string nearest_file(std::string_view path);

}  // namespace weighbridge::cli
