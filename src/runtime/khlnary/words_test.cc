// SPDX-License-Identifier: Apache-2.0
// Words and their text, over all words that matter: all glyphs, arities, flags and authorities of both versions.
#include <gtest/gtest.h>

#include <set>

#include "runtime/khlnary/module.h"
#include "support/thrown.h"

namespace weighbridge::khlnary {
using namespace internal;
namespace {

using test::thrown;

std::string rule_of(std::uint32_t word, unsigned authority = kMaxAuthority) {
  const auto wrong = check(word, authority);
  return wrong ? wrong->rule : "";
}

TEST(Words, AreLaidOutAsTheSpecificationDrawsThem) {
  // 0010 00110000 0000 0010 00010011 001 has eight ones, so the parity bit is 0.
  EXPECT_EQ(encode({.glyph = 0x30, .flags = kBinRef, .payload = 0x13}), 0x23002132U);
  EXPECT_EQ(encode({}), 0x20000002U);
  EXPECT_EQ(fields(0x23002132U), (Word{.glyph = 0x30, .flags = kBinRef, .payload = 0x13}));
}

TEST(Words, FieldsComeBackFromEveryEncoding) {
  for (unsigned i = 0; i < 1U << 16; ++i) {
    const auto bits = [&](unsigned at, unsigned mask) { return static_cast<std::uint8_t>(i >> at & mask); };
    const Word word{.version = bits(12, 3),
                    .glyph = static_cast<std::uint8_t>(bits(4, 0xFF)),
                    .arity = bits(2, 3),
                    .flags = bits(0, 3),
                    .payload = static_cast<std::uint8_t>(i * 37),
                    .authority = bits(9, 7)};
    const std::uint32_t encoded = encode(word);
    ASSERT_EQ(fields(encoded), word);
    ASSERT_EQ(__builtin_parity(encoded), 0);
    ASSERT_EQ(rule_of(encoded ^ 1U), word.version == kVersion ? "khlnary/parity" : "khlnary/version");
  }
}

TEST(Words, OfTooLargeFieldsAreMisuse) {
  EXPECT_EQ(thrown([] { encode({.version = 16}); }).rule, "misuse/word");
  EXPECT_EQ(thrown([] { encode({.arity = 16}); }).rule, "misuse/word");
  EXPECT_EQ(thrown([] { encode({.flags = 16}); }).rule, "misuse/word");
  EXPECT_EQ(thrown([] { encode({.authority = 8}); }).rule, "misuse/word");
}

// The table of reading S7, written a second time.
TEST(Words, OnlyTheArityAndFlagsOfTheirGlyphAreSound) {
  const std::set<std::vector<unsigned>> sound = {
      {0x00, 0, 0}, {0x01, 0, 1}, {0x02, 2, 0}, {0x03, 1, 0}, {0x10, 1, 1}, {0x11, 0, 1}, {0x12, 0, 0}, {0x13, 0, 0},
      {0x20, 1, 1}, {0x21, 0, 0}, {0x22, 1, 1}, {0x30, 0, 2}, {0x30, 0, 6}, {0x31, 0, 2}, {0x31, 1, 2}, {0x32, 0, 2}};
  std::set<unsigned> known;
  for (const auto& triple : sound) known.insert(triple[0]);
  for (unsigned glyph = 0; glyph < 256; ++glyph) {
    EXPECT_EQ(find_glyph(static_cast<std::uint8_t>(glyph)) != nullptr, known.contains(glyph)) << glyph;
    for (unsigned i = 0; i < 256; ++i) {
      const unsigned arity = i >> 4, flags = i & 15U;
      const std::string rule = rule_of(encode({.glyph = static_cast<std::uint8_t>(glyph),
                                               .arity = static_cast<std::uint8_t>(arity),
                                               .flags = static_cast<std::uint8_t>(flags)}));
      if (!known.contains(glyph))
        ASSERT_EQ(rule, "khlnary/unknown-glyph");
      else if (glyph >= 0x30 && (flags & kBinRef) == 0)
        ASSERT_EQ(rule, "khlnary/missing-bin-ref");
      else
        ASSERT_EQ(rule.empty(), sound.contains({glyph, arity, flags})) << glyph << " " << arity << " " << flags;
    }
  }
}

TEST(Words, OfAHigherAuthorityAreRefused) {
  for (unsigned word = 0; word <= kMaxAuthority; ++word)
    for (unsigned context = 1; context <= kMaxAuthority; ++context)
      EXPECT_EQ(rule_of(encode({.authority = static_cast<std::uint8_t>(word)}), context),
                word == 0 || word > context ? "khlnary/authority" : "");
  EXPECT_EQ(thrown([] { decode(encode({.authority = 3}), 2); }).rule, "khlnary/authority");
  EXPECT_EQ(decode(encode({.authority = 3}), 3).authority, 3);
}

TEST(Text, GivesEachWordBack) {
  const auto same = [](std::uint32_t word) { return assemble(disassemble(word)) == std::vector{word}; };
  for (const Glyph& glyph : glyphs())
    for (unsigned payload = 0; payload < 256; ++payload)
      for (unsigned i = 0; i < 64; ++i) {
        const std::uint32_t word = encode({.glyph = static_cast<std::uint8_t>(glyph.id),
                                           .arity = static_cast<std::uint8_t>(i >> 5),
                                           .flags = static_cast<std::uint8_t>((i & 1U ? 4U : 0U) | glyph.flags),
                                           .payload = static_cast<std::uint8_t>(payload),
                                           .authority = static_cast<std::uint8_t>(i >> 1 & 7U)});
        ASSERT_TRUE(same(word)) << disassemble(word);
        ASSERT_EQ(disassemble(word).starts_with(".word"), !rule_of(word).empty()) << disassemble(word);
        ASSERT_TRUE(same(word ^ 1U)) << disassemble(word);
      }
  std::uint32_t random = 1;
  for (int i = 0; i < 100'000; ++i) {
    random = random * 1664525U + 1013904223U;
    ASSERT_TRUE(same(random)) << disassemble(random);
  }
}

TEST(Text, TheNamesOfTheSpecificationAreAccepted) {
  for (const std::string_view line : {"LOAD_BIN_TENSOR file=1 tensor=2", "MMAP_BIN_REGION file=3 arity=1",
                                      "PREFETCH_BIN file=200", "ADD_I32", "FUNC_DEF 4"})
    EXPECT_EQ(assemble("G_" + std::string(line)), assemble(line)) << line;
  EXPECT_EQ(thrown([] { assemble("G_G_NOP"); }).rule, "khlnary/syntax");
  EXPECT_EQ(thrown([] { assemble("G_"); }).rule, "khlnary/syntax");
}

TEST(Text, IsReadAsItIsDocumented) {
  const auto line = [](std::string_view text) { return disassemble(assemble(text)); };
  EXPECT_EQ(line("\n; a comment\n  CONST_I8\t-5 ; five less\r\n\n RET"), "CONST_I8 -5\nRET\n");
  EXPECT_EQ(line("LOAD_BIN_TENSOR tensor=3 shape_desc file=0xf authority=3"),
            "LOAD_BIN_TENSOR file=15 tensor=3 shape_desc authority=3\n");
  EXPECT_EQ(line("MMAP_BIN_REGION file=200 arity=1\nMMAP_BIN_REGION file=0 arity=0"),
            "MMAP_BIN_REGION file=200 arity=1\nMMAP_BIN_REGION file=0\n");
  EXPECT_EQ(line("JUMP8 0\nJUMP8 -128\nIFZ_JUMP8 127\nCALL 0x10\nNOP payload=7"),
            "JUMP8 +0\nJUMP8 -128\nIFZ_JUMP8 +127\nCALL 16\nNOP payload=7\n");
  EXPECT_EQ(line(".word 0x1"), ".word 0x00000001 ; version\n");
  EXPECT_EQ(line(".word 0x20000002"), "NOP\n");
  EXPECT_EQ(line(""), "");
}

struct Bad {
  std::string text, says;
  std::uint64_t offset;
};

TEST(Text, ThatCannotBeReadIsRefusedWithItsPlace) {
  const std::vector<Bad> bad = {{"NOP\nNOPE", "line 2: 'NOPE' is not a glyph", 4},
                                {"nop", "'nop' is not a glyph", 0},
                                {"CONST_I8", "CONST_I8 needs a number from -128 to 127", 8},
                                {"CONST_I8 128", "'128' is not a number from -128 to 127", 9},
                                {"CONST_I8 5x", "'5x' is not a number", 9},
                                {"CONST_I8 --5", "is not a number", 9},
                                {"CALL -1", "'-1' is not a number from 0 to 255", 5},
                                {"LOAD_BIN_TENSOR file=1", "needs file=N and tensor=N", 22},
                                {"LOAD_BIN_TENSOR file=16 tensor=1", "not a number from 0 to 15", 16},
                                {"LOAD_BIN_TENSOR file=1 file=2 tensor=1", "appears twice", 23},
                                {"PREFETCH_BIN", "needs file=N", 12},
                                {"PREFETCH_BIN file=1 shape_desc", "cannot stand behind PREFETCH_BIN", 20},
                                {"ADD_I32 arity=2", "cannot stand behind", 8},
                                {"CONST_I8 1 payload=1", "cannot stand behind", 11},
                                {"RET authority=0", "not a number from 1 to 7", 4},
                                {"RET authority=", "not a number", 4},
                                {"RET =", "cannot stand behind", 4},
                                {".word", "not a number", 5},
                                {".word 0x100000000", "not a number from 0 to 4294967295", 6},
                                {".word 1 2", "one word too many", 8}};
  for (const Bad& each : bad) {
    const Finding found = thrown([&] { assemble(each.text); });
    EXPECT_EQ(found.rule, "khlnary/syntax");
    EXPECT_NE(found.message.find(each.says), std::string::npos) << found.message;
    EXPECT_EQ(found.offset, each.offset) << each.text;
  }
}

}  // namespace
}  // namespace weighbridge::khlnary
