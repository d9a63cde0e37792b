// SPDX-License-Identifier: Apache-2.0
// What the reader of ONNX gives: elements in every field that can hold them, names of nested tensors, sparse tensors,
// external files, and how little it reads.
#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "core/model/draft.h"
#include "formats/onnx/format.h"
#include "formats/onnx/layout.h"
#include "support/format_testing.h"
#include "support/little_endian.h"
#include "weighbridge/place.h"

namespace weighbridge::onnx {
namespace {

using namespace std::string_literals;
using namespace std::string_view_literals;
using test::le;

const core::CorpusCase& the_case(std::string_view name) {
  static const std::vector<core::CorpusCase> all = cases();
  return test::case_of(all, name);
}
Model model_of(std::string_view name) { return test::walk(kFormat, the_case(name).bytes).model; }
std::string data_of(std::string_view name, std::string_view tensor = "w") {
  const Model model = model_of(name);
  const auto found = model.find(tensor);
  if (!found) return "no such tensor";
  return test::logical_bytes(found->main());
}

TEST(Onnx, ElementsInEveryField) {
  const std::string two = le<float>({1.5F, -2});
  for (const char* name : {"valid-raw", "valid-float-data", "valid-float-data-unpacked", "valid-float-data-in-two",
                           "valid-packed-dims", "valid-complex"})
    EXPECT_EQ(data_of(name), two) << name;
  EXPECT_EQ(data_of("valid-double-data"), le<double>({0.1}));
  EXPECT_EQ(data_of("valid-int64-data"), le<std::int64_t>({-1, 300, 0}));
  EXPECT_EQ(data_of("valid-int64-data-unpacked"), le<std::int64_t>({5, -1}));
  EXPECT_EQ(data_of("valid-uint64-data"), "\x07\0\0\0\xFF\xFF\xFF\xFF"sv);
  EXPECT_EQ(data_of("valid-float16-data"), "\x00\x3C\x00\xC0"sv);
  EXPECT_EQ(data_of("valid-bool-data"), "\x01\x00"sv);
  EXPECT_EQ(data_of("valid-int4"), "\x8F\x07");
  EXPECT_EQ(data_of("valid-int4-data"), "\x8F\x07");
  EXPECT_EQ(data_of("valid-uint2-data"), "\xE4\x01");
  EXPECT_EQ(data_of("valid-float6-data"), "\x81\x30\xFC\x05"sv);
  EXPECT_EQ(data_of("valid-empty"), "");
  EXPECT_EQ(model_of("valid-int4")[0U].dtype(), DType::i4);
  EXPECT_EQ(data_of("number-range"), "\xFF\x00"sv);  // the lowest bits count
}

TEST(Onnx, WhatLiesInThePlainFormIsNotComputed) {
  for (const char* name : {"valid-raw", "valid-float-data", "valid-double-data", "valid-complex", "valid-scalar"})
    EXPECT_EQ(model_of(name)[0U].main().encoding(), Encoding::raw) << name;
  for (const char* name : {"valid-float-data-unpacked", "valid-int64-data", "valid-float16-data"})
    EXPECT_EQ(model_of(name)[0U].main().encoding(), Encoding::computed) << name;
}

TEST(Onnx, NamesOfNestedTensors) {
  const auto names = [](std::string_view of) {
    std::string out;
    const Model model = model_of(of);
    for (const Tensor& tensor : model) out += (out.empty() ? "" : " ") + std::string(tensor.name());
    return out;
  };
  EXPECT_EQ(names("valid-constants"), "c f i fs is o.value");
  EXPECT_EQ(names("valid-subgraph"), "w y.then_branch/w y.then_branch/c");
  EXPECT_EQ(names("valid-function"), "w com.example.F/c");
  EXPECT_EQ(names("valid-training"), "w training_info.0.initialization/w");
  EXPECT_EQ(names("valid-tensor"), "tensor");
  EXPECT_EQ(data_of("valid-constants", "f"), le<float>({2}));
  EXPECT_EQ(data_of("valid-constants", "i"), le<std::int64_t>({7}));
  EXPECT_EQ(data_of("valid-constants", "fs"), le<float>({2, 3}));
  EXPECT_EQ(data_of("valid-constants", "is"), le<std::int64_t>({1, -1}));
}

TEST(Onnx, MetadataIsTextAndTheGraphIsLeftBehind) {
  const Model model = model_of("valid-metadata");
  const auto text = [&](std::string_view key) {
    const Value* const value = model.attribute(key);
    return value ? std::string(*value->as_text()) : "none";
  };
  EXPECT_EQ(text("author"), "a person");
  EXPECT_EQ(text("onnx.ir_version"), "10");
  EXPECT_EQ(text("onnx.producer_name"), "weighbridge");
  EXPECT_EQ(text("onnx.opset_import.ai.onnx"), "21");
  EXPECT_EQ(text("onnx.opset_import.com.example"), "1");
  const Tensor first = model[0U];
  EXPECT_EQ(first.attribute("onnx.doc_string")->as_text(), "about w");
  ASSERT_EQ(core::left_behind(model_of("valid-function")).size(), 1U);
  EXPECT_EQ(core::left_behind(model_of("valid-function"))[0].description, "1 node and 1 function");
}

TEST(Onnx, SparseTensorsOfBothKindsOfIndices) {
  for (const char* name : {"valid-sparse-linear", "valid-sparse-per-dimension"}) {
    const Model model = model_of(name);
    const Tensor tensor = *model.find("s");
    EXPECT_EQ(tensor.layout(), Layout::sparse_coo) << name;
    EXPECT_EQ(test::logical_bytes(*tensor.part("coords")), le<std::int64_t>({0, 1, 1, 2})) << name;
    EXPECT_EQ(test::dense_bytes(tensor), le<float>({0, 1.5F, 0, 0, 0, -2})) << name;
  }
  EXPECT_EQ(test::dense_bytes(model_of("valid-sparse-vector")[0U]), le<float>({0, 1.5F, 0, 0, 0, -2}));
}

// A source with files beside it, which counts the bytes that are read.
class Counting final : public Source {
 public:
  Counting(std::string bytes, std::uint64_t hole, std::shared_ptr<const Place> place = nullptr)
      : bytes_(std::move(bytes)), size_(bytes_.size() + hole), place_(std::move(place)) {}
  std::uint64_t size() const noexcept override { return size_; }
  std::string_view name() const noexcept override { return "folder/model.onnx"; }
  std::shared_ptr<const Place> place() const override { return place_; }
  void read_at(std::uint64_t offset, std::span<std::byte> out) const override {
    read += out.size();
    for (std::size_t i = 0; i < out.size(); ++i)
      out[i] = offset + i < bytes_.size() ? static_cast<std::byte>(bytes_[offset + i]) : std::byte{0};
  }
  mutable std::uint64_t read = 0;

 private:
  const std::string bytes_;
  const std::uint64_t size_;
  const std::shared_ptr<const Place> place_;
};

test::Outcome read_source(const std::shared_ptr<const Source>& source, core::Findings::Mode mode) {
  test::Outcome out;
  core::Findings findings(out.report, mode);
  core::Draft draft;
  draft.add_source(source);
  read(*source, {}, findings, draft);
  out.model = draft.finish();
  return out;
}

std::string varint(std::uint64_t value) {
  std::string out;
  for (; value >= 0x80; value >>= 7) out += static_cast<char>(value | 0x80);
  return out + static_cast<char>(value);
}

TEST(Onnx, OpeningAGigabyteReadsAlmostNothing) {
  // The graph ends in raw_data of nearly 1 GiB, which is a hole.
  constexpr std::uint64_t kData = std::uint64_t{1} << 30;
  std::string tensor = "\x08" + varint(kData) + "\x10\x02\x42\x01w\x4A" + varint(kData);
  std::string graph = "\x2A" + varint(tensor.size() + kData) + tensor;
  const std::string head = "\x08\x0A\x3A" + varint(graph.size() + kData) + graph;
  const auto source = std::make_shared<const Counting>(head, kData);
  const test::Outcome out = read_source(source, core::Findings::Mode::all);
  EXPECT_TRUE(out.report.findings().empty());
  ASSERT_EQ(out.model.size(), 1U);
  EXPECT_EQ(out.model[0U].main().size(), kData);
  EXPECT_LE(source->read, 16384U);
}

TEST(Onnx, ManyTensorsAreReadInLargePiecesOnce) {
  std::string graph;
  for (int i = 0; i < 20'000; ++i) {
    const std::string tensor =
        "\x08\x01\x10\x02\x42" + varint(std::to_string(i).size()) + std::to_string(i) + "\x4A\x01x";
    graph += "\x2A" + varint(tensor.size()) + tensor;
  }
  const std::string all = "\x08\x0A\x3A" + varint(graph.size()) + graph;
  const auto source = std::make_shared<const Counting>(all, 0);
  const test::Outcome out = read_source(source, core::Findings::Mode::all);
  EXPECT_EQ(out.model.size(), 20'000U);
  EXPECT_LE(source->read, all.size() + all.size() / 8);
}

TEST(Onnx, AFileOf2GiBIsRefused) {
  const auto source = std::make_shared<const Counting>("\x08\x0A", std::uint64_t{1} << 31);
  EXPECT_EQ(read_source(source, core::Findings::Mode::all).report.first_error()->rule, "onnx/too-large");
}

// Nested graphs are walked in linear time, wherever the name of what holds them is.
TEST(Onnx, NestedGraphsTakeLinearTime) {
  std::string graph = "\x2A\x09\x08\x01\x10\x02\x42\x01w\x4A\x01x"s;
  graph[1] = static_cast<char>(graph.size() - 2);
  for (int i = 0; i < 19; ++i) {
    const std::string attribute = "\x32" + varint(graph.size()) + graph + "\x0A\x01g";               // the name follows
    const std::string node = "\x2A" + varint(attribute.size()) + attribute + "\x12\x01y\x22\x02If";  // likewise
    graph = "\x0A" + varint(node.size()) + node;
  }
  const std::string all = "\x08\x0A\x3A" + varint(graph.size()) + graph;
  const auto source = std::make_shared<const Counting>(all, 0);
  const test::Outcome out = read_source(source, core::Findings::Mode::all);
  ASSERT_EQ(out.model.size(), 1U);
  std::string name;
  for (int i = 0; i < 19; ++i) name += "y.g/";
  EXPECT_EQ(out.model.name(0), name + "w");
  EXPECT_LE(source->read, std::uint64_t{16384});
}

// A long name that every nested tensor repeats would take unlimited memory.
TEST(Onnx, RepeatedNamesAreBounded) {
  std::string inner;
  for (int i = 0; i < 30'000; ++i) {
    const std::string tensor =
        "\x08\x01\x10\x02\x42" + varint(std::to_string(i).size()) + std::to_string(i) + "\x4A\x01x";
    inner += "\x2A" + varint(tensor.size()) + tensor;
  }
  const std::string attribute = "\x0A\x01g\x32" + varint(inner.size()) + inner;
  const std::string output(100'000, 'n');
  const std::string node = "\x12" + varint(output.size()) + output + "\x2A" + varint(attribute.size()) + attribute;
  const std::string graph = "\x0A" + varint(node.size()) + node;
  const std::string all = "\x08\x0A\x3A" + varint(graph.size()) + graph;
  const test::Outcome out = test::walk(kFormat, all);
  EXPECT_EQ(out.report.first_error()->rule, "limit/header");
  EXPECT_EQ(out.model.size(), 0U);
}

// The model with these external entries, in a folder with these files.
test::Outcome with_files(std::string_view name,
                         std::map<std::string, std::shared_ptr<const Source>, std::less<>> files) {
  return read_source(std::make_shared<const Counting>(the_case(name).bytes, 0, folder_of(std::move(files), "folder")),
                     core::Findings::Mode::all);
}

TEST(Onnx, ExternalDataIsOneOfTheSources) {
  const auto data = memory_source(test::bytes_of(le<float>({1.5F, -2})), "folder/valid-external.data");
  const test::Outcome out = with_files("valid-external", {{"valid-external.data", data}});
  ASSERT_TRUE(out.report.valid());
  ASSERT_EQ(out.model.sources().size(), 2U);
  EXPECT_EQ(out.model[0U].main().extent()->source, 1U);
  EXPECT_EQ(test::logical_bytes(out.model[0U].main()), le<float>({1.5F, -2}));
  EXPECT_EQ(out.model.file_size(), the_case("valid-external").bytes.size() + 8);
}

TEST(Onnx, ExternalDataOfMoreThan4GiB) {
  // The second half of a file with a hole.
  std::string bytes = the_case("valid-external").bytes;
  const auto hole = std::make_shared<const Counting>("", std::uint64_t{5} << 30);
  const test::Outcome out = with_files("valid-external", {{"valid-external.data", hole}});
  EXPECT_TRUE(out.report.valid());
  EXPECT_EQ(hole->read, 0U);
}

TEST(Onnx, AMissingFileIsReportedOnce) {
  const test::Outcome out = with_files("external-missing", {});
  ASSERT_EQ(out.report.findings().size(), 1U);
  EXPECT_EQ(out.report.findings()[0].rule, "onnx/external-missing");
  EXPECT_EQ(out.report.findings()[0].tensor, "w");
}

// A place in which every name is a link that leads out.
class Elsewhere final : public weighbridge::Place {
 public:
  Kind kind() const noexcept override { return Kind::folder; }
  std::string_view name() const noexcept override { return "folder"; }
  std::vector<std::string> list() const override { return {}; }
  std::shared_ptr<const Source> open(std::string_view) const override {
    Finding finding;
    finding.rule = "io/outside";
    finding.kind = weighbridge::Kind::io;
    throw Error(finding);
  }
};

TEST(Onnx, ALinkOutOfTheFolderIsAFinding) {
  const auto source =
      std::make_shared<const Counting>(the_case("valid-external").bytes, 0, std::make_shared<const Elsewhere>());
  EXPECT_EQ(read_source(source, core::Findings::Mode::all).report.first_error()->rule, "onnx/external-link");
}

core::Probe probe_of(std::string_view bytes, std::string_view extension = {}) {
  const auto all = std::as_bytes(std::span(bytes));
  return {.head = all.first(std::min<std::size_t>(all.size(), 4096)),
          .tail = {},
          .size = all.size(),
          .extension = extension};
}

TEST(Onnx, IsKnownByItsFirstFields) {
  for (const core::CorpusCase& c : cases())
    if (c.name.starts_with("valid-") && c.extension.empty()) {
      EXPECT_TRUE(matches(probe_of(c.bytes))) << c.name;
      EXPECT_FALSE(is_tensor(probe_of(c.bytes))) << c.name;
    }
  const std::string& tensor = the_case("valid-tensor").bytes;
  EXPECT_TRUE(matches(probe_of(tensor, "pb")));
  EXPECT_FALSE(matches(probe_of(tensor)));
  // A llama2.c header of dimension 8, a safetensors header of 8 bytes, nothing, text.
  EXPECT_FALSE(matches(probe_of("\x08\0\0\0\x10\0\0\0\x02\0\0\0"sv)));
  EXPECT_FALSE(matches(probe_of("\x08\0\0\0\0\0\0\0{}      "sv)));
  EXPECT_FALSE(matches(probe_of("")));
  EXPECT_FALSE(matches(probe_of("{\"ir_version\": 8}")));
}

}  // namespace
}  // namespace weighbridge::onnx
