// SPDX-License-Identifier: Apache-2.0
// evaluate sts: the correlation between the cosines of sentence pairs and the scores that people gave them.
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cmath>
#include <numeric>
#include <vector>

#include "embedding.h"
#include "weighbridge/json.h"

namespace weighbridge::cli {
namespace {

struct Pairs {
  std::vector<std::string> texts;  // two per pair
  std::vector<double> scores;
};

// Reads records of sentence, sentence, score. A first record without a numeric score is a heading.
Pairs read_pairs(Session& session, const std::string& path) {
  TextFile file(session, path, TextForm::lines);
  Pairs out;
  std::vector<std::string> fields;
  for (std::uint64_t record = 1; file.next_record(fields); ++record) {
    if (fields.size() == 1 && fields[0].empty()) continue;
    double score = 0;
    const std::string& text = fields.back();
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), score);
    const bool number = error == std::errc{} && end == text.data() + text.size();
    if (fields.size() == 3 && number) {
      out.texts.push_back(fields[0]);
      out.texts.push_back(fields[1]);
      out.scores.push_back(score);
    } else if (record != 1) {
      in_file(file.name(), [&] {
        raise(Kind::malformed, "texts/pairs",
              "record " + std::to_string(record) + " is not a sentence, a sentence and a number");
      });
    }
  }
  if (out.scores.size() < 2)
    in_file(file.name(), [] { raise(Kind::malformed, "texts/pairs", "there are fewer than two pairs"); });
  return out;
}

double pearson(std::span<const double> a, std::span<const double> b) {
  const auto n = static_cast<double>(a.size());
  const double mean_a = std::accumulate(a.begin(), a.end(), 0.0) / n,
               mean_b = std::accumulate(b.begin(), b.end(), 0.0) / n;
  double ab = 0, aa = 0, bb = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    ab += (a[i] - mean_a) * (b[i] - mean_b);
    aa += (a[i] - mean_a) * (a[i] - mean_a);
    bb += (b[i] - mean_b) * (b[i] - mean_b);
  }
  return aa > 0 && bb > 0 ? ab / std::sqrt(aa * bb) : 0;
}

// Ranks from 1; equal values get the mean of their ranks.
std::vector<double> ranks(std::span<const double> values) {
  std::vector<std::size_t> order(values.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return values[a] < values[b]; });
  std::vector<double> out(values.size());
  for (std::size_t first = 0, last = 0; first < order.size(); first = last) {
    while (last < order.size() && values[order[last]] == values[order[first]]) ++last;
    for (std::size_t i = first; i < last; ++i) out[order[i]] = static_cast<double>(first + last + 1) / 2;
  }
  return out;
}

}  // namespace

Status run_evaluate(Session& session) {
  const std::vector<std::string>& operands = session.args.operands;
  const std::string &path = operands[0], &pairs_path = operands[1];
  const auto embedder = open_embedder(session, path);
  const Pairs pairs = read_pairs(session, pairs_path);
  const auto start = std::chrono::steady_clock::now();
  std::vector<double> cosines;
  std::vector<float> before;
  std::size_t next = 0;
  Remarks remarks;
  session.progress().about(pairs_path);
  embed_all(
      session, *embedder, pairs.texts.size(),
      [&](std::string& text) {
        if (next == pairs.texts.size()) return false;
        text = pairs.texts[next++];
        return true;
      },
      [&](std::uint64_t index, const std::string&, const Embedded&, std::span<const float> vector) {
        if (index % 2 == 0)
          before.assign(vector.begin(), vector.end());
        else
          cosines.push_back(cosine(before, vector));
      },
      remarks);
  Correlation result;
  result.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  result.pairs = pairs.scores.size();
  result.pearson = pearson(cosines, pairs.scores);
  result.spearman = pearson(ranks(cosines), ranks(pairs.scores));
  if (session.json) {
    session.object(to_json(path, result));
  } else {
    session.out.text(fmt::format("Spearman {:.4f}, Pearson {:.4f}, {} pairs in {:.2f} s\n", result.spearman,
                                 result.pearson, result.pairs, result.seconds));
  }
  remarks.say(session, path, *embedder);
  return Status::done;
}

}  // namespace weighbridge::cli
