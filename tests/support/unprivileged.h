// SPDX-License-Identifier: Apache-2.0
// Lets a test be refused what root is not: while it lives, the process acts as nobody where it was root.
#pragma once
#include <unistd.h>

namespace weighbridge::test {

class Unprivileged {
 public:
  Unprivileged() : was_(::geteuid()) {
    if (was_ == 0) static_cast<void>(::seteuid(kNobody));
  }
  ~Unprivileged() {
    if (was_ == 0) static_cast<void>(::seteuid(0));
  }
  Unprivileged(const Unprivileged&) = delete;
  Unprivileged& operator=(const Unprivileged&) = delete;

  // False where the system keeps a process from giving up root.
  static bool holds() { return ::geteuid() != 0; }

 private:
  static constexpr uid_t kNobody = 65534;
  const uid_t was_;
};

}  // namespace weighbridge::test
