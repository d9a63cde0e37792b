// SPDX-License-Identifier: Apache-2.0
// Parses an argument vector into Arguments. The only translation unit that includes CLI11, which splits the vector into
// flags, values and operands; all error messages are our own.
#include <CLI/CLI.hpp>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <list>
#include <optional>

#include "arguments.h"
#include "help.h"
#include "nearest.h"
#include "output.h"
#include "weighbridge/formats.h"

namespace weighbridge::cli {
namespace {

std::string dashed(const Flag& flag) { return "--" + std::string(flag.name); }

// Compares with its name and with the British spelling.
bool is_called(const Flag& flag, std::string_view typed) {
  if (!typed.starts_with("--")) return false;
  typed.remove_prefix(2);
  return typed == flag.name || (!flag.british.empty() && typed == flag.british);
}

// "slm adapter"
std::string subject(VerbId id, const Action* action) {
  return std::string(verb(id).name) + (action ? " " + words_of(*action) : "");
}
std::string usage(VerbId id, const Action* action) { return "; usage: " + usage_of(id, action) + " [flags]"; }

// "bash, zsh or fish"
std::string either(std::span<const std::string_view> words) {
  std::string out;
  for (std::size_t i = 0; i < words.size(); ++i)
    out += (i == 0 ? "" : i + 1 < words.size() ? ", " : " or ") + std::string(words[i]);
  return out;
}

// Suggests the nearest known word, or lists all of them.
std::string instead(std::string_view typed, std::span<const std::string_view> known) {
  const std::string_view near = nearest_word(typed, known);
  return near.empty() ? ": expected " + either(known) : "; did you mean '" + std::string(near) + "'?";
}

[[noreturn]] void foreign_flag(VerbId id, const Action* action, const Flag& flag) {
  throw Misuse(subject(id, action) + " takes no " + dashed(flag) + usage(id, action));
}

[[noreturn]] void unknown_flag(VerbId id, const Action* action, std::string_view argument) {
  const std::string_view typed = argument.substr(0, argument.find('='));
  std::vector<std::string> spelt;
  for (const Flag& flag : flags()) {
    const bool meant = is_called(flag, typed) || (flag.letter && typed.size() == 2 && typed[1] == flag.letter);
    if (meant) foreign_flag(id, action, flag);
    if (takes_flag(id, action, flag)) spelt.push_back(dashed(flag));
  }
  const std::vector<std::string_view> known(spelt.begin(), spelt.end());
  const std::string_view near = nearest_word(typed, known);
  throw Misuse(subject(id, action) + " has no flag " + quote(typed) +
               (near.empty() ? "; see 'weighbridge " + subject(id, action) + " --help'"
                             : "; did you mean " + std::string(near) + "?"));
}

void check_word(const Flag& flag, std::string_view value) {
  const std::vector<std::string_view> known = words(flag);
  const std::string_view word = flag.type == Type::limit ? value.substr(0, value.find('=')) : value;
  if (known.empty() || std::ranges::find(known, word) != known.end()) return;
  throw Misuse(dashed(flag) + (flag.type == Type::limit ? " has no " : " cannot be ") + quote(word) +
               instead(word, known));
}

template <class Number> std::optional<Number> number_in(std::string_view text) {
  Number out{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), out);
  if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return out;
}

std::string number_text(double number) {
  std::array<char, 32> digits{};
  return {digits.data(),
          std::to_chars(digits.data(), digits.data() + digits.size(), number, std::chars_format::fixed).ptr};
}

void check_number(const Flag& flag, std::string_view value) {
  const Range& range = flag.range;
  const bool whole = flag.type == Type::number;
  std::optional<double> number = number_in<double>(value);
  if (whole && !number_in<std::uint64_t>(value)) number.reset();
  const bool least = number && (range.above ? *number > range.least : *number >= range.least);
  if (least && std::isfinite(*number) && *number <= range.most) return;
  // The message leaves out a bound that nobody comes near.
  const bool bounded = range.most <= (1 << 24);
  throw Misuse(dashed(flag) + " must be a " + (whole ? "whole number" : "number") +
               (range.above
                    ? " above " + number_text(range.least) + (bounded ? ", at most " + number_text(range.most) : "")
                : bounded ? " from " + number_text(range.least) + " to " + number_text(range.most)
                          : ", at least " + number_text(range.least)) +
               ", not " + quote(value));
}

void check_time(const Flag& flag, std::string_view value) {
  constexpr std::string_view kForm = "0000-00-00T00:00:00Z";
  const auto fits = [](char c, char form) { return form == '0' ? c >= '0' && c <= '9' : c == form; };
  if (!std::ranges::equal(value, kForm, fits))
    throw Misuse(dashed(flag) + " must be a time like 2026-01-31T12:00:00Z, not " + quote(value));
}

std::vector<std::string> split_commas(const std::vector<std::string>& values) {
  std::vector<std::string> out;
  for (const std::string& value : values) {
    std::size_t begin = 0;
    for (std::size_t end = 0; end != std::string::npos; begin = end + 1) {
      end = value.find(',', begin);
      out.push_back(value.substr(begin, end == std::string::npos ? end : end - begin));
    }
  }
  return out;
}

// "--dense" takes the next word as its value. If that is not a dtype, it was meant as TENSOR.
void check_dense(const Flag& flag, std::string_view value, const Arguments& arguments) {
  const std::vector<std::string_view> known = words(flag);
  if (std::find(known.begin(), known.end(), value) == known.end() && arguments.operands.size() < 2)
    throw Misuse("put --dense after TENSOR: the word after it is read as a dtype, and this is none: " + quote(value));
}

void check_flag(const Flag& flag, std::vector<std::string> values, Arguments& into) {
  if (flag.value.empty()) values.clear();
  if (flag.given == Given::optional) std::erase(values, "");
  if (flag.given == Given::list) values = split_commas(values);
  const bool once = flag.given != Given::list && flag.given != Given::again;
  if (once && values.size() > 1) throw Misuse(dashed(flag) + " is given more than once");
  for (const std::string& value : values) {
    if (value.empty() && !flag.may_be_empty) throw Misuse(dashed(flag) + " has an empty value");
    if (flag.id == FlagId::dense) check_dense(flag, value, into);
    check_word(flag, value);
    if (flag.type == Type::number || flag.type == Type::fraction) check_number(flag, value);
    if (flag.type == Type::time) check_time(flag, value);
  }
  into.set(flag.id, std::move(values));
}

// Checks flags that need or exclude others, and required flags.
void check_needs(const Arguments& arguments) {
  const VerbId id = arguments.verb;
  for (const Flag& flag : flags()) {
    const FlagId other = companion_of(flag, id, arguments.action);
    if (arguments.has(flag.id)) {
      if (other != FlagId::none && !arguments.has(other))
        throw Misuse(dashed(flag) + " has no effect without " + dashed(cli::flag(other)));
      for (const Flag& excluded : flags())
        if (flag.excludes.has(excluded.id) && arguments.has(excluded.id))
          throw Misuse(dashed(flag) + " and " + dashed(excluded) + " cannot be used together");
      continue;
    }
    if (!needs_flag(id, arguments.action, flag)) continue;
    const std::string spelt = flag.letter ? std::string("-") + flag.letter : dashed(flag);
    const std::vector<std::string_view> known = words(flag);
    throw Misuse(subject(id, arguments.action) + " needs " + spelt + " " +
                 (known.empty() ? std::string(flag.value) : either(known)) + usage(id, arguments.action));
  }
}

void check_operands(const Arguments& arguments) {
  const Action* const action = arguments.action;
  const VerbId id = arguments.verb;
  const std::string_view operands = operands_of(id, action);
  const auto [least, most] = operand_count(operands);
  const std::size_t count = arguments.operands.size();
  const std::string who = subject(id, action);
  if (count < least)
    throw Misuse(who + " needs " +
                 (count > 0 && operand_name(operands, count) == operand_name(operands, count - 1) ? "another " : "") +
                 std::string(operand_name(operands, count)) + usage(id, action));
  if (most != kAny && count > most)
    throw Misuse(who + (most == 0 ? " takes no operand" : " takes " + std::string(operands) + " only") + ", not also " +
                 quote(arguments.operands[most]));
  const std::vector<std::string_view> known = operand_words(id, action);
  if (!known.empty() && std::ranges::find(known, arguments.operands[0]) == known.end())
    throw Misuse(who + " has no " + quote(arguments.operands[0]) + instead(arguments.operands[0], known));
}

// Ignores case, because records spell the steps in capitals.
bool same_letters(std::string_view a, std::string_view b) {
  const auto small = [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; };
  return std::ranges::equal(a, b, {}, small, small);
}

CLI::Option* add_flag(CLI::App& app, const Flag& flag, std::vector<std::string>& values) {
  const std::string names = (flag.letter ? std::string("-") + flag.letter + "," : "") + dashed(flag) +
                            (flag.british.empty() ? "" : ",--" + std::string(flag.british));
  if (flag.value.empty()) return app.add_flag(names)->disable_flag_override();
  CLI::Option* option = app.add_option(names, values)->allow_extra_args(false)->delimiter('\0');
  if (flag.given == Given::optional) option->expected(0, 1)->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  return option;
}

// Handles "--flag=", which is an empty value where CLI11 would take the next word, and rejects "--flag=X" for a flag
// without a value. Leaves words after "--" alone.
std::vector<std::string> with_values_apart(VerbId id, std::vector<std::string> words) {
  std::vector<std::string> out;
  bool only_operands = false;
  for (std::string& word : words) {
    only_operands = only_operands || word == "--";
    const std::size_t equals = word.find('=');
    const auto named = [&](const Flag& f) {
      return takes_flag(id, f) && is_called(f, std::string_view(word).substr(0, equals));
    };
    const auto flag = std::ranges::find_if(flags(), named);
    if (only_operands || equals == std::string::npos || flag == flags().end()) {
      out.push_back(std::move(word));
      continue;
    }
    if (flag->value.empty()) throw Misuse(dashed(*flag) + " takes no value");
    if (equals + 1 < word.size()) {
      out.push_back(std::move(word));
    } else if (flag->may_be_empty) {
      out.push_back(dashed(*flag));
      out.emplace_back();
    } else {
      throw Misuse(dashed(*flag) + " has an empty value");
    }
  }
  return out;
}

}  // namespace

const Verb& find_verb(std::string_view name) {
  std::vector<std::string_view> names;
  for (const Verb& v : verbs()) {
    if (v.name == name) return v;
    names.push_back(v.name);
  }
  std::string near(nearest_word(name, names));
  for (const Verb& v : verbs())
    if (!name.empty() && (" " + std::string(v.also) + " ").find(" " + std::string(name) + " ") != std::string::npos)
      near = v.name;
  if (name == "version") near = "--version";
  throw Misuse("there is no verb " + quote(name) +
               (near.empty() ? "; 'weighbridge --help' lists them" : "; did you mean '" + near + "'?"));
}

const Action* find_action(VerbId id, std::span<const std::string> typed, bool asks_help) {
  const std::span<const Action> all = actions_of(id);
  const std::string name(verb(id).name);
  if (all.empty() || (typed.empty() && asks_help)) return nullptr;
  if (typed.empty())
    throw Misuse(name + " needs an ACTION, one of these:\n\n" + action_list(id) + usage(id, nullptr).substr(2));
  const auto named = [&](const Action& a) { return a.name == typed[0]; };
  const std::vector<std::string_view> names = next_words(id), steps = next_words(id, typed[0]);
  const auto first = std::ranges::find_if(all, named);
  if (first == all.end()) {
    const std::string_view near = nearest_word(typed[0], names);
    throw Misuse(name + " has no action " + quote(typed[0]) +
                 (near.empty() ? "; 'weighbridge " + name + " --help' lists them"
                               : "; did you mean '" + std::string(near) + "'?"));
  }
  if (steps.empty()) return &*first;
  if (typed.size() < 2 && asks_help) return nullptr;  // help for all its steps
  if (typed.size() < 2) throw Misuse(name + " " + typed[0] + " needs " + either(steps));
  const auto step =
      std::ranges::find_if(all, [&](const Action& a) { return named(a) && same_letters(a.step, typed[1]); });
  if (step == all.end())
    throw Misuse(name + " " + typed[0] + " has no " + quote(typed[1]) + ": expected " + either(steps));
  return &*step;
}

void check_target(const Arguments& arguments, std::string_view format) {
  for (const Flag& flag : flags()) {
    if (!arguments.has(flag.id)) continue;
    std::string takers;
    bool taken = false;
    for (const FormatInfo& each : formats()) {
      if (std::ranges::find(each.options, flag.name) == each.options.end()) continue;
      takers += (takers.empty() ? "" : " and ") + std::string(each.name);
      taken = taken || each.name == format;
    }
    if (!takers.empty() && !taken)
      throw Misuse(dashed(flag) + " applies only to " + takers + ", and the output is " + std::string(format));
  }
}

Arguments parse(VerbId id, int count, const char* const* arguments) {
  Arguments out;
  out.verb = id;
  CLI::App app;
  app.set_help_flag();
  app.allow_extras();
  struct Bound {
    const Flag* flag;
    std::vector<std::string> values;
    CLI::Option* option;
  };
  std::list<Bound> bound;  // CLI11 keeps references to the values
  for (const Flag& flag : flags()) {
    if (!takes_flag(id, flag)) continue;
    Bound& b = bound.emplace_back(Bound{&flag, {}, nullptr});
    b.option = add_flag(app, flag, b.values);
  }
  try {
    std::vector<std::string> reversed = with_values_apart(id, {arguments, arguments + count});
    std::reverse(reversed.begin(), reversed.end());
    app.parse(std::move(reversed));
  } catch (const CLI::ArgumentMismatch& mismatch) {
    const std::string_view told =
        mismatch.what();  // "--sort: 1 required TEXT missing", "json was given a disallowed ..."
    for (const Bound& b : bound) {
      if (told.starts_with(dashed(*b.flag) + ":"))
        throw Misuse(dashed(*b.flag) + " needs a value: " + std::string(b.flag->value));
      if (told.starts_with(std::string(b.flag->name) + " was given")) throw Misuse(dashed(*b.flag) + " takes no value");
    }
    throw Misuse(mismatch.what());
  } catch (const CLI::ParseError& error) {
    throw Misuse(error.what());
  }
  std::vector<std::string> typed, strange;  // operands, and unknown flags
  bool only_operands = false;
  for (std::string& rest : app.remaining()) {
    if (!only_operands && rest == "--")
      only_operands = true;
    else
      (!only_operands && rest.size() > 1 && rest.front() == '-' ? strange : typed).push_back(std::move(rest));
  }
  const bool asks_help =
      std::ranges::any_of(bound, [](const Bound& b) { return b.flag->id == FlagId::help && b.option->count() > 0; });
  out.action = find_action(id, typed, asks_help);
  if (asks_help) {
    if (!out.action && !actions_of(id).empty()) out.operands = std::move(typed);  // an action with steps, or empty
    out.set(FlagId::help, {});
    return out;
  }
  if (!strange.empty()) unknown_flag(id, out.action, strange.front());
  if (out.action) typed.erase(typed.begin(), typed.begin() + (out.action->step.empty() ? 1 : 2));
  out.operands = std::move(typed);
  for (const Bound& b : bound)
    if (b.option->count() > 0 && !takes_flag(id, out.action, *b.flag)) foreign_flag(id, out.action, *b.flag);
  for (Bound& b : bound)
    if (b.option->count() > 0) check_flag(flag_of(*b.flag, id, out.action), std::move(b.values), out);
  check_operands(out);
  check_needs(out);
  return out;
}

}  // namespace weighbridge::cli
