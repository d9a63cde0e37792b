// SPDX-License-Identifier: Apache-2.0
// zTensor's block type: quantized_group (III.4, reading Y5). The arithmetic is in dequant.h.
#include <fmt/format.h>

#include "codecs/blocks.h"

namespace weighbridge::codecs {
namespace {

enum Role : std::size_t { kPacked, kScales, kZeros };

QuantizedGroup group_of(const BlockForm& form) noexcept {
  return {.rows = form.rows,
          .cols = form.columns,
          .bits = form.bits,
          .group_size = form.group,
          .packing = form.packing,
          .scales = form.dtypes[kScales],
          .zeros = form.dtypes[kZeros]};
}

std::string problem(const BlockForm& form) {
  if (form.rank != 2) return "the shape does not have two dimensions";
  std::string found = group_of(form).problem();
  if (found.empty() && form.dtypes[kPacked] != form.packing.word)
    found = fmt::format("its words are {}, not {}", name(form.dtypes[kPacked]), name(form.packing.word));
  return found;
}

std::uint64_t step(const BlockForm& form) noexcept { return form.packing.codes_per_word * form.columns; }

ByteRange range(const BlockForm& form, std::size_t role, std::uint64_t first, std::uint64_t count) noexcept {
  if (count == 0) return {};
  const std::uint64_t unit = role == kPacked ? form.packing.codes_per_word : form.group;  // rows
  const std::uint64_t width = form.columns * (info(form.dtypes[role]).bits / 8);
  const std::uint64_t begin = first / form.columns / unit, last = (first + count - 1) / form.columns / unit;
  return {begin * width, (last - begin + 1) * width};
}

void decode(const BlockForm& form, std::uint64_t first, std::uint64_t count,
            std::span<const std::span<const std::byte>> parts, float* out) noexcept {
  dequantize_rows(group_of(form), first / form.columns, count / form.columns, parts[kPacked], parts[kScales],
                  parts[kZeros], {out, static_cast<std::size_t>(count)});  // the caller has them in memory
}

}  // namespace

constinit const BlockCodec kZtGroup{problem, step, range, decode, 1 << 20, nullptr};

}  // namespace weighbridge::codecs
