// SPDX-License-Identifier: Apache-2.0
// SLM's block types (reading M7; reading Y10 for .zt): codes in `data`, and in `scales` one f32 per group (a row of
// q8_0, a block of q4_0). The arithmetic is in quantize.h.
#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "codecs/blocks.h"
#include "codecs/quantize.h"

namespace weighbridge::codecs {
namespace {

enum SlmRole : std::size_t { kSlmCodes, kSlmScales };

std::string wrong_dtypes(const BlockForm& form, DType codes) {
  if (form.rank == 0) return "a scalar has no rows that could share a scale";
  if (form.dtypes[kSlmCodes] != codes)
    return fmt::format("its codes are {}, not {}", name(form.dtypes[kSlmCodes]), name(codes));
  if (form.dtypes[kSlmScales] != DType::f32)
    return fmt::format("its scales are {}, not f32", name(form.dtypes[kSlmScales]));
  return {};
}

std::string q8_problem(const BlockForm& form) {
  std::string problem = wrong_dtypes(form, DType::i8);
  if (problem.empty() && form.group != form.columns)
    problem = fmt::format("its block size {} is not the length {} of a row", form.group, form.columns);
  return problem;
}

std::string q4_problem(const BlockForm& form) {
  std::string problem = wrong_dtypes(form, DType::u8);
  if (problem.empty() && (form.group == 0 || form.group % 2 != 0 || form.columns % form.group != 0))
    problem = fmt::format("its block size {} does not divide the length {} of a row", form.group, form.columns);
  return problem;
}

template <std::uint64_t kPerByte> std::uint64_t step(const BlockForm&) noexcept { return kPerByte; }

template <std::uint64_t kPerByte>
ByteRange range(const BlockForm& form, std::size_t role, std::uint64_t first, std::uint64_t count) noexcept {
  if (count == 0) return {};
  if (role == kSlmCodes) return {first / kPerByte, count / kPerByte};
  const std::uint64_t group = first / form.group, last = (first + count - 1) / form.group;
  return {group * sizeof(float), (last - group + 1) * sizeof(float)};
}

template <std::uint64_t kPerByte, void (*kDecode)(std::span<const std::byte>, float, float*) noexcept>
void decode(const BlockForm& form, std::uint64_t first, std::uint64_t count,
            std::span<const std::span<const std::byte>> parts, float* out) noexcept {
  const std::uint64_t first_group = first / form.group;
  for (std::uint64_t done = 0; done < count;) {
    const std::uint64_t at = first + done, n = std::min(form.group - at % form.group, count - done);
    float scale;
    std::memcpy(&scale, parts[kSlmScales].data() + (at / form.group - first_group) * sizeof scale, sizeof scale);
    // The caller has both the codes and the elements in memory.
    kDecode(parts[kSlmCodes].subspan(static_cast<std::size_t>(done / kPerByte), static_cast<std::size_t>(n / kPerByte)),
            scale, out + done);
    done += n;
  }
}

constexpr ScaledEncoder kQ8{q8_scale, q8_encode, 1}, kQ4{q4_scale, q4_encode, 2};

}  // namespace

constinit const BlockCodec kSlmQ8_0{q8_problem, step<1>, range<1>, decode<1, q8_decode>, 1 << 16, &kQ8};
constinit const BlockCodec kSlmQ4_0{q4_problem, step<2>, range<2>, decode<2, q4_decode>, 1 << 17, &kQ4};

}  // namespace weighbridge::codecs
