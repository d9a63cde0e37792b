// SPDX-License-Identifier: Apache-2.0
// A Generator compared with the float64 reference of a real model, stories260K, in every form. Skips with a message if
// the test data is absent.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "runtime/kernels/kernels.h"
#include "support/plain_llama.h"
#include "support/temporary_folder.h"
#include "support/test_data.h"
#include "weighbridge/convert.h"
#include "weighbridge/generate.h"
#include "weighbridge/open.h"

namespace weighbridge {
namespace {

using Ids = std::vector<std::uint32_t>;

// The checkpoint as an .slm, quantized if `kind` says so.
class Stories {
 public:
  explicit Stories(std::string_view kind = {}) {
    const Model checkpoint = open(*test::test_data("llama/stories260K.bin"), {},
                                  {.tokenizer = open_file(*test::test_data("llama/tok512.bin"))});
    Options options;
    options.quantize = kind;
    const std::string path = folder_ / "stories.slm";
    plan(checkpoint, "slm", options).execute(path);
    model_ = open(path, {}, {.access = Access::mapped});
  }
  const Model& model() const { return model_; }
  Generator generator(unsigned threads = 1, GeneratorPrecision precision = GeneratorPrecision::exact) const {
    return Generator(model_, {.threads = threads, .precision = precision});
  }

 private:
  test::TemporaryFolder folder_;
  Model model_;
};

nlohmann::json golden() {
  std::ifstream file(*test::test_data("llama/stories260K_golden.json"));
  return nlohmann::json::parse(file);
}

Ids greedy(const Generator& generator, std::uint64_t count) {
  Session session = generator.session();
  return session.generate("", {.max_tokens = count}).tokens;
}

#define WB_REQUIRE_STORIES()                             \
  if (!test::test_data("llama/stories260K_golden.json")) \
  GTEST_SKIP() << "llama/stories260K_golden.json is not in ../shared/data or $WEIGHBRIDGE_TEST_DATA"

TEST(Stories260K, GreedyIdsTextAndLogitsAreThoseOfTheReference) {
  WB_REQUIRE_STORIES();
  const Stories stories;
  const Generator generator = stories.generator();
  const auto expected = golden();
  Session session = generator.session();
  const Generated text = session.generate("", {.max_tokens = 200});
  const Ids ids = expected["greedy_ids_first_64"];
  ASSERT_EQ(text.tokens.size(), 200U);
  EXPECT_EQ(Ids(text.tokens.begin(), text.tokens.begin() + 64), ids);
  const std::string characters = expected["text_first_200_chars"];
  EXPECT_EQ(text.text.substr(0, characters.size()), characters);
  EXPECT_EQ(text.stopped, Stopped::length);

  session.rewind();
  double maximum = 0;
  std::size_t position = 0;
  Ids fed{1};
  fed.insert(fed.end(), ids.begin(), ids.end());
  for (const auto& step : expected["steps"]) {
    for (; position <= step["pos"]; ++position) session.feed(std::span(&fed[position], 1));
    ASSERT_EQ(fed[position - 1], step["input"]);
    EXPECT_EQ(session.likeliest(), step["argmax"]);
    const auto logits = session.logits();
    for (std::size_t i = 0; i < 8; ++i)
      maximum = std::max(maximum, std::fabs(double{logits[i]} - step["logits_first8"][i].get<double>()));
    EXPECT_NEAR(*std::max_element(logits.begin(), logits.end()), step["max"], 1e-4);
    double sum = 0, squares = 0;
    for (const float logit : logits) {
      sum += double{logit};
      squares += double{logit} * double{logit};
    }
    EXPECT_NEAR(sum, step["sum"], 1e-4 * static_cast<double>(logits.size()));
    EXPECT_NEAR(std::sqrt(squares), step["l2"], 1e-3);
  }
  EXPECT_LT(maximum, 1e-4);
  std::printf("largest difference of a logit %.3g\n", maximum);
}

TEST(Stories260K, LikelihoodOfWhatGreedyDecodingGives) {
  WB_REQUIRE_STORIES();
  const Stories plain;
  const Ids ids = greedy(plain.generator(), 200);
  const auto both = [&](const Generator& generator) {
    const double all = perplexity(generator, ids).nll, first = perplexity(generator, std::span(ids).first(64)).nll;
    std::printf("%.6f over 200 ids, %.6f over 64\n", all, first);
    return std::pair{all, first};
  };
  struct Golden {
    std::string_view kind;
    double all, first_64;
  };
  for (const Golden& golden :
       {Golden{"", 0.4734, 0.3973}, Golden{"q8_0", 0.4768, 0.3994}, Golden{"q4_0", 0.5518, 0.5237}}) {
    const auto [all, first] = both(Stories(golden.kind).generator());
    EXPECT_NEAR(all, golden.all, 1e-4) << golden.kind;
    EXPECT_NEAR(first, golden.first_64, 1e-4) << golden.kind;
  }
  for (const Golden& bound : {Golden{"q8_0", 0.480, 0.402}, Golden{"q4_0", 0.60, 0.56}}) {
    const auto [all, first] = both(Stories(bound.kind).generator(1, GeneratorPrecision::fast));
    EXPECT_LE(all, bound.all) << bound.kind;
    EXPECT_LE(first, bound.first_64) << bound.kind;
  }
}

// 0.1 rounded activations to 8 bits, which gave other texts than the weights stand for.
TEST(Stories260K, QuantizedTextsAreThoseOfTheDequantizedModel) {
  WB_REQUIRE_STORIES();
  constexpr std::string_view kPrompts[] = {"",
                                           "Once upon a time",
                                           "The dog",
                                           "Lily and Ben",
                                           "One day, a little girl",
                                           "It was raining",
                                           "Tom had a red ball",
                                           "\"Can I play?\" said"};
  for (const std::string_view kind : {"q8_0", "q4_0"}) {
    const Stories stories(kind);
    const Generator quantized = stories.generator(), twin(test::dequantized(stories.model()), {.threads = 1});
    const Generator fast = stories.generator(1, GeneratorPrecision::fast);
    int others = 0;
    for (const std::string_view prompt : kPrompts) {
      const auto run = [&](const Generator& generator) {
        Session session = generator.session();
        const Ids ids = session.generate(prompt, {.max_tokens = 100}).tokens;
        return std::pair{ids, std::vector<float>(session.logits().begin(), session.logits().end())};
      };
      const auto [ids, logits] = run(quantized);
      const auto [expected, expected_logits] = run(twin);
      EXPECT_EQ(ids, expected) << kind << " " << prompt;
      ASSERT_EQ(logits.size(), expected_logits.size());
      for (std::size_t i = 0; i < logits.size(); ++i)
        ASSERT_NEAR(logits[i], expected_logits[i], 2e-5) << kind << " " << prompt << " " << i;
      others += run(fast).first != expected ? 1 : 0;
    }
    EXPECT_GT(others, 0) << kind << ": fast rounds activations";
  }
}

TEST(Stories260K, LikelihoodsOfQuantizedModelsAreThoseOfAPlainComputation) {
  WB_REQUIRE_STORIES();
  const Ids ids = greedy(Stories().generator(), 200);
  for (const std::string_view kind : {"", "q8_0", "q4_0"}) {
    const Stories stories(kind);
    test::PlainLlama plain(stories.model());
    double total = 0;
    std::uint32_t fed = 1;
    for (const std::uint32_t id : ids) {
      const test::Matrix logits = plain.feed(fed);
      const double top = *std::max_element(logits.begin(), logits.end());
      double sum = 0;
      for (const double logit : logits) sum += std::exp(logit - top);
      total += std::log(sum) + top - logits[id];
      fed = id;
    }
    const double expected = total / static_cast<double>(ids.size()), nll = perplexity(stories.generator(), ids).nll;
    EXPECT_NEAR(nll, expected, 1e-6) << kind;
    std::printf("%s: %.9f, in double %.9f\n", kind.empty() ? "f32" : kind.data(), nll, expected);
  }
}

TEST(Stories260K, LogitsDependOnTheIdsAlone) {
  WB_REQUIRE_STORIES();
  using enum GeneratorPrecision;
  for (const auto& [kind, precision] : {std::pair<std::string_view, GeneratorPrecision>{"", exact},
                                        {"q8_0", exact},
                                        {"q4_0", exact},
                                        {"q8_0", fast},
                                        {"q4_0", fast}}) {
    const Stories stories(kind);
    const Generator one = stories.generator(1, precision), two = stories.generator(2, precision);
    Ids ids = greedy(one, 300);
    ids.insert(ids.begin(), 1);
    const auto after = [&](const Generator& generator, std::initializer_list<std::size_t> pieces) {
      Session session = generator.session();
      std::span<const std::uint32_t> left(ids);
      for (const std::size_t piece : pieces) {
        session.feed(left.first(piece));
        left = left.subspan(piece);
      }
      while (!left.empty()) {
        session.feed(left.first(1));
        left = left.subspan(1);
      }
      return std::vector<float>(session.logits().begin(), session.logits().end());
    };
    const auto alone = after(one, {});
    EXPECT_EQ(alone, after(one, {301})) << kind;
    EXPECT_EQ(alone, after(two, {})) << kind;
    EXPECT_EQ(alone, after(two, {7, 130, 1, 129})) << kind;
  }
}

TEST(Stories260K, OneSeedGivesOneTextWithAnyNumberOfThreads) {
  WB_REQUIRE_STORIES();
  const Stories stories;
  const GenerateOptions options{.max_tokens = 100, .sampling = {.temperature = 0.9, .top_p = 0.9, .seed = 7}};
  const Generator one = stories.generator(1), two = stories.generator(2);
  Session first = one.session(), second = two.session(), third = two.session();
  const Generated a = first.generate("Once upon a time", options), b = second.generate("Once upon a time", options);
  EXPECT_EQ(a.tokens, b.tokens);
  EXPECT_EQ(a.text, b.text);
  GenerateOptions other = options;
  other.sampling.seed = 8;
  EXPECT_NE(third.generate("Once upon a time", other).text, a.text);
}

TEST(Stories260K, PerplexityOfALongTextGoesInWindows) {
  WB_REQUIRE_STORIES();
  const Stories stories;
  const Generator generator = stories.generator(2);
  Ids ids = greedy(generator, 511);
  const double whole = perplexity(generator, ids).nll;
  Ids twice = ids;
  twice.insert(twice.end(), ids.begin(), ids.begin() + 100);
  const double head = perplexity(generator, std::span(ids).first(100)).nll;
  EXPECT_NEAR(perplexity(generator, twice).nll, (511 * whole + 100 * head) / 611, 1e-12);
  EXPECT_EQ(perplexity(generator, twice).tokens, 611U);
}

}  // namespace
}  // namespace weighbridge
