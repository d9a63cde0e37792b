// SPDX-License-Identifier: Apache-2.0
// Results of temporary handles, and empty handles. The address sanitizer shows whether they stay alive.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <new>
#include <thread>
#include <vector>

#include "core/model/draft.h"
#include "support/thrown.h"
#include "weighbridge/model.h"

namespace weighbridge {
namespace {

Bytes numbers(float first) {
  const auto kept = std::make_shared<std::vector<float>>(std::vector{first, first + 1});
  return {std::as_bytes(std::span(*kept)), kept};
}

// A model with a single owner. Its texts are too long to be stored inside string objects.
Model model() {
  Tokenizer tokenizer;
  tokenizer.tokens.push_back("a token that is too long for a short string");
  Builder b;
  b.attribute("a key that is too long for a short string", Value::text("a value that is too long for a short string"));
  b.tokenizer(std::move(tokenizer));
  b.tensor("a name that is too long for a short string", DType::f32, {2}, numbers(1));
  b.object("object", Layout::sparse_coo, {4}, {{"an attribute of a tensor, also long", Value::boolean(true)}},
           {{"values", DType::f32, {2}, numbers(5)}, {"coords", DType::f32, {2}, numbers(7)}});
  return b.build();
}
constexpr std::string_view kLong = "a name that is too long for a short string";

TEST(Handles, ATensorOfATemporaryModelLives) {
  const Tensor by_name = model()[kLong], by_index = model()[0U];
  EXPECT_EQ(by_name.name(), kLong);
  EXPECT_EQ(by_index.name(), kLong);
  EXPECT_EQ(by_name.shape()[0], 2U);
  EXPECT_EQ(by_name.as<float>()[1], 2.0F);
  const Array dense = model()[kLong].to_dense();
  EXPECT_EQ(dense.size, 8U);
  const auto found = model().find(kLong);
  ASSERT_TRUE(found);
  EXPECT_EQ(found->name(), kLong);
  EXPECT_EQ(model().find("object").value().dtype(), DType::f32);
  EXPECT_FALSE(model().find("absent"));
  EXPECT_FALSE(Model().find("absent"));
}

// Maps a range for its caller alone, as a file that does not fit the address space is mapped; overwrites what is let
// go.
class MapsEachTime final : public Source {
 public:
  explicit MapsEachTime(std::size_t fails_after = SIZE_MAX) : left_(fails_after) {}
  std::uint64_t size() const noexcept override { return 8; }
  void read_at(std::uint64_t, std::span<std::byte> out) const override { std::ranges::fill(out, std::byte{0}); }
  Bytes map(std::uint64_t offset, std::uint64_t length) const override {
    ++maps;
    if (left_ == 0) throw std::bad_alloc();
    --left_;
    auto* const memory = new std::vector<float>{1, 2};
    std::shared_ptr<const void> keep(memory, [](const std::vector<float>* gone) {
      std::memset(const_cast<float*>(gone->data()), 0x7F, 8);
      delete gone;
    });
    return {std::as_bytes(std::span(*memory)).subspan(offset, length), keep};
  }
  std::string_view name() const noexcept override { return "maps each time"; }
  mutable std::size_t maps = 0;

 private:
  mutable std::size_t left_;
};

Model over(const std::shared_ptr<const Source>& source) {
  core::Draft draft;
  draft.add_source(source);
  const std::uint64_t shape[] = {2};
  draft.add_dense("w", DType::f32, shape, {0, 0, 8});
  draft.index_names();
  return draft.finish();
}

// The mapping ended with the temporary Bytes, and the span was read by `embed`.
TEST(Handles, ASpanOfElementsLivesAsLongAsTheModelThoughTheRangeIsMappedForItAlone) {
  const auto source = std::make_shared<const MapsEachTime>();
  const Tensor w = over(source)["w"];
  const std::span<const float> first = w.as<float>();
  EXPECT_EQ(first[0], 1.0F);
  EXPECT_EQ(first[1], 2.0F);
  EXPECT_EQ(source->maps, 1U);
  EXPECT_EQ(w.as<float>().data(), first.data());  // and is not mapped again
  EXPECT_EQ(source->maps, 1U);
  EXPECT_EQ(test::thrown([&] { w.as<std::int32_t>(); }).rule, "misuse/no-view");
}

// It mapped twice, and what the second call threw ended the process.
TEST(Handles, WhyThereIsNoViewIsSaidThoughTheSourceFailsMeanwhile) {
  for (const std::size_t after : {std::size_t{0}, std::size_t{1}}) {
    const auto source = std::make_shared<const MapsEachTime>(after);
    const Tensor w = over(source)["w"];
    EXPECT_EQ(w.why_no_view(DType::f32), after == 0 ? NoView::not_mappable : NoView::none);
    EXPECT_EQ(source->maps, 1U);
    EXPECT_EQ(w.main().why_no_view(), NoView::not_mappable);
    EXPECT_EQ(w.why_no_view(DType::f16), NoView::dtype);
    EXPECT_THROW(static_cast<void>(w.as<float>()), std::bad_alloc);
    EXPECT_THROW(static_cast<void>(w.main().view()), std::bad_alloc);
  }
}

TEST(Handles, APartOfATemporaryTensorLives) {
  const Part main = model()["object"].main(), second = model()["object"].part(1U);
  EXPECT_EQ(main.role(), "values");
  EXPECT_EQ(second.role(), "coords");
  EXPECT_EQ(second.shape()[0], 2U);
  const auto coords = model()["object"].part("coords");
  ASSERT_TRUE(coords);
  EXPECT_EQ(coords->stored().span.size(), 8U);
  const Bytes view = model()["object"].main().view();
  float first = 0;
  std::memcpy(&first, view.span.data(), sizeof first);
  EXPECT_EQ(first, 5.0F);
  EXPECT_EQ(test::thrown([] { (void)model()["object"].part(2U); }).kind, Kind::misuse);
}

TEST(Handles, WhatATemporaryModelHoldsLives) {
  const Attributes attributes = model().attributes();
  ASSERT_EQ(attributes.size(), 1U);
  EXPECT_EQ(attributes.find("a key that is too long for a short string")->as_text(),
            "a value that is too long for a short string");
  EXPECT_EQ(attributes.find("absent"), nullptr);
  EXPECT_EQ(model().attributes()[0].second.to_text(), "a value that is too long for a short string");
  std::string keys;
  for (const auto& [key, value] : model().attributes()) keys += key;
  EXPECT_EQ(keys, "a key that is too long for a short string");
  const Attributes of_tensor = model()["object"].attributes();
  ASSERT_EQ(of_tensor.size(), 1U);
  EXPECT_EQ(of_tensor[0].second.as_bool(), true);
  EXPECT_TRUE(model().extra().empty());
  EXPECT_TRUE(model()["object"].extra().empty());
  const auto tokenizer = model().tokenizer();
  ASSERT_TRUE(tokenizer);
  EXPECT_EQ(tokenizer->tokens[0], "a token that is too long for a short string");
  EXPECT_EQ(model().sources()[0]->size(), 8U);
  std::uint64_t bytes = 0;
  for (const auto& source : model().sources()) bytes += source->size();
  EXPECT_EQ(bytes, 24U);
  core::Draft draft;
  draft.add_checksum("a checksum that is too long for a short string", "0x1");
  const auto checksums = draft.finish().checksums();
  EXPECT_EQ(checksums[0].name, "a checksum that is too long for a short string");
}

TEST(Handles, ARangeOverATemporaryModelLives) {
  std::vector<std::string> seen;
  for (const Tensor& tensor : model()) {
    seen.emplace_back(tensor.name());
    for (const Part& part : tensor.parts()) seen.emplace_back(part.role());
  }
  EXPECT_EQ(seen, (std::vector<std::string>{std::string(kLong), "data", "object", "values", "coords"}));
  std::vector<Tensor> kept;
  for (const Tensor& tensor : model()) kept.push_back(tensor);
  EXPECT_EQ(kept.at(0).name(), kLong);
  EXPECT_EQ(kept.at(1).name(), "object");
  for (const Part& part : model()["object"].parts()) EXPECT_EQ(part.count(), 2U);
  EXPECT_EQ((*model().begin()).dtype(), DType::f32);
  EXPECT_TRUE(Model().begin() == Model().end());
}

TEST(Handles, TextsLiveAsLongAsAnyHandle) {
  std::optional<Model> first(model());
  Tensor tensor = (*first)[kLong];
  const std::string_view name = tensor.name();
  const Part part = tensor.main();
  first.reset();
  tensor = Tensor();
  EXPECT_EQ(name, kLong);
  EXPECT_EQ(part.role(), "data");
}

// Default-constructed or moved from.
TEST(Handles, OnesOfNothingAreEmpty) {
  Tensor whole = model()["object"];
  Part piece = whole.main();
  const Tensor taken = std::move(whole);
  const Part taken_piece = std::move(piece);
  EXPECT_EQ(taken.name(), "object");
  EXPECT_EQ(taken_piece.role(), "values");
  for (const Tensor& none : {Tensor(), whole}) {  // NOLINT(bugprone-use-after-move)
    EXPECT_EQ(none.name(), "");
    EXPECT_EQ(none.id(), std::nullopt);
    ASSERT_EQ(none.shape().size(), 1U);
    EXPECT_EQ(none.shape()[0], 0U);
    EXPECT_EQ(none.layout(), Layout::structural);
    EXPECT_EQ(none.dtype(), DType::unknown);
    EXPECT_EQ(none.part_count(), 0U);
    EXPECT_TRUE(none.parts().begin() == none.parts().end());
    EXPECT_TRUE(none.attributes().empty());
    EXPECT_TRUE(none.extra().empty());
    EXPECT_EQ(none.attribute("x"), nullptr);
    EXPECT_FALSE(none.part("data"));
    ASSERT_NE(none.unsupported(), nullptr);
    EXPECT_EQ(none.unsupported()->rule, "unsupported/no-tensor");
    EXPECT_EQ(none.why_no_view(DType::f32), NoView::layout);
    EXPECT_EQ(test::thrown([&] { (void)none.main(); }).kind, Kind::misuse);
    EXPECT_EQ(test::thrown([&] { (void)none.part(0U); }).kind, Kind::misuse);
    EXPECT_EQ(test::thrown([&] { (void)none.to_dense(); }).kind, Kind::unsupported);
    EXPECT_EQ(test::thrown([&] { (void)none.as<float>(); }).kind, Kind::misuse);
    std::byte row{};
    EXPECT_EQ(test::thrown([&] { none.rows_into(0, 1, DType::u8, {&row, 1}); }).kind, Kind::unsupported);
  }
  for (const Part& none : {Part(), piece}) {  // NOLINT(bugprone-use-after-move)
    EXPECT_EQ(none.role(), "");
    EXPECT_EQ(none.dtype(), DType::unknown);
    EXPECT_EQ(none.count(), 0U);
    EXPECT_EQ(none.size(), 0U);
    EXPECT_EQ(none.extent(), std::nullopt);
    EXPECT_EQ(none.digest(), "");
    EXPECT_TRUE(none.strides().empty());
    EXPECT_TRUE(none.extra().empty());
    EXPECT_EQ(none.why_no_view(), NoView::computed);
    EXPECT_EQ(test::thrown([&] { (void)none.view(); }).kind, Kind::misuse);
    EXPECT_EQ(test::thrown([&] { (void)none.stored(); }).kind, Kind::misuse);
    none.stream({}, [](std::span<const std::byte>) {
      ADD_FAILURE() << "there are no bytes";
      return true;
    });
  }
}

TEST(Handles, APartIsEqualToItselfAlone) {
  const Model a = model();
  EXPECT_EQ(a["object"].main(), a["object"].part(0U));
  EXPECT_NE(a["object"].main(), a["object"].part(1U));
  EXPECT_NE(a["object"].main(), model()["object"].main());
}

// Threads take and drop handles of one model, and the last one destroys it.
TEST(Handles, AreCountedFromSeveralThreads) {
  std::vector<std::thread> threads;
  {
    const Model shared = model();
    for (int t = 0; t < 4; ++t) {
      threads.emplace_back([tensor = shared["object"]] {
        for (int i = 0; i < 1000; ++i) {
          const Tensor copy = tensor;
          ASSERT_EQ(copy.main().count(), 2U);
        }
      });
    }
  }
  for (std::thread& thread : threads) thread.join();
}

}  // namespace
}  // namespace weighbridge
