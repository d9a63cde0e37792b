// SPDX-License-Identifier: Apache-2.0
// The expressions are those of the tokenizers' own files (tokenizer.json), as src/llama-vocab.cpp of
// github.com/ggml-org/llama.cpp lists them. They use: characters, classes, the counts ? * + {n} {m,n}, alternatives of
// such sequences, and (?!\S) or (?:...)? at the end of one; [a~b] with a class a is a without b, for lookaheads of
// llama.cpp. That is parsed here once, so that the table can be compared with its sources by eye.
#include "tokenizers/splitter.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "tokenizers/characters.h"
#include "tokenizers/unicode_classes_generated.h"

namespace weighbridge::tokenizers {
namespace {

constexpr std::size_t kNo = std::numeric_limits<std::size_t>::max();

#define WB_CONTRACTIONS "'[sS]|'[tT]|'[rR][eE]|'[vV][eE]|'[mM]|'[lL][lL]|'[dD]"
// In a tokenizer.json, and what that matches: an S in either case is also U+017F, which llama.cpp leaves alone.
#define WB_FOLDING "(?i:'s|'t|'re|'ve|'m|'ll|'d)"
#define WB_FOLDED "'[sS\u017F]|'[tT]|'[rR][eE]|'[vV][eE]|'[mM]|'[lL][lL]|'[dD]"
#define WB_END R"(\s*[\r\n]+|\s+(?!\S)|\s+)"
// Words of upper-case letters and then lower-case ones; `UPPER` and `LOWER` both have those without case.
#define WB_CASED(UPPER, LOWER, THEN) \
  R"([^\r\n\p{L}\p{N}]?[)" UPPER "]*[" LOWER "]+" THEN R"(|[^\r\n\p{L}\p{N}]?[)" UPPER "]+[" LOWER "]*" THEN
#define WB_UPPER R"(\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M})"
#define WB_LOWER R"(\p{Ll}\p{Lm}\p{Lo}\p{M})"
// What llama.cpp does: letters that are not of ASCII have no case, and marks are no letters.
#define WB_ANY_UPPER R"(\p{L}~a-z)"
#define WB_ANY_LOWER R"(\p{L}~A-Z)"
#define WB_GPT4O R"(|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|)" WB_END
#define WB_TEKKEN R"(|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*|)" WB_END
constexpr std::string_view kGpt2 = R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";
constexpr std::string_view kOfGpt2[] = {kGpt2};
constexpr std::string_view kOfDefault[] = {R"([\p{P}$+<=>^~|]+)", kGpt2, R"(\p{N}+)", "[0-9][0-9][0-9]"};
constexpr std::string_view kOfFalcon[] = {R"([\p{P}$+<=>^~|`]+)", kGpt2, "[0-9][0-9][0-9]"};
constexpr std::string_view kOfStarcoder[] = {R"(\p{N})", kGpt2};
#define WB_LLAMA3 R"(|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|)" WB_END
#define WB_QWEN2 R"(|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|)" WB_END
#define WB_QWEN35 R"(|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*|)" WB_END
constexpr std::string_view kOfLlama3[] = {WB_CONTRACTIONS WB_LLAMA3};
constexpr std::string_view kOfQwen2[] = {WB_CONTRACTIONS WB_QWEN2};
constexpr std::string_view kOfQwen35[] = {WB_CONTRACTIONS WB_QWEN35};
constexpr std::string_view kLlama3Folded[] = {WB_FOLDED WB_LLAMA3}, kLlama3Spelled[] = {WB_FOLDING WB_LLAMA3};
constexpr std::string_view kQwen2Folded[] = {WB_FOLDED WB_QWEN2}, kQwen2Spelled[] = {WB_FOLDING WB_QWEN2};
constexpr std::string_view kQwen35Folded[] = {WB_FOLDED WB_QWEN35}, kQwen35Spelled[] = {WB_FOLDING WB_QWEN35};
constexpr std::string_view kOfGpt4o[] = {WB_CASED(WB_ANY_UPPER, WB_ANY_LOWER, "(?:" WB_CONTRACTIONS ")?") WB_GPT4O},
                           kGpt4oFolded[] = {WB_CASED(WB_UPPER, WB_LOWER, "(?:" WB_FOLDED ")?") WB_GPT4O},
                           kGpt4oSpelled[] = {WB_CASED(WB_UPPER, WB_LOWER, WB_FOLDING "?") WB_GPT4O},
                           kOfTekken[] = {WB_CASED(WB_ANY_UPPER, WB_ANY_LOWER, "") WB_TEKKEN},
                           kTekkenSpelled[] = {WB_CASED(WB_UPPER, WB_LOWER, "") WB_TEKKEN};
constexpr std::string_view kOfDeepseekCoder[] = {R"([\r\n])", R"(\s?\p{L}+)", R"(\s?\p{P}+)",
                                                 "[\u4E00-\u9FA5\u0800-\u4E00\uAC00-\uD7FF]+", R"(\p{N})"};
#define WB_DEEPSEEK3(QUOTE)                                                                         \
  "[!" QUOTE R"(#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+)" \
  R"(| ?[\p{P}\p{S}]+[\r\n]*|)" WB_END
#define WB_DIGITS3_CJK R"(\p{N}{1,3})", "[\u4E00-\u9FA5\u3040-\u309F\u30A0-\u30FF]+"
constexpr std::string_view kOfDeepseek3[] = {WB_DIGITS3_CJK, WB_DEEPSEEK3("\"")},
                           kDeepseek3Spelled[] = {WB_DIGITS3_CJK, WB_DEEPSEEK3("\\\"")};
// With the two characters themselves.
constexpr std::string_view kDeepseekCoderSpelled[] = {"[\r\n]", R"(\s?\p{L}+)", R"(\s?\p{P}+)",
                                                      "[\u4E00-\u9FA5\u0800-\u4E00\uAC00-\uD7FF]+", R"(\p{N})"};
#undef WB_CONTRACTIONS
#undef WB_FOLDING
#undef WB_FOLDED
#undef WB_LLAMA3
#undef WB_QWEN2
#undef WB_QWEN35
#undef WB_END
#undef WB_DEEPSEEK3
#undef WB_DIGITS3_CJK
#undef WB_CASED
#undef WB_UPPER
#undef WB_LOWER
#undef WB_ANY_UPPER
#undef WB_ANY_LOWER
#undef WB_GPT4O
#undef WB_TEKKEN

constexpr Splitter::Named kNamed[] = {{"default", false, kOfDefault},
                                      {"gpt-2", false, kOfGpt2},
                                      {"phi-2", false, kOfGpt2},
                                      {"mpt", false, kOfGpt2},
                                      {"olmo", false, kOfGpt2},
                                      {"jais", false, kOfGpt2},
                                      {"mellum", false, kOfGpt2},
                                      {"exaone4", false, kOfGpt2},
                                      {"modern-bert", false, kOfGpt2},
                                      {"falcon", false, kOfFalcon},
                                      {"starcoder", false, kOfStarcoder},
                                      {"refact", false, kOfStarcoder},
                                      {"command-r", false, kOfStarcoder},
                                      {"smollm", false, kOfStarcoder},
                                      {"codeshell", false, kOfStarcoder},
                                      {"llama3", true, kOfLlama3},
                                      {"llama-v3", true, kOfLlama3},
                                      {"llama-bpe", true, kOfLlama3},
                                      {"falcon3", true, kOfLlama3},
                                      {"dbrx", false, kOfLlama3},
                                      {"smaug-bpe", false, kOfLlama3},
                                      {"qwen2", false, kOfQwen2},
                                      {"deepseek-r1-qwen", false, kOfQwen2},
                                      {"stablelm2", false, kOfQwen2},
                                      {"megrez", false, kOfQwen2},
                                      {"qwen35", false, kOfQwen35},
                                      {"deepseek-coder", false, kOfDeepseekCoder},
                                      {"deepseek-v3", false, kOfDeepseek3},
                                      {"gpt-4o", false, kOfGpt4o},
                                      {"llama4", false, kOfGpt4o},
                                      {"tekken", true, kOfTekken},
                                      {"hf-gpt-4o", false, kGpt4oFolded},
                                      {"hf-tekken", false, kTekkenSpelled},
                                      {"hf-llama-bpe", false, kLlama3Folded},
                                      {"hf-qwen2", false, kQwen2Folded},
                                      {"hf-qwen35", false, kQwen35Folded}};

constexpr std::string_view kCaseOfAscii =
    "with words divided before combining marks, and not where the case of letters outside ASCII changes";
constexpr Splitter::Spelled kSpelled[] = {{"hf-llama-bpe", "dbrx", "llama-bpe", kLlama3Spelled},
                                          {"hf-qwen2", "qwen2", "", kQwen2Spelled},
                                          {"hf-qwen35", "qwen35", "", kQwen35Spelled},
                                          {"hf-gpt-4o", "gpt-4o", "", kGpt4oSpelled, kCaseOfAscii},
                                          {"hf-tekken", "", "tekken", kTekkenSpelled, kCaseOfAscii},
                                          {"gpt-2", "gpt-2", "", kOfGpt2},
                                          {"smollm", "smollm", "", kOfStarcoder},
                                          {"deepseek-coder", "deepseek-coder", "", kOfDeepseekCoder},
                                          {"deepseek-coder", "deepseek-coder", "", kDeepseekCoderSpelled},
                                          {"deepseek-v3", "deepseek-v3", "", kOfDeepseek3},
                                          {"deepseek-v3", "deepseek-v3", "", kDeepseek3Spelled}};

std::uint8_t kinds_of(char32_t c) noexcept {
  const auto* const after =
      std::upper_bound(std::begin(kClassRuns), std::end(kClassRuns), static_cast<std::uint32_t>(c) << 8 | 0xFF);
  return static_cast<std::uint8_t>(after[-1] & 0xFF);
}

char32_t take_character(std::string_view& rest) {
  const DecodedText one = decode_replacing(rest, 0);
  rest.remove_prefix(one.length);
  return one.code_point;
}

std::size_t take_number(std::string_view& rest) {
  std::size_t out = 0;
  for (; rest[0] >= '0' && rest[0] <= '9'; rest.remove_prefix(1))
    out = out * 10 + static_cast<std::size_t>(rest[0] - '0');
  return out;
}

}  // namespace

const Splitter::Named* Splitter::find(std::string_view name) noexcept {
  const auto at = std::ranges::find(kNamed, name, &Named::name);
  return at == std::end(kNamed) ? nullptr : &*at;
}

const Splitter::Spelled* Splitter::find(std::span<const std::string> expressions) noexcept {
  const auto at = std::ranges::find_if(
      kSpelled, [&](const Spelled& each) { return std::ranges::equal(each.expressions, expressions); });
  return at == std::end(kSpelled) ? nullptr : &*at;
}

const Splitter::Spelled* Splitter::spelled_as(const Named& named) noexcept {
  const auto at = std::ranges::find_if(kSpelled, [&](const Spelled& each) {
    const Named* const own = find(named.whole_words ? each.pre_whole : each.pre);
    return own != nullptr && own->expressions.data() == named.expressions.data();
  });
  return at == std::end(kSpelled) ? nullptr : &*at;
}

const std::string_view Splitter::kOfByteLevel = kGpt2;

Splitter::Splitter(const Named& named) {
  for (std::string_view expression : named.expressions) expressions_.push_back(parse(expression));
}

bool Splitter::Class::has(char32_t c, std::uint8_t kinds_of_c) const noexcept {
  const auto holds = [c](const auto& range) { return c >= range.first && c <= range.second; };
  const bool in = (kinds_of_c & kinds) != 0 || (not_kinds != 0 && (kinds_of_c & not_kinds) == 0) ||
                  std::ranges::any_of(ranges, holds);
  return (in && std::ranges::none_of(without, holds)) != negated;
}

// One character, \p{L}, \s, \r, \- or [...]. Titles are of the same class as upper case, and modifiers as letters
// without case: the expressions have both or neither.
Splitter::Class Splitter::parse_class(std::string_view& rest) {
  Class out;
  const auto one = [&]() -> char32_t {  // 0: a class, which was added
    if (rest[0] != '\\') return take_character(rest);
    const char kind = rest[1];
    rest.remove_prefix(2);
    if (kind == 'r' || kind == 'n') return kind == 'r' ? U'\r' : U'\n';
    if (kind == 's') return out.kinds |= kWhite, 0;
    if (kind == 'S') return out.not_kinds |= kWhite, 0;
    if (kind != 'p') return static_cast<unsigned char>(kind);
    constexpr std::pair<char, std::uint8_t> kKinds[] = {
        {'N', kNumber}, {'P', kPunctuationMark}, {'S', kSymbol}, {'M', kCombining}};
    constexpr std::pair<char, std::uint8_t> kCases[] = {{'}', kUpper | kLower | kCaseless},
                                                        {'u', kUpper},
                                                        {'t', kUpper},
                                                        {'l', kLower},
                                                        {'m', kCaseless},
                                                        {'o', kCaseless}};
    const bool letter = rest[1] == 'L';
    out.kinds |= std::ranges::find(letter ? std::span(kCases) : std::span<const std::pair<char, std::uint8_t>>(kKinds),
                                   rest[letter ? 2 : 1], &std::pair<char, std::uint8_t>::first)
                     ->second;
    rest.remove_prefix(rest.find('}') + 1);
    return 0;
  };
  if (rest[0] != '[') {
    if (const char32_t c = one(); c != 0) out.ranges.emplace_back(c, c);
    return out;
  }
  rest.remove_prefix(1);
  if (rest[0] == '^') {
    out.negated = true;
    rest.remove_prefix(1);
  }
  bool without = false;
  while (rest[0] != ']') {
    if (rest[0] == '~' && out.kinds == (kUpper | kLower | kCaseless)) {
      without = true;
      rest.remove_prefix(1);
    }
    const char32_t first = one();
    if (first == 0) continue;
    char32_t last = first;
    if (rest[0] == '-' && rest[1] != ']') {
      rest.remove_prefix(1);
      last = one();
    }
    (without ? out.without : out.ranges).emplace_back(first, last);
  }
  rest.remove_prefix(1);
  return out;
}

// Up to the end, or to the end of a group.
Splitter::Expression Splitter::parse(std::string_view& rest) {
  constexpr std::string_view kBeforeWhite = R"((?!\S))", kGroup = "(?:", kEnd = ")?";
  Expression out(1);
  while (!rest.empty() && !rest.starts_with(kEnd)) {
    if (rest.starts_with(kGroup)) {
      rest.remove_prefix(kGroup.size());
      out.back().then = parse(rest);
      rest.remove_prefix(kEnd.size());
      continue;
    }
    if (rest[0] == '|') {
      rest.remove_prefix(1);
      out.emplace_back();
      continue;
    }
    if (rest.starts_with(kBeforeWhite)) {
      rest.remove_prefix(kBeforeWhite.size());
      out.back().before_white = true;
      continue;
    }
    Item item{.of = parse_class(rest)};
    const char count = rest.empty() ? ' ' : rest[0];
    if (count == '?' || count == '*') item.minimum = 0;
    if (count == '*' || count == '+') item.maximum = kNo;
    if (count == '?' || count == '*' || count == '+') rest.remove_prefix(1);
    if (count == '{') {
      rest.remove_prefix(1);
      item.minimum = item.maximum = take_number(rest);
      if (rest[0] == ',') {
        rest.remove_prefix(1);
        item.maximum = take_number(rest);
      }
      rest.remove_prefix(1);  // }
    }
    out.back().items.push_back(std::move(item));
  }
  return out;
}

// Where a match of the items from `item` on ends; kNo: there is none. As many characters as possible go to each item.
std::size_t Splitter::match(const Alternative& of, std::size_t item, std::span<const Character> text, std::size_t at) {
  if (item == of.items.size()) {
    if (of.before_white && at < text.size() && (text[at].kinds & kWhite) == 0) return kNo;
    const std::size_t end = of.then.empty() ? kNo : match(of.then, text, at);
    return end == kNo ? at : end;
  }
  const Item& one = of.items[item];
  std::size_t count = 0;
  while (count < one.maximum && at + count < text.size() &&
         one.of.has(text[at + count].code_point, text[at + count].kinds))
    ++count;
  for (; count >= one.minimum; --count) {
    if (const std::size_t end = match(of, item + 1, text, at + count); end != kNo) return end;
    if (count == 0) break;
  }
  return kNo;
}

std::size_t Splitter::match(const Expression& expression, std::span<const Character> text, std::size_t at) {
  for (const Alternative& one : expression)
    if (const std::size_t end = match(one, 0, text, at); end != kNo && end > at) return end;
  return kNo;
}

std::vector<std::uint32_t> Splitter::ends(std::string_view text) const {
  std::vector<Character> characters;
  for (std::size_t at = 0; at < text.size();) {
    const DecodedText one = decode_replacing(text, at);
    const std::uint32_t length = one.valid ? one.length : 1;
    at += length;
    characters.push_back(
        {one.code_point, one.valid ? kinds_of(one.code_point) : kSymbol, static_cast<std::uint32_t>(at)});
  }
  std::vector<std::size_t> words{characters.size()}, next;  // ends, in characters
  for (const Expression& expression : expressions_) {
    next.clear();
    std::size_t begin = 0;
    for (const std::size_t end : words) {
      const std::span<const Character> word(characters.data() + begin, end - begin);
      std::size_t left = 0;  // where what did not match begins
      for (std::size_t at = 0; at < word.size();) {
        const std::size_t last = match(expression, word, at);
        if (last == kNo) {
          ++at;
          continue;
        }
        if (at > left) next.push_back(begin + at);
        next.push_back(begin + last);
        at = left = last;
      }
      if (left < word.size()) next.push_back(end);
      begin = end;
    }
    words.swap(next);
  }
  std::vector<std::uint32_t> out;
  out.reserve(words.size());
  for (const std::size_t end : words)
    if (end > 0) out.push_back(characters[end - 1].end);
  return out;
}

}  // namespace weighbridge::tokenizers
