// SPDX-License-Identifier: Apache-2.0
// Texts that end a generation. Holds back any text that may begin one, so that no part of a stop text is ever shown.
#pragma once
#include <string>
#include <string_view>
#include <vector>

namespace weighbridge::llama {

class StopTexts {
 public:
  explicit StopTexts(std::vector<std::string> texts);  // usage error: an empty text
  // Takes the next piece and returns what is certainly not part of a stop text; nothing after one was found.
  std::string push(std::string_view piece);
  std::string finish();  // the text held back
  bool found() const noexcept { return found_; }

 private:
  std::vector<std::string> texts_;
  std::string held_;
  bool found_ = false;
};

}  // namespace weighbridge::llama
