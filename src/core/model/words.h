// SPDX-License-Identifier: Apache-2.0
// Sizes, shapes, names and long texts in messages, and the error for an invalid option value. Also finds the names most
// similar to one that is absent.
#pragma once
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/fail.h"
#include "weighbridge/context.h"
#include "weighbridge/model.h"
#include "weighbridge/source.h"

namespace weighbridge::core {

std::string bytes_text(std::uint64_t n);
std::string missing_text(std::uint64_t bytes);

// "[2, 3]"
std::string shape_text(Shape shape);

// In double quotes, not escaped: front ends escape what they show.
std::string quoted(std::string_view text);

// The beginning of a text, cut between characters.
std::string excerpt(std::string_view text, std::size_t maximum = 40);

// Whether the word is one of these, which spaces separate.
bool has_word(std::string_view words, std::string_view word) noexcept;

// Whether it is a plain name of a file or folder, not a path, "." or "..".
bool is_plain_name(std::string_view name);

// Throws Error{misuse} that names the valid values of the option.
[[noreturn]] void refuse_word(std::string_view option, std::string_view text, std::span<const std::string_view> words);
void check_word(std::string_view option, std::string_view text, std::span<const std::string_view> words);

// The names most similar to one that is absent, for error messages.

// At most `maximum` of `count` names, best first. A name that contains the wanted one, or is contained in it, always
// counts as similar; others by edit distance.
std::vector<std::uint32_t> nearest(std::string_view wanted, std::uint32_t count, std::size_t maximum,
                                   const std::function<std::string_view(std::uint32_t)>& name_of);
// Of these names, the end of a sentence about one that is absent: "; the nearest is "a", "b"", or empty.
std::string near_text(std::string_view wanted, std::uint32_t count,
                      const std::function<std::string_view(std::uint32_t)>& name_of);

// The whole file, which messages call `what`. Throws Error{limit} if it is larger than Limits::header.
std::string whole_text(const Source&, const Limits&, std::string_view what);

}  // namespace weighbridge::core
