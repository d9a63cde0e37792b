// SPDX-License-Identifier: Apache-2.0
// Ctrl-C, and the polite kills. Owns the signal handlers.
#pragma once
#include <string_view>

namespace weighbridge::cli {

// For verbs that write nothing: a signal ends the process at once, with 128 plus its number.
void end_on_interrupt() noexcept;
// For verbs that write: the first signal is only noted, so that the temporary is removed; a second one kills.
void note_interrupts() noexcept;
// For verbs that read mapped files: one that shrinks meanwhile ends the process with status 4 and a sentence.
void end_on_bus_error() noexcept;
// Puts text on the terminal after which a bar stands there, or none: what ends the process at once takes a bar away,
// and otherwise ends the line that the terminal's ^C stands in. Nothing is drawn once the process ends.
void draw(std::string_view text, bool bar_stands) noexcept;
// The number of the signal that was noted; 0: none.
int interrupted() noexcept;

}  // namespace weighbridge::cli
