// SPDX-License-Identifier: Apache-2.0
// Properties of explain() over the corpus of every format: every byte is in a span that a reader reported, spans nest,
// and the place of an element leads back to it. A broken file is explained without an error.
#include "weighbridge/explain.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>
#include <string>

#include "core/payload/payload.h"
#include "corpus/all_cases.h"
#include "weighbridge/open.h"
#include "weighbridge/verify.h"

namespace weighbridge::test {
namespace {

using Kind = Span::Kind;

// Files of a format whose walker reads one file, with and without findings.
template <class F> void for_each_file(bool valid, F f) {
  for (const FormatCorpus& corpus : all_cases()) {
    if (corpus.format->info.folder) continue;
    for (const core::CorpusCase& c : corpus.cases) {
      if (c.bytes.empty() || (valid && !c.rule.empty()) || c.generated_only) continue;
      SCOPED_TRACE(corpus.path(c));
      f(corpus, corpus.source(c));
    }
  }
}

bool is_payload(const Span& span) {
  return span.kind == Kind::tensor || span.kind == Kind::block || span.kind == Kind::element;
}

// Bytes of valid files that no reader reports.
bool may_be_unclaimed(const FormatCorpus& corpus, std::string_view name) {
  // HDF5: what the library that wrote the file left unused.
  if (corpus.format->info.name == "hdf5" || corpus.format->info.name == "keras") return true;
  // Padding that is not zero, bytes that a format ignores, and the blobs of a shard, which another file lists.
  constexpr std::string_view kFiles[] = {"stb/valid-dtypes.stb", "stb/valid-bytes-behind-the-last.stb",
                                         "zt0/valid-any-padding.zt0", "zt0/valid-shape-with-zero.zt0",
                                         "zt2/valid-shard-base.zt"};
  return std::ranges::any_of(kFiles, [&](std::string_view file) { return name.ends_with(file); });
}

TEST(Explain, EveryByteOfAValidFileIsSpokenOf) {
  std::map<std::string_view, std::size_t> files;
  for_each_file(true, [&](const FormatCorpus& corpus, const std::shared_ptr<const Source>& source) {
    const Explanation all = explain(source, 0, source->size(), {}, {.max_spans = 1'000'000});
    ASSERT_EQ(all.left_out, 0U);
    EXPECT_EQ(all.format, corpus.format->info.name);
    EXPECT_EQ(all.spans.front().kind, Kind::file);
    EXPECT_TRUE(all.findings.empty());
    std::uint64_t reach = 0;
    for (std::size_t i = 1; i < all.spans.size(); ++i) {
      const Span& span = all.spans[i];
      EXPECT_GT(span.size, 0U);
      EXPECT_LE(span.end(), source->size());
      EXPECT_LE(span.offset, reach) << "a gap before " << span.what;
      reach = std::max(reach, span.end());
      EXPECT_TRUE(span.kind != Kind::unclaimed || may_be_unclaimed(corpus, source->name()))
          << span.offset << " to " << span.end();
    }
    EXPECT_EQ(reach, source->size());
    ++files[corpus.format->info.name];
  });
  for (const FormatCorpus& corpus : all_cases())
    EXPECT_TRUE(corpus.format->info.folder || files[corpus.format->info.name] > 0) << corpus.format->info.name;
}

TEST(Explain, AChunkOfAnHdf5FileSaysWhereItBegins) {
  std::size_t plain = 0, filtered = 0;
  for_each_file(true, [&](const FormatCorpus&, const std::shared_ptr<const Source>& source) {
    const bool grid = source->name().ends_with("/valid-chunks.h5");
    if (!grid && !source->name().ends_with("/valid-filters.h5")) return;
    for (const Span& span : explain(source, 0, source->size(), {}, {.max_spans = 1'000'000}).spans) {
      if (span.kind != Kind::tensor) continue;
      grid ? ++plain : ++filtered;
      const std::string_view text = span.value;
      EXPECT_TRUE(text.starts_with(grid ? "the chunk of [2, 2] from [" : "the chunk of [4] from [")) << text;
      EXPECT_EQ(text.ends_with(", filtered"), !grid) << text;
      if (grid) {
        EXPECT_EQ(span.size, 16U);
      }
    }
  });
  EXPECT_EQ(plain, 3U);
  EXPECT_EQ(filtered, 2U);
}

TEST(Explain, SpansNest) {
  for_each_file(true, [&](const FormatCorpus&, const std::shared_ptr<const Source>& source) {
    const Explanation all = explain(source, 0, source->size(), {}, {.max_spans = 1'000'000});
    std::vector<const Span*> around;
    for (const Span& span : all.spans) {
      while (!around.empty() && span.offset >= around.back()->end()) around.pop_back();
      // Tensors may share bytes with each other.
      const bool inside = around.empty() || span.end() <= around.back()->end();
      EXPECT_TRUE(inside || (is_payload(*around.back()) && is_payload(span)))
          << span.what << " in " << around.back()->what;
      if (inside) around.push_back(&span);
    }
  });
}

TEST(Explain, AByteIsInEachOfItsSpans) {
  for_each_file(true, [&](const FormatCorpus&, const std::shared_ptr<const Source>& source) {
    const std::uint64_t step = std::max<std::uint64_t>(1, source->size() / 61);
    for (std::uint64_t at = 0; at < source->size(); at += step) {
      const Explanation one = explain(source, at);
      EXPECT_GT(one.spans.size(), 1U) << at;
      for (const Span& span : one.spans) EXPECT_TRUE(span.offset <= at && at < span.end()) << at << " " << span.what;
      ASSERT_FALSE(one.bytes.empty());
      EXPECT_TRUE(one.bytes_at <= at && at < one.bytes_at + one.bytes.size());
    }
  });
}

TEST(Explain, ThePlaceOfAnElementLeadsBackToIt) {
  std::set<std::string_view> dense, blocks;
  for_each_file(true, [&](const FormatCorpus& corpus, const std::shared_ptr<const Source>& source) {
    const Model model = open(source);
    for (const Tensor& tensor : model) {
      if (tensor.unsupported() || !tensor.has_shape() || tensor.part_count() == 0) continue;
      const Part part = tensor.main();
      const bool quantized = tensor.block_type() != nullptr;
      // With a stride of 0, the same bytes are several elements, and the first one is named.
      const bool repeated = std::ranges::find(part.strides(), 0) != part.strides().end();
      if (part.encoding() != Encoding::raw || !part.extent() || (core::cut_of(part) && quantized)) continue;
      if (tensor.layout() != Layout::dense && !quantized) continue;
      if (!quantized && info(part.dtype()).bits % 8 != 0) continue;
      const Shape shape = tensor.shape();
      std::uint64_t count = 1;
      for (const std::uint64_t dim : shape) count *= dim;
      for (std::uint64_t i = 0; i < count; i += std::max<std::uint64_t>(1, count / 17)) {
        std::string index = "[";
        std::vector<std::uint64_t> numbers(shape.size());
        std::uint64_t rest = i;
        for (std::size_t d = shape.size(); d-- > 0; rest /= shape[d]) numbers[d] = rest % shape[d];
        for (const std::uint64_t number : numbers) index += (index.size() > 1 ? ", " : "") + std::to_string(number);
        index += "]";
        const Location place = locate(model, std::string(tensor.name()) + index);
        if (model.sources()[place.source]->name() != source->name()) continue;  // external data
        const Explanation found = explain(source, place.offset, place.length);
        const auto is_it = [&](const Span& span) {
          return span.offset == place.offset && span.size == place.length &&
                 (span.kind == Kind::element ? repeated || span.what == index : quantized && span.kind == Kind::block);
        };
        EXPECT_TRUE(std::ranges::any_of(found.spans, is_it)) << tensor.name() << index;
        (quantized ? blocks : dense).insert(corpus.format->info.name);
      }
    }
  });
  EXPECT_GE(dense.size(), 10U);
  EXPECT_GE(blocks.size(), 3U);
}

TEST(Explain, ABrokenFileIsExplainedAsFarAsItWasRead) {
  std::size_t spans_there = 0;
  for_each_file(false, [&](const FormatCorpus&, const std::shared_ptr<const Source>& source) {
    const Verdict verdict = verify(source);
    const Explanation all = explain(source, 0, source->size());
    EXPECT_FALSE(all.spans.empty());
    for (const Finding& finding : verdict.report.findings()) {
      if (!finding.offset || *finding.offset >= source->size() || !finding.file.empty()) continue;
      const Explanation found = explain(source, *finding.offset);
      EXPECT_EQ(found.offset, *finding.offset);
      spans_there +=
          std::ranges::any_of(found.findings, [&](const Finding& each) { return each.rule == finding.rule; }) ? 1U : 0U;
    }
  });
  EXPECT_GT(spans_there, 200U);
}

}  // namespace
}  // namespace weighbridge::test
