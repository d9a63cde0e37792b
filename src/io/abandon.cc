// SPDX-License-Identifier: Apache-2.0
// The list of what must be removed, newest last.
#include "io/abandon.h"

#include <utility>

namespace weighbridge::io {
namespace {

struct Unfinished {
  std::recursive_mutex mutex;  // recursive: publishing may destroy what is on the list
  std::list<std::function<void()>> list;
};

thread_local int changes_here = 0;

// Never destroyed: outputs of static lifetime may outlive any other static object.
Unfinished& unfinished() {
  static Unfinished& all = *new Unfinished;
  return all;
}

}  // namespace

OnAbandon::OnAbandon(std::function<void()> remove) {
  const std::lock_guard lock(unfinished().mutex);
  at_ = unfinished().list.insert(unfinished().list.end(), std::move(remove));
}

OnAbandon::~OnAbandon() {
  const std::lock_guard lock(unfinished().mutex);
  unfinished().list.erase(at_);
}

NamesChange::NamesChange() : lock_(unfinished().mutex) { ++changes_here; }
NamesChange::~NamesChange() { --changes_here; }
bool NamesChange::is_held_here() noexcept { return changes_here > 0; }

void abandon_all() noexcept {
  Unfinished& all = unfinished();
  all.mutex.lock();  // for good: nothing new may appear
  for (auto each = all.list.rbegin(); each != all.list.rend(); ++each) (*each)();
}

}  // namespace weighbridge::io
