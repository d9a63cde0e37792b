// SPDX-License-Identifier: Apache-2.0
// CRC-32 and CRC-32C. Owns a table path, one that needs XOR alone for nearly all bytes, and two by carry-less
// multiplication, chosen at run time. They are our own because Debian ships no static isa-l, and the command links its
// libraries statically.
//
// Folding follows Gopal et al., "Fast CRC Computation for Generic Polynomials Using PCLMULQDQ" (Intel, 2009), reflected
// form. The table does the final reduction: the 16 bytes that remain after folding are congruent to the whole.
#include <algorithm>
#include <array>
#include <bit>
#include <cstring>

#include "base/cpu.h"
#include "base/endian.h"
#include "codecs/checksum.h"

#if defined(__x86_64__)
#define WB_CLMUL 1
#include <immintrin.h>
#endif

namespace weighbridge::codecs {
namespace {

constexpr std::uint32_t reflected_polynomial(CrcKind kind) noexcept {
  return kind == CrcKind::crc32 ? 0xEDB88320u : 0x82F63B78u;
}

// Bit 31 is the coefficient of x^0: multiplying by x shifts right.
constexpr std::uint32_t times_x(CrcKind kind, std::uint32_t value) noexcept {
  return (value >> 1) ^ ((value & 1) != 0 ? reflected_polynomial(kind) : 0);
}

constexpr std::uint32_t x_to(CrcKind kind, unsigned power) noexcept {
  std::uint32_t value = 0x80000000u;
  for (unsigned i = 0; i < power; ++i) value = times_x(kind, value);
  return value;
}

// The product of two polynomials modulo the CRC's, all reflected.
constexpr std::uint32_t multiply(CrcKind kind, std::uint32_t a, std::uint32_t b) noexcept {
  std::uint32_t product = 0;
  for (std::uint32_t bit = 0x80000000u; bit != 0; bit >>= 1) {
    if ((a & bit) != 0) product ^= b;
    b = times_x(kind, b);
  }
  return product;
}

// x^(8 * bytes), by squaring.
constexpr std::uint32_t x_past(CrcKind kind, std::uint64_t bytes) noexcept {
  std::uint32_t out = 0x80000000u;
  for (std::uint32_t power = x_to(kind, 8); bytes != 0; bytes >>= 1) {
    if ((bytes & 1) != 0) out = multiply(kind, out, power);
    power = multiply(kind, power, power);
  }
  return out;
}

using Tables = std::array<std::array<std::uint32_t, 256>, 8>;

constexpr Tables make_tables(CrcKind kind) noexcept {
  Tables tables{};
  for (std::uint32_t i = 0; i < 256; ++i) {
    std::uint32_t value = i;
    for (int bit = 0; bit < 8; ++bit) value = times_x(kind, value);
    tables[0][i] = value;
  }
  for (std::size_t t = 1; t < 8; ++t)
    for (std::size_t i = 0; i < 256; ++i) {
      const std::uint32_t value = tables[t - 1][i];
      tables[t][i] = (value >> 8) ^ tables[0][value & 0xFF];
    }
  return tables;
}

constexpr Tables kTables[2] = {make_tables(CrcKind::crc32), make_tables(CrcKind::crc32c)};

// Processes the next eight bytes.
inline std::uint32_t step(const Tables& t, std::uint32_t state, const std::byte* data) noexcept {
  const std::uint32_t a = base::load_le<std::uint32_t>(data) ^ state;
  const std::uint32_t b = base::load_le<std::uint32_t>(data + 4);
  return t[7][a & 0xFF] ^ t[6][(a >> 8) & 0xFF] ^ t[5][(a >> 16) & 0xFF] ^ t[4][a >> 24] ^ t[3][b & 0xFF] ^
         t[2][(b >> 8) & 0xFF] ^ t[1][(b >> 16) & 0xFF] ^ t[0][b >> 24];
}

// Advances the inverted register over `size` bytes.
std::uint32_t fold_table(CrcKind kind, std::uint32_t state, const std::byte* data, std::size_t size) noexcept {
  const Tables& t = kTables[static_cast<std::size_t>(kind)];
  for (; size >= 8; data += 8, size -= 8) state = step(t, state, data);
  for (; size > 0; ++data, --size) state = (state >> 8) ^ t[0][(state ^ std::to_integer<std::uint32_t>(*data)) & 0xFF];
  return state;
}

// The polynomial divides some sums of six powers of x^128. Such a sum says that a block of 16 bytes may be added to
// five later ones instead of being divided, and adding is XOR. These are the distances in blocks, of the sums with the
// smallest largest distance; is_divided() proves them.
using TwoWords = std::uint64_t __attribute__((vector_size(16)));
using Moves = std::array<std::size_t, 5>;
constexpr Moves kMoves[2] = {{17, 80, 118, 124, 203}, {65, 155, 170, 195, 209}};

constexpr bool is_divided(CrcKind kind) noexcept {
  const Moves& moves = kMoves[static_cast<std::size_t>(kind)];
  std::uint32_t sum = x_past(kind, sizeof(TwoWords) * moves.back());
  for (const std::size_t blocks : moves) sum ^= x_past(kind, sizeof(TwoWords) * (moves.back() - blocks));
  return sum == 0;
}
static_assert(is_divided(CrcKind::crc32) && is_divided(CrcKind::crc32c));

// Moves all blocks but the last ones, which have nowhere to go, and divides those by the table.
template <CrcKind kind>
std::uint32_t move_blocks(std::uint32_t state, const std::byte* data, std::size_t size) noexcept {
  constexpr Moves kBy = kMoves[static_cast<std::size_t>(kind)];
  constexpr std::size_t kWindow = kBy.back(), kRun = 1024;
  const auto load = [](const std::byte* from) {
    TwoWords block;
    std::memcpy(&block, from, sizeof block);
    return block;
  };
  if (size < 2 * kWindow * sizeof(TwoWords)) return fold_table(kind, state, data, size);
  // The blocks before now[0], as they were when they were moved. The first ones are zeros, but for the register, which
  // now[0] gets from the farthest.
  TwoWords held[kWindow + kRun];
  TwoWords* const now = held + kWindow;
  std::memset(held, 0, kWindow * sizeof(TwoWords));
  base::store_le(reinterpret_cast<std::byte*>(held), state);
  for (std::size_t left = size / sizeof(TwoWords) - kWindow; left > 0;) {
    const std::size_t run = std::min(left, kRun);
    for (std::size_t i = 0; i < run; ++i, data += sizeof(TwoWords))
      now[i] = load(data) ^ held[kWindow - kBy[0] + i] ^ held[kWindow - kBy[1] + i] ^ held[kWindow - kBy[2] + i] ^
               held[kWindow - kBy[3] + i] ^ held[kWindow - kBy[4] + i];
    std::memmove(held, held + run, kWindow * sizeof(TwoWords));
    left -= run;
  }
  std::memcpy(now, data, kWindow * sizeof(TwoWords));
  for (const std::size_t blocks : kBy)
    for (std::size_t i = 0; i < blocks; ++i) now[i] ^= held[kWindow - blocks + i];
  state = fold_table(kind, 0, reinterpret_cast<const std::byte*>(now), kWindow * sizeof(TwoWords));
  return fold_table(kind, state, data + kWindow * sizeof(TwoWords), size % sizeof(TwoWords));
}

std::uint32_t fold_blocks(CrcKind kind, std::uint32_t state, const std::byte* data, std::size_t size) noexcept {
  return kind == CrcKind::crc32 ? move_blocks<CrcKind::crc32>(state, data, size)
                                : move_blocks<CrcKind::crc32c>(state, data, size);
}

#ifdef WB_CLMUL

// The two multipliers that move a 128-bit remainder by `bits` bits: x^(bits+32) and x^(bits-32), as 33-bit reflected
// numbers.
struct Fold {
  std::uint64_t low, high;
};
constexpr Fold fold_over(CrcKind kind, unsigned bits) noexcept {
  return {std::uint64_t{x_to(kind, bits + 32)} << 1, std::uint64_t{x_to(kind, bits - 32)} << 1};
}
constexpr Fold kFold128[2] = {fold_over(CrcKind::crc32, 128), fold_over(CrcKind::crc32c, 128)};
constexpr Fold kFold512[2] = {fold_over(CrcKind::crc32, 512), fold_over(CrcKind::crc32c, 512)};
constexpr Fold kFold2048[2] = {fold_over(CrcKind::crc32, 2048), fold_over(CrcKind::crc32c, 2048)};

__attribute__((target("pclmul,sse4.1"))) inline __m128i load128(const std::byte* from) noexcept {
  __m128i value;
  std::memcpy(&value, from, sizeof value);
  return value;
}

__attribute__((target("pclmul,sse4.1"))) inline __m128i constants128(const Fold& fold) noexcept {
  return _mm_set_epi64x(static_cast<long long>(fold.high), static_cast<long long>(fold.low));
}

__attribute__((target("pclmul,sse4.1"))) inline __m128i step128(__m128i sum, __m128i k, __m128i next) noexcept {
  return _mm_xor_si128(_mm_xor_si128(_mm_clmulepi64_si128(sum, k, 0x00), _mm_clmulepi64_si128(sum, k, 0x11)), next);
}

// The register after folding `sum` into the bytes that follow it.
__attribute__((target("pclmul,sse4.1"))) std::uint32_t finish128(CrcKind kind, __m128i sum, const std::byte* data,
                                                                 std::size_t size) noexcept {
  const __m128i k = constants128(kFold128[static_cast<std::size_t>(kind)]);
  for (; size >= 16; data += 16, size -= 16) sum = step128(sum, k, load128(data));
  alignas(16) std::byte rest[16];
  std::memcpy(rest, &sum, sizeof rest);
  return fold_table(kind, fold_table(kind, 0, rest, sizeof rest), data, size);
}

__attribute__((target("pclmul,sse4.1"))) std::uint32_t fold_clmul(CrcKind kind, std::uint32_t state,
                                                                  const std::byte* data, std::size_t size) noexcept {
  if (size < 128) return fold_table(kind, state, data, size);
  __m128i a = _mm_xor_si128(load128(data), _mm_cvtsi32_si128(std::bit_cast<int>(state)));
  __m128i b = load128(data + 16), c = load128(data + 32), d = load128(data + 48);
  data += 64, size -= 64;
  const __m128i k = constants128(kFold512[static_cast<std::size_t>(kind)]);
  for (; size >= 64; data += 64, size -= 64) {
    a = step128(a, k, load128(data));
    b = step128(b, k, load128(data + 16));
    c = step128(c, k, load128(data + 32));
    d = step128(d, k, load128(data + 48));
  }
  const __m128i near = constants128(kFold128[static_cast<std::size_t>(kind)]);
  return finish128(kind, step128(step128(step128(a, near, b), near, c), near, d), data, size);
}

#define WB_WIDE __attribute__((target("avx512f,avx512vl,vpclmulqdq,pclmul,sse4.1")))

WB_WIDE inline __m512i load512(const std::byte* from) noexcept { return _mm512_loadu_si512(from); }

WB_WIDE inline __m512i step512(__m512i sum, __m512i k, __m512i next) noexcept {
  return _mm512_ternarylogic_epi64(_mm512_clmulepi64_epi128(sum, k, 0x00), _mm512_clmulepi64_epi128(sum, k, 0x11), next,
                                   0x96);
}

WB_WIDE std::uint32_t fold_wide(CrcKind kind, std::uint32_t state, const std::byte* data, std::size_t size) noexcept {
  if (size < 1024) return fold_clmul(kind, state, data, size);
  __m512i a = _mm512_xor_si512(load512(data), _mm512_zextsi128_si512(_mm_cvtsi32_si128(std::bit_cast<int>(state))));
  __m512i b = load512(data + 64), c = load512(data + 128), d = load512(data + 192);
  data += 256, size -= 256;
  const Fold& fold = kFold2048[static_cast<std::size_t>(kind)];
  const auto low = static_cast<long long>(fold.low), high = static_cast<long long>(fold.high);
  const __m512i k = _mm512_set_epi64(high, low, high, low, high, low, high, low);
  for (; size >= 256; data += 256, size -= 256) {
    a = step512(a, k, load512(data));
    b = step512(b, k, load512(data + 64));
    c = step512(c, k, load512(data + 128));
    d = step512(d, k, load512(data + 192));
  }
  alignas(64) std::byte lanes[256];
  _mm512_store_si512(lanes, a);
  _mm512_store_si512(lanes + 64, b);
  _mm512_store_si512(lanes + 128, c);
  _mm512_store_si512(lanes + 192, d);
  const __m128i near = constants128(kFold128[static_cast<std::size_t>(kind)]);
  __m128i sum = load128(lanes);
  for (std::size_t at = 16; at < sizeof lanes; at += 16) sum = step128(sum, near, load128(lanes + at));
  return finish128(kind, sum, data, size);
}

#undef WB_WIDE
#endif  // WB_CLMUL

using FoldFunction = std::uint32_t (*)(CrcKind, std::uint32_t, const std::byte*, std::size_t) noexcept;

FoldFunction function_of(CrcPath path) noexcept {
#ifdef WB_CLMUL
  using base::Cpu;
  const bool narrow = base::cpu_has(Cpu::pclmul, Cpu::sse41);
  const bool wide = narrow && base::cpu_has(Cpu::vpclmulqdq, Cpu::avx512f, Cpu::avx512vl);
  if (wide && (path == CrcPath::wide_clmul || path == CrcPath::automatic)) return fold_wide;
  if (narrow && (path == CrcPath::clmul || path == CrcPath::automatic)) return fold_clmul;
#endif
  return path == CrcPath::blocks || path == CrcPath::automatic ? fold_blocks : fold_table;
}

}  // namespace

bool has(CrcPath path) noexcept {
  return path == CrcPath::automatic || path == CrcPath::table || function_of(path) != fold_table;
}

std::uint32_t crc_by(CrcPath path, CrcKind kind, std::span<const std::byte> data, std::uint32_t before) noexcept {
  return ~function_of(path)(kind, ~before, data.data(), data.size());
}

std::uint32_t crc(CrcKind kind, std::span<const std::byte> data, std::uint32_t before) noexcept {
  static const FoldFunction fold = function_of(CrcPath::automatic);
  return ~fold(kind, ~before, data.data(), data.size());
}

std::uint32_t combine(CrcKind kind, std::uint32_t crc_a, std::uint32_t crc_b, std::uint64_t length_b) noexcept {
  // The inversions at both ends cancel.
  return multiply(kind, x_past(kind, length_b), crc_a) ^ crc_b;
}

}  // namespace weighbridge::codecs
