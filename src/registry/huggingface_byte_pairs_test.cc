// SPDX-License-Identifier: Apache-2.0
// A Llama's tokenizer.json: tokens, merges and special tokens, and the findings for steps that merges cannot express.
#include <gtest/gtest.h>

#include "support/tiny_folders.h"
#include "weighbridge/verify.h"

namespace weighbridge::huggingface {
namespace {

using testing::Files;
using testing::tiny_llama;
using testing::TinyLlama;
using Special = std::vector<std::pair<std::string, std::uint32_t>>;

struct ReadTokenizer {
  Report report;
  Model model;
  const Tokenizer& tokenizer() const { return *model.tokenizer(); }
  std::string unheld() const { return text("tokenizer_unheld"); }
  std::string rules() const { return text("tokenizer_rules"); }
  std::string text(std::string_view key) const {
    const Value* const value = model.attribute(key);
    return value == nullptr ? "" : value->to_text();
  }
};

ReadTokenizer read_tokenizer(const Files& files) {
  Verdict verdict = verify(testing::in_memory(files), {}, {.format = "hf"});
  return {std::move(verdict.report), std::move(verdict.model)};
}

std::string first_rule(const Files& files) {
  const ReadTokenizer out = read_tokenizer(files);
  return out.report.total() == 0 ? "" : out.report.findings()[0].rule;
}

TEST(HuggingFaceBytePairs, ASentencepieceVocabularyIsHeldWhole) {
  const ReadTokenizer out =
      read_tokenizer(tiny_llama({.pieces = R"("a":259,"\u2581":260,"\u2581a":261,"\u2581\u2581a":262)",
                                 .merges = R"(["\u2581 a",["\u2581","\u2581a"]])"}));
  EXPECT_EQ(out.report.total(), 0U);
  EXPECT_EQ(out.unheld(), "");
  ASSERT_NE(out.model.tokenizer(), nullptr);
  const Tokenizer& t = out.tokenizer();
  EXPECT_EQ(t.kind, Tokenizer::Kind::bpe);
  EXPECT_EQ(t.vocab_size, 300U);  // rows, as in config.json
  EXPECT_EQ(t.tokens.size(), 263U);
  EXPECT_TRUE(t.ids.empty());
  EXPECT_EQ(t.tokens[3], std::string_view("\0", 1));
  EXPECT_EQ(t.tokens[1], "<s>");
  EXPECT_EQ(t.tokens[260], " ");
  EXPECT_EQ(t.tokens[262], "  a");
  const std::vector<Tokenizer::Merge> merges = {{260, 259, 261, 0}, {260, 261, 262, 1}};
  EXPECT_EQ(t.merges, merges);
  const Special special = {{"unk", 0}, {"bos", 1}, {"eos", 2}};
  EXPECT_EQ(t.special, special);
}

TEST(HuggingFaceBytePairs, OnlyALlamasTokenizerIsReadSo) {
  Files files = tiny_llama();
  files["config.json"] = R"({"model_type":"gpt2"})";
  EXPECT_EQ(first_rule(files), "hf/tokenizer-kind");
  files["config.json"] = R"({"architectures":["LlamaForCausalLM"]})";
  EXPECT_EQ(first_rule(files), "");
  EXPECT_EQ(read_tokenizer(files).tokenizer().vocab_size, 262U);  // where config.json does not say
  files["tokenizer.json"] = R"({"model":{"type":"Unigram"}})";
  EXPECT_EQ(first_rule(files), "hf/tokenizer-kind");
}

TEST(HuggingFaceBytePairs, IdsMayHaveHolesAndRowsMayBeFewer) {
  const ReadTokenizer holes = read_tokenizer(tiny_llama({.pieces = R"("b":299,"a":270)", .merges = "[]"}));
  EXPECT_EQ(holes.report.total(), 0U);
  ASSERT_EQ(holes.tokenizer().ids.size(), 261U);
  EXPECT_EQ(holes.tokenizer().ids[260], 299U);
  EXPECT_EQ(holes.tokenizer().tokens[259], "a");
  const ReadTokenizer more = read_tokenizer(tiny_llama({.pieces = R"("b":300,"a":270)", .merges = "[]"}));
  EXPECT_EQ(more.unheld(), "it has tokens that config.json has no rows for");
  EXPECT_EQ(more.tokenizer().tokens.size(), 260U);
}

TEST(HuggingFaceBytePairs, SpecialTokensComeFromTheSettingsFirst) {
  Files files = tiny_llama({.pieces = R"("[B]":259,"[E]":260,"[P]":261)", .merges = "[]"});
  files["tokenizer_config.json"] =
      R"({"bos_token":"[B]","eos_token":{"content":"[E]"},"pad_token":"[P]","unk_token":null})";
  const Special stated = {{"unk", 0}, {"bos", 259}, {"eos", 260}, {"pad", 261}};
  EXPECT_EQ(read_tokenizer(files).tokenizer().special, stated);
  files.erase("tokenizer_config.json");
  files["config.json"] = R"({"model_type":"llama","bos_token_id":259,"eos_token_id":[260,2]})";
  const Special by_id = {{"unk", 0}, {"bos", 259}, {"eos", 260}};
  EXPECT_EQ(read_tokenizer(files).tokenizer().special, by_id);
  // One token for all roles.
  const Special one = {{"eos", 0}, {"bos", 0}, {"unk", 0}};
  EXPECT_EQ(read_tokenizer(
                tiny_llama({.pieces = R"("</s>":0)", .merges = "[]", .model = R"("x":0)", .added = "", .bytes = false}))
                .tokenizer()
                .special,
            one);
}

TEST(HuggingFaceBytePairs, OfARepeatedMergeTheLastCounts) {
  const ReadTokenizer out = read_tokenizer(
      tiny_llama({.pieces = R"("a":259,"b":260,"ab":261,"ba":262)", .merges = R"(["a b","b a","a b"])"}));
  const std::vector<Tokenizer::Merge> merges = {{260, 259, 262, 1}, {259, 260, 261, 2}};
  EXPECT_EQ(out.tokenizer().merges, merges);
}

TEST(HuggingFaceBytePairs, BytesAreThoseOfGpt2) {
  // Space, newline, 0xFF and "é".
  const ReadTokenizer out = read_tokenizer(
      tiny_llama({.pieces = R"("\u0120":259,"\u010a":260,"\u00ff":261,"\u00c3":262,"\u00a9":263,"\u00c3\u00a9":264)",
                  .merges = R"(["\u00c3 \u00a9"])",
                  .normalizer = "null",
                  .pre_tokenizer = R"({"type":"ByteLevel","use_regex":false,"add_prefix_space":false})"}));
  const Tokenizer& t = out.tokenizer();
  EXPECT_EQ(t.tokens[259], " ");
  EXPECT_EQ(t.tokens[260], "\n");
  EXPECT_EQ(t.tokens[261], "\xFF");
  EXPECT_EQ(t.tokens[264], "\xC3\xA9");
}

// A folder like Llama 3's: its expression, its words that stay whole, added tokens of both kinds, BOS by the template.
TEST(HuggingFaceBytePairs, WhatAByteLevelTokenizerDoesBesidesMergesAreRules) {
  const std::string split =
      R"({"type":"Split","pattern":{"Regex":"\\p{N}{1,3}"},"behavior":"Isolated","invert":false})";
  Files files = tiny_llama(
      {.pieces = R"("\u0120":259,"\u00c3\u00a9":260)",
       .merges = "[]",
       .normalizer = "null",
       .pre_tokenizer = R"({"type":"Sequence","pretokenizers":[)" + split +
                        R"(,{"type":"ByteLevel","use_regex":false,"add_prefix_space":false}]})",
       .model = R"("ignore_merges":true)",
       .added = R"({"id":1,"content":"<s>","special":true},{"id":2,"content":"</s>","special":true},)"
                R"({"id":270,"content":"<|turn|>","special":true},{"id":271,"content":"<x>","special":false},)"
                R"({"id":272,"content":"<y>","normalized":false})"});
  std::string& json = files["tokenizer.json"];
  json.insert(json.rfind('}'), R"(,"post_processor":{"type":"Sequence","processors":[{"type":"ByteLevel"},)"
                               R"({"type":"TemplateProcessing","single":[{"SpecialToken":{"id":"<s>"}},)"
                               R"({"Sequence":{"id":"A"}}]}]})");
  files["generation_config.json"] = R"({"eos_token_id":[2,270,299,270]})";
  const auto rules = [&] { return read_tokenizer(files).rules(); };
  const std::string whole = rules();
  for (const char* const part :
       {R"("byte_level":true)", R"("apart":true)", R"("whole_words":true)", R"("words":["\\p{N}{1,3}"])",
        R"("bos":true)", R"("eos":false)", R"("control":[1,2,270])", R"("found":[271,272])", R"("ends":[270])"})
    EXPECT_NE(whole.find(part), std::string::npos) << part << " in " << whole;
  files["generation_config.json"] = R"({"eos_token_id":2})";
  EXPECT_EQ(rules().find("ends"), std::string::npos);
  files["config.json"].insert(1, R"("eos_token_id":[2,271],)");
  EXPECT_NE(rules().find(R"("ends":[271])"), std::string::npos);
}

TEST(HuggingFaceBytePairs, AFlagOfTheSettingsDecidesWhetherASentencepieceVocabularyAddsBos) {
  Files files = tiny_llama();
  files["tokenizer_config.json"] = R"({"add_bos_token":false,"add_eos_token":true})";
  EXPECT_EQ(read_tokenizer(files).rules(), R"({"bos":false,"eos":true})");
  files["tokenizer_config.json"] = R"({"add_bos_token":true,"add_eos_token":false})";
  EXPECT_EQ(read_tokenizer(files).rules(), "");
}

TEST(HuggingFaceBytePairs, SaysWhatMergesCannotDo) {
  const std::string metaspace = R"({"type":"Metaspace","replacement":"\u2581","prepend_scheme":"never","split":false})";
  const std::string nested =
      R"({"type":"Sequence","pretokenizers":[{"type":"Sequence","pretokenizers":[{"type":"Digits"}]}]})";
  const std::pair<TinyLlama, std::string> cases[] = {
      {{.normalizer = R"({"type":"NFC"})"}, "its normalizer NFC changes texts; it puts no space before a text"},
      {{.normalizer = R"({"type":"Sequence"})"},
       "it has a step of a kind that is not known; it puts no space before a text"},
      {{.normalizer = "null", .pre_tokenizer = metaspace}, "it puts no space before a text"},
      {{.pre_tokenizer = nested}, "its pre-tokenizer Digits splits texts first"},
      {{.pre_tokenizer = R"({"type":"Split"})"}, "it splits texts by a regular expression first"},
      {{.model = R"("byte_fallback":true,"ignore_merges":true)"}, "it takes whole words without their merges"},
      {{.model = R"("byte_fallback":true,"dropout":0.5)"}, "it drops merges at random"},
      {{.model = R"("byte_fallback":true,"end_of_word_suffix":"</w>")"}, "it marks the parts of words"},
      {{.added = R"({"id":261,"content":"ab"},{"id":260,"content":"b"})"},
       "it finds 2 added tokens in texts, the first is \"b\""},
      {{.pieces = R"("a":259,"a b":260)", .merges = "[]"}, "it tells tokens apart that stand for the same text"},
      {{.pieces = R"("a":0,"</s>":2)", .merges = "[]", .bytes = false},
       "characters that its vocabulary lacks are no bytes to it; it puts a space before a text"},
  };
  const std::string bytes = R"({"type":"ByteLevel","use_regex":false,"add_prefix_space":false})";
  const std::string every_byte = "characters that its vocabulary lacks are no bytes to it";
  const std::pair<TinyLlama, std::string> of_bytes[] = {
      {{.normalizer = "null", .pre_tokenizer = R"({"type":"ByteLevel","use_regex":false})"},
       "it puts a space before a text without one; " + every_byte},
      {{.normalizer = R"({"type":"NFC"})", .pre_tokenizer = bytes}, "its normalizer NFC changes texts; " + every_byte},
      {{.normalizer = "null",
        .pre_tokenizer = R"({"type":"Sequence","pretokenizers":[)" + bytes + R"(,{"type":"Digits"}]})"},
       "its pre-tokenizer Digits splits texts first; " + every_byte},
      {{.normalizer = "null",
        .pre_tokenizer = bytes,
        .added = R"({"id":261,"content":"ab","lstrip":true},{"id":260,"content":"b","normalized":true})"},
       "it finds added tokens only as words of their own, or with the spaces around them; "
       "it finds some added tokens before it looks for others; " +
           every_byte},
  };
  for (auto [llama, expected] : of_bytes) {
    llama.model = R"("x":0)";
    EXPECT_EQ(read_tokenizer(tiny_llama(llama)).unheld(), expected);
  }
  for (const auto& [llama, expected] : cases) {
    const ReadTokenizer out = read_tokenizer(tiny_llama(llama));
    EXPECT_EQ(out.unheld(), expected);
    EXPECT_EQ(out.report.total(), 0U);
    EXPECT_NE(out.model.tokenizer(), nullptr);
  }
}

}  // namespace
}  // namespace weighbridge::huggingface
