// SPDX-License-Identifier: Apache-2.0
// Reads standard input in glances, between which a signal is noticed.
#include "standard_input.h"

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "interrupt.h"
#include "os.h"
#include "session.h"

namespace weighbridge::cli {
namespace {

constexpr int kPollTime = 100;  // milliseconds; another thread may have got the signal, or it came just before poll()
constexpr std::size_t kPiece = std::size_t{1} << 20;

std::string temporary_folder() {
  const char* const named = std::getenv("TMPDIR");
  return named != nullptr && *named != 0 ? named : "/tmp";
}

// Empty: it could not be made, for the reason in `error`.
struct Temporary {
  os::OpenFile file{};
  int error = 0;
} prepared;

void make_temporary() {
  prepared.file = os::OpenFile::temporary(temporary_folder());
  prepared.error = errno;
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
  OpenFile(os::OpenFile file, std::uint64_t size) : file_(std::move(file)), size_(size) {}

  std::uint64_t size() const noexcept override { return size_; }
  std::string_view name() const noexcept override { return kStandardInput; }
  void read_at(std::uint64_t offset, std::span<std::byte> out) const override {
    if (offset > size_ || out.size() > size_ - offset)
      raise(Kind::misuse, "misuse/range", "a read goes beyond the end", std::string(kStandardInput));
    while (!out.empty()) {
      const std::ptrdiff_t got = file_.read_at(offset, out);
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
  const os::OpenFile file_;
  const std::uint64_t size_;
};

[[noreturn]] void refuse_more(std::uint64_t maximum) {
  raise(Kind::limit, "limit/input", "there are more bytes than the limit of " + std::to_string(maximum),
        std::string(kStandardInput), {Hint::What::limit, "input", {}});
}

}  // namespace

std::size_t read_standard_input(std::span<std::byte> out) {
  for (;;) {
    const std::ptrdiff_t got = os::read_input(out, kPollTime);
    if (interrupted() != 0) throw Cancelled{};
    if (got >= 0) return static_cast<std::size_t>(got);
    if (errno != EINTR && errno != EAGAIN)
      raise(Kind::io, "io/read", std::string("cannot be read: ") + std::strerror(errno), std::string(kStandardInput));
  }
}

void prepare_standard_input(const Arguments& arguments) {
  if (std::ranges::find(arguments.operands, "-") == arguments.operands.end()) return;
  if (!os::input_is_file()) make_temporary();
}

std::shared_ptr<const Source> spool_standard_input(std::uint64_t maximum,
                                                   const std::function<bool(std::uint64_t, std::uint64_t)>& progress) {
  if (auto own = os::OpenFile::standard_input())
    if (const auto size = own.size()) return std::make_shared<const OpenFile>(std::move(own), *size);
  if (!prepared.file) make_temporary();  // not confined, or what was read before is missing
  if (!prepared.file) fail_to_hold(0, prepared.error);
  std::vector<std::byte> piece(kPiece);
  std::uint64_t held = 0;
  for (;;) {
    const std::size_t got = read_standard_input(piece);
    if (got == 0) break;
    if (got > maximum - held) refuse_more(maximum);
    for (std::size_t done = 0; done < got;) {
      const std::ptrdiff_t wrote = prepared.file.append(std::span(piece).subspan(done, got - done));
      if (wrote < 0) fail_to_hold(held + done, errno);
      done += static_cast<std::size_t>(wrote);
    }
    held += got;
    if (!progress(held, 0)) throw Cancelled{};
  }
  return std::make_shared<const OpenFile>(std::exchange(prepared.file, {}), held);
}

}  // namespace weighbridge::cli
