// SPDX-License-Identifier: Apache-2.0
// Parses an argument vector into Arguments: splits it into flags, values and operands, and checks each.
#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <filesystem>
#include <optional>
#include <system_error>

#include "arguments.h"
#include "help.h"
#include "nearest.h"
#include "output.h"
#include "weighbridge/formats.h"

namespace weighbridge::cli {
namespace {

std::string dashed(const Flag& flag) { return "--" + std::string(flag.name); }

// Compares with its names.
bool is_called(const Flag& flag, std::string_view typed) {
  if (!typed.starts_with("--")) return false;
  typed.remove_prefix(2);
  const std::vector<std::string_view> also = split_words(flag.also);
  return typed == flag.name || std::ranges::find(also, typed) != also.end();
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
  constexpr std::size_t kFew = 3;  // verbs that a message names
  std::string takers;
  std::size_t count = 0;
  for (const Verb& each : verbs())
    if (takes_flag(each.id, flag)) takers += (count++ == 0 ? ": that is a flag of " : ", ") + std::string(each.name);
  throw Misuse(subject(id, action) + " takes no " + dashed(flag) + (count <= kFew ? takers : "") + usage(id, action));
}

[[noreturn]] void unknown_flag(VerbId id, const Action* action, std::string_view argument) {
  const std::string_view typed = argument.substr(0, argument.find('='));
  std::vector<std::string> spelled;
  for (const Flag& flag : flags()) {
    const bool is_letter = flag.letter && typed.size() == 2 && typed[0] == '-' && typed[1] == flag.letter;
    const bool meant =
        is_called(flag, typed) || (is_letter && std::ranges::count(flags(), flag.letter, &Flag::letter) == 1);
    if (meant) foreign_flag(id, action, flag);
    if (takes_flag(id, action, flag)) spelled.push_back(dashed(flag));
  }
  const std::vector<std::string_view> known(spelled.begin(), spelled.end());
  const std::string_view near = nearest_word(typed, known);
  std::error_code error;
  if (std::filesystem::exists(argument, error))
    throw Misuse(subject(id, action) + " has no flag " + quote(typed) + "; the file of that name is " +
                 quote("./" + std::string(argument)));
  throw Misuse(subject(id, action) + " has no flag " + quote(typed) +
               (near.empty() ? "; see 'weighbridge " + subject(id, action) + " --help'"
                             : "; did you mean " + std::string(near) + "?"));
}

void check_word(const Flag& flag, std::string_view value, std::span<const std::string_view> known) {
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
  const bool minimum = number && (range.above ? *number > range.minimum : *number >= range.minimum);
  if (minimum && std::isfinite(*number) && *number <= range.maximum) return;
  // The message leaves out a bound that nobody comes near.
  const bool bounded = range.maximum <= (1 << 24);
  throw Misuse(
      dashed(flag) + " must be a " + (whole ? "whole number" : "number") +
      (range.above ? " above " + number_text(range.minimum) + (bounded ? ", at most " + number_text(range.maximum) : "")
       : bounded   ? " from " + number_text(range.minimum) + " to " + number_text(range.maximum)
                   : ", at least " + number_text(range.minimum)) +
      ", not " + quote(value));
}

void check_time(const Flag& flag, std::string_view value) {
  constexpr std::string_view kForm = "0000-00-00T00:00:00Z";
  const auto fits = [](char c, char form) { return form == '0' ? c >= '0' && c <= '9' : c == form; };
  if (!std::ranges::equal(value, kForm, fits))
    throw Misuse(dashed(flag) + " must be a time like 2026-01-31T12:00:00Z, not " + quote(value));
}

// "33554432" of "32MiB".
std::string bytes_of(const Flag& flag, std::string_view value) try {
  return std::to_string(number_of({.name = flag.name, .type = OptionType::size, .range = flag.range}, value));
} catch (const Error& error) {
  throw Misuse("--" + shown(error.what()));
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
  if (flag.given == Given::list) values = split_commas(values);
  if (!is_repeatable(flag.given) && values.size() > 1) throw Misuse(dashed(flag) + " is given more than once");
  const std::vector<std::string_view> known = words(flag);
  for (std::string& value : values) {
    // "BFloat16" is bf16, and "Q4_K_M" q4_k_m: the words of flags are in lower case.
    std::string lower = value;
    for (char& c : lower) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
    if (const auto short_name = short_dtype_name(lower); std::ranges::find(known, short_name) != known.end())
      value = short_name;
    if (value.empty() && !flag.may_be_empty) throw Misuse(dashed(flag) + " has an empty value");
    if (flag.id == FlagId::dense) check_dense(flag, value, into);
    check_word(flag, value, known);
    if (flag.type == Type::number || flag.type == Type::fraction) check_number(flag, value);
    if (flag.type == Type::time) check_time(flag, value);
    if (flag.type == Type::size) value = bytes_of(flag, value);
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
    const std::string spelled = flag.letter ? std::string("-") + flag.letter : dashed(flag);
    const std::vector<std::string_view> known = words(flag);
    throw Misuse(subject(id, arguments.action) + " needs " + spelled + " " +
                 (known.empty() ? std::string(flag.value) : either(known)) + usage(id, arguments.action));
  }
}

void check_operands(const Arguments& arguments) {
  const Action* const action = arguments.action;
  const VerbId id = arguments.verb;
  const std::string_view operands = operands_of(id, action);
  const auto [minimum, maximum] = operand_count(operands);
  const std::size_t count = arguments.operands.size();
  const std::string who = subject(id, action);
  if (count < minimum)
    throw Misuse(who + " needs " +
                 (count > 0 && operand_name(operands, count) == operand_name(operands, count - 1) ? "another " : "") +
                 std::string(operand_name(operands, count)) + usage(id, action));
  if (maximum != kAny && count > maximum)
    throw Misuse(who + (maximum == 0 ? " takes no operand" : " takes " + std::string(operands) + " only") +
                 ", not also " + quote(arguments.operands[maximum]));
  const std::vector<std::string_view> known = operand_words(id, action);
  if (!known.empty() && std::ranges::find(known, arguments.operands[0]) == known.end())
    throw Misuse(who + " has no " + quote(arguments.operands[0]) + instead(arguments.operands[0], known));
}

// What an argument vector consists of, before it is known which of the verb's actions is meant.
struct Split {
  struct Occurrence {
    const Flag* flag;
    std::vector<std::string> values;  // of all its occurrences
  };
  std::vector<Occurrence> flags;      // in the order of the first occurrence
  std::vector<std::string> operands;  // in their order, with those after "--"
  std::string unknown;                // the first word that looks like a flag and is none
};

class Splitter {
 public:
  Splitter(VerbId id, std::span<const char* const> words) : id_(id), words_(words) {}

  Split split() {
    for (; at_ < words_.size(); ++at_) {
      const std::string_view word = words_[at_];
      if (word == "--") {
        out_.operands.insert(out_.operands.end(), words_.begin() + static_cast<std::ptrdiff_t>(at_) + 1, words_.end());
        break;
      }
      if (word.starts_with("--")) {
        long_flag(word);
      } else if (word.size() > 1 && word[0] == '-') {
        letters(word);
      } else {
        operand(word);
      }
    }
    return std::move(out_);
  }

 private:
  void long_flag(std::string_view word) {
    const std::size_t equals = word.find('=');
    if (word.substr(0, equals) == "--gptq" && takes_flag(id_, flag(FlagId::scheme))) return gptq(word, equals);
    const auto named = [&](const Flag& f) { return takes_flag(id_, f) && is_called(f, word.substr(0, equals)); };
    const auto flag = std::ranges::find_if(flags(), named);
    if (flag == flags().end()) return unknown(word);
    if (flag->value.empty() && equals != std::string_view::npos) throw Misuse(dashed(*flag) + " takes no value");
    if (equals == std::string_view::npos) return given(*flag, {});
    const std::string_view value = word.substr(equals + 1);
    if (value.empty() && !flag->may_be_empty) throw Misuse(dashed(*flag) + " has an empty value");
    given(*flag, value);
  }

  // "--gptq ZEROS" was the name of "--scheme gptq:zeros=ZEROS".
  void gptq(std::string_view word, std::size_t equals) {
    const bool beside = equals == word.npos;
    if (beside && at_ + 1 == words_.size()) throw Misuse("--gptq needs a value: auto, v1 or v2");
    const std::string said =
        "gptq:zeros=" + std::string(beside ? std::string_view(words_[++at_]) : word.substr(equals + 1));
    given(flag(FlagId::scheme), said);
  }

  // "-f", "-fq" for two flags without values, "-oOUT".
  void letters(std::string_view word) {
    for (std::size_t i = 1; i < word.size(); ++i) {
      const auto named = [&](const Flag& f) { return takes_flag(id_, f) && f.letter && f.letter == word[i]; };
      const auto flag = std::ranges::find_if(flags(), named);
      if (flag == flags().end()) return unknown(i == 1 ? std::string(word) : "-" + std::string(word.substr(i)));
      const std::string_view rest = word.substr(i + 1);
      const bool takes_rest = !flag->value.empty() && !rest.empty();
      given(*flag, takes_rest ? std::optional(rest) : std::nullopt);
      if (takes_rest) return;
    }
  }

  void unknown(std::string_view word) {
    if (out_.unknown.empty()) out_.unknown = word;
    taking_ = nullptr;
  }

  // Whether the word after a flag whose value may be left out is that value: not a flag, and not a file.
  static bool may_be_value(const Flag& flag, std::string_view word) {
    if (flag.type == Type::file || (word.size() > 1 && word[0] == '-')) return false;
    const std::vector<std::string_view> known = words(flag);
    std::error_code ignored;
    return known.empty() || std::ranges::find(known, short_dtype_name(word)) != known.end() ||
           (word.find_first_of("./") == word.npos && !std::filesystem::exists(word, ignored));
  }

  // Without a value beside the flag, the next word is it.
  void given(const Flag& flag, std::optional<std::string_view> value) {
    auto found = std::ranges::find(out_.flags, &flag, &Split::Occurrence::flag);
    if (found == out_.flags.end()) found = out_.flags.insert(found, {&flag, {}});
    if (!value && !flag.value.empty() && at_ + 1 < words_.size()) {
      const std::string_view next = words_[at_ + 1];
      if (flag.given != Given::optional || may_be_value(flag, next)) {
        value = next;
        ++at_;
      }
    }
    if (value) {
      found->values.emplace_back(*value);
    } else if (!flag.value.empty() && flag.given != Given::optional) {
      throw Misuse(dashed(flag) + " needs a value: " + std::string(flag.value));
    }
    taking_ = flag.given == Given::files ? &flag : nullptr;
  }

  // Files that follow a value of a flag for files are its values too, as in "MODEL --corpus notes/*.txt QUERY". The
  // first operand is not, or it would be taken for one of the files.
  void operand(std::string_view word) {
    std::error_code ignored;
    if (taking_ && !out_.operands.empty() && word != "-" && std::filesystem::exists(word, ignored)) {
      std::ranges::find(out_.flags, taking_, &Split::Occurrence::flag)->values.emplace_back(word);
      return;
    }
    taking_ = nullptr;
    out_.operands.emplace_back(word);
  }

  VerbId id_;
  std::span<const char* const> words_;
  std::size_t at_ = 0;
  const Flag* taking_ = nullptr;  // the flag for files whose value was the last word
  Split out_;
};

// What people type for a job that is a flag here.
constexpr std::pair<std::string_view, const char*> kJobs[] = {
    {"merge",
     "convert BASE --merge-lora ADAPTER -o OUT' for an adapter, or 'weighbridge convert A B -o OUT' for files"},
    {"lora", "convert BASE --merge-lora ADAPTER -o OUT"},
    {"quantize", "convert MODEL --quantize q8_0 -o OUT.gguf"},
    {"quantise", "convert MODEL --quantize q8_0 -o OUT.gguf"},
    {"dequantize", "convert MODEL --dequantize f32 -o OUT"},
    {"cast", "convert MODEL --cast bf16 -o OUT"},
    {"scan", "check FILE"},
    {"audit", "check FILE"},
    {"stats", "inspect --stats FILE"},
    {"salvage", "doctor --salvage OUT FILE"},
    {"trim", "doctor --trim OUT FILE"},
    {"tree", "inspect --tree FILE"},
};

// Ignores case, because records spell the steps in capitals.
bool same_letters(std::string_view a, std::string_view b) {
  const auto small = [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; };
  return std::ranges::equal(a, b, {}, small, small);
}

}  // namespace

const Verb* verb_named(std::string_view name) {
  const auto found = std::ranges::find_if(verbs(), [&](const Verb& verb) {
    const std::vector<std::string_view> aliases = split_words(verb.aliases);
    return name == verb.name || std::ranges::find(aliases, name) != aliases.end();
  });
  return found == verbs().end() ? nullptr : &*found;
}

const Verb& find_verb(std::string_view name) {
  if (const Verb* const named = verb_named(name)) return *named;
  std::vector<std::string_view> names;
  for (const Verb& v : verbs()) names.push_back(v.name);
  for (const auto& [meant, instead] : kJobs)
    if (meant == name) throw Misuse("there is no verb " + quote(name) + "; try 'weighbridge " + instead + "'");
  std::string near(nearest_word(name, names));
  for (const Verb& v : verbs())
    if (!name.empty() && (" " + std::string(v.also) + " ").find(" " + std::string(name) + " ") != std::string::npos)
      near = v.name;
  if (name == "version") near = "--version";
  throw Misuse("there is no verb " + quote(name) +
               (near.empty() ? "; 'weighbridge --help' lists them" : "; did you mean '" + near + "'?"));
}

const Action* find_action(VerbId id, std::span<const std::string> typed, bool wants_help) {
  const std::span<const Action> all = actions_of(id);
  const std::string name(verb(id).name);
  if (all.empty() || (typed.empty() && wants_help)) return nullptr;
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
  if (typed.size() < 2 && wants_help) return nullptr;  // help for all its steps
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
  Split split = Splitter(id, {arguments, static_cast<std::size_t>(count)}).split();
  const auto is_help = [](const Split::Occurrence& each) { return each.flag->id == FlagId::help; };
  const bool wants_help = std::ranges::any_of(split.flags, is_help);
  out.action = find_action(id, split.operands, wants_help);
  out.operands = std::move(split.operands);
  if (wants_help) {
    if (out.action || actions_of(id).empty()) out.operands.clear();  // else an action with steps, or empty
    out.set(FlagId::help, {});
    return out;
  }
  if (!split.unknown.empty()) unknown_flag(id, out.action, split.unknown);
  if (out.action) out.operands.erase(out.operands.begin(), out.operands.begin() + (out.action->step.empty() ? 1 : 2));
  for (const Split::Occurrence& each : split.flags)
    if (!takes_flag(id, out.action, *each.flag)) foreign_flag(id, out.action, *each.flag);
  for (Split::Occurrence& each : split.flags)
    check_flag(flag_of(*each.flag, id, out.action), std::move(each.values), out);
  check_operands(out);
  check_needs(out);
  return out;
}

}  // namespace weighbridge::cli
