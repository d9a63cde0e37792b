// SPDX-License-Identifier: Apache-2.0
// A state folder for one test, so that its journals are marked with a key of their own; or none, as without a home.
#pragma once
#include <cstdlib>
#include <optional>
#include <string>

#include "support/temporary_folder.h"

namespace weighbridge::test {

class StateHome {
 public:
  StateHome() {
    for (const char* name : kNames)
      if (const char* value = std::getenv(name)) (name == kNames[0] ? state_ : home_) = value;
    set(folder_.path().c_str());
  }
  ~StateHome() {
    ::unsetenv(kNames[0]);
    if (state_) ::setenv(kNames[0], state_->c_str(), 1);
    if (home_) ::setenv(kNames[1], home_->c_str(), 1);
  }
  StateHome(const StateHome&) = delete;
  StateHome& operator=(const StateHome&) = delete;

  // Null: neither a state folder nor a home.
  static void set(const char* state) {
    if (state) {
      ::setenv(kNames[0], state, 1);
      return;
    }
    for (const char* name : kNames) ::unsetenv(name);
  }
  std::string key() const { return folder_ / "weighbridge/journal-key"; }
  std::string path() const { return folder_.path(); }

 private:
  static constexpr const char* kNames[] = {"XDG_STATE_HOME", "HOME"};
  TemporaryFolder folder_;
  std::optional<std::string> state_, home_;
};

}  // namespace weighbridge::test
