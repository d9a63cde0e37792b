// SPDX-License-Identifier: Apache-2.0
// What one call of the command asks for. Owns Arguments and Misuse, the exception for what the caller got wrong.
#pragma once
#include <array>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "flags.h"

namespace weighbridge::cli {

// Exit status 2 with this sentence.
class Misuse : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

class Arguments {
 public:
  VerbId verb = VerbId::inspect;
  std::vector<std::string> operands{};

  bool has(FlagId id) const { return given_[index(id)]; }
  // The last value; empty where none was given.
  std::string_view value(FlagId id) const { return values(id).empty() ? std::string_view{} : values(id).back(); }
  const std::vector<std::string>& values(FlagId id) const { return values_[index(id)]; }
  // The number of a flag that takes one; `otherwise` where it is absent. Misuse: no number, or one outside of [least,
  // most].
  unsigned number(FlagId id, unsigned least, unsigned most, unsigned otherwise) const;

  void set(FlagId id, std::vector<std::string> values) {
    given_[index(id)] = true;
    values_[index(id)] = std::move(values);
  }

 private:
  static std::size_t index(FlagId id) { return static_cast<std::size_t>(id); }
  std::array<bool, kFlagCount> given_{};
  std::array<std::vector<std::string>, kFlagCount> values_{};
};

// Reads what follows the verb's name. Checks flags, how many operands there are, and values that must be one of some
// words; with --help nothing but the flag's presence counts. Throws Misuse.
Arguments parse(VerbId verb, int count, const char* const* arguments);
// The verb of this name. Misuse names the nearest one.
const Verb& find_verb(std::string_view name);

}  // namespace weighbridge::cli
