// SPDX-License-Identifier: Apache-2.0
// Drops root privileges while it exists, so that file permissions apply to the test: the process acts as nobody.
#pragma once
#include <unistd.h>

namespace weighbridge::test {

class Unprivileged {
 public:
  Unprivileged() : was_(::geteuid()) {
    if (was_ == 0) become(kNobody);
  }
  ~Unprivileged() {
    if (was_ == 0) become(0);
  }
  Unprivileged(const Unprivileged&) = delete;
  Unprivileged& operator=(const Unprivileged&) = delete;

  // False if the system does not let the process drop root.
  static bool holds() { return ::geteuid() != 0; }

 private:
  // Where it fails, holds() says so.
  static void become(uid_t user) {
    if (::seteuid(user) != 0) return;
  }
  static constexpr uid_t kNobody = 65534;
  const uid_t was_;
};

}  // namespace weighbridge::test
