// SPDX-License-Identifier: Apache-2.0
// The content digest against values that tests/interop/content_digest.py computed from README.md, and its
// documented properties.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <string>
#include <vector>

#include "codecs/checksum.h"
#include "codecs/codec.h"
#include "core/model/draft.h"
#include "support/last_call.h"
#include "weighbridge/hash.h"

namespace weighbridge {
namespace {

// Must equal the output of `python3 tests/interop/content_digest.py`; `--check` with this file compares them.
const std::map<std::string, std::string> kVectors = {
    {"tensor_f32", "wb2:831ff2094435bbccefebfdd0258b60c2b27098779faa9c31bfa675c94eb84f22"},
    {"tensor_boolean", "wb2:eb9b3453c1d8aea3e39e0cc58f40e914204c61ba113fdbbf292ec08d33b6baec"},
    {"tensor_scalar", "wb2:f5c8f52ee66982c92684b388c8b19fa6c75c8d59a57e01605aa92343aa716241"},
    {"tensor_empty", "wb2:1066eb090ea383608b97121d1241704fb77a3ce2e3e4c19a47dcb8095d27e058"},
    {"tensor_one_leaf", "wb2:15a5017ad11ed84584f15ea5ba22543ce69bb4895e382dd1310dd8320e654be1"},
    {"tensor_two_leaves", "wb2:bd581489d49ec3daa636ea63e73a081285f527fdd9193a29c5a63f60fb4142bd"},
    {"tensor_many_leaves", "wb2:3f1ee583f280cae6aa06928ebe91ab4ce1e604a599bd21dee64135a8a0165d41"},
    {"tensor_large", "wb2:98352a82d9140c5757ba6428d0a286dcdb1ecfd92528184acd49a460809db2e8"},
    {"tensor_six_bits", "wb2:93ebf52632ac3337a56222fed380095f13e3fc4218e7897394cbed7aa0a7a717"},
    {"tensor_csr", "wb2:c4a9608c3d0753e49bd1323015f0b7d87ab85b3a4a88b5e3223c7889981c5faa"},
    {"tensor_coo", "wb2:00fec636c19b2145e451b3ed3376509bba28f65713ea820e7dc1373c904fc856"},
    {"tensor_group", "wb2:99ef34ee6114764daf18589e0324030effc3aed0eab01ac973313a72b6f41879"},
    {"tensor_row", "wb2:17a26e614a18d109d33c0cad16eeebc380e54b02a2761f7297672a2b8e541d23"},
    {"tensor_block", "wb2:631035911299391af1ce139606eac79a9ace9682502e6accbbe1b3a4190ca43d"},
    {"model_empty", "wb2:8a9d30d124da395b1f221a5d379cd521d889e9858c542796627f1fdfad45f6fa"},
    {"model_every", "wb2:95fe57deab74b6cf842d20a86b5be08e1982f020356dda2f88814e93d992c2bd"},
    {"nameless_empty", "wb2:7e2b799342baa338005976df798411ce479150134bd84ca2328057d322b0431a"},
    {"nameless_every", "wb2:390cf46e0eda59d67ff50588958c11c73b4ae558dc627913c31d5b24d96eb416"},
    {"v1_tensor_f32", "4ad6279e2436b832b00bfc6a74507d45ecafe5251ab573dc1683295e2ffca694"},
    {"v1_tensor_boolean", "add5216abe0ff214fa6c5bd32883dc07e53a503584cc3d2dd820d05760c90f70"},
    {"v1_tensor_scalar", "e5105ffa3e783a1c8ed59cc16bea2ae1ebbfb0859448b2c7f9cd0a4df60e23c2"},
    {"v1_tensor_empty", "f78c9d29620a520c0d8e2468bbf0579c0e64d5a39dc28d21ac79c804471d7a9c"},
    {"v1_tensor_one_leaf", "4edebeeeab6773e4584c1ecd83ee9cb6219135eaf205c5f79a5896e29e44eebf"},
    {"v1_tensor_two_leaves", "25abfbf46b1a441e26fab0b4ffeeb7639f8944c95e64d98fb512c3b50b517d0f"},
    {"v1_tensor_many_leaves", "1164048aa1d83b165954aeb69cd44d71b4e85efc2a5372cadc433a6ccb73252e"},
    {"v1_tensor_large", "1b4ddd0d4df28bcee356d6c043c4514396e365f3958b37530cd34a512d02bdc0"},
    {"v1_tensor_six_bits", "5c6874a72a77c3c7a787752524fb359bdaca9adf437e5465e6ce0dbcc4d9d1dc"},
    {"v1_tensor_csr", "adf6a50e6128f2a9fee8c38851559da4a6048e8dfc63c06becc37ce50969ca40"},
    {"v1_tensor_coo", "5102dbc29f428da00c1838ca4a6a1c20dd90154ed786305db5a96ee334c62ba7"},
    {"v1_tensor_group", "046cd0c34fb1e4bcad1b76cc6d072b94b592fa1773c1a996f1b41f84b12f35a5"},
    {"v1_tensor_row", "84676f01819993932d4aa24eb247da09d7999c3993702b93b380e22d1670ec29"},
    {"v1_tensor_block", "e1545ac9f68e3b3b224fd667a9764f17b47aa58f8b5f985fef5a817399fafc6e"},
    {"v1_model_empty", "885e26b9a46f169819d9de7f3c7a5ddd319e00b83e6f9dad0e616a9bab62edc8"},
    {"v1_model_every", "f2da47071a86f5e56722354446e9f20723837ae297a6f681d7abe0a58ea70698"},
    {"v1_nameless_empty", "d6277de46560ff9a3c78bf44e2c7b468680ff1b6dd9c4d8cd3803fc1231ed719"},
    {"v1_nameless_every", "8d4a1ad096d766e02ace99fb2b23eb7dea30077e19e5cf1f65e07d7ede2b080e"},
};

using Parts = std::vector<PartSpec>;
using Dims = std::vector<std::uint64_t>;

Bytes keep(std::vector<std::byte> bytes) {
  const auto held = std::make_shared<const std::vector<std::byte>>(std::move(bytes));
  return {std::span(*held), held};
}

template <class T> Bytes values(std::vector<T> list) {
  std::vector<std::byte> bytes(list.size() * sizeof(T));
  if (!list.empty()) std::memcpy(bytes.data(), list.data(), bytes.size());
  return keep(std::move(bytes));
}

Bytes pattern(std::size_t size, std::size_t seed = 0) {
  std::vector<std::byte> bytes(size);
  for (std::size_t i = 0; i < size; ++i) bytes[i] = static_cast<std::byte>(i * 131 + i / 251 + seed);
  return keep(std::move(bytes));
}

void add_f32(Builder& b, const std::string& name) {
  b.tensor(name, DType::f32, {2, 3}, values<float>({0, 1, -2, 3.5F, -0.0F, 1e9F}));
}
void add_boolean(Builder& b, const std::string& name) {
  b.tensor(name, DType::boolean, {4}, values<std::uint8_t>({0, 1, 1, 0}));
}
void add_scalar(Builder& b, const std::string& name) { b.tensor(name, DType::i64, {}, values<std::int64_t>({-7})); }
void add_empty(Builder& b, const std::string& name) { b.tensor(name, DType::bf16, {0, 5}, Bytes{}); }
void add_one_leaf(Builder& b, const std::string& name) { b.tensor(name, DType::u8, {65536}, pattern(65536)); }
void add_two_leaves(Builder& b, const std::string& name) { b.tensor(name, DType::u8, {65537}, pattern(65537)); }
void add_many_leaves(Builder& b, const std::string& name) {
  b.tensor(name, DType::u16, {3, 500000}, pattern(3000000, 7));
}
void add_large(Builder& b, const std::string& name) { b.tensor(name, DType::f32, {1250, 1000}, pattern(5000000, 9)); }
void add_six_bits(Builder& b, const std::string& name) {
  b.tensor(name, DType::f6_e2m3, {4}, values<std::uint8_t>({1, 2, 3}));
}
// Rows and columns in any integer types; they count as u64.
void add_csr(Builder& b, const std::string& name) {
  b.object(name, Layout::sparse_csr, {2, 4}, {},
           {{"values", DType::f32, {3}, values<float>({1, 2, 3})},
            {"indices", DType::u16, {3}, values<std::uint16_t>({0, 3, 1})},
            {"indptr", DType::i32, {3}, values<std::int32_t>({0, 2, 3})}});
}
void add_coo(Builder& b, const std::string& name) {
  b.object(name, Layout::sparse_coo, {2, 2}, {},
           {{"values", DType::f16, {1}, values<std::uint16_t>({0x3e00})},
            {"coords", DType::u8, {2}, values<std::uint8_t>({1, 0})}});
}
void add_group(Builder& b, const std::string& name) {
  b.object(name, Layout::quantized_group, {8, 2},
           {{"bits", Value::integer(std::uint64_t{4})},
            {"group_size", Value::integer(std::uint64_t{4})},
            {"packing", Value::text("8_per_i32")},
            {"note", Value::text("does not count")}},
           {{"packed_weight", DType::i32, {2}, values<std::int32_t>({0x76543210, -1})},
            {"scales", DType::f16, {2, 2}, values<std::uint16_t>({0x3c00, 0x4000, 0x3800, 0x3400})},
            {"zeros", DType::f16, {2, 2}, values<std::uint16_t>({0x4800, 0x4800, 0x0000, 0x3c00})}});
}
void add_row(Builder& b, const std::string& name) {
  b.object(name, Layout::quantized_row, {2, 4},
           {{"type", Value::text("q8_0")}, {"block_size", Value::integer(std::uint64_t{4})}},
           {{"data", DType::i8, {2, 4}, values<std::uint8_t>({0, 1, 127, 129, 5, 250, 7, 8})},
            {"scales", DType::f32, {2}, values<float>({0.5F, 2})}});
}
void add_block(Builder& b, const std::string& name) {
  b.object(name, Layout::quantized_block, {2, 4},
           {{"type", Value::text("q4_0")}, {"block_size", Value::integer(std::uint64_t{2})}},
           {{"data", DType::u8, {4}, values<std::uint8_t>({0x10, 0x7f, 0x98, 0x2b})},
            {"scales", DType::f32, {2, 2}, values<float>({0.5F, 2, 1, 0.25F})}});
}

const std::map<std::string, void (*)(Builder&, const std::string&)> kTensors = {{"f32", add_f32},
                                                                                {"boolean", add_boolean},
                                                                                {"scalar", add_scalar},
                                                                                {"empty", add_empty},
                                                                                {"one_leaf", add_one_leaf},
                                                                                {"two_leaves", add_two_leaves},
                                                                                {"many_leaves", add_many_leaves},
                                                                                {"large", add_large},
                                                                                {"six_bits", add_six_bits},
                                                                                {"csr", add_csr},
                                                                                {"coo", add_coo},
                                                                                {"group", add_group},
                                                                                {"row", add_row},
                                                                                {"block", add_block}};

Model one(const std::string& which) {
  Builder builder;
  kTensors.at(which)(builder, "any name");
  return builder.build();
}

Model every() {
  Builder b;
  add_f32(b, "b");
  add_boolean(b, "a");
  add_scalar(b, "\xc3\xa9");
  add_empty(b, "");
  add_large(b, "z.large");
  add_csr(b, "Z");
  add_group(b, "q");
  b.attribute("note", Value::text("does not count"));
  return b.build();
}

Context with_threads(unsigned n) {
  Context context;
  context.executor = thread_executor(n);
  return context;
}

TEST(ContentDigest, EachTensorIsWhatTheDocumentGives) {
  for (const auto& [which, add] : kTensors) {
    const Model model = one(which);
    EXPECT_EQ(content_digest(model[0U]).text(), kVectors.at("tensor_" + which)) << which;
    EXPECT_EQ(content_digest(model[0U], {}, 1).text(), kVectors.at("v1_tensor_" + which)) << which;
  }
}

TEST(ContentDigest, ModelsAreWhatTheDocumentGives) {
  EXPECT_EQ(content_digest(Model{}).text(), kVectors.at("model_empty"));
  EXPECT_EQ(content_digest(Model{}, {}, false).text(), kVectors.at("nameless_empty"));
  EXPECT_EQ(content_digest(every()).text(), kVectors.at("model_every"));
  EXPECT_EQ(content_digest(every(), {}, false).text(), kVectors.at("nameless_every"));
  EXPECT_EQ(content_digest(Model{}, {}, true, 1).text(), kVectors.at("v1_model_empty"));
  EXPECT_EQ(content_digest(Model{}, {}, false, 1).text(), kVectors.at("v1_nameless_empty"));
  EXPECT_EQ(content_digest(every(), {}, true, 1).text(), kVectors.at("v1_model_every"));
  EXPECT_EQ(content_digest(every(), {}, false, 1).text(), kVectors.at("v1_nameless_every"));
  for (const std::uint32_t version : {0U, 3U}) {
    EXPECT_THROW(content_digest(every(), {}, true, version), Error);
    const Model model = every();
    EXPECT_THROW(content_digest(model[0U], {}, version), Error);
  }
}

TEST(ContentDigest, TextIsReadBackAndNoOtherIs) {
  for (const auto& [unused, text] : kVectors) {
    const auto read = parse_digest(text);
    ASSERT_TRUE(read) << text;
    EXPECT_EQ(read->text(), text);
    EXPECT_EQ(read->version, text.starts_with("wb2:") ? 2U : 1U);
  }
  const std::string digits = kVectors.at("v1_model_every");
  EXPECT_NE(parse_digest(digits), parse_digest("wb2:" + digits));
  for (const std::string& other :
       {std::string(), std::string("wb2:"), digits + "0", digits.substr(1), "wb1:" + digits, "wb3:" + digits,
        "WB2:" + digits, "wb2: " + digits, "A" + digits.substr(1), "g" + digits.substr(1), "wb2:wb2:" + digits})
    EXPECT_EQ(parse_digest(other), std::nullopt) << other;
}

TEST(ContentDigest, AnUnknownBlockTypeHasNoneOfVersion2) {
  const auto of_type = [](const char* type) {
    Builder builder;
    builder.object("r", Layout::quantized_row, {1, 4},
                   {{"type", Value::text(type)}, {"block_size", Value::integer(std::uint64_t{4})}},
                   {{"data", DType::i8, {1, 4}, pattern(4)}, {"scales", DType::f32, {1}, values<float>({1})}});
    return builder.build();
  };
  const Model known = of_type("q8_0"), unknown = of_type("ggml.q8_0");
  const Tensor one = known[0U], other = unknown[0U];
  EXPECT_EQ(one.block_type(), find_block_type("slm.q8_0"));
  EXPECT_EQ(other.block_type(), nullptr);
  EXPECT_EQ(other.type_name(), "ggml.q8_0");
  EXPECT_NO_THROW(content_digest(unknown, {}, true, 1));
  try {
    content_digest(unknown);
    FAIL() << "no error";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), Kind::unsupported);
    EXPECT_EQ(error.finding().rule, "unsupported/quantization");
  }
}

TEST(ContentDigest, DoesNotDependOnThreads) {
  for (const unsigned threads : {2U, 3U, 8U})
    EXPECT_EQ(content_digest(every(), with_threads(threads)).text(), kVectors.at("model_every"));
}

TEST(ContentDigest, BytesOfOtherOrderAndUntidyBoolsCountAsTheirValues) {
  core::Draft draft;
  const std::uint32_t big =
      draft.add_source(memory_source(values<std::uint8_t>({0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xf9})));
  const std::uint32_t bools = draft.add_source(memory_source(values<std::uint8_t>({0, 1, 255, 0})));
  draft.add_tensor("scalar", Layout::dense, DType::i64, {});
  draft.part(draft.add_part("data", DType::i64, {}, Encoding::raw, {big, 0, 8}, 8)).order(Order::big);
  const Dims four{4};
  draft.add_tensor("boolean", Layout::dense, DType::boolean, four);
  draft.add_part("data", DType::boolean, four, Encoding::raw, {bools, 0, 4}, 4);
  const Model model = draft.finish();
  EXPECT_EQ(content_digest(model["scalar"]).text(), kVectors.at("tensor_scalar"));
  EXPECT_EQ(content_digest(model["boolean"]).text(), kVectors.at("tensor_boolean"));
}

TEST(ContentDigest, CompressionAndCallbacksDoNotShow) {
  const Bytes plain = pattern(5000000, 9);
  const std::vector<std::byte> frame = codecs::encode(codecs::kZstd, plain.span);
  core::Draft draft;
  const Dims dims{1250, 1000};
  const std::uint64_t stored = frame.size();
  draft.add_tensor("t", Layout::dense, DType::f32, dims);
  draft.add_part("data", DType::f32, dims, Encoding::zstd,
                 {draft.add_source(memory_source(keep(std::move(frame)))), 0, stored}, 5000000);
  const Model compressed = draft.finish();
  EXPECT_EQ(content_digest(compressed[0U], with_threads(2)).text(), kVectors.at("tensor_large"));

  Builder builder;
  builder.tensor("t", DType::f32, dims, [&](std::uint64_t offset, std::span<std::byte> out) {
    const auto left = plain.span.subspan(static_cast<std::size_t>(offset));
    const std::size_t n = std::min({left.size(), out.size(), std::size_t{70001}});
    std::copy_n(left.begin(), n, out.begin());
    return n;
  });
  const Model computed = builder.build();
  EXPECT_EQ(content_digest(computed[0U]).text(), kVectors.at("tensor_large"));
}

TEST(ContentDigest, NamesCountOnlyWhereTheyAreAskedFor) {
  Builder a, b;
  add_f32(a, "x");
  add_scalar(a, "y");
  add_scalar(b, "x");
  add_f32(b, "y");
  const Model first = a.build(), second = b.build();
  EXPECT_NE(content_digest(first), content_digest(second));
  EXPECT_EQ(content_digest(first, {}, false), content_digest(second, {}, false));
}

TEST(ContentDigest, ShapeAndTypeCount) {
  Builder builder;
  builder.tensor("a", DType::u8, {2, 3}, pattern(6));
  builder.tensor("b", DType::u8, {3, 2}, pattern(6));
  builder.tensor("c", DType::i8, {2, 3}, pattern(6));
  builder.tensor("d", DType::u8, {2, 3}, pattern(6, 1));
  const Model model = builder.build();
  for (const char* other : {"b", "c", "d"})
    EXPECT_NE(content_digest(model["a"]), content_digest(model[other])) << other;
}

TEST(ContentDigest, QuantizationParametersCount) {
  const auto digest_with_bits = [](std::uint64_t bits) {
    Builder builder;
    builder.object("q", Layout::quantized_group, {1}, {{"bits", Value::integer(bits)}},
                   {{"packed_weight", DType::u8, {1}, pattern(1)}});
    return content_digest(builder.build(), {}, false);
  };
  EXPECT_NE(digest_with_bits(4), digest_with_bits(8));
}

TEST(ContentDigest, ThousandsOfSmallTensorsEqualTheSameOneByOne) {
  Builder builder;
  for (std::uint32_t i = 0; i < 5000; ++i)
    builder.tensor("t" + std::to_string(i), DType::u8, {i % 300}, pattern(i % 300, i));
  const Model model = builder.build();
  std::vector<Digest> nodes;
  for (std::uint32_t i = 0; i < model.size(); ++i) nodes.push_back(content_digest(model[i]));
  std::ranges::sort(nodes, {}, &Digest::bytes);
  codecs::Sha256 root;
  const std::uint64_t count = nodes.size();
  root.update(std::as_bytes(std::span("wbdig2.N", 8)));
  root.update(std::as_bytes(std::span(&count, 1)));
  for (const Digest& node : nodes) root.update(node.bytes);
  EXPECT_EQ(content_digest(model, with_threads(2), false).bytes, root.finish());
}

// H(tag, body) of the document, with the body built field by field.
class Body {
 public:
  explicit Body(std::string_view tag) { raw(std::as_bytes(std::span(tag))); }
  Body& raw(std::span<const std::byte> data) {
    bytes_.insert(bytes_.end(), data.begin(), data.end());
    return *this;
  }
  Body& u64(std::uint64_t value) { return raw(std::as_bytes(std::span(&value, 1))); }
  Body& text(std::string_view value) { return u64(value.size()).raw(std::as_bytes(std::span(value))); }
  codecs::Digest256 digest() const { return codecs::sha256(bytes_); }

 private:
  std::vector<std::byte> bytes_;
};

codecs::Digest256 digest_of_u8(std::span<const std::byte> data) {
  const std::uint64_t size = data.size();
  Body part("wbdig2.P");
  part.text("data").text("u8").u64(1).u64(size).u64(size).u64((size + 65535) / 65536);
  for (; !data.empty(); data = data.subspan(std::min<std::size_t>(65536, data.size())))
    part.raw(Body("wbdig2.L").raw(data.first(std::min<std::size_t>(65536, data.size()))).digest());
  return Body("wbdig2.T").text("dense").text("u8").u64(1).u64(size).u64(0).u64(1).raw(part.digest()).digest();
}

TEST(ContentDigest, TensorsAroundTheBordersOfLeavesReadsAndChunksAreWhatTheDocumentGives) {
  constexpr std::size_t kLeaf = 65536;
  Builder builder;
  std::vector<codecs::Digest256> expected;
  for (const std::size_t around : {kLeaf, 2 * kLeaf, 7 * kLeaf, 8 * kLeaf, 16 * kLeaf, 24 * kLeaf, 64 * kLeaf})
    for (const std::size_t size : {around - 1, around, around + 1, around / 3}) {
      const Bytes data = pattern(size, expected.size());
      builder.tensor("t" + std::to_string(100 + expected.size()), DType::u8, {size}, data);
      expected.push_back(digest_of_u8(data.span));
    }
  const Model model = builder.build();
  ASSERT_EQ(model.size(), expected.size());
  for (std::uint32_t i = 0; i < model.size(); ++i)
    EXPECT_EQ(content_digest(model[i]).bytes, expected[i]) << model[i].main().size();
  std::ranges::sort(expected);
  Body root("wbdig2.N");
  root.u64(expected.size());
  for (const codecs::Digest256& node : expected) root.raw(node);
  for (const unsigned threads : {1U, 2U, 5U})
    EXPECT_EQ(content_digest(model, with_threads(threads), false).bytes, root.digest()) << threads;
}

TEST(ContentDigest, RefusesATensorThatCannotBeInterpreted) {
  core::Draft draft;
  const Dims dims{3};
  const std::uint32_t t = draft.add_tensor("w", Layout::dense, DType::unknown, dims);
  draft.add_part("data", DType::unknown, dims, Encoding::raw, {draft.add_source(memory_source(pattern(3))), 0, 3}, 3);
  Finding why;
  why.rule = "test/dtype";
  why.kind = Kind::unsupported;
  why.severity = Severity::unsupported;
  why.message = "the dtype is unknown";
  draft.tensor(t).unsupported(why);
  const Model model = draft.finish();
  try {
    content_digest(model);
    FAIL() << "no error";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), Kind::unsupported);
    EXPECT_EQ(error.finding().rule, "test/dtype");
  }
}

TEST(ContentDigest, ProgressReachesTheTotalAndCanStop) {
  Context context = with_threads(2);
  std::uint64_t last = 0, total = 0;
  context.progress = [&](std::uint64_t done, std::uint64_t all) {
    EXPECT_GE(done, last);
    last = done;
    total = all;
    return true;
  };
  content_digest(every(), context);
  EXPECT_EQ(last, total);
  EXPECT_GT(total, 5000000U);
  context.progress = [](std::uint64_t, std::uint64_t) { return false; };
  EXPECT_THROW(content_digest(every(), context), Cancelled);
}

// The hook's "no" to the last report of a finished job threw its result away.
TEST(ContentDigest, ThatIsDoneIsReturnedWhateverTheHookSays) {
  std::uint64_t calls = 0;
  const auto job = [](const Context& context) { return content_digest(every(), context); };
  const Context context = test::stopped_at_the_last_call(job, calls);
  EXPECT_EQ(job(context), content_digest(every()));
  EXPECT_GT(calls, 1U);
  const auto source = memory_source(pattern(5'000'000, 3));
  const auto of_file = [&](const Context& given) { return file_sha256(*source, given); };
  const Context last = test::stopped_at_the_last_call(of_file, calls);
  EXPECT_EQ(of_file(last), file_sha256(*source));
  EXPECT_GT(calls, 1U);
}

TEST(FileSha256, IsThePlainDigestOfAllBytes) {
  for (const std::size_t size : {std::size_t{0}, std::size_t{1}, std::size_t{5000000}}) {
    const Bytes bytes = pattern(size, 3);
    const auto source = memory_source(bytes);
    EXPECT_EQ(file_sha256(*source).bytes, codecs::sha256(bytes.span)) << size;
    EXPECT_EQ(file_sha256(*source, with_threads(2)).bytes, codecs::sha256(bytes.span)) << size;
  }
}

// A small file can refer to one payload thousands of times.
class CountingSource : public Source {
 public:
  explicit CountingSource(std::vector<std::byte> bytes) : bytes_(std::move(bytes)) {}
  std::uint64_t size() const noexcept override { return bytes_.size(); }
  void read_at(std::uint64_t offset, std::span<std::byte> out) const override {
    read += out.size();
    std::copy_n(bytes_.begin() + static_cast<std::ptrdiff_t>(offset), out.size(), out.begin());
  }
  std::string_view name() const noexcept override { return "<counting>"; }
  mutable std::uint64_t read = 0;

 private:
  std::vector<std::byte> bytes_;
};

TEST(ContentDigest, APayloadThatManyTensorsNameIsReadOnce) {
  const std::vector<std::byte> payload(100'000, std::byte{7});
  const auto source = std::make_shared<CountingSource>(payload);
  core::Draft draft;
  Builder apart;
  const std::uint64_t shape[] = {payload.size()}, flat[] = {payload.size() / 4};
  for (int i = 0; i < 200; ++i) {
    const bool other = i == 100;  // the same bytes read another way are not a twin
    const auto at = draft.add_source(source);
    draft.add_tensor("w" + std::to_string(i), Layout::dense, other ? DType::f32 : DType::u8, other ? flat : shape);
    draft.add_part("data", other ? DType::f32 : DType::u8, other ? flat : shape, Encoding::raw, {at, 0, payload.size()},
                   payload.size());
    apart.tensor("w" + std::to_string(i), other ? DType::f32 : DType::u8, {other ? payload.size() / 4 : payload.size()},
                 {payload, nullptr});
  }
  const Model together = draft.finish();
  EXPECT_EQ(content_digest(together).hex(), content_digest(apart.build()).hex());
  EXPECT_LE(source->read, 3 * payload.size());
}

}  // namespace
}  // namespace weighbridge
