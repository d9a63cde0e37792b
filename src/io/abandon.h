// SPDX-License-Identifier: Apache-2.0
// Removes what unfinished outputs would leave behind when the process must end at once. Owns the list; callers say how
// to remove each entry.
#pragma once
#include <functional>
#include <list>
#include <mutex>

namespace weighbridge::io {

// Removes something temporary if the process abandons its outputs while this object lives. `remove` must not throw, and
// may run in another thread.
class OnAbandon {
 public:
  explicit OnAbandon(std::function<void()> remove);
  ~OnAbandon();
  OnAbandon(const OnAbandon&) = delete;
  OnAbandon& operator=(const OnAbandon&) = delete;

 private:
  std::list<std::function<void()>>::iterator at_;
};

// Removes everything on the list, newest first. Nothing can be added or published after it.
void abandon_all() noexcept;

// Keeps abandon_all() out while a group of files is created, renamed or removed. It is one lock for the whole process,
// so never wait for another process while holding it: publication.h has the order of locks.
class NamesChange {
 public:
  NamesChange();
  ~NamesChange();
  NamesChange(const NamesChange&) = delete;
  NamesChange& operator=(const NamesChange&) = delete;
  // Whether this thread holds it.
  static bool is_held_here() noexcept;

 private:
  std::unique_lock<std::recursive_mutex> lock_;
};

}  // namespace weighbridge::io
