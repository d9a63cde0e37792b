// SPDX-License-Identifier: Apache-2.0
// Waits in poll(), which a signal interrupts; the system would restart a read().
#include "standard_input.h"

#include <poll.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string>

#include "interrupt.h"
#include "session.h"

namespace weighbridge::cli {
namespace {

constexpr int kGlance = 100;  // milliseconds; another thread may have got the signal, or it came just before poll()

}  // namespace

std::size_t read_standard_input(std::span<std::byte> out) {
  for (;;) {
    pollfd in{.fd = STDIN_FILENO, .events = POLLIN, .revents = 0};
    const int ready = ::poll(&in, 1, kGlance);
    if (interrupted() != 0) throw Cancelled{};
    if (ready == 0 || (ready < 0 && errno == EINTR)) continue;
    const ssize_t got = ::read(STDIN_FILENO, out.data(), out.size());
    if (got >= 0) return static_cast<std::size_t>(got);
    if (errno != EINTR && errno != EAGAIN)
      raise(Kind::io, "io/read", std::string("cannot be read: ") + std::strerror(errno), "standard input");
  }
}

}  // namespace weighbridge::cli
