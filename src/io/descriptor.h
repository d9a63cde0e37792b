// SPDX-License-Identifier: Apache-2.0
// Limits how many descriptors a model of thousands of files keeps open. Decides which are open. The owner of a closed
// one opens the file again, and checks that it is the same file.
#pragma once
#include <cstddef>
#include <functional>
#include <list>
#include <memory>

#include "io/fd.h"

namespace weighbridge::io {

// Calls `open`, which returns a descriptor, or an empty one with errno. If that fails because too many are open, closes
// those that are not in use and tries once more.
Fd open_making_room(const std::function<Fd()>& open);

class Descriptor {
 public:
  // Opens the file again. Throws Error{io} if it is gone or is not the same file. Must not use this Descriptor.
  using Again = std::function<Fd()>;

  // Without `again`, it stays open. Otherwise it may be closed whenever it is not in use.
  explicit Descriptor(Fd fd, Again again = nullptr);
  ~Descriptor();
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;

  // Open for as long as the caller keeps it. Throws what `again` throws. Safe to call from several threads.
  std::shared_ptr<const Fd> use() const;

  // Closes every descriptor that can be opened again and is not in use. False if there is none.
  static bool close_unused();
  // How many of those are open now, for tests.
  static std::size_t count_open() noexcept;

 private:
  class OpenOnes;

  const Again again_;
  // Of those with `again`, guarded by OpenOnes.
  mutable std::shared_ptr<const Fd> fd_;
  mutable std::list<const Descriptor*>::iterator at_{};
};

}  // namespace weighbridge::io
