// SPDX-License-Identifier: Apache-2.0
// Reading what the corpus cannot show: values, attributes, messages, deferred checks, large files, hostile counts.
#include <gtest/gtest.h>

#include <algorithm>
#include <ctime>

#include "base/endian.h"
#include "formats/slm/content.h"
#include "formats/slm/directory.h"
#include "formats/slm/header.h"
#include "formats/slm/layout.h"
#include "support/corpus_case.h"
#include "support/slm_testing.h"

namespace weighbridge::slm_format {
namespace {

using testing::corpus_case;
using testing::Outcome;
using testing::walk;
using Mode = core::Findings::Mode;

std::string sealed(std::string bytes) {
  std::fill(bytes.begin() + kChecksumAt, bytes.begin() + kChecksumAt + kChecksumSize, '\0');
  base::store_le(bytes.data() + kChecksumAt, codecs::indexed_checksum(std::as_bytes(std::span(bytes)), kFileSeed));
  return bytes;
}

TEST(SlmRead, EachCaseHasExactlyItsFindings) {
  for (const core::CorpusCase& c : cases()) {
    SCOPED_TRACE(c.name);
    Context context;
    context.limits = c.limits;
    std::vector<std::string> expected = c.others, found;
    if (!c.rule.empty()) expected.insert(expected.begin(), c.rule);
    const Outcome all = walk(c.bytes, context);
    for (const Finding& f : all.report.findings()) found.push_back(f.rule);
    EXPECT_EQ(found, expected);
    // open throws the error that verify reports first, and two threads find the same as one.
    context.executor = thread_executor(2);
    const Outcome first = walk(c.bytes, context, Checks::all, Mode::first_error);
    ASSERT_EQ(first.report.first_error() == nullptr, all.report.first_error() == nullptr);
    if (first.report.first_error() != nullptr) {
      EXPECT_EQ(*first.report.first_error(), *all.report.first_error());
    }
  }
}

TEST(SlmRead, TellsTheHeaderAsTypedAttributes) {
  const auto [report, model] = walk(corpus_case("valid-grouped-query").bytes);
  EXPECT_EQ(report.total(), 0U);
  EXPECT_EQ(model.format(), "slm");
  EXPECT_EQ(model.version(), "1");
  const auto entries = model.attributes();
  ASSERT_EQ(entries.size(), 13U);
  EXPECT_EQ(entries[0].first, "slm.model_type");
  const Value* heads = model.attribute("slm.head_count");
  ASSERT_NE(heads, nullptr);
  EXPECT_EQ(*heads, Value::integer(std::uint64_t{2}, DType::u32));
  EXPECT_EQ(model.attribute("slm.kv_head_count")->as_u64(), 1U);
  EXPECT_EQ(*model.attribute("slm.rope_theta"), Value::real(10000, DType::f32));
  EXPECT_EQ(*model.attribute("slm.rms_norm_epsilon"), Value::real(1e-5F, DType::f32));
}

TEST(SlmRead, TellsChecksumsLabelTokenizerAndIds) {
  const std::string bytes = corpus_case("valid-mixed").bytes;
  const auto [report, model] = walk(bytes);
  ASSERT_EQ(model.checksums().size(), 3U);
  EXPECT_EQ(model.checksums()[0].name, "file");
  EXPECT_EQ(model.checksums()[0].value, checksum_text(base::load_le<std::uint64_t>(bytes.data() + kChecksumAt)));
  EXPECT_EQ(model.checksums()[1], (weighbridge::Checksum{"tokenizer", "0xa3af29b8cdcbfa35"}));
  EXPECT_EQ(model.checksums()[2].name, "tensor_layout");
  EXPECT_EQ(model.dtype_label(), "mixed");
  const Model q8 = walk(corpus_case("valid-q8_0").bytes).model;
  EXPECT_EQ(q8.dtype_label(), "q8_0");
  const Model tied = walk(corpus_case("valid-tied").bytes).model;
  EXPECT_EQ(tied.dtype_label(), "f32");
  ASSERT_NE(model.tokenizer(), nullptr);
  EXPECT_EQ(*model.tokenizer(), byte_tokenizer());
  EXPECT_EQ(model["norm.weight"].id(), name_hash("norm.weight"));
  const auto alias = walk(corpus_case("attn-norm").bytes);
  EXPECT_EQ(alias.model["layers.0.attention_norm.weight"].id(), name_hash("layers.0.attn_norm.weight"));
}

TEST(SlmRead, NamesWhatIsOnlyAHash) {
  const auto [report, model] = walk(corpus_case("valid-unknown-tensors").bytes);
  EXPECT_TRUE(model.find("#0123456789abcdef").has_value());
  EXPECT_TRUE(model.find(spell_hash(name_hash("something.else"))).has_value());
}

TEST(SlmRead, KeepsTheRestOfALongerHeader) {
  const auto [report, model] = walk(corpus_case("valid-longer-header").bytes);
  const Attributes unknown = model.extra();
  const Value* extra = unknown.find(kHeaderExtra);
  ASSERT_NE(extra, nullptr);
  EXPECT_EQ(extra->grammar(), kGrammar);
  EXPECT_EQ(std::string(reinterpret_cast<const char*>(extra->bytes().data()), extra->bytes().size()), "more header");
}

TEST(SlmRead, MakesQuantizedTensorsDense) {
  const auto [report, model] = walk(corpus_case("valid-q8_0").bytes);
  const Tensor q8 = model["layers.0.wq.weight"];
  EXPECT_EQ(q8.layout(), Layout::quantized_row);
  EXPECT_EQ(q8.type_name(), "q8_0");
  EXPECT_EQ(q8.dtype(), DType::f32);
  EXPECT_EQ(q8.attribute("block_size")->as_u64(), 2U);
  EXPECT_EQ(q8.part("data").value().dtype(), DType::i8);
  EXPECT_EQ(q8.part("scales").value().count(), 2U);
  EXPECT_EQ(testing::values_of(q8), (std::vector<float>{0, 9.25, 18.5, 27.75}));  // 0, 37, 74, 111 by 0.25
  const auto q4 = walk(corpus_case("valid-q4_0").bytes);
  const Tensor blocks = q4.model["layers.0.wq.weight"];
  EXPECT_EQ(blocks.layout(), Layout::quantized_block);
  EXPECT_EQ(blocks.type_name(), "q4_0");
  EXPECT_EQ(blocks.part("data").value().dtype(), DType::u8);
  const Part scales = blocks.part("scales").value();
  EXPECT_EQ(std::vector(scales.shape().begin(), scales.shape().end()), (std::vector<std::uint64_t>{2, 1}));
  EXPECT_EQ(testing::values_of(blocks), (std::vector<float>{0, 0, 1.25, 0.5}));  // 0x00, 0x25: 5, 2
  std::vector<float> row(2);
  blocks.rows_into(1, 1, DType::f32, std::as_writable_bytes(std::span(row)));
  EXPECT_EQ(row, (std::vector<float>{1.25, 0.5}));
}

TEST(SlmRead, SaysWhereExpectedAndFound) {
  const auto shape = walk(corpus_case("tensor-shape").bytes);
  const Finding& finding = *shape.report.first_error();
  EXPECT_EQ(finding.tensor, "layers.0.w1.weight");
  EXPECT_EQ(finding.expected, "[2, 2]");
  EXPECT_EQ(finding.found, "[2, 3]");
  EXPECT_EQ(finding.offset, 192 + 8 * 64 + 16U);
  const auto value = walk(corpus_case("not-finite").bytes);
  EXPECT_EQ(value.report.first_error()->offset, 904U);
  EXPECT_EQ(value.report.first_error()->tensor, "tok_embeddings.weight");
  EXPECT_EQ(value.report.first_error()->found, "inf");
  const auto sum = walk(corpus_case("checksum").bytes);
  EXPECT_EQ(sum.report.first_error()->offset, kChecksumAt);
  EXPECT_EQ(sum.report.first_error()->expected.size(), 18U);
}

TEST(SlmRead, LeavesOnlyBrokenTensorsOut) {
  const auto [report, model] = walk(corpus_case("payload-range").bytes);
  EXPECT_EQ(model.size(), 10U);
  EXPECT_FALSE(model.find("layers.0.attention_norm.weight").has_value());
}

TEST(SlmRead, PutsOffWhatTheCallerPutsOff) {
  for (const char* name : {"checksum-and-value", "checksum", "scale-value", "not-finite-two-tensors"}) {
    SCOPED_TRACE(name);
    const std::string bytes = corpus_case(name).bytes;
    const Outcome later = walk(bytes, {}, Checks::structure);
    EXPECT_EQ(later.report.total(), 0U);
    EXPECT_FALSE(later.model.checked());
    Report report;
    core::Findings findings(report, Mode::all);
    check_content(later.model, {}, findings);
    const Outcome at_once = walk(bytes);
    EXPECT_TRUE(at_once.model.checked());
    EXPECT_EQ(report.findings(), at_once.report.findings());
    Report again;
    core::Findings nothing(again, Mode::all);
    check_content(at_once.model, {}, nothing);
    EXPECT_EQ(again.total(), 0U);
  }
}

// A file of many pieces, with bad values at every border between them.
TEST(SlmRead, FindsBadValuesOfLargeFilesWithOneThreadAndTwo) {
  std::string bytes = testing::render(layout(testing::tiny({.hidden = 512, .heads = 8, .ffn = 600}).build(), {}));
  ASSERT_GT(bytes.size(), std::size_t{5} << 20);
  EXPECT_EQ(walk(bytes).report.total(), 0U);
  const Outcome good = walk(bytes, {}, Checks::structure);
  std::vector<std::uint64_t> at;
  for (std::uint32_t i = 0; i < good.model.size(); ++i) {
    const Extent extent = *good.model[i].main().extent();
    const std::uint64_t border = (extent.offset / (1U << 20) + 1) << 20;
    const bool spans = border > extent.offset && border < extent.offset + extent.length;
    at.push_back(spans ? border - (i % 2 == 0 ? 4 : 0) : extent.offset);
    base::store_le(bytes.data() + at.back(), 0x7fc00000U);
  }
  std::ranges::sort(at);
  bytes = sealed(std::move(bytes));
  for (const unsigned threads : {0U, 2U, 3U}) {
    Context context;
    if (threads != 0) context.executor = thread_executor(threads);
    const Outcome bad = walk(bytes, context);
    ASSERT_EQ(bad.report.total(), at.size());
    for (std::size_t i = 0; i < at.size(); ++i) EXPECT_EQ(bad.report.findings()[i].offset, at[i]);
  }
}

TEST(SlmRead, TellsProgressAndStops) {
  const std::string bytes = testing::render(layout(testing::tiny({.hidden = 512, .heads = 8}).build(), {}));
  std::uint64_t last = 0;
  Context context;
  context.progress = [&](std::uint64_t done, std::uint64_t total) {
    last = done;
    return total == bytes.size();
  };
  walk(bytes, context);
  EXPECT_EQ(last, bytes.size());
  context.progress = [](std::uint64_t, std::uint64_t) { return false; };
  EXPECT_THROW(walk(bytes, context), Cancelled);
}

// A hundred thousand entries refer to the same megabytes of bad values; each byte is checked once (reading G13).
TEST(SlmRead, HostileDirectoriesTakeNoLongerThanTheirBytes) {
  const std::uint32_t count = 100'000;
  Header h = testing::header_of({.vocab = 260, .hidden = 8});
  h.tensor_count = count;
  h.layer_count = UINT32_MAX;
  h.tokenizer_offset = 108;
  h.tokenizer_length = 28;
  h.tensor_directory_offset = 192;
  h.tensor_data_offset = 192 + std::uint64_t{count} * kEntrySize;
  h.checksum = 1;
  std::string bytes = base::store_record(h) + encode_btok();
  bytes.resize(192);
  const std::uint32_t elements = 1 << 20;
  for (std::uint32_t i = 0; i < count; ++i) {
    Entry e;
    e.name_hash = i;
    e.dtype = e.rank = 1;
    e.dims[0] = elements - 16 * (i % 1000);
    e.byte_offset = h.tensor_data_offset + 64 * (i % 1000);
    e.byte_length = 4 * std::uint64_t{e.dims[0]};
    base::append_record(bytes, e);
  }
  bytes.resize(h.tensor_data_offset);
  bytes.append(4 * std::size_t{elements}, '\xff');  // all NaN
  const std::clock_t start = std::clock();
  const Outcome out = walk(bytes);
  EXPECT_LT(std::clock() - start, 3 * CLOCKS_PER_SEC);
  EXPECT_EQ(out.report.first_error()->rule, "slm/layer-count");
  EXPECT_EQ(out.report.errors(), 2U + count);  // layer-count, checksum, one for each tensor
}

}  // namespace
}  // namespace weighbridge::slm_format
