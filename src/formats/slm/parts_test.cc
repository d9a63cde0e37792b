// SPDX-License-Identifier: Apache-2.0
// Unit tests of the parts: checksum, names, tokenizer sections, the scan of values.
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <random>

#include "base/checked.h"
#include "base/endian.h"
#include "formats/slm/content.h"
#include "formats/slm/directory.h"
#include "formats/slm/header.h"
#include "formats/slm/names.h"
#include "support/slm_testing.h"

namespace weighbridge::slm_format {
namespace {

using testing::corpus_case;

TEST(SlmChecksum, OfTheBtokSectionIsThePublishedOne) {
  EXPECT_EQ(tokenizer_checksum(encode_btok()), 0xa3af29b8cdcbfa35U);  // reading M1
  EXPECT_EQ(checksum_text(0xa3af29b8cdcbfa35U), "0xa3af29b8cdcbfa35");
  EXPECT_EQ(Checksum().value(), kFileSeed);
}

TEST(SlmChecksum, DoesNotDependOnThePieces) {
  std::string text;
  for (int i = 0; i < 1000; ++i) text += static_cast<char>(i * 7);
  const auto bytes = std::as_bytes(std::span(text));
  for (const std::size_t cut : {0U, 1U, 255U, 256U, 257U, 999U, 1000U}) {
    Checksum sum;
    sum.update(bytes.first(cut));
    sum.update(bytes.subspan(cut));
    EXPECT_EQ(sum.value(), codecs::indexed_checksum(bytes, kFileSeed)) << cut;
  }
}

// A file with the checksum of another form, which is computed here in full.
std::string sealed_otherwise(auto fold) {
  std::string bytes = corpus_case("valid-tied").bytes;
  std::fill(bytes.begin() + 100, bytes.begin() + 108, '\0');
  std::uint64_t h = kFileSeed;
  for (std::uint64_t i = 0; i < bytes.size(); ++i) {
    h = fold(h, std::uint64_t{static_cast<unsigned char>(bytes[base::to_size(i)])}, i);
    h = (h << 7 | h >> 57) * 0x100000001b3U;
  }
  base::store_le(bytes.data() + 100, h);
  return bytes;
}

// A file with the checksum of another form stays invalid, the message names the form, and the caller may ask for it.
TEST(SlmChecksum, AFileOfAnotherFormIsInvalidUnlessTheCallerNamesTheForm) {
  using U = std::uint64_t;
  constexpr U kGolden = 0x9e3779b97f4a7c15U;
  const std::pair<std::string_view, std::string> files[] = {
      {"add", corpus_case("valid-tied").bytes},
      {"xor", sealed_otherwise([](U h, U byte, U i) { return h ^ (byte ^ i); })},
      {"add-golden", sealed_otherwise([](U h, U byte, U i) { return h ^ (byte + i * kGolden); })},
      {"xor-golden", sealed_otherwise([](U h, U byte, U i) { return h ^ (byte ^ (i * kGolden)); })},
      {"sum", sealed_otherwise([](U h, U byte, U i) { return h + byte + i; })},
      {"add-shifted", sealed_otherwise([](U h, U byte, U i) { return h ^ (byte + (i << 8)); })}};
  ASSERT_EQ(std::size(files), codecs::kChecksumForms.size());
  for (const auto& [made_in, bytes] : files)
    for (const auto& known : codecs::kChecksumForms) {
      SCOPED_TRACE(std::string(made_in) + " read as " + std::string(known.name));
      const auto [report, model] = testing::walk(bytes, {}, Checks::all, core::Findings::Mode::all, known.form);
      EXPECT_EQ(model.checksum_form(), known.name);
      EXPECT_EQ(report.valid(), made_in == known.name);
      if (report.valid()) continue;
      ASSERT_EQ(report.errors(), 1U);
      const Finding& error = *report.first_error();
      EXPECT_EQ(error.rule, "slm/checksum");
      EXPECT_EQ(error.hint, (Hint{Hint::What::option, "checksum-form", std::string(made_in)}));
      EXPECT_NE(error.message.find('"' + std::string(made_in) + '"'), std::string::npos) << error.message;
    }
  EXPECT_EQ(testing::walk(corpus_case("checksum").bytes).report.first_error()->message.find("the form"),
            std::string::npos);
}

TEST(SlmNames, HashesAreFnv1a) {
  EXPECT_EQ(name_hash(""), 0xcbf29ce484222325U);
  EXPECT_EQ(name_hash("a"), 0xaf63dc4c8601ec8cU);
  EXPECT_EQ(name_hash("foobar"), 0x85944171f73967e8U);
}

TEST(SlmNames, KnowsThoseOfItsLayersAndTheAlias) {
  const KnownNames known(12);
  for (const char* name : {"tok_embeddings.weight", "norm.weight", "output.weight", "layers.11.w3.weight"})
    EXPECT_EQ(known.name(name_hash(name)), name);
  EXPECT_EQ(known.find(name_hash("layers.12.w3.weight")), nullptr);
  const std::uint64_t alias = name_hash("layers.3.attn_norm.weight");
  EXPECT_EQ(known.name(alias), "layers.3.attention_norm.weight");
  EXPECT_TRUE(known.find(alias)->alias);
  EXPECT_EQ(known.name(0xab), "#00000000000000ab");
  EXPECT_EQ(parse_hash("#00000000000000ab"), 0xabU);
  for (const char* name : {"#00000000000000aB", "#ab", "00000000000000ab0", "#00000000000000abc", "",
                           "#00000000000000a/", "#00000000000000a:", "#00000000000000ag"})
    EXPECT_FALSE(parse_hash(name).has_value()) << name;
}

TEST(SlmDirectory, EntriesComeBack) {
  Entry e;
  e.name_hash = 0x0123456789abcdef;
  e.dtype = 3;
  e.rank = 2;
  e.dims[0] = 5;
  e.dims[1] = 64;
  e.byte_offset = 128;
  e.byte_length = 160;
  e.scale_offset = 320;
  e.block_size = 32;
  std::string bytes;
  base::append_record(bytes, e);
  ASSERT_EQ(bytes.size(), kEntrySize);
  const Entry back = base::load_record<Entry>(bytes.data());
  EXPECT_EQ(back.name_hash, e.name_hash);
  EXPECT_EQ(back.scale_offset, 320U);
  EXPECT_EQ(back.block_size, 32U);
  const Extents x = *extents_of(back);
  EXPECT_EQ(x.columns, 64U);
  EXPECT_EQ(payload_size(3, x), 160U);
  EXPECT_EQ(scale_count(3, 32, x), 10U);
  // M3 is over the sorted entries, so their order in the file does not matter.
  Entry other = e;
  other.name_hash = 7;
  std::string second;
  base::append_record(second, other);
  EXPECT_EQ(layout_checksum(Directory(bytes + second)), layout_checksum(Directory(second + bytes)));
  EXPECT_NE(layout_checksum(Directory(bytes)), layout_checksum(Directory(second)));
}

Tokenizer bpe() {
  Tokenizer t;
  t.kind = Tokenizer::Kind::bpe;
  t.vocab_size = 300;
  for (const char* token : {"b", "a", "ab"}) t.tokens.push_back(token);
  t.tokens.push_back(std::string_view("\xff\0x", 3));
  t.ids = {98, 97, 299, 12};
  t.merges = {{97, 98, 299, 4}, {255, 254, 12, 1}};
  t.special = {{"bos", 1}, {"eos", 2}, {"pad", 0}, {"unk", 0}};
  return t;
}

std::optional<Tokenizer> parsed(const std::string& section, std::uint32_t vocab) {
  Report report;
  core::Findings findings(report, core::Findings::Mode::all);
  auto out = parse_tokenizer(section, 0, vocab, findings);
  EXPECT_EQ(report.total(), 0U);
  return out;
}

TEST(SlmTokenizer, SectionsComeBackByteForByte) {
  const EncodedTokenizer encoded = encode_tokenizer(bpe(), 300);
  EXPECT_EQ(encoded.problem, "");
  EXPECT_EQ(encoded.section.size(), 36 + 4 * 8 + 1 + 1 + 2 + 3 + 2 * 16U);
  EXPECT_EQ(parsed(encoded.section, 300), bpe());
  const EncodedTokenizer bytes = encode_tokenizer(byte_tokenizer(), 260);
  EXPECT_EQ(bytes.section, encode_btok());
  EXPECT_EQ(parsed(bytes.section, 260), byte_tokenizer());
}

TEST(SlmTokenizer, MissingPadIsUnk) {
  Tokenizer t = bpe();
  std::erase_if(t.special, [](const auto& s) { return s.first == "pad"; });
  const EncodedTokenizer encoded = encode_tokenizer(t, 300);
  EXPECT_EQ(encoded.problem, "");
  EXPECT_EQ(encoded.section, encode_bpe1(bpe()));
}

TEST(SlmTokenizer, SaysWhyItCannotBeWritten) {
  Tokenizer t = bpe();
  EXPECT_NE(encode_tokenizer(t, 301).problem.find("vocabulary"), std::string::npos);
  t.ids.pop_back();
  EXPECT_NE(encode_tokenizer(t, 300).problem, "");
  t = bpe();
  t.ids[0] = 97;
  EXPECT_NE(encode_tokenizer(t, 300).problem.find("same id"), std::string::npos);
  t = bpe();
  t.special.erase(t.special.begin());
  EXPECT_NE(encode_tokenizer(t, 300).problem.find("bos"), std::string::npos);
  t.kind = Tokenizer::Kind::wordpiece;
  EXPECT_NE(encode_tokenizer(t, 300).problem, "");
  t = byte_tokenizer();
  t.vocab_size = 261;
  EXPECT_NE(encode_tokenizer(t, 261).problem, "");
}

// The first bad value of each range, by a simple search.
std::vector<std::pair<std::uint64_t, std::uint32_t>> plain_scan(const std::string& file,
                                                                const std::vector<ValueRange>& ranges) {
  std::vector<std::pair<std::uint64_t, std::uint32_t>> out;
  for (const ValueRange& r : ranges) {
    for (std::uint64_t at = r.offset; at < r.offset + r.length; at += 4) {
      const float value = std::bit_cast<float>(base::load_le<std::uint32_t>(file.data() + at));
      if (r.rule == ValueRule::finite ? std::isfinite(value) : std::isfinite(value) && value > 0) continue;
      out.emplace_back(at, r.tensor);
      break;
    }
  }
  std::ranges::sort(out);
  return out;
}

TEST(SlmScan, FindsWhatAPlainLookFinds) {
  std::mt19937 random(5);
  for (int round = 0; round < 300; ++round) {
    std::string file(64 + random() % 3000, '\1');
    for (int i = 0; i < round % 12; ++i) {
      const std::uint32_t bad[] = {0x7f800000U, 0x7fc00000U, 0xff800000U, 0U, 0x80000001U};
      base::store_le(file.data() + random() % (file.size() - 4), bad[random() % 5]);
    }
    std::vector<ValueRange> ranges;
    for (std::uint32_t i = 0; i < 1 + random() % 8; ++i) {
      const std::uint64_t offset = random() % (file.size() - 3), maximum = (file.size() - offset) / 4;
      ranges.push_back(
          {offset, 4 * (random() % (maximum + 1)), i, random() % 2 ? ValueRule::finite : ValueRule::positive});
    }
    ValueScan scan(ranges);
    for (std::uint64_t at = 0; at < file.size();) {
      const std::uint64_t n = std::min<std::uint64_t>(4 + random() % 500, file.size() - at);
      const std::uint64_t carry = at == 0 ? 0 : ValueScan::kCarry;
      scan.piece(at - carry, std::as_bytes(std::span(file)).subspan(at - carry, n + carry));
      at += n;
    }
    std::vector<std::pair<std::uint64_t, std::uint32_t>> found;
    for (const BadValue& bad : scan.take()) found.emplace_back(bad.offset, bad.tensor);
    std::ranges::sort(found);
    EXPECT_EQ(found, plain_scan(file, ranges)) << round;
  }
}

}  // namespace
}  // namespace weighbridge::slm_format
