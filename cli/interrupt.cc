// SPDX-License-Identifier: Apache-2.0
// Handlers for SIGINT, SIGTERM and SIGHUP. A signal that was ignored when the process began (nohup, background) stays
// ignored.
#include "interrupt.h"

#include <signal.h>
#include <unistd.h>

#include <initializer_list>

namespace weighbridge::cli {
namespace {

volatile sig_atomic_t noted = 0;

void note(int number) { noted = number; }

void end(int number) { ::_exit(128 + number); }

void bus_error(int) {
  constexpr char kSentence[] = "weighbridge: a file that is in use has become shorter, or its disk failed\n";
  const ssize_t ignored = ::write(STDERR_FILENO, kSentence, sizeof kSentence - 1);
  static_cast<void>(ignored);
  ::_exit(4);
}

void install(void (*handler)(int), int flags) noexcept {
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
int interrupted() noexcept { return noted; }

}  // namespace weighbridge::cli
