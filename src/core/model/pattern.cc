// SPDX-License-Identifier: Apache-2.0
// Compiles a pattern to steps and follows all alternatives along the name at once (the method of Pike and Thompson).
// Alternatives are ordered, so the match is the one that backtracking would find.
#include "core/model/pattern.h"

#include <algorithm>
#include <array>

#include "base/fail.h"
#include "base/utf8.h"
#include "core/model/words.h"

namespace weighbridge::core {
namespace {

// A match takes the product of the steps and the length of the name. Groups are parsed by recursion. Repeats are
// expanded into steps.
constexpr std::size_t kMaxPatternSteps = 1000, kDeepestGroup = 50, kUnset = SIZE_MAX;
constexpr std::uint32_t kMaxRepeats = 1000;

// "s/a/b/" with a backslash before a slash that belongs to a or b.
std::optional<std::array<std::string, 3>> parts_of(std::string_view text) {
  if (!text.starts_with("s/")) return std::nullopt;
  std::array<std::string, 3> out;
  std::size_t field = 0;
  for (std::size_t i = 2; i < text.size(); ++i) {
    if (text[i] == '\\' && i + 1 < text.size() && field < 2) {
      if (text[i + 1] != '/') out[field] += text[i];
      out[field] += text[++i];
    } else if (text[i] == '/' && field < 2) {
      ++field;
    } else {
      out[field] += text[i];
    }
  }
  if (field != 2 || out[0].empty() || (!out[2].empty() && out[2] != "g")) return std::nullopt;
  return out;
}

bool is_word(char32_t c) noexcept {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}
bool is_word_at(std::string_view text, std::size_t at) noexcept {
  return at < text.size() && is_word(static_cast<unsigned char>(text[at]));
}

}  // namespace

bool Pattern::Set::holds(char32_t c) const noexcept {
  return std::ranges::any_of(ranges, [c](const auto& range) { return range.first <= c && c <= range.second; }) !=
         inverted;
}

// Recursive descent; each function appends the steps of what it reads.
class PatternParser {
 public:
  PatternParser(Pattern& out, std::string_view text) : out_(out), text_(text) {}

  void run() {
    save(0);
    alternatives(0);
    if (at_ < text_.size()) fail("has a ) without a (");
    save(1);
    add(Kind::match);
    out_.anchored_ = out_.steps_[1].kind == Kind::begin;
    out_.slots_ = 2 * groups_;
  }

 private:
  using Step = Pattern::Step;
  using Kind = Step::Kind;
  using Set = Pattern::Set;
  using Steps = std::vector<Step>;

  [[noreturn]] void fail(std::string_view what) const {
    base::misuse("option", "rename cannot use the pattern " + quoted(text_) + ": it " + std::string(what));
  }
  bool more() const noexcept { return at_ < text_.size(); }
  bool accept(std::string_view token) {
    if (!text_.substr(at_).starts_with(token)) return false;
    at_ += token.size();
    return true;
  }
  std::uint32_t here() const noexcept { return static_cast<std::uint32_t>(out_.steps_.size()); }
  void add(Kind kind, std::uint32_t a = 0, std::uint32_t b = 0) {
    if (out_.steps_.size() >= kMaxPatternSteps) fail("is too long, with its repetitions written out");
    out_.steps_.push_back({kind, a, b});
  }
  void save(std::size_t slot) { add(Kind::save, static_cast<std::uint32_t>(slot)); }
  void add_set(Set set) {
    out_.sets_.push_back(std::move(set));
    add(Kind::set, static_cast<std::uint32_t>(out_.sets_.size() - 1));
  }

  // Inserts a step, and adjusts the references of the steps after it.
  void insert(std::uint32_t place, Kind kind) {
    add(kind);
    std::rotate(out_.steps_.begin() + static_cast<std::ptrdiff_t>(place), out_.steps_.end() - 1, out_.steps_.end());
    for (std::uint32_t i = place + 1; i < here(); ++i) move(out_.steps_[i], place, 1);
  }
  static void move(Step& step, std::uint32_t from, std::uint32_t by) {
    if (step.kind != Kind::split && step.kind != Kind::jump) return;
    if (step.a >= from) step.a += by;
    if (step.b >= from) step.b += by;
  }

  void alternatives(std::size_t depth) {
    if (depth > kDeepestGroup) fail("nests too deeply");
    const std::uint32_t begin = here();
    sequence(depth);
    if (!accept("|")) return;
    insert(begin, Kind::split);
    const std::uint32_t jump = here();
    add(Kind::jump);
    out_.steps_[begin].a = begin + 1;
    out_.steps_[begin].b = here();
    alternatives(depth);  // the number of steps bounds these calls
    out_.steps_[jump].a = here();
  }

  void sequence(std::size_t depth) {
    while (more() && text_[at_] != '|' && text_[at_] != ')') {
      const std::uint32_t begin = here();
      const bool repeats = atom(depth);
      repetition(begin, repeats);
    }
  }

  // Returns false for an assertion, which cannot be repeated.
  bool atom(std::size_t depth) {
    if (accept("^")) return add(Kind::begin), false;
    if (accept("$")) return add(Kind::end), false;
    if (accept("\\b")) return add(Kind::word), false;
    if (accept("\\B")) return add(Kind::no_word), false;
    if (accept(".")) return add(Kind::any), true;
    if (accept("[")) return set(), true;
    if (accept("(")) return group(depth), true;
    if (const char c = text_[at_]; c == '*' || c == '+' || c == '?' || c == '{') fail("repeats nothing");
    Set one;
    if (accept("\\"))
      escape(one);
    else
      one.ranges.push_back(single(next()));
    add_set(std::move(one));
    return true;
  }

  void group(std::size_t depth) {
    std::size_t slot = 0;
    if (accept("?:"))
      ;
    else if (accept("?"))
      fail("uses lookahead or lookbehind, which is not supported");
    else if (groups_ == Pattern::kGroups)
      fail("has more than 9 groups: (?: begins one that is not counted");
    else
      slot = 2 * groups_++;
    if (slot != 0) save(slot);
    alternatives(depth + 1);
    if (!accept(")")) fail("has a ( without a )");
    if (slot != 0) save(slot + 1);
  }

  static std::pair<char32_t, char32_t> single(char32_t c) noexcept { return {c, c}; }
  char32_t next() {
    const base::Decoded decoded = base::decode_utf8(text_, at_);
    at_ += decoded.length;
    return decoded.code_point;
  }

  // What follows a backslash. Returns the character that it stands for; nullopt for a class, whose characters are
  // added to the set.
  std::optional<char32_t> escape(Set& out) {
    if (!more()) fail("ends with a backslash");
    const char32_t c = next();
    constexpr std::pair<char32_t, char32_t> kDigit{'0', '9'}, kUpper{'A', 'Z'}, kLower{'a', 'z'}, kScore{'_', '_'};
    const std::vector<std::pair<char32_t, char32_t>> spaces{{'\t', '\r'}, {' ', ' '}, {0xA0, 0xA0}};
    std::vector<std::pair<char32_t, char32_t>> chosen;
    switch (c) {
      case 'd':
      case 'D': chosen = {kDigit}; break;
      case 'w':
      case 'W': chosen = {kDigit, kUpper, kScore, kLower}; break;
      case 's':
      case 'S': chosen = spaces; break;
      case 't': out.ranges.push_back(single('\t')); return '\t';
      case 'n': out.ranges.push_back(single('\n')); return '\n';
      default:
        if (is_word(c)) fail("has a backslash before a letter or digit that has no meaning there");
        out.ranges.push_back(single(c));
        return c;
    }
    if (c == 'D' || c == 'W' || c == 'S') {
      char32_t from = 0;
      for (const auto& [first, last] : chosen) {
        if (first > from) out.ranges.emplace_back(from, first - 1);
        from = last + 1;
      }
      chosen = {{from, 0x10FFFF}};
    }
    out.ranges.insert(out.ranges.end(), chosen.begin(), chosen.end());
    return std::nullopt;
  }

  void set() {
    Set out;
    out.inverted = accept("^");
    while (!accept("]")) {
      if (!more()) fail("has a [ without a ]");
      std::optional<char32_t> low = one_of_set(out);
      if (!low || !text_.substr(at_).starts_with("-") || text_.substr(at_).starts_with("-]")) continue;
      ++at_;
      if (!more()) fail("has a [ without a ]");
      const std::optional<char32_t> high = one_of_set(out);
      if (!high || *high < *low) fail("has a range in [ ] whose end comes before its beginning");
      out.ranges.emplace_back(*low, *high);
    }
    add_set(std::move(out));
  }
  std::optional<char32_t> one_of_set(Set& out) {
    if (accept("\\")) return escape(out);
    const char32_t c = next();
    out.ranges.push_back(single(c));
    return c;
  }

  std::optional<std::uint32_t> number() {
    std::optional<std::uint32_t> out;
    for (; more() && text_[at_] >= '0' && text_[at_] <= '9'; ++at_) {
      out = out.value_or(0) * 10 + static_cast<std::uint32_t>(text_[at_] - '0');
      if (*out > kMaxRepeats) fail("repeats something more than 1000 times");
    }
    return out;
  }

  void repetition(std::uint32_t begin, bool allowed) {
    std::uint32_t minimum = 0;
    std::optional<std::uint32_t> maximum;
    if (accept("*")) {
    } else if (accept("+")) {
      minimum = 1;
    } else if (accept("?")) {
      maximum = 1;
    } else if (accept("{")) {
      const auto first = number();
      if (!first) fail("has a { that no number follows: \\{ is the character");
      minimum = *first;
      if (!accept(","))
        maximum = minimum;
      else
        maximum = number();
      if (!accept("}")) fail("has a { without a }");
      if (maximum && *maximum < minimum) fail("has a repetition whose end comes before its beginning");
    } else {
      return;
    }
    if (!allowed) fail("repeats an assertion");
    const bool lazy = accept("?");
    const Steps body(out_.steps_.begin() + static_cast<std::ptrdiff_t>(begin), out_.steps_.end());
    out_.steps_.resize(begin);
    const auto copy = [&] {
      const std::uint32_t by = here();
      for (Step step : body) {
        if (step.kind == Kind::split || step.kind == Kind::jump)
          step.a = step.a - begin + by, step.b = step.b - begin + by;
        if (step.kind == Kind::jump) step.b = 0;
        add(step.kind, step.a, step.b);
      }
    };
    const auto split = [&](std::uint32_t at, std::uint32_t in, std::uint32_t past) {
      out_.steps_[at].a = lazy ? past : in;
      out_.steps_[at].b = lazy ? in : past;
    };
    for (std::uint32_t i = 0; i < minimum; ++i) copy();
    if (!maximum) {
      const std::uint32_t fork = here();
      add(Kind::split);
      copy();
      add(Kind::jump, fork);
      split(fork, fork + 1, here());
      return;
    }
    std::vector<std::uint32_t> forks;
    for (std::uint32_t i = minimum; i < *maximum; ++i) {
      forks.push_back(here());
      add(Kind::split);
      copy();
    }
    for (const std::uint32_t fork : forks) split(fork, fork + 1, here());
  }

  Pattern& out_;
  std::string_view text_;
  std::size_t at_ = 0, groups_ = 1;
};

bool Pattern::is_one(std::string_view text) { return parts_of(text).has_value(); }

Pattern::Pattern(std::string_view text) {
  const auto parts = parts_of(text);
  if (!parts) base::misuse("option", "rename takes s/PATTERN/REPLACEMENT/, not " + quoted(text));
  replacement_ = (*parts)[1];
  all_ = (*parts)[2] == "g";
  for (std::size_t i = 0; i + 1 < replacement_.size(); ++i)
    if (replacement_[i] == '\\' && replacement_[i + 1] >= '0' && replacement_[i + 1] <= '9')
      base::misuse("option", "rename cannot use the replacement " + quoted(replacement_) +
                                 ": a group is $1 to $9, without a backslash");
  PatternParser(*this, (*parts)[0]).run();
}

std::optional<Pattern::Slots> Pattern::find(std::string_view name, std::size_t from, std::uint64_t& left) const {
  struct Threads {
    std::vector<std::uint32_t> steps;
    std::vector<std::size_t> slots;  // slots_ for each step of the pattern
    std::vector<std::size_t> seen;   // by step: the position at which it was added, plus 1
  };
  Threads now, next;
  for (Threads* each : {&now, &next}) {
    each->slots.resize(steps_.size() * slots_);
    each->seen.assign(steps_.size(), 0);
  }
  std::optional<Slots> best;
  struct Visit {
    std::uint32_t step;
    std::size_t slot, old;  // if slot is not kUnset: restore this slot
  };
  std::vector<Visit> stack;
  Slots slots(slots_, kUnset);
  // Follows all steps that take no character; the first way to reach a step counts.
  const auto add = [&](Threads& to, std::uint32_t first, std::size_t at) {
    stack.assign(1, {first, kUnset, 0});
    while (!stack.empty()) {
      const Visit visit = stack.back();
      stack.pop_back();
      if (visit.slot != kUnset) {
        slots[visit.slot] = visit.old;
        continue;
      }
      if (std::exchange(to.seen[visit.step], at + 1) == at + 1) continue;
      const Step& step = steps_[visit.step];
      const bool border = (at > 0 && is_word_at(name, at - 1)) != is_word_at(name, at);
      switch (step.kind) {
        case Step::Kind::jump: stack.push_back({step.a, kUnset, 0}); break;
        case Step::Kind::split:
          stack.push_back({step.b, kUnset, 0});
          stack.push_back({step.a, kUnset, 0});
          break;
        case Step::Kind::save:
          stack.push_back({0, step.a, slots[step.a]});
          slots[step.a] = at;
          stack.push_back({visit.step + 1, kUnset, 0});
          break;
        case Step::Kind::begin:
          if (at == 0) stack.push_back({visit.step + 1, kUnset, 0});
          break;
        case Step::Kind::end:
          if (at == name.size()) stack.push_back({visit.step + 1, kUnset, 0});
          break;
        case Step::Kind::word:
          if (border) stack.push_back({visit.step + 1, kUnset, 0});
          break;
        case Step::Kind::no_word:
          if (!border) stack.push_back({visit.step + 1, kUnset, 0});
          break;
        default:
          to.steps.push_back(visit.step);
          std::ranges::copy(slots, to.slots.begin() + static_cast<std::ptrdiff_t>(visit.step * slots_));
      }
    }
  };
  left -= std::min<std::uint64_t>(left, steps_.size());
  for (std::size_t at = from;;) {
    if (!best && !(anchored_ && at > 0)) {
      std::ranges::fill(slots, kUnset);
      add(now, 0, at);
    }
    if (left-- == 0)
      base::misuse("option",
                   "the pattern takes too long to be replaced everywhere in the name " + quoted(excerpt(name)));
    if (now.steps.empty() && (best || anchored_ || at >= name.size())) return best;
    const base::Decoded here = at < name.size() ? base::decode_utf8(name, at) : base::Decoded{0, 1, false};
    next.steps.clear();
    for (const std::uint32_t i : now.steps) {
      const Step& step = steps_[i];
      std::copy_n(now.slots.begin() + static_cast<std::ptrdiff_t>(i * slots_), static_cast<std::ptrdiff_t>(slots_),
                  slots.begin());
      if (step.kind == Step::Kind::match) {
        best = slots;
        break;  // what follows has lower priority
      }
      if (at < name.size() && (step.kind == Step::Kind::any || sets_[step.a].holds(here.code_point)))
        add(next, i + 1, at + here.length);
    }
    if (at >= name.size()) return best;
    at += here.length;
    std::swap(now, next);
  }
}

std::optional<std::string> Pattern::apply(std::string_view name) const {
  std::string out;
  std::size_t done = 0, from = 0;
  bool any = false;
  // One match takes at most a step for each character. With several, each may have to look at all that follow, and each
  // prepares all steps of the pattern.
  std::uint64_t left = 64 * std::uint64_t{name.size()} + 1'000'000;
  while (from <= name.size()) {
    const auto found = find(name, from, left);
    if (!found) break;
    any = true;
    const auto text = [&](std::size_t group) {
      const std::size_t begin = 2 * group < found->size() ? (*found)[2 * group] : kUnset;
      return begin == kUnset ? std::string_view() : name.substr(begin, (*found)[2 * group + 1] - begin);
    };
    out += name.substr(done, (*found)[0] - done);
    for (std::size_t i = 0; i < replacement_.size(); ++i) {
      const char c = replacement_[i], after = i + 1 < replacement_.size() ? replacement_[i + 1] : '\0';
      if (c == '$' && (after == '&' || (after >= '1' && after <= '9')))
        out += text(after == '&' ? 0 : static_cast<std::size_t>(after - '0')), ++i;
      else if (c == '$' && after == '$')
        out += c, ++i;
      else
        out += c;
    }
    done = from = (*found)[1];
    if (!all_) break;
    if ((*found)[0] != (*found)[1]) continue;
    // An empty match: the next one begins after the next character.
    if (from >= name.size()) break;
    from += base::decode_utf8(name, from).length;
    out += name.substr(done, from - done);
    done = from;
  }
  if (!any) return std::nullopt;
  return out += name.substr(done);
}

std::optional<std::pair<std::string, std::string>> divided(std::string_view text, char divider) {
  const std::size_t at = text.find(divider);
  if (at == text.npos || at == 0) return std::nullopt;
  return std::pair(std::string(text.substr(0, at)), std::string(text.substr(at + 1)));
}

}  // namespace weighbridge::core
