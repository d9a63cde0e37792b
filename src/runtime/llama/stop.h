// SPDX-License-Identifier: Apache-2.0
// Texts that end a generation: holds back what may be the beginning of one, so that none of it is ever shown.
#pragma once
#include <string>
#include <string_view>
#include <vector>

namespace weighbridge::llama {

class StopTexts {
 public:
  explicit StopTexts(std::vector<std::string> texts);  // misuse: an empty one
  // Takes what comes next and gives what is certain to be no part of a stop text; nothing once one was found.
  std::string push(std::string_view piece);
  std::string finish();  // what was held back
  bool found() const noexcept { return found_; }

 private:
  std::vector<std::string> texts_;
  std::string held_;
  bool found_ = false;
};

}  // namespace weighbridge::llama
