// SPDX-License-Identifier: Apache-2.0
// A text as a line of characters with their places, and what each step does to it.
#include "tokenizers/steps.h"

#include <algorithm>
#include <iterator>
#include <unordered_map>
#include <utility>

#include "base/fail.h"
#include "core/model/words.h"
#include "tokenizers/characters.h"
#include "tokenizers/unicode_steps_generated.h"
#include "tokenizers/unicode_tables_generated.h"

namespace weighbridge::tokenizers {
namespace {

using tokenizers::SplitStep, tokenizers::TextStep;

bool in_runs(std::span<const CharacterRun> runs, char32_t c) noexcept {
  const auto after = std::ranges::upper_bound(runs, c, {}, &CharacterRun::first);
  return after != runs.begin() && c <= std::prev(after)->last;
}
bool is_word(char32_t c) noexcept {
  if (c < 0x80) return (c >= '0' && c <= '9') || ((c | 0x20) >= 'a' && (c | 0x20) <= 'z') || c == '_';
  return in_runs(kWordRuns, c);
}
// Cleaning removes the three that have no flag.
bool is_white(char32_t c) noexcept { return c == 0x0B || c == 0x0C || c == 0x85 || (character(c).flags & kSpace) != 0; }
bool is_punctuation(char32_t c) noexcept { return (character(c).flags & kPunctuation) != 0; }

using namespace hangul;

// The character that two become; 0 if they stay two.
char32_t composed(char32_t first, char32_t second) noexcept {
  if (first >= kInitial && first < kInitial + kInitials && second >= kVowel && second < kVowel + kVowels)
    return kSyllable + ((first - kInitial) * kVowels + (second - kVowel)) * kFinals;
  if (first >= kSyllable && first < kSyllable + kSyllables && (first - kSyllable) % kFinals == 0 && second > kFinal &&
      second < kFinal + kFinals)
    return first + (second - kFinal);
  const auto* const at =
      std::ranges::lower_bound(kCompositions, std::pair(first, second), {},
                               [](const Composition& each) { return std::pair(each.first, each.second); });
  return at != std::end(kCompositions) && at->first == first && at->second == second ? at->whole : 0;
}

template <class Line> void decompose(Line& line) {
  Line out;
  out.reserve(line.size());
  for (const auto& each : line) {
    const Character is = character(each.code);
    const Decomposition parts(each.code, is);
    for (const char32_t part : parts.parts()) out.push_back({part, each.at});
  }
  for (auto begin = out.begin(); begin != out.end();) {
    const auto combines = [](const auto& each) { return character(each.code).combining_class != 0; };
    begin = std::find_if(begin, out.end(), combines);
    const auto end = std::find_if_not(begin, out.end(), combines);
    std::stable_sort(begin, end, [](const auto& a, const auto& b) {
      return character(a.code).combining_class < character(b.code).combining_class;
    });
    begin = end;
  }
  line = std::move(out);
}

template <class Line> void compose(Line& line) {
  Line out;
  out.reserve(line.size());
  std::size_t starter = line.size();  // none
  unsigned before = 0;                // the class of the last character
  for (const auto& each : line) {
    const unsigned rank = character(each.code).combining_class;
    if (starter < out.size() && (starter + 1 == out.size() || before < rank))
      if (const char32_t whole = composed(out[starter].code, each.code)) {
        out[starter].code = whole;
        out[starter].at.end = std::max(out[starter].at.end, each.at.end);
        continue;
      }
    if (rank == 0) starter = out.size();
    before = rank;
    out.push_back(each);
  }
  line = std::move(out);
}

template <class Line> void lower(Line& line) {
  Line more;
  for (std::size_t i = 0; i < line.size(); ++i) {
    const char32_t code = line[i].code;
    if (code == U'\u0130' && more.empty()) more.assign(line.begin(), line.begin() + static_cast<std::ptrdiff_t>(i));
    const bool two = code == U'\u0130';  // the only character whose lower case is two characters
    line[i].code = two ? U'i' : character(code).lower;
    if (two || !more.empty()) more.push_back(line[i]);
    if (two) more.push_back({U'\u0307', line[i].at});
  }
  if (!more.empty()) line = std::move(more);
}

template <class Line> void bert(Line& line, const TextStep& step) {
  if (step.clean) {
    std::erase_if(line, [](const auto& each) { return (character(each.code).flags & kRemoved) != 0; });
    for (auto& each : line)
      if (character(each.code).flags & kSpace) each.code = U' ';
  }
  if (step.space_chinese) {
    Line out;
    out.reserve(line.size());
    for (const auto& each : line) {
      const bool alone = (character(each.code).flags & kChinese) != 0;
      if (alone) out.push_back({U' ', each.at});
      out.push_back(each);
      if (alone) out.push_back({U' ', each.at});
    }
    line = std::move(out);
  }
  if (step.accents.value_or(step.lower)) {
    decompose(line);
    std::erase_if(line, [](const auto& each) { return (character(each.code).flags & kMark) != 0; });
  }
  if (step.lower) lower(line);
}

std::u32string code_points(std::string_view text) {
  std::u32string out;
  for (std::size_t at = 0; at < text.size();) {
    const DecodedText one = decode_replacing(text, at);
    out.push_back(one.code_point);
    at += one.length;
  }
  return out;
}

template <class Line> bool stands_at(const Line& line, std::size_t i, const std::u32string& text) {
  return line.size() - i >= text.size() &&
         std::equal(text.begin(), text.end(), line.begin() + static_cast<std::ptrdiff_t>(i),
                    [](char32_t c, const auto& each) { return c == each.code; });
}

// How long the line would become, before anything is made.
template <class Line> std::uint64_t length_after(const Line& line, const TextStep& step) {
  if (step.kind != TextStep::Kind::replace) return line.size();
  const std::u32string from = code_points(step.from), to = code_points(step.to);
  std::uint64_t out = 0;
  for (std::size_t i = 0; i < line.size();) {
    const bool found = stands_at(line, i, from);
    out += found ? to.size() : 1;
    i += found ? from.size() : 1;
  }
  return out;
}

template <class Line> void replace(Line& line, const TextStep& step) {
  const std::u32string from = code_points(step.from), to = code_points(step.to);
  Line out;
  out.reserve(line.size());
  for (std::size_t i = 0; i < line.size();) {
    if (!stands_at(line, i, from)) {
      out.push_back(line[i++]);
      continue;
    }
    const TokenSpan at{line[i].at.begin, line[i + from.size() - 1].at.end};
    for (const char32_t c : to) out.push_back({c, at});
    i += from.size();
  }
  line = std::move(out);
}

template <class Line> void prepend(Line& line, const TextStep& step) {
  if (line.empty()) return;
  Line out;
  for (const char32_t c : code_points(step.to)) out.push_back({c, line[0].at});
  out.insert(out.end(), line.begin(), line.end());
  line = std::move(out);
}

template <class Line> void strip(Line& line, const TextStep& step) {
  const auto stays = [](const auto& each) { return !is_white(each.code); };
  if (step.right) line.erase(std::find_if(line.rbegin(), line.rend(), stays).base(), line.end());
  if (step.left) line.erase(line.begin(), std::find_if(line.begin(), line.end(), stays));
}

template <class Line> void apply(Line& line, const TextStep& step) {
  using Kind = TextStep::Kind;
  switch (step.kind) {
    case Kind::bert: return bert(line, step);
    case Kind::lower_case: return lower(line);
    case Kind::strip_accents:
      std::erase_if(line, [](const auto& each) { return in_runs(kMarkRuns, each.code); });
      return;
    case Kind::nfd: return decompose(line);
    case Kind::nfc: decompose(line); return compose(line);
    case Kind::strip: return strip(line, step);
    case Kind::replace: return replace(line, step);
    case Kind::prepend: return prepend(line, step);
  }
}

// ---- Words ----

template <class Range> struct Piece {
  Range range;
  bool match;
};

// The pieces of a part of a text: each character that matches is one, and so is what is between two.
template <class Range, class Is> std::vector<Piece<Range>> pieces_of(Range of, Is is) {
  std::vector<Piece<Range>> out;
  for (std::size_t i = of.begin; i < of.end; ++i) {
    const bool match = is(i);
    if (!match && !out.empty() && !out.back().match)
      out.back().range.end = i + 1;
    else
      out.push_back({{i, i + 1}, match});
  }
  return out;
}

template <class Range, class Is> void split(Range of, SplitStep::Behavior behavior, Is is, std::vector<Range>& out) {
  using Behavior = SplitStep::Behavior;
  const std::vector<Piece<Range>> pieces = pieces_of(of, is);
  const std::size_t first = out.size();
  const auto joins = [&](std::size_t i, bool before) { return pieces[i].match && !before; };
  switch (behavior) {
    case Behavior::removed:
      for (const auto& piece : pieces)
        if (!piece.match) out.push_back(piece.range);
      return;
    case Behavior::isolated:
      for (const auto& piece : pieces) out.push_back(piece.range);
      return;
    case Behavior::contiguous:
      for (std::size_t i = 0; i < pieces.size(); ++i)
        if (i > 0 && pieces[i].match == pieces[i - 1].match)
          out.back().end = pieces[i].range.end;
        else
          out.push_back(pieces[i].range);
      return;
    case Behavior::with_previous:
      for (std::size_t i = 0; i < pieces.size(); ++i)
        if (out.size() > first && joins(i, i > 0 && pieces[i - 1].match))
          out.back().end = pieces[i].range.end;
        else
          out.push_back(pieces[i].range);
      return;
    case Behavior::with_next:
      for (std::size_t i = pieces.size(); i-- > 0;)
        if (out.size() > first && joins(i, i + 1 < pieces.size() && pieces[i + 1].match))
          out.back().begin = pieces[i].range.begin;
        else
          out.push_back(pieces[i].range);
      std::reverse(out.begin() + static_cast<std::ptrdiff_t>(first), out.end());
  }
}

}  // namespace

Stepwise::Stepwise(std::span<const Vocabulary::Entry> entries, const std::vector<AddedText>& added, Settings settings)
    : settings_(std::move(settings)), vocabulary_(entries, settings_.prefix) {
  std::vector<AddedText> raw, normalized;
  std::unordered_map<std::string, tokenizers::AddedToken> texts;
  for (const AddedText& each : added) {
    if (!each.token.normalized) {
      raw.push_back(each);
      continue;
    }
    Line line;
    for (const char32_t c : code_points(each.text)) line.push_back({c, {0, each.text.size()}});
    AddedText changed{each.token, {}};
    std::uint64_t room = kMaxGrowth * each.text.size() + kMaxMore;
    for (const Placed& one : normalize(std::move(line), room)) {
      char bytes[4];
      changed.text.append(bytes, put_utf8(bytes, one.code));
    }
    if (changed.text.empty())
      base::unsupported("tokenizer/added", "the normalizer of the tokenizer deletes the added token " +
                                               core::quoted(core::excerpt(each.text)));
    // Which of the two the reference finds differs from one run of it to the next.
    const auto [first, is_new] = texts.try_emplace(changed.text, changed.token);
    if (!is_new && first->second != changed.token)
      base::unsupported("tokenizer/added", "the normalizer of the tokenizer makes one text of two added tokens: " +
                                               core::quoted(core::excerpt(each.text)) + " is " +
                                               core::quoted(core::excerpt(changed.text)));
    normalized.push_back(std::move(changed));
  }
  raw_ = finder_of(std::move(raw));
  normalized_ = finder_of(std::move(normalized));
}

// Of equal texts, the first one counts.
Stepwise::Finder Stepwise::finder_of(std::vector<AddedText> tokens) {
  std::vector<Vocabulary::Entry> entries;
  Finder out{std::move(tokens), {}};
  for (std::size_t i = out.tokens.size(); i-- > 0;)
    entries.push_back({out.tokens[i].text, static_cast<std::uint32_t>(i)});
  out.trie.emplace(entries);
  return out;
}

// Calls text(range) for what is between the tokens, and token(id, range).
template <class Text, class Token>
void Stepwise::divide(const Line& line, const Finder& finder, const Text& text, const Token& token) const {
  if (finder.tokens.empty()) return text(Range{0, line.size()});
  std::string bytes;
  std::vector<std::size_t> starts;  // of each character in `bytes`
  starts.reserve(line.size() + 1);
  for (const Placed& each : line) {
    starts.push_back(bytes.size());
    char one[4];
    bytes.append(one, put_utf8(one, each.code));
  }
  starts.push_back(bytes.size());
  const std::string_view all = bytes;
  std::size_t done = 0;
  for (std::size_t i = 0; i < line.size();) {
    const Vocabulary::Match found = finder.trie->longest(all.substr(starts[i]), false);
    if (found.length == 0) {
      ++i;
      continue;
    }
    const tokenizers::AddedToken& is = finder.tokens[found.id].token;
    std::size_t begin = i;
    std::size_t end =
        static_cast<std::size_t>(std::ranges::lower_bound(starts, starts[i] + found.length) - starts.begin());
    i = end;
    if (is.single_word &&
        ((begin > 0 && is_word(line[begin - 1].code)) || (end < line.size() && is_word(line[end].code))))
      continue;
    if (is.lstrip) {
      while (begin > 0 && is_white(line[begin - 1].code)) --begin;
      begin = std::max(begin, done);
    }
    if (is.rstrip)
      while (end < line.size() && is_white(line[end].code)) ++end;
    if (done < begin) text(Range{done, begin});
    token(is.id, Range{begin, end});
    done = end;
  }
  if (done != line.size()) text(Range{done, line.size()});
}

Stepwise::Line Stepwise::normalize(Line line, std::uint64_t& room) const {
  const auto check = [&](std::uint64_t length) {
    if (length > room)
      base::over_limit(
          "memory", "the steps of the tokenizer make a text more than " + std::to_string(kMaxGrowth) + " times as long",
          length);
  };
  for (const TextStep& step : settings_.normalizer) {
    check(length_after(line, step));
    apply(line, step);
    check(line.size());
  }
  room -= std::min<std::uint64_t>(room, line.size());
  return line;
}

std::vector<Stepwise::Range> Stepwise::words(const Line& line) const {
  using Kind = SplitStep::Kind;
  using Behavior = SplitStep::Behavior;
  std::vector<Range> out;
  if (!line.empty()) out.push_back({0, line.size()});
  const auto divide_by = [&](Behavior behavior, auto is) {
    std::vector<Range> next;
    for (const Range& each : out)
      split(
          each, behavior, [&](std::size_t i) { return is(line[i].code); }, next);
    out = std::move(next);
  };
  for (const SplitStep& step : settings_.pre_tokenizer) {
    switch (step.kind) {
      case Kind::bert:
        divide_by(Behavior::removed, is_white);
        divide_by(Behavior::isolated, is_punctuation);
        break;
      case Kind::words:  // letters and digits, or neither those nor white space
        divide_by(Behavior::removed, is_white);
        divide_by(Behavior::contiguous, is_word);
        break;
      case Kind::spaces: divide_by(Behavior::removed, is_white); break;
      case Kind::punctuation: divide_by(step.behavior, is_punctuation); break;
      case Kind::delimiter: divide_by(Behavior::removed, [&](char32_t c) { return c == step.delimiter; }); break;
    }
  }
  return out;
}

void Stepwise::match(std::span<const Placed> word, Tokens& out) const {
  const TokenSpan whole{word.front().at.begin, word.back().at.end};
  const std::size_t first = out.ids.size();
  const auto unknown = [&] {
    out.ids.resize(first);
    out.spans.resize(first);
    out.ids.push_back(settings_.unknown);
    out.spans.push_back(whole);
  };
  if (word.size() > settings_.word_limit) return unknown();
  std::string bytes;
  std::vector<std::size_t> of;  // the character of each byte
  for (std::size_t i = 0; i < word.size(); ++i) {
    char one[4];
    bytes.append(one, put_utf8(one, word[i].code));
    of.resize(bytes.size(), i);
  }
  const std::string_view all = bytes;
  for (std::size_t at = 0; at < bytes.size();) {
    const Vocabulary::Match found = vocabulary_.longest(all.substr(at), at > 0);
    if (found.length == 0) return unknown();
    const std::size_t end = at + found.length;
    out.ids.push_back(found.id);
    out.spans.push_back({word[of[at]].at.begin, word[of[end - 1]].at.end});
    at = end;
  }
}

Stepwise::Tokens Stepwise::run(std::string_view text) const {
  Tokens out;
  Line line;
  line.reserve(text.size());
  for (std::size_t at = 0; at < text.size();) {
    const DecodedText one = decode_replacing(text, at);
    line.push_back({one.code_point, {at, at + one.length}});
    if (!one.valid) ++out.replaced;
    at += one.length;
  }
  std::uint64_t room = kMaxGrowth * text.size() + kMaxMore;
  const auto put_token = [&](const Line& from, std::uint32_t id, Range range) {
    out.ids.push_back(id);
    out.spans.push_back({from[range.begin].at.begin, from[range.end - 1].at.end});
  };
  const auto put_words = [&](const Line& from) {
    for (const Range& word : words(from)) match(std::span(from).subspan(word.begin, word.end - word.begin), out);
  };
  const auto part = [](const Line& from, Range range) {
    return Line(from.begin() + static_cast<std::ptrdiff_t>(range.begin),
                from.begin() + static_cast<std::ptrdiff_t>(range.end));
  };
  divide(
      line, raw_,
      [&](Range plain) {
        const Line changed = normalize(part(line, plain), room);
        divide(
            changed, normalized_, [&](Range rest) { put_words(part(changed, rest)); },
            [&](std::uint32_t id, Range range) { put_token(changed, id, range); });
      },
      [&](std::uint32_t id, Range range) { put_token(line, id, range); });
  return out;
}

}  // namespace weighbridge::tokenizers
