// SPDX-License-Identifier: Apache-2.0
// Fuzz target: WordPiece. The first byte of the input chooses the options; a vocabulary follows up to the first byte
// 0xFF, and then the text. The ids and spans must be those of a naive implementation, which runs the steps of the
// reference one after the other over the whole text and tries every length for every match.
#include <algorithm>
#include <map>
#include <utility>

#include "base/utf8.h"
#include "harness.h"
#include "tokenizers/characters.h"
#include "tokenizers/unicode_tables_generated.h"
#include "weighbridge/tokenize.h"

namespace weighbridge::fuzz {
namespace {

constexpr std::string_view kSpecials = "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\n";

// A character of the text between steps, and where it came from.
struct Letter {
  char32_t code_point;
  TokenSpan from;
};
using Letters = std::vector<Letter>;

class Plain {
 public:
  Plain(const Tokenizer& vocabulary, const WordPieceOptions& options) : options_(options) {
    for (std::size_t i = 0; i < vocabulary.tokens.size(); ++i) {
      ids_[std::string(vocabulary.tokens[i])] = static_cast<std::uint32_t>(i);
      longest_ = std::max(longest_, vocabulary.tokens[i].size());
    }
  }

  void run(std::string_view text) {
    for (std::size_t at = 0; at < text.size();) {
      std::string_view special;
      for (const std::string_view each : {"[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"})
        if (text.substr(at).starts_with(each)) special = each;
      if (!special.empty()) {
        segment();
        put(ids_.at(std::string(special)), {at, at + special.size()});
        at += special.size();
        continue;
      }
      const auto decoded = tokenizers::decode_replacing(text, at);
      replaced += decoded.valid ? 0 : 1;
      letters_.push_back({decoded.code_point, {at, at + decoded.length}});
      at += decoded.length;
    }
    segment();
  }

  std::vector<std::uint32_t> ids;
  std::vector<TokenSpan> spans;
  std::uint64_t replaced = 0;

 private:
  static std::uint8_t flags(const Letter& letter) { return tokenizers::character(letter.code_point).flags; }

  void segment() {
    Letters out;
    for (const Letter& letter : letters_) {
      if (flags(letter) & tokenizers::kRemoved) continue;
      const bool alone = options_.space_chinese && (flags(letter) & tokenizers::kChinese);
      if (alone) out.push_back({U' ', letter.from});
      out.push_back((flags(letter) & tokenizers::kSpace) ? Letter{U' ', letter.from} : letter);
      if (alone) out.push_back({U' ', letter.from});
    }
    letters_.clear();
    if (options_.strip_accents.value_or(options_.lower_case)) out = stripped(out);
    if (options_.lower_case) out = lowered(out);
    split(out);
  }

  static Letters stripped(const Letters& in) {
    struct Part {
      char32_t code_point;
      std::uint8_t combining_class;
      bool added;
    };
    std::vector<Part> parts;
    for (const Letter& letter : in) {
      const tokenizers::Decomposition decomposition(letter.code_point, tokenizers::character(letter.code_point));
      for (const char32_t& part : decomposition.parts())
        parts.push_back({part, tokenizers::character(part).combining_class, &part != decomposition.parts().data()});
    }
    for (auto begin = parts.begin(); begin != parts.end();) {
      auto end = std::find_if(begin, parts.end(), [](const Part& part) { return part.combining_class == 0; });
      std::stable_sort(begin, end, [](const Part& a, const Part& b) { return a.combining_class < b.combining_class; });
      begin = end == parts.end() ? end : end + 1;
    }
    Letters out;
    std::size_t taken = 0;
    for (const Part& part : parts) {
      if (!part.added) ++taken;
      const Letter letter{part.code_point, taken == 0 ? TokenSpan{} : in[taken - 1].from};
      if (!(flags(letter) & tokenizers::kMark)) out.push_back(letter);
    }
    return out;
  }

  static Letters lowered(const Letters& in) {
    Letters out;
    for (const Letter& letter : in) {
      if (letter.code_point == U'\u0130') {
        out.push_back({U'i', letter.from});
        out.push_back({U'\u0307', letter.from});
      } else {
        out.push_back({tokenizers::character(letter.code_point).lower, letter.from});
      }
    }
    return out;
  }

  void split(const Letters& in) {
    Letters word;
    for (const Letter& letter : in) {
      const bool space = (flags(letter) & tokenizers::kSpace) != 0;
      const bool alone = (flags(letter) & tokenizers::kPunctuation) != 0;
      if (space || alone) pieces(std::exchange(word, {}));
      if (alone) pieces({letter});
      if (!space && !alone) word.push_back(letter);
    }
    pieces(word);
  }

  static std::string spelled(const Letters& word, std::size_t begin, std::size_t end) {
    std::string out = begin > 0 ? "##" : "";
    for (std::size_t i = begin; i < end; ++i) {
      char bytes[4];
      out.append(bytes, tokenizers::put_utf8(bytes, word[i].code_point));
    }
    return out;
  }

  void pieces(const Letters& word) {
    if (word.empty()) return;
    const std::size_t before = ids.size();
    std::size_t begin = 0;
    while (word.size() <= options_.word_limit && begin < word.size()) {
      std::size_t end = std::min(word.size(), begin + longest_);
      while (end > begin && !ids_.contains(spelled(word, begin, end))) --end;
      if (end == begin) break;
      put(ids_.at(spelled(word, begin, end)), {word[begin].from.begin, word[end - 1].from.end});
      begin = end;
    }
    if (begin == word.size()) return;
    ids.resize(before);
    spans.resize(before);
    put(ids_.at("[UNK]"), {word.front().from.begin, word.back().from.end});
  }

  void put(std::uint32_t id, TokenSpan span) {
    ids.push_back(id);
    spans.push_back(span);
  }

  WordPieceOptions options_;
  std::map<std::string, std::uint32_t> ids_;
  std::size_t longest_ = 0;  // bytes, and so at least as many characters
  Letters letters_;
};

void expect_same(const WordPiece& tokenizer, const Plain& plain, std::string_view text) {
  std::vector<std::uint32_t> ids(WordPiece::bound(text.size()));
  std::vector<TokenSpan> spans(ids.size());
  const Encoded all = tokenizer.encode(text, ids, {.special = false}, spans);
  expect(!all.truncated && all.replaced == plain.replaced, "truncated, or invalid sequences miscounted");
  ids.resize(all.count);
  spans.resize(all.count);
  expect(ids == plain.ids, "the ids are not those of the plain way");
  expect(spans == plain.spans, "the spans are not those of the plain way");
  expect(tokenizer.encode(text, {.special = false}) == ids, "without spans the ids are others");

  std::vector<std::uint32_t> first(ids.size() / 2);
  const Encoded cut = tokenizer.encode(text, first, {.special = false});
  expect(cut.count == first.size() && std::equal(first.begin(), first.end(), ids.begin()), "truncated ids are others");
  expect(cut.truncated == (first.size() < ids.size()) && cut.replaced == all.replaced, "truncation tells it wrongly");
  WordPiece::to_code_points(text, spans);
  for (const TokenSpan& span : spans) expect(span.begin <= span.end && span.end <= text.size(), "a span past the text");
}

// A tokenizer of the words up to the first invalid UTF-8, which must be refused.
Tokenizer vocabulary_of(std::string_view words) {
  const std::size_t end = base::find_invalid_utf8(words);
  if (end != std::string_view::npos) {
    bool refused = false;
    try {
      WordPiece::vocabulary(std::string(kSpecials) + std::string(words));
    } catch (const Error& error) {
      refused = error.finding().rule == "tokenizer/utf8";
    }
    expect(refused, "a vocabulary that is no UTF-8 was taken");
  }
  return WordPiece::vocabulary(std::string(kSpecials) + std::string(words.substr(0, end)));
}

// The way for all steps gives what the way for BERT's gives.
void expect_same_by_steps(const WordPiece& tokenizer, const Tokenizer& vocabulary, std::string_view text) {
  WordPieceOptions options = tokenizer.options();
  const auto spelled = [](bool flag) -> std::string { return flag ? "true" : "false"; };
  options.rules = R"({"normalizer":{"type":"BertNormalizer","lowercase":)" + spelled(options.lower_case) +
                  R"(,"handle_chinese_chars":)" + spelled(options.space_chinese) + R"(,"strip_accents":)" +
                  (options.strip_accents ? spelled(*options.strip_accents) : "null") + "}}";
  const WordPiece steps(vocabulary, options);
  std::vector<std::uint32_t> ids, by_steps;
  const Encoded one = tokenizer.encode_all(text, ids), other = steps.encode_all(text, by_steps);
  if (ids != by_steps || one != other) fail("the two ways to divide a text differ");
}

}  // namespace
}  // namespace weighbridge::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace weighbridge;
  if (size == 0) return 0;
  const std::string_view input(reinterpret_cast<const char*>(data) + 1, size - 1);
  const std::size_t middle = std::min(input.find('\xFF'), input.size());
  const Tokenizer vocabulary = fuzz::vocabulary_of(input.substr(0, middle));
  const std::string text(input.substr(std::min(middle + 1, input.size())));
  WordPieceOptions options{.lower_case = (data[0] & 1) == 0, .space_chinese = (data[0] & 2) == 0};
  if (data[0] & 4) options.strip_accents = (data[0] & 8) != 0;
  if (data[0] & 16) options.word_limit = 5;
  // Skips vocabularies in which a later line replaces a special token, which the naive implementation does not handle.
  for (std::size_t i = 5; i < vocabulary.tokens.size(); ++i)
    if (fuzz::kSpecials.find(vocabulary.tokens[i]) != std::string_view::npos && vocabulary.tokens[i].size() > 4)
      return 0;
  const WordPiece tokenizer(vocabulary, options);
  fuzz::Plain plain(vocabulary, options);
  plain.run(text);
  fuzz::expect_same(tokenizer, plain, text);
  fuzz::expect_same_by_steps(tokenizer, vocabulary, text);

  const bool masked = std::find(plain.ids.begin(), plain.ids.end(), 4U) != plain.ids.end();
  if (fuzz::is_planted() && masked && plain.replaced > 0)
    fuzz::fail("planted bug: a special token and an invalid sequence in one text");
  return 0;
}
