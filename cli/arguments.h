// SPDX-License-Identifier: Apache-2.0
// What one call of the command asks for. Owns Arguments and Misuse, the exception for what the caller got wrong.
#pragma once
#include <array>
#include <charconv>
#include <cstdint>
#include <initializer_list>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "actions.h"

namespace weighbridge::cli {

// Exit status 2 with this sentence.
class Misuse : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

class Arguments {
 public:
  VerbId verb = VerbId::inspect;
  const Action* action = nullptr;       // of a verb that has actions
  std::vector<std::string> operands{};  // behind the action's words

  bool has(FlagId id) const { return given_[index(id)]; }
  // The last value; empty where none was given.
  std::string_view value(FlagId id) const { return values(id).empty() ? std::string_view{} : values(id).back(); }
  const std::vector<std::string>& values(FlagId id) const { return values_[index(id)]; }
  // The number of a flag that takes one, found to be within its range: that given, or the default of its row.
  template <class Number> Number number(FlagId id) const {
    return number(id, parsed<Number>(flag(id).standard, Number{}));
  }
  // The same, where the default is not the row's.
  template <class Number> Number number(FlagId id, Number standard) const { return parsed(value(id), standard); }

  // Gives `options` what the flags say that are called as its options are.
  template <class Options> void apply(Options& options, std::initializer_list<FlagId> flags) const {
    for (const FlagId id : flags) {
      if (flag(id).value.empty() && has(id)) options.set(flag(id).name, "true");
      for (const std::string& text : values(id)) options.set(flag(id).name, text);
    }
  }

  void set(FlagId id, std::vector<std::string> values) {
    given_[index(id)] = true;
    values_[index(id)] = std::move(values);
  }

 private:
  template <class Number> static Number parsed(std::string_view text, Number otherwise) {
    std::from_chars(text.data(), text.data() + text.size(), otherwise);
    return otherwise;
  }
  static std::size_t index(FlagId id) { return static_cast<std::size_t>(id); }
  std::array<bool, kFlagCount> given_{};
  std::array<std::vector<std::string>, kFlagCount> values_{};
};

// Reads what follows the verb's name: finds the action, checks flags, how many operands there are, numbers, and values
// that must be one of some words; with --help nothing but its presence and the action count. Throws Misuse.
Arguments parse(VerbId verb, int count, const char* const* arguments);
// The action that the first words name, as many as it has. Null where there are no words and `asks_help`. Misuse names
// the nearest one, or lists all.
const Action* find_action(VerbId verb, std::span<const std::string> words, bool asks_help);
// Misuse: a flag is given that is for another container than the one that convert is to write.
void check_target(const Arguments& arguments, std::string_view format);
// The verb of this name. Misuse names the nearest one.
const Verb& find_verb(std::string_view name);

}  // namespace weighbridge::cli
