// SPDX-License-Identifier: Apache-2.0
// Casts: every code and every 16-bit value against ml_dtypes' results, ties and neighbors from f64, and every
// instruction set against the plain one.
#include "codecs/cast.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <complex>
#include <cstring>
#include <limits>
#include <random>
#include <vector>

#include "codecs/checksum.h"
#include "codecs/kernels.h"
#include "codecs/small_float.h"

namespace weighbridge::codecs {
namespace {

struct Golden {
  DType dtype;
  std::uint32_t decoded, from_f16, from_bf16;
};
constexpr Golden kGolden[] = {
#include "codecs/cast_golden.inc"
};

template <class T> std::span<const std::byte> bytes(const std::vector<T>& v) { return std::as_bytes(std::span(v)); }

template <class To, class From>
std::vector<To> convert(DType from, const std::vector<From>& in, DType to, std::uint64_t elements) {
  std::vector<To> out(static_cast<std::size_t>(packed_size(to, elements).value()) / sizeof(To));
  const CastResult result = cast(from, bytes(in), to, std::as_writable_bytes(std::span(out)), elements);
  EXPECT_TRUE(result.ok()) << name(from) << " to " << name(to) << ": " << static_cast<int>(result.status) << " at "
                           << result.index;
  return out;
}
template <class To, class From> std::vector<To> convert(DType from, const std::vector<From>& in, DType to) {
  return convert<To>(from, in, to, in.size());
}

// Every code of a dtype, packed.
std::vector<std::byte> all_codes(DType dtype) {
  const std::uint32_t bits = info(dtype).bits;
  const std::size_t count = std::size_t{1} << bits;
  std::vector<std::byte> codes(count * (bits == 16 ? 2 : 1));
  for (std::size_t i = 0; i < count; ++i) {
    if (bits == 16)
      codes[2 * i] = static_cast<std::byte>(i), codes[2 * i + 1] = static_cast<std::byte>(i >> 8);
    else
      codes[i] = static_cast<std::byte>(i);
  }
  if (bits >= 8) return codes;
  std::vector<std::byte> packed(count * bits / 8);
  pack_codes(bits, codes, packed);
  return packed;
}

std::vector<float> decoded(DType dtype) {
  return convert<float>(dtype, all_codes(dtype), DType::f32, std::uint64_t{1} << info(dtype).bits);
}

TEST(Cast, DecodesEveryCodeAsMlDtypesDoes) {
  for (const Golden& golden : kGolden) {
    std::vector<float> values = decoded(golden.dtype);
    for (float& v : values)
      if (std::isnan(v)) v = std::bit_cast<float>(0x7FC00000u);
    EXPECT_EQ(crc32(bytes(values)), golden.decoded) << name(golden.dtype);
  }
}

TEST(Cast, EncodesEvery16BitValueAsMlDtypesDoes) {
  for (const Golden& golden : kGolden) {
    if (golden.dtype == DType::f8_e8m0) continue;
    for (const bool half : {true, false}) {
      std::vector<float> values = decoded(half ? DType::f16 : DType::bf16);
      for (float& v : values)
        if (std::isnan(v)) v = 0;
      std::vector<std::byte> codes = convert<std::byte>(DType::f32, values, golden.dtype);
      const std::uint32_t bits = info(golden.dtype).bits;
      if (bits < 8) {
        std::vector<std::byte> loose(values.size());
        unpack_codes(bits, codes, loose);
        codes = loose;
      }
      EXPECT_EQ(crc32(codes), half ? golden.from_f16 : golden.from_bf16)
          << name(golden.dtype) << (half ? " from f16" : " from bf16");
    }
  }
}

TEST(Cast, EveryCodeComesBackThroughF32AndF64) {
  for (const Golden& golden : kGolden) {
    if (golden.dtype == DType::f8_e8m0) continue;
    const DType dtype = golden.dtype;
    const std::vector<float> values = decoded(dtype);
    const auto doubles = convert<double>(DType::f32, values, DType::f64);
    const auto again = convert<std::byte>(DType::f32, values, dtype),
               wide = convert<std::byte>(DType::f64, doubles, dtype);
    const auto codes = all_codes(dtype);
    EXPECT_EQ(again, wide) << name(dtype);
    const auto back = convert<float>(dtype, again, DType::f32, values.size());
    for (std::size_t i = 0; i < values.size(); ++i) {
      const bool same = std::isnan(values[i])
                            ? std::isnan(back[i])
                            : std::bit_cast<std::uint32_t>(back[i]) == std::bit_cast<std::uint32_t>(values[i]);
      EXPECT_TRUE(same) << name(dtype) << ' ' << i;
    }
  }
}

TEST(Cast, F64RoundsOnceToTheNearestAndTiesToEven) {
  for (const Golden& golden : kGolden) {
    if (golden.dtype == DType::f8_e8m0) continue;
    const std::vector<float> values = decoded(golden.dtype);
    const std::size_t half = values.size() / 2;  // codes without sign ascend
    std::vector<double> in;
    std::vector<float> expected;
    for (std::size_t code = 0; code + 1 < half; ++code) {
      const double low = static_cast<double>(values[code]), high = static_cast<double>(values[code + 1]);
      if (!std::isfinite(low) || !std::isfinite(high)) continue;
      const double tie = (low + high) / 2;
      for (const double sign : {1.0, -1.0}) {
        in.insert(in.end(), {sign * tie, sign * std::nextafter(tie, 0.0), sign * std::nextafter(tie, 1e300)});
        const auto s = static_cast<float>(sign);
        expected.insert(expected.end(), {s * (code % 2 == 0 ? values[code] : values[code + 1]), s * values[code],
                                         s * values[code + 1]});
      }
    }
    const auto codes = convert<std::byte>(DType::f64, in, golden.dtype);
    const auto out = convert<float>(golden.dtype, codes, DType::f32, in.size());
    for (std::size_t i = 0; i < in.size(); ++i) ASSERT_EQ(out[i], expected[i]) << name(golden.dtype) << ' ' << in[i];
  }
}

TEST(Cast, OverflowIsWhatTheTypeHasForIt) {
  const float infinity = std::numeric_limits<float>::infinity();
  const std::vector<double> in{1e300, -1e300, std::numeric_limits<double>::infinity(), 3e38};
  for (const DType to : {DType::f16, DType::f8_e5m2}) {
    const auto out = convert<float>(to, convert<std::byte>(DType::f64, in, to), DType::f32, in.size());
    EXPECT_EQ(out, (std::vector<float>{infinity, -infinity, infinity, infinity})) << name(to);
  }
  EXPECT_EQ(convert<std::uint16_t>(DType::f64, in, DType::bf16),
            (std::vector<std::uint16_t>{0x7F80, 0xFF80, 0x7F80, 0x7F62}));
  EXPECT_EQ(convert<float>(DType::f64, in, DType::f32)[0], infinity);
  for (const DType to : {DType::f8_e4m3, DType::f8_e4m3fnuz, DType::f8_e5m2fnuz})
    for (const float v : convert<float>(to, convert<std::byte>(DType::f64, in, to), DType::f32, in.size()))
      EXPECT_TRUE(std::isnan(v)) << name(to);
  EXPECT_EQ(convert<float>(DType::f4, convert<std::byte>(DType::f64, in, DType::f4), DType::f32, 4),
            (std::vector<float>{6, -6, 6, 6}));
}

TEST(Cast, NanIsRefusedWhereThereIsNone) {
  std::vector<float> in(5000, 1.0f);
  in[4321] = std::numeric_limits<float>::quiet_NaN();
  for (const DType to : {DType::f6_e2m3, DType::f6_e3m2, DType::f4}) {
    std::vector<std::byte> out(static_cast<std::size_t>(*packed_size(to, in.size())));
    const CastResult result = cast(DType::f32, bytes(in), to, out, in.size());
    EXPECT_EQ(result.status, CastStatus::nan);
    EXPECT_EQ(result.index, 4321u);
  }
}

TEST(Cast, IntegersBecomeNearestReals) {
  std::mt19937_64 random(5);
  std::vector<std::int64_t> i64{std::numeric_limits<std::int64_t>::min(),
                                std::numeric_limits<std::int64_t>::max(),
                                0,
                                -1,
                                16777217,
                                9007199254740993,
                                65519,
                                65520,
                                2049,
                                2051,
                                -2049,
                                -2051};
  for (int i = 0; i < 20'000; ++i) i64.push_back(static_cast<std::int64_t>(random()) >> (random() % 64));
  const auto f32 = convert<float>(DType::i64, i64, DType::f32);
  const auto f64 = convert<double>(DType::i64, i64, DType::f64);
  const auto bf16 = convert<std::byte>(DType::i64, i64, DType::bf16);
  const auto wide = convert<float>(DType::bf16, bf16, DType::f32, i64.size());
  for (std::size_t i = 0; i < i64.size(); ++i) {
    EXPECT_EQ(f32[i], static_cast<float>(i64[i]));
    EXPECT_EQ(f64[i], static_cast<double>(i64[i]));
    // No neighbor in bf16 is nearer.
    using Wide = long double;  // a 64-bit mantissa: exact for every i64 and for bf16
    const Wide error = std::fabs(static_cast<Wide>(wide[i]) - static_cast<Wide>(i64[i]));
    const std::uint32_t bits = std::bit_cast<std::uint32_t>(wide[i]);
    for (const std::uint32_t next : {bits + 0x10000u, bits - 0x10000u})
      if (bits << 1 != 0) {
        EXPECT_LE(error, std::fabs(static_cast<Wide>(std::bit_cast<float>(next)) - static_cast<Wide>(i64[i])))
            << i64[i];
      }
  }
  EXPECT_EQ(convert<std::uint16_t>(DType::i64, std::vector<std::int64_t>{65519, 65520, 2049, 2051, -2049}, DType::f16),
            (std::vector<std::uint16_t>{0x7BFF, 0x7C00, 0x6800, 0x6802, 0xE800}));
  EXPECT_EQ(convert<float>(DType::u64, std::vector<std::uint64_t>{~std::uint64_t{0}}, DType::f32)[0],
            18446744073709551616.0f);
}

TEST(Cast, IntegersThatDoNotFitAreNamed) {
  struct Case {
    DType from, to;
    std::int64_t good, bad;
  };
  for (const Case c : {Case{DType::i64, DType::i8, -128, -129}, Case{DType::i64, DType::u8, 255, 256},
                       Case{DType::i64, DType::u64, 0, -1}, Case{DType::u64, DType::i64, 1, -1},
                       Case{DType::i64, DType::boolean, 1, 2}, Case{DType::i64, DType::i32, 2147483647, 2147483648},
                       Case{DType::u64, DType::u32, 4294967295, 4294967296}, Case{DType::i64, DType::u16, 0, -1},
                       Case{DType::i64, DType::i4, -8, -9}, Case{DType::i64, DType::u4, 15, 16},
                       Case{DType::i64, DType::i2, 1, 2}, Case{DType::u64, DType::u2, 3, 4}}) {
    std::vector<std::int64_t> in(3000, c.good);
    std::vector<std::byte> out(static_cast<std::size_t>(*packed_size(c.to, in.size())));
    EXPECT_TRUE(cast(c.from, bytes(in), c.to, out, in.size()).ok()) << name(c.to);
    in[2500] = c.bad;
    const CastResult result = cast(c.from, bytes(in), c.to, out, in.size());
    EXPECT_EQ(result.status, CastStatus::range) << name(c.to);
    EXPECT_EQ(result.index, 2500u);
  }
  EXPECT_EQ(convert<std::int64_t>(DType::i8, std::vector<std::int8_t>{-128, 127}, DType::i64),
            (std::vector<std::int64_t>{-128, 127}));
}

TEST(Cast, IntegersBelowAByteArePackedFromTheLowestBits) {
  const std::vector<std::uint8_t> packed{0x8F, 0x07};
  EXPECT_EQ(convert<std::int8_t>(DType::i4, packed, DType::i8, 3), (std::vector<std::int8_t>{-1, -8, 7}));
  EXPECT_EQ(convert<float>(DType::u4, packed, DType::f32, 3), (std::vector<float>{15, 8, 7}));
  EXPECT_EQ(convert<std::int64_t>(DType::i2, packed, DType::i64, 5), (std::vector<std::int64_t>{-1, -1, 0, -2, -1}));
  EXPECT_EQ(convert<std::uint16_t>(DType::u2, packed, DType::u16, 5), (std::vector<std::uint16_t>{3, 3, 0, 2, 3}));
  EXPECT_EQ(convert<std::uint8_t>(DType::i64, std::vector<std::int64_t>{-1, -8, 7}, DType::i4), packed);
  EXPECT_EQ(convert<std::uint8_t>(DType::u8, std::vector<std::uint8_t>{3, 2, 1, 0, 1}, DType::u2),
            (std::vector<std::uint8_t>{0b00011011, 1}));
  // Blocks of a cast begin on whole bytes.
  std::vector<std::int8_t> many(5001);
  for (std::size_t i = 0; i < many.size(); ++i) many[i] = static_cast<std::int8_t>(i % 16) - 8;
  const auto four = convert<std::byte>(DType::i8, many, DType::i4);
  EXPECT_EQ(four.size(), 2501U);
  EXPECT_EQ(convert<std::int8_t>(DType::i4, four, DType::i8, many.size()), many);
}

TEST(Cast, BooleansCountAsZeroAndOne) {
  const std::vector<std::uint8_t> in{0, 1, 2, 255};
  EXPECT_EQ(convert<std::uint8_t>(DType::boolean, in, DType::boolean), (std::vector<std::uint8_t>{0, 1, 1, 1}));
  EXPECT_EQ(convert<float>(DType::boolean, in, DType::f32), (std::vector<float>{0, 1, 1, 1}));
  EXPECT_EQ(convert<std::int32_t>(DType::boolean, in, DType::i32), (std::vector<std::int32_t>{0, 1, 1, 1}));
}

TEST(Cast, ComplexGoesByComponents) {
  const std::vector<double> in{1.5, -2.25, 1e300, 0.1};
  const auto narrow = convert<float>(DType::complex128, in, DType::complex64, 2);
  EXPECT_EQ(narrow, (std::vector<float>{1.5f, -2.25f, std::numeric_limits<float>::infinity(), 0.1f}));
  EXPECT_EQ(convert<double>(DType::complex64, std::vector<float>{1.5f, 0.1f}, DType::complex128, 1),
            (std::vector<double>{1.5, static_cast<double>(0.1f)}));
}

TEST(Cast, RefusesWhatHasNoMeaning) {
  EXPECT_FALSE(can_cast(DType::f32, DType::i32));
  EXPECT_FALSE(can_cast(DType::f32, DType::boolean));
  EXPECT_FALSE(can_cast(DType::f32, DType::complex64));
  EXPECT_FALSE(can_cast(DType::complex64, DType::f32));
  EXPECT_FALSE(can_cast(DType::f32, DType::f8_e8m0));
  EXPECT_FALSE(can_cast(DType::unknown, DType::unknown));
  for (const DTypeInfo& dtype : all_dtypes()) EXPECT_TRUE(can_cast(dtype.dtype, dtype.dtype)) << dtype.name;
  std::byte in[8]{}, out[8]{};
  EXPECT_EQ(cast(DType::f32, in, DType::i32, out, 2).status, CastStatus::not_allowed);
  EXPECT_EQ(cast(DType::f32, in, DType::f64, out, 2).status, CastStatus::size);
  EXPECT_EQ(cast(DType::f32, std::span(in).first(7), DType::f16, std::span(out).first(4), 2).status, CastStatus::size);
}

TEST(Cast, EveryAllowedPairWorksAtAwkwardLengthsAndAddresses) {
  for (const DTypeInfo& from : all_dtypes())
    for (const DTypeInfo& to : all_dtypes()) {
      if (!can_cast(from.dtype, to.dtype)) continue;
      for (const std::uint64_t n : {0u, 1u, 3u, 2047u, 2049u, 4100u}) {
        // Zeros fit everywhere; one byte off makes every address unaligned.
        std::vector<std::byte> in(static_cast<std::size_t>(*packed_size(from.dtype, n)) + 1),
            out(static_cast<std::size_t>(*packed_size(to.dtype, n)) + 2, std::byte{0x77});
        const auto target = std::span(out).subspan(1, out.size() - 2);
        ASSERT_TRUE(cast(from.dtype, std::span(in).subspan(1), to.dtype, target, n).ok())
            << from.name << " to " << to.name;
        EXPECT_EQ(out.front(), std::byte{0x77});
        EXPECT_EQ(out.back(), std::byte{0x77});
        if (from.dtype == DType::f8_e8m0) continue;  // it has no zero
        for (const std::byte b : target) ASSERT_EQ(b, std::byte{0}) << from.name << " to " << to.name;
      }
    }
}

// Random bits, heavy with specials.
std::vector<std::uint32_t> rough_floats(std::size_t n) {
  std::mt19937 random(11);
  std::vector<std::uint32_t> out(n);
  for (std::uint32_t& v : out) {
    v = static_cast<std::uint32_t>(random());
    if (v % 16 == 0) v |= 0x7F800000u;
    if (v % 16 == 1) v &= 0x807FFFFFu;
    if (v % 16 > 8) v = (v & 0x81FFFFFFu) | 0x3C000000u;  // near 1, where narrow types have values
  }
  return out;
}

TEST(Kernels, EverySetGivesTheBitsOfThePlainOne) {
  const auto rough = rough_floats(10'007);
  const Kernels& plain = *all_kernels()[0];
  for (const Kernels* set : all_kernels().subspan(1))
    for (const DTypeInfo& dtype : all_dtypes()) {
      const auto d = static_cast<std::size_t>(dtype.dtype);
      const std::size_t n = rough.size() - 1, width = std::max<std::size_t>(dtype.bits / 8, 1);
      const std::byte* source = std::as_bytes(std::span(rough)).data() + 1;
      const std::size_t fit = width > 4 ? n * 4 / width : n;
      if (plain.to_f32[d] != nullptr) {
        std::vector<std::uint32_t> a(n), b(n);
        plain.to_f32[d](source, reinterpret_cast<float*>(a.data()), n);
        set->to_f32[d](source, reinterpret_cast<float*>(b.data()), n);
        EXPECT_EQ(a, b) << set->name << " to f32 from " << dtype.name;
      }
      if (plain.from_f32[d] != nullptr) {
        std::vector<std::byte> a(n * width), b(n * width);
        plain.from_f32[d](reinterpret_cast<const float*>(rough.data()), a.data(), n);
        set->from_f32[d](reinterpret_cast<const float*>(rough.data()), b.data(), n);
        EXPECT_EQ(a, b) << set->name << " from f32 to " << dtype.name;
      }
      if (plain.to_i64[d] != nullptr) {
        std::vector<std::int64_t> a(fit), b(fit);
        plain.to_i64[d](source, a.data(), fit);
        set->to_i64[d](source, b.data(), fit);
        EXPECT_EQ(a, b) << set->name << " to i64 from " << dtype.name;
        std::vector<std::byte> c(fit * width), e(fit * width);
        plain.from_i64[d](a.data(), c.data(), fit);
        set->from_i64[d](a.data(), e.data(), fit);
        EXPECT_EQ(c, e) << set->name << " from i64 to " << dtype.name;
      }
    }
}

TEST(Kernels, OddRoundingIsTheSameEverywhere) {
  std::mt19937_64 random(3);
  std::vector<double> in(4099);
  for (double& v : in)
    v = std::bit_cast<double>((random() & 0x80FFFFFFFFFFFFFFu) |
                              (random() % 2 == 0 ? 0x3F00000000000000u : 0x3600000000000000u));
  in[0] = 1e300, in[1] = -std::numeric_limits<double>::infinity(), in[2] = -0.0, in[3] = 1.0;
  for (const Kernels* set : all_kernels()) {
    std::vector<float> out(in.size());
    set->f64_to_odd_f32(in.data(), out.data(), in.size());
    for (std::size_t i = 0; i < in.size(); ++i)
      EXPECT_EQ(std::bit_cast<std::uint32_t>(out[i]), round_to_odd(in[i])) << set->name;
  }
  EXPECT_EQ(round_to_odd(1e300), 0x7F800000u);
  EXPECT_EQ(round_to_odd(0x1.8p-149), 1u);
  EXPECT_EQ(round_to_odd(-0x1.4p-148), 0x80000003u);
  EXPECT_EQ(round_to_odd(1e-300), 1u);
  EXPECT_EQ(round_to_odd(-0.0), 0x80000000u);
  EXPECT_EQ(round_to_odd(1.0 + 1e-12), 0x3F800001u);
  EXPECT_EQ(round_to_odd(1.0 - 1e-12), 0x3F7FFFFFu);
}

// The tally of a cast, with every instruction set's comparison giving the same.
template <class From> CastTally tally_of(DType from, const std::vector<From>& in, DType to) {
  std::vector<std::byte> out(static_cast<std::size_t>(packed_size(to, in.size()).value()));
  CastTally tally;
  EXPECT_TRUE(cast(from, bytes(in), to, out, in.size(), &tally).ok());
  return tally;
}

TEST(Cast, CountsWhatOverflowsAndWhatBecomesZero) {
  const float inf = std::numeric_limits<float>::infinity(), nan = std::numeric_limits<float>::quiet_NaN();
  CastTally tally =
      tally_of<float>(DType::f32, {1, 65504, 65519.99F, 65520, -70000, inf, -inf, nan, 1e-8F, 0, -0.0F}, DType::f16);
  EXPECT_EQ(tally.overflowed, 2U);  // infinity stays infinity, NaN stays NaN, and 65519.99 becomes 65504
  EXPECT_EQ(tally.flushed, 1U);
  EXPECT_FLOAT_EQ(static_cast<float>(tally.largest_error), 65519.99F - 65504);
  tally = tally_of<float>(DType::f32, {448, 464, 465, inf}, DType::f8_e4m3);
  EXPECT_EQ(tally.overflowed, 2U);  // it has no infinity either: both become NaN
  EXPECT_EQ(tally.largest_error, 16);
  tally = tally_of<float>(DType::f32, {6, 6.9F, 7, -100}, DType::f4);
  EXPECT_EQ(tally.overflowed, 2U);  // from halfway to 8, which it lacks
  EXPECT_FLOAT_EQ(static_cast<float>(tally.largest_error), 0.9F);
  EXPECT_EQ(tally_of<float>(DType::f32, {7.5F, 7.74F, 7.75F, 0}, DType::f6_e2m3).overflowed, 1U);
  EXPECT_EQ(tally_of<float>(DType::f32, {28, 29.9F, 30, 0}, DType::f6_e3m2).overflowed, 1U);
  tally = tally_of<double>(DType::f64, {1e300, -3.5e38, 1e-60, 0.1}, DType::f32);
  EXPECT_EQ(tally.overflowed, 2U);
  EXPECT_EQ(tally.flushed, 1U);
  EXPECT_EQ(tally.largest_error, static_cast<double>(0.1F) - 0.1);
  tally = tally_of<std::complex<double>>(DType::complex128, {{1e300, 1}, {1, -1e300}}, DType::complex64);
  EXPECT_EQ(tally.overflowed, 2U);
  tally = tally_of<std::int32_t>(DType::i32, {70000, 1}, DType::f16);
  EXPECT_EQ(tally.overflowed, 0U);  // whole numbers are not looked at
}

TEST(Cast, EveryInstructionSetComparesAlike) {
  std::mt19937 random(5);
  std::vector<float> from(4099), result(from.size());
  std::vector<double> wide(from.size());
  for (std::size_t i = 0; i < from.size(); ++i) {
    from[i] = std::bit_cast<float>(static_cast<std::uint32_t>(random()));
    result[i] = i % 3 == 0 ? from[i] : std::bit_cast<float>(static_cast<std::uint32_t>(random()));
    wide[i] = std::bit_cast<double>(std::uint64_t{random()} << 32 | random());
  }
  for (const Kernels* const kernels : all_kernels())
    for (const std::size_t n : {std::size_t{0}, std::size_t{1}, std::size_t{31}, from.size()})
      for (const float limit : {7.0F, std::numeric_limits<float>::quiet_NaN()}) {
        Differences plain{}, other{};
        all_kernels()[0]->compare_f32(from.data(), result.data(), n, limit, plain);
        kernels->compare_f32(from.data(), result.data(), n, limit, other);
        EXPECT_TRUE(plain.overflowed == other.overflowed && plain.flushed == other.flushed &&
                    plain.largest == other.largest);
        all_kernels()[0]->compare_f64(wide.data(), result.data(), n, limit, plain);
        kernels->compare_f64(wide.data(), result.data(), n, limit, other);
        EXPECT_TRUE(plain.overflowed == other.overflowed && plain.flushed == other.flushed &&
                    plain.largest == other.largest);
      }
}

}  // namespace
}  // namespace weighbridge::codecs
