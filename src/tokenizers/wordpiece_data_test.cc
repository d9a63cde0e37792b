// SPDX-License-Identifier: Apache-2.0
// WordPiece compared with other programs on real vocabularies: the ids of the Hugging Face tokenizer, the vectors of
// llama.cpp, and the effect of the reference's normalizer on every code point. All must agree.
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <iterator>
#include <map>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "support/temporary_folder.h"
#include "support/test_data.h"
#include "weighbridge/tokenize.h"

namespace weighbridge {
namespace {

using test::read_file;
using Ids = std::vector<std::uint32_t>;

const WordPiece& bert(const std::string& vocab) {
  static const WordPiece made(WordPiece::vocabulary(read_file(vocab)));
  return made;
}

TEST(WordPieceData, GoldenIds) {
  WB_REQUIRE_TEST_DATA(vocab, "wordpiece/bert-base-uncased-vocab.txt");
  WB_REQUIRE_TEST_DATA(path, "wordpiece/wordpiece_golden.json");
  const WordPiece& tokenizer = bert(vocab);
  const auto golden = nlohmann::json::parse(read_file(path));
  ASSERT_GE(golden["cases"].size(), 54U);
  for (const auto& one : golden["cases"])
    EXPECT_EQ(tokenizer.encode(one["text"].get<std::string>()), one["ids"].get<Ids>()) << one["name"];
  // A pair is [CLS] a [SEP] b [SEP], with types 0 and 1.
  const auto& pair = golden["pair"];
  Ids ids = tokenizer.encode(pair["a"].get<std::string>());
  Ids types(ids.size(), 0);
  const Ids behind = tokenizer.encode(pair["b"].get<std::string>(), {.special = false});
  ids.insert(ids.end(), behind.begin(), behind.end());
  ids.push_back(tokenizer.special("sep").value());
  types.resize(ids.size(), 1);
  EXPECT_EQ(ids, pair["ids"].get<Ids>());
  EXPECT_EQ(types, pair["type_ids"].get<Ids>());
}

TEST(WordPieceData, VectorsOfLlamaCpp) {
  WB_REQUIRE_TEST_DATA(vocab, "wordpiece/bert-base-uncased-vocab.txt");
  WB_REQUIRE_TEST_DATA(inputs, "wordpiece/bert-bge.inp");
  WB_REQUIRE_TEST_DATA(outputs, "wordpiece/bert-bge.out");
  constexpr std::string_view kBetween = "\n__ggml_vocab_test__\n";
  const std::string texts = read_file(inputs);
  std::istringstream lines(read_file(outputs));
  std::size_t compared = 0;
  for (std::size_t begin = 0; begin < texts.size(); ++compared) {
    const std::size_t end = std::min(texts.find(kBetween, begin), texts.size());
    std::string line;
    ASSERT_TRUE(std::getline(lines, line));
    std::istringstream numbers(line);
    const Ids expected{std::istream_iterator<std::uint32_t>(numbers), {}};
    const std::string text = texts.substr(begin, end - begin);
    EXPECT_EQ(bert(vocab).encode(text, {.special = false}), expected) << "'" << text << "'";
    begin = end + kBetween.size();
  }
  EXPECT_GE(compared, 40U);
}

TEST(WordPieceData, EmbeddingTexts) {
  WB_REQUIRE_TEST_DATA(vocab, "wordpiece/bert-base-uncased-vocab.txt");
  WB_REQUIRE_TEST_DATA(path, "minilm/golden.json");
  const auto golden = nlohmann::json::parse(read_file(path));
  std::size_t compared = 0;
  for (const auto& one : golden["cases"]) {
    EXPECT_EQ(bert(vocab).encode(one["text"].get<std::string>(), {.max_length = 256}), one["ids"].get<Ids>());
    ++compared;
  }
  EXPECT_GE(compared, 30U);
}

void append_utf8(std::string& to, std::uint32_t c) {
  const auto put = [&](std::uint32_t byte) { to.push_back(static_cast<char>(static_cast<unsigned char>(byte))); };
  if (c < 0x80) {
    put(c);
  } else if (c < 0x800) {
    put(0xC0 | (c >> 6)), put(0x80 | (c & 0x3F));
  } else if (c < 0x10000) {
    put(0xE0 | (c >> 12)), put(0x80 | ((c >> 6) & 0x3F)), put(0x80 | (c & 0x3F));
  } else {
    put(0xF0 | (c >> 18)), put(0x80 | ((c >> 12) & 0x3F)), put(0x80 | ((c >> 6) & 0x3F)), put(0x80 | (c & 0x3F));
  }
}

std::string utf8(std::uint32_t c) {
  std::string out;
  append_utf8(out, c);
  return out;
}

// A vocabulary that spells each word as its characters, so that tokens show the normalizer's output.
Tokenizer spelling_vocabulary() {
  Tokenizer out = WordPiece::vocabulary("[UNK]\n[CLS]\n[SEP]\n");
  for (std::uint32_t c = 1; c <= 0x10FFFF; ++c) {
    if (c >= 0xD800 && c < 0xE000) continue;
    const std::string text = utf8(c);
    out.tokens.push_back(text);
    out.tokens.push_back("##" + text);
  }
  return out;
}

// The words of a text, each as its characters.
std::string words(const WordPiece& spelling, std::string_view text) {
  std::string out;
  for (const std::uint32_t id : spelling.encode(text, {.special = false})) {
    std::string_view token = spelling.token(id).value();
    const bool begins = token.size() < 3 || !token.starts_with("##");
    if (begins && !out.empty()) out += ' ';
    out += begins ? token : token.substr(2);
  }
  return out;
}

TEST(WordPieceData, EveryCodePoint) {
  WB_REQUIRE_TEST_DATA(path, "wordpiece/bert_normalizer_unicode_oracle.json");
  const auto oracle = nlohmann::json::parse(read_file(path));
  const WordPiece spelling(spelling_vocabulary());
  const auto number = [](const std::string& hex) {
    return static_cast<std::uint32_t>(std::strtoul(hex.c_str(), nullptr, 16));
  };
  std::map<std::uint32_t, std::string> becomes;
  for (const auto& [key, value] : oracle["map"].items()) becomes[number(key)] = value.get<std::string>();
  std::size_t compared = 0, wrong = 0;
  for (const auto& run : oracle["runs"]) {
    const auto kind = run[2].get<std::string>();
    if (kind == "surrogate") continue;  // UTF-8 cannot contain one
    for (std::uint32_t c = number(run[0]); c <= number(run[1]); ++c, ++compared) {
      const auto found = becomes.find(c);
      std::string within = found != becomes.end() ? found->second : utf8(c);
      const std::size_t from = within.find_first_not_of(' '), to = within.find_last_not_of(' ');
      if (from != std::string::npos) within = within.substr(from, to - from + 1);
      const bool splits = kind == "keep_split3" || kind == "map_split3" || kind == "cjk_spaced";
      const std::string expected = kind == "removed" ? "ab"
                                   : kind == "space" ? "a b"
                                   : splits          ? "a " + within + " b"
                                                     : "a" + within + "b";
      const std::string ours = words(spelling, "a" + utf8(c) + "b");
      if (ours != expected && ++wrong < 20)
        ADD_FAILURE() << std::hex << c << " (" << kind << ") gives '" << ours << "'";
    }
  }
  EXPECT_EQ(wrong, 0U);
  EXPECT_EQ(compared, 0x110000U - 0x800U);
}

}  // namespace
}  // namespace weighbridge
