// SPDX-License-Identifier: Apache-2.0
/// \file
/// Text from files made safe and aligned for people (machine output stays exact and needs neither), and globs over
/// names.
#pragma once
#include <cstddef>
#include <string>
#include <string_view>

namespace weighbridge {

/// The text with everything visible that a terminal would obey or hide: control characters and invalid UTF-8 bytes as
/// `\n`, `\r`, `\t` or `\x1b`, `\xff`; C1 controls, bidirectional marks, zero-width and other format characters, line
/// and paragraph separators as `\u{202e}`; a backslash as two, so that different texts stay different. The result is
/// valid UTF-8.
std::string escape_for_display(std::string_view text);

/// Columns that a terminal gives the text: 2 for East Asian wide and fullwidth characters and emoji, 0 for combining
/// marks, controls and format characters, 1 for all else, each invalid byte included. Source: Unicode 15.0.
std::size_t display_width(std::string_view text) noexcept;

/// Whether the whole text matches: `*` any characters, `?` one character of UTF-8, `[a-z]` and `[!a-z]` one of these
/// bytes, or none of them. Takes time proportional to the product of both lengths at worst.
bool matches_glob(std::string_view pattern, std::string_view text) noexcept;

}  // namespace weighbridge
