// SPDX-License-Identifier: Apache-2.0
// BytePair with the 512-token vocabulary of llama2.c's smallest model: compared with the model's own words, and with
// llama2.c's encoding by scores on texts of all kinds.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <fstream>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <random>
#include <string>
#include <vector>

#include "base/utf8.h"
#include "support/temporary_folder.h"
#include "support/test_data.h"
#include "weighbridge/tokenize.h"

namespace weighbridge {
namespace {

using test::read_file;
using Ids = std::vector<std::uint32_t>;

constexpr std::uint32_t kFirstByte = 3, kFirstPiece = 259;

struct Scored {
  std::vector<std::string> pieces;
  std::vector<float> scores;
  std::map<std::string, std::uint32_t> ids;  // of pieces longer than a byte
};

// llama2.c's tokenizer file: the length of the longest piece, then score, length and bytes of each piece.
Scored scored(const std::string& file) {
  Scored out;
  for (std::size_t at = 4; at + 8 <= file.size();) {
    float score;
    std::uint32_t length;
    std::memcpy(&score, &file[at], 4);
    std::memcpy(&length, &file[at + 4], 4);
    out.pieces.push_back(file.substr(at + 8, length));
    out.scores.push_back(score);
    at += 8 + length;
  }
  for (std::uint32_t id = kFirstPiece; id < out.pieces.size(); ++id) out.ids[out.pieces[id]] = id;
  return out;
}

// Reading M14: every split of a piece into two pieces is a merge, ranked by the piece's position in the order of
// scores.
Tokenizer vocabulary(const Scored& from) {
  Tokenizer out;
  out.kind = Tokenizer::Kind::bpe;
  out.vocab_size = static_cast<std::uint32_t>(from.pieces.size());
  out.special = {{"bos", 1}, {"eos", 2}, {"unk", 0}};
  for (std::uint32_t id = 0; id < out.vocab_size; ++id) {
    const bool byte = id >= kFirstByte && id < kFirstPiece;
    out.tokens.push_back(byte ? std::string(1, static_cast<char>(static_cast<unsigned char>(id - kFirstByte)))
                              : from.pieces[id]);
  }
  std::vector<float> order = from.scores;
  std::ranges::sort(order, std::greater<>());
  for (const auto& [piece, id] : from.ids)
    for (std::size_t cut = 1; cut < piece.size(); ++cut) {
      const auto left = from.ids.find(piece.substr(0, cut)), right = from.ids.find(piece.substr(cut));
      if (left == from.ids.end() || right == from.ids.end()) continue;
      const auto rank = std::ranges::lower_bound(order, from.scores[id], std::greater<>()) - order.begin();
      out.merges.push_back({left->second, right->second, id, static_cast<std::uint32_t>(rank)});
    }
  return out;
}

// llama2.c's algorithm for valid UTF-8: split into characters, then repeatedly merge the pair whose text has the best
// score.
Ids by_scores(const Scored& from, const std::string& text) {
  Ids ids;
  const std::string spaced = text.empty() ? text : " " + text;
  for (std::size_t at = 0; at < spaced.size();) {
    const std::string character = spaced.substr(at, base::decode_utf8(spaced, at).length);
    if (const auto found = from.ids.find(character); found != from.ids.end()) {
      ids.push_back(found->second);
    } else {
      for (const char c : character) ids.push_back(static_cast<unsigned char>(c) + kFirstByte);
    }
    at += character.size();
  }
  for (;;) {
    float best = -1e10F;
    std::uint32_t output = 0;
    std::size_t where = 0;
    for (std::size_t i = 0; i + 1 < ids.size(); ++i) {
      const auto found = from.ids.find(from.pieces[ids[i]] + from.pieces[ids[i + 1]]);
      if (found == from.ids.end() || from.scores[found->second] <= best) continue;
      best = from.scores[output = found->second];
      where = i;
    }
    if (output == 0) return ids;
    ids[where] = output;
    ids.erase(ids.begin() + static_cast<std::ptrdiff_t>(where) + 1);
  }
}

TEST(BytePairData, WhatTheModelSays) {
  WB_REQUIRE_TEST_DATA(path, "llama/tok512.bin");
  WB_REQUIRE_TEST_DATA(golden_path, "llama/stories260K_golden.json");
  const BytePair tokenizer(vocabulary(scored(read_file(path))));
  EXPECT_TRUE(tokenizer.prefix_space());
  EXPECT_EQ(tokenizer.size(), 512U);
  const auto golden = nlohmann::json::parse(read_file(golden_path));
  const auto text = golden["text_first_200_chars"].get<std::string>();
  Ids ids = golden["greedy_ids_first_64"].get<Ids>();
  ids.insert(ids.begin(), 1);
  const std::string said = tokenizer.decode(ids);
  EXPECT_GT(said.size(), 100U);
  EXPECT_TRUE(text.starts_with(said));
  BytePair::Decoder decoder(tokenizer);
  std::string streamed;
  for (const std::uint32_t id : ids) streamed += decoder.push(id);
  EXPECT_EQ(streamed + decoder.finish(), said);
  EXPECT_EQ(tokenizer.encode(said), ids);
}

TEST(BytePairData, EncodesAsScoresDo) {
  WB_REQUIRE_TEST_DATA(path, "llama/tok512.bin");
  const Scored from = scored(read_file(path));
  const BytePair tokenizer(vocabulary(from));
  std::mt19937 random(14);
  const auto below = [&](std::size_t n) { return static_cast<std::size_t>(random() % n); };
  for (int i = 0; i < 3000; ++i) {
    std::string text;
    for (std::size_t n = below(60); n > 0; --n) {
      switch (below(4)) {
        case 0: text += from.pieces[kFirstPiece + below(from.pieces.size() - kFirstPiece)]; break;
        case 1: text += static_cast<char>(below(128)); break;
        case 2: base::append_utf8(text, static_cast<char32_t>(below(0xD800))); break;
        default: base::append_utf8(text, static_cast<char32_t>(0xE000 + below(0x110000 - 0xE000)));
      }
    }
    ASSERT_TRUE(base::is_utf8(text));
    const Ids ids = tokenizer.encode(text, {.bos = false});
    ASSERT_EQ(ids, by_scores(from, text)) << text;
    ASSERT_EQ(tokenizer.decode(tokenizer.encode(text)), text);
  }
}

}  // namespace
}  // namespace weighbridge
