// SPDX-License-Identifier: Apache-2.0
// The hint is madvise(), which Linux has.
#include "base/large_pages.h"

#if defined(__linux__)
#include <sys/mman.h>

#include <cerrno>
#include <cstdint>
#endif

namespace weighbridge::base {

void use_large_pages(std::span<std::byte> memory) noexcept {
#if defined(__linux__) && defined(MADV_HUGEPAGE)
  constexpr std::uintptr_t kLargePage = std::uintptr_t{2} << 20;
  if (memory.size() < kLargePage) return;
  const auto address = reinterpret_cast<std::uintptr_t>(memory.data());
  const std::size_t before = (kLargePage - address % kLargePage) % kLargePage;
  if (memory.size() - before < kLargePage) return;
  const std::size_t length = (memory.size() - before) / kLargePage * kLargePage;
  const int error = errno;
  if (::madvise(memory.data() + before, length, MADV_HUGEPAGE) != 0) errno = error;  // a hint
#else
  static_cast<void>(memory);
#endif
}

}  // namespace weighbridge::base
