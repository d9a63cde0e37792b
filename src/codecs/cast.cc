// SPDX-License-Identifier: Apache-2.0
// Casts in blocks that stay in the L1 cache: from the source to a wide type that holds it exactly, then with one
// rounding to the target.
#include "codecs/cast.h"

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

#include "base/endian.h"
#include "codecs/kernels.h"

namespace weighbridge::codecs {
namespace {

std::size_t index_of(DType dtype) noexcept { return static_cast<std::size_t>(dtype); }
bool is_whole(DTypeKind kind) noexcept {
  return kind == DTypeKind::boolean || kind == DTypeKind::unsigned_integer || kind == DTypeKind::signed_integer;
}
bool has_nan(DType dtype) noexcept { return dtype != DType::f6_e2m3 && dtype != DType::f6_e3m2 && dtype != DType::f4; }

struct Block {
  alignas(64) float f32[kBlock];
  alignas(64) double f64[kBlock];
  alignas(64) std::int64_t i64[kBlock];
  alignas(64) std::byte codes[kBlock];
  alignas(64) float result[kBlock];  // of the cast, for a tally
};

void store_i64(DType to, std::byte* out, std::size_t n, Block& block) noexcept {
  const std::uint32_t bits = info(to).bits;
  if (bits >= 8) return kernels().from_i64[index_of(to)](block.i64, out, n);
  kernels().from_i64[index_of(to)](block.i64, block.codes, n);
  pack_codes(bits, {block.codes, n}, {out, (n * bits + 7) / 8});
}

void store_f64(std::byte* out, std::size_t n, const Block& block) noexcept {
  for (std::size_t i = 0; i < n; ++i) base::store_le(out + 8 * i, std::bit_cast<std::uint64_t>(block.f64[i]));
}

// Stores block.f32 as a real type other than f64. Returns n, or the index of a NaN that the type cannot hold.
std::size_t store_narrow(DType to, std::byte* out, std::size_t n, Block& block) noexcept {
  std::size_t good = n;
  if (!has_nan(to))
    for (std::size_t i = 0; i < n; ++i)
      if (std::isnan(block.f32[i])) {
        good = i;
        break;
      }
  const std::uint32_t bits = info(to).bits;
  if (bits >= 8) {
    kernels().from_f32[index_of(to)](block.f32, out, n);
  } else {
    kernels().from_f32[index_of(to)](block.f32, block.codes, n);
    pack_codes(bits, {block.codes, n}, {out, (n * bits + 7) / 8});
  }
  return good;
}

// Stores an f64 block as f64, f32 or, through odd-rounded f32, a narrower type.
std::size_t store_from_f64(DType to, std::byte* out, std::size_t n, Block& block) noexcept {
  if (to == DType::f64) {
    store_f64(out, n, block);
    return n;
  }
  if (to == DType::f32)
    for (std::size_t i = 0; i < n; ++i) block.f32[i] = static_cast<float>(block.f64[i]);
  else
    kernels().f64_to_odd_f32(block.f64, block.f32, n);
  return store_narrow(to, out, n, block);
}

// The least magnitude that overflows a type which has neither infinity nor NaN: a tie rounds up, as its largest value
// is odd. NaN for the other types, where the result shows an overflow.
float saturates_at(DType dtype) noexcept {
  switch (dtype) {
    case DType::f6_e2m3: return 7.75F;
    case DType::f6_e3m2: return 30;
    case DType::f4: return 7;
    default: return std::numeric_limits<float>::quiet_NaN();
  }
}

bool keeps_every_value(DType from, DType to) noexcept {
  return to == DType::f64 || (to == DType::f32 && from != DType::f64);
}

// Compares a stored block with the values that it was made from, in block.f64 or block.f32.
void tally_block(DType from, DType to, const std::byte* stored, std::size_t n, Block& block,
                 CastTally& tally) noexcept {
  load_f32(to, stored, block.result, n);
  Differences found{};
  if (from == DType::f64)
    kernels().compare_f64(block.f64, block.result, n, saturates_at(to), found);
  else
    kernels().compare_f32(block.f32, block.result, n, saturates_at(to), found);
  tally.add({found.overflowed, found.flushed, found.largest});
}

// A magnitude above 2^53 truncated to 53 bits, with the last bit set if any dropped bit was. It is exact in f64 and
// rounds like the full value.
std::uint64_t sticky53(std::uint64_t magnitude) noexcept {
  if (magnitude >> 53 == 0) return magnitude;
  return (magnitude & ~std::uint64_t{0x7FF}) | ((magnitude & 0x7FF) != 0 ? 0x800 : 0);
}

// Stores block.i64 through f64, exact or odd-rounded; if the target is f32 or f64, rounds to nearest directly.
std::size_t store_from_i64(DType from, DType to, std::byte* out, std::size_t n, Block& block) noexcept {
  const bool u64 = from == DType::u64;
  for (std::size_t i = 0; i < n; ++i) {
    const std::int64_t v = block.i64[i];
    const auto bits = static_cast<std::uint64_t>(v);
    if (to == DType::f64) {
      block.f64[i] = u64 ? static_cast<double>(bits) : static_cast<double>(v);
    } else if (to == DType::f32) {
      block.f32[i] = u64 ? static_cast<float>(bits) : static_cast<float>(v);
    } else {
      const bool negative = !u64 && v < 0;
      const double magnitude = static_cast<double>(sticky53(negative ? 0 - bits : bits));
      block.f64[i] = negative ? -magnitude : magnitude;
    }
  }
  return to == DType::f32 ? store_narrow(to, out, n, block) : store_from_f64(to, out, n, block);
}

// First element of the block outside the target's range, or n.
std::size_t find_outside(DType from, DType to, std::size_t n, const Block& block) noexcept {
  const DTypeInfo& target = info(to);
  const bool is_signed = target.kind == DTypeKind::signed_integer;
  const std::uint32_t bits = target.kind == DTypeKind::boolean ? 1 : target.bits;
  const std::uint64_t maximum = ~std::uint64_t{0} >> (64 - bits + (is_signed ? 1 : 0));
  if (from == DType::u64) {
    for (std::size_t i = 0; i < n; ++i)
      if (static_cast<std::uint64_t>(block.i64[i]) > maximum) return i;
    return n;
  }
  const std::int64_t low = is_signed ? -static_cast<std::int64_t>(maximum) - 1 : 0;
  const auto high =
      static_cast<std::int64_t>(std::min<std::uint64_t>(maximum, std::numeric_limits<std::int64_t>::max()));
  bool outside = false;
  for (std::size_t i = 0; i < n; ++i) outside |= (block.i64[i] < low) | (block.i64[i] > high);
  if (!outside) return n;
  std::size_t i = 0;
  while (block.i64[i] >= low && block.i64[i] <= high) ++i;
  return i;
}

CastResult copy(DType dtype, std::span<const std::byte> in, std::span<std::byte> out) noexcept {
  if (!in.empty()) std::memcpy(out.data(), in.data(), in.size());
  if (dtype == DType::boolean) normalize_bools(out);
  return {};
}

}  // namespace

bool can_cast(DType from, DType to) noexcept {
  if (from == DType::unknown || to == DType::unknown) return false;
  if (from == to) return true;
  if (to == DType::f8_e8m0) return false;
  const DTypeKind a = info(from).kind, b = info(to).kind;
  if (a == DTypeKind::complex || b == DTypeKind::complex) return a == b;
  return is_whole(a) || b == DTypeKind::real;
}

CastResult cast(DType from, std::span<const std::byte> in, DType to, std::span<std::byte> out, std::uint64_t elements,
                CastTally* tally) noexcept {
  if (!can_cast(from, to)) return {CastStatus::not_allowed};
  if (packed_size(from, elements) != in.size() || packed_size(to, elements) != out.size()) return {CastStatus::size};
  if (from == to) return copy(from, in, out);
  if (info(from).kind == DTypeKind::complex) {
    const bool narrow = from == DType::complex64;
    return cast(narrow ? DType::f32 : DType::f64, in, narrow ? DType::f64 : DType::f32, out, elements * 2, tally);
  }
  const bool from_whole = is_whole(info(from).kind), to_whole = is_whole(info(to).kind);
  const std::size_t in_bits = info(from).bits, out_bits = info(to).bits;
  Block block;
  for (std::uint64_t at = 0; at < elements; at += kBlock) {
    const auto n = static_cast<std::size_t>(std::min<std::uint64_t>(kBlock, elements - at));
    const std::byte* source = in.data() + at / 4 * in_bits / 2;  // at is a multiple of 4
    std::byte* target = out.data() + at / 4 * out_bits / 2;
    std::size_t good = n;
    if (from_whole) {
      load_i64(from, source, block.i64, n);
      if (to_whole) {
        good = find_outside(from, to, n, block);
        store_i64(to, target, n, block);
      } else {
        good = store_from_i64(from, to, target, n, block);
      }
    } else if (from == DType::f64) {
      load_f64(from, source, block.f64, n);
      good = store_from_f64(to, target, n, block);
    } else {
      load_f32(from, source, block.f32, n);
      if (to == DType::f64) {
        for (std::size_t i = 0; i < n; ++i) block.f64[i] = static_cast<double>(block.f32[i]);
        store_f64(target, n, block);
      } else {
        good = store_narrow(to, target, n, block);
      }
    }
    if (tally && !from_whole && !keeps_every_value(from, to)) tally_block(from, to, target, n, block, *tally);
    if (good < n) return {to_whole ? CastStatus::range : CastStatus::nan, at + good};
  }
  return {};
}

}  // namespace weighbridge::codecs
