// SPDX-License-Identifier: Apache-2.0
// The parsed command line. Owns Arguments and Misuse, the exception for usage errors.
#pragma once
#include <array>
#include <charconv>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "actions.h"
#include "output.h"
#include "weighbridge/error.h"

namespace weighbridge::cli {

// A usage error: exit status 2, with this message.
class Misuse : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

class Arguments {
 public:
  VerbId verb = VerbId::inspect;
  const Action* action = nullptr;       // null for a verb without actions
  std::vector<std::string> operands{};  // those after the action

  bool has(FlagId id) const { return given_[index(id)]; }
  // The last value; empty if none was given.
  std::string_view value(FlagId id) const { return values(id).empty() ? std::string_view{} : values(id).back(); }
  const std::vector<std::string>& values(FlagId id) const { return values_[index(id)]; }
  // The value of a flag that takes a number, already checked against its range; the verb's default if it is not given.
  template <class Number> Number number(FlagId id) const {
    return number(id, parsed<Number>(flag_of(flag(id), verb, action).standard, Number{}));
  }
  // The same with another default.
  template <class Number> Number number(FlagId id, Number standard) const { return parsed(value(id), standard); }

  // Sets the options of one kind that flags give. Verbs open files themselves. What an option refuses is Misuse.
  template <class Options> void apply(Options& options, OptionOf kind) const try {
    for (const Flag& each : flags()) {
      const OptionInfo* const info = has(each.id) ? flag_of(each, verb, action).info : nullptr;
      if (info == nullptr || info->of != kind || info->type == OptionType::file) continue;
      if (each.value.empty())
        set_option(options, info->name, each.sets.empty() ? "true" : each.sets);
      else if (values(each.id).empty())
        set_option(options, info->name, words(each).front());
      for (const std::string& text : values(each.id)) set_option(options, info->name, text);
    }
  } catch (const Error& error) {
    throw Misuse("--" + shown(error.what()));
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

// Parses what follows the verb's name: finds the action, then checks the flags, the number of operands, numbers, and
// values from word lists. With --help, only the action is looked for and nothing else is checked. Throws Misuse.
Arguments parse(VerbId verb, int count, const char* const* arguments);
// The action that the first one or two words name. With `wants_help`, null if the words do not name a whole action. The
// Misuse of an unknown one names the nearest action or lists all.
const Action* find_action(VerbId verb, std::span<const std::string> words, bool wants_help);
// Throws Misuse if a flag is given that applies only to other containers than `format`, the target of convert.
void check_target(const Arguments& arguments, std::string_view format);
// The verb of this name or alias; null if there is none.
const Verb* verb_named(std::string_view name);
// The same. The Misuse of an unknown one names the nearest verb.
const Verb& find_verb(std::string_view name);

}  // namespace weighbridge::cli
