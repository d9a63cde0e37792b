// SPDX-License-Identifier: Apache-2.0
// Patches in place: each file becomes what a new one would be, byte by byte, or stays as it is; what a kill leaves, and
// what is refused.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "core/model/draft.h"
#include "edit/applying.h"
#include "io/journal.h"
#include "support/state_home.h"
#include "support/temporary_folder.h"
#include "support/thrown.h"
#include "weighbridge/delta.h"
#include "weighbridge/edit.h"
#include "weighbridge/open.h"
#include "weighbridge/verify.h"

namespace weighbridge {
namespace {

namespace fs = std::filesystem;
using test::read_file;
using test::TemporaryFolder;
using test::thrown;
using test::write_file;

// Values without a pattern; every `step`th differs between two models.
Bytes values(std::size_t size, unsigned first, std::size_t step) {
  const auto data = std::make_shared<std::vector<std::byte>>(size);
  for (std::size_t i = 0; i < size; ++i)
    (*data)[i] = static_cast<std::byte>((i * 7 + (i >> 9) + (step > 0 && i % step == 0 ? first : 0)) & 0x3fU);
  return {*data, data};
}

constexpr std::uint64_t kLarge = 20 * edit_files::Applying::kPiece + 600;  // more than a group of pieces

// Changed a little, changed everywhere, and not at all; metadata that stays.
Model model_of(unsigned version, std::uint64_t large = 60'000) {
  Builder builder;
  builder.attribute("author", Value::text("somebody"));
  builder.tensor("a.weight", DType::bf16, {large / 2}, values(large, version, 100));
  builder.tensor("b.weight", DType::f32, {50, 20}, values(4000, version, 1));
  builder.tensor("c.bias", DType::f32, {900}, values(3600, version, 0));
  return builder.build();
}

class InPlaceTest : public testing::Test {
 protected:
  // A file of this format with the model of version 0, one of version 1, and the patch between them.
  void make(const std::string& format, Options options = {}, std::uint64_t large = 60'000) {
    base_ = folder_ / ("model." + format);
    for (const unsigned version : {0U, 1U}) {
      const std::string path = version == 0 ? base_ : beside_ / ("result." + format);
      options.replace = true;
      save(model_of(version, large), path, options);
      (version == 0 ? old_ : new_) = read_file(path);
    }
    patch({base_}, {beside_ / ("result." + format)});
  }
  void patch(const std::string& from, const std::string& to) {
    const std::string path = beside_ / "p.zt";
    save(make_patch(open(from), open(to), {.scratch = path}), path, {.encoding = "zstd", .replace = true});
    patches_ = {open(path)};
  }
  void expect_refused(const std::string& rule, const std::string& says = {}, const std::string& file = {}) {
    const std::string path = file.empty() ? base_ : file;
    const std::string before = read_file(path);
    const auto entries = folder_.entries();
    const Finding found = thrown([&] { apply_in_place(path, patches_); });
    EXPECT_EQ(found.rule, rule) << found.message;
    EXPECT_NE(found.message.find(says), std::string::npos) << found.message;
    EXPECT_TRUE(read_file(path) == before);
    EXPECT_EQ(folder_.entries(), entries);
  }
  // Whether the bytes have begun to change.
  bool has_begun() const {
    std::error_code none;
    const auto size = fs::file_size(journal(), none);
    return !none && size > 500;
  }
  // Runs it in a process that ends once the bytes are written.
  void kill() {
    make("safetensors");
    const pid_t child = ::fork();
    if (child == 0) {
      Context context;
      context.progress = [&](std::uint64_t, std::uint64_t) {
        if (has_begun()) ::_exit(7);
        return true;
      };
      try {
        apply_in_place(base_, patches_, context);
      } catch (const Error&) {}
      ::_exit(0);
    }
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    ASSERT_EQ(WEXITSTATUS(status), 7);
  }
  std::string journal() const { return folder_ / ".model.safetensors.weighbridge-edit.journal"; }
  std::string mixed() const { return base_ + std::string(io::kApplying); }

  test::StateHome home_;
  TemporaryFolder folder_, beside_;
  std::string base_, old_, new_;
  std::vector<Model> patches_;
};

TEST_F(InPlaceTest, TheFileBecomesWhatANewOneWouldBe) {
  for (const auto& [format, options] :
       std::vector<std::pair<std::string, Options>>{{"safetensors", {}},
                                                    {"gguf", {}},
                                                    {"zt", {.digest = "none", .version = "1.2"}},
                                                    {"zt", {.digest = "sha256", .version = "1.2"}},
                                                    {"zt", {.digest = "crc32c", .version = "1.1"}}}) {
    make(format, options);
    const Applied done = apply_in_place(base_, patches_);
    EXPECT_TRUE(read_file(base_) == new_) << format << options.digest;
    EXPECT_EQ(folder_.entries(), std::set<std::string>{"model." + format});
    EXPECT_TRUE(verify(base_).report.valid());
    EXPECT_EQ(done.result, content_digest(open(base_)));
    EXPECT_EQ(done.tensors, 2U);
    EXPECT_GT(done.logged, 0U);
    fs::remove(base_);
  }
}

TEST_F(InPlaceTest, ATensorOfManyPiecesOnSeveralThreads) {
  make("safetensors", {}, kLarge);
  apply_in_place(base_, patches_, {.executor = thread_executor(4)});
  EXPECT_TRUE(read_file(base_) == new_);
}

TEST_F(InPlaceTest, AChainIsAppliedInOneGo) {
  make("safetensors");
  const std::string third = beside_ / "third.safetensors", last = beside_ / "2.zt";
  save(model_of(5), third);
  save(make_patch(open(beside_ / "result.safetensors"), open(third), {.scratch = last}), last, {.encoding = "zstd"});
  patches_.push_back(open(last));
  apply_in_place(base_, patches_);
  EXPECT_TRUE(read_file(base_) == read_file(third));
}

TEST_F(InPlaceTest, OnlyTheShardsThatChange) {
  make("safetensors");
  const std::string shards = folder_ / "shards";
  fs::create_directory(shards);
  fs::remove(base_);
  Options options;
  options.shards.max_size = 5000;
  plan(model_of(0), "safetensors", options).execute(shards);
  const auto file_of = [&](const char* name) {
    const Model model = open(shards);
    return std::string(model.sources()[model[name].main().extent()->source]->path());
  };
  const std::string other = file_of("c.bias"), unchanged = read_file(other);
  ASSERT_NE(other, file_of("a.weight"));
  const Applied done = apply_in_place(shards, patches_);
  EXPECT_EQ(done.files.size(), 2U);
  EXPECT_EQ(content_digest(open(shards)), content_digest(model_of(1)));
  EXPECT_TRUE(read_file(other) == unchanged);
}

TEST_F(InPlaceTest, ADryRunChecksAndWritesNothing) {
  make("safetensors");
  EXPECT_EQ(apply_in_place(base_, patches_, {}, true).tensors, 2U);
  EXPECT_TRUE(read_file(base_) == old_);
  apply_in_place(base_, patches_);
  EXPECT_EQ(thrown([&] { apply_in_place(base_, patches_); }).rule, "misuse/patch-base");
  EXPECT_TRUE(read_file(base_) == new_);
}

TEST_F(InPlaceTest, WhatOnlyANewFileCanHoldIsRefused) {
  make("safetensors");
  Builder more;
  more.tensor("a.weight", DType::bf16, {30'000}, values(60'000, 1, 100));
  more.tensor("d", DType::f32, {1}, values(4, 1, 1));
  const std::string other = beside_ / "other.safetensors";
  save(more.build(), other);
  patch(base_, other);
  expect_refused("misuse/in-place");
  save(view(model_of(1), {.values = {{"author", Value::text("me")}}}), other, {.replace = true});
  patch(base_, other);
  expect_refused("misuse/in-place", "metadata");
  make("zt", {.encoding = "zstd", .version = "1.2"});
  expect_refused("misuse/in-place", "not stored as its elements are");
  plan(model_of(0), "zt2").execute(base_ = folder_ / "two.zt");
  patch(base_, beside_ / "result.zt");
  expect_refused("misuse/in-place");
  make("pt", {.allow = {LossKind::attribute}});
  expect_refused("misuse/in-place");
}

TEST_F(InPlaceTest, WhatEditRefusesIsRefused) {
  make("safetensors");
  const int fd = ::open(base_.c_str(), O_RDONLY);
  if (::fcntl(fd, F_SETLEASE, F_RDLCK) == 0) {  // else the filesystem has no leases, so nobody can tell
    ::fcntl(fd, F_SETLEASE, F_UNLCK);
    expect_refused("io/in-use", "the file is open in another process");
  }
  ::close(fd);
  fs::create_hard_link(base_, beside_ / "link");
  expect_refused("misuse/hard-link", "2 names");
  fs::remove(beside_ / "link");
  ASSERT_EQ(::chmod(base_.c_str(), 0444), 0);
  expect_refused("misuse/read-only");
  ASSERT_EQ(::chmod(base_.c_str(), 0644), 0);
  const std::string digest(64, 'a');
  for (const std::string& name : {"blobs/" + digest, "blobs/sha256-" + digest, "blobs/sha256/" + digest}) {
    fs::create_directories(fs::path(folder_ / name).parent_path());
    fs::copy_file(base_, folder_ / name);
    expect_refused("misuse/hub-cache", "blob", folder_ / name);
  }
}

TEST_F(InPlaceTest, ATensorThatSharesBytesIsRefused) {
  const Bytes one = values(400, 0, 0);
  Builder builder;
  builder.tensor("a", DType::f32, {100}, one);
  save(builder.build(), beside_ / "one.zt");
  const Model first = open(beside_ / "one.zt");
  core::Draft tied;
  tied.begin_view(first);
  tied.adopt("a", first["a"]);
  tied.adopt("b", first["a"]);
  tied.index_names();
  save(tied.finish(), base_ = folder_ / "model.zt");
  Builder apart;
  apart.tensor("a", DType::f32, {100}, values(400, 1, 1));
  apart.tensor("b", DType::f32, {100}, one);
  save(apart.build(), beside_ / "result.zt", {});
  patch(base_, beside_ / "result.zt");
  expect_refused("misuse/in-place", "shares bytes");
}

TEST_F(InPlaceTest, StoppingItPutsTheOldBytesBack) {
  make("safetensors");
  Context context;
  bool stopped = false;
  context.progress = [&](std::uint64_t, std::uint64_t) { return !(stopped = has_begun()); };
  EXPECT_THROW(apply_in_place(base_, patches_, context), Cancelled);
  EXPECT_TRUE(stopped);
  EXPECT_TRUE(read_file(base_) == old_);
  EXPECT_EQ(folder_.entries(), std::set<std::string>{"model.safetensors"});
}

TEST_F(InPlaceTest, AKilledRunIsUndoneByEditAndByTheNextOne) {
  for (const bool again : {false, true}) {
    kill();
    EXPECT_FALSE(fs::exists(base_));
    EXPECT_TRUE(read_file(mixed()) != old_);
    std::vector<RecoveryStep> steps;
    if (again)
      EXPECT_EQ(apply_in_place(base_, patches_).left, Edited::Left::undone);
    else
      EXPECT_EQ(settle_edit(base_, {}, false, [&](const Edited& plan) { steps = plan.steps; }).left,
                Edited::Left::undone);
    EXPECT_EQ(steps.size(), again ? 0U : 3U);
    EXPECT_TRUE(read_file(base_) == (again ? new_ : old_));
    EXPECT_EQ(folder_.entries(), std::set<std::string>{"model.safetensors"});
  }
}

TEST_F(InPlaceTest, AJournalOfSomebodyElseIsUsedOnlyIfItIsTrusted) {
  kill();
  const test::StateHome other;
  const std::string before = read_file(mixed());
  const Finding found = thrown([&] { apply_in_place(base_, patches_); });
  EXPECT_EQ(found.rule, "io/journal");
  EXPECT_EQ(found.hint.name, "trust-journal");
  EXPECT_TRUE(read_file(mixed()) == before);
  settle_edit(base_, {}, true);
  EXPECT_TRUE(read_file(base_) == old_);
}

TEST_F(InPlaceTest, ADamagedJournalOrAChangedFileIsLeftAlone) {
  kill();
  const std::string log = journal(), whole = read_file(log), file = read_file(mixed());
  const auto put = [](const std::string& path, const std::string& text) {
    const int fd = ::open(path.c_str(), O_WRONLY);  // the same inode
    ASSERT_EQ(::pwrite(fd, text.data(), text.size(), 0), static_cast<ssize_t>(text.size()));
    ::close(fd);
  };
  for (std::size_t at = 0; at < whole.size(); at += at < 200 ? 7 : 301) {
    std::string bad = whole;
    bad[at] = static_cast<char>(bad[at] ^ 0x41);
    put(log, bad);
    EXPECT_EQ(thrown([&] { settle_edit(base_); }).rule, at < 20 ? "io/applying" : "io/journal") << at;
    EXPECT_TRUE(read_file(mixed()) == file) << at;
  }
  put(log, whole);
  std::string changed = file;
  changed[changed.size() - 7] = static_cast<char>(changed[changed.size() - 7] ^ 0x80);
  put(mixed(), changed);
  EXPECT_NE(thrown([&] { settle_edit(base_); }).message.find("something else has changed"), std::string::npos);
  EXPECT_TRUE(read_file(mixed()) == changed);
  put(mixed(), file);
  // What a kill cuts off at the end of the journal was never followed by a write.
  fs::resize_file(log, whole.size());
  {
    std::ofstream out(log, std::ios::app | std::ios::binary);
    out.write("\x40\0\0\0\0\0\0\0\xbf\xff\xff\xff\xff\xff\xff\xffhalf", 20);
  }
  settle_edit(base_);
  EXPECT_TRUE(read_file(base_) == old_);
}

TEST_F(InPlaceTest, WithoutAJournalTheTensorsThatAreNeitherAreNamed) {
  kill();
  fs::remove(journal());
  std::string before = read_file(mixed());
  before[before.size() / 2] = static_cast<char>(before[before.size() / 2] ^ 0x80);
  write_file(mixed(), before);
  const Finding found = thrown([&] { apply_in_place(base_, patches_); });
  EXPECT_EQ(found.rule, "io/applying");
  EXPECT_NE(found.message.find("1 of 3 tensors"), std::string::npos) << found.message;
  EXPECT_NE(found.message.find("a.weight"), std::string::npos) << found.message;
  EXPECT_EQ(found.message.find("b.weight"), std::string::npos) << found.message;
  EXPECT_TRUE(read_file(mixed()) == before);
  EXPECT_EQ(thrown([&] { settle_edit(base_); }).rule, "io/applying");
}

}  // namespace
}  // namespace weighbridge
