// SPDX-License-Identifier: Apache-2.0
// Linux: madvise(), sched_getaffinity(), pthread_atfork(), getauxval().
#include <pthread.h>
#include <sched.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#ifdef __GLIBC__
#include <gnu/libc-version.h>
#endif

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <thread>

#include "base/os.h"

namespace weighbridge::base {

void use_large_pages(std::span<std::byte> memory) noexcept {
  constexpr std::uintptr_t kLargePage = std::uintptr_t{2} << 20;
  if (memory.size() < kLargePage) return;
  const auto address = reinterpret_cast<std::uintptr_t>(memory.data());
  const std::size_t before = (kLargePage - address % kLargePage) % kLargePage;
  if (memory.size() - before < kLargePage) return;
  const std::size_t length = (memory.size() - before) / kLargePage * kLargePage;
  const int error = errno;
  if (::madvise(memory.data() + before, length, MADV_HUGEPAGE) != 0) errno = error;  // a hint
}

bool has_threads() noexcept { return true; }

unsigned usable_processors() noexcept {
  cpu_set_t set;
  CPU_ZERO(&set);
  const int count = ::sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : 0;
  return count > 0 ? static_cast<unsigned>(count) : std::max(1U, std::thread::hardware_concurrency());
}

void at_fork(void (*before)(), void (*parent)(), void (*child)()) noexcept { ::pthread_atfork(before, parent, child); }

bool has_arm_sha256() noexcept {
#ifdef __aarch64__
  constexpr unsigned long kSha2 = 1UL << 6;  // HWCAP_SHA2
  return (::getauxval(AT_HWCAP) & kSha2) != 0;
#else
  return false;
#endif
}

std::string_view glibc_version() noexcept {
#ifdef __GLIBC__
  return gnu_get_libc_version();
#else
  return {};
#endif
}

}  // namespace weighbridge::base
