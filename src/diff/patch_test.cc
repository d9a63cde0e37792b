// SPDX-License-Identifier: Apache-2.0
// Patches that are made, written, read and applied: every bit of the result, whatever changes, and what is refused.
#include "weighbridge/delta.h"

#include <gtest/gtest.h>

#include <cstring>
#include <functional>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "delta/patch.h"
#include "support/temporary_folder.h"
#include "support/thrown.h"
#include "weighbridge/convert.h"
#include "weighbridge/hash.h"
#include "weighbridge/open.h"
#include "weighbridge/verify.h"

namespace weighbridge::delta {
namespace {

using test::TemporaryFolder;
using test::thrown;
using Data = std::vector<std::byte>;

Bytes held(Data data) {
  const auto keep = std::make_shared<const Data>(std::move(data));
  return {*keep, keep};
}
struct Named {
  std::string name;
  DType dtype;
  std::vector<std::uint64_t> shape;
  Data data;
};
Model model_of(const std::vector<Named>& tensors) {
  Builder builder;
  for (const Named& t : tensors) builder.tensor(t.name, t.dtype, t.shape, held(t.data));
  return builder.build();
}
Data random_data(std::size_t size, std::uint32_t seed) {
  std::mt19937 random(seed);
  Data out(size);
  for (std::byte& each : out) each = static_cast<std::byte>(random() & 1);  // also right for bools
  return out;
}
// Changes each unit of so many bytes with this probability.
Data changed(Data data, std::size_t width, double share, std::uint32_t seed) {
  std::mt19937 random(seed);
  std::uniform_real_distribution<double> draw(0, 1);
  for (std::size_t i = 0; i + width <= data.size(); i += width)
    if (draw(random) < share) data[i + random() % width] ^= std::byte{1};
  return data;
}

class Patches : public testing::Test {
 protected:
  // Made, written, checked and read again.
  Model made(const Model& base, const Model& result, const Context& context = {}) {
    const std::string path = folder_ / ("p" + std::to_string(++count_) + ".zt");
    return written(make_patch(base, result, {.scratch = path}, context), path);
  }
  Model written(const Model& patch, const std::string& path) {
    save(patch, path, {.encoding = "zstd", .replace = true});
    const Verdict verdict = verify(path);
    EXPECT_TRUE(verdict.report.valid()) << verdict.report.first_error()->message;
    EXPECT_EQ(verdict.report.total(), 0U);
    return open(path);
  }
  void expect_result(const Model& base, const std::vector<Model>& patches, const Model& result) {
    EXPECT_EQ(content_digest(patched(base, patches)), content_digest(result));
  }
  std::string scratch() { return folder_ / "scratch.zt"; }

  TemporaryFolder folder_;
  int count_ = 0;
};

TEST_F(Patches, GiveEveryBitOfTheResultForEveryDtypeShareAndLength) {
  for (const DTypeInfo& dtype : all_dtypes()) {
    std::vector<Named> a, b;
    for (const std::uint64_t n : {0U, 1U, 7U, 24U, 65536U * 3U + 5U})
      for (const double share : {0.0, 0.0001, 0.01, 0.3, 0.6, 1.0}) {
        const std::uint64_t elements = dtype.bits < 8 ? (n + 7) / 8 * 8 : n;
        const std::size_t size = static_cast<std::size_t>(*packed_size(dtype.dtype, elements));
        const std::string name = std::to_string(n) + " " + std::to_string(share);
        a.push_back({name, dtype.dtype, {elements}, random_data(size, static_cast<std::uint32_t>(n))});
        b.push_back(a.back());
        b.back().data = changed(a.back().data, std::max<std::size_t>(dtype.swap_bytes, 1), share, 7);
      }
    SCOPED_TRACE(dtype.name);
    const Model base = model_of(a), result = model_of(b);
    const Model patch = made(base, result, {.executor = thread_executor(2)});
    expect_result(base, {patch}, result);
    const Model back = written(reverse_patch(patch, {.scratch = scratch()}), folder_ / "back.zt");
    expect_result(result, {back}, base);
  }
}

TEST_F(Patches, HaveTheSameBytesWithAnyNumberOfThreads) {
  const Data data = random_data(9u << 20, 1);
  const Model base =
      model_of({{"w", DType::bf16, {9u << 19}, data}, {"small", DType::f32, {256}, random_data(1024, 2)}});
  const Model result = model_of(
      {{"w", DType::bf16, {9u << 19}, changed(data, 2, 0.02, 3)}, {"small", DType::f32, {256}, random_data(1024, 4)}});
  for (const unsigned threads : {1U, 2U, 5U}) {
    const std::string path = folder_ / (std::to_string(threads) + ".zt");
    save(make_patch(base, result, {.scratch = path}, {.executor = thread_executor(threads)}), path,
         {.encoding = "zstd"});
    EXPECT_EQ(test::read_file(path), test::read_file(folder_ / "1.zt"));
  }
}

TEST_F(Patches, CompareBitsSoThatSignsOfZeroAndNansAreSentOnceTheyDiffer) {
  const auto floats = [](std::vector<std::uint32_t> bits) {
    Data out(bits.size() * 4);
    std::memcpy(out.data(), bits.data(), out.size());
    return out;
  };
  const Model base = model_of({{"w", DType::f32, {4}, floats({0, 0x7FC00000, 0x7FC00000, 0x3F800000})}});
  const Model result = model_of({{"w", DType::f32, {4}, floats({0x80000000, 0x7FC00001, 0x7FC00000, 0x3F800000})}});
  const Model patch = made(base, result);
  EXPECT_EQ(patch_info(patch).differing, 4U) << "half of the elements differ, so that it is dense";
  expect_result(base, {patch}, result);
  EXPECT_EQ(patch_info(made(base, base)).changed, 0U) << "a NaN that stays is no change";
}

TEST_F(Patches, OfNothingAreLegal) {
  const Model base = model_of({{"w", DType::f32, {8}, random_data(32, 1)}});
  const Model patch = made(base, base);
  const PatchInfo info = patch_info(patch);
  EXPECT_EQ(info.base, info.result);
  EXPECT_EQ(info.tensors, 1U);
  expect_result(base, {patch}, base);
  expect_result(model_of({}), {made(model_of({}), model_of({}))}, model_of({}));
}

TEST_F(Patches, AddRemoveRenameResizeAndRecast) {
  const Data w = random_data(4096, 1);
  const Model base = model_of({{"kept", DType::f32, {8}, random_data(32, 2)},
                               {"gone", DType::f32, {8}, random_data(32, 3)},
                               {"old name", DType::f32, {1024}, w},
                               {"resized", DType::f32, {8}, random_data(32, 4)},
                               {"recast", DType::f32, {8}, random_data(32, 5)},
                               {"changed", DType::f32, {1024}, w}});
  const Model result = model_of({{"kept", DType::f32, {8}, random_data(32, 2)},
                                 {"new name", DType::f32, {1024}, w},
                                 {"resized", DType::f32, {16}, random_data(64, 4)},
                                 {"recast", DType::u32, {8}, random_data(32, 5)},
                                 {"new", DType::bf16, {3, 1}, random_data(6, 6)},
                                 {"changed", DType::f32, {1024}, changed(w, 4, 0.1, 9)}});
  const Model patch = made(base, result);
  const PatchInfo info = patch_info(patch);
  EXPECT_EQ(info.tensors, 6U);
  EXPECT_EQ(info.changed, 1U);
  EXPECT_EQ(info.added, 1U);
  EXPECT_EQ(info.removed, 1U);
  EXPECT_EQ(info.renamed, 1U);
  EXPECT_EQ(info.replaced, 2U);
  expect_result(base, {patch}, result);
  // Writing it said that the base has no tensor of the number of the added one.
  save(patched(base, {&patch, 1}), folder_ / "written.zt");
  EXPECT_EQ(content_digest(open(folder_ / "written.zt")), content_digest(result));
  EXPECT_EQ(thrown([&] { reverse_patch(patch, {.scratch = scratch()}); }).rule, "misuse/patch-reverse");
}

TEST_F(Patches, ApplyToAnyContainerWithTheContentDigestOfTheBase) {
  const Data data = random_data(3u << 20, 1);
  const Model a = model_of({{"w", DType::bf16, {3u << 19}, data}, {"norm", DType::f32, {16}, random_data(64, 2)}});
  const Model b = model_of(
      {{"w", DType::bf16, {3u << 19}, changed(data, 2, 0.01, 3)}, {"norm", DType::f32, {16}, random_data(64, 3)}});
  const Model patch = made(a, b);
  for (const std::string name : {"a.safetensors", "a.zt", "a.gguf", "a.zst.zt"}) {
    save(a, folder_ / name, {.allow = {LossKind::attribute}, .encoding = name == "a.zst.zt" ? "zstd" : ""});
    const Model base = open(folder_ / name);
    expect_result(base, {patch}, b);
    // And through a writer, and made from such a file.
    const std::string out = folder_ / ("b-" + name);
    save(patched(base, {{patch}}), out);
    EXPECT_EQ(content_digest(open(out)), content_digest(b)) << name;
    expect_result(a, {made(base, open(out))}, b);
  }
}

TEST_F(Patches, RefuseAnotherBaseAndABrokenChain) {
  const Model a = model_of({{"w", DType::u8, {100}, random_data(100, 1)}}),
              b = model_of({{"w", DType::u8, {100}, random_data(100, 2)}}),
              c = model_of({{"w", DType::u8, {100}, random_data(100, 3)}});
  const std::vector<Model> ab{made(a, b)}, twice{ab[0], ab[0]}, chain{ab[0], made(b, c)};
  EXPECT_EQ(thrown([&] { patched(c, ab); }).rule, "misuse/patch-base");
  const Finding again = thrown([&] { patched(b, ab); });
  EXPECT_EQ(again.rule, "misuse/patch-base");
  EXPECT_NE(again.message.find("is the result already"), std::string::npos);
  EXPECT_EQ(thrown([&] { patched(a, twice); }).rule, "misuse/patch-chain");
  EXPECT_EQ(thrown([&] { patched(a, {}); }).rule, "misuse/patches");
  EXPECT_EQ(thrown([&] { patched(a, {{a}}); }).rule, "misuse/not-a-patch");
  expect_result(a, chain, c);
}

TEST_F(Patches, FoldIntoOneThatDoesTheSame) {
  for (const double share : {0.01, 0.2, 0.4, 0.9}) {
    SCOPED_TRACE(share);
    const std::size_t size = 5u << 20;
    std::vector<Model> models, patches;
    Data data = random_data(size, 1), other = random_data(64, 2);
    for (std::uint32_t step = 0; step < 4; ++step) {
      std::vector<Named> tensors{{"w", DType::bf16, {size / 2}, data}, {"o", DType::f32, {16}, other}};
      if (step >= 2) tensors[1].name = "renamed";
      models.push_back(model_of(tensors));
      if (step > 0) patches.push_back(made(models[step - 1], models[step]));
      data = changed(data, 2, share, step + 10);
      if (step == 2) other[3] ^= std::byte{1};
    }
    const Model folded = written(fold_patches(patches, {.scratch = scratch()}), folder_ / "folded.zt");
    expect_result(models[0], {folded}, models[3]);
    const Model direct = made(models[0], models[3]);
    EXPECT_EQ(patch_info(folded).result, patch_info(direct).result);
    EXPECT_EQ(patch_info(folded).differing, patch_info(direct).differing + 1)
        << "what is renamed and changed is stored as it is";
    const Model back = written(reverse_patch(folded, {.scratch = scratch()}), folder_ / "back.zt");
    expect_result(models[3], {back}, models[0]);
  }
}

TEST_F(Patches, FoldedWithTheirReverseChangeNothing) {
  const Data data = random_data(1u << 20, 1);
  const Model a = model_of({{"w", DType::f32, {1u << 18}, data}}),
              b = model_of({{"w", DType::f32, {1u << 18}, changed(data, 4, 0.3, 2)}});
  const Model there = made(a, b), back = written(reverse_patch(there, {.scratch = scratch()}), folder_ / "back.zt");
  const std::vector<Model> both{there, back};
  const Model none = written(fold_patches(both, {.scratch = scratch()}), folder_ / "none.zt");
  EXPECT_EQ(patch_info(none).changed, 0U);
}

TEST_F(Patches, ReadARangeOfTheResultWithoutTheRest) {
  const Data data = random_data(8u << 20, 1), after = changed(data, 2, 0.05, 2);
  const Model base = model_of({{"w", DType::bf16, {4096, 1024}, data}}),
              result = model_of({{"w", DType::bf16, {4096, 1024}, after}});
  const Model now = patched(base, {{made(base, result)}});
  for (const std::uint64_t row : {0U, 1023U, 1024U, 2047U, 4095U}) {
    Data out(2048);
    now[0].rows_into(row, 1, DType::bf16, out);
    EXPECT_EQ(std::memcmp(out.data(), after.data() + row * 2048, 2048), 0) << row;
  }
}

TEST_F(Patches, ChangeMetadataWithTheirTypes) {
  const auto with = [&](const std::string& name, std::vector<Value::Entry> attributes) {
    Builder builder;
    builder.tensor("w", DType::f32, {32}, held(random_data(128, 1)));
    for (auto& [key, value] : attributes) builder.attribute(key, value);
    save(builder.build(), folder_ / name);
    return open(folder_ / name);
  };
  const Model base = with("a.gguf", {{"n", Value::integer(std::uint64_t{3}, DType::u32)},
                                     {"gone", Value::text("x")},
                                     {"kept", Value::real(0.5, DType::f32)}});
  const Model result = with("b.gguf", {{"n", Value::integer(std::uint64_t{4}, DType::u32)},
                                       {"kept", Value::real(0.5, DType::f32)},
                                       {"new", Value::text("y")}});
  const Model patch = made(base, result);
  EXPECT_TRUE(patch_info(patch).replaces_metadata);
  const Model now = patched(base, {{patch}});
  EXPECT_EQ(*now.attribute("n"), Value::integer(std::uint64_t{4}, DType::u32));
  EXPECT_EQ(now.attribute("gone"), nullptr);
  EXPECT_EQ(*now.attribute("new"), Value::text("y"));
  EXPECT_FALSE(patch_info(make_patch(base, result, {.scratch = scratch(), .metadata = false})).replaces_metadata);
}

TEST_F(Patches, ThatAnotherToolEncodedAgainAreValidAndReportedAsSlower) {
  const Data data = random_data(5u << 20, 1);
  const Model base = model_of({{"w", DType::bf16, {5u << 19}, data}}),
              result = model_of({{"w", DType::bf16, {5u << 19}, changed(data, 2, 0.02, 2)}});
  const Model patch = made(base, result);
  for (const std::string encoding : {"raw", "zstd"}) {
    const std::string path = folder_ / (encoding + ".zt"), raw = folder_ / "raw.zt";
    save(encoding == "raw" ? patch : open(raw), path, {.encoding = encoding});
    const Verdict verdict = verify(path);
    EXPECT_TRUE(verdict.report.valid());
    ASSERT_EQ(verdict.report.total(), 1U);
    EXPECT_EQ(verdict.report.findings()[0].rule, "delta/reencoded");
    expect_result(base, {open(path)}, result);
  }
}

}  // namespace
}  // namespace weighbridge::delta
