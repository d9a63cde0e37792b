// SPDX-License-Identifier: Apache-2.0
// System calls for which older C libraries have no function: glibc has getentropy since 2.25 and renameat2 since 2.28.
// The released wheels are linked for 2.17, so these call the kernel directly.
#pragma once
#include <cstddef>
#include <cstdio>
#include <span>
#ifdef __linux__
#include <sys/syscall.h>
#endif
#include <unistd.h>

namespace weighbridge::io {

#if defined(__GLIBC__) && defined(__GLIBC_PREREQ)
#if !__GLIBC_PREREQ(2, 28)
#define WB_OLD_GLIBC 1
#endif
#endif

// Fills at most 256 bytes with random numbers. False, with errno, on failure.
inline bool random_bytes(std::span<std::byte> out) noexcept {
#ifdef WB_OLD_GLIBC
  return ::syscall(SYS_getrandom, out.data(), out.size(), 0) == static_cast<long>(out.size());
#else
  return ::getentropy(out.data(), out.size()) == 0;
#endif
}

#ifdef __linux__
// As renameat(), with flags: 0, or -1 with errno.
inline int rename_with(int from_folder, const char* from, int to_folder, const char* to, unsigned flags) noexcept {
#ifdef WB_OLD_GLIBC
  return static_cast<int>(::syscall(SYS_renameat2, from_folder, from, to_folder, to, flags));
#else
  return ::renameat2(from_folder, from, to_folder, to, flags);
#endif
}
#endif

}  // namespace weighbridge::io
