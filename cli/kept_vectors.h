// SPDX-License-Identifier: Apache-2.0
// The vectors that search keeps between runs: a NumPy file, and NAME.key beside it, which says of what they were made
// and which file it belongs to, since runs side by side and people part files that were written together. Leaves the
// digest of what they are made of to search.cc.
#pragma once
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "weighbridge/output.h"

namespace weighbridge::cli {

std::string key_path(const std::string& kept);

// 64 hexadecimal digits of what vectors are made of, with a content digest of this version.
using MadeOf = std::function<std::string(std::uint32_t version)>;

// The vectors of the file, `count` times `dimension`; none where there is no file. Error misuse/vectors where it has
// others, or no key that is its own. A key of any version will do; the older is computed only where the newer differs.
std::optional<std::vector<float>> read_vectors(const std::string& kept, const MadeOf& made_of, std::uint64_t count,
                                               std::uint64_t dimension);

// Both files in the making. Their temporaries are there before the work, so that what cannot be written is said at
// once.
class KeptVectors {
 public:
  // Error misuse/output-exists where the key's name is that of something else than a key, misuse/output-kind; as
  // OutputFile.
  explicit KeptVectors(const std::string& kept);
  void write(const std::string& made_of, std::uint64_t dimension, std::span<const float> vectors);

 private:
  void publish(const std::string& key);

  std::string path_, key_path_;
  bool key_left_;
  OutputFile vectors_file_, key_file_;
};

}  // namespace weighbridge::cli
