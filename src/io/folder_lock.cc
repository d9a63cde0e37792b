// SPDX-License-Identifier: Apache-2.0
// Waits for a lock and still reacts to interrupts.
#include "io/folder_lock.h"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "base/fail.h"
#include "base/os.h"
#include "io/abandon.h"
#include "io/temporary.h"

namespace weighbridge::io {
namespace {

using Id = FolderLock::Id;
using Clock = std::chrono::steady_clock;
constexpr std::chrono::milliseconds kPause{5};

// A number that no other thread of this process has or gets: the system gives the id of one that ended to a new one.
std::uint64_t this_thread() noexcept {
  static std::atomic<std::uint64_t> last{0};
  thread_local const std::uint64_t mine = ++last;
  return mine;
}

// Which thread of this process holds which folder.
class Holders {
 public:
  // Never destroyed, because outputs of static lifetime may outlive any other static object.
  static Holders& all() {
    static Holders& one = *new Holders;
    return one;
  }

  // Whether this thread holds it; then it does once more.
  bool enter_again(const Id& folder) {
    const std::lock_guard lock(mutex_);
    const auto at = find(folder);
    if (at == list_.end() || at->thread != this_thread()) return false;
    ++at->times;
    return true;
  }
  // Waits until no other thread holds it. A thread that holds another folder does not wait for ever, since two such
  // threads could wait for each other.
  void enter(const std::string& path, const Id& folder, const std::function<bool()>& go_on,
             std::chrono::milliseconds patience) {
    const Clock::time_point begin = Clock::now();
    std::unique_lock lock(mutex_);
    while (find(folder) != list_.end()) {
      const bool holds_another = std::ranges::find(list_, this_thread(), &Holder::thread) != list_.end();
      if (holds_another && Clock::now() - begin >= patience)
        base::io_error_of(path, "lock",
                          "another thread of this process has kept this folder locked, while this one " +
                              std::string("keeps another folder locked: try again"));
      if (go_on) {
        lock.unlock();
        if (!go_on()) throw Cancelled{};
        lock.lock();
      }
      changed_.wait_for(lock, kPause);
    }
    list_.push_back({.folder = folder, .thread = this_thread()});
  }
  // The file's lock, which is let go when the folder is left for the last time.
  void keep(const Id& folder, Fd locked) {
    const std::lock_guard lock(mutex_);
    find(folder)->file = std::move(locked);
  }
  // By whichever thread.
  void leave(const Id& folder) noexcept {
    const std::lock_guard lock(mutex_);
    const auto at = find(folder);
    if (at == list_.end() || --at->times > 0) return;
    list_.erase(at);
    changed_.notify_all();
  }

 private:
  struct Holder {
    Id folder;
    std::uint64_t thread = 0;
    std::size_t times = 1;
    Fd file{};
  };

  Holders() {
    // A forked child has only one of its parent's threads.
    base::at_fork([] { all().mutex_.lock(); }, [] { all().mutex_.unlock(); },
                  [] {
                    std::erase_if(all().list_, [](const Holder& h) { return h.thread != this_thread(); });
                    all().mutex_.unlock();
                  });
  }
  std::vector<Holder>::iterator find(const Id& folder) noexcept {
    return std::ranges::find(list_, folder, &Holder::folder);
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<Holder> list_;
};

Id id_of(int fd) noexcept {
  const auto there = os::status(fd);
  return there ? Id{there->device, there->inode} : Id{};
}

void lock_for_processes(const Fd& file, const std::string& folder, const std::function<bool()>& go_on,
                        std::chrono::milliseconds patience) {
  const Clock::time_point begin = Clock::now();
  while (os::lock(file.get()) != 0) {
    // NFS locks only descriptors that are open for writing.
    if (not_offered(errno) || errno == EBADF || errno == ENOLCK) return;
    if (errno != EWOULDBLOCK) base::io_error_of(folder, "lock", "the folder cannot be locked", errno);
    if (go_on && !go_on()) throw Cancelled{};
    if (Clock::now() - begin >= patience)
      base::io_error_of(
          folder, "lock",
          "another process has kept this folder locked for " +
              std::to_string(std::chrono::duration_cast<std::chrono::seconds>(patience).count()) +
              " seconds (flock), by which runs that write into it take turns: end it, or try again later");
    std::this_thread::sleep_for(kPause);
  }
}

}  // namespace

FolderLock::FolderLock(const std::string& folder, const std::function<bool()>& go_on,
                       std::chrono::milliseconds patience) {
  if (is_temporary(split_path(folder).name)) return;
  Fd file = open_folder(folder);
  id_ = id_of(file.get());
  if (Holders::all().enter_again(id_)) return;
  if (NamesChange::is_held_here()) throw std::logic_error("a folder must be locked before names change");
  Holders::all().enter(folder, id_, go_on, patience);
  try {
    lock_for_processes(file, folder, go_on, patience);
  } catch (...) {
    Holders::all().leave(id_);
    throw;
  }
  Holders::all().keep(id_, std::move(file));
}

FolderLock::~FolderLock() { Holders::all().leave(id_); }

}  // namespace weighbridge::io
