// SPDX-License-Identifier: Apache-2.0
// Models of PyTorch and of Keras in shards, opened by their index: what a case of two files cannot show.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>

#include "support/hdf5_structures.h"
#include "support/temporary_folder.h"
#include "support/thrown.h"
#include "support/tiny_folders.h"
#include "weighbridge/open.h"
#include "weighbridge/verify.h"

namespace weighbridge {
namespace {

namespace fs = std::filesystem;
namespace build = hdf5::build;
using huggingface::testing::Files;
using huggingface::testing::write_files;
using test::rules_of;
using Rules = std::vector<std::string>;

std::string from_corpus(const std::string& name) {
  std::ifstream in("corpus/pytorch/" + name, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
}

const std::string kPickles = "pytorch_model.bin.index.json", kFirstPickle = "pytorch_model-00001-of-00002.bin",
                  kSecondPickle = "pytorch_model-00002-of-00002.bin";

// A shard with the tensor w, and its index.
Files pickles() {
  return {{kFirstPickle, from_corpus("valid-one.pt")}, {kPickles, R"({"weight_map":{"w":")" + kFirstPickle + "\"}}"}};
}

TEST(ShardedPyTorch, OpensByItsIndex) {
  const test::TemporaryFolder folder;
  write_files(folder.path(), pickles());
  for (const char* format : {"", "pytorch"}) {
    const Verdict verdict = verify(folder / kPickles, {}, {.format = format});
    EXPECT_EQ(rules_of(verdict.report), Rules{});
    EXPECT_EQ(verdict.format, "pytorch");
    ASSERT_EQ(verdict.model.size(), 1U);
    EXPECT_EQ(verdict.model.name(0), "w");
    EXPECT_EQ(verdict.model.sources().size(), 2U);
    EXPECT_EQ(verdict.model["w"].to_dense().size, 6U);
  }
  EXPECT_EQ(open(folder / kPickles).size(), 1U);
}

// The content rules look into each shard, and say which one it was.
TEST(ShardedPyTorch, EachShardIsCheckedForHarm) {
  const test::TemporaryFolder folder;
  Files files = pickles();
  files[kFirstPickle] = from_corpus("dangerous-global-not-called.pt");
  write_files(folder.path(), files);
  const Verdict verdict = verify(folder / kPickles);
  EXPECT_EQ(rules_of(verdict.report), Rules{"pytorch/dangerous-global"});
  EXPECT_EQ(fs::path(verdict.report.findings()[0].file.name).filename(), kFirstPickle);
}

TEST(ShardedPyTorch, ATensorIsInOneShard) {
  const test::TemporaryFolder folder;
  Files files = pickles();
  files[kSecondPickle] = files[kFirstPickle];
  files[kPickles] = R"({"weight_map":{"v":")" + kSecondPickle + R"(","w":")" + kFirstPickle + "\"}}";
  write_files(folder.path(), files);
  EXPECT_EQ(rules_of(verify(folder / kPickles).report), (Rules{"pytorch/tensor-missing", "pytorch/tensor-unlisted"}));
}

TEST(ShardedPyTorch, AShardThatLeadsOutIsRefused) {
  const test::TemporaryFolder root;
  write_files(root / "in", pickles());
  fs::rename(root / ("in/" + kFirstPickle), root / "outside");
  fs::create_symlink("../outside", root / ("in/" + kFirstPickle));
  EXPECT_EQ(rules_of(verify(root / ("in/" + kPickles)).report), Rules{"pytorch/shard-link"});
  EXPECT_EQ(test::thrown([&] { open(root / ("in/" + kPickles)); }).rule, "pytorch/shard-link");
}

TEST(ShardedPyTorch, OfMetadataThatDifferTheFirstCounts) {
  const test::TemporaryFolder folder;
  write_files(folder.path(),
              {{kFirstPickle, from_corpus("valid-metadata-one.pt")},
               {kSecondPickle, from_corpus("valid-metadata-two.pt")},
               {kPickles, R"({"weight_map":{"v":")" + kSecondPickle + R"(","w":")" + kFirstPickle + "\"}}"}});
  const Verdict verdict = verify(folder / kPickles);
  ASSERT_EQ(rules_of(verdict.report), Rules{"pytorch/metadata-conflict"});
  EXPECT_EQ(verdict.model.attribute("step")->as_u64(), 1U);
}

const std::string kWeights = "model.weights.json", kShards[] = {"model_00000.weights.h5", "model_00001.weights.h5"};

// layers/dense/vars/N, with an attribute of its layer.
std::string layer(const std::string& number, const std::string& kind = "dense", bool chunked = false) {
  build::Builder b;
  const std::uint64_t data =
      chunked ? b.dataset(build::dataspace({4}), build::f32(),
                          build::tree_layout(b, {4}, {{{0}, build::zlib(std::string(16, 'x')) + "broken"}}),
                          build::message(hdf5::Message::filters, build::filters({{hdf5::kDeflate}})))
              : b.simple();
  const std::uint64_t vars = b.group({build::link(number, data)});
  const std::uint64_t dense = b.group({build::link("vars", vars)}, build::text_attribute("name", kind));
  return b.finish(b.group({build::link("layers", b.group({build::link("dense", dense)}))}));
}

Files layers() {
  return {{kShards[0], layer("0")},
          {kShards[1], layer("1")},
          {kWeights, R"({"metadata":{"total_size":32.0},"weight_map":{"/layers/dense/vars":[")" + kShards[0] +
                         R"(",")" + kShards[1] + "\"]}}"}};
}

TEST(ShardedKeras, AGroupMayBeInSeveralFiles) {
  const test::TemporaryFolder folder;
  write_files(folder.path(), layers());
  const Verdict verdict = verify(folder / kWeights);
  EXPECT_EQ(rules_of(verdict.report), Rules{});
  EXPECT_EQ(verdict.format, "hdf5");
  ASSERT_EQ(verdict.model.size(), 2U);
  EXPECT_EQ(verdict.model.name(0), "layers/dense/vars/0");
  EXPECT_EQ(verdict.model.name(1), "layers/dense/vars/1");
  EXPECT_EQ(verdict.model.attribute("layers/dense@name")->as_text(), "dense");
}

// Keras before it wrote lists named the first file of a group only, and then did not find the rest of it.
TEST(ShardedKeras, AGroupThatGoesOnInAFileThatIsNotListedIsIncomplete) {
  const test::TemporaryFolder folder;
  Files files = layers();
  files[kWeights] = R"({"weight_map":{"/layers/dense/vars":")" + kShards[0] + R"(","/other":")" + kShards[1] + "\"}}";
  write_files(folder.path(), files);
  EXPECT_EQ(rules_of(verify(folder / kWeights).report), (Rules{"hdf5/group-missing", "hdf5/group-unlisted"}));
}

TEST(ShardedKeras, ADatasetIsInOneFile) {
  const test::TemporaryFolder folder;
  Files files = layers();
  files[kShards[1]] = layer("0");
  write_files(folder.path(), files);
  const Verdict verdict = verify(folder / kWeights);
  EXPECT_EQ(rules_of(verdict.report), Rules{"hdf5/dataset-twice"});
  EXPECT_EQ(verdict.model.size(), 1U);
  EXPECT_EQ(test::thrown([&] { open(folder / kWeights); }).rule, "hdf5/dataset-twice");
}

TEST(ShardedKeras, OfAttributesThatDifferTheFirstCounts) {
  const test::TemporaryFolder folder;
  Files files = layers();
  files[kShards[1]] = layer("1", "other");
  write_files(folder.path(), files);
  const Verdict verdict = verify(folder / kWeights);
  EXPECT_EQ(rules_of(verdict.report), Rules{"hdf5/metadata-conflict"});
  EXPECT_EQ(verdict.model.attribute("layers/dense@name")->as_text(), "dense");
}

TEST(ShardedKeras, AShardThatLeadsOutIsRefused) {
  const test::TemporaryFolder root;
  write_files(root / "in", layers());
  fs::rename(root / ("in/" + kShards[1]), root / "outside");
  fs::create_symlink("../outside", root / ("in/" + kShards[1]));
  EXPECT_EQ(rules_of(verify(root / ("in/" + kWeights)).report), Rules{"hdf5/shard-link"});
}

// The fault of a chunk was once reported in the index.
TEST(ShardedKeras, AChunkThatIsBrokenIsInItsOwnFile) {
  const test::TemporaryFolder folder;
  Files files = layers();
  files[kShards[1]] = layer("1", "dense", true);
  write_files(folder.path(), files);
  const Verdict verdict = verify(folder / kWeights);
  EXPECT_EQ(rules_of(verdict.report), Rules{"hdf5/deflate"});
  EXPECT_EQ(fs::path(verdict.report.findings()[0].file.name).filename(), kShards[1]);
}

}  // namespace
}  // namespace weighbridge
