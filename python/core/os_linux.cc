// SPDX-License-Identifier: Apache-2.0
// The pages of new arrays. Public headers have no such hints, so these are the module's own.
#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>

#include "core.h"

namespace weighbridge::python {

void populate([[maybe_unused]] std::span<std::byte> memory) noexcept {
#ifdef MADV_POPULATE_WRITE
  static const auto page = static_cast<std::uintptr_t>(::sysconf(_SC_PAGESIZE));
  const auto begin = reinterpret_cast<std::uintptr_t>(memory.data()) / page * page;
  const auto end = reinterpret_cast<std::uintptr_t>(memory.data() + memory.size());
  static_cast<void>(::madvise(reinterpret_cast<void*>(begin), end - begin, MADV_POPULATE_WRITE));
#endif
}

void use_huge_pages(std::span<std::byte> memory) noexcept {
  static_cast<void>(::madvise(memory.data(), memory.size(), MADV_HUGEPAGE));
}

}  // namespace weighbridge::python
