// SPDX-License-Identifier: Apache-2.0
// The content rule of llama2.c checkpoints: every value is finite. Reports the first bad value of each tensor.
#include <mutex>
#include <vector>

#include "base/endian.h"
#include "core/model/progress.h"
#include "core/payload/content.h"
#include "formats/llama2c/format.h"

namespace weighbridge::llama2c {
namespace {

constexpr std::uint32_t kExponent = 0x7f800000U;

// The index of the first value that is not finite, or the number of values. Checks blocks without branches, so that the
// compiler vectorizes the loop.
std::size_t first_bad(std::span<const std::byte> bytes) noexcept {
  constexpr std::size_t kBlock = 64;
  const std::size_t count = bytes.size() / 4;
  const auto bad = [&](std::size_t i) {
    return (base::load_le<std::uint32_t>(bytes.data() + 4 * i) & kExponent) == kExponent;
  };
  std::size_t i = 0;
  for (; count - i >= kBlock; i += kBlock) {
    std::uint32_t any = 0;
    for (std::size_t k = 0; k < kBlock; ++k) any |= bad(i + k) ? 1U : 0U;
    if (any != 0) break;
  }
  while (i < count && !bad(i)) ++i;
  return i;
}

}  // namespace

void check_content(const Model& model, const Context& context, core::Findings& findings) {
  if (model.size() == 0) return;
  core::Progress progress(context, model.sources()[0]->size());
  const Context quiet = progress.inner();
  std::mutex mutex;
  std::vector<Finding> found;
  core::executor_of(context).for_each(model.size(), [&](std::uint64_t i) {
    const Tensor tensor = model[static_cast<std::uint32_t>(i)];
    const Part part = tensor.main();
    std::uint64_t at = part.extent()->offset;
    part.stream(quiet, [&](std::span<const std::byte> piece) {
      const std::size_t bad = first_bad(piece);
      progress.add(piece.size());
      if (4 * bad < piece.size()) {
        const bool nan = (base::load_le<std::uint32_t>(piece.data() + 4 * bad) & ~kExponent & 0x7fffffffU) != 0;
        const std::lock_guard lock(mutex);
        found.push_back(core::Findings::make(rules::kNotFinite, {.offset = at + 4 * bad, .tensor = tensor.name()},
                                             "a finite value", nan ? "NaN" : "infinity"));
        return false;
      }
      at += piece.size();
      return true;
    });
  });
  progress.finish();
  core::report_sorted(std::move(found), findings);
}

}  // namespace weighbridge::llama2c
