// SPDX-License-Identifier: Apache-2.0
// Handlers for SIGINT, SIGTERM and SIGHUP. A signal that was ignored when the process began (nohup, background) stays
// ignored.
#include "interrupt.h"

#include <signal.h>
#include <unistd.h>

#include <cstddef>
#include <initializer_list>

namespace weighbridge::cli {
namespace {

volatile sig_atomic_t noted = 0, bar_drawn = 0, on_terminal = 0;

void put(const char* text, std::size_t size) {
  const ssize_t ignored = ::write(STDERR_FILENO, text, size);
  static_cast<void>(ignored);
}

// What a prompt would otherwise stand behind.
void leave_line() {
  constexpr char kErase[] = "\r\x1b[J";
  if (bar_drawn != 0)
    put(kErase, sizeof kErase - 1);
  else if (on_terminal != 0)
    put("\n", 1);
}

void note(int number) { noted = number; }

void end(int number) {
  leave_line();
  ::_exit(128 + number);
}

void bus_error(int) {
  constexpr char kSentence[] = "weighbridge: a file that is in use has become shorter, or its disk failed\n";
  if (bar_drawn != 0) leave_line();
  put(kSentence, sizeof kSentence - 1);
  ::_exit(4);
}

void install(void (*handler)(int), int flags) noexcept {
  on_terminal = ::isatty(STDERR_FILENO) == 1 ? 1 : 0;
  for (const int number : {SIGINT, SIGTERM, SIGHUP}) {
    struct sigaction old {};
    if (::sigaction(number, nullptr, &old) != 0 || old.sa_handler == SIG_IGN) continue;
    struct sigaction action {};
    action.sa_handler = handler;
    action.sa_flags = flags;
    ::sigemptyset(&action.sa_mask);
    ::sigaction(number, &action, nullptr);
  }
}

}  // namespace

void end_on_interrupt() noexcept { install(end, 0); }
void end_on_bus_error() noexcept {
  struct sigaction action {};
  action.sa_handler = bus_error;
  ::sigemptyset(&action.sa_mask);
  ::sigaction(SIGBUS, &action, nullptr);
}
void note_interrupts() noexcept { install(note, static_cast<int>(SA_RESETHAND | SA_RESTART)); }
void note_bar(bool drawn) noexcept { bar_drawn = drawn ? 1 : 0; }
int interrupted() noexcept { return noted; }

}  // namespace weighbridge::cli
