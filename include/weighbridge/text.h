// SPDX-License-Identifier: Apache-2.0
/// \file
/// Escapes and measures text from files for display, and matches globs. Machine-readable output stays exact and needs
/// neither.
#pragma once
#include <cstddef>
#include <string>
#include <string_view>

namespace weighbridge {

/// Escapes everything that a terminal would obey or hide: control characters and invalid UTF-8 bytes as `\n`, `\r`,
/// `\t` or `\x1b`, `\xff`; C1 controls, bidirectional marks, zero-width and other format characters, line and paragraph
/// separators as `\u{202e}`; a backslash as two, so that different texts stay different. The result is valid UTF-8.
std::string escape_for_display(std::string_view text);

/// Columns that the text takes on a terminal: 2 for East Asian wide and fullwidth characters and emoji, 0 for combining
/// marks, controls and format characters, 1 for everything else, including each invalid byte. From Unicode 15.0.
std::size_t display_width(std::string_view text) noexcept;

/// Whether the pattern matches the whole text. `*` matches any characters, `?` one UTF-8 character, `[a-z]` one byte in
/// the set, `[!a-z]` one byte not in it. The worst-case time is proportional to the product of both lengths.
bool matches_glob(std::string_view pattern, std::string_view text) noexcept;

}  // namespace weighbridge
