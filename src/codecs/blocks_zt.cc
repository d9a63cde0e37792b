// SPDX-License-Identifier: Apache-2.0
// zTensor's block types: quantized_group of 1.x (III.4, reading Y5), whose arithmetic is in dequant.h, and the profiles
// zt.quant_group/1 and zt.mx/1 of zTensor 2 whose groups run along the fastest dimension (readings X7, X8).
#include <fmt/format.h>

#include <cstring>

#include "codecs/blocks.h"
#include "codecs/cast.h"
#include "codecs/dequant.h"
#include "codecs/kernels.h"

namespace weighbridge::codecs {
namespace {

enum Role : std::size_t { kPacked, kScales, kZeros };

// One element of a part as f64, which holds it exactly except for integers above 2^53.
double number_at(DType dtype, std::span<const std::byte> part, std::uint64_t index) noexcept {
  const std::size_t bytes = info(dtype).bits / 8;
  const auto from = part.subspan(static_cast<std::size_t>(index) * bytes, bytes);  // the caller has it in memory
  double value = 0;
  load_f64(dtype, from.data(), &value, 1);
  return value;
}

QuantizedGroup group_of(const BlockForm& form) noexcept {
  return {.rows = form.rows,
          .cols = form.columns,
          .bits = form.bits,
          .group_size = form.group,
          .packing = form.packing,
          .scales = form.dtypes[kScales],
          .zeros = form.dtypes[kZeros]};
}

std::string group_problem(const BlockForm& form) {
  if (form.rank != 2) return "the shape does not have two dimensions";
  std::string found = group_of(form).problem();
  if (found.empty() && form.dtypes[kPacked] != form.packing.word)
    found = fmt::format("its words are {}, not {}", name(form.dtypes[kPacked]), name(form.packing.word));
  return found;
}

std::uint64_t group_step(const BlockForm& form) noexcept { return form.packing.codes_per_word * form.columns; }

ByteRange group_range(const BlockForm& form, std::size_t role, std::uint64_t first, std::uint64_t count) noexcept {
  if (count == 0) return {};
  const std::uint64_t unit = role == kPacked ? form.packing.codes_per_word : form.group;  // rows
  const std::uint64_t width = form.columns * (info(form.dtypes[role]).bits / 8);
  const std::uint64_t begin = first / form.columns / unit, last = (first + count - 1) / form.columns / unit;
  return {begin * width, (last - begin + 1) * width};
}

void group_decode(const BlockForm& form, std::uint64_t first, std::uint64_t count,
                  std::span<const std::span<const std::byte>> parts, float* out) noexcept {
  dequantize_rows(group_of(form), first / form.columns, count / form.columns, parts[kPacked], parts[kScales],
                  parts[kZeros], {out, static_cast<std::size_t>(count)});  // the caller has them in memory
}

// zt.quant_group/1

// Codes are signed only if each is a word of a signed type.
bool has_signed_codes(const BlockForm& form) noexcept {
  return form.packing.codes_per_word == 1 && info(form.dtypes[kPacked]).kind == DTypeKind::signed_integer;
}

template <bool kHasZeros> std::string quant_problem(const BlockForm& form) {
  const std::uint32_t word = info(form.packing.word).bits;
  if (form.rank == 0) return "a scalar has no groups";
  if (!is_integer(form.packing.word)) return "the packing names no integer word";
  if (form.bits == 0 || std::uint64_t{form.packing.codes_per_word} * form.bits != word)
    return fmt::format("{} codes of {} bits do not fill a word of {} bits", form.packing.codes_per_word, form.bits,
                       word);
  if (!is_integer(form.dtypes[kPacked]) || info(form.dtypes[kPacked]).bits != word)
    return fmt::format("its words are {}, not {}", name(form.dtypes[kPacked]), name(form.packing.word));
  if (form.bits > 32) return fmt::format("codes of {} bits are more than f32 can hold", form.bits);
  if (form.group == 0 || form.row % form.group != 0)
    return fmt::format("the group size {} does not divide the {} elements of a row", form.group, form.row);
  if (form.row % form.packing.codes_per_word != 0)
    return fmt::format("a row of {} elements does not fill its words of {} codes", form.row,
                       form.packing.codes_per_word);
  if (!is_scale(form.dtypes[kScales]) && form.dtypes[kScales] != DType::f8_e8m0)
    return fmt::format("scales of dtype {} are not real numbers", name(form.dtypes[kScales]));
  if (kHasZeros && !is_scale(form.dtypes[kZeros]) && !is_integer(form.dtypes[kZeros]))
    return fmt::format("zeros of dtype {} are neither integers nor real numbers", name(form.dtypes[kZeros]));
  return {};
}

std::uint64_t quant_step(const BlockForm& form) noexcept { return form.packing.codes_per_word; }

ByteRange quant_range(const BlockForm& form, std::size_t role, std::uint64_t first, std::uint64_t count) noexcept {
  if (count == 0) return {};
  const std::uint64_t unit = role == kPacked ? form.packing.codes_per_word : form.group;
  const std::uint64_t width = info(form.dtypes[role]).bits / 8;
  const std::uint64_t begin = first / unit, last = (first + count - 1) / unit;
  return {begin * width, (last - begin + 1) * width};
}

template <bool kHasZeros>
void quant_decode(const BlockForm& form, std::uint64_t first, std::uint64_t count,
                  std::span<const std::span<const std::byte>> parts, float* out) noexcept {
  const std::uint64_t n = form.packing.codes_per_word, group = first / form.group;
  const std::size_t word_bytes = info(form.packing.word).bits / 8;
  const std::uint64_t mask = (std::uint64_t{1} << form.bits) - 1;
  const std::uint64_t sign = has_signed_codes(form) ? std::uint64_t{1} << (form.bits - 1) : 0;
  double scale = 0, zero = static_cast<double>(form.zero);
  for (std::uint64_t i = 0; i < count; ++i) {
    const std::uint64_t at = first + i;
    if (i == 0 || at % form.group == 0) {
      scale = number_at(form.dtypes[kScales], parts[kScales], at / form.group - group);
      if (kHasZeros) zero = number_at(form.dtypes[kZeros], parts[kZeros], at / form.group - group);
    }
    std::uint64_t word = 0;
    std::memcpy(&word, parts[kPacked].data() + static_cast<std::size_t>(i / n) * word_bytes, word_bytes);
    const std::uint64_t place = form.msb_first ? n - 1 - i % n : i % n;
    const std::uint64_t code = word >> (place * form.bits) & mask;
    const auto value = static_cast<double>(static_cast<std::int64_t>(code ^ sign) - static_cast<std::int64_t>(sign));
    out[i] = static_cast<float>((value - zero) * scale);
  }
}

// zt.mx/1

constexpr double kInt8Unit = 1.0 / 64;  // OCP MX v1.0, 5.3.4: an INT8 element has a scale of 2^-6 of its own

std::string mx_problem(const BlockForm& form) {
  if (form.rank == 0) return "a scalar has no blocks";
  const DType element = form.dtypes[kPacked];
  if (element != DType::f4 && element != DType::f8_e4m3 && element != DType::f8_e5m2 && element != DType::i8)
    return fmt::format("its elements are {}, not f4, f8_e4m3, f8_e5m2 or i8", name(element));
  if (form.dtypes[kScales] != DType::f8_e8m0)
    return fmt::format("its scales are {}, not f8_e8m0", name(form.dtypes[kScales]));
  if (form.group == 0 || form.row % form.group != 0)
    return fmt::format("its block size {} does not divide the length {} of a row", form.group, form.row);
  if (element == DType::f4 && form.group % 2 != 0)
    return fmt::format("blocks of {} elements of 4 bits do not end at bytes", form.group);
  return {};
}

std::uint64_t mx_step(const BlockForm& form) noexcept { return form.group; }

ByteRange mx_range(const BlockForm& form, std::size_t role, std::uint64_t first, std::uint64_t count) noexcept {
  if (count == 0) return {};
  if (role == kScales) return {first / form.group, (first + count - 1) / form.group - first / form.group + 1};
  const std::uint64_t bits = info(form.dtypes[kPacked]).bits;
  return bits == 4 ? ByteRange{first / 2, count / 2} : ByteRange{first, count};
}

void mx_decode(const BlockForm& form, std::uint64_t first, std::uint64_t count,
               std::span<const std::span<const std::byte>> parts, float* out) noexcept {
  const DType element = form.dtypes[kPacked];
  const auto values = static_cast<std::size_t>(count);  // the caller has them in memory
  cast(element, parts[kPacked], DType::f32, std::as_writable_bytes(std::span(out, values)), values);
  double scale = 0;
  for (std::uint64_t i = 0; i < count; ++i) {
    if (i == 0 || (first + i) % form.group == 0)
      scale = number_at(DType::f8_e8m0, parts[kScales], (first + i) / form.group - first / form.group) *
              (element == DType::i8 ? kInt8Unit : 1);
    out[i] = static_cast<float>(static_cast<double>(out[i]) * scale);
  }
}

}  // namespace

constinit const BlockCodec kZtQuant{quant_problem<false>, quant_step, quant_range,
                                    quant_decode<false>,  1 << 16,    nullptr};
constinit const BlockCodec kZtQuantZeros{quant_problem<true>, quant_step, quant_range,
                                         quant_decode<true>,  1 << 16,    nullptr};
constinit const BlockCodec kZtMx{mx_problem, mx_step, mx_range, mx_decode, 1 << 16, nullptr};
constinit const BlockCodec kZtGroup{group_problem, group_step, group_range, group_decode, 1 << 20, nullptr};

}  // namespace weighbridge::codecs
