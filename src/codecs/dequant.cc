// SPDX-License-Identifier: Apache-2.0
// quantized_group to f32, in tiles of columns, so that scales and zeros are widened once per group.
#include "codecs/dequant.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>

#include "base/checked.h"
#include "codecs/cast.h"
#include "codecs/kernels.h"

namespace weighbridge::codecs {
namespace {

constexpr std::size_t kTile = 1024;

bool holds(std::span<const std::byte> data, std::uint64_t rows, std::uint64_t cols, std::uint64_t bytes) noexcept {
  const auto elements = base::checked_mul(rows, cols);
  const auto size = elements ? base::checked_mul(*elements, bytes) : std::nullopt;
  return size && *size <= data.size();
}

void widen(DType dtype, std::span<const std::byte> data, std::uint64_t at, std::size_t n, double* to) noexcept {
  const std::uint64_t bytes = info(dtype).bits / 8;
  cast(dtype, data.subspan(base::to_size(at * bytes), base::to_size(n * bytes)), DType::f64,
       std::as_writable_bytes(std::span(to, n)), n);
}

}  // namespace

std::optional<Packing> parse_packing(std::string_view text) noexcept {
  std::uint32_t n = 0;
  std::size_t at = 0;
  for (; at < text.size() && at < 3 && text[at] >= '0' && text[at] <= '9'; ++at)
    n = n * 10 + static_cast<std::uint32_t>(text[at] - '0');
  constexpr std::string_view kPer = "_per_";
  if (n == 0 || text[0] == '0' || text.substr(at, kPer.size()) != kPer) return std::nullopt;
  const auto dtype = dtype_from_name(text.substr(at + kPer.size()));
  if (!dtype || !is_integer(*dtype)) return std::nullopt;
  return Packing{n, *dtype};
}

std::string QuantizedGroup::problem() const {
  if (bits != 2 && bits != 4 && bits != 8)
    return fmt::format("codes of {} bits cannot be dequantized, only those of 2, 4 and 8", bits);
  if (group_size == 0 || rows % group_size != 0)
    return fmt::format("the group size {} does not divide the {} rows", group_size, rows);
  if (packing.codes_per_word == 0 || !is_integer(packing.word)) return "the packing names no integer word";
  if (std::uint64_t{packing.codes_per_word} * bits != info(packing.word).bits)
    return fmt::format("{} codes of {} bits do not fill a word of {} bits", packing.codes_per_word, bits,
                       info(packing.word).bits);
  if (!is_scale(scales))
    return fmt::format("scales of dtype {} are no real numbers that can be multiplied with", name(scales));
  if (!is_scale(zeros) && !is_integer(zeros))
    return fmt::format("zeros of dtype {} are neither integers nor real numbers", name(zeros));
  return {};
}

bool QuantizedGroup::usable() const noexcept {
  return (bits == 2 || bits == 4 || bits == 8) && group_size > 0 && rows % group_size == 0 &&
         is_integer(packing.word) && std::uint64_t{packing.codes_per_word} * bits == info(packing.word).bits &&
         is_scale(scales) && (is_scale(zeros) || is_integer(zeros));
}

bool dequantize_rows(const QuantizedGroup& t, std::uint64_t first, std::uint64_t count,
                     std::span<const std::byte> words, std::span<const std::byte> scales,
                     std::span<const std::byte> zeros, std::span<float> out) noexcept {
  if (!t.usable() || !base::fits(first, count, t.rows)) return false;
  if (count == 0 || t.cols == 0) return true;
  const std::uint64_t n = t.packing.codes_per_word, first_word = first / n, first_group = first / t.group_size,
                      last = first + count - 1;
  const std::uint64_t groups = last / t.group_size - first_group + 1;
  const auto elements = base::checked_mul(count, t.cols);
  if (!elements || *elements > out.size() || !holds(words, last / n - first_word + 1, t.cols, t.word_bytes()) ||
      !holds(scales, groups, t.cols, info(t.scales).bits / 8) || !holds(zeros, groups, t.cols, info(t.zeros).bits / 8))
    return false;

  const std::uint64_t mask = (std::uint64_t{1} << t.bits) - 1;
  const auto kernel = kernels().dequantize[std::countr_zero(t.word_bytes())];
  alignas(64) double tile_scales[kTile], tile_zeros[kTile];
  for (std::uint64_t group = 0; group < groups; ++group) {
    const std::uint64_t begin = std::max(first, (first_group + group) * t.group_size);
    const std::uint64_t end = std::min(last + 1, (first_group + group + 1) * t.group_size);
    for (std::uint64_t col = 0; col < t.cols; col += kTile) {
      const auto width = static_cast<std::size_t>(std::min<std::uint64_t>(kTile, t.cols - col));
      widen(t.scales, scales, group * t.cols + col, width, tile_scales);
      widen(t.zeros, zeros, group * t.cols + col, width, tile_zeros);
      for (std::uint64_t row = begin; row < end; ++row)
        kernel(words.data() + ((row / n - first_word) * t.cols + col) * t.word_bytes(),
               static_cast<unsigned>(row % n) * t.bits, mask, tile_zeros, tile_scales,
               out.data() + (row - first) * t.cols + col, width);
    }
  }
  return true;
}

}  // namespace weighbridge::codecs
