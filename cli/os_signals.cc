// SPDX-License-Identifier: Apache-2.0
// Handlers for SIGINT, SIGTERM and SIGHUP. A signal that was ignored when the process began (nohup, background) stays
// ignored.
#include "interrupt.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstddef>
#include <system_error>
#include <thread>
#include <utility>

#include "weighbridge/output.h"

namespace weighbridge::cli {
namespace {

volatile sig_atomic_t noted = 0, on_terminal = 0;
std::atomic<bool> bar_drawn = false, drawing = false, exiting = false;
int wake[2] = {-1, -1};  // a pipe from the handler to the thread that watches
static_assert(std::atomic<bool>::is_always_lock_free, "handlers of signals use them");

void put(const char* text, std::size_t size) {
  const ssize_t ignored = ::write(STDERR_FILENO, text, size);
  static_cast<void>(ignored);
}

constexpr char kErase[] = "\r\x1b[J";

// Waits until another thread has finished drawing, so that its bar does not come after what is written now. The wait is
// bounded, because the interrupted thread itself may be the one that draws.
bool take_bar_away() {
  constexpr int kWaits = 50;
  exiting = true;
  for (int i = 0; drawing && i < kWaits; ++i) ::poll(nullptr, 0, 1);  // sleeps 1 ms; safe in a signal handler
  if (bar_drawn) put(kErase, sizeof kErase - 1);
  return bar_drawn;
}

void note(int number) {
  const int before = errno;
  noted = number;
  const char byte = 0;
  const ssize_t ignored = ::write(wake[1], &byte, 1);
  static_cast<void>(ignored);
  errno = before;
}

// The line break keeps the shell's prompt from following the terminal's ^C.
void end(int number) {
  if (!take_bar_away() && on_terminal != 0) put("\n", 1);
  ::_exit(128 + number);
}

// How long a job may take to notice a signal: most do at their next piece, but a batch of texts, a block of zstd at a
// high level or a sync to disk takes as long as it takes.
constexpr int kGrace = 120;  // milliseconds

// Waits for a signal to be noted, and ends the process if it has not ended by itself.
void watch() {
  char byte = 0;
  while (::read(wake[0], &byte, 1) < 0 && errno == EINTR) {}
  ::poll(nullptr, 0, kGrace);
  abandon_outputs();
  end(noted);
}

// Without the thread, jobs still notice signals by themselves.
void start_watching() noexcept {
  if (::pipe2(wake, O_CLOEXEC | O_NONBLOCK) != 0) return;
  ::fcntl(wake[0], F_SETFL, 0);  // only the handler must not block
  try {
    start_without_signals(watch).detach();
  } catch (const std::system_error&) {}
}

void bus_error(int) {
  constexpr char kSentence[] = "weighbridge: an open file was truncated, or its disk failed\n";
  if (exiting.exchange(true)) ::pause();  // another thread prints the message and ends the process
  take_bar_away();
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
void note_interrupts() noexcept {
  start_watching();
  install(note, static_cast<int>(SA_RESETHAND | SA_RESTART));
}
void draw(std::string_view text, bool bar_stands) noexcept {
  drawing = true;
  if (!exiting) {
    put(text.data(), text.size());
    bar_drawn = bar_stands;
  }
  drawing = false;
}
std::thread start_without_signals(std::function<void()> body) {
  struct Held {
    Held() {
      sigset_t all;
      ::sigfillset(&all);
      ::pthread_sigmask(SIG_SETMASK, &all, &old);
    }
    ~Held() { ::pthread_sigmask(SIG_SETMASK, &old, nullptr); }
    sigset_t old{};
  };
  const Held held;
  return std::thread(std::move(body));
}
int interrupted() noexcept { return noted; }

}  // namespace weighbridge::cli
