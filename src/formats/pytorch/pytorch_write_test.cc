// SPDX-License-Identifier: Apache-2.0
// What the writer of PyTorch's archives shares, loses and refuses. tests/interop/test_pytorch.py opens its files with
// PyTorch.
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "core/writing/layout.h"
#include "formats/pytorch/format.h"
#include "formats/pytorch/layout.h"
#include "support/format_testing.h"
#include "weighbridge/model.h"

namespace weighbridge::pytorch {
namespace {

using Texts = std::vector<std::string>;

Texts text_of(const std::vector<Item>& items) {
  Texts out;
  for (const Item& item : items) out.push_back(item.subject + ": " + item.from + " -> " + item.to);
  return out;
}

Bytes counting(std::size_t bytes) {
  const auto kept = std::make_shared<std::vector<std::byte>>(bytes);
  for (std::size_t i = 0; i < bytes; ++i) (*kept)[i] = static_cast<std::byte>(i % 251);
  return {std::span(*kept), kept};
}

Model one(DType dtype, std::vector<std::uint64_t> shape, std::size_t bytes, const char* name = "w") {
  Builder builder;
  builder.tensor(name, dtype, std::move(shape), counting(bytes));
  return builder.build();
}

Model with(const std::string& key, const Value& value) {
  Builder builder;
  builder.attribute(key, value);
  builder.tensor("w", DType::u8, {2}, counting(2));
  return builder.build();
}

test::Outcome written(const Model& model, const Options& options = {}) {
  return test::walk(kFormat, test::render(layout(model, options)));
}

// A file whose tensors are views of ranges of 48 bytes: (offset, shape, strides).
struct View {
  std::uint64_t offset, length;
  std::vector<std::uint64_t> shape;
  std::vector<std::int64_t> strides;
  DType dtype = DType::f32;
};
Model of_views(const std::vector<View>& views) {
  core::Draft draft;
  draft.add_source(memory_source(counting(48)));
  draft.set_format("pytorch");
  for (std::size_t i = 0; i < views.size(); ++i) {
    const View& view = views[i];
    std::uint64_t count = 1;
    for (const std::uint64_t dim : view.shape) count *= dim;
    draft.add_tensor(std::string(1, static_cast<char>('a' + i)), Layout::dense, view.dtype, view.shape);
    const std::uint32_t part = draft.add_part("data", view.dtype, view.shape, Encoding::raw,
                                              {0, view.offset, view.length}, count * info(view.dtype).bits / 8);
    if (!view.strides.empty()) draft.part(part).strides(view.strides);
  }
  draft.index_names();
  return draft.finish();
}

void expect_same(const Model& model, const Model& back) {
  ASSERT_EQ(back.size(), model.size());
  for (std::uint32_t i = 0; i < model.size(); ++i) {
    EXPECT_EQ(back.name(i), model.name(i));
    EXPECT_EQ(test::dense_bytes(back[i]), test::dense_bytes(model[i])) << model.name(i);
    const Tensor now = back[i], before = model[i];
    EXPECT_TRUE(std::ranges::equal(now.shape(), before.shape())) << model.name(i);
  }
}

TEST(PyTorchWrite, EveryDtypeComesBack) {
  Builder builder;
  std::size_t types = 0;
  for (const ElementType& type : kTypes) {
    if (type.dtype == DType::unknown) continue;
    ++types;
    for (const std::vector<std::uint64_t>& shape :
         {std::vector<std::uint64_t>{2, 4}, std::vector<std::uint64_t>{0, 2}, std::vector<std::uint64_t>{2}}) {
      std::uint64_t count = 1;
      for (const std::uint64_t dim : shape) count *= dim;
      builder.tensor(std::string(type.name) + std::to_string(count), type.dtype, shape,
                     type.dtype == DType::boolean ? Bytes(test::bytes_of(std::string(count, '\1')))
                                                  : counting(*packed_size(type.dtype, count)));
    }
  }
  EXPECT_EQ(types, 21U);
  const Model model = builder.build();
  const core::WriteLayout made = layout(model, {});
  EXPECT_TRUE(made.losses.empty());
  EXPECT_TRUE(made.changes.empty());
  const test::Outcome back = test::walk(kFormat, test::render(made));
  EXPECT_EQ(back.report.findings().size(), 0U);
  expect_same(model, back.model);
  for (const Tensor& tensor : back.model) EXPECT_EQ(tensor.main().extent()->offset % 64, 0U);
  EXPECT_EQ(test::render(layout(back.model, {})), test::render(made));
}

TEST(PyTorchWrite, NoTensorsAndNoName) {
  EXPECT_EQ(written(Model()).model.size(), 0U);
  EXPECT_TRUE(written(Model()).model.attributes().empty());
  const Model back = written(one(DType::u8, {2}, 2, "")).model;
  ASSERT_EQ(back.size(), 1U);
  EXPECT_EQ(back.name(0), "");
}

TEST(PyTorchWrite, OverlappingViewsShareAStorage) {
  // All, a transposed view of it, rows of it, a column, and bytes apart from it.
  const Model model = of_views(
      {{0, 32, {2, 4}, {}}, {0, 32, {4, 2}, {1, 4}}, {16, 16, {4}, {}}, {4, 20, {2}, {4}}, {32, 16, {2, 2}, {}}});
  const core::WriteLayout made = layout(model, {});
  EXPECT_EQ(text_of(made.losses), Texts{});
  EXPECT_EQ(text_of(made.changes), Texts{});
  ASSERT_EQ(made.payloads.size(), 2U);
  EXPECT_TRUE(made.payloads[0].shared);
  EXPECT_EQ(made.payloads[0].stored_size, 32U);
  const Model back = test::walk(kFormat, test::render(made)).model;
  expect_same(model, back);
  const std::uint64_t begin = back[0U].main().extent()->offset;
  EXPECT_EQ(back[1U].main().extent()->offset, begin);
  EXPECT_EQ(back[2U].main().extent()->offset, begin + 16);
  EXPECT_EQ(back[3U].main().extent()->offset, begin + 4);
  EXPECT_GE(back[4U].main().extent()->offset, begin + 32);
}

TEST(PyTorchWrite, ATiedTensorIsStoredOnce) {
  const Model model = of_views({{0, 16, {4}, {}}, {0, 16, {2, 2}, {}}, {16, 16, {4}, {}}});
  const core::WriteLayout made = layout(model, {});
  EXPECT_EQ(made.payloads.size(), 2U);
  EXPECT_TRUE(made.losses.empty());
  const Model back = test::walk(kFormat, test::render(made)).model;
  EXPECT_EQ(back[0U].main().extent(), back[1U].main().extent());
  expect_same(model, back);
}

TEST(PyTorchWrite, RepeatedElementsStayRepeated) {
  const Model model = of_views({{0, 4, {3, 5}, {0, 0}}, {8, 12, {2, 2}, {1, 1}}});
  const core::WriteLayout made = layout(model, {});
  EXPECT_EQ(made.payloads[0].stored_size, 4U);
  EXPECT_EQ(made.payloads[1].stored_size, 12U);
  EXPECT_EQ(text_of(made.changes), Texts{});
  expect_same(model, test::walk(kFormat, test::render(made)).model);
}

TEST(PyTorchWrite, BytesBetweenTheElementsOfAViewAreNotCopied) {
  const Model model = of_views({{0, 36, {2, 2}, {8, 0}}, {40, 8, {2}, {}}, {0, 44, {2}, {10}}});
  EXPECT_EQ(layout(of_views({{0, 36, {2}, {8}}}), {}).payloads[0].stored_size, 8U);
  // Unless another tensor has some of them.
  const core::WriteLayout made = layout(model, {});
  expect_same(model, test::walk(kFormat, test::render(made)).model);
}

TEST(PyTorchWrite, AStorageHasOneType) {
  const Model model = of_views({{0, 16, {4}, {}}, {0, 16, {4}, {}, DType::i32}, {2, 8, {2}, {}}});
  const core::WriteLayout made = layout(model, {});
  EXPECT_EQ(made.payloads.size(), 3U);
  EXPECT_EQ(made.losses.size(), 2U);
  for (const Item& loss : made.losses) EXPECT_EQ(loss.kind, LossKind::alias);
  expect_same(model, test::walk(kFormat, test::render(made)).model);
}

TEST(PyTorchWrite, NegativeStridesBecomeRowMajor) {
  core::Draft draft;
  draft.add_source(memory_source(counting(16)));
  draft.add_tensor("w", Layout::dense, DType::f32, std::vector<std::uint64_t>{4});
  draft.part(draft.add_part("data", DType::f32, std::vector<std::uint64_t>{4}, Encoding::raw, {0, 0, 16}, 16))
      .strides({-1});
  draft.index_names();
  const Model model = draft.finish();
  const core::WriteLayout made = layout(model, {});
  ASSERT_EQ(made.changes.size(), 1U);
  EXPECT_EQ(made.changes[0].to, "row-major");
  expect_same(model, test::walk(kFormat, test::render(made)).model);
}

TEST(PyTorchWrite, AttributesAreInTheStateAndComeBack) {
  const Value metadata = Value::map({{"", Value::map({{"version", Value::integer(std::int64_t{1})}})}});
  Builder builder;
  const std::vector<Value::Entry> all = {
      {"text", Value::text("é")},
      {"a.b", Value::integer(std::int64_t{-7})},
      {"_metadata", metadata},
      {"", Value::boolean(true)},
      {"null", Value()},
      {"real", Value::real(0.1)},
      {"bytes", Value::bytes({std::byte{0}, std::byte{0xff}})},
      {"large", Value::integer(UINT64_MAX)},
      {"map", Value::map({{"x", Value::list({Value::map({}), Value::text("t"), Value::list({})})}})}};
  for (const auto& [key, value] : all) builder.attribute(key, value);
  builder.tensor("items", DType::u8, {2}, counting(2));
  const Model model = builder.build();
  const core::WriteLayout made = layout(model, {});
  EXPECT_EQ(text_of(made.losses), Texts{});
  EXPECT_EQ(text_of(made.changes), Texts{});
  const test::Outcome back = test::walk(kFormat, test::render(made));
  EXPECT_EQ(back.report.findings().size(), 0U);
  const auto attributes = back.model.attributes();
  ASSERT_EQ(attributes.size(), all.size());
  for (const auto& [key, value] : all) {
    ASSERT_NE(attributes.find(key), nullptr) << key;
    EXPECT_EQ(*attributes.find(key), value) << key;
  }
}

TEST(PyTorchWrite, NumbersOfPythonHaveNoWidth) {
  for (const Value& value : {Value::integer(std::int64_t{1}, DType::i32), Value::real(0.5, DType::f32),
                             Value::list({Value::integer(std::uint64_t{1}, DType::u8)})}) {
    const core::WriteLayout made = layout(with("k", value), {});
    ASSERT_EQ(made.losses.size(), 1U);
    EXPECT_EQ(made.losses[0].kind, LossKind::attribute_type);
    EXPECT_EQ(written(with("k", value)).model.attributes().size(), 1U);
  }
  // Then no value changes.
  for (const Value& value : {Value::integer(std::uint64_t{1}), Value::list({Value::integer(std::int64_t{1})})}) {
    const core::WriteLayout made = layout(with("k", value), {});
    EXPECT_TRUE(made.losses.empty());
    EXPECT_EQ(made.changes.size(), 1U);
  }
}

TEST(PyTorchWrite, ANumberOfFewerBitsKeepsItsDecimal) {
  const Value epsilon = Value::real(static_cast<double>(1e-5F), DType::f32);
  const Model back = written(with("k", epsilon)).model;
  EXPECT_EQ(back.attribute("k")->to_text(), epsilon.to_text());
  EXPECT_EQ(static_cast<float>(*back.attribute("k")->as_f64()), 1e-5F);
}

TEST(PyTorchWrite, ValuesThatPythonLacksAreLosses) {
  Value deep = Value::text("x");
  for (int i = 0; i < 8; ++i) deep = Value::map({{"k", deep}});
  for (const Value& value : {Value::foreign("cbor", {std::byte{0xf7}}), deep}) {
    const core::WriteLayout made = layout(with("k", value), {});
    ASSERT_EQ(made.losses.size(), 1U);
    EXPECT_EQ(made.losses[0].kind, LossKind::attribute);
    EXPECT_TRUE(written(with("k", value)).model.attributes().empty());
  }
}

TEST(PyTorchWrite, SparseTensorsStaySparse) {
  const std::uint32_t coords[] = {0, 1, 1, 2};
  const std::int64_t indptr[] = {0, 1, 2}, indices[] = {1, 2};
  const auto bytes = [](const auto& numbers) {
    return test::bytes_of({reinterpret_cast<const char*>(numbers), sizeof numbers});
  };
  Builder builder;
  builder.object("coo", Layout::sparse_coo, {2, 3}, {},
                 {{"values", DType::f32, {2}, counting(8)}, {"coords", DType::u32, {4}, bytes(coords)}});
  builder.object("csr", Layout::sparse_csr, {2, 3}, {},
                 {{"values", DType::f16, {2}, counting(4)},
                  {"indices", DType::i64, {2}, bytes(indices)},
                  {"indptr", DType::i64, {3}, bytes(indptr)}});
  const Model model = builder.build();
  const core::WriteLayout made = layout(model, {});
  EXPECT_TRUE(made.losses.empty());
  EXPECT_EQ(text_of(made.changes), (Texts{"tensors[\"coo\"].parts[\"coords\"]: u32 -> i64"}));
  const Model back = test::walk(kFormat, test::render(made)).model;
  expect_same(model, back);
  EXPECT_EQ(back[0U].layout(), Layout::sparse_coo);
  EXPECT_EQ(back[1U].layout(), Layout::sparse_csr);
}

// The output did not read back: the plan has to say so.
TEST(PyTorchWrite, ANameLongerThanTheReaderKeepsIsABlocker) {
  for (const std::size_t longer : {0U, 1U}) {
    Builder builder;
    builder.tensor(std::string(kLongestKey + longer, 'w'), DType::u8, {4}, counting(4));
    const Model model = builder.build();
    const core::WriteLayout made = layout(model, {});
    EXPECT_EQ(made.blockers.size(), longer);
    if (longer == 0) expect_same(model, test::walk(kFormat, test::render(made)).model);
  }
}

TEST(PyTorchWrite, WhatPyTorchCannotHoldIsABlocker) {
  EXPECT_EQ(layout(one(DType::f6_e2m3, {4}, 3), {}).blockers.size(), 1U);
  Options cast;
  cast.cast = DType::f32;
  EXPECT_TRUE(layout(one(DType::f6_e2m3, {4}, 3), cast).blockers.empty());
  EXPECT_EQ(layout(one(DType::f4, {3}, 2), {}).blockers.size(), 1U);
  EXPECT_EQ(layout(one(DType::f64, {0, std::uint64_t{1} << 61}, 0), {}).blockers.size(), 1U);
}

TEST(PyTorchWrite, OptionsThatPyTorchLacksAreMisuse) {
  const auto refused = [&](const auto& set) {
    Options options;
    set(options);
    EXPECT_THROW(core::check_written(kFormat, options), Error);
  };
  refused([](Options& o) { o.encoding = "deflate"; });
  refused([](Options& o) { o.digest = "sha256"; });
  refused([](Options& o) { o.quantize = "q8_0"; });
  refused([](Options& o) { o.version = "2"; });
  refused([](Options& o) { o.cast = DType::f6_e2m3; });
  Options options;
  options.version = "3";
  EXPECT_NO_THROW(core::check_written(kFormat, options));
}

}  // namespace
}  // namespace weighbridge::pytorch
