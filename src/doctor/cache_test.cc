// SPDX-License-Identifier: Apache-2.0
// Caches of the Hugging Face Hub: as hub lays them out, with the shared store of 2.4, and damaged.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <string>

#include "codecs/checksum.h"
#include "support/temporary_folder.h"
#include "weighbridge/doctor.h"

namespace weighbridge {
namespace {

namespace fs = std::filesystem;
using Folder = test::TemporaryFolder;
using State = CacheEntry::State;

std::string sha256_of(const std::string& bytes) {
  return codecs::to_hex(codecs::sha256(std::as_bytes(std::span(bytes))));
}
// git hash-object of "hello\n".
constexpr std::string_view kHello = "ce013625030ba8dba906f756967f9e9ca394464a";

class Cache {
 public:
  Cache() {
    fs::create_directories(path("snapshots/0123"));
    fs::create_directories(path("blobs"));
  }
  std::string path(const std::string& name) const { return folder / ("hub/models--org--name/" + name); }
  std::string root() const { return folder / "hub"; }
  void blob(const std::string& name, const std::string& bytes) const {
    std::ofstream(path("blobs/" + name), std::ios::binary) << bytes;
  }
  void link(const std::string& file, const std::string& blob) const {
    fs::create_symlink("../../blobs/" + blob, path("snapshots/0123/" + file));
  }
  Folder folder;
};

TEST(HubCache, EveryBlobIsProvenByItsName) {
  const Cache cache;
  const std::string weights(100000, 'w'), digest = sha256_of(weights);
  cache.blob(digest, weights);
  cache.link("model.safetensors", digest);
  cache.blob(std::string(kHello), "hello\n");
  cache.link("config.json", std::string(kHello));
  ASSERT_TRUE(is_hub_cache(cache.root()));
  ASSERT_TRUE(is_hub_cache(cache.root() + "/models--org--name/"));
  for (const std::string& root : {cache.root(), cache.root() + "/models--org--name"}) {
    const CacheReport report = check_cache(root);
    EXPECT_TRUE(report.sound());
    EXPECT_EQ(report.of(State::sound), 2U);
    EXPECT_EQ(report.entries.size(), 2U);
    EXPECT_EQ(report.bytes, 100006U);
  }
  EXPECT_FALSE(is_hub_cache(cache.root() + "/models--org--name/blobs"));
}

TEST(HubCache, TheWorkingFolderIsRecognized) {
  const Cache cache;
  const fs::path before = fs::current_path();
  fs::current_path(cache.path("blobs/.."));
  EXPECT_TRUE(is_hub_cache("."));
  EXPECT_TRUE(check_cache(".").sound());
  EXPECT_TRUE(is_hub_cache(".."));
  fs::current_path(before);
}

TEST(HubCache, DamagedUnfinishedMissingAndStrayFilesAreNamed) {
  const Cache cache;
  const std::string weights(1000, 'w'), digest = sha256_of(weights), other = sha256_of("other");
  cache.blob(digest, weights.substr(1));
  cache.link("model.safetensors", digest);
  cache.blob(other, "other");
  cache.blob(sha256_of("x") + ".incomplete", "x");
  cache.blob("no-digest", "x");
  cache.link("gone.bin", std::string(64, '1'));
  const CacheReport report = check_cache(cache.root(), {.executor = thread_executor(2)});
  EXPECT_FALSE(report.sound());
  ASSERT_EQ(report.entries.size(), 5U);
  for (const State state : {State::damaged, State::unfinished, State::missing, State::stray, State::unknown})
    EXPECT_EQ(report.of(state), 1U) << name(state);
  const auto damaged = std::ranges::find(report.entries, State::damaged, &CacheEntry::state);
  EXPECT_EQ(damaged->path, "models--org--name/blobs/" + digest);
  EXPECT_EQ(damaged->used_by, "models--org--name/snapshots/0123/model.safetensors");
  EXPECT_EQ(damaged->found, sha256_of(weights.substr(1)));
}

// huggingface_hub 2.4 keeps the bytes of all repositories in one store.
TEST(HubCache, ABlobInTheSharedStoreHasTheDigestOfItsOwnName) {
  const Cache cache;
  const std::string weights(5000, 'w'), digest = sha256_of(weights), xet(64, 'e');
  fs::create_directories(cache.root() + "/blobs/ee");
  std::ofstream(cache.root() + "/blobs/ee/" + xet, std::ios::binary) << weights;
  fs::create_symlink("../../blobs/ee/" + xet, cache.path("blobs/" + digest));
  cache.link("model.safetensors", digest);
  EXPECT_EQ(check_cache(cache.root()).of(State::sound), 1U);
  // Of one repository too: the store is beside it.
  const std::string one = cache.root() + "/models--org--name";
  EXPECT_EQ(check_cache(one).of(State::sound), 1U);
  EXPECT_EQ(check_cache(one).entries.size(), 1U);
  std::ofstream(cache.root() + "/blobs/ee/" + xet, std::ios::binary) << "other";
  EXPECT_EQ(check_cache(one).of(State::damaged), 1U);
  fs::remove(cache.root() + "/blobs/ee/" + xet);
  EXPECT_EQ(check_cache(cache.root()).of(State::missing), 1U);
  EXPECT_EQ(check_cache(one).of(State::missing), 1U);
}

TEST(HubCache, WhatOnlyTheSharedStoreHasIsNamed) {
  const Cache cache;
  const std::string weights(5000, 'w'), digest = sha256_of(weights), xet(64, 'e'), unused = "ee" + std::string(62, 'a');
  for (const char* folder : {"/blobs/ee", "/blobs/.refs"}) fs::create_directories(cache.root() + folder);
  for (const std::string& name : {xet, unused, unused + ".incomplete"})
    std::ofstream(cache.root() + "/blobs/ee/" + name, std::ios::binary) << weights;
  std::ofstream(cache.root() + "/blobs/.refs/a") << "x";
  fs::create_symlink("../../blobs/ee/" + xet, cache.path("blobs/" + digest));
  cache.link("model.safetensors", digest);
  const CacheReport report = check_cache(cache.root());
  ASSERT_EQ(report.entries.size(), 3U);
  EXPECT_EQ(report.entries[0].path, "blobs/ee/" + unused);
  EXPECT_EQ(report.entries[0].state, State::unknown);
  EXPECT_EQ(report.entries[1].state, State::unfinished);
  EXPECT_EQ(report.entries[2].state, State::sound);
}

TEST(HubCache, ALinkOutOfTheCacheIsNotFollowed) {
  const Cache cache;
  std::ofstream(cache.folder / "secret") << "hello\n";
  fs::create_symlink(cache.folder / "secret", cache.path("blobs/" + std::string(kHello)));
  EXPECT_EQ(check_cache(cache.root()).of(State::unknown), 1U);
}

}  // namespace
}  // namespace weighbridge
