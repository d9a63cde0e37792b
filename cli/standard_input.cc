// SPDX-License-Identifier: Apache-2.0
// Waits in poll(), which a signal interrupts; the system would restart a read().
#include "standard_input.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "interrupt.h"
#include "session.h"

namespace weighbridge::cli {
namespace {

constexpr int kGlance = 100;  // milliseconds; another thread may have got the signal, or it came just before poll()
constexpr std::size_t kPiece = std::size_t{1} << 20;

std::string temporary_folder() {
  const char* const named = std::getenv("TMPDIR");
  return named != nullptr && *named != 0 ? named : "/tmp";
}

// -1: it could not be made, for the reason in `error`.
struct Temporary {
  int descriptor = -1, error = 0;
} prepared;

int make_temporary() {
  const std::string folder = temporary_folder();
#ifdef O_TMPFILE
  if (const int made = ::open(folder.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600); made >= 0) return made;
#endif
  std::string name = folder + "/weighbridge-XXXXXX";  // for filesystems that cannot make unnamed files
  const int made = ::mkstemp(name.data());
  if (made >= 0) ::unlink(name.c_str());
  return made;
}

[[noreturn]] void fail_to_hold(std::uint64_t held, int error) {
  raise(Kind::io, "io/write",
        "cannot be held in a temporary file in " + temporary_folder() + " (" + grouped(held) +
            " bytes so far): " + std::strerror(error) + "; set TMPDIR to use another folder",
        std::string(kStandardInput));
}

// A file that is open, read in place.
class OpenFile final : public Source {
 public:
  OpenFile(int descriptor, std::uint64_t size) : descriptor_(descriptor), size_(size) {}
  ~OpenFile() override { ::close(descriptor_); }
  OpenFile(const OpenFile&) = delete;
  OpenFile& operator=(const OpenFile&) = delete;

  std::uint64_t size() const noexcept override { return size_; }
  std::string_view name() const noexcept override { return kStandardInput; }
  void read_at(std::uint64_t offset, std::span<std::byte> out) const override {
    if (offset > size_ || out.size() > size_ - offset)
      raise(Kind::misuse, "misuse/range", "a read goes beyond the end", std::string(kStandardInput));
    while (!out.empty()) {
      const ssize_t got = ::pread(descriptor_, out.data(), out.size(), static_cast<off_t>(offset));
      if (got < 0 && errno == EINTR) continue;
      if (got <= 0)
        raise(Kind::io, got < 0 ? "io/read" : "io/changed",
              got < 0 ? std::string("cannot be read: ") + std::strerror(errno)
                      : "the file became shorter while it was read",
              std::string(kStandardInput));
      offset += static_cast<std::uint64_t>(got);
      out = out.subspan(static_cast<std::size_t>(got));
    }
  }

 private:
  const int descriptor_;
  const std::uint64_t size_;
};

[[noreturn]] void refuse_more(std::uint64_t most) {
  raise(Kind::limit, "limit/input", "there are more bytes than the limit of " + std::to_string(most),
        std::string(kStandardInput), {Hint::What::limit, "input", {}});
}

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
      raise(Kind::io, "io/read", std::string("cannot be read: ") + std::strerror(errno), std::string(kStandardInput));
  }
}

void prepare_standard_input(const Arguments& arguments) {
  if (std::ranges::find(arguments.operands, "-") == arguments.operands.end()) return;
  struct stat status {};
  if (::fstat(STDIN_FILENO, &status) == 0 && S_ISREG(status.st_mode)) return;
  prepared.descriptor = make_temporary();
  prepared.error = errno;
}

std::shared_ptr<const Source> spool_standard_input(std::uint64_t most,
                                                   const std::function<bool(std::uint64_t, std::uint64_t)>& progress) {
  struct stat status {};
  if (::fstat(STDIN_FILENO, &status) == 0 && S_ISREG(status.st_mode) && ::lseek(STDIN_FILENO, 0, SEEK_CUR) == 0)
    if (const int own = ::fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 3); own >= 0)
      return std::make_shared<const OpenFile>(own, static_cast<std::uint64_t>(status.st_size));
  if (prepared.descriptor < 0)
    prepared = {make_temporary(), errno};  // not confined, or what was read before is missing
  if (prepared.descriptor < 0) fail_to_hold(0, prepared.error);
  std::vector<std::byte> piece(kPiece);
  std::uint64_t held = 0;
  for (;;) {
    const std::size_t got = read_standard_input(piece);
    if (got == 0) break;
    if (got > most - held) refuse_more(most);
    for (std::size_t done = 0; done < got;) {
      const ssize_t wrote = ::write(prepared.descriptor, piece.data() + done, got - done);
      if (wrote < 0 && errno == EINTR) continue;
      if (wrote < 0) fail_to_hold(held + done, errno);
      done += static_cast<std::size_t>(wrote);
    }
    held += got;
    if (!progress(held, 0)) throw Cancelled{};
  }
  return std::make_shared<const OpenFile>(prepared.descriptor, held);
}

}  // namespace weighbridge::cli
