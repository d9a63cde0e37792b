// SPDX-License-Identifier: Apache-2.0
// One list of the open descriptors of the process, the one used last in front. Files are opened and closed outside of
// its lock.
#include "io/descriptor.h"

#include <algorithm>
#include <cerrno>
#include <mutex>
#include <utility>
#include <vector>

#include "base/os.h"

namespace weighbridge::io {
namespace {

// A quarter of what the process may open, and at most 64, so that most descriptors stay free for the program around the
// library. At least 4, for files that are in use at once.
constexpr std::size_t kMaxOpen = 64, kMinOpen = 4, kPart = 4;

std::size_t max_open() noexcept { return std::clamp(os::max_open_files() / kPart, kMinOpen, kMaxOpen); }

}  // namespace

class Descriptor::OpenOnes {
 public:
  // Never destroyed, because sources of static storage may outlive it.
  static OpenOnes& instance() {
    static OpenOnes* const all = [] {
      auto* const made = new OpenOnes;
      // After a fork, the child must not wait for a lock that a thread of the parent held.
      base::at_fork([] { instance().lock_.lock(); }, [] { instance().lock_.unlock(); },
                    [] { instance().lock_.unlock(); });
      return made;
    }();
    return *all;
  }

  // Null if it is closed.
  std::shared_ptr<const Fd> find(const Descriptor& one) {
    const std::lock_guard lock(lock_);
    if (one.fd_) order_.splice(order_.begin(), order_, one.at_);
    return one.fd_;
  }

  // Another thread may have opened it first; then use that descriptor.
  std::shared_ptr<const Fd> add(const Descriptor& one, std::shared_ptr<const Fd> fd) {
    std::vector<std::shared_ptr<const Fd>> closing;
    const std::lock_guard lock(lock_);
    if (!one.fd_) {
      order_.push_front(&one);
      one.at_ = order_.begin();
      one.fd_ = std::move(fd);
    }
    const auto kept = one.fd_;
    closing = take(max_open());
    return kept;
  }

  void remove(const Descriptor& one) noexcept {
    const std::lock_guard lock(lock_);
    if (one.fd_) order_.erase(one.at_);
  }

  bool close_all() {
    std::vector<std::shared_ptr<const Fd>> closing;
    const std::lock_guard lock(lock_);
    closing = take(0);
    return !closing.empty();
  }

  std::size_t size() noexcept {
    const std::lock_guard lock(lock_);
    return order_.size();
  }

 private:
  // Those beyond the first `kept`, to be closed by the caller.
  std::vector<std::shared_ptr<const Fd>> take(std::size_t kept) {
    std::vector<std::shared_ptr<const Fd>> out;
    while (order_.size() > kept) {
      out.push_back(std::move(order_.back()->fd_));
      order_.pop_back();
    }
    return out;
  }

  std::mutex lock_;
  std::list<const Descriptor*> order_;
};

Descriptor::Descriptor(Fd fd, Again again)
    : again_(std::move(again)), fd_(again_ ? nullptr : std::make_shared<const Fd>(std::move(fd))) {
  if (again_) OpenOnes::instance().add(*this, std::make_shared<const Fd>(std::move(fd)));
}

Descriptor::~Descriptor() {
  if (again_) OpenOnes::instance().remove(*this);
}

std::shared_ptr<const Fd> Descriptor::use() const {
  if (!again_) return fd_;
  OpenOnes& all = OpenOnes::instance();
  if (auto open = all.find(*this)) return open;
  return all.add(*this, std::make_shared<const Fd>(again_()));
}

bool Descriptor::close_unused() { return OpenOnes::instance().close_all(); }
std::size_t Descriptor::count_open() noexcept { return OpenOnes::instance().size(); }

Fd open_making_room(const std::function<Fd()>& open) {
  Fd out = open();
  if (out || (errno != EMFILE && errno != ENFILE)) return out;
  const int reason = errno;
  if (Descriptor::close_unused()) return open();
  errno = reason;
  return out;
}

}  // namespace weighbridge::io
