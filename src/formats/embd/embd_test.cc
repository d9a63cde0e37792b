// SPDX-License-Identifier: Apache-2.0
// Reading what the corpus cannot show: values, offsets, wording, and the bounds of reading G13.
#include <gtest/gtest.h>

#include <algorithm>
#include <ctime>

#include "formats/embd/format.h"
#include "support/embd_case_file.h"
#include "support/format_testing.h"

namespace weighbridge::embd {
namespace {

using test::logical_bytes;
using test::walk;

std::optional<std::string> attribute(const Model& model, std::string_view key) {
  const Value* const value = model.attribute(key);
  if (!value || !value->as_text()) return std::nullopt;
  return std::string(*value->as_text());
}

const Finding& only(const Report& report) {
  EXPECT_EQ(report.total(), 1U);
  static const Finding none;
  return report.findings().empty() ? none : report.findings()[0];
}

TEST(EmbdRead, TellsTensorsMetadataAndVocabulary) {
  const CaseFile file = tiny_file();
  const auto [report, model] = walk(kFormat, file.bytes());
  EXPECT_EQ(report.total(), 0U);
  EXPECT_EQ(model.format(), "embd");
  EXPECT_EQ(model.version(), "1.0");
  ASSERT_EQ(model.size(), 21U);
  for (std::uint32_t i = 0; i < model.size(); ++i) {
    EXPECT_EQ(model.name(i), file.tensors[i].name);
    EXPECT_EQ(logical_bytes(model[i].main()), file.tensors[i].data) << model.name(i);
    EXPECT_EQ(model[i].main().extent()->offset % 64, 0U);
  }
  const Tensor first = model[0];
  EXPECT_EQ(std::vector(first.shape().begin(), first.shape().end()), (std::vector<std::uint64_t>{5, 2}));
  ASSERT_EQ(model.attributes().size(), 10U);
  EXPECT_EQ(model.attributes()[0].first, "model_name");
  EXPECT_EQ(attribute(model, "created_at"), "2025-01-16T12:00:00Z");
  EXPECT_EQ(model.attribute("num_layers")->as_u64(), 1U);
  ASSERT_NE(model.tokenizer(), nullptr);
  const Tokenizer& tokenizer = *model.tokenizer();
  EXPECT_EQ(tokenizer.kind, Tokenizer::Kind::wordpiece);
  EXPECT_EQ(tokenizer.vocab_size, 5U);
  EXPECT_EQ(tokenizer.tokens[4], "[MASK]");
  const std::vector<std::pair<std::string, std::uint32_t>> special = {
      {"pad", 0}, {"unk", 1}, {"cls", 2}, {"sep", 3}, {"mask", 4}};
  EXPECT_EQ(tokenizer.special, special);
}

TEST(EmbdRead, ShowsTheChecksumsThatTheFileKeeps) {
  CaseFile file = tiny_file();
  const std::string bytes = file.bytes();
  const auto hex = [&](std::size_t at) { return "0x" + codecs::to_hex(number_at<std::uint32_t>(bytes, at)); };
  const auto [report, model] = walk(kFormat, bytes);
  const std::vector<Checksum> expected = {
      {"header", hex(56)}, {"data", hex(bytes.size() - 16)}, {"file", hex(bytes.size() - 12)}};
  EXPECT_TRUE(std::ranges::equal(model.checksums(), expected));
  file.flags &= ~kChecksumEnabled;
  EXPECT_TRUE(walk(kFormat, file.bytes()).model.checksums().empty());
}

TEST(EmbdRead, TensorsWhoseNameHashesCollideKeepTheirOwnBytes) {
  CaseFile file = tiny_file();
  file.tensors.push_back({"costarring", 0, {1}, floats(1, 1.5F)});
  file.tensors.push_back({"liquid", 0, {1}, floats(1, -2.5F)});
  const auto [report, model] = walk(kFormat, file.bytes());
  EXPECT_EQ(report.total(), 0U);
  const Tensor one = model["costarring"], other = model["liquid"];
  EXPECT_EQ(one.as<float>()[0], 1.5F);
  EXPECT_EQ(other.as<float>()[0], -2.5F);
}

TEST(EmbdRead, HeaderFactsAreAttributesOnlyWhereTheWriterWouldNotChooseThem) {
  const Model plain = walk(kFormat, tiny_file().bytes()).model;
  EXPECT_EQ(plain.attribute("embd.flags"), nullptr);
  CaseFile file = tiny_file();
  file.flags = 0;
  file.minor = 3;
  const auto [report, model] = walk(kFormat, file.bytes());
  ASSERT_NE(model.attribute("embd.flags"), nullptr);
  EXPECT_EQ(*model.attribute("embd.flags"), Value::integer(std::uint64_t{0}, DType::u32));
  EXPECT_EQ(*model.attribute("embd.version_minor"), Value::integer(std::uint64_t{3}, DType::u16));
  EXPECT_EQ(model.version(), "1.3");
  file.value("embd.flags") = "mine";
  EXPECT_EQ(attribute(walk(kFormat, file.bytes()).model, "embd.flags"), "mine");
}

TEST(EmbdRead, SaysWhereExpectedAndFound) {
  CaseFile file = tiny_file();
  file.value("hidden_size") = "two";
  const std::string bytes = file.bytes();
  const Report report = walk(kFormat, bytes).report;
  const Finding& finding = only(report);
  EXPECT_EQ(finding.rule, "embd/number");
  EXPECT_EQ(finding.offset, bytes.find("two"));
  EXPECT_EQ(finding.message,
            "the value of a numeric metadata key is not a positive integer: hidden_size (expected a positive integer, "
            "found two)");
}

TEST(EmbdRead, NamesTheMissingTensorAndItsShape) {
  CaseFile file = tiny_file();
  file.tensor("encoder.layer.0.output.dense.weight").name = "x";
  const Report report = walk(kFormat, file.bytes()).report;
  const Finding& finding = only(report);
  EXPECT_EQ(finding.rule, "embd/missing-tensor");
  EXPECT_EQ(finding.tensor, "encoder.layer.0.output.dense.weight");
  EXPECT_EQ(finding.expected, "[2, 3]");
}

TEST(EmbdRead, SaysHowManyBytesATruncatedFileLacks) {
  const std::string bytes = tiny_file().bytes();
  const Report report = walk(kFormat, bytes.substr(0, bytes.size() - 100)).report;
  EXPECT_EQ(only(report).rule, "embd/truncated");
  EXPECT_NE(only(report).message.find("100 bytes are missing"), std::string::npos) << only(report).message;
}

TEST(EmbdRead, LeavesOnlyTheBrokenTensorsOut) {
  CaseFile file = tiny_file();
  file.tensors.push_back({"a", 0, {1}, floats(1, 1)});
  file.tensors.push_back({"b", 0, {1}, floats(1, 2), {}, {}, 7});
  file.tensors.push_back({"c", 0, {1}, floats(1, 3)});
  const auto [report, model] = walk(kFormat, file.bytes());
  EXPECT_EQ(report.errors(), 1U);
  ASSERT_EQ(model.size(), 23U);
  EXPECT_FALSE(model.find("b").has_value());
  const Tensor c = model["c"];
  EXPECT_EQ(c.as<float>()[0], 3.0F);
}

TEST(EmbdRead, ListsWhatItCannotInterpret) {
  CaseFile file = tiny_file();
  file.tensors.push_back({"x", 42, {3}, std::string(100, 'x')});
  const auto [report, model] = walk(kFormat, file.bytes());
  EXPECT_TRUE(report.valid());
  EXPECT_EQ(report.unsupported(), 1U);
  const Tensor x = model["x"];
  ASSERT_NE(x.unsupported(), nullptr);
  EXPECT_EQ(x.type_name(), "42");
  EXPECT_EQ(x.shape()[0], 3U);
  EXPECT_EQ(x.main().extent()->length, 100U);  // as far as it can reach
}

TEST(EmbdRead, ABrokenVocabularyLeavesTheTensorsReadable) {
  CaseFile file = tiny_file();
  file.special[0] = 9;
  const auto [report, model] = walk(kFormat, file.bytes());
  EXPECT_EQ(only(report).rule, "embd/special-id");
  EXPECT_EQ(model.tokenizer(), nullptr);
  EXPECT_EQ(model.size(), 21U);
}

TEST(EmbdChecksums, AreTheSameForAnyNumberOfThreads) {
  std::string bytes(20'000'000, '\0');
  for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<char>(i * i >> 7);
  const auto source = memory_source(test::bytes_of(bytes));
  const Context context;
  for (const auto& [begin, end] :
       {std::pair<std::uint64_t, std::uint64_t>{1001, 19'000'003}, {0, 20'000'000}, {5, 5}}) {
    for (const unsigned threads : {1U, 3U}) {
      core::Progress progress(context, bytes.size());
      const Sums sums = sum(
          {begin, end, bytes.size()}, [&](std::uint64_t at, std::span<std::byte> out) { source->read_at(at, out); },
          *thread_executor(threads), progress);
      EXPECT_EQ(sums.file, crc_of(bytes, 0, bytes.size()));
      EXPECT_EQ(sums.data, crc_of(bytes, begin, end));
    }
  }
}

// A layer, token or entry count that the file is too short for must not cost time or memory.
TEST(EmbdRead, HostileCountsAreQuick) {
  CaseFile file = tiny_file();
  file.value("num_layers") = "18446744073709551615";
  std::string bytes = file.bytes();
  const std::size_t vocabulary = number_at<std::uint32_t>(bytes, 20);
  put<std::uint32_t>(bytes, vocabulary, UINT32_MAX);
  const std::clock_t start = std::clock();
  EXPECT_FALSE(walk(kFormat, reseal(bytes)).report.valid());
  EXPECT_LT(std::clock() - start, CLOCKS_PER_SEC / 10);
}

TEST(EmbdRead, HundredThousandTensorsOpenInWellUnderASecond) {
  CaseFile file = tiny_file();
  for (int i = 0; i < 100'000; ++i) file.tensors.push_back({"extra." + std::to_string(i), 8, {1}, "x"});
  const std::string bytes = file.bytes();
  const std::clock_t start = std::clock();
  const auto [report, model] = walk(kFormat, bytes);
  EXPECT_LT(std::clock() - start, CLOCKS_PER_SEC);
  EXPECT_EQ(report.total(), 0U);
  EXPECT_EQ(model.size(), 100'021U);
}

}  // namespace
}  // namespace weighbridge::embd
