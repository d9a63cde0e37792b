// SPDX-License-Identifier: Apache-2.0
// What base asks of the operating system: pages, processors, threads. Only os_*.cc, one for each system, include its
// headers. macOS and Windows will answer the same functions; until they do, those systems do not build.
#pragma once
#include <cstddef>
#include <span>
#include <string_view>

namespace weighbridge::base {

// Call it before the memory is used for the first time. If the system follows the hint, it provides the memory in pages
// of 2 MiB instead of 4 KiB: the first use of a page costs as much as parsing the kilobyte that is read from it. Covers
// only whole large pages, so short memory is left as it is. The contents and errno do not change. macOS has no such
// hint; Windows gives large pages only to privileged programs.
void use_large_pages(std::span<std::byte>) noexcept;

// Whether this process can start threads.
bool has_threads() noexcept;
// The processors that this process may use, at least 1; containers and taskset reduce their number.
unsigned usable_processors() noexcept;
// From now on, calls these around each fork, `before` and `parent` in the parent; any may be null. Does nothing where
// processes do not fork (Windows).
void at_fork(void (*before)(), void (*parent)(), void (*child)()) noexcept;
// Whether the processor has the SHA-256 instructions of aarch64. False on others; x86-64 says so itself (cpu.h).
bool has_arm_sha256() noexcept;

// The version of the C library if it is glibc; else empty.
std::string_view glibc_version() noexcept;

}  // namespace weighbridge::base
