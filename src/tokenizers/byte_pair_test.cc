// SPDX-License-Identifier: Apache-2.0
// BytePair with small and hostile vocabularies, compared with the readings applied step by step. byte_pair_data_test.cc
// tests llama2.c's vocabulary.
#include <gtest/gtest.h>
#include <sys/mman.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "base/utf8.h"
#include "support/sanitized.h"
#include "support/thrown.h"
#include "tokenizers/merges.h"
#include "weighbridge/tokenize.h"

namespace weighbridge {
namespace {

using test::thrown;
using Ids = std::vector<std::uint32_t>;
using Random = std::mt19937;
using namespace std::string_view_literals;

constexpr FrameOptions kBare{.bos = false};

Tokenizer bytes() {
  Tokenizer out;
  out.kind = Tokenizer::Kind::byte;
  out.vocab_size = 260;
  out.special = {{"bos", 256}, {"eos", 257}, {"pad", 258}, {"unk", 259}};
  return out;
}

// Tokens 0..255 are bytes without records; those of `records` start at 260.
Tokenizer pairs(const std::vector<std::string>& records, std::vector<Tokenizer::Merge> merges) {
  Tokenizer out = bytes();
  out.kind = Tokenizer::Kind::bpe;
  for (const std::string& text : records) {
    out.ids.push_back(260 + static_cast<std::uint32_t>(out.tokens.size()));
    out.tokens.push_back(text);
  }
  out.vocab_size = 260 + static_cast<std::uint32_t>(records.size());
  out.merges = std::move(merges);
  return out;
}

// Only these bytes have records, as themselves.
Tokenizer letters(std::string_view bytes, std::vector<Tokenizer::Merge> merges) {
  Tokenizer out = pairs({}, std::move(merges));
  for (const char& c : bytes) {
    out.ids.push_back(static_cast<unsigned char>(c));
    out.tokens.push_back(std::string_view(&c, 1));
  }
  return out;
}

std::uint32_t below(Random& random, std::uint32_t n) { return static_cast<std::uint32_t>(random() % n); }

// Its memory cannot be read: the length alone decides.
TEST(BytePair, ATextOf4GiBIsRefused) {
  constexpr std::size_t kSize = std::size_t{4} << 30;
  void* const none = ::mmap(nullptr, kSize, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (none == MAP_FAILED) GTEST_SKIP() << "there are no 4 GiB of address space";
  const std::string_view text(static_cast<const char*>(none), kSize);
  for (const Tokenizer& from : {bytes(), pairs({"ab"}, {{'a', 'b', 260, 0}})}) {
    EXPECT_EQ(thrown([&] { static_cast<void>(BytePair(from).encode(text)); }).rule, "misuse/text");
    Builder builder;
    builder.tensor("w", DType::f32, {0}, Bytes{}).tokenizer(from);
    EXPECT_EQ(thrown([&] { static_cast<void>(TextTokenizer(builder.build())(text)); }).rule, "misuse/text");
  }
  ::munmap(none, kSize);
}

// Reading M11, one step at a time, without the leading space.
Ids by_the_reading(const Tokenizer& from, std::string_view text) {
  std::map<std::string, std::uint32_t, std::less<>> highest;
  std::map<std::uint32_t, std::string> records;
  for (std::size_t i = 0; i < from.tokens.size(); ++i) {
    const std::uint32_t id = from.ids.empty() ? static_cast<std::uint32_t>(i) : from.ids[i];
    records[id] = from.tokens[i];
    auto& known = highest.try_emplace(std::string(from.tokens[i]), id).first->second;
    known = std::max(known, id);
  }
  const std::uint32_t unk = from.special.back().second;
  Ids ids;
  for (std::size_t at = 0; at < text.size();) {
    const base::Decoded is = base::decode_utf8(text, at);
    const auto whole = highest.find(text.substr(at, is.length));
    const auto gives = [&](const auto& merge) { return merge.output == whole->second; };
    if (is.valid && whole != highest.end() && std::none_of(from.merges.begin(), from.merges.end(), gives)) {
      ids.push_back(whole->second);
    } else {
      for (const char& c : text.substr(at, is.length)) {
        const auto found = highest.find(std::string_view(&c, 1));
        const auto value = static_cast<unsigned char>(c);
        const bool free = value < from.vocab_size && !records.contains(value);
        ids.push_back(found != highest.end() ? found->second : free ? value : unk);
      }
    }
    at += is.length;
  }
  for (;;) {
    const Tokenizer::Merge* best = nullptr;
    std::size_t where = 0;
    for (std::size_t i = 0; i + 1 < ids.size(); ++i)
      for (const auto& merge : from.merges)
        if (merge.left == ids[i] && merge.right == ids[i + 1] && (best == nullptr || merge.rank < best->rank)) {
          best = &merge;
          where = i;
        }
    if (best == nullptr) return ids;
    ids[where] = best->output;
    ids.erase(ids.begin() + static_cast<std::ptrdiff_t>(where) + 1);
  }
}

TEST(BytePair, BytesAreTheirValues) {
  const BytePair tokenizer(bytes());
  EXPECT_EQ(tokenizer.encode("a\xC3\xA9\xFF"), (Ids{256, 97, 0xC3, 0xA9, 0xFF}));
  EXPECT_EQ(tokenizer.encode("a", {.eos = true}), (Ids{256, 97, 257}));
  EXPECT_EQ(tokenizer.encode(""), Ids{256});
  EXPECT_EQ(tokenizer.encode("", kBare), Ids{});
  EXPECT_EQ(tokenizer.decode(Ids{256, 97, 258, 259, 0, 257}), "a?\0"sv);
  EXPECT_FALSE(tokenizer.prefix_space());
  EXPECT_EQ(tokenizer.size(), 260U);
  EXPECT_EQ((Ids{tokenizer.bos(), tokenizer.eos(), tokenizer.pad(), tokenizer.unk()}), (Ids{256, 257, 258, 259}));
  EXPECT_EQ(tokenizer.token(255), "\xFF");
  EXPECT_EQ(tokenizer.token(256), std::nullopt);
  EXPECT_EQ(tokenizer.token(260), std::nullopt);
}

TEST(BytePair, ASpaceBeforeWhereAskedFor) {
  const BytePair tokenizer(bytes(), {.prefix_space = true});
  EXPECT_EQ(tokenizer.encode("a"), (Ids{256, ' ', 'a'}));
  EXPECT_EQ(tokenizer.encode(""), Ids{256});
  EXPECT_EQ(tokenizer.decode(Ids{256, ' ', ' ', 'a', ' '}), " a ");
  EXPECT_EQ(tokenizer.decode(Ids{' ', 'a'}), " a");  // not after BOS
}

TEST(BytePair, Truncates) {
  const BytePair tokenizer(bytes());
  EXPECT_EQ(tokenizer.encode("abc", {.eos = true, .max_length = 3}), (Ids{256, 'a', 257}));
  EXPECT_EQ(tokenizer.encode("abc", {.eos = true, .max_length = 2}), (Ids{256, 257}));
  EXPECT_EQ(tokenizer.encode("abc", {.bos = false, .max_length = 2}), (Ids{'a', 'b'}));
  EXPECT_EQ(thrown([&] { tokenizer.encode("", {.eos = true, .max_length = 1}); }).rule, "misuse/max-length");
  const BytePair merging(pairs({"ab", "abc"}, {{'a', 'b', 260, 1}, {260, 'c', 261, 2}}));
  EXPECT_EQ(merging.encode("ab abc ab", {.max_length = 4}), (Ids{256, 260, ' ', 261}));
}

TEST(BytePair, LowestRankFirstThenLeftmost) {
  const BytePair ranks(pairs({"ab", "bc", "aa"}, {{'a', 'b', 260, 5}, {'b', 'c', 261, 4}, {'a', 'a', 262, 4}}));
  EXPECT_EQ(ranks.encode("abc", kBare), (Ids{'a', 261}));
  EXPECT_EQ(ranks.encode("aaabc", kBare), (Ids{262, 'a', 261}));
  EXPECT_EQ(ranks.encode("aab", kBare), (Ids{262, 'b'}));
}

TEST(BytePair, OfRepeatedPairsTheLowestRankCountsThenTheFirst) {
  const std::vector<std::string> records = {"ab", "AB", "Ab"};
  EXPECT_EQ(BytePair(pairs(records, {{'a', 'b', 260, 3}, {'a', 'b', 261, 1}, {'a', 'b', 262, 1}})).encode("ab", kBare),
            Ids{261});
  EXPECT_EQ(BytePair(pairs(records, {{'a', 'b', 260, 1}, {'a', 'b', 261, 3}})).encode("ab", kBare), Ids{260});
}

TEST(BytePair, TheHighestRankIsARankLikeAnyOther) {
  const BytePair tokenizer(pairs({"ab", "bc"}, {{'a', 'b', 260, UINT32_MAX}, {'b', 'c', 261, UINT32_MAX}}));
  EXPECT_EQ(tokenizer.encode("xbcabc", kBare), (Ids{'x', 261, 260, 'c'}));
}

TEST(BytePair, CharactersThatAreTokensStartWhole) {
  Tokenizer from = pairs({"\xC3\xA9", "e\xCC\x81", "\xC3", "\xE2\x82\xAC"}, {{262, 0xA8, 263, 0}});
  const BytePair tokenizer(from);
  EXPECT_EQ(tokenizer.encode("\xC3\xA9", kBare), Ids{260});
  EXPECT_EQ(tokenizer.encode("\xC3\xA8", kBare), Ids{263});                     // its bytes, which merge
  EXPECT_EQ(tokenizer.encode("\xE2\x82\xAC", kBare), (Ids{0xE2, 0x82, 0xAC}));  // the output of a merge
  EXPECT_EQ(tokenizer.encode("\xC3", kBare), Ids{262});
  from.tokens.push_back("\xC3\xA9");
  from.ids.push_back(259);  // of several, the highest wins
  EXPECT_EQ(BytePair(from).encode("\xC3\xA9", kBare), Ids{260});
}

TEST(BytePair, BytesThatNothingSpellsAreUnknown) {
  Tokenizer from = pairs({}, {});
  from.ids = {98};
  from.tokens.push_back("x");
  from.vocab_size = 260;
  const BytePair taken(from);
  EXPECT_EQ(taken.encode("abx", kBare), (Ids{97, 259, 98}));  // id 98 spells x
  EXPECT_EQ(taken.decode(Ids{97, 259, 98}), "a?x");
  from.vocab_size = 100;
  from.special = {{"bos", 1}, {"eos", 2}, {"unk", 0}};
  const BytePair few(from);
  EXPECT_EQ(few.encode("cd", kBare), (Ids{99, 0}));  // no id 100
  EXPECT_EQ(few.pad(), 0U);
  EXPECT_EQ(few.decode(Ids{99, 0}), "c?");
}

TEST(BytePair, UnknownBytesMayMerge) {
  Tokenizer from = pairs({}, {{259, 259, 260, 0}, {97, 259, 261, 1}});
  from.ids = {98, 260, 261};
  for (const char* text : {"x", "\xC3", "<?>"}) from.tokens.push_back(text);
  from.vocab_size = 262;
  EXPECT_EQ(BytePair(from).encode("abbb", kBare), by_the_reading(from, "abbb"));
  EXPECT_EQ(BytePair(from).encode("abbb", kBare), (Ids{97, 260, 259}));
}

TEST(BytePair, OutputsThatAreInputsEnd) {
  const BytePair tokenizer(letters("ab", {{'a', 'b', 'a', 0}, {'a', 'a', 'b', 1}, {'b', 'b', 'a', 2}}));
  EXPECT_EQ(tokenizer.encode(std::string(1000, 'a') + 'b', kBare).size(), 1U);
}

TEST(BytePair, IdsWithoutBytesAreQuestionMarks) {
  Tokenizer from = pairs({"ab"}, {});
  from.vocab_size = 300;
  const BytePair tokenizer(from);
  EXPECT_EQ(tokenizer.decode(Ids{260, 299, 257}), "ab?");
  EXPECT_EQ(tokenizer.token(299), std::nullopt);
  EXPECT_EQ(thrown([&] { tokenizer.decode(Ids{300}); }).rule, "misuse/token");
  BytePair::Decoder decoder(tokenizer);
  EXPECT_EQ(thrown([&] { decoder.push(300); }).rule, "misuse/token");
}

TEST(BytePair, SaysWhatAVocabularyLacks) {
  const auto rule = [](const auto& change) {
    Tokenizer from = pairs({"ab"}, {{'a', 'b', 260, 0}});
    change(from);
    return thrown([&] { BytePair{from}; }).rule;
  };
  EXPECT_EQ(rule([](Tokenizer& t) { t.kind = Tokenizer::Kind::wordpiece; }), "tokenizer/kind");
  EXPECT_EQ(rule([](Tokenizer& t) { t.special.erase(t.special.begin()); }), "tokenizer/special");
  EXPECT_EQ(rule([](Tokenizer& t) { t.special.pop_back(); }), "tokenizer/special");
  EXPECT_EQ(rule([](Tokenizer& t) { t.special[1].second = 261; }), "tokenizer/special");
  EXPECT_EQ(rule([](Tokenizer& t) { t.ids.push_back(3); }), "tokenizer/ids");
  EXPECT_EQ(rule([](Tokenizer& t) { t.ids[0] = 261; }), "tokenizer/ids");
  EXPECT_EQ(rule([](Tokenizer& t) { t.ids.push_back(260), t.tokens.push_back("x"); }), "tokenizer/ids");
  EXPECT_EQ(rule([](Tokenizer& t) { t.ids.push_back(259), t.tokens.push_back(""); }), "tokenizer/tokens");
  EXPECT_EQ(rule([](Tokenizer& t) { t.merges[0].left = 261; }), "tokenizer/merges");
  EXPECT_EQ(rule([](Tokenizer& t) { t.merges[0].output = 259; }), "tokenizer/merges");
  EXPECT_EQ(rule([](Tokenizer& t) { t.merges[0].output = 0; }), "tokenizer/merges");  // no record spells the byte 0
  EXPECT_EQ(rule([](Tokenizer& t) { t = bytes(), t.vocab_size = 261; }), "tokenizer/byte");
  EXPECT_EQ(rule([](Tokenizer& t) { t = bytes(), t.tokens.push_back("x"); }), "tokenizer/byte");
  EXPECT_EQ(rule([](Tokenizer& t) { t = bytes(), t.special[0].second = 1; }), "tokenizer/byte");
}

// A text of a few letters, characters and stray bytes, so that merges happen.
std::string a_text(Random& random, std::uint32_t longest) {
  constexpr std::string_view kPieces[] = {"a",
                                          "b",
                                          "c",
                                          " ",
                                          "\xC3\xA9",
                                          "\xC3\xA8",
                                          "\xC3",
                                          "\xA9",
                                          "\xE4\xB8",
                                          "\xFF",
                                          "\xF0\x9F\x99\x82",
                                          "\xE4\xB8\x80",
                                          "\xED\xA0",
                                          "d",
                                          "\xF0\x9F",
                                          "\xC2\x80",
                                          "\0"sv};
  std::string out;
  for (std::uint32_t n = below(random, longest); n > 0; --n) out += kPieces[below(random, std::size(kPieces))];
  return out;
}

// Merges whose output spells their inputs; with `hostile`, any inputs and any output.
Tokenizer a_table(Random& random, bool hostile) {
  Tokenizer out = pairs({}, {});
  std::vector<std::pair<std::uint32_t, std::string>> known;
  for (const char c : "abcd \xC3\xA9\xA8\xE4\xB8\x80\xF0\x9F\x99\x82"sv)
    known.emplace_back(static_cast<unsigned char>(c), std::string(1, c));
  const auto add = [&](std::string text) {
    known.emplace_back(out.vocab_size, text);
    out.ids.push_back(out.vocab_size++);
    out.tokens.push_back(std::move(text));
    return out.vocab_size - 1;
  };
  for (const char* whole : {"a", "\xC3\xA9", "\xE4\xB8\x80", "b"})
    if (below(random, 2) == 0) add(whole);
  if (hostile && below(random, 2) == 0) out.ids.push_back('d'), out.tokens.push_back("<d>");
  for (std::uint32_t n = below(random, 30); n > 0; --n) {
    const auto left = known[below(random, static_cast<std::uint32_t>(known.size()))];
    const auto right = known[below(random, static_cast<std::uint32_t>(known.size()))];
    const bool any = hostile && below(random, 2) == 0;
    const auto& other = known[below(random, static_cast<std::uint32_t>(known.size()))];
    const std::uint32_t output = any ? other.first : add(left.second + right.second);
    if (any && std::ranges::find(out.ids, output) == out.ids.end())
      out.ids.push_back(output), out.tokens.push_back(other.second);
    out.merges.push_back({left.first, right.first, output, below(random, 12)});
  }
  if (hostile && below(random, 3) == 0 && out.tokens.size() != 0)
    out.merges.push_back({259, 'a', out.ids[0], below(random, 12)});
  return out;
}

TEST(BytePairProperty, EncodesAsTheReadingSays) {
  Random random(5);
  for (int table = 0; table < 400; ++table) {
    const Tokenizer from = a_table(random, table % 2 == 1);
    const BytePair tokenizer(from);
    for (int i = 0; i < 12; ++i) {
      const std::string text = a_text(random, i == 0 ? 150 : 20);
      ASSERT_EQ(tokenizer.encode(text, kBare), by_the_reading(from, text)) << table << " '" << text << "'";
    }
  }
}

// Long texts cache short stretches; x merges with nothing.
TEST(BytePairProperty, LongTextsAreTheirWords) {
  Random random(9);
  for (int table = 0; table < 20; ++table) {
    const BytePair tokenizer(a_table(random, table % 2 == 1));
    std::string text;
    Ids expected;
    for (int word = 0; word < 8000; ++word) {
      const std::string one = a_text(random, 9);
      text += one + 'x';
      const Ids ids = tokenizer.encode(one, kBare);
      expected.insert(expected.end(), ids.begin(), ids.end());
      expected.push_back('x');
    }
    ASSERT_EQ(tokenizer.encode(text, kBare), expected) << table;
    ASSERT_EQ(tokenizer.encode(text, {.bos = false, .max_length = 1000}),
              Ids(expected.begin(), expected.begin() + 1000));
  }
}

TEST(BytePairProperty, DecodingGivesTheTextBack) {
  Random random(6);
  for (int i = 0; i < 2000; ++i) {
    const BytePair tokenizer(a_table(random, false), {.prefix_space = i % 3 == 0});
    const std::string text = a_text(random, 60);
    EXPECT_EQ(tokenizer.decode(tokenizer.encode(text, {.eos = i % 2 == 0})), text);
  }
}

TEST(BytePairProperty, AStreamIsWhatItsIdsDecodeTo) {
  Random random(7);
  for (int i = 0; i < 3000; ++i) {
    const BytePair tokenizer(a_table(random, false), {.prefix_space = i % 2 == 0});
    Ids ids;
    if (i % 3 != 0) {
      for (std::uint32_t n = below(random, 40); n > 0; --n) ids.push_back(below(random, tokenizer.size()));
    } else {
      ids = tokenizer.encode(a_text(random, 40));
    }
    const std::string whole = tokenizer.decode(ids);
    const bool valid = base::is_utf8(whole);
    BytePair::Decoder decoder(tokenizer);
    for (int again = 0; again < 2; ++again) {  // finish() resets it
      std::string text;
      for (const std::uint32_t id : ids) {
        const std::string piece = decoder.push(id);
        ASSERT_TRUE(!valid || base::is_utf8(piece));
        text += piece;
      }
      text += decoder.finish();
      ASSERT_EQ(text, whole);
    }
  }
}

TEST(BytePair, AStreamKeepsNoMoreThanTheBeginningOfACharacter) {
  const BytePair tokenizer(bytes());
  const auto streamed = [&](std::string_view text) {
    BytePair::Decoder decoder(tokenizer);
    std::vector<std::string> out;
    for (const char c : text) out.push_back(decoder.push(static_cast<unsigned char>(c)));
    out.push_back(decoder.finish());
    return out;
  };
  using Pieces = std::vector<std::string>;
  EXPECT_EQ(streamed("a\xF0\x9F\x99\x82"), (Pieces{"a", "", "", "", "\xF0\x9F\x99\x82", ""}));
  EXPECT_EQ(streamed("\xE4\xB8"), (Pieces{"", "", "\xE4\xB8"}));
  EXPECT_EQ(streamed("\xE4\xB8z"), (Pieces{"", "", "\xE4\xB8z", ""}));
  EXPECT_EQ(streamed("\xFF\x80\xC0"), (Pieces{"\xFF", "\x80", "\xC0", ""}));
  EXPECT_EQ(streamed("\xED\xA0"), (Pieces{"", "\xED\xA0", ""}));  // the start of a surrogate starts no character
  EXPECT_EQ(streamed("\xC3\xC3\xA9"), (Pieces{"", "\xC3", "\xC3\xA9", ""}));
  BytePair::Decoder decoder(tokenizer);
  EXPECT_EQ(decoder.push(0xC3), "");
  EXPECT_EQ(decoder.push(257), "");  // EOS has no text and ends no character
  EXPECT_EQ(decoder.push(259), "\xC3?");
}

double seconds(const BytePair& tokenizer, const std::string& text, std::size_t ids) {
  const auto start = std::chrono::steady_clock::now();
  EXPECT_EQ(tokenizer.encode(text, kBare).size(), ids);
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

TEST(BytePair, AMegabyteOfOneLetterTakesNoTime) {
  constexpr std::size_t kLength = test::kSanitized ? 1 << 17 : 1 << 20;  // shorter under slow sanitizers
  const std::string text(kLength, 'a');
  std::vector<std::string> doubled;
  std::vector<Tokenizer::Merge> doubling, growing;
  for (std::uint32_t i = 0; i < 16; ++i) {
    doubled.emplace_back(std::size_t{2} << i, 'a');
    const std::uint32_t half = i == 0 ? 'a' : 259 + i;
    doubling.push_back({half, half, 260 + i, 16 - i});  // the longest first
  }
  EXPECT_LT(seconds(BytePair(pairs(doubled, doubling)), text, kLength >> 16), 10);
  growing = {{'a', 'a', 260, 1}, {260, 'a', 260, 0}};  // one token absorbs all others from the left
  EXPECT_LT(seconds(BytePair(pairs({"aa"}, growing)), text, 1), 10);
  EXPECT_LT(seconds(BytePair(letters("a", {{'a', 'a', 'a', 7}})), text, 1), 10);
}

// Fills half of the slots, so that some pairs find no free slot near their own.
TEST(PairTable, FindsWhatItHoldsAlsoWhereSlotsAreCrowded) {
  Random random(8);
  std::map<std::pair<std::uint32_t, std::uint32_t>, Tokenizer::Merge> expected;
  std::vector<Tokenizer::Merge> merges;
  for (std::uint32_t i = 0; i < 1U << 17; ++i) {
    const Tokenizer::Merge merge{below(random, 1500), below(random, 1500), i, below(random, 4)};
    merges.push_back(merge);
    const auto known = expected.try_emplace({merge.left, merge.right}, merge).first;
    if (merge.rank < known->second.rank) known->second = merge;
  }
  const tokenizers::PairTable table(merges);
  for (std::uint32_t left = 0; left < 1510; ++left)
    for (std::uint32_t right = 0; right < 1510; ++right) {
      const auto known = expected.find({left, right});
      const auto found = table.find(left, right);
      if (known == expected.end()) {
        ASSERT_EQ(found.output, tokenizers::kNoToken);
      } else {
        ASSERT_EQ(std::pair(found.rank, found.output), std::pair(known->second.rank, known->second.output));
      }
    }
}

}  // namespace
}  // namespace weighbridge
