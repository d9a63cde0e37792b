// SPDX-License-Identifier: Apache-2.0
// The linker sends calls of the functions below to their twins here (--wrap), which count and then call them. Nothing
// here may be instrumented itself.
#include "meter.h"

#include <sanitizer/allocator_interface.h>

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <utility>

#include "io/forwarding_source.h"

#define UNSEEN __attribute__((no_sanitize("coverage", "address", "undefined")))

namespace weighbridge::fuzz {
namespace {

struct State {
  std::uint64_t steps;
  std::int64_t now, maximum;  // bytes
  bool on;
};
State state;

constexpr std::uint64_t kAllocation = 8, kBytesPerStep = 8;

UNSEEN inline void count_bytes(std::size_t size) { state.steps += 1 + size / kBytesPerStep; }

UNSEEN void on_allocation(const volatile void*, std::size_t size) {
  if (!state.on) return;
  state.steps += kAllocation;
  state.now += static_cast<std::int64_t>(size);
  state.maximum = std::max(state.maximum, state.now);
}
UNSEEN void on_release(const volatile void* at) {
  if (state.on && at != nullptr)
    state.now -= static_cast<std::int64_t>(__sanitizer_get_allocated_size(const_cast<const void*>(at)));
}

class Metered final : public io::InterposedSource {
 public:
  using InterposedSource::InterposedSource;
  void read_at(std::uint64_t offset, std::span<std::byte> out) const override {
    count_bytes(out.size());
    of().read_at(offset, out);
  }
};

}  // namespace

Cost cost_of(const std::function<void()>& call) {
  static const bool hooked = __sanitizer_install_malloc_and_free_hooks(on_allocation, on_release) != 0;
  if (!hooked) __builtin_trap();
  state = {.steps = 0, .now = 0, .maximum = 0, .on = true};
  call();
  state.on = false;
  return {.steps = state.steps, .memory = static_cast<std::uint64_t>(state.maximum)};
}

std::shared_ptr<const Source> metered(std::shared_ptr<const Source> base) {
  return std::make_shared<Metered>(std::move(base));
}

}  // namespace weighbridge::fuzz

using weighbridge::fuzz::count_bytes;
using weighbridge::fuzz::state;

extern "C" {

// What the compiler reports. libFuzzer wants to see the place that called, so these end in a jump.
#define WEIGHBRIDGE_REPORT(name, first, second)     \
  void __real_##name(first, second);                \
  UNSEEN void __wrap_##name(first a, second b);     \
  void __wrap_##name(first a, second b) {           \
    ++state.steps;                                  \
    [[clang::musttail]] return __real_##name(a, b); \
  }
WEIGHBRIDGE_REPORT(__sanitizer_cov_trace_cmp1, std::uint8_t, std::uint8_t)
WEIGHBRIDGE_REPORT(__sanitizer_cov_trace_cmp2, std::uint16_t, std::uint16_t)
WEIGHBRIDGE_REPORT(__sanitizer_cov_trace_cmp4, std::uint32_t, std::uint32_t)
WEIGHBRIDGE_REPORT(__sanitizer_cov_trace_cmp8, std::uint64_t, std::uint64_t)
WEIGHBRIDGE_REPORT(__sanitizer_cov_trace_const_cmp1, std::uint8_t, std::uint8_t)
WEIGHBRIDGE_REPORT(__sanitizer_cov_trace_const_cmp2, std::uint16_t, std::uint16_t)
WEIGHBRIDGE_REPORT(__sanitizer_cov_trace_const_cmp4, std::uint32_t, std::uint32_t)
WEIGHBRIDGE_REPORT(__sanitizer_cov_trace_const_cmp8, std::uint64_t, std::uint64_t)
WEIGHBRIDGE_REPORT(__sanitizer_cov_trace_switch, std::uint64_t, std::uint64_t*)
#undef WEIGHBRIDGE_REPORT

void __real___sanitizer_cov_trace_pc_indir(std::uintptr_t);
UNSEEN void __wrap___sanitizer_cov_trace_pc_indir(std::uintptr_t to) {
  ++state.steps;
  [[clang::musttail]] return __real___sanitizer_cov_trace_pc_indir(to);
}

// What the address sanitizer makes of copies in instrumented code.
void* __real___asan_memcpy(void*, const void*, std::size_t);
UNSEEN void* __wrap___asan_memcpy(void* to, const void* from, std::size_t size) {
  count_bytes(size);
  return __real___asan_memcpy(to, from, size);
}
void* __real___asan_memmove(void*, const void*, std::size_t);
UNSEEN void* __wrap___asan_memmove(void* to, const void* from, std::size_t size) {
  count_bytes(size);
  return __real___asan_memmove(to, from, size);
}
void* __real___asan_memset(void*, int, std::size_t);
UNSEEN void* __wrap___asan_memset(void* to, int value, std::size_t size) {
  count_bytes(size);
  return __real___asan_memset(to, value, size);
}

// Comparisons and searches cost the bytes that they look at.
int __real_memcmp(const void*, const void*, std::size_t);
UNSEEN int __wrap_memcmp(const void* a, const void* b, std::size_t size) {
  if (state.on) {
    const auto *left = static_cast<const char*>(a), *right = static_cast<const char*>(b);
    std::size_t same = 0;
    while (same < size && left[same] == right[same]) ++same;
    count_bytes(same);
  }
  return __real_memcmp(a, b, size);
}
int __real_bcmp(const void*, const void*, std::size_t);
UNSEEN int __wrap_bcmp(const void* a, const void* b, std::size_t size) { return __wrap_memcmp(a, b, size); }
void* __real_memchr(const void*, int, std::size_t);
UNSEEN void* __wrap_memchr(const void* in, int value, std::size_t size) {
  void* const found = __real_memchr(in, value, size);
  count_bytes(found == nullptr
                  ? size
                  : static_cast<std::size_t>(static_cast<const char*>(found) - static_cast<const char*>(in)));
  return found;
}

}  // extern "C"
