// SPDX-License-Identifier: Apache-2.0
// The old one of several files that belong together, out of the way while the new ones get their names. Owns moving it
// and back; leaves the order of all to its callers.
#pragma once
#include <string>

#include "io/fd.h"
#include "io/temporary.h"

namespace weighbridge::io {

// Gives what stands at `path` the name of a temporary, which is locked: a run that is killed then leaves neither the
// old file beside new ones that speak of another, nor a name that the next run would not clean away. A symbolic link at
// `path` is moved itself.
class SetAside {
 public:
  // Nothing at `path`, or no folder there, is no error. Error io/publish, misuse/output-kind for a folder.
  // With `replace` off, what stands there stays: publishing then refuses it.
  explicit SetAside(const std::string& path, bool replace = true);
  ~SetAside();  // put_back(false), unless it was put back or settled
  SetAside(SetAside&&) noexcept = default;
  SetAside& operator=(SetAside&&) = delete;
  SetAside(const SetAside&) = delete;
  SetAside& operator=(const SetAside&) = delete;

  // As it was: the old file has its name again. Where there was none, what stands there goes if `published`, which says
  // that the caller has put it there.
  void put_back(bool published) noexcept;
  // The new files stand: the old one goes.
  void settle() noexcept;

 private:
  Target target_;
  Fd folder_;  // empty: there is none, or it is done
  Fd lock_;
  std::string aside_;  // empty: nothing stood there
};

}  // namespace weighbridge::io
