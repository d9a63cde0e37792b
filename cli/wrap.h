// SPDX-License-Identifier: Apache-2.0
// Running text in lines of a given width, with hanging indents.
#pragma once
#include <cstddef>
#include <string>
#include <string_view>

namespace weighbridge::cli {

// How wide help may be: the terminal on standard output, at least 40 and at most 100 columns; 80 where it is none.
std::size_t help_columns();

// `text`, which flows, for a line of which `used` columns are taken; what does not fit goes on below, behind `indent`
// blanks. A '\n' in it begins a line anew. No line break at its end.
std::string wrapped(std::string_view text, std::size_t columns, std::size_t used, std::size_t indent);
// The same of a command for a shell: lines are broken between its words, a flag stays with its value.
std::string wrapped_command(std::string_view command, std::size_t columns, std::size_t used, std::size_t indent);

}  // namespace weighbridge::cli
