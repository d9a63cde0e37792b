// SPDX-License-Identifier: Apache-2.0
// Cuts keep different texts different, and numbers within names are ordered by value.
#include "cuts.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "output.h"
#include "weighbridge/text.h"

namespace weighbridge::cli {
namespace {

using Texts = std::vector<std::string>;

// Cuts all of them, which must stay different and fit.
Texts cut(const Texts& texts, std::size_t columns) {
  const Cuts cuts(texts, columns);
  Texts out;
  for (const std::string& text : texts) {
    out.emplace_back(cuts(text));
    EXPECT_LE(display_width(out.back()), columns) << out.back();
  }
  EXPECT_EQ(std::set<std::string>(out.begin(), out.end()).size(), texts.size());
  return out;
}

TEST(Cuts, TextsThatDifferInTheMiddleStayDifferent) {
  Texts layers;
  for (int i = 0; i < 12; ++i)
    for (const char* const part : {"query", "key", "value"})
      layers.push_back("encoder.layer." + std::to_string(i) + ".attention.self." + part + ".weight");
  for (const std::size_t columns : {24U, 30U, 36U}) cut(layers, columns);
  const Texts found = cut({layers[0], layers[3], "pooler"}, 28);
  EXPECT_EQ(found, (Texts{"enco...0...self.query.weight", "enco...1...self.query.weight", "pooler"}));
}

TEST(Cuts, TextsThatFitAreLeftAlone) {
  EXPECT_EQ(cut({"a", "a much longer text than fits"}, 16), (Texts{"a", "a much...an fits"}));
  const Cuts same({"twice the same text, twice", "twice the same text, twice"}, 16);
  EXPECT_EQ(same("twice the same text, twice"), "twice ..., twice");
}

TEST(Cuts, NamesOfLayersStayDifferentInTheNarrowestColumn) {
  Texts names;
  for (const char* const layer : {"0", "1", "11"})
    for (const char* const part : {"self.query", "self.key", "self.value", "output.dense"})
      for (const char* const kind : {"weight", "bias"})
        names.push_back(std::string("encoder.layer.") + layer + ".attention." + part + "." + kind);
  for (const std::size_t columns : {16U, 18U, 20U, 22U}) cut(names, columns);
}

TEST(Cuts, NoTextIsWiderThanItsColumnEvenIfNoCutTellsItFromAnother) {
  const std::string a(60, 'a'), b = "b" + std::string(58, 'a') + "b",
                                c = "b" + std::string(30, 'a') + "c" + std::string(27, 'a') + "b",
                                d = "b" + std::string(5, 'a') + "c" + std::string(52, 'a') + "b";
  const Texts texts{a, b, c, d};
  const Cuts cuts(texts, 20);
  for (const std::string& text : texts) EXPECT_LE(display_width(cuts(text)), 20U) << text;
}

TEST(Cuts, NumbersInNamesAreOrderedByValue) {
  Texts names{"layer.10.w", "layer.2.w", "layer.2.b",   "layer",
              "layer.02.b", "a",         "layer.100.w", "layer.9999999999999999999999.w"};
  std::ranges::sort(names, comes_before);
  EXPECT_EQ(names, (Texts{"a", "layer", "layer.02.b", "layer.2.b", "layer.2.w", "layer.10.w", "layer.100.w",
                          "layer.9999999999999999999999.w"}));
}

TEST(Cuts, WhereNumbersBeginAlikeTheirWholeValuesAreCompared) {
  // Each pair differs after eight or more equal bytes, inside a number or at its end.
  EXPECT_TRUE(comes_before("model.layers.19.w", "model.layers.111.w"));
  EXPECT_FALSE(comes_before("model.layers.111.w", "model.layers.19.w"));
  EXPECT_TRUE(comes_before("model.layers.12.w", "model.layers.123.w"));
  EXPECT_TRUE(comes_before("model.layers.12345678", "model.layers.123456789"));
  EXPECT_TRUE(comes_before("model.layers.001", "model.layers.01"));  // the same number: in the order of bytes
  EXPECT_FALSE(comes_before("model.layers.01", "model.layers.001"));
  EXPECT_TRUE(comes_before("model.layers", "model.layers.1"));
  EXPECT_FALSE(comes_before("model.layers.1", "model.layers.1"));
}

// The definition, from the first byte on: numbers by value, everything else by bytes.
bool precedes(std::string_view a, std::string_view b) {
  const auto is_digit = [](char c) { return c >= '0' && c <= '9'; };
  const auto number = [&](std::string_view text, std::size_t& at) {
    std::string out;
    for (; at < text.size() && is_digit(text[at]); ++at) out += text[at];
    while (out.size() > 1 && out[0] == '0') out.erase(0, 1);
    return out;
  };
  std::size_t i = 0, j = 0;
  while (i < a.size() && j < b.size()) {
    if (is_digit(a[i]) && is_digit(b[j])) {
      const std::string x = number(a, i), y = number(b, j);
      if (x != y) return x.size() != y.size() ? x.size() < y.size() : x < y;
    } else if (a[i] != b[j]) {
      return static_cast<unsigned char>(a[i]) < static_cast<unsigned char>(b[j]);
    } else {
      ++i;
      ++j;
    }
  }
  return i == a.size() && j == b.size() ? a < b : i == a.size();
}

TEST(Cuts, NamesAreOrderedAsTheDefinitionSays) {
  constexpr std::string_view kBytes = "0012.9a1\xFF";
  std::uint64_t seed = 1;
  const auto random = [&](std::uint64_t below) {
    seed = seed * 6364136223846793005 + 1442695040888963407;
    return static_cast<std::size_t>((seed >> 33) % below);
  };
  const auto append = [&](std::string& to, std::size_t count) {
    while (count-- > 0) to += kBytes[random(kBytes.size())];
  };
  int first = 0;
  for (int round = 0; round < 200'000; ++round) {
    std::string a, b;
    append(a, random(4) == 0 ? 0 : random(20));
    b = a;
    append(a, random(7));
    append(b, random(7));
    ASSERT_EQ(comes_before(a, b), precedes(a, b)) << a << " and " << b;
    first += comes_before(a, b) ? 1 : 0;
  }
  EXPECT_GT(first, 50'000);
}

TEST(Shown, EveryByteOfATextIsLookedAt) {
  for (std::size_t length = 0; length < 40; ++length) {
    const std::string plain(length, '~');
    EXPECT_EQ(shown(plain), plain);
    EXPECT_EQ(width_shown(plain), length);
    for (std::size_t at = 0; at < length; ++at) {
      for (const char odd : {'\n', '\x1f', '\\', '\x7f', '\x80', '\xff'}) {
        std::string text = plain;
        text[at] = odd;
        EXPECT_GT(shown(text).size(), length) << at << " of " << length;
      }
    }
  }
}

}  // namespace
}  // namespace weighbridge::cli
