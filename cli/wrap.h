// SPDX-License-Identifier: Apache-2.0
// Wraps text to a given width, with a hanging indent.
#pragma once
#include <cstddef>
#include <string>
#include <string_view>

namespace weighbridge::cli {

// The width of help: that of the terminal on standard output, between 40 and 100 columns; 80 if it is not a terminal.
std::size_t help_columns();

// Wraps `text`, which starts after `used` columns of its line; following lines are indented by `indent` blanks. A '\n'
// in the text starts a new line. The result does not end in a line break.
std::string wrapped(std::string_view text, std::size_t columns, std::size_t used, std::size_t indent);
// The same for a shell command: breaks lines between words and keeps a flag with its value.
std::string wrapped_command(std::string_view command, std::size_t columns, std::size_t used, std::size_t indent);

}  // namespace weighbridge::cli
