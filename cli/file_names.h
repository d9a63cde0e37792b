// SPDX-License-Identifier: Apache-2.0
// Makes file names from tensor names, which can hold any characters.
#pragma once
#include <map>
#include <string>
#include <string_view>

namespace weighbridge::cli {

// One path component. Separators, control characters, a leading dot and characters that some system forbids become '_';
// a reserved name gets a leading '_'; a long name is cut.
std::string file_stem(std::string_view tensor_name);

// Never gives two names that differ only in case: a second "a_b" becomes "a_b-2". Beyond ASCII, a name may get a number
// that it does not need.
class FileNames {
 public:
  std::string next(std::string_view tensor_name, std::string_view extension);

 private:
  std::map<std::string, unsigned> taken_;  // key_of(name), and the last number given to such a name
};

}  // namespace weighbridge::cli
