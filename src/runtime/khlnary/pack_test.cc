// SPDX-License-Identifier: Apache-2.0
// Packing a model into a module, and reading the same tensors back.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <set>

#include "io/abandon.h"
#include "support/temporary_folder.h"
#include "support/thrown.h"
#include "weighbridge/convert.h"
#include "weighbridge/khlnary.h"
#include "weighbridge/open.h"
#include "weighbridge/verify.h"

namespace weighbridge::khlnary {
namespace {

using test::read_file;
using test::TemporaryFolder;
using test::thrown;

Bytes counting(std::uint64_t size, std::uint64_t seed) {
  const auto bytes = std::make_shared<std::vector<std::byte>>(size);
  for (std::uint64_t i = 0; i < size; ++i) (*bytes)[i] = static_cast<std::byte>((i + seed) % 61);
  return {*bytes, bytes};
}

// Tensors t0, t1, ... of all ranks that STB supports, some above 3.
Model a_model(std::uint32_t tensors, DType dtype = DType::f32) {
  Builder builder;
  builder.attribute("made by", Value::text("a test"));
  for (std::uint32_t i = 0; i < tensors; ++i) {
    std::vector<std::uint64_t> shape(i % 9, 1);
    if (!shape.empty()) shape.back() = 1 + i % 3;
    const std::uint64_t count = shape.empty() ? 1 : shape.back();
    builder.tensor("t" + std::to_string(i), dtype, shape, counting(*packed_size(dtype, count), i));
  }
  return builder.build();
}

std::string bytes_of(const Tensor& tensor) {
  std::string out;
  tensor.main().stream({}, [&](std::span<const std::byte> piece) {
    out.append(reinterpret_cast<const char*>(piece.data()), piece.size());
    return true;
  });
  return out;
}

TEST(Pack, AbandonedLeavesNoFolder) {
  const TemporaryFolder folder;
  const Model model = a_model(3);
  const pid_t child = ::fork();
  if (child == 0) {
    Context context;
    context.progress = [&](std::uint64_t, std::uint64_t) {
      if (!std::filesystem::exists(folder / "out")) return true;
      io::abandon_all();
      ::_exit(std::filesystem::exists(folder / "out") ? 1 : 0);
      return false;
    };
    pack(model, folder / "out", "m", {}, context);
    ::_exit(2);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
}

TEST(Pack, RunsAndHoldsTheSameTensors) {
  for (const std::uint32_t count : {0U, 1U, 16U, 17U, 103U, 256U}) {
    SCOPED_TRACE(count);
    const TemporaryFolder folder;
    const Model model = a_model(count);
    const Packed packed = pack(model, folder / "out", "m");
    EXPECT_EQ(packed.tensors, count);
    EXPECT_EQ(packed.files.size(), (count + 15) / 16);
    EXPECT_EQ(packed.left_out, std::vector<std::string>{"attribute made by"});
    const auto source = open_file(packed.module);
    EXPECT_EQ(khlnary::verify(source).total(), 0U);
    const Result result = run(Module::open(source));
    EXPECT_EQ(result.steps, count == 0 ? 2 : count + 1);
    ASSERT_EQ(result.loaded.size(), count);
    for (std::uint32_t i = 0; i < count; ++i) {
      const Tensor& tensor = result.loaded[i].tensor;
      const Tensor from = model[i];
      ASSERT_EQ(tensor.name(), from.name());
      ASSERT_TRUE(std::ranges::equal(tensor.shape(), from.shape()));
      ASSERT_EQ(bytes_of(tensor), bytes_of(from));
    }
    // Each file also opens alone, with names and shapes.
    for (std::size_t k = 0; k < packed.files.size(); ++k) {
      const Verdict verdict = weighbridge::verify(open_file(packed.files[k]));
      EXPECT_EQ(verdict.report.total(), 0U);
      EXPECT_EQ(verdict.model.name(0), "t" + std::to_string(16 * k));
    }
  }
}

// Loses the attribute.
void save_as_stb(const Model& model, const std::string& path) {
  Options options;
  options.allow = {LossKind::attribute};
  save(model, path, options);
}

void expect_packed(const Packed& packed, const std::vector<Tensor>& tensors) {
  const auto source = open_file(packed.module);
  EXPECT_EQ(khlnary::verify(source).total(), 0U);
  const Result result = run(Module::open(source));
  ASSERT_EQ(result.loaded.size(), tensors.size());
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    const Tensor& loaded = result.loaded[i].tensor;
    ASSERT_EQ(loaded.name(), tensors[i].name());
    ASSERT_TRUE(std::ranges::equal(loaded.shape(), tensors[i].shape()));
    ASSERT_EQ(bytes_of(loaded), bytes_of(tensors[i]));
  }
  for (const std::string& file : packed.files)
    EXPECT_EQ(weighbridge::verify(open_file(file)).report.total(), 0U) << file;
}

std::vector<Tensor> tensors_of(const Model& model) {
  std::vector<Tensor> out;
  for (std::uint32_t i = 0; i < model.size(); ++i) out.push_back(model[i]);
  return out;
}

TEST(Pack, TheIdsOfAnStbSourceGiveWayToThoseOfEachPart) {
  for (const std::uint32_t count : {17U, 40U, 256U}) {
    SCOPED_TRACE(count);
    const TemporaryFolder folder;
    save_as_stb(a_model(count), folder / "source.stb");
    const Model source = open(open_file(folder / "source.stb"));
    ASSERT_EQ(source[16].id(), 16U);
    expect_packed(pack(source, folder / "out", "m"), tensors_of(source));
  }
}

TEST(Pack, AnStbSourceMayBeginWithWhatIsLeftOut) {
  const TemporaryFolder folder;
  save_as_stb(a_model(9), folder / "source.stb");
  const Model source = open(open_file(folder / "source.stb"));
  PackOptions options;
  options.without = {"t0"};
  std::vector<Tensor> tensors = tensors_of(source);
  tensors.erase(tensors.begin());
  expect_packed(pack(source, folder / "out", "m", options), tensors);
  options.without.push_back("t99");
  const Finding unmatched = test::thrown([&] { pack(source, folder / "other", "m", options); });
  EXPECT_EQ(unmatched.rule, "misuse/nothing-matches");
  EXPECT_EQ(unmatched.message, "no tensor matches 't99'");
}

TEST(Pack, AnStbSourceMayHaveItsIdsInAnotherOrder) {
  const TemporaryFolder folder;
  save_as_stb(a_model(9), folder / "forth.stb");
  const Model forth = open(open_file(folder / "forth.stb"));
  Builder builder;
  for (std::uint32_t i = forth.size(); i-- > 0;) builder.tensor(std::string(forth.name(i)), forth[i]);
  save(builder.build(), folder / "back.stb");
  const Model back = open(open_file(folder / "back.stb"));
  ASSERT_EQ(back[0].id(), 8U);
  expect_packed(pack(back, folder / "out", "m"), tensors_of(back));
}

TEST(Pack, TwiceGivesTheSameBytes) {
  const TemporaryFolder folder;
  const Packed one = pack(a_model(40), folder / "one", "m"), two = pack(a_model(40), folder / "two", "m");
  EXPECT_EQ(read_file(one.module), read_file(two.module));
  EXPECT_EQ(read_file(one.sidecar), read_file(two.sidecar));
  for (std::size_t k = 0; k < one.files.size(); ++k) EXPECT_EQ(read_file(one.files[k]), read_file(two.files[k]));
}

TEST(Pack, RefusesWhatDoesNotFit) {
  const TemporaryFolder folder;
  const Finding many = thrown([&] { pack(a_model(257), folder / "out", "m"); });
  EXPECT_EQ(many.rule, "khlnary/pack-too-many");
  EXPECT_EQ(many.found, "257");
  const Finding dtype = thrown([&] { pack(a_model(2, DType::i64), folder / "out", "m"); });
  EXPECT_EQ(dtype.rule, "khlnary/pack-tensor");
  EXPECT_NE(dtype.message.find("t0"), std::string::npos) << dtype.message;
  EXPECT_EQ(dtype.hint, (Hint{Hint::What::option, "without", ""}));
  EXPECT_EQ(thrown([&] { pack(a_model(2, DType::bf16), folder / "out", "m"); }).rule, "khlnary/pack-tensor");
  EXPECT_TRUE(folder.entries().empty());
  for (const std::string name : {"a/b", "a\\b", "\xff"})
    EXPECT_EQ(thrown([&] { pack(a_model(1), folder / "out", name); }).rule, "misuse/name");
}

TEST(Pack, CastsAndLeavesOutOnRequest) {
  const TemporaryFolder folder;
  PackOptions options;
  options.cast = DType::f32;
  options.without = {"?1"};
  const Packed packed = pack(a_model(3, DType::bf16), folder / "out", "m", options);
  EXPECT_EQ(packed.tensors, 2U);
  EXPECT_EQ(packed.left_out.front(), "tensor t1");
  const Result result = run(Module::open(open_file(packed.module)));
  EXPECT_EQ(result.loaded.back().tensor.dtype(), DType::f32);
  EXPECT_EQ(result.loaded.back().tensor.name(), "t2");
}

TEST(Pack, ReplacesOnlyWhenAsked) {
  const TemporaryFolder folder;
  pack(a_model(40), folder / "out", "m");
  EXPECT_EQ(thrown([&] { pack(a_model(1), folder / "out", "m"); }).rule, "misuse/output-exists");
  PackOptions options;
  options.replace = true;
  const Packed packed = pack(a_model(5), folder / "out", "m", options);
  EXPECT_EQ(run(Module::open(open_file(packed.module))).loaded.size(), 5U);
  std::set<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(folder / "out")) names.insert(entry.path().filename());
  EXPECT_EQ(names, (std::set<std::string>{"m.knu", "m.khm.json", "m-0.stb", "m-0.khm.json"}));
  const Model input = open(open_file(packed.files[0]));
  EXPECT_EQ(thrown([&] { pack(input, folder / "out", "m", options); }).rule, "misuse/output-is-input");
}

TEST(Pack, DoesNotReplaceTheSidecarOfItsInput) {
  const TemporaryFolder folder;
  save_as_stb(a_model(3), folder / "m.stb");
  const std::string before = read_file(folder / "m.khm.json");
  const Model input = open(open_file(folder / "m.stb"));
  PackOptions options;
  options.replace = true;
  EXPECT_EQ(thrown([&] { pack(input, folder.path(), "m", options); }).rule, "misuse/output-is-input");
  EXPECT_EQ(read_file(folder / "m.khm.json"), before);
  EXPECT_EQ(folder.entries(), (std::set<std::string>{"m.stb", "m.khm.json"}));
}

TEST(Pack, SaysWhatIsInTheWayOfItsFolder) {
  const TemporaryFolder folder;
  std::filesystem::create_symlink("nowhere", folder / "link");
  test::write_file(folder / "file", "a file");
  const auto refused = [&](const std::string& path) {
    const Finding finding = thrown([&] { pack(a_model(1), path, "m"); });
    EXPECT_EQ(finding.rule, "misuse/output-kind") << path;
    EXPECT_EQ(finding.file.name, path);
    return finding.message;
  };
  EXPECT_EQ(refused(folder / "link"), "cannot be written into: it is a broken symbolic link");
  EXPECT_EQ(refused(folder / "file"), "cannot be written into: it is not a folder");
  EXPECT_EQ(folder.entries(), (std::set<std::string>{"link", "file"}));
  std::filesystem::create_directory(folder / "nowhere");
  EXPECT_EQ(pack(a_model(1), folder / "link", "m").tensors, 1U);
}

}  // namespace
}  // namespace weighbridge::khlnary
