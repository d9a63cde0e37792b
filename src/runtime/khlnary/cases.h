// SPDX-License-Identifier: Apache-2.0
// For each rule a small module with its sidecar and files, built in code, and a folder in memory for them. For tests
// and fuzzers only.
#pragma once
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "weighbridge/khlnary.h"

namespace weighbridge::khlnary::internal {

// A folder in memory. Each file finds the others as its neighbors.
class MemoryFolder {
 public:
  // The kind of a file. outside: a link that leads out of the folder.
  enum class Manner : std::uint8_t { plain, unmappable, outside, folder };

  MemoryFolder();
  void add(std::string name, std::string bytes, Manner manner = Manner::plain);
  // Null if the file does not exist.
  std::shared_ptr<const Source> open(std::string_view name) const;

  struct Files;

 private:
  std::shared_ptr<Files> files_;
};

// A tensor of a small STB file; dtype, rank and dims as in its descriptor.
struct StbTensor {
  std::uint8_t id = 0, dtype = 0, rank = 1, layout = 0;
  std::uint32_t dims[3] = {};
  std::string payload;
};
std::string stb_file(const std::vector<StbTensor>& tensors);
// f32 [2, 2] of 1, 2, 3, 4 as tensor 0, i8 [3] of -1, 0, 1 as tensor 5.
std::string small_stb();

struct Case {
  // Who reports the rule: verify (as its first error), run (thrown), or both.
  enum class Found : std::uint8_t { by_both, by_run, by_verify };

  std::string name;  // the rule's id after the slash, then what is special
  std::string rule;  // empty: the module is valid
  std::string module;
  std::optional<std::string> sidecar{};
  Found found = Found::by_both;
  std::optional<std::uint64_t> offset{};  // expected offset of the finding
  unsigned authority = kMaxAuthority;

  // The folder with the module as m.knu and the files of every case: a.stb is small_stb(), bad.stb is not STB,
  // rank4.stb has one tensor of rank 4, unmappable.stb is valid, link.stb leads outside, sub is a folder.
  MemoryFolder folder() const;
};
std::vector<Case> cases();

}  // namespace weighbridge::khlnary::internal
