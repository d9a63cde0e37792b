// SPDX-License-Identifier: Apache-2.0
// Generator and Session on fixtures: compared with a plain computation in double, and what they refuse.
#include "weighbridge/generate.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <thread>
#include <vector>

#include "support/plain_llama.h"
#include "support/sample_models.h"
#include "support/temporary_folder.h"
#include "support/thrown.h"
#include "weighbridge/convert.h"
#include "weighbridge/open.h"
#include "weighbridge/options.h"
#include "weighbridge/slm.h"

namespace weighbridge {
namespace {

using Ids = std::vector<std::uint32_t>;
using Matrix = test::Matrix;

// The largest error of a logit, relative to the largest logit.
double furthest(const Model& model, std::size_t tokens, GeneratorPrecision precision = GeneratorPrecision::exact) {
  test::PlainLlama plain(model);
  const Generator generator(model, {.threads = 2, .precision = precision});
  Session session = generator.session();
  double maximum = 0, largest = 0;
  for (std::uint32_t i = 0; i < tokens; ++i) {
    const std::uint32_t id = (i * 37 + 11) % 256;
    const Matrix expected = plain.feed(id);
    session.feed(std::span(&id, 1));
    for (std::size_t j = 0; j < expected.size(); ++j) {
      maximum = std::max(maximum, std::fabs(expected[j] - static_cast<double>(session.logits()[j])));
      largest = std::max(largest, std::fabs(expected[j]));
    }
  }
  return maximum / largest;
}

// A fixture written and read back, as q8_0 or q4_0 if `kind` says so.
Model written(slm::Fixture which, std::string_view kind) {
  static const test::TemporaryFolder folder;
  static int count = 0;
  const std::string path = folder / (std::to_string(count++) + ".slm");
  Options options;
  options.quantize = kind;
  plan(slm::fixture(which), "slm", options).execute(path);
  return open(path, {}, {.access = Access::mapped});
}

TEST(Generate, LogitsAreThoseOfAPlainComputation) {
  EXPECT_LT(furthest(slm::fixture(slm::Fixture::tiny), 20), 2e-6);
  EXPECT_LT(furthest(slm::fixture(slm::Fixture::tiny_tied), 20), 2e-6);
  EXPECT_LT(furthest(slm::fixture(slm::Fixture::tinylm16m), 3), 2e-5);
}

TEST(Generate, QuantizedLogitsAreThoseOfAPlainComputation) {
  for (const std::string_view kind : {"q8_0", "q4_0"}) {
    EXPECT_LT(furthest(written(slm::Fixture::tiny, kind), 10), 2e-6) << kind;
    EXPECT_LT(furthest(written(slm::Fixture::tinylm16m, kind), 2), 2e-5) << kind;
  }
}

TEST(Generate, FastQuantizedLogitsAreNearThoseOfAPlainComputation) {
  for (const std::string_view kind : {"q8_0", "q4_0"}) {
    EXPECT_LT(furthest(written(slm::Fixture::tiny, kind), 10, GeneratorPrecision::fast), 0.02) << kind;
    const double maximum = furthest(written(slm::Fixture::tinylm16m, kind), 2, GeneratorPrecision::fast);
    EXPECT_LT(maximum, 0.02) << kind;
    EXPECT_GT(maximum, 1e-4) << kind << ": its activations are rounded";
  }
}

// Of tokens fed together, which takes other kernels than one at a time, and of one more.
TEST(Generate, QuantizedWeightsGiveTheLogitsOfTheDequantizedModel) {
  for (const slm::Fixture which : {slm::Fixture::tiny, slm::Fixture::tiny_tied, slm::Fixture::tinylm16m}) {
    for (const std::string_view kind : {"q8_0", "q4_0"}) {
      const Model quantized = written(which, kind);
      const auto logits = [](const Model& model, unsigned threads) {
        const Generator generator(model, {.threads = threads});
        Session session = generator.session();
        std::vector<float> out;
        const auto add = [&](std::span<const float> rows) { out.insert(out.end(), rows.begin(), rows.end()); };
        session.feed(Ids{7, 19, 3, 250, 11, 90, 90, 4, 1, 77, 2}, add);
        session.feed(Ids{8}, add);
        return out;
      };
      const auto expected = logits(test::dequantized(quantized), 1);
      const auto found = logits(quantized, 1);
      ASSERT_EQ(found.size(), expected.size());
      for (std::size_t i = 0; i < found.size(); ++i) ASSERT_NEAR(found[i], expected[i], 2e-5) << kind << " " << i;
      EXPECT_EQ(logits(quantized, 2), found) << kind;
    }
  }
}

TEST(Generate, PrecisionIsSetByItsName) {
  GeneratorOptions options;
  EXPECT_EQ(options.precision, GeneratorPrecision::exact);
  for (const std::string_view word : words(*find_option(OptionOf::generator, "precision"))) {
    options.set("precision", word);
    EXPECT_EQ(name(options.precision), word);
  }
  EXPECT_EQ(options.precision, GeneratorPrecision::fast);
  EXPECT_EQ(Generator(slm::fixture(slm::Fixture::tiny), options).precision(), GeneratorPrecision::fast);
  EXPECT_THROW(options.set("precision", "int8"), Error);
  EXPECT_THROW(options.set("pooling", "mean"), Error);
  EXPECT_EQ(find_option(OptionOf::generator, "pooling"), nullptr);
}

// Four query heads over two key/value heads; rows past the heads are unused (reading M8).
Model grouped() {
  const Model full = slm::fixture(slm::Fixture::tiny);
  Builder builder;
  for (const auto& [key, value] : full.attributes()) {
    builder.attribute(std::string(key), key == "slm.head_count"      ? Value::integer(std::uint64_t{4}, DType::u32)
                                        : key == "slm.kv_head_count" ? Value::integer(std::uint64_t{2}, DType::u32)
                                        : key == "slm.head_dim"      ? Value::integer(std::uint64_t{2}, DType::u32)
                                                                     : value);
  }
  builder.tokenizer(*full.tokenizer());
  for (std::uint32_t i = 0; i < full.size(); ++i) builder.tensor(std::string(full.name(i)), full[i]);
  return builder.build();
}

TEST(Generate, GroupedQueriesReadTheHeadsOfTheirGroup) { EXPECT_LT(furthest(grouped(), 20), 2e-6); }

TEST(Generate, AnEmptyPromptStartsFromBosAndAPromptIsFedInOnePiece) {
  const Model model = slm::fixture(slm::Fixture::tiny);
  const Generator generator(model);
  EXPECT_EQ(generator.threads(), 1U);  // the model is small
  Session session = generator.session();
  const Generated first = session.generate("", {.max_tokens = 3});
  EXPECT_EQ(first.prompt_tokens, 1U);
  EXPECT_EQ(session.ids()[0], generator.tokenizer().bos());
  Session other = generator.session();
  EXPECT_EQ(other.generate("abc", {.max_tokens = 0}).prompt_tokens, 4U);
  EXPECT_EQ(other.ids().size(), 4U);
  const std::uint32_t next = other.likeliest();
  EXPECT_EQ(other.generate("", {.max_tokens = 1}).tokens, Ids{next});
}

TEST(Generate, StopsWhenTheContextIsFull) {
  const Generator generator(slm::fixture(slm::Fixture::tiny), {.context = 8});
  Session session = generator.session();
  const Generated text = session.generate("abc", {.max_tokens = 100});
  if (text.stopped != Stopped::eos) {
    EXPECT_EQ(text.stopped, Stopped::context);
    EXPECT_EQ(text.tokens.size(), 5U);
    EXPECT_EQ(session.ids().size(), 8U);
  }
}

TEST(Generate, ACallbackThatSaysNoCancels) {
  const Generator generator(slm::fixture(slm::Fixture::tinylm16m));
  Session session = generator.session();
  int pieces = 0;
  const Generated text =
      session.generate("a", {.max_tokens = 50, .on_text = [&](std::string_view) { return ++pieces < 2; }});
  EXPECT_EQ(pieces, 2);
  EXPECT_EQ(text.stopped, Stopped::cancelled);
  EXPECT_LT(text.tokens.size(), 50U);
}

TEST(Generate, APromptIsComputedInPartsAndCanBeCancelledBetweenThem) {
  const Generator generator(slm::fixture(slm::Fixture::tinylm16m), {});
  Session session = generator.session();
  const std::string prompt(generator.context() - 10, 'a');
  const std::size_t tokens = generator.tokenizer().encode(prompt, {.bos = true}).size();
  ASSERT_GT(tokens, 128U);
  std::vector<std::uint64_t> reported;
  GenerateOptions options;
  options.on_prompt = [&](std::uint64_t done, std::uint64_t total) {
    EXPECT_EQ(total, tokens);
    reported.push_back(done);
    return reported.size() < 2;
  };
  const Generated text = session.generate(prompt, options);
  EXPECT_EQ(reported, (std::vector<std::uint64_t>{0, 128}));
  EXPECT_EQ(text.stopped, Stopped::cancelled);
  EXPECT_TRUE(text.tokens.empty());
  EXPECT_TRUE(session.ids().empty());
  // The session can be used as if nothing had been asked.
  EXPECT_EQ(session.generate("b", {.max_tokens = 3}).tokens,
            generator.session().generate("b", {.max_tokens = 3}).tokens);
}

TEST(Generate, StepByStepIsTheSameText) {
  const Generator generator(slm::fixture(slm::Fixture::tinylm16m));
  const GenerateOptions options{.max_tokens = 20, .sampling = {.temperature = 1, .seed = 3}};
  Session whole = generator.session(), steps = generator.session();
  const Generated expected = whole.generate("one", options);
  Generation generation = steps.begin("one", options);
  std::size_t before = 0;
  while (generation.step()) {
    EXPECT_GE(generation.result().text.size(), before);
    before = generation.result().text.size();
  }
  EXPECT_FALSE(generation.step());
  EXPECT_EQ(generation.result().tokens, expected.tokens);
  EXPECT_EQ(generation.result().text, expected.text);
  EXPECT_EQ(generation.result().stopped, expected.stopped);
  EXPECT_TRUE(std::ranges::equal(steps.ids(), whole.ids()));
}

TEST(Generate, AGenerationCanBeCancelledBetweenSteps) {
  const Generator generator(slm::fixture(slm::Fixture::tinylm16m));
  Session session = generator.session();
  Generation generation = session.begin("one", {.max_tokens = 20});
  generation.step();
  generation.cancel();
  EXPECT_FALSE(generation.step());
  EXPECT_EQ(generation.result().stopped, Stopped::cancelled);
  EXPECT_LE(generation.result().tokens.size(), 1U);
}

TEST(Generate, SessionsOfOneGeneratorRunAtOnce) {
  const Generator generator(slm::fixture(slm::Fixture::tinylm16m), {.threads = 2});
  const auto run = [&](std::string_view prompt) {
    Session session = generator.session();
    return session.generate(prompt, {.max_tokens = 12}).tokens;
  };
  const Ids a = run("one"), b = run("two");
  Ids again_a, again_b;
  std::thread other([&] { again_a = run("one"); });
  again_b = run("two");
  other.join();
  EXPECT_EQ(a, again_a);
  EXPECT_EQ(b, again_b);
}

TEST(Generate, RewindingForgets) {
  const Generator generator(slm::fixture(slm::Fixture::tiny));
  Session session = generator.session();
  session.feed(Ids{1, 2, 3, 4});
  const std::vector<float> logits(session.logits().begin(), session.logits().end());
  session.rewind(2);
  EXPECT_THROW(static_cast<void>(session.logits()), Error);
  session.feed(Ids{3, 4});
  EXPECT_TRUE(std::ranges::equal(logits, session.logits()));
  EXPECT_THROW(session.rewind(5), Error);
}

TEST(Generate, WhatCannotBeIsMisuseAndLeavesTheSession) {
  const Generator generator(slm::fixture(slm::Fixture::tiny));
  Session session = generator.session();
  EXPECT_THROW(static_cast<void>(session.likeliest()), Error);
  EXPECT_THROW(session.feed(Ids{}), Error);
  EXPECT_THROW(session.feed(Ids{260}), Error);
  EXPECT_THROW(session.feed(Ids(generator.context() + 1, 1)), Error);
  EXPECT_THROW(session.generate(std::string(generator.context() - 1, 'a')), Error);
  EXPECT_THROW(session.generate("a", {.sampling = {.temperature = -1}}), Error);
  EXPECT_THROW(session.generate("a", {.stop = {""}}), Error);
  EXPECT_TRUE(session.ids().empty());
  EXPECT_EQ(session.generate(std::string(generator.context() - 2, 'a'), {.max_tokens = 0}).prompt_tokens,
            generator.context() - 1);
  EXPECT_THROW(Generator(slm::fixture(slm::Fixture::tiny), {.context = 1000}), Error);
  EXPECT_THROW(static_cast<void>(perplexity(generator, "")), Error);
}

// The error for the fixture with attribute `key` changed to `value`, or with `tensor` filled with `with`
// (left out if `with` is 0).
std::string refusal(const std::string& key, const Value& value, const std::string& tensor = {}, float with = 0) {
  const Model full = slm::fixture(slm::Fixture::tiny);
  Builder builder;
  for (const auto& [name, own] : full.attributes()) builder.attribute(std::string(name), name == key ? value : own);
  builder.tokenizer(*full.tokenizer());
  for (std::uint32_t i = 0; i < full.size(); ++i) {
    const Tensor from = full[i];
    if (from.name() != tensor) {
      builder.tensor(std::string(from.name()), from);
    } else if (with != 0) {
      auto values = std::make_shared<std::vector<float>>(from.main().count(), with);
      builder.tensor(tensor, DType::f32, {from.shape().begin(), from.shape().end()},
                     Bytes{std::as_bytes(std::span(*values)), values});
    }
  }
  try {
    const Generator generator(builder.build());
  } catch (const Error& error) {
    return error.finding().rule + ": " + error.what();
  }
  return {};
}

// The same for the fixture under the names of llama.cpp.
std::string refusal_of_gguf(const std::string& key, std::uint64_t value, const std::string& tensor = {},
                            float with = 0) {
  const Model full = slm::fixture(slm::Fixture::tiny);
  Builder builder;
  builder.attribute("general.architecture", Value::text("llama")).tokenizer(*full.tokenizer());
  const auto set = [&](const std::string& name, const std::string& field) {
    builder.attribute(name, name == key ? Value::integer(value) : *full.attribute("slm." + field));
  };
  set("llama.block_count", "layer_count");
  set("llama.attention.head_count", "head_count");
  set("llama.attention.head_count_kv", "kv_head_count");
  set("llama.feed_forward_length", "ffn_size");
  set("llama.context_length", "max_context");
  set("llama.attention.layer_norm_rms_epsilon", "rms_norm_epsilon");
  const std::pair<std::string, std::string> words[] = {{"tok_embeddings", "token_embd"},
                                                       {"attention_norm", "attn_norm"},
                                                       {"wq", "attn_q"},
                                                       {"wk", "attn_k"},
                                                       {"wv", "attn_v"},
                                                       {"wo", "attn_output"},
                                                       {"w1", "ffn_gate"},
                                                       {"w2", "ffn_down"},
                                                       {"w3", "ffn_up"}};
  for (const Tensor& from : full) {
    std::string name(from.name());
    if (name.starts_with("layers.")) name.replace(0, 7, "blk.");
    if (name == "norm.weight") name = "output_norm.weight";
    for (const auto& [own, theirs] : words)
      if (const std::string end = own + ".weight"; name.ends_with(end) && !name.ends_with("_" + end))
        name.replace(name.size() - end.size(), end.size(), theirs + ".weight");
    if (name != tensor) {
      builder.tensor(name, from);
    } else if (with != 0) {
      auto values = std::make_shared<std::vector<float>>(from.main().count(), with);
      builder.tensor(name, DType::f32, {from.shape().begin(), from.shape().end()},
                     Bytes{std::as_bytes(std::span(*values)), values});
    }
  }
  try {
    const Generator generator(builder.build());
  } catch (const Error& error) {
    return error.finding().tensor + ": " + error.what();
  }
  return {};
}

// The names were once those of SLM, which the file does not have.
TEST(Generate, AGgufThatDoesNotFitIsRefusedByItsOwnNames) {
  EXPECT_EQ(refusal_of_gguf({}, 0), "");
  const std::string refused[][2] = {
      {refusal_of_gguf("llama.attention.head_count_kv", 3), "llama.attention.head_count_kv 3"},
      {refusal_of_gguf("llama.attention.head_count", 3), "llama.attention.head_count 3"},
      {refusal_of_gguf("llama.block_count", 4000000000), "llama.block_count is 4000000000"},
      {refusal_of_gguf("llama.block_count", 2), "the model has no tensor 'blk.1."},
      {refusal_of_gguf("llama.feed_forward_length", 5), "tensor 'blk.0.ffn_"},
      {refusal_of_gguf({}, 0, "blk.0.ffn_down.weight"), "no tensor 'blk.0.ffn_down.weight'"},
      {refusal_of_gguf({}, 0, "blk.0.ffn_down.weight", INFINITY), "tensor 'blk.0.ffn_down.weight' holds a value"},
      {refusal_of_gguf({}, 0, "output_norm.weight", NAN), "tensor 'output_norm.weight' holds a value"}};
  for (const auto& [message, part] : refused) {
    EXPECT_NE(message.find(part), std::string::npos) << message;
    EXPECT_EQ(message.find("slm."), std::string::npos) << message;
    EXPECT_EQ(message.find("layers."), std::string::npos) << message;
  }
}

TEST(Generate, AModelThatDoesNotFitIsRefusedByName) {
  const auto number = [](std::uint64_t n) { return Value::integer(n, DType::u32); };
  EXPECT_NE(refusal("slm.hidden_size", number(16)).find("slm.hidden_size"), std::string::npos);
  EXPECT_NE(refusal("slm.kv_head_count", number(3)).find("slm.kv_head_count"), std::string::npos);
  EXPECT_NE(refusal("slm.layer_count", number(4000000000)).find("generate/layers"), std::string::npos);
  EXPECT_NE(refusal("slm.layer_count", number(2)).find("layers.1."), std::string::npos);
  EXPECT_NE(refusal("slm.vocab_size", number(300)).find("the tokenizer has 260 ids"), std::string::npos);
  EXPECT_NE(refusal("slm.rope_theta", Value::real(-1, DType::f32)).find("slm.rope_theta"), std::string::npos);
  EXPECT_NE(refusal({}, {}, "layers.0.w2.weight").find("layers.0.w2.weight"), std::string::npos);
  EXPECT_NE(refusal({}, {}, "layers.0.w2.weight", INFINITY).find("generate/not-finite"), std::string::npos);
  EXPECT_NE(refusal({}, {}, "norm.weight", NAN).find("norm.weight"), std::string::npos);
}

TEST(Generate, LogitsThatAreNoNumbersAreRefused) {
  const Model full = slm::fixture(slm::Fixture::tiny);
  Builder builder;
  for (const auto& [name, value] : full.attributes()) builder.attribute(std::string(name), value);
  builder.tokenizer(*full.tokenizer());
  for (std::uint32_t i = 0; i < full.size(); ++i) {
    if (full.name(i) != "norm.weight") {
      builder.tensor(std::string(full.name(i)), full[i]);
      continue;
    }
    auto values = std::make_shared<std::vector<float>>(full[i].main().count(), 3e38F);
    builder.tensor("norm.weight", DType::f32, {values->size()}, Bytes{std::as_bytes(std::span(*values)), values});
  }
  const Generator generator(builder.build());
  Session session = generator.session();
  try {
    session.generate("a");
    ADD_FAILURE() << "generated from logits that are no numbers";
  } catch (const Error& error) {
    EXPECT_EQ(error.finding().rule, "generate/overflow");
  }
  EXPECT_THROW(static_cast<void>(perplexity(generator, "abc")), Error);
}

TEST(Generate, NoMoreThreadsThanProcessorsAreUsed) {
  const Generator generator(slm::fixture(slm::Fixture::tiny), {.threads = 1000});
  EXPECT_LE(generator.threads(), thread_executor()->concurrency());
}

TEST(Generate, AModelOfLessThan2MiBUsesOneThreadUnlessAsked) {
  EXPECT_EQ(Generator(slm::fixture(slm::Fixture::tiny)).threads(), 1U);
  const unsigned maximum = thread_executor()->concurrency();
  EXPECT_EQ(Generator(slm::fixture(slm::Fixture::tiny), {.threads = 2}).threads(), std::min(2U, maximum));
  const auto threads_of = [](std::uint32_t ffn) {
    const test::TemporaryFolder folder;
    save(test::llama_model({.hidden = 64, .ffn = ffn}).build(), folder / "m.slm");
    return Generator(open(folder / "m.slm")).threads();
  };
  EXPECT_EQ(threads_of(2432), 1U) << "1.9 MiB of weights";
  EXPECT_EQ(threads_of(2688), maximum) << "2.1 MiB";
}

TEST(Perplexity, IsTheMeanOfWhatEachTokenCosts) {
  const Model model = slm::fixture(slm::Fixture::tiny);
  const Generator generator(model);
  test::PlainLlama plain(model);
  const std::string text = "weigh";
  double total = 0;
  Matrix logits = plain.feed(generator.tokenizer().bos());
  for (const char c : text) {
    double sum = 0;
    for (const double logit : logits) sum += std::exp(logit);
    total += std::log(sum) - logits[static_cast<unsigned char>(c)];
    logits = plain.feed(static_cast<unsigned char>(c));
  }
  const Perplexity result = perplexity(generator, text);
  EXPECT_EQ(result.tokens, text.size());
  EXPECT_NEAR(result.nll, total / static_cast<double>(text.size()), 1e-6);
  EXPECT_NEAR(result.perplexity, std::exp(result.nll), 1e-12);
}

// The model with this attribute tokenizer_rules.
Model with_rules(const Model& model, const std::string& rules) {
  Builder builder;
  for (const auto& [key, value] : model.attributes()) builder.attribute(key, value);
  builder.attribute("tokenizer_rules", Value::text(rules));
  builder.tokenizer(*model.tokenizer());
  for (const Tensor& tensor : model) builder.tensor(std::string(tensor.name()), tensor);
  return builder.build();
}

// BOS was once put before each window, whatever the model said.
TEST(Perplexity, BeginsAWindowWithBosOnlyWhereTheModelSaysSo) {
  const Model model = slm::fixture(slm::Fixture::tiny);
  const Model bare = with_rules(model, R"({"bos":false})");
  const Generator generator(bare, {.context = 8});
  EXPECT_FALSE(generator.tokenizer().adds_bos());
  const std::string text = "a bridge that weighs";
  double total = 0;
  for (std::size_t at = 1; at < text.size(); at += 7) {  // a window begins with the token before it
    test::PlainLlama plain(model);
    for (std::size_t i = at; i < std::min(at + 7, text.size()); ++i) {
      const Matrix logits = plain.feed(static_cast<unsigned char>(text[i - 1]));
      double sum = 0;
      for (const double logit : logits) sum += std::exp(logit);
      total += std::log(sum) - logits[static_cast<unsigned char>(text[i])];
    }
  }
  const Perplexity result = perplexity(generator, text);
  EXPECT_EQ(result.tokens, text.size() - 1);
  EXPECT_NEAR(result.nll, total / static_cast<double>(text.size() - 1), 1e-6);
  EXPECT_NE(result.nll, perplexity(Generator(model, {.context = 8}), text).nll);
  EXPECT_THROW(static_cast<void>(perplexity(generator, "a")), Error);
  EXPECT_EQ(perplexity(Generator(model), "a").tokens, 1U);
  Session session = generator.session();
  EXPECT_EQ(session.generate("abc", {.max_tokens = 1}).prompt_tokens, 3U);
}

// Once, only EOS ended a text.
TEST(Generate, StopsAtEachEndThatTheModelDeclares) {
  const Model model = slm::fixture(slm::Fixture::tiny);
  const Generator plain(model);
  Session session = plain.session();
  const Generated text = session.generate("hello", {.max_tokens = 8});
  ASSERT_GE(text.tokens.size(), 3U);
  const std::uint32_t end = text.tokens[2];
  ASSERT_EQ(std::ranges::find(text.tokens, end) - text.tokens.begin(), 2);
  const Generator ending(with_rules(model, R"({"ends":[255,)" + std::to_string(end) + "]}"));
  EXPECT_TRUE(ending.tokenizer().ends(end) && ending.tokenizer().ends(ending.tokenizer().eos()));
  EXPECT_FALSE(ending.tokenizer().ends(text.tokens[0]));
  Session stopping = ending.session();
  const Generated stopped = stopping.generate("hello", {.max_tokens = 8});
  EXPECT_EQ(stopped.tokens, Ids(text.tokens.begin(), text.tokens.begin() + 2));
  EXPECT_EQ(stopped.stopped, Stopped::eos);
}

TEST(Generate, RulesOfATokenizerThatAreNoneAreRefused) {
  for (const char* const rules :
       {"", "[]", R"({"bos":1})", R"({"ends":[-1]})", R"({"other":true})", R"({"words":"a"})"})
    EXPECT_EQ(test::thrown([&] { Generator(with_rules(slm::fixture(slm::Fixture::tiny), rules)); }).rule,
              "tokenizer/rules")
        << rules;
}

}  // namespace
}  // namespace weighbridge
