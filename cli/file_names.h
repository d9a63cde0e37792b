// SPDX-License-Identifier: Apache-2.0
// File names made from tensor names, which may hold anything at all.
#pragma once
#include <map>
#include <string>
#include <string_view>

namespace weighbridge::cli {

// One path component: separators, control characters and what some system forbids become '_', a leading dot too; a name
// that a system reserves gets '_' in front, and a long one is cut.
std::string file_stem(std::string_view tensor_name);

// Gives each name once, whatever the case of its letters, beyond ASCII too: a second "a_b" becomes "a_b-2". There,
// names that differ in letters alone may get a number as well.
class FileNames {
 public:
  std::string next(std::string_view tensor_name, std::string_view extension);

 private:
  std::map<std::string, unsigned> taken_;  // without case; the number that was last given to one like it
};

}  // namespace weighbridge::cli
