// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <atomic>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <functional>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "support/convert_testing.h"
#include "support/last_call.h"
#include "support/temporary_folder.h"
#include "support/thrown.h"
#include "weighbridge/convert.h"
#include "weighbridge/diff.h"
#include "weighbridge/hash.h"
#include "weighbridge/json.h"
#include "weighbridge/open.h"
#include "weighbridge/output.h"
#include "weighbridge/stats.h"
#include "weighbridge/verify.h"

namespace weighbridge {
namespace {

using convert::testing::keep;

Model small_model() {
  Builder builder;
  builder.attribute("big", Value::integer(UINT64_MAX)).attribute("nan", Value::real(std::nan("")));
  builder.tensor("w\n", DType::f32, {3}, keep<float>({1, -2, 0}));
  builder.tensor("empty", DType::u8, {0, 2}, keep<std::uint8_t>({}));
  return builder.build();
}

TEST(Json, InspectionIsExactAndInTheOrderAskedFor) {
  const Model model = small_model();
  const std::vector<std::uint32_t> order{1, 0};
  const std::string text = to_json(Inspection{.path = "a\"b", .model = model, .tensors = order});
  EXPECT_TRUE(text.starts_with(R"({"path":"a\"b",)")) << text;
  EXPECT_NE(text.find(R"("file_size":0,)"), std::string::npos);
  EXPECT_NE(text.find(R"("big":18446744073709551615)"), std::string::npos);
  EXPECT_NE(text.find(R"("nan":"nan")"), std::string::npos);
  EXPECT_LT(text.find(R"("name":"empty")"), text.find(R"("name":"w\n")"));
}

TEST(Json, AListOfFilesStatesTheSchema) {
  EXPECT_TRUE(kJsonFilesBegin.starts_with("{\"schema\":" + std::to_string(kJsonSchema) + ","));
}

// The hook's "no" to the last report of a finished job threw its result away.
TEST(Statistics, ThatAreDoneAreReturnedWhateverTheHookSays) {
  const Model model = small_model();
  const std::vector<std::uint32_t> all{0, 1};
  std::uint64_t calls = 0;
  const auto job = [&](const Context& context) { return statistics(model, all, context); };
  const Context context = test::stopped_at_the_last_call(job, calls);
  EXPECT_EQ(job(context).size(), 2U);
  EXPECT_GT(calls, 0U);
}

TEST(Json, PiecesOfALongListingAreOneText) {
  Builder builder;
  for (int i = 0; i < 3000; ++i) builder.tensor("tensor." + std::to_string(i), DType::u8, {0}, Bytes{});
  const Model model = builder.build();
  std::vector<std::uint32_t> order(model.size());
  for (std::uint32_t i = 0; i < model.size(); ++i) order[i] = i;
  const Inspection inspection{.path = "p", .model = model, .tensors = order};
  std::string joined;
  std::vector<std::size_t> pieces;
  to_json(inspection, [&](std::string_view piece) {
    joined += piece;
    pieces.push_back(piece.size());
  });
  ASSERT_GT(pieces.size(), 2U);
  EXPECT_EQ(joined, to_json(inspection));
  pieces.pop_back();
  for (const std::size_t size : pieces) {
    EXPECT_GE(size, std::size_t{128} << 10);
    EXPECT_LE(size, std::size_t{130} << 10);
  }
}

// A file that counts what is read of it.
class Counted final : public Source {
 public:
  explicit Counted(std::shared_ptr<const Source> inner) : inner_(std::move(inner)) {}
  std::uint64_t size() const noexcept override { return inner_->size(); }
  std::string_view name() const noexcept override { return "<counted>"; }
  void read_at(std::uint64_t offset, std::span<std::byte> out) const override {
    read += out.size();
    inner_->read_at(offset, out);
  }
  mutable std::atomic<std::uint64_t> read{0};

 private:
  std::shared_ptr<const Source> inner_;
};

TEST(Jobs, StopWithin16MiBOfReading) {
  constexpr std::uint64_t kMiB = std::uint64_t{1} << 20;
  const test::TemporaryFolder folder;
  Builder builder;
  for (int i = 0; i < 3; ++i)
    builder.tensor("w" + std::to_string(i), DType::f32, {32 * kMiB / 4},
                   keep<float>(std::vector<float>(32 * kMiB / 4)));
  plan(builder.build(), "zt", {.digest = "sha256"}).execute(folder / "in.zt");
  const auto counted = std::make_shared<const Counted>(open_file(folder / "in.zt"));
  const Model model = open(counted), other = open(folder / "in.zt");
  const std::vector<std::uint32_t> all{0, 1, 2};
  const std::vector<std::pair<const char*, std::function<void(const Context&)>>> jobs{
      {"hash", [&](const Context& context) { static_cast<void>(content_digest(model, context)); }},
      {"digest of the file", [&](const Context& context) { static_cast<void>(file_sha256(*counted, context)); }},
      {"verify", [&](const Context& context) { static_cast<void>(verify(counted, context)); }},
      {"statistics", [&](const Context& context) { static_cast<void>(statistics(model, all, context)); }},
      {"diff", [&](const Context& context) { static_cast<void>(diff(model, other, {}, context)); }},
      {"convert", [&](const Context& context) { plan(model, "safetensors").execute(folder / "out", context); }}};
  for (const auto& [name, job] : jobs)
    for (const unsigned threads : {1U, 2U}) {
      std::uint64_t when_stopped = 0;
      Context context;
      context.executor = thread_executor(threads);
      counted->read = 0;
      context.progress = [&](std::uint64_t, std::uint64_t) {
        const std::uint64_t read = counted->read;
        if (read < 8 * kMiB) return true;
        if (when_stopped == 0) when_stopped = read;
        return false;
      };
      EXPECT_THROW(job(context), Cancelled) << name;
      EXPECT_GT(when_stopped, 0U) << name;
      EXPECT_LE(counted->read - when_stopped, 16 * kMiB) << name << " with " << threads << " threads";
      EXPECT_FALSE(std::filesystem::exists(folder / "out")) << name;
    }
}

TEST(Json, FindingsBeyondTheCapAreCounted) {
  Verdict verdict;
  verdict.format = "zt";
  for (std::size_t i = 0; i < Report::kMaxFindings + 5; ++i) {
    Finding finding;
    finding.rule = "zt/some-rule";
    finding.message = "it is so";
    verdict.report.add(finding);
  }
  const std::string text = to_json("p", verdict);
  EXPECT_NE(text.find(R"("findings_total":1005)"), std::string::npos);
  EXPECT_NE(text.find(R"("valid":false)"), std::string::npos);
}

TEST(Json, AFailureNamesTheFormatWhoseRuleWasBroken) {
  const auto failure = [](std::string rule) {
    Finding finding;
    finding.rule = std::move(rule);
    Report report;
    report.add(finding);
    JsonWriter out;
    out.begin_object();
    add_failure_members(out, "p", report);
    out.end_object();
    return out.take();
  };
  EXPECT_NE(failure("safetensors/x").find(R"("format":"safetensors")"), std::string::npos);
  EXPECT_NE(failure("io/read").find(R"("format":null)"), std::string::npos);
}

TEST(Histogram, CountsFiniteElementsInEqualIntervals) {
  constexpr float kInf = std::numeric_limits<float>::infinity();
  constexpr double kLargest = std::numeric_limits<double>::max();
  Builder builder;
  builder.tensor("f", DType::f32, {7}, keep<float>({std::nanf(""), kInf, 0, 1, 2, 3.9F, 4}));
  builder.tensor("i", DType::i64, {3}, keep<std::int64_t>({INT64_MIN, 0, INT64_MAX}));
  builder.tensor("wide", DType::f64, {2}, keep<double>({-kLargest, kLargest}));
  builder.tensor("same", DType::f32, {3}, keep<float>({7, 7, 7}));
  builder.tensor("none", DType::f32, {1}, keep<float>({kInf}));
  builder.tensor("complex", DType::complex64, {1}, keep<float>({1, 2}));
  const Model model = builder.build();
  using Counts = std::vector<std::uint64_t>;
  EXPECT_EQ(histogram(model["f"], 4), (Histogram{0, 4, {1, 1, 1, 2}}));
  EXPECT_EQ(histogram(model["i"], 2).counts, (Counts{1, 2}));
  EXPECT_EQ(histogram(model["wide"], 2).counts, (Counts{1, 1}));
  EXPECT_EQ(histogram(model["same"], 3), (Histogram{7, 7, {3, 0, 0}}));
  EXPECT_EQ(histogram(model["none"], 3), Histogram{});
  EXPECT_THROW(histogram(model["complex"], 3), Error);
  EXPECT_THROW(histogram(model["f"], 0), Error);
}

TEST(Statistics, CountsWhatIsNotFiniteAndKeepsIntegersExact) {
  constexpr float kInf = std::numeric_limits<float>::infinity();
  Builder builder;
  builder.tensor("f", DType::f32, {6}, keep<float>({std::nanf(""), kInf, -kInf, 0, 0.1F, -4}));
  builder.tensor("u", DType::u64, {2}, keep<std::uint64_t>({UINT64_MAX, 1}));
  builder.tensor("n", DType::f32, {1}, keep<float>({std::nanf("")}));
  const Model model = builder.build();
  const Stats f = statistics(model["f"]), u = statistics(model["u"]), n = statistics(model["n"]);
  EXPECT_EQ(f.elements, 6U);
  EXPECT_EQ(f.nans, 1U);
  EXPECT_EQ(f.infinities, 2U);
  EXPECT_EQ(f.zeros, 1U);
  EXPECT_EQ(f.max.to_text(), "0.1");
  EXPECT_NEAR(f.mean, -1.3, 1e-6);
  EXPECT_EQ(u.max.as_u64(), UINT64_MAX);
  EXPECT_EQ(n.min.kind(), Value::Kind::null);
}

TEST(Statistics, WithIntervalsTellTheDeviationAndTheDistribution) {
  Builder builder;
  builder.tensor("f", DType::f32, {5}, keep<float>({1, 2, 3, 4, std::nanf("")}));
  builder.tensor("huge", DType::f64, {2}, keep<double>({-1.7e308, 1.7e308}));
  builder.tensor("none", DType::f32, {1}, keep<float>({std::nanf("")}));
  builder.tensor("complex", DType::complex64, {1}, keep<float>({1, 2}));
  const Model model = builder.build();
  const std::vector<std::uint32_t> all = {0, 1, 2, 3};
  const std::vector<Stats> found = statistics(model, all, {}, 2);
  EXPECT_NEAR(found[0].std, std::sqrt(1.25), 1e-12);
  EXPECT_EQ(found[0].histogram, histogram(model["f"], 2));
  EXPECT_DOUBLE_EQ(found[1].std, 1.7e308);
  EXPECT_TRUE(found[2].histogram.counts.empty());
  EXPECT_TRUE(found[3].histogram.counts.empty());
  EXPECT_EQ(found[3].max.to_text(), "2");
  EXPECT_TRUE(statistics(model, all)[0].histogram.counts.empty());
  EXPECT_THROW(statistics(model, all, {}, 65537), Error);
}

TEST(Statistics, WithIntervalsCountOutliersAndDeadRows) {
  Builder builder;
  std::vector<float> far(100, 1);
  for (std::size_t i = 0; i < far.size(); i += 2) far[i] = -1;
  far[50] = 1000;
  builder.tensor("far", DType::f32, {100}, keep<float>(far));
  builder.tensor("rows", DType::f32, {3, 1, 2}, keep<float>({0, -0.0F, 0, 1, std::nanf(""), 0}));
  builder.tensor("all", DType::i32, {2, 2}, keep<std::int32_t>({0, 0, 0, 0}));
  const Model model = builder.build();
  const std::vector<std::uint32_t> all = {0, 1, 2};
  const std::vector<Stats> found = statistics(model, all, {}, 4);
  EXPECT_EQ(found[0].outliers, 1U);
  EXPECT_EQ(found[0].dead_rows, 0U);
  EXPECT_EQ(found[1].dead_rows, 1U);
  EXPECT_EQ(found[2].dead_rows, 2U);
  EXPECT_EQ(found[2].outliers, 0U);
  EXPECT_EQ(statistics(model, all)[1].dead_rows, 0U);
}

// Entries of a matrix as coordinates, or with the bounds of rows.
Model sparse_model(Layout layout, std::vector<std::uint64_t> shape, const std::vector<std::uint64_t>& rows,
                   const std::vector<std::uint64_t>& columns, const std::vector<float>& values) {
  Builder builder;
  const std::uint64_t count = values.size();
  if (layout == Layout::sparse_coo) {
    std::vector<std::uint64_t> coords = rows;
    coords.insert(coords.end(), columns.begin(), columns.end());
    builder.object("w", layout, shape, {},
                   {{.role = "coords", .dtype = DType::u64, .shape = {2, count}, .bytes = keep(coords)},
                    {.role = "values", .dtype = DType::f32, .shape = {count}, .bytes = keep(values)}});
  } else {
    std::vector<std::uint64_t> bounds(shape[0] + 1);
    for (const std::uint64_t row : rows) ++bounds[row + 1];
    for (std::size_t i = 1; i < bounds.size(); ++i) bounds[i] += bounds[i - 1];
    builder.object(
        "w", layout, shape, {},
        {{.role = "indices", .dtype = DType::u64, .shape = {count}, .bytes = keep(columns)},
         {.role = "indptr", .dtype = DType::u64, .shape = {std::uint64_t{bounds.size()}}, .bytes = keep(bounds)},
         {.role = "values", .dtype = DType::f32, .shape = {count}, .bytes = keep(values)}});
  }
  return builder.build();
}

void expect_same(const Stats& found, const Stats& expected) {
  EXPECT_EQ(found.elements, expected.elements);
  EXPECT_EQ(found.zeros, expected.zeros);
  EXPECT_EQ(found.nans, expected.nans);
  EXPECT_EQ(found.infinities, expected.infinities);
  EXPECT_EQ(found.min, expected.min);
  EXPECT_EQ(found.max, expected.max);
  EXPECT_DOUBLE_EQ(found.mean, expected.mean);
  EXPECT_NEAR(found.std, expected.std, 1e-12);
  EXPECT_EQ(found.histogram, expected.histogram);
}

// With entries in order, in another order, twice for one element, that cancel out, and none.
TEST(Statistics, OfASparseTensorAreThoseOfItsDenseForm) {
  struct Case {
    std::vector<std::uint64_t> rows, columns;
    std::vector<float> values;
  };
  const Case cases[] = {{{0, 0, 2}, {1, 3, 0}, {1, -2, 4}},
                        {{0, 0, 2}, {3, 1, 0}, {1, 2, 4}},
                        {{0, 0, 0, 2}, {1, 3, 1, 0}, {1, -2, 0.5F, std::nanf("")}},
                        {{1, 1}, {2, 2}, {3, -3}},
                        {{0, 1, 2}, {1, 2, 3}, {-1, -2, std::numeric_limits<float>::infinity()}},
                        {{}, {}, {}}};
  const std::vector<std::uint32_t> all = {0};
  for (const Layout layout : {Layout::sparse_coo, Layout::sparse_csr})
    for (const Case& c : cases) {
      const Model model = sparse_model(layout, {3, 4}, c.rows, c.columns, c.values);
      const Array dense = model["w"].to_dense();
      Builder builder;
      builder.tensor("w", DType::f32, {3, 4}, {{dense.data.get(), dense.size}, dense.data});
      expect_same(statistics(model, all, {}, 4)[0], statistics(builder.build(), all, {}, 4)[0]);
    }
}

// A few bytes once took memory for the whole shape, up to Limits::decoded; beyond that there were no statistics.
TEST(Statistics, OfASparseTensorTakeNoMemoryForItsZeros) {
  constexpr std::uint64_t kSide = std::uint64_t{1} << 24;
  Context context;
  context.limits.decoded = std::uint64_t{1} << 20;
  const std::vector<std::uint32_t> all = {0};
  for (const std::uint64_t again : {5U, 9U}) {
    const Model model = sparse_model(Layout::sparse_coo, {kSide, kSide}, {5, 9, again}, {7, 7, 7}, {1, 2, 8});
    const Stats found = statistics(model, all, context, 2)[0];
    EXPECT_EQ(found.elements, kSide * kSide);
    EXPECT_EQ(found.zeros, kSide * kSide - 2);
    EXPECT_EQ(found.max.to_text(), again == 5 ? "9" : "10");
    EXPECT_EQ(found.histogram.counts.front(), found.elements - 1);
    const Model rows = sparse_model(Layout::sparse_csr, {4, kSide * kSide}, {0, 2, 2}, {7, 7, again}, {1, 2, 8});
    EXPECT_EQ(statistics(rows, all, context)[0].zeros, 4 * kSide * kSide - 3);
  }
}

TEST(Statistics, OfASparseTensorThatLeavesItsShapeAreRefused) {
  const Model coo = sparse_model(Layout::sparse_coo, {3, 4}, {0, 3}, {1, 1}, {1, 2});
  const Model csr = sparse_model(Layout::sparse_csr, {3, 4}, {0, 1}, {1, 4}, {1, 2});
  EXPECT_EQ(test::thrown([&] { statistics(coo["w"]); }).rule, "part/sparse");
  EXPECT_EQ(test::thrown([&] { statistics(csr["w"]); }).rule, "part/sparse");
}

TEST(ReadAll, ReadsEachByteOnceWhereVerifyReadsNoTensors) {
  constexpr std::uint64_t kElements = std::uint64_t{2} << 20;
  const test::TemporaryFolder folder;
  std::vector<float> values(kElements, 1.0F);
  values[5] = std::nanf("");
  Builder builder;
  builder.tensor("w", DType::f32, {kElements}, keep<float>(values));
  plan(builder.build(), "safetensors").execute(folder / "in.safetensors");
  const auto counted = std::make_shared<const Counted>(open_file(folder / "in.safetensors"));
  Verdict verdict = verify(counted);
  const std::uint64_t before = counted->read;
  EXPECT_LT(before, counted->size() / 2);
  read_all(verdict);
  EXPECT_EQ(counted->read - before, counted->size());
  ASSERT_EQ(verdict.report.findings().size(), 1U);
  EXPECT_EQ(verdict.report.findings()[0].rule, "values/nan");
  EXPECT_EQ(verdict.report.findings()[0].tensor, "w");
  EXPECT_TRUE(verdict.report.valid());
}

TEST(Summary, CountsParametersAndSharesOfDtypes) {
  Builder builder;
  builder.attribute("hf.architectures", Value::text("[\"OtherModel\",\"More\"]"));
  builder.attribute("hf.model_type", Value::text("other"));
  builder.tensor("f", DType::f32, {2, 3}, keep<float>({1, 2, 3, 4, 5, 6}));
  builder.tensor("ids", DType::i64, {4}, keep<std::int64_t>({1, 2, 3, 4}));
  const Summary found = summarize(builder.build());
  EXPECT_EQ(found.architecture, "OtherModel");
  EXPECT_EQ(found.parameters, 6U);
  EXPECT_EQ(found.dtypes, (std::vector<Summary::Share>{{"i64", 1, 4, 32}, {"f32", 1, 6, 24}}));
  EXPECT_EQ(summarize(Builder().build()), Summary{});
}

TEST(OutputFile, AppearsWholeOrNotAtAll) {
  const test::TemporaryFolder folder;
  const std::string path = folder / "out";
  {
    OutputFile file(path, false);
    file.write(std::as_bytes(std::span("abc", 3)));
  }
  EXPECT_TRUE(folder.entries().empty());
  const std::vector<std::byte> large((3 << 20) + 7, std::byte{1});
  OutputFile file(path, false);
  file.write(large);
  EXPECT_FALSE(std::filesystem::exists(path));
  file.publish();
  EXPECT_EQ(std::filesystem::file_size(path), large.size());
  EXPECT_EQ(folder.entries(), std::set<std::string>{"out"});
}

TEST(OutputFile, IsReadBackBeforeItHasItsName) {
  const test::TemporaryFolder folder;
  const std::vector<std::byte> large((2 << 20) + 7, std::byte{1});
  for (const std::uint64_t changed :
       {std::uint64_t{0}, std::uint64_t{(1 << 20) + 5}, std::uint64_t{large.size() - 1}}) {
    OutputFile file(folder / "out", false);
    file.write(large);
    file.rewrite(0, std::as_bytes(std::span("abc", 3)));  // now everything is in the file
    std::fstream other(folder / *folder.entries().begin(), std::ios::binary | std::ios::in | std::ios::out);
    other.seekp(static_cast<std::streamoff>(changed));
    other << '?' << std::flush;
    EXPECT_EQ(test::thrown([&] { file.publish(); }).rule, "io/read-back") << changed;
  }
  EXPECT_TRUE(folder.entries().empty());
}

TEST(OutputFile, RewritesAcrossWhatWasWrittenAtOnce) {
  const test::TemporaryFolder folder;
  OutputFile file(folder / "out", false);
  std::string expected((3 << 20) + 7, 'a');
  file.write(std::as_bytes(std::span(expected)));
  const std::string other((1 << 20) + 3, 'b');
  file.rewrite((1 << 20) - 1, std::as_bytes(std::span(other)));
  expected.replace((1 << 20) - 1, other.size(), other);
  EXPECT_EQ(test::thrown([&] { file.rewrite(expected.size() - 1, std::as_bytes(std::span("ab", 2))); }).rule,
            "misuse/rewrite");
  file.publish();
  EXPECT_EQ(test::read_file(folder / "out"), expected);
}

TEST(OutputFile, IsNeverTheInput) {
  const test::TemporaryFolder folder;
  const std::string path = folder / "in";
  test::write_file(path, "content");
  const std::vector<std::shared_ptr<const Source>> inputs{open_file(path)};
  EXPECT_THROW(OutputFile(path, true, inputs), Error);
  EXPECT_THROW(OutputFile(path, false), Error);
  EXPECT_EQ(test::read_file(path), "content");
}

}  // namespace
}  // namespace weighbridge
