// SPDX-License-Identifier: Apache-2.0
// Sources: files (both kinds of access), memory, refusals, changed files, and the failing source of the tests.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <functional>
#include <thread>
#include <type_traits>
#include <utility>
#include <vector>

#include "io/fd.h"
#include "io/file_source.h"
#include "io/forwarding_source.h"
#include "io/read.h"
#include "support/failing_source.h"
#include "support/temporary_folder.h"
#include "support/thrown.h"
#include "weighbridge/error.h"
#include "weighbridge/place.h"
#include "weighbridge/source.h"

namespace weighbridge {
namespace {

namespace fs = std::filesystem;
using io::text_of;
using test::all_of;
using test::TemporaryFolder;
using test::thrown;
using test::write_file;

std::string text_of(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

std::string pattern(std::size_t size) {
  std::string out(size, '\0');
  for (std::size_t i = 0; i < size; ++i) out[i] = static_cast<char>(i * 31 + i / 251);
  return out;
}

class FileSources : public testing::TestWithParam<Access> {
 protected:
  TemporaryFolder folder;
};
INSTANTIATE_TEST_SUITE_P(Access, FileSources, testing::Values(Access::positional, Access::mapped),
                         [](const auto& test) { return test.param == Access::mapped ? "Mapped" : "Positional"; });

TEST_P(FileSources, ReadAndMapGiveTheFilesBytes) {
  const std::string text = pattern(100'003);
  write_file(folder / "a.bin", text);
  const auto source = open_file(folder / "a.bin", GetParam());
  EXPECT_EQ(source->size(), text.size());
  EXPECT_EQ(source->name(), folder / "a.bin");
  EXPECT_EQ(all_of(*source), text);
  for (const auto& [offset, length] : std::vector<std::pair<std::size_t, std::size_t>>{
           {0, 0}, {0, 1}, {4095, 2}, {4096, 4096}, {77, 99'000}, {100'002, 1}, {100'003, 0}}) {
    EXPECT_EQ(text_of(*source, offset, length), text.substr(offset, length));
    const Bytes mapped = source->map(offset, length);
    ASSERT_NE(mapped.keep, nullptr);
    EXPECT_EQ(text_of(mapped.span), text.substr(offset, length));
  }
}

TEST_P(FileSources, AMappingOutlivesItsSource) {
  write_file(folder / "a.bin", "still here");
  auto source = open_file(folder / "a.bin", GetParam());
  const Bytes mapped = source->map(6, 4);
  source.reset();
  EXPECT_EQ(text_of(mapped.span), "here");
}

TEST_P(FileSources, AnEmptyFileIsAFile) {
  write_file(folder / "empty", "");
  const auto source = open_file(folder / "empty", GetParam());
  EXPECT_EQ(source->size(), 0U);
  source->read_at(0, {});
  EXPECT_NE(source->map(0, 0).keep, nullptr);
}

TEST_P(FileSources, ARangeOutsideIsRefused) {
  write_file(folder / "a", "12345");
  const auto source = open_file(folder / "a", GetParam());
  EXPECT_EQ(thrown([&] { text_of(*source, 3, 3); }).kind, Kind::misuse);
  EXPECT_EQ(thrown([&] { source->map(~std::uint64_t{0}, 2); }).kind, Kind::misuse);
}

TEST_P(FileSources, SeveralRangesAreReadAsEachAlone) {
  const std::string content = pattern(100'000);
  const std::string path = folder / "a";
  write_file(path, content);
  const auto source = open_file(path, GetParam());
  // Neighbors, small and large gaps, an overlap, an empty range, reverse order, and more than one call takes.
  std::vector<std::pair<std::uint64_t, std::size_t>> wanted = {{0, 10},     {10, 10},    {30, 5},        {34, 5},
                                                               {4200, 100}, {90'000, 0}, {99'000, 1000}, {5, 3}};
  for (std::uint64_t i = 0; i < 3000; ++i) wanted.emplace_back(20 * i, 7);
  std::vector<std::vector<std::byte>> out;
  for (const auto& [offset, size] : wanted) out.emplace_back(size);
  std::vector<ReadRange> ranges;
  for (std::size_t i = 0; i < wanted.size(); ++i) ranges.push_back({wanted[i].first, out[i]});
  source->read(ranges);
  for (std::size_t i = 0; i < wanted.size(); ++i)
    EXPECT_EQ(text_of(out[i]), content.substr(wanted[i].first, wanted[i].second)) << i;
  source->read({});
  EXPECT_EQ(source->cost().gap, 0U);
  const ReadRange outside[] = {{0, out[0]}, {99'995, out[1]}};
  EXPECT_EQ(thrown([&] { source->read(outside); }).rule, "misuse/range");
}

TEST_P(FileSources, SeveralThreadsReadAtOnce) {
  const std::string text = pattern(200'000);
  write_file(folder / "a", text);
  const auto source = open_file(folder / "a", GetParam());
  std::vector<std::thread> threads;
  std::atomic<int> wrong{0};
  for (std::size_t t = 0; t < 4; ++t)
    threads.emplace_back([&, t] {
      for (std::size_t at = t * 13; at + 1000 <= text.size(); at += 4001) {
        if (text_of(*source, at, 1000) != text.substr(at, 1000)) ++wrong;
        if (text_of(source->map(at, 1000).span) != text.substr(at, 1000)) ++wrong;
      }
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
}

TEST_P(FileSources, AMissingFileIsIo) {
  const Finding missing = thrown([&] { open_file(folder / "none", GetParam()); });
  EXPECT_EQ(missing.kind, Kind::io);
  EXPECT_EQ(missing.rule, "io/open");
  EXPECT_EQ(missing.message, "cannot be opened: No such file or directory");
  EXPECT_EQ(missing.file.name, folder / "none");
}

TEST_P(FileSources, AnUnreadableFileIsIo) {
  write_file(folder / "secret", "x");
  ASSERT_EQ(::chmod((folder / "secret").c_str(), 0), 0);
  if (::geteuid() == 0) GTEST_SKIP() << "root reads files of any mode; this needs another user";
  EXPECT_EQ(thrown([&] { open_file(folder / "secret", GetParam()); }).rule, "io/open");
}

TEST_P(FileSources, WhatIsNoRegularFileIsRefusedAtOnce) {
  ASSERT_EQ(::mkfifo((folder / "fifo").c_str(), 0600), 0);
  const int listener = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  ASSERT_GE(listener, 0);
  const io::Fd closes(listener);
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  const std::string at = folder / "socket";
  ASSERT_LT(at.size(), sizeof address.sun_path);
  std::memcpy(address.sun_path, at.c_str(), at.size() + 1);
  ASSERT_EQ(::bind(listener, reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
  const std::pair<std::string, std::string> cases[] = {{folder.path(), "a directory"},
                                                       {folder / "fifo", "a FIFO"},
                                                       {at, "a socket"},
                                                       {"/dev/null", "a character device"}};
  for (const auto& [path, kind] : cases) {
    const Finding found = thrown([&] { open_file(path, GetParam()); });
    EXPECT_EQ(found.kind, Kind::misuse);
    EXPECT_EQ(found.rule, "misuse/not-a-file");
    EXPECT_EQ(found.message, "this is " + kind + ", not a regular file");
    EXPECT_EQ(found.file.name, path);
  }
}

TEST_P(FileSources, PathsThatTheSystemWouldCutAreRefused) {
  EXPECT_EQ(thrown([&] { open_file("", GetParam()); }).rule, "misuse/path");
  EXPECT_EQ(thrown([&] { open_file(std::string("a\0b", 3), GetParam()); }).rule, "misuse/path");
}

TEST_P(FileSources, UnchangedFilesPass) {
  write_file(folder / "a", "12345");
  open_file(folder / "a", GetParam())->check_unchanged();
}

TEST_P(FileSources, ChangesAreSeen) {
  struct Case {
    std::string file, words;
    std::function<void(const std::string&)> change;
  };
  const Case cases[] = {
      {"grown", "from 5 to 6 bytes", [](const std::string& path) { write_file(path, "123456"); }},
      {"shrunk", "from 5 to 2 bytes", [](const std::string& path) { fs::resize_file(path, 2); }},
      {"touched", "modification time",
       [](const std::string& path) {
         fs::last_write_time(path, fs::last_write_time(path) + std::chrono::nanoseconds(1000));
       }},
      {"set back", "change time (ctime)",
       [](const std::string& path) {
         const auto time = fs::last_write_time(path);
         std::this_thread::sleep_for(std::chrono::milliseconds(20));  // the clock of files is coarse
         write_file(path, "54321");
         fs::last_write_time(path, time);
       }},
      {"removed", "no longer there", [](const std::string& path) { fs::remove(path); }},
      {"replaced", "another file has taken its place",
       [](const std::string& path) {
         const auto time = fs::last_write_time(path);
         write_file(path + ".new", "54321");
         fs::last_write_time(path + ".new", time);
         fs::rename(path + ".new", path);
       }},
  };
  for (const Case& test : cases) {
    const std::string path = folder / test.file;
    write_file(path, "12345");
    const auto source = open_file(path, GetParam());
    source->check_unchanged();
    test.change(path);
    const Finding found = thrown([&] { source->check_unchanged(); });
    EXPECT_EQ(found.rule, "io/changed") << test.file;
    EXPECT_EQ(found.kind, Kind::io);
    EXPECT_NE(found.message.find(test.words), std::string::npos) << found.message;
  }
}

TEST(PositionalFile, ARelativePathStaysTheFileWhenTheProcessChangesItsDirectory) {
  const TemporaryFolder folder;
  fs::create_directory(folder / "models");
  write_file(folder / "models/a", "12345");
  write_file(folder / "models/b", "beside");
  const fs::path before = fs::current_path();
  fs::current_path(folder.path());
  const auto source = open_file("models/a");
  const auto place = place_at("models");
  fs::current_path(before);
  EXPECT_EQ(source->name(), "models/a");
  source->check_unchanged();
  EXPECT_EQ(all_of(*source->place()->open("b")), "beside");
  EXPECT_EQ(place->list().size(), 2U);
  EXPECT_EQ(place->open("b")->name(), "models/b");
}

// A file that was opened in a folder after the process had changed its directory took its path from there.
TEST(PositionalFile, ThePathOfAMemberIsThatOfItsFolder) {
  const TemporaryFolder folder;
  fs::create_directory(folder / "models");
  write_file(folder / "models/a", "12345");
  write_file(folder / "models/b", "beside");
  const fs::path before = fs::current_path();
  fs::current_path(folder.path());
  const auto source = open_file("models/a");
  const auto place = place_at("models");
  fs::current_path(before);
  const std::string models = (fs::canonical(folder.path()) / "models").string();
  EXPECT_EQ(source->path(), models + "/a");
  EXPECT_EQ(place->path(), models);
  for (const auto& member : {source->place()->open("b"), place->open("b")}) {
    EXPECT_EQ(member->path(), models + "/b");
    EXPECT_EQ(member->file_name(), "b");
    EXPECT_NO_THROW(member->check_unchanged());
  }
}

TEST(PositionalFile, AFileThatShrinksIsIoAndNeverZeros) {
  const TemporaryFolder folder;
  const std::string text = pattern(20'000);
  write_file(folder / "a", text);
  const auto source = open_file(folder / "a");
  fs::resize_file(folder / "a", 10'000);
  EXPECT_EQ(text_of(*source, 0, 10'000), text.substr(0, 10'000));
  for (const auto& [offset, length] :
       std::vector<std::pair<std::size_t, std::size_t>>{{9'999, 2}, {0, 20'000}, {15'000, 1}}) {
    const Finding found = thrown([&] { text_of(*source, offset, length); });
    EXPECT_EQ(found.rule, "io/short-read");
    EXPECT_EQ(found.kind, Kind::io);
    EXPECT_EQ(found.message.find("the file shrank while it was read"), 0U) << found.message;
  }
  EXPECT_EQ(thrown([&] { source->map(0, 20'000); }).rule, "io/short-read");
}

TEST(MemorySource, GivesItsBytesWithoutACopy) {
  const auto text = std::make_shared<std::string>("0123456789");
  const auto source = memory_source({std::as_bytes(std::span(*text)), text});
  EXPECT_EQ(source->name(), "<memory>");
  EXPECT_EQ(source->extension(), "");
  EXPECT_EQ(all_of(*source), *text);
  EXPECT_EQ(static_cast<const void*>(source->map(3, 4).span.data()), text->data() + 3);
  EXPECT_EQ(source->map(3, 4).keep, text);
  EXPECT_EQ(source->place(), nullptr);
  EXPECT_EQ(source->path(), "");
  source->check_unchanged();
  EXPECT_EQ(thrown([&] { text_of(*source, 8, 3); }).kind, Kind::misuse);
  EXPECT_EQ(memory_source({})->size(), 0U);
}

TEST(Extension, IsTheLastComponentsInLowerCase) {
  const std::pair<const char*, const char*> cases[] = {{"a/b.Safetensors", "safetensors"},
                                                       {"x.tar.ZT", "zt"},
                                                       {"dir.d/name", ""},
                                                       {".zt", ""},
                                                       {"a/.zt", ""},
                                                       {"name.", ""},
                                                       {"", ""},
                                                       {"a.b/c.d", "d"}};
  for (const auto& [name, expected] : cases) EXPECT_EQ(memory_source({}, name)->extension(), expected) << name;
}

// A name in memory that is also that of a file was taken for this file.
TEST(MemorySource, ItsNameIsNoPath) {
  const TemporaryFolder folder;
  write_file(folder / "model.gguf", "here");
  const std::shared_ptr<const Source> sources[] = {memory_source({}, folder / "model.gguf"),
                                                   open_file(folder / "model.gguf")};
  EXPECT_EQ(io::find_file(folder / "model.gguf", std::span(sources).first(1)), nullptr);
  EXPECT_EQ(io::find_file(folder / "model.gguf", sources), sources[1].get());
  EXPECT_EQ(sources[0]->file_name(), "model.gguf");
  EXPECT_EQ(sources[0]->extension(), "gguf");
}

// Everything that a source can be asked, each time with another reply than the default.
class Recording final : public Source {
 public:
  std::uint64_t size() const noexcept override { return called("size"), 100; }
  void read_at(std::uint64_t, std::span<std::byte>) const override { called("read_at"); }
  void read(std::span<const ReadRange>) const override { called("read"); }
  ReadCost cost() const noexcept override { return called("cost"), ReadCost{.gap = 7}; }
  Bytes map(std::uint64_t, std::uint64_t) const override { return called("map"), Bytes{{}, kept_}; }
  std::uint64_t written_end() const noexcept override { return called("written_end"), 50; }
  void will_need(std::uint64_t, std::uint64_t) const noexcept override { called("will_need"); }
  void check_unchanged() const override { called("check_unchanged"); }
  std::shared_ptr<const Place> place() const override { return called("place"), folder_of({}); }
  std::string_view name() const noexcept override { return called("name"), "<recording>"; }
  std::string_view path() const noexcept override { return called("path"), "/recording"; }
  mutable std::string last;

 private:
  void called(const char* member) const { last = member; }
  const std::shared_ptr<const int> kept_ = std::make_shared<const int>(0);
};

// A wrapper that forwarded by hand lost written_end(). That no member is missing here is a rule of tests/repository.
// A source made over another of its kind was a copy, which forwards past it.
static_assert(!std::is_copy_constructible_v<io::ForwardingSource>);

TEST(ForwardingSource, GivesAllThatTheOtherSourceHas) {
  const auto recording = std::make_shared<const Recording>();
  const io::ForwardingSource owning(recording), borrowing(*recording);
  for (const Source* const source : {static_cast<const Source*>(&owning), static_cast<const Source*>(&borrowing)}) {
    const auto reaches = [&](const char* member) { return std::exchange(recording->last, "") == member; };
    EXPECT_TRUE(source->size() == 100 && reaches("size"));
    source->read_at(0, {});
    EXPECT_TRUE(reaches("read_at"));
    source->read({});
    EXPECT_TRUE(reaches("read"));
    EXPECT_TRUE(source->cost().gap == 7 && reaches("cost"));
    EXPECT_TRUE(source->map(0, 0).keep != nullptr && reaches("map"));
    EXPECT_TRUE(source->written_end() == 50 && reaches("written_end"));
    source->will_need(0, 0);
    EXPECT_TRUE(reaches("will_need"));
    source->check_unchanged();
    EXPECT_TRUE(reaches("check_unchanged"));
    EXPECT_TRUE(source->place() != nullptr && reaches("place"));
    EXPECT_TRUE(source->name() == "<recording>" && reaches("name"));
    EXPECT_TRUE(source->path() == "/recording" && reaches("path"));
  }
}

TEST(FailingSource, FailsForAnyReadThatTouchesABadByte) {
  const std::string text = "0123456789";
  const test::FailingSource source(memory_source({std::as_bytes(std::span(text)), nullptr}), 4);
  EXPECT_EQ(source.size(), 10U);
  EXPECT_EQ(text_of(source, 0, 4), "0123");
  EXPECT_EQ(text_of(source, 10, 0), "");
  EXPECT_EQ(thrown([&] { text_of(source, 0, 5); }).kind, Kind::io);
  EXPECT_EQ(thrown([&] { text_of(source, 9, 1); }).rule, "io/injected");
  EXPECT_EQ(source.map(0, 4).keep, nullptr);
  std::array<std::byte, 5> out{};
  const ReadRange range{0, out};
  EXPECT_EQ(thrown([&] { source.read({&range, 1}); }).rule, "io/injected") << "no byte may pass by read_at()";
}

}  // namespace
}  // namespace weighbridge
