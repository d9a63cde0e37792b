// SPDX-License-Identifier: Apache-2.0
// Descriptors 0, 1 and 2, the terminal, and files without names.
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>

#include "os.h"

namespace weighbridge::cli::os {
namespace {

constexpr int number_of(Stream stream) noexcept { return static_cast<int>(stream); }

template <typename Call> auto repeated(Call&& call) noexcept {
  auto out = call();
  while (out < 0 && errno == EINTR) out = call();
  return out;
}

std::optional<struct stat> file_at(int fd) noexcept {
  struct stat out {};
  if (::fstat(fd, &out) != 0 || !S_ISREG(out.st_mode)) return std::nullopt;
  return out;
}

void guard_standard_descriptors() noexcept {
  for (int fd = 0; fd <= 2; ++fd) {
    if (::fcntl(fd, F_GETFD) != -1 || errno != EBADF) continue;
    // open() returns the lowest free number, which is fd. Reading from it, or writing to it, fails.
    if (::open("/dev/null", fd == STDIN_FILENO ? O_WRONLY : O_RDONLY) < 0) return;
  }
}

// Shells allow 1,024 where the system would allow more.
void allow_many_files() noexcept {
  rlimit files{};
  if (::getrlimit(RLIMIT_NOFILE, &files) != 0 || files.rlim_cur >= files.rlim_max) return;
  files.rlim_cur = files.rlim_max;
  static_cast<void>(::setrlimit(RLIMIT_NOFILE, &files));
}

}  // namespace

void prepare_process() noexcept {
  ::signal(SIGXFSZ, SIG_IGN);
  ::signal(SIGPIPE, SIG_IGN);
  guard_standard_descriptors();
  allow_many_files();
}

bool is_terminal(Stream stream) noexcept { return ::isatty(number_of(stream)) == 1; }
std::size_t terminal_columns(Stream stream) noexcept {
  if (!is_terminal(stream)) return 0;
  struct winsize size {};
  return ::ioctl(number_of(stream), TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : 80;
}
std::ptrdiff_t write(Stream stream, const char* data, std::size_t size) noexcept {
  return repeated([&] { return ::write(number_of(stream), data, size); });
}
// Waits in poll(), which a signal interrupts; the system would restart a read().
std::ptrdiff_t read_input(std::span<std::byte> out, int milliseconds) noexcept {
  pollfd in{.fd = STDIN_FILENO, .events = POLLIN, .revents = 0};
  const int ready = ::poll(&in, 1, milliseconds);
  if (ready == 0) errno = EAGAIN;
  if (ready == 0 || (ready < 0 && errno == EINTR)) return -1;
  return ::read(STDIN_FILENO, out.data(), out.size());
}

OpenFile::~OpenFile() {
  if (fd_ >= 0) ::close(fd_);
}
OpenFile OpenFile::temporary(const std::string& folder) {
  if (const int made = ::open(folder.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600); made >= 0) return OpenFile(made);
  std::string name = folder + "/weighbridge-XXXXXX";  // for filesystems that cannot make unnamed files
  const int made = ::mkstemp(name.data());
  if (made >= 0) ::unlink(name.c_str());
  return OpenFile(made);
}
OpenFile OpenFile::standard_input() noexcept {
  if (!input_is_file() || ::lseek(STDIN_FILENO, 0, SEEK_CUR) != 0) return {};
  return OpenFile(::fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 3));
}
std::optional<std::uint64_t> OpenFile::size() const noexcept {
  const auto there = file_at(fd_);
  return there ? std::optional(static_cast<std::uint64_t>(there->st_size)) : std::nullopt;
}
std::ptrdiff_t OpenFile::read_at(std::uint64_t offset, std::span<std::byte> out) const noexcept {
  return repeated([&] { return ::pread(fd_, out.data(), out.size(), static_cast<off_t>(offset)); });
}
std::ptrdiff_t OpenFile::append(std::span<const std::byte> bytes) noexcept {
  return repeated([&] { return ::write(fd_, bytes.data(), bytes.size()); });
}
bool input_is_file() noexcept { return file_at(STDIN_FILENO).has_value(); }

}  // namespace weighbridge::cli::os
