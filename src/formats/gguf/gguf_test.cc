// SPDX-License-Identifier: Apache-2.0
// What the reader of GGUF gives: metadata of every type in both byte orders, shapes, and element types that this build
// does not know.
#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "formats/gguf/format.h"
#include "formats/gguf/layout.h"
#include "io/forwarding_source.h"
#include "support/format_testing.h"

namespace weighbridge::gguf {
namespace {

std::string bytes_of_case(std::string_view name) {
  static const std::vector<core::CorpusCase> all = cases();
  return test::case_of(all, name).bytes;
}
test::Outcome walk(std::string bytes) { return test::walk(kFormat, std::move(bytes)); }

// Counts what is read of a file.
class Counting final : public io::InterposedSource {
 public:
  explicit Counting(std::string bytes) : InterposedSource(memory_source(test::bytes_of(std::move(bytes)))) {}
  void read_at(std::uint64_t offset, std::span<std::byte> out) const override {
    read += out.size();
    of().read_at(offset, out);
  }
  mutable std::uint64_t read = 0;
};

TEST(Gguf, MetadataOfEveryTypeKeepsItsTypeInBothByteOrders) {
  for (const char* name : {"valid-values", "valid-big-endian"}) {
    const Model model = walk(bytes_of_case(name)).model;
    const auto value = [&](std::string_view key) {
      const Value* const found = model.attribute(key);
      EXPECT_NE(found, nullptr) << key;
      return found ? *found : Value();
    };
    EXPECT_EQ(value("general.architecture").as_text(), "llama");
    EXPECT_EQ(value("a.u8"), Value::integer(std::uint64_t{200}, DType::u8));
    EXPECT_EQ(value("a.i8"), Value::integer(std::int64_t{-100}, DType::i8));
    EXPECT_EQ(value("a.u16"), Value::integer(std::uint64_t{60000}, DType::u16));
    EXPECT_EQ(value("a.i16"), Value::integer(std::int64_t{-30000}, DType::i16));
    EXPECT_EQ(value("a.u32"), Value::integer(std::uint64_t{4'000'000'000}, DType::u32));
    EXPECT_EQ(value("a.i32"), Value::integer(std::int64_t{-2'000'000'000}, DType::i32));
    EXPECT_EQ(value("a.u64"), Value::integer(UINT64_MAX, DType::u64));
    EXPECT_EQ(value("a.i64"), Value::integer(std::int64_t{-9'000'000'000}, DType::i64));
    EXPECT_EQ(value("a.f32"), Value::real(static_cast<double>(0.1F), DType::f32));
    EXPECT_EQ(value("a.f64"), Value::real(0.1, DType::f64));
    EXPECT_EQ(value("a.true").as_bool(), true);
    EXPECT_EQ(value("a.empty").as_text(), "");
    EXPECT_EQ(value("b.i32").type(), DType::i32);
    const std::int32_t numbers[] = {-1, 2, 3};
    ASSERT_EQ(value("b.i32").bytes().size(), sizeof numbers);
    EXPECT_EQ(std::memcmp(value("b.i32").bytes().data(), numbers, sizeof numbers), 0);
    ASSERT_NE(value("b.texts").texts(), nullptr);
    EXPECT_EQ((*value("b.texts").texts())[2], "\xC3\xA9");
    EXPECT_EQ(value("b.none").bytes().size(), 0U);
  }
}

TEST(Gguf, TheSlowestDimensionComesFirst) {
  for (const char* name : {"valid-two-tensors", "valid-version-2", "valid-big-endian"}) {
    const Model model = walk(bytes_of_case(name)).model;
    const Tensor a = model["a"];
    EXPECT_EQ(std::vector<std::uint64_t>(a.shape().begin(), a.shape().end()), (std::vector<std::uint64_t>{2, 3}));
    const Array dense = a.to_dense();
    float values[6];
    ASSERT_EQ(dense.size, sizeof values);
    std::memcpy(values, dense.data.get(), sizeof values);
    for (int i = 0; i < 6; ++i) EXPECT_EQ(values[i], static_cast<float>(i) / 4) << name;
  }
}

TEST(Gguf, ATypeThatNobodyKnowsIsOneUnsupportedTensor) {
  EXPECT_TRUE(walk(bytes_of_case("unknown-type")).report.valid());
  const Model model = walk(bytes_of_case("unknown-type")).model;
  EXPECT_EQ(model.size(), 2U);
  const Tensor a = model["a"], b = model["b"];
  ASSERT_NE(b.unsupported(), nullptr);
  EXPECT_EQ(b.unsupported()->rule, "gguf/unknown-type");
  EXPECT_EQ(a.unsupported(), nullptr);
  EXPECT_EQ(model["a"].to_dense().size, 24U);
}

// The kinds of files that llama.cpp's tests/test-gguf.cpp makes by hand, and the case of the corpus for each.
TEST(Gguf, EveryKindOfFileThatLlamaCppTestsIsACase) {
  enum class Does { refuse, warn, list, open };  // list: the file opens, and the tensor is unsupported
  using enum Does;
  struct Kind {
    std::string_view theirs, ours;
    Does does;
  };
  constexpr Kind kKinds[] = {
      {"HEADER_BAD_MAGIC", "magic", refuse},
      {"HEADER_BAD_VERSION_0", "version-0", refuse},
      {"HEADER_BAD_VERSION_1", "version-1", refuse},
      {"HEADER_BAD_VERSION_FUTURE", "version-4", refuse},
      {"HEADER_BAD_N_TENSORS", "tensor-count-of-all-ones", refuse},
      {"HEADER_BAD_N_KV", "value-count-of-all-ones", refuse},
      {"HEADER_EMPTY", "valid-empty", open},
      {"KV_BAD_KEY_SIZE", "length-of-key", refuse},
      {"KV_EMPTY_KEY", "empty-key", warn},  // llama.cpp refuses it, the package gguf opens it (U2)
      {"KV_BAD_TYPE", "value-type", refuse},
      {"KV_DUPLICATE_KEY", "duplicate-key", refuse},
      {"KV_BAD_ALIGN", "alignment-value", refuse},
      {"KV_WRONG_TYPE_ALIGN", "alignment-type-with-sign", refuse},
      {"KV_SUCCESS", "valid-values", open},
      {"TENSORS_BAD_NAME_SIZE", "name-length", warn},  // a limit of llama.cpp's memory, not of the format (U6)
      {"TENSORS_BAD_N_DIMS", "rank", refuse},
      {"TENSORS_BAD_SHAPE", "dimension", refuse},
      {"TENSORS_ZERO_DIM", "valid-scalar-and-empty", open},
      {"TENSORS_NE_TOO_BIG", "size-overflow", refuse},
      {"TENSORS_NBYTES_TOO_BIG", "size-overflow-of-bytes", refuse},
      {"TENSORS_BAD_TYPE", "unknown-type", list},  // newer types are no reason to refuse the others (U9)
      {"TENSORS_BAD_OFFSET", "offset-alignment", refuse},
      {"TENSORS_DUPLICATE_NAME", "duplicate-name", refuse},
      {"TENSORS_BAD_ALIGN", "alignment-value", refuse},
      {"TENSORS_INCONSISTENT_ALIGN", "offset-alignment", refuse},
      {"TENSORS_SUCCESS", "valid-two-tensors", open},
      {"TENSORS_CUSTOM_ALIGN", "valid-alignment-of-1", open},
      {"DATA_NOT_ENOUGH_DATA", "truncated", refuse},
      {"DATA_BAD_ALIGN", "alignment-value", refuse},
      {"DATA_INCONSISTENT_ALIGN", "offset-alignment", refuse},
      {"DATA_MEM_SIZE_OVERFLOW", "truncated-sizes-near-2-64", refuse},
      {"DATA_SUCCESS", "valid-no-padding-at-the-end", open},
      {"DATA_CUSTOM_ALIGN", "valid-alignment", open},
  };
  EXPECT_EQ(std::size(kKinds), 33U);
  for (const Kind& kind : kKinds) {
    const test::Outcome out = walk(bytes_of_case(kind.ours));
    EXPECT_EQ(out.report.valid(), kind.does != refuse) << kind.theirs;
    EXPECT_EQ(out.report.findings().empty(), kind.does == open) << kind.theirs;
    bool unsupported = false;
    for (const Tensor& tensor : out.model) unsupported |= tensor.unsupported() != nullptr;
    EXPECT_EQ(unsupported, kind.does == list) << kind.theirs;
  }
}

TEST(Gguf, AVocabularyIsReadOnce) {
  // 256,000 tokens, and 20 MB of data after them.
  std::string bytes(kMagic);
  const auto number = [&](auto value) { bytes.append(reinterpret_cast<const char*>(&value), sizeof value); };
  const auto text = [&](std::string_view value) {
    number(std::uint64_t{value.size()});
    bytes += value;
  };
  number(kVersion);
  number(std::uint64_t{0});
  number(std::uint64_t{1});
  text("tokenizer.ggml.tokens");
  number(std::uint32_t{9});
  number(std::uint32_t{8});
  number(std::uint64_t{256'000});
  for (int i = 0; i < 256'000; ++i) text("token " + std::to_string(i));
  const std::size_t header = bytes.size();
  bytes.resize(header + 20'000'000);
  const auto source = std::make_shared<Counting>(std::move(bytes));
  Report report;
  core::Findings findings(report, core::Findings::Mode::all);
  core::Draft draft;
  draft.add_source(source);
  read(*source, {}, findings, draft);
  const Model model = draft.finish();
  EXPECT_EQ(model.attribute("tokenizer.ggml.tokens")->texts()->size(), 256'000U);
  EXPECT_LT(source->read, header + header / 3);
}

TEST(Gguf, DuplicateNamesTakeNoSquareOfTime) {
  std::string bytes(kMagic);
  const auto number = [&](auto value) { bytes.append(reinterpret_cast<const char*>(&value), sizeof value); };
  constexpr std::uint64_t kTensors = 200'000;
  number(kVersion);
  number(kTensors);
  number(std::uint64_t{0});
  for (std::uint64_t i = 0; i < kTensors; ++i) {
    number(std::uint64_t{1});
    bytes += "a";
    number(std::uint32_t{0});
    number(std::uint32_t{24});
    number(i * 32);
  }
  bytes.resize((bytes.size() + 31) / 32 * 32 + kTensors * 32);
  EXPECT_EQ(walk(std::move(bytes)).report.errors(), kTensors - 1);
}

TEST(Gguf, BlocksSayTheirTypeAsOtherContainersDo) {
  std::string file = bytes_of_case("valid-blocks");
  const Model model = walk(std::move(file)).model;
  const Tensor tensor = model["a"];
  ASSERT_NE(tensor.block_type(), nullptr);
  EXPECT_EQ(tensor.block_type()->id, "ggml.q8_0");
  EXPECT_EQ(tensor.attribute("type")->as_text(), "ggml.q8_0");
  EXPECT_EQ(tensor.dtype(), DType::f32);
  EXPECT_EQ(tensor.to_dense().size, 32 * sizeof(float));
}

}  // namespace
}  // namespace weighbridge::gguf
