// SPDX-License-Identifier: Apache-2.0
// Files beneath a folder whose descriptors are closed while others are used: how many are open, and that a file which
// was opened again is the one that was opened first.
#include "io/descriptor.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <thread>
#include <vector>

#include "io/read.h"
#include "support/temporary_folder.h"
#include "support/thrown.h"
#include "weighbridge/place.h"

namespace weighbridge::io {
namespace {

namespace fs = std::filesystem;
using test::thrown;
using test::write_file;

// Allows the process this many descriptors.
class OpenFilesLimit {
 public:
  explicit OpenFilesLimit(rlim_t maximum) {
    ::getrlimit(RLIMIT_NOFILE, &before_);
    struct rlimit now = before_;
    now.rlim_cur = maximum;
    EXPECT_EQ(::setrlimit(RLIMIT_NOFILE, &now), 0);
  }
  ~OpenFilesLimit() { ::setrlimit(RLIMIT_NOFILE, &before_); }

 private:
  struct rlimit before_ {};
};

using io::text_of;

std::string name_of(int i) { return std::to_string(i) + ".bin"; }
std::string content_of(int i) { return "content of file " + std::to_string(i); }

class ManyFiles : public testing::TestWithParam<Access> {
 protected:
  static constexpr int kFiles = 300;
  const OpenFilesLimit limit{64};
  test::TemporaryFolder folder;
  std::shared_ptr<const Place> place;
  std::vector<std::shared_ptr<const Source>> files;

  void SetUp() override {
    for (int i = 0; i < kFiles; ++i) write_file(folder / name_of(i), content_of(i));
    place = place_at(folder.path(), GetParam());
    for (int i = 0; i < kFiles; ++i) files.push_back(place->open(name_of(i)));
  }
};
INSTANTIATE_TEST_SUITE_P(Access, ManyFiles, testing::Values(Access::positional, Access::mapped),
                         [](const auto& test) { return test.param == Access::mapped ? "Mapped" : "Positional"; });

TEST_P(ManyFiles, AreReadWithFewDescriptors) {
  EXPECT_EQ(Descriptor::count_open(), 16U);  // a quarter of the limit
  for (int round = 0; round < 2; ++round)
    for (int i = 0; i < kFiles; ++i) {
      const auto& file = files[static_cast<std::size_t>(i)];
      ASSERT_EQ(text_of(*file), content_of(i));
      const Bytes mapped = file->map(0, file->size());
      ASSERT_EQ(std::memcmp(mapped.span.data(), content_of(i).data(), mapped.span.size()), 0);
      file->check_unchanged();
      file->will_need(0, file->size());
      ASSERT_EQ(file->written_end(), file->size());
    }
  EXPECT_LE(Descriptor::count_open(), 16U);
  files.clear();
  EXPECT_EQ(Descriptor::count_open(), 0U);
}

TEST_P(ManyFiles, AreReadByManyThreads) {
  std::vector<std::thread> threads;
  std::atomic<int> wrong = 0;
  for (int t = 0; t < 8; ++t)
    threads.emplace_back([&, t] {
      for (int n = 0; n < 1000; ++n) {
        const int i = (n * 37 + t * 101) % kFiles;
        if (text_of(*files[static_cast<std::size_t>(i)]) != content_of(i)) ++wrong;
      }
    });
  for (std::thread& each : threads) each.join();
  EXPECT_EQ(wrong, 0);
  EXPECT_LE(Descriptor::count_open(), 16U);
}

TEST(Descriptors, AnotherFileOfTheSameNameIsNotReadOn) {
  const test::TemporaryFolder folder;
  write_file(folder / "a", "the first");
  const auto source = place_at(folder.path())->open("a");
  write_file(folder / "b", "the other");
  fs::rename(folder / "b", folder / "a");
  EXPECT_EQ(text_of(*source), "the first");  // still open
  Descriptor::close_unused();
  for (int i = 0; i < 2; ++i) {
    const Finding why = thrown([&] { text_of(*source); });
    EXPECT_EQ(why.rule, "io/changed");
    EXPECT_NE(why.message.find("another file has taken its place"), std::string::npos) << why.message;
  }
  EXPECT_EQ(thrown([&] { source->check_unchanged(); }).rule, "io/changed");
  EXPECT_EQ(thrown([&] { source->map(0, 3); }).rule, "io/changed");
  source->will_need(0, 3);
  EXPECT_EQ(source->written_end(), 9U);
}

TEST(Descriptors, AFileThatChangedIsNotReadOn) {
  const test::TemporaryFolder folder, outside;
  const auto reason = [&](const auto& change) {
    fs::remove(folder / "a");
    write_file(folder / "a", "0123456789");
    const auto source = place_at(folder.path())->open("a");
    Descriptor::close_unused();
    change();
    const Finding why = thrown([&] { text_of(*source); });
    EXPECT_EQ(why.rule, "io/changed");
    return why.message;
  };
  const auto has = [](const std::string& text, std::string_view part) { return text.find(part) != std::string::npos; };
  EXPECT_TRUE(has(reason([&] { fs::resize_file(folder / "a", 5); }), "its size went from 10 to 5 bytes"));
  EXPECT_TRUE(has(reason([&] {
                    const auto before = fs::last_write_time(folder / "a");
                    fs::last_write_time(folder / "a", before + std::chrono::seconds(1));
                  }),
                  "its modification time changed"));
  EXPECT_TRUE(has(reason([&] {
                    const auto before = fs::last_write_time(folder / "a");
                    write_file(folder / "a", "9876543210");
                    fs::last_write_time(folder / "a", before);
                  }),
                  "its change time (ctime) changed"));
  EXPECT_TRUE(has(reason([&] { fs::remove(folder / "a"); }), "it is no longer there"));
  EXPECT_TRUE(has(reason([&] {
                    write_file(outside / "a", "0123456789");
                    fs::remove(folder / "a");
                    fs::create_symlink(outside / "a", folder / "a");
                  }),
                  "a symbolic link has taken its place"));
  EXPECT_TRUE(has(reason([&] {
                    fs::remove(folder / "a");
                    ASSERT_EQ(::mkfifo((folder / "a").c_str(), 0600), 0);
                  }),
                  "another file has taken its place"));
}

// A file is opened again in the folder that was opened, wherever that has gone.
TEST(Descriptors, TheFolderMayMove) {
  const test::TemporaryFolder folder;
  fs::create_directory(folder / "model");
  write_file(folder / "model/a", "text");
  const auto source = place_at(folder / "model")->open("a");
  Descriptor::close_unused();
  fs::rename(folder / "model", folder / "moved");
  EXPECT_EQ(text_of(*source), "text");
}

TEST(Descriptors, ThoseInUseStayOpen) {
  const test::TemporaryFolder folder;
  write_file(folder / "a", "text");
  const auto open = [&] { return Fd(::open((folder / "a").c_str(), O_RDONLY | O_CLOEXEC)); };
  int opened = 0;
  const Descriptor one(open(), [&] {
    ++opened;
    return open();
  });
  const auto used = one.use();
  EXPECT_TRUE(Descriptor::close_unused());
  char byte = 0;
  EXPECT_EQ(::pread(used->get(), &byte, 1, 0), 1);
  EXPECT_EQ(opened, 0);
  EXPECT_NE(one.use()->get(), used->get());
  EXPECT_EQ(opened, 1);
  const Descriptor kept(open());
  EXPECT_TRUE(Descriptor::close_unused());
  EXPECT_FALSE(Descriptor::close_unused());
  EXPECT_EQ(::pread(kept.use()->get(), &byte, 1, 0), 1);
}

// If the process has used up its descriptors for other things, those that can be opened again are closed.
TEST(Descriptors, MakeRoomForNewOnes) {
  const OpenFilesLimit limit(64);
  const test::TemporaryFolder folder;
  for (int i = 0; i < 5; ++i) write_file(folder / name_of(i), content_of(i));
  const auto place = place_at(folder.path());
  std::vector<std::shared_ptr<const Source>> files;
  for (int i = 0; i < 4; ++i) files.push_back(place->open(name_of(i)));
  std::vector<Fd> others;
  for (Fd next; (next = Fd(::dup(0)));) others.push_back(std::move(next));
  ASSERT_EQ(errno, EMFILE);
  files.push_back(place->open(name_of(4)));
  EXPECT_EQ(text_of(*open_file(folder / name_of(0))), content_of(0));
  for (int i = 0; i < 5; ++i) EXPECT_EQ(text_of(*files[static_cast<std::size_t>(i)]), content_of(i));
  Descriptor::close_unused();
  for (Fd next; (next = Fd(::dup(0)));) others.push_back(std::move(next));
  EXPECT_EQ(thrown([&] { text_of(*files[0]); }).rule, "io/open");
}

// The child of a fork waited for a lock that a thread of its parent held.
TEST(Descriptors, AForkMayHappenAnyTime) {
  const test::TemporaryFolder folder;
  write_file(folder / "a", "text");
  const auto source = place_at(folder.path())->open("a");
  std::atomic<bool> done = false;
  std::thread reader([&] {
    while (!done) {
      text_of(*source);
      Descriptor::close_unused();
    }
  });
  for (int i = 0; i < 50; ++i) {
    const pid_t child = ::fork();
    if (child == 0) {
      ::alarm(20);
      ::_exit(text_of(*source) == "text" ? 0 : 1);
    }
    int status = -1;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    ASSERT_EQ(status, 0);
  }
  done = true;
  reader.join();
}

}  // namespace
}  // namespace weighbridge::io
