// SPDX-License-Identifier: Apache-2.0
// WebAssembly by Emscripten: no hints, no forks, and threads only in builds for them.
#include <algorithm>
#include <thread>

#include "base/os.h"

namespace weighbridge::base {

void use_large_pages(std::span<std::byte>) noexcept {}
#ifdef __EMSCRIPTEN_PTHREADS__
bool has_threads() noexcept { return true; }
#else
bool has_threads() noexcept { return false; }
#endif
unsigned usable_processors() noexcept { return std::max(1U, std::thread::hardware_concurrency()); }
void at_fork(void (*)(), void (*)(), void (*)()) noexcept {}
bool has_arm_sha256() noexcept { return false; }
std::string_view glibc_version() noexcept { return {}; }

}  // namespace weighbridge::base
