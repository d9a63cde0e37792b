// SPDX-License-Identifier: Apache-2.0
// From an argument vector to Arguments. The one translation unit that includes CLI11, which splits the vector into
// flags, values and operands; every sentence that a person sees is made here.
#include <CLI/CLI.hpp>

#include <algorithm>
#include <charconv>
#include <list>

#include "arguments.h"
#include "nearest.h"
#include "output.h"

namespace weighbridge::cli {
namespace {

std::string dashed(const Flag& flag) { return "--" + std::string(flag.name); }

std::string ask_help(VerbId id) { return "; see 'weighbridge " + std::string(verb(id).name) + " --help'"; }

[[noreturn]] void unknown_flag(VerbId id, std::string_view argument) {
  const std::string_view typed = argument.substr(0, argument.find('='));
  std::vector<std::string> spelt;
  for (const Flag& flag : flags())
    if (takes_flag(id, flag)) spelt.push_back(dashed(flag));
  const std::vector<std::string_view> known(spelt.begin(), spelt.end());
  const std::string_view near = nearest_word(typed, known);
  std::string sentence = std::string(verb(id).name) + " has no flag " + quote(typed);
  if (!near.empty()) sentence += ", the nearest is " + std::string(near);
  throw Misuse(sentence + (near.empty() ? ask_help(id) : ""));
}

void check_word(const Flag& flag, std::string_view value) {
  const std::vector<std::string_view> known = words(flag.choice);
  if (known.empty() || std::find(known.begin(), known.end(), value) != known.end()) return;
  std::string sentence = dashed(flag) + " cannot be " + quote(value);
  if (const std::string_view near = nearest_word(value, known); !near.empty()) {
    throw Misuse(sentence + ", the nearest is '" + std::string(near) + "'");
  }
  sentence += ": it is one of";
  for (const std::string_view word : known) sentence += " " + std::string(word);
  throw Misuse(sentence);
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

// "--dense" swallows a following word that is no dtype only by mistake: then TENSOR stood behind it.
void check_dense(const Flag& flag, std::string_view value, const Arguments& arguments) {
  const std::vector<std::string_view> known = words(flag.choice);
  if (std::find(known.begin(), known.end(), value) == known.end() && arguments.operands.size() < 2)
    throw Misuse("--dense stands after TENSOR, since the word behind it is taken for a dtype: " + quote(value));
}

void check_flag(const Flag& flag, std::vector<std::string> values, Arguments& into) {
  if (flag.takes == Takes::nothing) values.clear();
  if (flag.takes == Takes::optional_value) std::erase(values, "");
  if (flag.takes == Takes::values) values = split_commas(values);
  const bool once = flag.takes != Takes::values && flag.takes != Takes::each;
  if (once && values.size() > 1) throw Misuse(dashed(flag) + " is given more than once");
  for (const std::string& value : values) {
    // An empty prompt is none: the model begins by itself.
    if (value.empty() && flag.id != FlagId::prompt) throw Misuse(dashed(flag) + " has an empty value");
    if (flag.id == FlagId::dense) check_dense(flag, value, into);
    check_word(flag, value);
  }
  into.set(flag.id, std::move(values));
}

void check_operands(const Arguments& arguments) {
  const Verb& v = verb(arguments.verb);
  const std::size_t count = arguments.operands.size();
  if (count < v.least) throw Misuse(std::string(v.name) + " needs " + std::string(v.operands) + ask_help(v.id));
  if (v.most == kAny || count <= v.most) return;
  const std::string extra = quote(arguments.operands[v.most]);
  throw Misuse(std::string(v.name) +
               (v.most == 0 ? " takes no operand" : " takes " + std::string(v.operands) + " only") + ", and " + extra +
               " is left over");
}

CLI::Option* add_flag(CLI::App& app, const Flag& flag, std::vector<std::string>& values) {
  const std::string names = (flag.letter ? std::string("-") + flag.letter + "," : "") + dashed(flag);
  if (flag.takes == Takes::nothing) return app.add_flag(names)->disable_flag_override();
  CLI::Option* option = app.add_option(names, values)->allow_extra_args(false)->delimiter('\0');
  if (flag.takes == Takes::optional_value) option->expected(0, 1)->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  return option;
}

}  // namespace

unsigned Arguments::number(FlagId id, unsigned least, unsigned most, unsigned otherwise) const {
  if (!has(id)) return otherwise;
  const std::string_view text = value(id);
  unsigned out = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), out);
  if (error == std::errc{} && end == text.data() + text.size() && out >= least && out <= most) return out;
  throw Misuse(dashed(flag(id)) + " must be a number from " + std::to_string(least) + " to " + std::to_string(most) +
               ", not " + quote(text));
}

const Verb& find_verb(std::string_view name) {
  std::vector<std::string_view> names;
  for (const Verb& v : verbs()) {
    if (v.name == name) return v;
    names.push_back(v.name);
  }
  const std::string_view near = nearest_word(name, names);
  throw Misuse("there is no verb " + quote(name) +
               (near.empty() ? "; 'weighbridge --help' lists them" : ", the nearest is '" + std::string(near) + "'"));
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
    std::vector<std::string> reversed(arguments, arguments + count);
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
  for (Bound& b : bound)
    if (b.flag->id == FlagId::help && b.option->count() > 0) {
      out.set(FlagId::help, {});
      return out;
    }
  bool only_operands = false;
  for (std::string& rest : app.remaining()) {
    if (!only_operands && rest == "--") {
      only_operands = true;
    } else if (!only_operands && rest.size() > 1 && rest.front() == '-') {
      unknown_flag(id, rest);
    } else {
      out.operands.push_back(std::move(rest));
    }
  }
  for (Bound& b : bound)
    if (b.option->count() > 0) check_flag(*b.flag, std::move(b.values), out);
  check_operands(out);
  return out;
}

}  // namespace weighbridge::cli
