// SPDX-License-Identifier: Apache-2.0
// Waits for a lock and still reacts to interrupts.
#include "io/folder_lock.h"

#include <sys/file.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/fail.h"
#include "io/temporary.h"

namespace weighbridge::io {
namespace {

using Id = std::pair<dev_t, ino_t>;

thread_local std::vector<Id> held_here;

Id id_of(int fd) noexcept {
  struct stat there {};
  return ::fstat(fd, &there) == 0 ? Id{there.st_dev, there.st_ino} : Id{};
}

}  // namespace

FolderLock::FolderLock(const std::string& folder, const std::function<bool()>& go_on,
                       std::chrono::milliseconds patience) {
  using Clock = std::chrono::steady_clock;
  Fd fd = open_folder(folder);
  const Id id = id_of(fd.get());
  if (std::ranges::find(held_here, id) != held_here.end()) return;
  const Clock::time_point begin = Clock::now();
  while (::flock(fd.get(), LOCK_EX | LOCK_NB) != 0) {
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
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  held_here.push_back(id);
  held_ = std::move(fd);
}

FolderLock::FolderLock(Fd locked) : held_(std::move(locked)) { held_here.push_back(id_of(held_.get())); }

FolderLock::~FolderLock() {
  if (held_) std::erase(held_here, id_of(held_.get()));
}

}  // namespace weighbridge::io
