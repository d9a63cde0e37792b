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
#include <filesystem>
#include <map>
#include <string_view>
#include <system_error>
#include <vector>

#include "actions.h"
#include "manifest.h"
#include "weighbridge/recover.h"

namespace weighbridge::cli {
namespace {

namespace fs = std::filesystem;

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
constexpr std::uint64_t kRead = kReadFile | kReadFolder;
constexpr std::uint64_t kWrite =
    kRead | kWriteFile | kTruncate | kRemoveFolder | kRemoveFile | kMakeFolder | kMakeFile | kMakeLink | kRefer;
constexpr std::uint64_t kKeep = kRead | kWriteFile | kTruncate | kRemoveFile | kMakeFile;  // without folders
constexpr std::uint64_t kTcp = 1 << 0 | 1 << 1;                                            // bind, connect

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

// Where the process may go: a path, and what it may do there and beneath.
class Places {
 public:
  // The file at `path`, which need not exist, and its folder: models have sidecars, shards and vocabularies beside
  // them.
  void add(std::string_view path, std::uint64_t access) {
    if (path.empty() || path == "-") return;
    std::error_code ignored;
    const fs::path named(path);
    allow(named, access);
    if (!fs::is_directory(named, ignored) || access == kWrite) allow(existing_folder_of(named), access);
    if (!fs::is_symlink(fs::symlink_status(named, ignored))) return;
    const fs::path target = fs::canonical(named, ignored);
    if (!ignored && access == kWrite) allow(target.parent_path(), access);
  }
  void allow(const fs::path& path, std::uint64_t access) {
    places_[path.native()] |= access;
    add_blobs(path);
  }
  auto begin() const { return places_.begin(); }
  auto end() const { return places_.end(); }

 private:
  // In the cache of the Hub, the files of a model are links: models--o--n/snapshots/0123/config.json to
  // models--o--n/blobs/89ab.
  void add_blobs(const fs::path& path) {
    std::error_code failed;
    for (fs::path at = fs::weakly_canonical(path, failed); !failed && at.has_relative_path(); at = at.parent_path()) {
      if (at.parent_path().filename() != "snapshots") continue;
      places_[at.parent_path().parent_path() / "blobs"] |= kRead;
      return;
    }
  }
  // Outputs may name folders that are made on the way.
  static fs::path existing_folder_of(const fs::path& path) {
    std::error_code ignored;
    fs::path folder = path.has_filename() ? path.parent_path() : path.parent_path().parent_path();
    while (!folder.empty() && !fs::is_directory(folder, ignored) && folder != folder.parent_path())
      folder = folder.parent_path();
    return folder.empty() ? fs::path(".") : folder;
  }

  std::map<std::string, std::uint64_t> places_;
};

Places places_of(const Arguments& arguments) {
  Places out;
  const std::string_view usage = operands_of(arguments.verb, arguments.action);
  const std::vector<std::string>& operands = arguments.operands;
  bool writes = false;
  for (std::size_t i = 0; i < operands.size(); ++i) {
    if (!operand_is_file(operand_name(usage, i))) continue;
    // Actions keep records and ledgers beside the files that they are about.
    const bool written =
        arguments.action || (arguments.verb == VerbId::convert && i == 1 && !arguments.has(FlagId::output)) ||
        (arguments.verb == VerbId::append && i == 0) ||
        (arguments.verb == VerbId::edit &&
         (arguments.has(FlagId::in_place) || arguments.has(FlagId::undo) || arguments.has(FlagId::recover)));
    out.add(operands[i], written ? kWrite : kRead);
    // Only the folder itself: nothing beside it changes.
    const bool recovered = arguments.verb == VerbId::doctor && arguments.has(FlagId::recover);
    if (recovered) out.allow(operands[i], kWrite);
    writes = writes || written || recovered;
  }
  for (const Flag& flag : flags()) {
    if (flag.type != Type::file) continue;
    for (const std::string& value : arguments.values(flag.id)) {
      out.add(value, flag.writes ? kWrite : kRead);
      writes = writes || (flag.writes && flag.id != FlagId::state);
      if (flag.id == FlagId::merge_lora) out.add(value.substr(0, value.rfind('=')), kRead);  // ADAPTER=SCALE
    }
  }
  // The key that marks journals. Its folder must be there to be allowed: a rule for the home would allow all of it.
  if (writes)
    if (const std::string state = state_folder(true); !state.empty()) out.allow(state, kKeep);
  if (arguments.verb == VerbId::verify && arguments.has(FlagId::manifest)) out.add(state_file(arguments), kWrite);
  if (arguments.verb == VerbId::hash && arguments.has(FlagId::check))
    out.allow("/", kRead);  // the list names the files
  return out;
}

// None of the places is left out silently: if the kernel takes no rule for one that is there, nothing is confined.
void confine_files(const Arguments& arguments, int version) {
  RulesetAttributes attributes{.files = known_to(version), .network = kTcp};
  const std::size_t size = version >= 4 ? sizeof attributes : offsetof(RulesetAttributes, network);
  const int rules = static_cast<int>(::syscall(kCreateRuleset, &attributes, size, 0));
  if (rules < 0) return;
  ::fcntl(rules, F_SETFD, FD_CLOEXEC);
  bool complete = true;
  for (const auto& [path, access] : places_of(arguments)) {
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

// Calls that no verb makes: to other machines and processes, to run programs, to change the system.
constexpr long kRefused[] = {
#ifdef __NR_fork
    __NR_fork,
    __NR_vfork,
#endif
    __NR_execve,
    __NR_execveat,
    __NR_socket,
    __NR_socketpair,
    __NR_connect,
    __NR_bind,
    __NR_listen,
    __NR_ptrace,
    __NR_process_vm_readv,
    __NR_process_vm_writev,
    __NR_kcmp,
    __NR_mount,
    __NR_umount2,
    __NR_pivot_root,
    __NR_chroot,
    __NR_unshare,
    __NR_setns,
    __NR_bpf,
    __NR_perf_event_open,
    __NR_userfaultfd,
    __NR_keyctl,
    __NR_add_key,
    __NR_request_key,
    __NR_init_module,
    __NR_finit_module,
    __NR_delete_module,
    __NR_kexec_load,
    __NR_swapon,
    __NR_swapoff,
    __NR_reboot,
    __NR_settimeofday,
    __NR_clock_settime,
    __NR_acct,
    __NR_quotactl,
    __NR_personality,
    __NR_open_by_handle_at,
    __NR_memfd_create,
    __NR_io_uring_setup,
    __NR_open_tree,
    __NR_move_mount,
    __NR_fsopen,
    __NR_fsmount,
    __NR_pidfd_getfd};
constexpr std::uint32_t kForeignCalls = 0x40000000;  // x32 on x86-64

// A filter of the kernel's: instructions that jump forward over those that do not apply.
class Filter {
 public:
  void load(std::size_t offset) { add(BPF_STMT(BPF_LD | BPF_W | BPF_ABS, static_cast<std::uint32_t>(offset))); }
  void refuse_unless(unsigned comparison, std::uint32_t value) {
    add(BPF_JUMP(BPF_JMP | BPF_K | comparison, value, 1, 0));
    refuse(EPERM);
  }
  void refuse_if(unsigned comparison, std::uint32_t value, std::uint32_t error) {
    add(BPF_JUMP(BPF_JMP | BPF_K | comparison, value, 0, 1));
    refuse(error);
  }
  void refuse(std::uint32_t error) { add(BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | error)); }
  void skip_unless(unsigned comparison, std::uint32_t value, std::uint8_t count) {
    add(BPF_JUMP(BPF_JMP | BPF_K | comparison, value, 0, count));
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
  constexpr std::size_t kNumber = offsetof(seccomp_data, nr), kFirst = offsetof(seccomp_data, args),
                        kThird =
                            kFirst + 2 * sizeof(std::uint64_t);  // their low halves: both processors are little-endian
  Filter filter;
  filter.load(offsetof(seccomp_data, arch));
  filter.refuse_unless(BPF_JEQ, kProcessor);
  filter.load(kNumber);
  filter.refuse_if(BPF_JGE, kForeignCalls, EPERM);
  for (const long number : kRefused) filter.refuse_if(BPF_JEQ, static_cast<std::uint32_t>(number), EPERM);
  filter.refuse_if(BPF_JEQ, __NR_clone3, ENOSYS);  // its arguments cannot be seen; clone() is tried next
  // A thread, but no process.
  filter.skip_unless(BPF_JEQ, __NR_clone, 4);
  filter.load(kFirst);
  filter.skip_unless(BPF_JSET, CLONE_THREAD, 1);
  filter.allow();
  filter.refuse(EPERM);
  // No memory becomes code.
  for (const long number :
       {static_cast<long>(__NR_mmap), static_cast<long>(__NR_mprotect), static_cast<long>(__NR_pkey_mprotect)}) {
    filter.skip_unless(BPF_JEQ, static_cast<std::uint32_t>(number), 4);
    filter.load(kThird);
    filter.skip_unless(BPF_JSET, PROT_EXEC, 1);
    filter.refuse(EPERM);
    filter.allow();
  }
  filter.allow();
  static_cast<void>(filter.install());
}

}  // namespace

Sandbox sandbox() noexcept {
  const std::uint32_t action = SECCOMP_RET_ERRNO;
  return {.landlock = landlock_version(),
          .seccomp = kProcessor != 0 && ::syscall(__NR_seccomp, SECCOMP_GET_ACTION_AVAIL, 0, &action) == 0};
}

void confine(const Arguments& arguments) {
  const Sandbox can = sandbox();
  if ((can.landlock == 0 && !can.seccomp) || ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) return;
  if (can.landlock > 0) confine_files(arguments, can.landlock);
  if (can.seccomp) confine_calls();
}

}  // namespace weighbridge::cli
#else
namespace weighbridge::cli {
Sandbox sandbox() noexcept { return {}; }
void confine(const Arguments&) {}
}  // namespace weighbridge::cli
#endif

namespace weighbridge::cli {

std::string sandbox_text() {
  const Sandbox can = sandbox();
  std::string out = can.landlock > 0 ? "landlock " + std::to_string(can.landlock) : "";
  if (can.seccomp) out += out.empty() ? "seccomp" : ", seccomp";
  return out.empty() ? "none" : out;
}

}  // namespace weighbridge::cli
