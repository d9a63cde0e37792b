// SPDX-License-Identifier: Apache-2.0
// Landlock limits which files can be opened, and seccomp which calls the kernel takes (its pages userspace-api/landlock
// and userspace-api/seccomp_filter). Not in builds with a sanitizer or with counters of coverage, whose runtimes start
// processes and write files of their own.
#include "sandbox.h"

#if defined(__linux__) && !defined(WEIGHBRIDGE_NO_SANDBOX)
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace weighbridge::cli {
namespace {

// The interface of landlock up to its version 5, in our words: headers are older than the kernels that programs run on.
struct RulesetAttributes {
  std::uint64_t files = 0;    // the accesses to files that need a rule
  std::uint64_t network = 0;  // the same for TCP, since version 4
};
struct [[gnu::packed]] FolderRule {
  std::uint64_t allowed = 0;
  std::int32_t beneath = -1;
};
constexpr long kCreateRuleset = 444, kAddRule = 445, kRestrictSelf = 446;  // the same on every processor
constexpr unsigned kAskVersion = 1, kFolderRule = 1;
constexpr std::uint64_t kWriteFile = 1 << 1, kReadFile = 1 << 2, kReadFolder = 1 << 3, kRemoveFolder = 1 << 4,
                        kRemoveFile = 1 << 5, kMakeFolder = 1 << 7, kMakeFile = 1 << 8, kMakeLink = 1 << 12,
                        kRefer = 1 << 13, kTruncate = 1 << 14, kDeviceControl = 1 << 15;
constexpr std::uint64_t kOfFiles = kWriteFile | kReadFile | kTruncate;  // what a rule for a file may have
constexpr std::uint64_t kChangeFiles = kWriteFile | kTruncate | kRemoveFile | kMakeFile,
                        kChangeFolders = kRemoveFolder | kMakeFolder | kMakeLink | kRefer;
constexpr std::uint64_t kTcp = 1 << 0 | 1 << 1;  // bind, connect

// What a kernel of this version can refuse.
std::uint64_t known_to(int version) noexcept {
  std::uint64_t all = (1 << 13) - 1;
  if (version >= 2) all |= kRefer;
  if (version >= 3) all |= kTruncate;
  if (version >= 5) all |= kDeviceControl;
  return all;
}

int landlock_version() noexcept {
  const long version = ::syscall(kCreateRuleset, nullptr, 0, kAskVersion);
  return version < 0 ? 0 : static_cast<int>(version);
}

// None of the places is left out silently: if the kernel takes no rule for one that is there, nothing is confined.
void confine_files(const os::Places& places, int version) {
  RulesetAttributes attributes{.files = known_to(version), .network = kTcp};
  const std::size_t size = version >= 4 ? sizeof attributes : offsetof(RulesetAttributes, network);
  const int rules = static_cast<int>(::syscall(kCreateRuleset, &attributes, size, 0));
  if (rules < 0) return;
  ::fcntl(rules, F_SETFD, FD_CLOEXEC);
  bool complete = true;
  for (const auto& [path, allowed] : places) {
    const std::uint64_t access = kReadFile | kReadFolder | ((allowed & os::kKeep) == os::kKeep ? kChangeFiles : 0) |
                                 (allowed == os::kWrite ? kChangeFolders : 0);
    int at = -1;
    do {
      at = ::open(path.c_str(), O_PATH | O_CLOEXEC);
    } while (at < 0 && errno == EINTR);
    struct stat status {};
    if (at >= 0 && ::fstat(at, &status) == 0 &&
        (S_ISDIR(status.st_mode) || S_ISREG(status.st_mode) || S_ISCHR(status.st_mode))) {
      const FolderRule rule{
          .allowed = access & attributes.files & (S_ISDIR(status.st_mode) ? ~std::uint64_t{0} : kOfFiles),
          .beneath = at};
      complete = ::syscall(kAddRule, rules, kFolderRule, &rule, 0) == 0 && complete;
    }
    if (at >= 0) ::close(at);
  }
  if (complete) static_cast<void>(::syscall(kRestrictSelf, rules, 0));
  ::close(rules);
}

#if defined(__x86_64__)
constexpr std::uint32_t kProcessor = AUDIT_ARCH_X86_64;
#elif defined(__aarch64__)
constexpr std::uint32_t kProcessor = AUDIT_ARCH_AARCH64;
#else
constexpr std::uint32_t kProcessor = 0;
#endif

// What verbs need, the most frequent first: files by their descriptors and names, memory, threads, signals of the
// process itself, clocks and a terminal. Calls that change the mode, owner, times or attributes of a file take a
// descriptor, which landlock has let it open; those that take a name would reach every file of the user.
constexpr long kNeeded[] = {
#include "needed_calls.def"
};
// Newer calls do not exist, as for an older kernel, so that the C library does without them.
constexpr std::uint32_t kNewest = __NR_faccessat2;
constexpr std::uint32_t kForeignCalls = 0x40000000;  // x32 on x86-64

// A filter of the kernel's: instructions that jump forward over those that do not apply.
class Filter {
 public:
  void load(std::size_t offset) { add(BPF_STMT(BPF_LD | BPF_W | BPF_ABS, static_cast<std::uint32_t>(offset))); }
  void refuse_unless(unsigned comparison, std::uint32_t value) {
    skip_unless(comparison, value, 1, true);
    refuse(EPERM);
  }
  void refuse_if(unsigned comparison, std::uint32_t value, std::uint32_t error) {
    skip_unless(comparison, value, 1);
    refuse(error);
  }
  void allow_if(std::uint32_t number) {
    skip_unless(BPF_JEQ, number, 1);
    allow();
  }
  void refuse(std::uint32_t error) { add(BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | error)); }
  void skip_unless(unsigned comparison, std::uint32_t value, std::uint8_t count, bool if_it_holds = false) {
    add(BPF_JUMP(BPF_JMP | BPF_K | comparison, value, if_it_holds ? count : std::uint8_t{0},
                 if_it_holds ? std::uint8_t{0} : count));
  }
  void allow() { add(BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)); }
  bool install() {
    const sock_fprog program{.len = static_cast<unsigned short>(code_.size()), .filter = code_.data()};
    return ::syscall(__NR_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program) == 0;
  }

 private:
  void add(const sock_filter& instruction) { code_.push_back(instruction); }
  std::vector<sock_filter> code_;
};

void confine_calls() {
  // Arguments have two halves; both processors are little-endian.
  constexpr auto low = [](std::size_t i) { return offsetof(seccomp_data, args) + i * sizeof(std::uint64_t); };
  constexpr auto high = [=](std::size_t i) { return low(i) + sizeof(std::uint32_t); };
  Filter filter;
  filter.load(offsetof(seccomp_data, arch));
  filter.refuse_unless(BPF_JEQ, kProcessor);
  filter.load(offsetof(seccomp_data, nr));
  filter.refuse_if(BPF_JGE, kForeignCalls, EPERM);
  for (const long number : kNeeded) filter.allow_if(static_cast<std::uint32_t>(number));
  filter.refuse_if(BPF_JGT, kNewest, ENOSYS);
  filter.refuse_if(BPF_JEQ, __NR_clone3, ENOSYS);  // its arguments cannot be seen; clone() is tried next
  // A thread, but no process.
  filter.skip_unless(BPF_JEQ, __NR_clone, 4);
  filter.load(low(0));
  filter.skip_unless(BPF_JSET, CLONE_THREAD, 1);
  filter.allow();
  filter.refuse(EPERM);
  // No memory becomes code.
  for (const long number : {static_cast<long>(__NR_mmap), static_cast<long>(__NR_mprotect)}) {
    filter.skip_unless(BPF_JEQ, static_cast<std::uint32_t>(number), 4);
    filter.load(low(2));
    filter.skip_unless(BPF_JSET, PROT_EXEC, 1);
    filter.refuse(EPERM);
    filter.allow();
  }
  // A signal to one of its own threads: abort() and raise().
  filter.skip_unless(BPF_JEQ, __NR_tgkill, 4);
  filter.load(low(0));
  filter.skip_unless(BPF_JEQ, static_cast<std::uint32_t>(::getpid()), 1);
  filter.allow();
  filter.refuse(EPERM);
  // What its own limits are, but not to change them.
  filter.skip_unless(BPF_JEQ, __NR_prlimit64, 10);
  for (const std::size_t half : {low(0), low(2), high(2)}) {
    filter.load(half);
    filter.refuse_unless(BPF_JEQ, 0);
  }
  filter.allow();
  filter.refuse(EPERM);  // everything else
  static_cast<void>(filter.install());
}

}  // namespace

Sandbox sandbox() noexcept {
  const std::uint32_t action = SECCOMP_RET_ERRNO;
  return {.landlock = landlock_version(),
          .seccomp = kProcessor != 0 && ::syscall(__NR_seccomp, SECCOMP_GET_ACTION_AVAIL, 0, &action) == 0};
}

void os::confine(const Places& places, const Sandbox& can) {
  if (::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) return;
  if (can.landlock > 0) confine_files(places, can.landlock);
  if (can.seccomp) confine_calls();
}

}  // namespace weighbridge::cli
#else
namespace weighbridge::cli {
Sandbox sandbox() noexcept { return {}; }
void os::confine(const Places&, const Sandbox&) {}
}  // namespace weighbridge::cli
#endif
