// SPDX-License-Identifier: Apache-2.0
// Waits for a lock and still reacts to interrupts.
#include "io/folder_lock.h"

#include <pthread.h>
#include <sys/file.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <condition_variable>
#include <mutex>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "base/fail.h"
#include "io/abandon.h"
#include "io/temporary.h"

namespace weighbridge::io {
namespace {

using Id = FolderLock::Id;
using Clock = std::chrono::steady_clock;
constexpr std::chrono::milliseconds kPause{5};

// Which thread of this process holds which folder.
class Holders {
 public:
  // Never destroyed, because outputs of static lifetime may outlive any other static object.
  static Holders& all() {
    static Holders& one = *new Holders;
    return one;
  }

  bool is_held_here(const Id& folder) {
    const std::lock_guard lock(mutex_);
    return std::ranges::any_of(
        list_, [&](const Holder& h) { return h.folder == folder && h.thread == std::this_thread::get_id(); });
  }
  // Waits until no other thread holds it. A thread that holds another folder does not wait for ever, since two such
  // threads could wait for each other.
  void take(const std::string& path, const Id& folder, const std::function<bool()>& go_on,
            std::chrono::milliseconds patience) {
    const Clock::time_point begin = Clock::now();
    std::unique_lock lock(mutex_);
    while (std::ranges::find(list_, folder, &Holder::folder) != list_.end()) {
      const bool holds_another = std::ranges::find(list_, std::this_thread::get_id(), &Holder::thread) != list_.end();
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
    list_.push_back({folder, std::this_thread::get_id()});
  }
  void add(const Id& folder) {
    const std::lock_guard lock(mutex_);
    list_.push_back({folder, std::this_thread::get_id()});
  }
  void drop(const Id& folder) noexcept {
    const std::lock_guard lock(mutex_);
    std::erase_if(list_, [&](const Holder& h) { return h.folder == folder; });
    changed_.notify_all();
  }

 private:
  struct Holder {
    Id folder;
    std::thread::id thread;
  };

  Holders() {
#ifndef __EMSCRIPTEN__
    // Of the threads of a process that forks, the child has only one.
    ::pthread_atfork([] { all().mutex_.lock(); }, [] { all().mutex_.unlock(); },
                     [] {
                       std::erase_if(all().list_,
                                     [](const Holder& h) { return h.thread != std::this_thread::get_id(); });
                       all().mutex_.unlock();
                     });
#endif
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<Holder> list_;
};

Id id_of(int fd) noexcept {
  struct stat there {};
  return ::fstat(fd, &there) == 0 ? Id{there.st_dev, there.st_ino} : Id{};
}

}  // namespace

FolderLock::FolderLock(const std::string& folder, const std::function<bool()>& go_on,
                       std::chrono::milliseconds patience)
    : held_(open_folder(folder)), id_(id_of(held_.get())) {
  if (Holders::all().is_held_here(id_)) {
    held_ = {};
    return;
  }
  if (NamesChange::is_held_here()) throw std::logic_error("a folder must be locked before names change");
  Holders::all().take(folder, id_, go_on, patience);
  listed_ = true;
  try {
    lock_file(folder, go_on, patience);
  } catch (...) {
    Holders::all().drop(id_);
    throw;
  }
}

void FolderLock::lock_file(const std::string& folder, const std::function<bool()>& go_on,
                           std::chrono::milliseconds patience) {
  const Clock::time_point begin = Clock::now();
  while (::flock(held_.get(), LOCK_EX | LOCK_NB) != 0) {
    if (errno == EINTR) continue;
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

FolderLock::FolderLock(Fd locked) : held_(std::move(locked)), id_(id_of(held_.get())), listed_(true) {
  Holders::all().add(id_);
}

FolderLock::~FolderLock() {
  if (!listed_) return;
  held_ = {};  // first: the next thread takes the file's lock too
  Holders::all().drop(id_);
}

}  // namespace weighbridge::io
