// SPDX-License-Identifier: Apache-2.0
// Owns the signal handlers: SIGINT (Ctrl-C), SIGTERM, SIGHUP and SIGBUS.
#pragma once
#include <functional>
#include <string_view>
#include <thread>

namespace weighbridge::cli {

// For verbs that write nothing: a signal ends the process at once, with 128 plus its number.
void end_on_interrupt() noexcept;
// For verbs that write: the first signal is only noted, so that temporary files can be removed. A job that has not
// stopped soon after is ended without it, and its temporary files are removed from outside. A second signal kills.
void note_interrupts() noexcept;
// For verbs that read mapped files: if a mapped file shrinks, the process prints a message and ends with status 4.
void end_on_bus_error() noexcept;
// Draws on the terminal. `bar_stands`: whether a progress bar is visible afterwards. A handler that ends the process
// erases the bar; without one, it ends the line in which the terminal echoed ^C. Draws nothing once the process is
// ending.
void draw(std::string_view text, bool bar_stands) noexcept;
// Starts a thread that gets none of these signals, so that they interrupt the reads of the working thread, which has to
// clean up. Throws std::system_error.
std::thread start_without_signals(std::function<void()> body);
// The number of the noted signal; 0 if there is none.
int interrupted() noexcept;

}  // namespace weighbridge::cli
