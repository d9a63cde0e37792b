// SPDX-License-Identifier: Apache-2.0
// Tests every flag of every verb and action from the tables: parsing, checks, refusals, help, completion and manual.
#include <gtest/gtest.h>

#include <algorithm>
#include <charconv>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "arguments.h"
#include "help.h"

namespace weighbridge::cli {
namespace {

using Line = std::vector<std::string>;

std::string dashed(const Flag& flag) { return "--" + std::string(flag.name); }

std::string text(double number) {
  char digits[400];
  return {digits, std::to_chars(digits, digits + sizeof digits, number, std::chars_format::fixed).ptr};
}

std::string sample(const Flag& flag) {
  switch (flag.type) {
    case Type::text:
    case Type::file: return "x";
    case Type::size: return "33554432";
    case Type::number:
    case Type::fraction: return text(flag.range.minimum + (flag.range.above ? 0.5 : 0));
    case Type::time: return "2026-01-31T12:00:00Z";
    case Type::limit: return std::string(words(flag).front()) + "=1";
    case Type::word: return std::string(words(flag).front());
  }
  return {};
}

Line given(const Flag& flag, std::string_view value) {
  if (flag.value.empty()) return {dashed(flag)};
  return {dashed(flag) + "=" + std::string(value)};
}
Line given(const Flag& flag) { return given(flag, sample(flag)); }

Line operator+(Line a, const Line& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

// The shortest valid line of the command, without the flag `missing`.
Line shortest(const Command& command, FlagId missing = FlagId::none) {
  Line out;
  if (command.action) {
    out.emplace_back(command.action->name);
    if (!command.action->step.empty()) out.emplace_back(command.action->step);
  }
  const std::vector<std::string_view> first = operand_words(command.verb->id, command.action);
  const OperandCount count = operand_count(operands_of(command.verb->id, command.action));
  for (std::size_t i = 0; i < count.minimum; ++i)
    out.push_back(i == 0 && !first.empty() ? std::string(first[0]) : "operand");
  for (const Flag& flag : flags())
    if (needs_flag(command.verb->id, command.action, flag) && flag.id != missing)
      out = out + given(flag_of(flag, command.verb->id, command.action));
  return out;
}

// The same with the flag and the flags that it needs.
Line with(const Command& command, const Flag& flag, const Line& spelled) {
  Line out = shortest(command, flag.id) + spelled;
  for (FlagId other = companion_of(flag, command.verb->id, command.action);
       other != FlagId::none && !needs_flag(command.verb->id, command.action, cli::flag(other));
       other = companion_of(cli::flag(other), command.verb->id, command.action))
    out = out + given(cli::flag(other));
  return out;
}
Line with(const Command& command, const Flag& flag) { return with(command, flag, given(flag)); }

Arguments parsed(const Command& command, const Line& line) {
  std::vector<const char*> words;
  for (const std::string& word : line) words.push_back(word.c_str());
  return parse(command.verb->id, static_cast<int>(words.size()), words.data());
}

// The error message for a line; empty if it is accepted.
std::string refusal(const Command& command, const Line& line) {
  try {
    parsed(command, line);
    return {};
  } catch (const Misuse& misuse) {
    return misuse.what();
  }
}

template <class Work> void for_each_flag(Work&& work) {
  for (const Command& command : commands())
    for (const Flag& flag : flags())
      if (takes_flag(command.verb->id, command.action, flag)) {
        SCOPED_TRACE(command.words() + " " + dashed(flag));
        work(command, flag_of(flag, command.verb->id, command.action));
      }
}

// The words that completion offers for the last of these, behind those of the command.
std::vector<std::string> offered(const Command& command, const Line& typed) {
  const std::string words = command.words();
  Line line;
  for (const std::string_view word : split_words(words)) line.emplace_back(word);
  std::vector<std::string> out;
  for (const auto& [word, says] : completions(line + typed).words) out.push_back(word);
  return out;
}
const std::string& page_of(const Verb& verb) {
  static std::map<VerbId, std::string> pages;
  std::string& out = pages[verb.id];
  if (out.empty()) out = manual_page(verb, "");
  return out;
}

bool holds(const std::string& whole, std::string_view part) { return whole.find(part) != std::string::npos; }

bool is_one(std::string_view word, const std::vector<std::string_view>& words) {
  return std::ranges::find(words, word) != words.end();
}

TEST(Flags, RowsHaveWhatTheirTypesNeed) {
  for (const Flag& flag : flags()) {
    SCOPED_TRACE(flag.name);
    EXPECT_FALSE(flag.name.empty() || flag.help.empty() || flag.where.empty());
    EXPECT_EQ(flag.listed != nullptr || !flag.words.empty() || (flag.info != nullptr && flag.type == Type::word),
              flag.type == Type::word || flag.type == Type::limit);
    EXPECT_TRUE(!flag.value.empty() || (flag.type == Type::text && flag.given == Given::once && flag.standard.empty()));
    EXPECT_TRUE((flag.where | flag.required) == flag.where);
    EXPECT_EQ(flag.of.has_value(), flag.info != nullptr) << "an option that the library does not have";
    for (const Own& own : flag.own) EXPECT_EQ(own.of.has_value(), own.info != nullptr);
    for (const Flag& other : flags())
      EXPECT_TRUE(flag.id == other.id || !flag.where.overlaps(other.where) ||
                  (flag.name != other.name && !is_one(flag.name, split_words(other.also)) &&
                   !(flag.letter && flag.letter == other.letter)))
          << other.name;
  }
}

TEST(Flags, GiveEachOptionThatTheTableSaysTheCommandTakes) {
  for (const OptionInfo& option : all_options()) {
    bool taken = false;
    for (const Flag& flag : flags()) {
      taken = taken || flag.info == &option;
      for (const Own& own : flag.own) taken = taken || own.info == &option;
    }
    EXPECT_EQ(taken, option.command) << name(option.of) << " " << option.name;
  }
}

TEST(Flags, EachIsTakenWhereItsRowSays) {
  std::size_t count = 0;
  for_each_flag([&](const Command& command, const Flag& flag) {
    ++count;
    EXPECT_EQ(refusal(command, shortest(command)), "");
    const Line line = with(command, flag);
    ASSERT_EQ(refusal(command, line), "");
    EXPECT_TRUE(parsed(command, line).has(flag.id));
    if (!flag.value.empty() && flag.id != FlagId::help) {
      EXPECT_EQ(parsed(command, line).value(flag.id), sample(flag));
      EXPECT_EQ(refusal(command, with(command, flag, {dashed(flag), sample(flag)})), "")
          << "with a blank in place of =";
    }
    if (!flag.letter) return;
    Line by_letter{std::string("-") + flag.letter};
    if (!flag.value.empty()) by_letter.push_back(sample(flag));
    EXPECT_EQ(refusal(command, with(command, flag, by_letter)), "");
  });
  EXPECT_GT(count, kFlagCount);
}

TEST(Flags, EachIsRefusedEverywhereElse) {
  for (const Command& command : commands())
    for (const Flag& flag : flags()) {
      const auto takes_name = [&](const Flag& other) {  // of another flag
        return takes_flag(command.verb->id, command.action, other) &&
               (other.name == flag.name || is_one(flag.name, split_words(other.also)));
      };
      if (std::ranges::any_of(flags(), takes_name)) continue;
      SCOPED_TRACE(command.words() + " " + dashed(flag));
      EXPECT_TRUE(holds(refusal(command, shortest(command) + given(flag)), " takes no " + dashed(flag)));
    }
}

TEST(Flags, NumbersAreBounded) {
  for_each_flag([](const Command& command, const Flag& flag) {
    if (flag.type != Type::number && flag.type != Type::fraction) return;
    const auto refused = [&](const std::string& value) {
      return refusal(command, with(command, flag, given(flag, value)));
    };
    const Range& range = flag.range;
    const double step = flag.type == Type::number ? 1 : 0.5;
    const std::string of = dashed(flag) + " must be a ";
    if (range.above) {
      EXPECT_TRUE(holds(refused(text(range.minimum)), of));
    } else {
      EXPECT_EQ(refused(text(range.minimum)), "");
    }
    EXPECT_TRUE(holds(refused(text(range.minimum - step)), of));
    for (const char* const value : {"x", "nan", "inf", "-inf", "1x", "0x10"})
      EXPECT_TRUE(holds(refused(value), of)) << value;
    if (flag.type == Type::number) {
      EXPECT_TRUE(holds(refused("2.5"), of));
    }
    if (range.maximum < 0x1p53) {
      EXPECT_EQ(refused(text(range.maximum)), "");
      EXPECT_TRUE(holds(refused(text(range.maximum + step)), of));
    }
    if (range.maximum <= 1 << 24) {
      EXPECT_TRUE(holds(refused(text(range.maximum + step)), (range.above ? "at most " : " to ") + text(range.maximum)))
          << "the sentence has the bound";
    }
  });
}

TEST(Flags, ValuesAreSomeOfTheirWords) {
  for_each_flag([](const Command& command, const Flag& flag) {
    if (flag.type != Type::word && flag.type != Type::limit) return;
    const std::string end = flag.type == Type::limit ? "=1" : "";
    ASSERT_FALSE(words(flag).empty());
    for (const std::string_view word : words(flag))
      EXPECT_EQ(refusal(command, with(command, flag, given(flag, std::string(word) + end))), "") << word;
    EXPECT_NE(refusal(command, with(command, flag, given(flag, "zzzzzzzz" + end))), "");
  });
}

TEST(Flags, ATimeIsWrittenInFull) {
  for_each_flag([](const Command& command, const Flag& flag) {
    if (flag.type != Type::time) return;
    for (const char* const value : {"yesterday", "2026-01-31", "2026-01-31T12:00:00", "2026-01-31T12:00:00+01:00"})
      EXPECT_TRUE(holds(refusal(command, with(command, flag, given(flag, value))), "must be a time like")) << value;
  });
}

TEST(Flags, ThoseThatCannotStandTogetherAreRefused) {
  std::size_t count = 0;
  for_each_flag([&](const Command& command, const Flag& flag) {
    for (const Flag& other : flags()) {
      if (!flag.excludes.has(other.id) || !takes_flag(command.verb->id, command.action, other)) continue;
      ++count;
      for (const Line& both : {given(flag) + given(other), given(other) + given(flag)})
        EXPECT_EQ(refusal(command, with(command, flag, both)),
                  dashed(flag) + " and " + dashed(other) + " cannot be used together");
    }
  });
  EXPECT_GE(count, 5U);
}

TEST(Flags, OneThatNeedsAnotherIsRefusedWithoutIt) {
  std::size_t count = 0;
  for_each_flag([&](const Command& command, const Flag& flag) {
    const FlagId other = companion_of(flag, command.verb->id, command.action);
    if (other == FlagId::none || needs_flag(command.verb->id, command.action, cli::flag(other))) return;
    ++count;
    EXPECT_EQ(refusal(command, shortest(command) + given(flag)),
              dashed(flag) + " has no effect without " + dashed(cli::flag(other)));
  });
  EXPECT_GE(count, 2U);
}

TEST(Flags, ARequiredOneIsNamedWhereItIsMissing) {
  std::size_t count = 0;
  for_each_flag([&](const Command& command, const Flag& flag) {
    if (!needs_flag(command.verb->id, command.action, flag)) return;
    ++count;
    const std::string spelled = flag.letter ? std::string("-") + flag.letter : dashed(flag);
    EXPECT_TRUE(holds(refusal(command, shortest(command, flag.id)), command.words() + " needs " + spelled));
    EXPECT_TRUE(holds(usage_of(command.verb->id, command.action), " " + spelled + " " + std::string(flag.value)));
  });
  EXPECT_GE(count, 15U);
}

TEST(Flags, OnlyListsMayBeGivenAgain) {
  for_each_flag([](const Command& command, const Flag& flag) {
    if (flag.value.empty()) return;
    const std::string twice = refusal(command, with(command, flag, given(flag) + given(flag)));
    const bool may = is_repeatable(flag.given);
    EXPECT_EQ(twice, may ? "" : dashed(flag) + " is given more than once");
    if (flag.given == Given::list) {
      EXPECT_EQ(
          parsed(command, with(command, flag, given(flag, sample(flag) + "," + sample(flag)))).values(flag.id).size(),
          2U);
    }
  });
}

TEST(Flags, AValueIsAskedForAndNotEmpty) {
  for_each_flag([](const Command& command, const Flag& flag) {
    if (flag.value.empty()) {
      EXPECT_EQ(refusal(command, with(command, flag, {dashed(flag) + "=1"})), dashed(flag) + " takes no value");
      return;
    }
    if (flag.given == Given::optional) return;
    if (!flag.may_be_empty) {
      EXPECT_EQ(refusal(command, with(command, flag, {dashed(flag) + "="})), dashed(flag) + " has an empty value");
    }
    EXPECT_EQ(refusal(command, shortest(command, flag.id) + Line{dashed(flag)}),
              dashed(flag) + " needs a value: " + std::string(flag.value));
  });
}

TEST(Flags, OtherNamesAreTakenAndNotListed) {
  std::set<std::string_view> seen;
  for_each_flag([&](const Command& command, const Flag& flag) {
    for (const std::string_view name : split_words(flag.also)) {
      seen.insert(name);
      const std::string other = "--" + std::string(name);
      const Line spelled = flag.value.empty() ? Line{other} : Line{other + "=" + sample(flag)};
      ASSERT_EQ(refusal(command, with(command, flag, spelled)), "");
      EXPECT_TRUE(parsed(command, with(command, flag, spelled)).has(flag.id));
      EXPECT_FALSE(holds(help_of(command.verb->id, command.action), other + " "));
      EXPECT_EQ(std::ranges::count(offered(command, {other}), other), 0);
      EXPECT_FALSE(holds(page_of(*command.verb), other + " "));
    }
  });
  EXPECT_EQ(seen, (std::set<std::string_view>{"dequantise", "quantise", "quantise-norms", "normalise", "no-normalise",
                                              "colour", "filter", "glob", "gptq", "force", "ignore-unsigned-files",
                                              "key", "only", "shard-size", "file"}));
}

TEST(Flags, ADefaultIsAValueThatTheFlagTakes) {
  for_each_flag([](const Command& command, const Flag& flag) {
    if (flag.standard.empty()) return;
    EXPECT_EQ(refusal(command, with(command, flag, given(flag, flag.standard))), "");
    EXPECT_TRUE(
        help_of(flag, command.verb->id, command.action).ends_with("(default: " + std::string(flag.standard) + ")"));
    if (flag.type == Type::number || flag.type == Type::fraction) {
      EXPECT_EQ(text(parsed(command, shortest(command)).number<double>(flag.id)), std::string(flag.standard));
    }
  });
}

// A text without its line wrapping.
std::string flowing(const std::string& text) {
  std::string out;
  for (const char c : text)
    if (c != '\n' && c != ' ')
      out += c;
    else if (!out.empty() && out.back() != ' ')
      out += ' ';
  return out;
}

TEST(Flags, HelpHasThoseThatAreTakenAndNoOthers) {
  for (const Command& command : commands()) {
    const std::string help = help_of(command.verb->id, command.action), words = flowing(help);
    for (const Flag& flag : flags()) {
      SCOPED_TRACE(command.words() + " " + dashed(flag));
      if (flag.name == "sha256" && !takes_flag(command.verb->id, command.action, flag)) continue;  // two have this name
      const std::string begin = "\n  " + (flag.letter ? std::string("-") + flag.letter + ", " : "    ") + dashed(flag);
      const bool listed = holds(help, begin + " ") || holds(help, begin + "\n") || holds(help, begin + "[=");
      EXPECT_EQ(listed, takes_flag(command.verb->id, command.action, flag));
      if (listed) {
        EXPECT_TRUE(holds(words, flowing(help_of(flag, command.verb->id, command.action))));
      }
    }
  }
}

TEST(Flags, CompletionOffersThoseThatAreTakenAndNoOthers) {
  for (const Command& command : commands()) {
    std::vector<std::string> taken;
    for (const Flag& flag : flags()) {
      if (!takes_flag(command.verb->id, command.action, flag)) continue;
      taken.push_back(dashed(flag));
      if (flag.value.empty() || flag.given == Given::optional) continue;
      std::vector<std::string> known;
      for (const std::string_view word : words(flag_of(flag, command.verb->id, command.action)))
        known.push_back(std::string(word) + (flag.type == Type::limit ? "=" : ""));
      EXPECT_EQ(offered(command, {dashed(flag), ""}), known) << command.words() << " " << dashed(flag);
    }
    EXPECT_EQ(offered(command, {"-"}), taken) << command.words();
  }
}

TEST(Flags, TheManualHasEach) {
  const auto roff = [](std::string_view text) {  // as on the manual page
    std::string out;
    for (const char c : text) out += c == '-' ? std::string("\\-") : std::string(1, c);
    return out;
  };
  for_each_flag([&](const Command& command, const Flag& flag) {
    const std::string& page = page_of(*command.verb);
    const std::size_t section = command.action ? page.find("\n.SS " + roff(words_of(*command.action)) + "\n") : 0;
    ASSERT_NE(section, std::string::npos);
    EXPECT_TRUE(holds(page.substr(section), "\\fB" + roff(dashed(flag)) + "\\fR"));
  });
  for (const Verb& verb : verbs()) EXPECT_TRUE(holds(manual_page(""), "weighbridge\\-" + std::string(verb.name)));
}

TEST(Verbs, EachSaysItsExitStatuses) {
  for (const Verb& v : verbs()) {
    SCOPED_TRACE(v.name);
    const std::vector<ExitStatus> all = exit_statuses(v.id);
    ASSERT_GE(all.size(), 4U);
    EXPECT_EQ(all.front().status, 0);
    std::set<int> seen;
    for (const ExitStatus& each : all) {
      EXPECT_TRUE(seen.insert(each.status).second);
      EXPECT_TRUE(holds(flowing(help_of(v.id)), " " + std::to_string(each.status) + " " + std::string(each.says)));
      EXPECT_TRUE(holds(page_of(v), "\\fB" + std::to_string(each.status) + "\\fR"));
    }
    EXPECT_TRUE(seen.contains(2) && seen.contains(4) && seen.contains(130));
  }
}

TEST(Verbs, OperandsAreCountedFromTheUsageLine) {
  const auto count = [](std::string_view operands) {
    const OperandCount out = operand_count(operands);
    return std::pair(out.minimum, out.maximum);
  };
  EXPECT_EQ(count(""), std::pair(std::size_t{0}, std::size_t{0}));
  EXPECT_EQ(count("IN... [OUT]"), std::pair(std::size_t{1}, kAny));
  EXPECT_EQ(count("IN OUT"), std::pair(std::size_t{2}, std::size_t{2}));
  EXPECT_EQ(count("FILE [TENSOR]"), std::pair(std::size_t{1}, std::size_t{2}));
  EXPECT_EQ(count("MODEL TEXT TEXT..."), std::pair(std::size_t{3}, kAny));
  EXPECT_EQ(count("MODEL [TEXT...]"), std::pair(std::size_t{1}, kAny));
}

}  // namespace
}  // namespace weighbridge::cli
