// SPDX-License-Identifier: Apache-2.0
// What diagnose() says of each kind of damage, and what salvage() and trim() write. The files are those of the corpus.
#include "weighbridge/doctor.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <string>
#include <vector>

#include "doctor/damage.h"
#include "support/rounds.h"
#include "support/temporary_folder.h"
#include "support/thrown.h"
#include "weighbridge/open.h"

namespace weighbridge {
namespace {

namespace fs = std::filesystem;
using Folder = test::TemporaryFolder;
using What = Advice::What;

std::shared_ptr<const Source> source_of(const std::string& bytes, std::string name = "a.safetensors") {
  const auto kept = std::make_shared<const std::string>(bytes);
  return memory_source({std::as_bytes(std::span(*kept)), kept}, std::move(name));
}
Diagnosis of(const std::string& bytes, std::string name = "a.safetensors") {
  return diagnose(place_of(source_of(bytes, std::move(name))));
}

std::string random_bytes(std::size_t size) {
  std::mt19937 generator(7);
  std::string out(size, '\0');
  for (char& c : out) c = static_cast<char>(1 + generator() % 255);  // no zeros
  return out;
}

// A file of three tensors of 100,000 bytes: "a", "b", "c".
std::string three_tensors() {
  std::string header = "{";
  for (int i = 0; i < 3; ++i)
    header += std::string(i == 0 ? "" : ",") + "\"" + static_cast<char>('a' + i) +
              R"(":{"dtype":"U8","shape":[100000],"data_offsets":[)" + std::to_string(i * 100000) + "," +
              std::to_string((i + 1) * 100000) + "]}";
  header += "}";
  header.resize((header.size() + 7) / 8 * 8, ' ');
  std::string out(8, '\0');
  const std::uint64_t length = header.size();
  std::memcpy(out.data(), &length, 8);
  return out + header + random_bytes(300000);
}

std::vector<What> whats(const Diagnosis& d) {
  std::vector<What> out;
  for (const Advice& each : d.advice) out.push_back(each.what);
  return out;
}

TEST(Doctor, AWholeFileIsSound) {
  const Diagnosis d = of(three_tensors());
  EXPECT_EQ(d.condition, Condition::sound);
  EXPECT_EQ(d.tensors, 3U);
  EXPECT_EQ(d.whole, 3U);
  EXPECT_TRUE(d.advice.empty());
  EXPECT_EQ(d.what, "safetensors file, nothing is wrong with it");
}

TEST(Doctor, ATruncatedFileNamesTheTensorsThatAreLostAndTheBytesToFetch) {
  const std::string whole = three_tensors();
  const Diagnosis d = of(whole.substr(0, whole.size() - 150000));
  EXPECT_EQ(d.condition, Condition::incomplete);
  EXPECT_EQ(d.full_size, whole.size());
  EXPECT_EQ(d.tensors, 3U);
  EXPECT_EQ(d.whole, 1U);
  EXPECT_EQ(d.damaged, (std::vector<std::string>{"b", "c"}));
  ASSERT_EQ(whats(d), (std::vector<What>{What::fetch_rest, What::salvage}));
  EXPECT_EQ(d.advice[0], (Advice{What::fetch_rest, {}, whole.size() - 150000, whole.size()}));
  const Folder folder;
  salvage(d, folder / "out.safetensors");
  const Model back = open(folder / "out.safetensors");
  EXPECT_EQ(back.size(), 1U);
  EXPECT_TRUE(back.find("a"));
}

std::string read_whole(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

// Of archives, the first `size` bytes: each tensor that is said to be whole has the elements of the whole file.
void expect_whole_tensors(const std::string& bytes, const std::string& name, std::size_t minimum) {
  const Model all = of(bytes, name).verdict.model;
  std::size_t maximum = 0;
  for (std::size_t size = 512; size < bytes.size(); size += bytes.size() / 97 + 1) {
    const Diagnosis d = of(bytes.substr(0, size), name);
    EXPECT_EQ(d.condition, Condition::incomplete) << name << " " << size;
    EXPECT_EQ(d.whole_model.size(), d.whole) << name << " " << size;
    EXPECT_GE(d.whole, maximum) << name << " " << size;
    maximum = d.whole;
    for (const Tensor& tensor : d.whole_model) {
      const auto whole = all.find(tensor.name());
      ASSERT_TRUE(whole) << tensor.name();
      if (whole->unsupported()) continue;
      const Array a = whole->to_dense(whole->dtype()), b = tensor.to_dense(tensor.dtype());
      ASSERT_EQ(a.size, b.size);
      EXPECT_EQ(std::memcmp(a.data.get(), b.data.get(), a.size), 0) << tensor.name();
    }
  }
  EXPECT_GE(maximum, minimum) << name;
}

TEST(Doctor, AnArchiveWithoutItsDirectoryStillHasItsWholeMembers) {
  const Folder folder;
  const Model model = open(place_of(source_of(three_tensors())));
  Options deflated;
  deflated.encoding = "deflate";
  save(model, folder / "a.npz");
  save(model, folder / "b.npz", deflated);
  save(model, folder / "c.pt");
  for (const char* name : {"a.npz", "b.npz", "c.pt"}) expect_whole_tensors(read_whole(folder / name), name, 2);
}

// PyTorch states the sizes of a member after its data.
TEST(Doctor, AnArchiveOfPyTorchWithoutItsDirectoryStillHasItsWholeMembers) {
  const std::string path = "tests/interop/data/pytorch/dtypes.pt";
  if (!fs::exists(path)) GTEST_SKIP() << path << " is not beneath the working directory";
  expect_whole_tensors(read_whole(path), "dtypes.pt", 10);
}

// Each might be the end of a member; none states the size that the member then has.
TEST(Doctor, ManyFalseEndsOfAMemberCostOneReadOfTheFile) {
  std::string bytes("PK\x03\x04\x14\0\x08\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\x05\0\0\0a.npy", 35);
  for (int i = 0; i < (4 << 20); ++i) bytes += "PK\x07\x08";
  const Diagnosis d = of(bytes, "a.npz");
  EXPECT_EQ(d.condition, Condition::incomplete);
  EXPECT_EQ(d.whole, 0U);
}

// A few bytes can say that a file has a terabyte: a reader that reads zeros for them would never end.
TEST(Doctor, WhatIsMissingIsNotReadBeyondTheSizeOfWhatIsThere) {
  const std::string bytes = random_bytes(100);
  const doctor::Continued longer(source_of(bytes), {0, bytes.size()}, "", std::uint64_t{1} << 40);
  std::string out(1000, 'x');
  const auto read = [&](std::uint64_t at) { longer.read_at(at, std::as_writable_bytes(std::span(out))); };
  read(50);
  EXPECT_EQ(out, bytes.substr(50) + std::string(950, '\0'));
  for (int i = 0; i < 256; ++i) read(std::uint64_t{1} << 39);
  EXPECT_FALSE(longer.exhausted());
  const auto error = test::thrown([&] {
    for (int i = 0; i < 8; ++i) read(1000);
  });
  EXPECT_EQ(error.rule, "io/read");
  EXPECT_TRUE(longer.exhausted());
  out.resize(bytes.size());
  read(0);  // what is there can be read
  EXPECT_EQ(out, bytes);
}

// Readers look at the end of a file, and ahead: that must not count as reading what is missing.
TEST(Doctor, AShortFileWithAWholeIndexHasItsTensorsCounted) {
  const Folder folder;
  Builder builder;
  const std::string payload = random_bytes(400000);
  const auto kept = std::make_shared<const std::string>(payload);
  const auto bytes = std::as_bytes(std::span(*kept));
  builder.tensor("a", DType::f32, {50}, {bytes.first(200), kept});
  builder.tensor("b", DType::f32, {50}, {bytes.first(200), kept});
  builder.tensor("c", DType::f32, {100000}, {bytes, kept});
  save(builder.build(), folder / "m.gguf");
  const Diagnosis d = of(read_whole(folder / "m.gguf").substr(0, 1000), "m.gguf");
  EXPECT_EQ(d.condition, Condition::incomplete);
  EXPECT_EQ(d.tensors, 3U);
  EXPECT_EQ(d.whole, 2U);
}

// The advice is about the files that need it, not about the index or the first file, which are whole.
TEST(Doctor, ADamagedShardIsTheOneToFetch) {
  const Folder folder;
  const auto write = [&](const std::string& name, const std::string& bytes) {
    std::ofstream(folder / name, std::ios::binary) << bytes;
  };
  const std::string shard = three_tensors();
  write("model.safetensors.index.json",
        R"({"weight_map":{"a":"one.safetensors","b":"one.safetensors","c":"one.safetensors"}})");
  const auto diagnosed = [&](const std::string& bytes) {
    write("one.safetensors", bytes);
    return diagnose(folder / "model.safetensors.index.json");
  };
  EXPECT_EQ(diagnosed(shard).condition, Condition::sound);
  for (const auto& [bytes, condition] : {std::pair(shard.substr(0, shard.size() - 150000), Condition::incomplete),
                                         std::pair(shard + "more", Condition::damaged)}) {
    const Diagnosis d = diagnosed(bytes);
    EXPECT_EQ(d.condition, condition);
    EXPECT_EQ(d.tensors, 3U);
    std::vector<What> expected{What::fetch_again};
    if (condition == Condition::incomplete) expected.push_back(What::salvage);
    ASSERT_EQ(whats(d), expected);
    EXPECT_NE(d.advice[0].name.find("one.safetensors"), std::string::npos);
  }
  fs::remove(folder / "one.safetensors");
  EXPECT_EQ(whats(diagnose(folder / "model.safetensors.index.json")), (std::vector<What>{What::fetch_file}));
}

TEST(Doctor, ZerosAtTheEndAreASuspicionAndNameTheByteToFetchFrom) {
  std::string bytes = three_tensors();
  const std::size_t end = bytes.size() - 150000;
  std::fill(bytes.begin() + static_cast<std::ptrdiff_t>(end), bytes.end(), '\0');
  const Diagnosis d = of(bytes);
  EXPECT_EQ(d.condition, Condition::suspicious);
  EXPECT_EQ(d.whole, 3U);  // they may be meant to be zeros
  ASSERT_TRUE(d.zeros);
  EXPECT_GE(d.zeros->offset, end);
  EXPECT_LT(d.zeros->offset, end + 4096);
  ASSERT_EQ(whats(d), (std::vector<What>{What::compare, What::fetch_rest}));
  EXPECT_EQ(d.advice[1], (Advice{What::fetch_rest, {}, d.zeros->offset, bytes.size()}));
}

// Of two beginnings that are equal, the second is shown to be whole, or nothing is.
TEST(Doctor, ABeginningThatIsThereTwiceIsNamedOnlyWhereAllItsBytesAre) {
  const std::string whole = three_tensors();
  for (const std::size_t n : {9U, 40U, 64U, 100000U, 250000U}) {
    const Diagnosis d = of(whole.substr(0, n) + whole);
    ASSERT_TRUE(d.own) << n;
    EXPECT_EQ(*d.own, (ByteRange{n, whole.size()}));
    EXPECT_EQ(d.whole_model.size(), 3U);
  }
  std::string other = whole.substr(0, 100000) + whole;
  other[99999] ^= 1;  // the last byte before it
  EXPECT_EQ(of(other).what.find("begins again"), std::string::npos);
  const Diagnosis stopped = of(whole.substr(0, 100000) + whole.substr(0, 200000));
  EXPECT_FALSE(stopped.own);
  EXPECT_NE(stopped.what.find("begins again at byte 100000"), std::string::npos);
  EXPECT_EQ(whats(stopped).front(), What::fetch_again);
}

TEST(Doctor, ATensorOfZerosIsNoDamage) {
  std::string bytes = three_tensors();
  const auto at = [&](std::size_t from_end) { return bytes.end() - static_cast<std::ptrdiff_t>(from_end); };
  std::fill(at(200000), at(100000), '\0');  // "b", whole
  EXPECT_EQ(of(bytes).condition, Condition::sound);
  std::fill(at(100000), at(0), '\0');  // and "c": the file ends with both
  EXPECT_EQ(of(bytes).condition, Condition::suspicious);
}

TEST(Doctor, AHoleInsideATensorIsSuspicious) {
  std::string header = R"({"a":{"dtype":"U8","shape":[5000000],"data_offsets":[0,5000000]}})";
  header.resize((header.size() + 7) / 8 * 8, ' ');
  std::string bytes(8, '\0');
  const std::uint64_t length = header.size();
  std::memcpy(bytes.data(), &length, 8);
  bytes += header + random_bytes(5000000);
  std::fill(bytes.begin() + 1048576, bytes.begin() + 1048576 + 2097152, '\0');
  const Diagnosis d = of(bytes);
  EXPECT_EQ(d.condition, Condition::suspicious);
  EXPECT_EQ(d.zeros, (ByteRange{1048576, 2097152}));
  EXPECT_EQ(whats(d), (std::vector<What>{What::compare}));
}

TEST(Doctor, BytesBehindTheEndAreTrimmed) {
  const std::string whole = three_tensors();
  const Folder folder;
  std::ofstream(folder / "a.safetensors", std::ios::binary) << whole << "<html>";
  const Diagnosis d = diagnose(folder / "a.safetensors");
  EXPECT_EQ(d.condition, Condition::damaged);
  EXPECT_EQ(d.trailing, (ByteRange{whole.size(), 6}));
  EXPECT_EQ(whats(d), (std::vector<What>{What::trim}));
  trim(d, folder / "out.safetensors");
  std::ifstream in(folder / "out.safetensors", std::ios::binary);
  EXPECT_EQ(std::string(std::istreambuf_iterator<char>(in), {}), whole);
  EXPECT_EQ(test::thrown([&] { trim(d, folder / "out.safetensors"); }).rule, "misuse/output-exists");
  EXPECT_EQ(test::thrown([&] { trim(of(whole), folder / "other"); }).rule, "misuse/nothing-to-trim");
}

TEST(Doctor, APointerSaysWhatItStandsFor) {
  const std::string digest(64, 'a');
  const Diagnosis d =
      of("version https://git-lfs.github.com/spec/v1\noid sha256:" + digest + "\nsize 4096\n", "model.bin");
  EXPECT_EQ(d.condition, Condition::foreign);
  EXPECT_EQ(d.sha256, digest);
  EXPECT_EQ(d.full_size, 4096U);
  EXPECT_EQ(whats(d), (std::vector<What>{What::fetch_object}));
}

TEST(Doctor, ErrorPagesAreFetchedAgain) {
  for (const std::string_view text : {"Entry not found", "<!DOCTYPE html><html>", "<?xml version=\"1.0\"?><Error>"}) {
    const Diagnosis d = of(std::string(text));
    EXPECT_EQ(d.condition, Condition::foreign) << text;
    EXPECT_EQ(whats(d), (std::vector<What>{What::fetch_again})) << text;
  }
}

TEST(Doctor, TheProgramThatDecompressesIsNamed) {
  for (const auto& [bytes, program] :
       {std::pair("\x1f\x8b\x08 and more", "gzip"), std::pair("\x28\xb5\x2f\xfd and more", "zstd")}) {
    const Diagnosis found = of(bytes);
    ASSERT_EQ(found.advice.size(), 1U);
    EXPECT_EQ(found.advice[0].what, Advice::What::decompress);
    EXPECT_EQ(found.advice[0].name, program);
  }
}

TEST(Doctor, AnExtensionOfAnotherFormatIsNamed) {
  const Diagnosis d = of(three_tensors(), "model.gguf");
  EXPECT_EQ(d.condition, Condition::sound);
  EXPECT_EQ(d.named_like, "gguf");
  EXPECT_EQ(d.advice, (std::vector<Advice>{{What::rename, "safetensors"}}));
}

TEST(Doctor, MissingShardsAreNamed) {
  const Folder folder;
  std::ofstream(folder / "model.safetensors.index.json")
      << R"({"metadata":{},"weight_map":{"a":"x.safetensors","z":"y.safetensors"}})";
  std::ofstream(folder / "x.safetensors", std::ios::binary) << three_tensors();
  const Diagnosis d = diagnose(folder / "model.safetensors.index.json");
  EXPECT_EQ(d.condition, Condition::incomplete);
  EXPECT_EQ(d.missing, (std::vector<std::string>{"y.safetensors"}));
  EXPECT_EQ(d.advice[0], (Advice{What::fetch_file, "y.safetensors"}));
}

// Every valid file of the corpus, cut at every length up to 600 bytes and at 300 places of the rest: what remains is
// never called sound unless it is valid, what is called whole can be read, and nothing else is thrown.
TEST(Doctor, FilesCutAnywhereAreNeverCalledSound) {
  std::size_t files = 0, salvaged = 0;
  for (const auto& entry : fs::recursive_directory_iterator("corpus")) {
    const std::string name = entry.path().filename().string();
    if (!entry.is_regular_file() || (name.find("valid") == name.npos && !name.starts_with("ok-"))) continue;
    std::ifstream in(entry.path(), std::ios::binary);
    const std::string bytes(std::istreambuf_iterator<char>(in), {});
    if (bytes.size() > 20000 || !verify(source_of(bytes, name)).report.valid()) continue;
    ++files;
    const std::size_t step = std::max<std::size_t>(1, (bytes.size() - std::min<std::size_t>(bytes.size(), 600)) / 300);
    const std::size_t coarser = std::max(1U, 80 / test::rounds(16U));  // all of them took most of a minute
    for (std::size_t cut = 0; cut < bytes.size(); cut += (cut < 600 ? 1 : step) * coarser) {
      const std::string part = bytes.substr(0, cut);
      const Diagnosis d = of(part, name);
      SCOPED_TRACE(name + " cut at " + std::to_string(cut));
      ASSERT_EQ(d.verdict.report.valid(), d.condition == Condition::sound || d.condition == Condition::suspicious ||
                                              d.condition == Condition::unproven);
      ASSERT_LE(d.whole, d.tensors);
      if (d.condition != Condition::incomplete || d.whole == 0 || ++salvaged % 97 != 0) continue;
      const Folder folder;
      Options options;
      options.allow = {LossKind::tokenizer, LossKind::attribute, LossKind::alias};
      const std::string out = name.ends_with(".safetensors") ? "safetensors" : "zt";
      if (!plan(d.whole_model, out, options).possible()) continue;  // the tensors have no form in this format
      try {
        salvage(d, folder / ("out." + out), options);
      } catch (const Error& error) {
        ADD_FAILURE() << error.what();
        continue;
      }
      EXPECT_EQ(open(folder / *folder.entries().begin()).size(), d.whole);
    }
  }
  EXPECT_GT(files, 20U);
  EXPECT_GT(salvaged, 100U);
}

}  // namespace
}  // namespace weighbridge
