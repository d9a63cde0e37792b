// SPDX-License-Identifier: Apache-2.0
// The vectors that search keeps between runs: a NumPy file, and a key file NAME.key beside it. The key holds a digest
// of the inputs and the SHA-256 of the NumPy file, because concurrent runs or users can separate the two files.
// search.cc computes the digest of the inputs.
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

// Gives the digest of the inputs, as 64 hexadecimal digits, with a content digest of this version.
using MadeOf = std::function<std::string(std::uint32_t version)>;

// The file's vectors, `count` times `dimension`; nullopt if there is no file. Throws misuse/vectors if the file holds
// other vectors or has no matching key. A key of any digest version is accepted; the older digest is computed only if
// the newer one differs.
std::optional<std::vector<float>> read_vectors(const std::string& kept, const MadeOf& made_of, std::uint64_t count,
                                               std::uint64_t dimension);

// Writes both files. Creates their temporary files first, so that a path that cannot be written fails before the work.
class KeptVectors {
 public:
  // Throws misuse/output-exists if a file that is not a key has the key's name, misuse/output-kind, and what OutputFile
  // throws.
  explicit KeptVectors(const std::string& kept);
  void write(const std::string& made_of, std::uint64_t dimension, std::span<const float> vectors);

 private:
  void publish(const std::string& key);

  std::string path_, key_path_;
  bool key_left_;
  OutputFile vectors_file_, key_file_;
};

}  // namespace weighbridge::cli
