// SPDX-License-Identifier: Apache-2.0
// A process that is confined, and tries.
#include "sandbox.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/shm.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <exception>
#include <filesystem>
#include <fstream>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "support/temporary_folder.h"

namespace weighbridge::cli {
namespace {

namespace fs = std::filesystem;

// The errno of `attempt` in a process that is confined as for these words; 0 if it succeeds.
int confined(VerbId verb, const std::vector<std::string>& words, const std::function<bool()>& attempt) {
  const pid_t child = ::fork();
  if (child == 0) {
    std::vector<const char*> arguments;
    for (const std::string& word : words) arguments.push_back(word.c_str());
    try {
      confine(parse(verb, static_cast<int>(arguments.size()), arguments.data()));
      errno = 0;
      ::_exit(attempt() ? 0 : errno == 0 ? 255 : errno);
    } catch (const std::exception&) {
      ::_exit(254);
    }
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

bool opens(const fs::path& path, int flags) { return ::open(path.c_str(), flags | O_CLOEXEC, 0600) >= 0; }

class Confined : public testing::Test {
 protected:
  void SetUp() override {
    if (sandbox().landlock == 0 || !sandbox().seccomp)
      GTEST_SKIP() << "this build or this kernel confines nothing, or only in part: " << sandbox_text();
    for (const char* const name : {"models", "outputs", "secrets"}) fs::create_directory(root / name);
    for (const char* const name : {"models/m.safetensors", "models/m.json", "secrets/key"})
      std::ofstream(root / name) << "x";
  }
  test::TemporaryFolder folder;
  fs::path root = folder.path();
  std::string model = (root / "models/m.safetensors").string(), output = (root / "outputs/o.zt").string();
};

TEST_F(Confined, ReadsTheFolderOfItsInputAndNothingElse) {
  EXPECT_EQ(confined(VerbId::verify, {model}, [&] { return opens(model, O_RDONLY); }), 0);
  EXPECT_EQ(confined(VerbId::verify, {model}, [&] { return opens(root / "models/m.json", O_RDONLY); }), 0);
  EXPECT_EQ(confined(VerbId::verify, {model}, [&] { return opens(root / "secrets/key", O_RDONLY); }), EACCES);
  EXPECT_EQ(confined(VerbId::verify, {model}, [&] { return opens("/etc/passwd", O_RDONLY); }), EACCES);
  EXPECT_EQ(confined(VerbId::verify, {model}, [&] { return opens(model, O_WRONLY); }), EACCES);
  EXPECT_EQ(confined(VerbId::verify, {model}, [&] { return ::unlink(model.c_str()) == 0; }), EACCES);
}

TEST_F(Confined, WritesTheFolderOfItsOutputOnly) {
  const auto run = [&](const std::function<bool()>& attempt) {
    return confined(VerbId::convert, {model, output}, attempt);
  };
  EXPECT_EQ(run([&] { return opens(output, O_CREAT | O_WRONLY); }), 0);
  EXPECT_EQ(run([&] { return ::rename(output.c_str(), (root / "outputs/p.zt").c_str()) == 0; }), 0);
  EXPECT_EQ(run([&] { return opens(root / "models/new", O_CREAT | O_WRONLY); }), EACCES);
  EXPECT_EQ(run([&] { return ::truncate(model.c_str(), 0) == 0; }), EPERM);
  EXPECT_EQ(run([&] { return ::mkdir((root / "secrets/new").c_str(), 0700) == 0; }), EACCES);
}

TEST_F(Confined, AnOutputMayLieInAFolderThatIsNotThereYet) {
  const std::string deep = (root / "outputs/a/b").string();
  EXPECT_EQ(confined(VerbId::convert, {model, deep + "/o.zt"}, [&] { return fs::create_directories(deep); }), 0);
}

TEST_F(Confined, FilesInTheCacheOfTheHubAreReadThroughTheirLinks) {
  fs::create_directories(root / "models--a--b/snapshots/0123");
  fs::create_directories(root / "models--a--b/blobs");
  std::ofstream(root / "models--a--b/blobs/89ab") << "x";
  const fs::path link = root / "models--a--b/snapshots/0123/model.safetensors";
  fs::create_symlink("../../blobs/89ab", link);
  fs::create_symlink("../../../secrets/key", root / "models--a--b/snapshots/0123/config.json");
  const std::string snapshot = link.parent_path().string();
  EXPECT_EQ(confined(VerbId::verify, {snapshot}, [&] { return opens(link, O_RDONLY); }), 0);
  EXPECT_EQ(confined(VerbId::verify, {snapshot}, [&] { return opens(link.parent_path() / "config.json", O_RDONLY); }),
            EACCES);
}

TEST_F(Confined, ReachesNoNetworkAndStartsNoProgram) {
  const auto run = [&](const std::function<bool()>& attempt) { return confined(VerbId::verify, {model}, attempt); };
  for (const int family : {AF_INET, AF_INET6, AF_UNIX})
    EXPECT_EQ(run([family] { return ::socket(family, SOCK_STREAM, 0) >= 0; }), EPERM) << family;
  EXPECT_EQ(run([] {
              char program[] = "/bin/true";
              char* const words[] = {program, nullptr};
              return ::execv(program, words) == 0;
            }),
            EPERM);
  EXPECT_EQ(run([] { return ::fork() >= 0; }), EPERM);
  EXPECT_EQ(run([] { return ::syscall(SYS_ptrace, 0, 0, 0, 0) >= 0; }), EPERM);
  EXPECT_EQ(run([] { return ::syscall(SYS_io_uring_setup, 1, nullptr) >= 0; }), EPERM);
  EXPECT_EQ(run([] { return ::kill(::getppid(), 0) == 0; }), EPERM);
  EXPECT_EQ(run([] { return ::syscall(SYS_tgkill, ::getppid(), ::getppid(), 0) == 0; }), EPERM);
  EXPECT_EQ(run([] { return ::syscall(SYS_tgkill, ::getpid(), ::gettid(), 0) == 0; }), 0);
  EXPECT_EQ(run([] { return ::syscall(600, 0) >= 0; }), ENOSYS);  // of a kernel to come
}

TEST_F(Confined, ReadsItsOwnLimitsAndChangesNone) {
  const auto run = [&](const std::function<bool()>& attempt) { return confined(VerbId::verify, {model}, attempt); };
  struct rlimit files {};
  EXPECT_EQ(run([&] { return ::prlimit(0, RLIMIT_NOFILE, nullptr, &files) == 0; }), 0);
  EXPECT_EQ(run([&] { return ::prlimit(0, RLIMIT_NOFILE, &files, nullptr) == 0; }), EPERM);
  EXPECT_EQ(run([&] { return ::prlimit(::getppid(), RLIMIT_NOFILE, nullptr, &files) == 0; }), EPERM);
}

// Landlock does not look at these calls: by a name they reached every file of the user.
TEST_F(Confined, ChangesFilesByNoNameThatItCannotOpen) {
  const auto run = [&](const std::function<bool()>& attempt) {
    return confined(VerbId::convert, {model, output}, attempt);
  };
  const std::string secret = (root / "secrets/key").string();
  const char* const path = secret.c_str();
  EXPECT_EQ(run([=] { return ::chmod(path, 0777) == 0; }), EPERM);
  EXPECT_EQ(run([=] { return ::fchmodat(AT_FDCWD, path, 0777, 0) == 0; }), EPERM);
  EXPECT_EQ(run([=] { return ::chown(path, ::getuid(), ::getgid()) == 0; }), EPERM);
  EXPECT_EQ(run([=] { return ::fchownat(AT_FDCWD, path, ::getuid(), ::getgid(), 0) == 0; }), EPERM);
  EXPECT_EQ(run([=] { return ::utimensat(AT_FDCWD, path, nullptr, 0) == 0; }), EPERM);
  EXPECT_EQ(run([=] { return ::setxattr(path, "user.a", "b", 1, 0) == 0; }), EPERM);
  EXPECT_EQ(run([=] { return ::lremovexattr(path, "user.a") == 0; }), EPERM);
  EXPECT_EQ(run([=] { return ::symlink(path, "link") == 0; }), EPERM);
}

TEST_F(Confined, MapsNoMemoryAsCode) {
  const auto run = [&](const std::function<bool()>& attempt) { return confined(VerbId::verify, {model}, attempt); };
  EXPECT_EQ(run([] {
              return ::mmap(nullptr, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) != MAP_FAILED;
            }),
            EPERM);
  EXPECT_EQ(run([] {
              void* const page = ::mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
              return page != MAP_FAILED && ::mprotect(page, 4096, PROT_READ | PROT_EXEC) == 0;
            }),
            EPERM);
  EXPECT_EQ(run([] {
              const int shared = ::shmget(IPC_PRIVATE, 4096, IPC_CREAT | 0700);
              return ::shmat(shared, nullptr, SHM_EXEC) != reinterpret_cast<void*>(-1);
            }),
            EPERM);
}

TEST_F(Confined, StartsThreadsWhichAreConfinedToo) {
  EXPECT_EQ(confined(VerbId::verify, {model},
                     [] {
                       bool refused = false;
                       std::thread([&] { refused = ::socket(AF_INET, SOCK_STREAM, 0) < 0 && errno == EPERM; }).join();
                       return refused;
                     }),
            0);
}

}  // namespace
}  // namespace weighbridge::cli
