// SPDX-License-Identifier: Apache-2.0
// The CBOR writer. Floats are narrowed by their bits, so that a NaN keeps its payload.
#include "wire/cbor_writer.h"

#include <array>
#include <bit>
#include <limits>

#include "base/endian.h"
#include "base/fail.h"
#include "base/utf8.h"
#include "wire/half.h"

namespace weighbridge::wire {
namespace {

// First bytes of major type 7 (RFC 8949, section 3.3).
constexpr unsigned kFalseByte = 0xF4, kTrueByte = 0xF5, kNullByte = 0xF6, kUndefinedByte = 0xF7, kHalfByte = 0xF9,
                   kSingleByte = 0xFA, kDoubleByte = 0xFB;

// The single with exactly this value, NaN payload included.
std::optional<std::uint32_t> as_single(double value) noexcept {
  const auto bits = std::bit_cast<std::uint64_t>(value);
  if (value != value) {
    if ((bits & 0x1FFF'FFFFu) != 0) return std::nullopt;
    return static_cast<std::uint32_t>(bits >> 32 & 0x8000'0000u) | 0x7F80'0000u |
           static_cast<std::uint32_t>(bits >> 29 & 0x7F'FFFFu);
  }
  constexpr double kMax = std::numeric_limits<float>::max();
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  if ((value > kMax || value < -kMax) && value != kInfinity && value != -kInfinity) return std::nullopt;
  const auto narrow = static_cast<float>(value);
  if (static_cast<double>(narrow) != value) return std::nullopt;
  return std::bit_cast<std::uint32_t>(narrow);
}

// The half with exactly this value, NaN payload included.
std::optional<std::uint16_t> as_half(double value) noexcept {
  const std::uint16_t candidate = half_bits(value);
  // Widening the value again shows whether bits were dropped.
  if (std::bit_cast<std::uint64_t>(half_to_double(candidate)) != std::bit_cast<std::uint64_t>(value))
    return std::nullopt;
  return candidate;
}

}  // namespace

template <class T> void CborWriter::fixed(unsigned first, T value) {
  std::array<char, 1 + sizeof(T)> bytes{static_cast<char>(first)};
  base::store_be(bytes.data() + 1, value);
  out_.append(bytes.data(), bytes.size());
}

void CborWriter::head(unsigned major, std::uint64_t argument) {
  const unsigned first = major << 5;
  if (argument < 24)
    out_.push_back(static_cast<char>(first | static_cast<unsigned>(argument)));
  else if (argument <= 0xFF)
    fixed(first | 24, static_cast<std::uint8_t>(argument));
  else if (argument <= 0xFFFF)
    fixed(first | 25, static_cast<std::uint16_t>(argument));
  else if (argument <= 0xFFFF'FFFF)
    fixed(first | 26, static_cast<std::uint32_t>(argument));
  else
    fixed(first | 27, argument);
}

void CborWriter::i64(std::int64_t value) {
  const auto bits = static_cast<std::uint64_t>(value);
  if (value < 0)
    head(1, ~bits);
  else
    head(0, bits);
}

void CborWriter::bytes(std::span<const std::byte> data) {
  head(2, data.size());
  out_.append(reinterpret_cast<const char*>(data.data()), data.size());
}

void CborWriter::text(std::string_view text) {
  if (!base::is_utf8(text)) base::misuse("cbor-text", "a CBOR text must be valid UTF-8");
  head(3, text.size());
  out_ += text;
}

void CborWriter::boolean(bool value) { out_.push_back(static_cast<char>(value ? kTrueByte : kFalseByte)); }
void CborWriter::null() { out_.push_back(static_cast<char>(kNullByte)); }
void CborWriter::undefined() { out_.push_back(static_cast<char>(kUndefinedByte)); }

void CborWriter::simple(std::uint8_t value) {
  if (value >= 24 && value < 32) base::misuse("cbor-simple", "the CBOR simple values 24 to 31 do not exist");
  head(7, value);
}

void CborWriter::floating(double value) {
  if (const auto half = as_half(value))
    float16(*half);
  else if (const auto single = as_single(value))
    fixed(kSingleByte, *single);
  else
    float64(value);
}

void CborWriter::float16(std::uint16_t bits) { fixed(kHalfByte, bits); }
void CborWriter::float32(float value) { fixed(kSingleByte, std::bit_cast<std::uint32_t>(value)); }
void CborWriter::float64(double value) { fixed(kDoubleByte, std::bit_cast<std::uint64_t>(value)); }

}  // namespace weighbridge::wire
