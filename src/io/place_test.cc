// SPDX-License-Identifier: Apache-2.0
// Places: which names are found, which links are not followed, and what happens when the folder changes meanwhile.
#include "io/place.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <filesystem>
#include <thread>
#include <vector>

#include "io/fd.h"
#include "support/failing_source.h"
#include "support/temporary_folder.h"
#include "support/thrown.h"
#include "weighbridge/error.h"

namespace weighbridge {
namespace {

namespace fs = std::filesystem;
using test::all_of;
using test::TemporaryFolder;
using test::thrown;
using test::write_file;
using Names = std::vector<std::string>;

TEST(FilePlace, FindsFilesInTheFolderAndBelow) {
  const TemporaryFolder folder;
  write_file(folder / "model.bin", "m");
  write_file(folder / "other.bin", "o");
  fs::create_directory(folder / "sub");
  write_file(folder / "sub/deep.bin", "d");
  const auto model = place_at(folder / "model.bin");
  EXPECT_EQ(all_of(*model->open("other.bin")), "o");
  EXPECT_EQ(all_of(*model->open("sub/deep.bin")), "d");
  EXPECT_EQ(all_of(*model->open("./sub//deep.bin")), "d");
  EXPECT_EQ(model->open("sub/deep.bin")->name(), folder / "sub/deep.bin");
  EXPECT_EQ(model->open("absent"), nullptr);
  EXPECT_EQ(model->open("absent/deep.bin"), nullptr);
  EXPECT_EQ(model->open("other.bin/deep.bin"), nullptr);
  EXPECT_EQ(model->kind(), Place::Kind::file);
  EXPECT_EQ(model->name(), folder / "model.bin");
  EXPECT_EQ(model->list(), std::vector<std::string>{"model.bin"});
  EXPECT_EQ(model->open("model.bin"), model->file());
  EXPECT_EQ(model->file()->place()->open("other.bin")->size(), 1U);
}

TEST(FilePlace, NeverLeavesTheFolder) {
  const TemporaryFolder folder;
  fs::create_directory(folder / "in");
  write_file(folder / "in/model.bin", "m");
  write_file(folder / "secret", "s");
  fs::create_symlink("../secret", folder / "in/link");
  fs::create_symlink(folder / "secret", folder / "in/absolute-link");
  fs::create_directory_symlink("..", folder / "in/up");
  const auto model = place_at(folder / "in/model.bin");
  for (const std::string& name :
       {std::string("../secret"), std::string("sub/../../secret"), std::string(".."), std::string("a/.."),
        folder / "secret", std::string(""), std::string("/"), std::string("sub/"), std::string("a\0b", 3)})
    EXPECT_EQ(thrown([&] { model->open(name); }).rule, "misuse/neighbor") << name;
  for (const std::string name : {"link", "absolute-link", "up/secret"}) {
    const Finding found = thrown([&] { model->open(name); });
    EXPECT_EQ(found.rule, "io/outside") << name;
    EXPECT_NE(found.message.find("leads out of the folder"), std::string::npos) << found.message;
  }
}

TEST(Beneath, BothWaysOfOpeningStayInside) {
  const TemporaryFolder folder;
  fs::create_directories(folder / "in/sub");
  write_file(folder / "in/sub/deep", "d");
  write_file(folder / "secret", "s");
  fs::create_symlink("../secret", folder / "in/link");
  fs::create_symlink("sub/deep", folder / "in/inside");
  fs::create_directory_symlink("..", folder / "in/up");
  const io::Fd at(::open((folder / "in").c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  const auto open_with = [&](auto way, const std::string& name) {
    const io::Fd fd = way(at.get(), name);
    return fd ? 0 : errno;
  };
  EXPECT_EQ(open_with(io::open_beneath_by_hand, "sub/deep"), 0);
  EXPECT_EQ(open_with(io::open_beneath_by_hand, "./sub//deep"), 0);
  EXPECT_EQ(open_with(io::open_beneath_by_hand, "absent"), ENOENT);
  EXPECT_EQ(open_with(io::open_beneath_by_hand, "link"), ELOOP);
  EXPECT_EQ(open_with(io::open_beneath_by_hand, "up/secret"), ELOOP);
  EXPECT_EQ(open_with(io::open_beneath_by_hand, "inside"), ELOOP);
  const auto by_system = [](int in, const std::string& name) { return io::os::open_beneath(in, name.c_str()); };
  if (open_with(by_system, "sub/deep") != 0) GTEST_SKIP() << "this kernel or sandbox has no openat2";
  EXPECT_EQ(open_with(by_system, "inside"), 0);
  EXPECT_EQ(open_with(by_system, "link"), EXDEV);
  EXPECT_EQ(open_with(by_system, "up/secret"), EXDEV);
}

TEST(FilePlace, RefusesWhatIsNoRegularFile) {
  const TemporaryFolder folder;
  write_file(folder / "model.bin", "m");
  ASSERT_EQ(::mkfifo((folder / "fifo").c_str(), 0600), 0);
  fs::create_directory(folder / "sub");
  const auto model = place_at(folder / "model.bin");
  EXPECT_EQ(thrown([&] { model->open("fifo"); }).rule, "misuse/not-a-file");
  EXPECT_EQ(thrown([&] { model->open("sub"); }).rule, "misuse/not-a-file");
}

TEST(FolderPlace, ListsItsOwnFilesAndOpensThoseBelow) {
  const TemporaryFolder root;
  fs::create_directories(root / "in/sub");
  write_file(root / "in/b", "b");
  write_file(root / "in/a", "a");
  write_file(root / "in/sub/deep", "d");
  const auto place = place_at(root / "in");
  EXPECT_EQ(place->kind(), Place::Kind::folder);
  EXPECT_EQ(place->file(), nullptr);
  EXPECT_EQ(place->name(), root / "in");
  EXPECT_EQ(place->list(), (Names{"a", "b", "sub/"}));
  EXPECT_EQ(all_of(*place->open("sub/deep")), "d");
  EXPECT_EQ(place->open("sub/deep")->name(), root / "in/sub/deep");
  for (const char* name : {"absent", "absent/deep", "a/deep"}) {
    EXPECT_EQ(place->open(name), nullptr) << name;
  }
  EXPECT_EQ(thrown([&] { place->open("../in/a"); }).rule, "misuse/neighbor");
  EXPECT_EQ(thrown([&] { place->open("sub"); }).rule, "misuse/not-a-file");
  EXPECT_EQ(thrown([&] { place_at(root / "absent"); }).rule, "io/open");
  EXPECT_EQ(thrown([&] { place_at(""); }).rule, "misuse/path");
}

TEST(FolderPlace, NoNameLeadsOut) {
  const TemporaryFolder root;
  fs::create_directory(root / "in");
  write_file(root / "outside", "o");
  fs::create_symlink("../outside", root / "in/link");
  const auto place = place_at(root / "in");
  EXPECT_EQ(thrown([&] { place->open("link"); }).rule, "io/outside");
}

// A check of the name before the open would be outrun.
TEST(FolderPlace, ALinkThatIsSwappedMeanwhileNeverLeadsOut) {
  const TemporaryFolder root;
  fs::create_directory(root / "in");
  write_file(root / "in/own", "own");
  write_file(root / "secret", "secret");
  const auto place = place_at(root / "in");
  fs::create_symlink("own", root / "in/link");
  std::atomic<bool> stop = false;
  std::atomic<int> swaps = 0;
  std::thread swapping([&] {
    for (; !stop; ++swaps) {
      fs::create_symlink(swaps % 2 == 0 ? "../secret" : "own", root / "in/next");
      fs::rename(root / "in/next", root / "in/link");
    }
  });
  std::size_t read = 0;
  // As many opens and swaps as are needed, in whatever turns the machine gives to the two threads.
  for (int i = 0; i < 4000 || swaps < 100 || read == 0; ++i) try {
      EXPECT_EQ(all_of(*place->open("link")), "own");
      ++read;
    } catch (const Error& error) {
      EXPECT_EQ(error.finding().rule, "io/outside");
    }
  stop = true;
  swapping.join();
}

// Files are opened beneath the folder that was given, even if its path has been replaced.
TEST(FolderPlace, StaysTheFolderThatWasOpened) {
  const TemporaryFolder root;
  fs::create_directory(root / "in");
  fs::create_directory(root / "other");
  write_file(root / "in/a", "first");
  write_file(root / "other/a", "second");
  const auto place = place_at(root / "in");
  fs::rename(root / "in", root / "moved");
  fs::create_directory_symlink("other", root / "in");
  EXPECT_EQ(all_of(*place->open("a")), "first");
}

TEST(FolderPlace, ASnapshotsFilesMayBeTheCachesBlobsAndNothingElse) {
  const TemporaryFolder root;
  const std::string home = root / "models--x--y/snapshots/0123";
  fs::create_directories(home + "/sub");
  fs::create_directories(root / "models--x--y/blobs/folder");
  fs::create_directories(root / "models--x--y/refs");
  write_file(root / "models--x--y/blobs/89ab", "blob");
  write_file(root / "models--x--y/refs/main", "0123");
  write_file(root / "outside", "o");
  fs::create_symlink(root / "outside", root / "models--x--y/blobs/link");
  const std::pair<const char*, const char*> links[] = {
      {"good", "../../blobs/89ab"},  {"sub/good", "../../../blobs/89ab"},
      {"refs", "../../refs/main"},   {"through", "../../blobs/../refs/main"},
      {"twice", "../../blobs/link"}, {"up", "../../blobs/.."},
      {"out", "../../../outside"},   {"sub/short", "../../blobs/89ab"}};
  for (const auto& [name, target] : links) fs::create_symlink(target, home + "/" + name);
  fs::create_symlink("../../blobs/gone", home + "/gone");
  const auto place = place_at(home);
  EXPECT_EQ(all_of(*place->open("good")), "blob");
  EXPECT_EQ(all_of(*place->open("./sub//good")), "blob");
  EXPECT_EQ(place->open("gone"), nullptr);
  for (const char* name : {"refs", "through", "twice", "up", "out"})
    EXPECT_EQ(thrown([&] { place->open(name); }).rule, "io/outside") << name;
  EXPECT_EQ(place_at(home + "/good")->open("sub/good")->size(), 4U);
  // The same link in a folder that is not a snapshot.
  fs::create_directories(root / "models--x--y/other/0123");
  fs::create_symlink("../../blobs/89ab", root / "models--x--y/other/0123/good");
  EXPECT_EQ(thrown([&] { place_at(root / "models--x--y/other/0123")->open("good"); }).rule, "io/outside");
}

TEST(FolderOf, HoldsItsFiles) {
  const std::string text = "text";
  const auto source = memory_source({std::as_bytes(std::span(text)), nullptr});
  const auto place = folder_of({{"b", source}, {"a", source}, {"sub/c", source}, {"sub/d/e", source}}, "<four>");
  EXPECT_EQ(place->kind(), Place::Kind::folder);
  EXPECT_EQ(place->name(), "<four>");
  EXPECT_EQ(place->list(), (Names{"a", "b", "sub/"}));
  EXPECT_EQ(place->open("sub/c"), source);
  EXPECT_EQ(place->open("c"), nullptr);
  EXPECT_EQ(thrown([&] { place->open("/a"); }).rule, "misuse/neighbor");
}

TEST(PlaceOf, ASourceInMemoryStandsAlone) {
  const std::string text = "text";
  const auto source = memory_source({std::as_bytes(std::span(text)), nullptr}, "folder/name.bin");
  const auto place = place_of(source);
  EXPECT_EQ(place->kind(), Place::Kind::file);
  EXPECT_EQ(place->file(), source);
  EXPECT_EQ(place->list(), Names{"name.bin"});
  EXPECT_EQ(place->open("name.bin"), source);
  EXPECT_EQ(place->open("other.bin"), nullptr);
  EXPECT_EQ(thrown([] { place_of(nullptr); }).kind, Kind::misuse);
}

// A source that wraps another: its own bytes, the other's neighbors.
TEST(PlaceOf, ASourceKeepsItsBytesAndFindsWhatIsBeside) {
  const TemporaryFolder folder;
  write_file(folder / "a", "a");
  write_file(folder / "b", "b");
  const auto broken = std::make_shared<test::FailingSource>(open_file(folder / "a"), 0);
  const auto place = place_of(broken);
  EXPECT_EQ(place->file(), broken);
  EXPECT_EQ(place->open("a"), broken);
  EXPECT_EQ(all_of(*place->open("b")), "b");
  EXPECT_EQ(thrown([&] { place->open("../b"); }).rule, "misuse/neighbor");
}

}  // namespace
}  // namespace weighbridge
