// SPDX-License-Identifier: Apache-2.0
// What models make of texts, as JSON: tokens, vectors, matches, continuations, and how well a model fits.
#include "results/json_parts.h"
#include "weighbridge/json.h"

namespace weighbridge {

std::string to_json(const TokenizedText& text) {
  return results::object([&](JsonWriter& out) {
    results::list(out, "ids", text.ids, [&](std::uint32_t id) { out.u64(id); });
    results::texts(out, "tokens", text.tokens);
    if (!text.offsets.empty()) {
      results::list(out, "offsets", text.offsets, [&](const TokenSpan& span) {
        out.begin_array();
        out.u64(span.begin);
        out.u64(span.end);
        out.end_array();
      });
    }
    out.flag("truncated", text.truncated);
    if (text.replaced != 0) out.member("replaced", text.replaced);
  });
}

std::string to_json(const EmbeddedText& text) {
  return results::result([&](JsonWriter& out) {
    out.member("index", text.index);
    out.member("tokens", text.tokens);
    out.flag("truncated", text.truncated);
    if (text.replaced != 0) out.member("replaced", text.replaced);
    results::list(out, "embedding", text.embedding, [&](float value) { out.number(value); });
  });
}

std::string to_json(std::string_view query, std::span<const Scored> results) {
  return results::result([&](JsonWriter& out) {
    out.member("query", query);
    results::objects(out, "results", results, [&](const Scored& result) {
      out.member("index", result.index);
      results::number(out, "score", result.score);
      out.member("text", result.text);
      if (result.line > 0) {
        out.member("file", result.file);
        out.member("line", result.line);
      }
    });
  });
}

std::string to_json(std::string_view path, const Correlation& c) {
  return results::result(path, [&](JsonWriter& out) {
    results::number(out, "spearman", c.spearman);
    results::number(out, "pearson", c.pearson);
    out.member("pairs", c.pairs);
    results::number(out, "seconds", c.seconds);
  });
}

std::string to_json(const GeneratedText& text) {
  return results::result([&](JsonWriter& out) {
    out.member("prompt_tokens", text.prompt_tokens);
    results::list(out, "tokens", text.tokens, [&](std::uint32_t id) { out.u64(id); });
    out.member("text", text.text);
    out.member("stopped", text.stopped);
    out.member("precision", text.precision);
    results::number(out, "tokens_per_second", text.tokens_per_second);
  });
}

std::string to_json(std::string_view path, const Likelihood& likelihood) {
  return results::result(path, [&](JsonWriter& out) {
    out.member("tokens", likelihood.tokens);
    results::number(out, "mean_nll", likelihood.mean_nll);
    results::number(out, "perplexity", likelihood.perplexity);
    out.member("precision", likelihood.precision);
    results::number(out, "seconds", likelihood.seconds);
  });
}

}  // namespace weighbridge
