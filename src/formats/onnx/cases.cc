// SPDX-License-Identifier: Apache-2.0
// The corpus of ONNX: models of one or two tensors, written field by field.
#include <initializer_list>
#include <utility>

#include "formats/onnx/format.h"
#include "formats/onnx/layout.h"
#include "support/corpus_case.h"
#include "support/little_endian.h"

namespace weighbridge::onnx {
namespace {

using core::CorpusCase;
using core::CorpusSidecar;
using namespace std::string_view_literals;
using test::le;

std::string varint(std::uint64_t value) {
  std::string out;
  for (; value >= 0x80; value >>= 7) out += static_cast<char>(value | 0x80);
  return out + static_cast<char>(value);
}
std::string tag(std::uint32_t number, unsigned wire) { return varint(std::uint64_t{number} << 3 | wire); }
std::string number(std::uint32_t field, std::uint64_t value) { return tag(field, 0) + varint(value); }
std::string bytes(std::uint32_t field, std::string_view content) {
  return tag(field, 2) + varint(content.size()) + std::string(content);
}
std::string varints(std::initializer_list<std::int64_t> values) {
  std::string out;
  for (const std::int64_t value : values) out += varint(static_cast<std::uint64_t>(value));
  return out;
}

std::string dims(std::initializer_list<std::int64_t> all) {
  std::string out;
  for (const std::int64_t dim : all) out += number(tensor::kDims, static_cast<std::uint64_t>(dim));
  return out;
}
enum Type : std::uint32_t { kFloat = 1, kUint8 = 2, kInt64 = 7, kBool = 9, kFloat16 = 10, kDouble = 11, kUint32 = 12 };
std::string type(std::uint32_t t) { return number(tensor::kDataType, t); }
std::string name(std::string_view text) { return bytes(tensor::kName, text); }
std::string raw(std::string_view data) { return bytes(tensor::kRawData, data); }
const std::string kTwo = le<float>({1.5F, -2});

std::string entry(std::string_view key, std::string_view value) {
  return bytes(entry::kKey, key) + bytes(entry::kValue, value);
}
std::string model_of(std::string_view graph, std::string_view more = {}) {
  return number(model::kIrVersion, 10) + bytes(model::kProducerName, "weighbridge") + bytes(model::kGraph, graph) +
         bytes(model::kOpsetImport, number(opset::kVersion, 21)) + std::string(more);
}
std::string initializer(std::string_view content) { return bytes(graph::kInitializer, content); }
// A model with one initializer, "w".
std::string with(std::string_view content) { return model_of(initializer(std::string(content) + name("w"))); }
std::string sound(std::string_view called = "w") { return dims({2}) + type(kFloat) + name(called) + raw(kTwo); }

std::string node(std::string_view op, std::string_view output, std::string_view attribute) {
  return bytes(graph::kNode, bytes(node::kOutput, output) + bytes(node::kOpType, op) +
                                 (attribute.empty() ? "" : bytes(node::kAttribute, attribute)));
}
std::string attribute(std::string_view called, std::string_view content) {
  return bytes(attribute::kName, called) + std::string(content);
}

// An @ stands for the name of the case, so that each has a file of its own.
std::string external(std::string_view called,
                     std::initializer_list<std::pair<std::string_view, std::string_view>> entries) {
  std::string out = number(tensor::kDataLocation, tensor::kExternal);
  for (const auto& [key, value] : entries) {
    std::string text(value);
    if (const std::size_t at = text.find('@'); at != text.npos) text.replace(at, 1, std::string(called) + ".data");
    out += bytes(tensor::kExternalData, entry(key, text));
  }
  return out;
}

std::string sparse(std::initializer_list<std::int64_t> shape, std::string_view values, std::string_view indices) {
  std::string out;
  if (!values.empty()) out += bytes(sparse::kValues, values);
  if (!indices.empty()) out += bytes(sparse::kIndices, indices);
  for (const std::int64_t dim : shape) out += number(sparse::kDims, static_cast<std::uint64_t>(dim));
  return model_of(bytes(graph::kSparseInitializer, out));
}
std::string indices(std::initializer_list<std::int64_t> shape, std::initializer_list<std::int64_t> values) {
  return dims(shape) + type(kInt64) + bytes(tensor::kInt64Data, varints(values));
}

void add_valid(std::vector<CorpusCase>& out) {
  const auto add = [&](std::string called, std::string file) {
    out.push_back({"valid-" + called, "", std::move(file)});
  };
  add("raw", with(dims({2}) + type(kFloat) + raw(kTwo)));
  add("packed-dims", with(bytes(tensor::kDims, varints({1, 2})) + type(kFloat) + raw(kTwo)));
  add("scalar", with(type(kFloat) + raw(le<float>({1}))));
  add("empty", with(dims({0, 3}) + type(kFloat)));
  add("float-data", with(dims({2}) + type(kFloat) + bytes(tensor::kFloatData, kTwo)));
  add("float-data-unpacked", with(dims({2}) + type(kFloat) + tag(tensor::kFloatData, 5) + le<float>({1.5F}) +
                                  tag(tensor::kFloatData, 5) + le<float>({-2})));
  add("float-data-in-two", with(dims({2}) + type(kFloat) + bytes(tensor::kFloatData, le<float>({1.5F})) +
                                bytes(tensor::kFloatData, le<float>({-2}))));
  add("double-data", with(dims({1}) + type(kDouble) + bytes(tensor::kDoubleData, le<double>({0.1}))));
  add("complex", with(dims({1}) + type(14) + bytes(tensor::kFloatData, kTwo)));
  add("int64-data", with(dims({3}) + type(kInt64) + bytes(tensor::kInt64Data, varints({-1, 300, 0}))));
  add("int64-data-unpacked",
      with(dims({2}) + type(kInt64) + number(tensor::kInt64Data, 5) + number(tensor::kInt64Data, UINT64_MAX)));
  add("uint64-data", with(dims({2}) + type(kUint32) + bytes(tensor::kUint64Data, varints({7, 4294967295}))));
  add("float16-data", with(dims({2}) + type(kFloat16) + bytes(tensor::kInt32Data, varints({0x3C00, 0xC000}))));
  add("bool-data", with(dims({2}) + type(kBool) + bytes(tensor::kInt32Data, varints({1, 0}))));
  add("int4", with(dims({3}) + type(22) + raw("\x8F\x07")));
  add("int4-data", with(dims({3}) + type(22) + bytes(tensor::kInt32Data, varints({0x8F, 0x07}))));
  add("uint4", with(dims({2}) + type(21) + raw("\xA5")));
  add("uint2-data", with(dims({5}) + type(25) + bytes(tensor::kInt32Data, varints({0xE4, 0x01}))));
  add("float4", with(dims({4}) + type(23) + raw("\x21\x43")));
  add("float6-data", with(dims({5}) + type(27) + bytes(tensor::kInt32Data, varints({1, 2, 3, 63, 5}))));
  add("float8", with(dims({2}) + type(17) + raw("\x38\x40")));
  add("bfloat16", with(dims({1}) + type(16) + raw("\x80\x3F")));
  add("metadata",
      model_of(initializer(sound() + bytes(tensor::kDocString, "about w")),
               bytes(model::kMetadataProps, entry("author", "a person")) +
                   bytes(model::kOpsetImport, bytes(opset::kDomain, "com.example") + number(opset::kVersion, 1))));
  add("constants",
      model_of(node("Constant", "c", attribute("value", bytes(attribute::kT, dims({2}) + type(kFloat) + raw(kTwo)))) +
               node("Constant", "f", attribute("value_float", tag(attribute::kF, 5) + le<float>({2}))) +
               node("Constant", "i", attribute("value_int", number(attribute::kI, 7))) +
               node("Constant", "fs",
                    attribute("value_floats", tag(attribute::kFloats, 5) + le<float>({2}) + tag(attribute::kFloats, 5) +
                                                  le<float>({3}))) +
               node("Constant", "is", attribute("value_ints", bytes(attribute::kInts, varints({1, -1})))) +
               node("ConstantOfShape", "o",
                    attribute("value", bytes(attribute::kT,
                                             dims({1}) + type(kFloat) + bytes(tensor::kFloatData, le<float>({3})))))));
  const std::string branch =
      initializer(sound()) +
      node("Constant", "c", attribute("value", bytes(attribute::kT, dims({2}) + type(kFloat) + raw(kTwo))));
  add("subgraph",
      model_of(initializer(sound()) + node("If", "y", attribute("then_branch", bytes(attribute::kG, branch)))));
  add("function",
      model_of(initializer(sound()),
               bytes(model::kFunctions,
                     bytes(function::kName, "F") +
                         bytes(function::kNode,
                               node("Constant", "c",
                                    attribute("value", bytes(attribute::kT, dims({2}) + type(kFloat) + raw(kTwo))))
                                   .substr(2)) +
                         bytes(function::kDomain, "com.example"))));
  add("training", model_of(initializer(sound()),
                           bytes(model::kTrainingInfo, bytes(training::kInitialization, initializer(sound())))));
  add("sparse-linear", sparse({2, 3}, dims({2}) + type(kFloat) + name("s") + raw(kTwo), indices({2}, {1, 5})));
  add("sparse-per-dimension",
      sparse({2, 3}, dims({2}) + type(kFloat) + name("s") + raw(kTwo), indices({2, 2}, {0, 1, 1, 2})));
  add("sparse-vector", sparse({6}, dims({2}) + type(kFloat) + name("s") + raw(kTwo),
                              dims({2}) + type(kInt64) + raw(le<std::int64_t>({1, 5}))));
  CorpusCase outside{"valid-external", "",
                     with(dims({2}) + type(kFloat) +
                          external("valid-external", {{"location", "@"},
                                                      {"offset", "0"},
                                                      {"length", "8"},
                                                      {"checksum", "53b8fd0d8266909acc4b720476a08931f85dbca1"}}))};
  outside.sidecar = CorpusSidecar{".data", kTwo};
  out.push_back(std::move(outside));
  CorpusCase bare{"valid-tensor", "", dims({2}) + type(kFloat) + raw(kTwo)};
  bare.extension = "pb";
  out.push_back(std::move(bare));
}

void add_encoding(std::vector<CorpusCase>& out) {
  const auto add = [&](std::string called, std::string_view rule, std::string file,
                       std::vector<std::string> others = {}) {
    out.push_back({std::move(called), std::string(rule), std::move(file), std::move(others)});
  };
  const std::string whole = with(dims({2}) + type(kFloat) + raw(kTwo));
  add("truncated", "onnx/truncated", whole.substr(0, whole.size() - 7));
  add("truncated-tag", "onnx/truncated", whole + "\xA2");
  // The graph has one field, which claims more than the graph has.
  add("past-message", "onnx/past-message",
      number(model::kIrVersion, 10) + bytes(model::kGraph, tag(graph::kName, 2) + "\x02g") +
          bytes(model::kOpsetImport, number(opset::kVersion, 21)));
  add("varint", "onnx/varint",
      number(model::kIrVersion, 10) +
          bytes(model::kOpsetImport, tag(opset::kVersion, 0) + std::string(10, '\xFF') + "\x01"));
  add("varint-packed", "onnx/varint", with(dims({1}) + type(kInt64) + bytes(tensor::kInt64Data, "\x01\x80")));
  add("tag", "onnx/tag", whole + std::string("\x00\x01", 2));
  add("group", "onnx/group", whole + "\x5B\x5C");
  add("wire-type", "onnx/wire-type", with(dims({2}) + type(kFloat) + number(tensor::kRawData, 8)), {"onnx/no-data"});
  add("packed-size", "onnx/packed-size",
      with(dims({1}) + type(kFloat) + bytes(tensor::kFloatData, "\x01\x02\x03\x04\x05")));
  add("repeated-field", "onnx/repeated-field", with(dims({2}) + type(kFloat) + raw(kTwo) + raw(le<float>({3, 4}))));
  add("repeated-graph", "onnx/repeated-field",
      model_of(initializer(sound()), bytes(model::kGraph, initializer(sound()))));
  add("unknown-field", "onnx/unknown-field", model_of(initializer(sound()), bytes(99, "later")));
  add("ir-version", "onnx/ir-version",
      bytes(model::kGraph, initializer(sound())) + bytes(model::kOpsetImport, number(opset::kVersion, 21)));
  add("newer-ir", "onnx/newer-ir", number(model::kIrVersion, 99) + bytes(model::kGraph, initializer(sound())));
  add("no-graph", "onnx/no-graph",
      number(model::kIrVersion, 10) + bytes(model::kOpsetImport, number(opset::kVersion, 21)));
  add("key-utf8", "onnx/key-utf8", model_of(initializer(sound()), bytes(model::kMetadataProps, entry("\xFF", "v"))));
  add("text-utf8", "onnx/text-utf8", model_of(initializer(sound()), bytes(model::kMetadataProps, entry("k", "\xFF"))));
  const auto opset_21 = bytes(model::kOpsetImport, number(opset::kVersion, 21));
  add("operator-set-again", "onnx/operator-set-again", model_of(initializer(sound()), opset_21));
  add("duplicate-key-operator-set", "onnx/duplicate-key",
      model_of(initializer(sound()), bytes(model::kOpsetImport, number(opset::kVersion, 20))));
  add("duplicate-key-of-an-operator-set", "onnx/duplicate-key",
      model_of(initializer(sound()), bytes(model::kMetadataProps, entry("onnx.opset_import.ai.onnx", "21"))));
  add("duplicate-key", "onnx/duplicate-key",
      model_of(initializer(sound()),
               bytes(model::kMetadataProps, entry("k", "v")) + bytes(model::kMetadataProps, entry("k", "w"))));
  CorpusCase deep{"depth", "limit/depth",
                  model_of(node("If", "y", attribute("then_branch", bytes(attribute::kG, initializer(sound())))))};
  deep.limits.depth = 4;
  deep.generated_only = true;
  out.push_back(deep);
  CorpusCase many{"tensors", "limit/tensors", model_of(initializer(sound("a")) + initializer(sound("b")))};
  many.limits.tensors = 1;
  many.generated_only = true;
  out.push_back(many);
  CorpusCase names{"header", "limit/header", model_of(initializer(sound(std::string(100, 'n'))))};
  names.limits.header = 64;
  names.generated_only = true;
  out.push_back(names);
}

void add_tensors(std::vector<CorpusCase>& out) {
  const auto add = [&](std::string called, std::string file, std::vector<std::string> others = {}) {
    const std::string rule = called.substr(0, called.find("--"));
    if (const std::size_t at = called.find("--"); at != std::string::npos) called.erase(at, 1);
    out.push_back({std::move(called), "onnx/" + rule, std::move(file), std::move(others)});
  };
  add("name-utf8", model_of(initializer(sound("\xFF"))));
  add("no-name", model_of(initializer(dims({2}) + type(kFloat) + raw(kTwo))));
  add("no-name--sparse", sparse({2}, dims({1}) + type(kFloat) + raw(le<float>({1})), indices({1}, {0})));
  std::string ones;
  for (int i = 0; i < 65; ++i) ones += dims({1});
  add("rank", with(ones + type(kFloat) + raw(le<float>({1}))));
  add("dimension", with(dims({-2}) + type(kFloat) + raw(kTwo)));
  add("size-overflow", with(dims({std::int64_t{1} << 62, 2}) + type(kFloat) + raw(kTwo)));
  add("no-type", with(dims({2}) + raw(kTwo)));
  add("no-type--undefined", with(dims({2}) + type(0) + raw(kTwo)));
  add("unknown-type", with(dims({2}) + type(99) + raw(kTwo)));
  add("strings", with(dims({1}) + type(kString) + bytes(tensor::kStringData, "text")));
  add("strings--constant", model_of(node("Constant", "t", attribute("value_string", bytes(attribute::kS, "text")))));
  add("data-field--strings", with(dims({1}) + type(kString) + bytes(tensor::kInt64Data, varints({1}))));
  add("data-field--strings-raw", with(dims({1}) + type(kString) + raw("text")));
  add("data-count--strings", with(dims({2}) + type(kString) + bytes(tensor::kStringData, "text")));
  add("segment", with(dims({2}) + type(kFloat) + bytes(tensor::kSegment, number(1, 0) + number(2, 2)) + raw(kTwo)));
  add("several-data", with(dims({2}) + type(kFloat) + bytes(tensor::kFloatData, kTwo) + raw(kTwo)));
  add("no-data", with(dims({2}) + type(kFloat)));
  add("no-data--bool", with(dims({2}) + type(kBool)));
  add("no-data--raw", with(dims({2}) + type(kFloat) + raw("")));
  add("no-data--sparse", sparse({2, 3}, dims({2}) + type(kFloat) + name("s"), indices({2}, {1, 5})));
  add("no-data--indices", sparse({2, 3}, dims({2}) + type(kFloat) + name("s") + raw(kTwo), dims({2}) + type(kInt64)));
  add("data-field", with(dims({2}) + type(kInt64) + bytes(tensor::kFloatData, kTwo)));
  add("raw-size", with(dims({3}) + type(kFloat) + raw(kTwo)));
  add("raw-size--int4", with(dims({3}) + type(22) + raw("\x8F\x07\x00"sv)));
  add("data-count", with(dims({3}) + type(kFloat) + bytes(tensor::kFloatData, kTwo)));
  add("data-count--int4", with(dims({3}) + type(22) + bytes(tensor::kInt32Data, varints({1, 2, 3}))));
  add("duplicate-name", model_of(initializer(sound()) + initializer(sound())));
  add("bool-byte", with(dims({2}) + type(kBool) + raw("\x01\x02")));
  add("number-range", with(dims({2}) + type(kUint8) + bytes(tensor::kInt32Data, varints({255, 256}))));
  add("number-range--negative", with(dims({1}) + type(kFloat16) + bytes(tensor::kInt32Data, varints({-1}))));

  add("bool-number", with(dims({2}) + type(kBool) + bytes(tensor::kInt32Data, varints({1, 256}))));
  add("spare-bits", with(dims({3}) + type(22) + raw("\x8F\x17")));
  add("spare-bits--numbers", with(dims({1}) + type(21) + bytes(tensor::kInt32Data, varints({0x10}))));

  const std::string values = dims({2}) + type(kFloat) + name("s") + raw(kTwo);
  add("sparse-message", sparse({2, 3}, values, {}));
  add("sparse-message--values", sparse({2, 3}, {}, indices({2}, {1, 5})));
  add("sparse-values", sparse({2, 3}, dims({1, 2}) + type(kFloat) + name("s") + raw(kTwo), indices({2}, {1, 5})));
  add("sparse-indices", sparse({2, 3}, values, indices({3}, {1, 2, 3})));
  add("sparse-indices--type",
      sparse({2, 3}, values, dims({2}) + type(kUint32) + bytes(tensor::kUint64Data, varints({1, 2}))));
  add("sparse-scalar", sparse({}, values, indices({2}, {0, 1})));
  add("index-range", sparse({2, 3}, values, indices({2}, {1, 6})));
  add("index-range--negative", sparse({2, 3}, values, indices({2}, {-1, 5})), {"onnx/index-range"});
  add("index-range--per-dimension", sparse({2, 3}, values, indices({2, 2}, {0, 3, 1, 1})));
  add("duplicate-entries", sparse({2, 3}, values, indices({2}, {5, 5})));
  add("index-order", sparse({2, 3}, values, indices({2}, {5, 1})));
  CorpusCase unchecked{"unchecked-entries", "onnx/unchecked-entries", sparse({2, 3}, values, indices({2}, {5, 1}))};
  unchecked.limits.memory = 1;
  unchecked.generated_only = true;
  out.push_back(unchecked);
}

void add_external(std::vector<CorpusCase>& out) {
  const auto add = [&](std::string called, std::initializer_list<std::pair<std::string_view, std::string_view>> where,
                       std::string file = kTwo, std::vector<std::string> others = {}) {
    const std::string rule = "onnx/" + called.substr(0, called.find("--"));
    if (const std::size_t at = called.find("--"); at != std::string::npos) called.erase(at, 1);
    CorpusCase made{called, rule, with(dims({2}) + type(kFloat) + external(called, where)), std::move(others)};
    if (!file.empty()) made.sidecar = CorpusSidecar{".data", std::move(file)};
    out.push_back(std::move(made));
  };
  add("external-path", {{"location", "../@"}});
  add("external-path--absolute", {{"location", "/etc/passwd"}});
  add("external-path--inner", {{"location", "a/../../w.data"}});
  add("external-path--backslash", {{"location", "..\\w.data"}});
  add("external-path--none", {{"offset", "0"}});
  add("external-number", {{"location", "@"}, {"offset", "-8"}});
  add("external-number--length", {{"location", "@"}, {"length", "0x8"}});
  add("external-missing", {{"location", "@"}}, {});
  add("external-length", {{"location", "@"}, {"length", "4"}});
  add("external-short", {{"location", "@"}, {"offset", "4096"}, {"length", "8"}});
  add("external-short--wraps", {{"location", "@"}, {"offset", "18446744073709551615"}, {"length", "8"}});
  add("external-rest", {{"location", "@"}}, kTwo + "more");
  add("external-alignment", {{"location", "@"}, {"offset", "4"}, {"length", "8"}}, "pad." + kTwo);
  add("external-checksum",
      {{"location", "@"}, {"length", "8"}, {"checksum", "da39a3ee5e6b4b0d3255bfef95601890afd80709"}});
  out.push_back({"several-data-external", "onnx/several-data",
                 with(dims({2}) + type(kFloat) + raw(kTwo) + external("several-data-external", {{"location", "@"}}))});
}

}  // namespace

std::vector<core::CorpusCase> cases() {
  std::vector<CorpusCase> out;
  add_valid(out);
  add_encoding(out);
  add_tensors(out);
  add_external(out);
  return out;
}

}  // namespace weighbridge::onnx
