// SPDX-License-Identifier: Apache-2.0
// Reads datatypes and dataspaces.
#include "formats/hdf5/types.h"

#include <utility>

namespace weighbridge::hdf5 {
namespace {

constexpr unsigned kMaxNesting = 16;  // of compound and array types, read by recursion; far deeper than real ones

// The parameters of a floating-point type, as IEEE 754, bf16 and the 8-bit floats have them.
struct Float {
  DType dtype;
  std::uint64_t size;
  std::uint8_t sign, exponent_at, exponent_bits, mantissa_bits;
  std::uint32_t bias;
};
constexpr Float kFloats[] = {
    {DType::f8_e4m3, 1, 7, 3, 4, 3, 7}, {DType::f8_e5m2, 1, 7, 2, 5, 2, 15}, {DType::f16, 2, 15, 10, 5, 10, 15},
    {DType::bf16, 2, 15, 7, 8, 7, 127}, {DType::f32, 4, 31, 23, 8, 23, 127}, {DType::f64, 8, 63, 52, 11, 52, 1023},
};

DType integer(std::uint64_t size, bool is_signed) {
  switch (size) {
    case 1: return is_signed ? DType::i8 : DType::u8;
    case 2: return is_signed ? DType::i16 : DType::u16;
    case 4: return is_signed ? DType::i32 : DType::u32;
    case 8: return is_signed ? DType::i64 : DType::u64;
    default: return DType::unknown;
  }
}

std::string bits_name(const char* what, std::uint64_t size) { return what + std::to_string(size * 8) + " bits"; }

DType complex_of(DType part) {
  return part == DType::f32 ? DType::complex64 : part == DType::f64 ? DType::complex128 : DType::unknown;
}

// Skips the zeros after a member's name, up to a multiple of eight, in versions 1 and 2.
std::string_view member_name(Cursor& in, std::uint8_t version) {
  Cursor ahead = in;
  std::uint64_t length = 0;
  while (ahead.u8() != 0) ++length;
  const std::string_view name = in.take(length);
  in.skip(version < 3 ? 8 - length % 8 : 1);
  return name;
}

Datatype read(Cursor& in, unsigned depth);

// A compound of a real and an imaginary part is a complex number, as h5py writes them.
void read_compound(Cursor& in, std::uint8_t version, std::uint32_t count, Datatype& out, unsigned depth) {
  bool complex = count == 2;
  DType part = DType::unknown;
  Order order = Order::little;
  for (std::uint32_t i = 0; i < count; ++i) {
    const std::string_view name = member_name(in, version);
    std::uint64_t offset = 0;
    if (version < 3) {
      offset = in.u32();
      if (version == 1) in.skip(28);  // dimensions
    } else {
      std::size_t width = 1;
      while (width < 8 && out.size >> (8 * width) != 0) ++width;
      offset = in.number(width);
    }
    const Datatype member = read(in, depth + 1);
    if (i == 0) part = member.dtype, order = member.order;
    complex = complex && name == (i == 0 ? "r" : "i") && offset == i * member.size && member.dtype == part &&
              member.order == order && member.kind == Class::real;
  }
  out.name = "compound of " + std::to_string(count) + " members";
  if (complex && out.size == 2 * std::uint64_t{info(part).bits / 8}) out.dtype = complex_of(part), out.order = order;
}

// An enumeration of FALSE and TRUE is a boolean, as h5py writes them.
void read_enumeration(Cursor& in, std::uint8_t version, std::uint32_t count, Datatype& out, unsigned depth) {
  const Datatype of = read(in, depth + 1);
  std::vector<std::string_view> names;
  for (std::uint32_t i = 0; i < count; ++i) names.push_back(member_name(in, version));
  const std::string_view values = in.take(base::checked_mul(of.size, count).value_or(UINT64_MAX));
  out.name = "enumeration of " + std::to_string(count) + " values";
  out.order = of.order;
  if (out.size == 1 && of.size == 1 && names == std::vector<std::string_view>{"FALSE", "TRUE"} &&
      values == std::string_view("\0\1", 2))
    out.dtype = DType::boolean;
}

void read_float(Cursor& in, std::uint32_t bits, Datatype& out) {
  const std::uint16_t offset = in.u16(), precision = in.u16();
  const std::uint8_t exponent_at = in.u8(), exponent_bits = in.u8(), mantissa_at = in.u8(), mantissa_bits = in.u8();
  const std::uint32_t bias = in.u32();
  const bool vax = (bits & 0x40U) != 0;
  const auto sign = static_cast<std::uint8_t>(bits >> 8U);
  out.name = bits_name("floating point of ", out.size);
  constexpr std::uint32_t kImplied = 2;  // the highest bit of the mantissa is not stored
  for (const Float& each : kFloats)
    if (out.size == each.size && offset == 0 && precision == 8 * each.size && !vax && sign == each.sign &&
        exponent_at == each.exponent_at && exponent_bits == each.exponent_bits && mantissa_at == 0 &&
        mantissa_bits == each.mantissa_bits && bias == each.bias && (bits >> 4U & 3U) == kImplied)
      out.dtype = each.dtype;
}

Datatype read(Cursor& in, unsigned depth) {
  if (depth > kMaxNesting) in.fail({"a datatype that nests at most ", kMaxNesting, " deep"});
  const std::uint8_t head = in.u8(), version = head >> 4U;
  const std::uint32_t bits = static_cast<std::uint32_t>(in.number(3));
  if (version < 1 || version > 5) in.fail("a datatype of version 1 to 5", version);
  Datatype out;
  out.kind = static_cast<Class>(head & 15U);
  out.size = in.u32();
  if (out.size == 0) in.fail("elements of at least one byte");
  const std::uint32_t count = bits & 0xFFFFU;
  out.order = (bits & 1U) != 0 ? Order::big : Order::little;
  switch (out.kind) {
    case Class::integer: {
      const std::uint16_t offset = in.u16(), precision = in.u16();
      out.name = bits_name((bits & 8U) != 0 ? "signed integer of " : "unsigned integer of ", out.size);
      if (offset == 0 && precision == 8 * out.size) out.dtype = integer(out.size, (bits & 8U) != 0);
      break;
    }
    case Class::real: read_float(in, bits, out); break;
    case Class::time:
      in.skip(2);
      out.name = "time";
      break;
    case Class::text:
      out.padding = static_cast<std::uint8_t>(bits & 15U);
      out.name = "text of " + std::to_string(out.size) + " bytes";
      break;
    case Class::bits:
      in.skip(4);
      out.name = bits_name("bit field of ", out.size);
      break;
    case Class::opaque:
      in.skip(bits & 0xFFU);
      out.name = "opaque of " + std::to_string(out.size) + " bytes";
      break;
    case Class::compound: read_compound(in, version, count, out, depth); break;
    case Class::reference: out.name = "reference"; break;
    case Class::enumeration: read_enumeration(in, version, count, out, depth); break;
    case Class::variable: {
      const Datatype of = read(in, depth + 1);
      out.variable_text = (bits & 15U) == 1;
      out.name = out.variable_text ? "text of variable length" : "sequence of variable length";
      break;
    }
    case Class::array: {
      const std::uint8_t rank = in.u8();
      if (version < 3) in.skip(3);
      in.skip(std::uint64_t{rank} * (version < 3 ? 8 : 4));
      out.name = "array of " + read(in, depth + 1).name;
      break;
    }
    case Class::complex: {
      const Datatype of = read(in, depth + 1);
      out.name = "complex number of " + of.name;
      out.order = of.order;
      if (of.kind == Class::real && out.size == 2 * of.size) out.dtype = complex_of(of.dtype);
      break;
    }
    default: in.fail("a class of datatypes from 0 to 11", head & 15U);
  }
  if (info(out.dtype).swap_bytes <= 1) out.order = Order::little;
  return out;
}

}  // namespace

Datatype read_datatype(Cursor in) { return read(in, 0); }

DType opaque_dtype(std::string_view name, std::uint64_t size) noexcept {
  static constexpr std::pair<std::string_view, DType> kNames[] = {{"bfloat16", DType::bf16},
                                                                  {"float8_e4m3fn", DType::f8_e4m3},
                                                                  {"float8_e4m3fnuz", DType::f8_e4m3fnuz},
                                                                  {"float8_e5m2", DType::f8_e5m2},
                                                                  {"float8_e5m2fnuz", DType::f8_e5m2fnuz}};
  for (const auto& [each, dtype] : kNames)
    if (each == name && size == info(dtype).bits / 8) return dtype;
  return DType::unknown;
}

Dataspace read_dataspace(Cursor in) {
  const std::uint8_t version = in.u8(), rank = in.u8(), flags = in.u8();
  Dataspace out;
  if (version == 1) {
    in.skip(5);
  } else if (version == 2) {
    constexpr std::uint8_t kScalar = 0, kNullKind = 2;
    const std::uint8_t kind = in.u8();
    out.null = kind == kNullKind;
    if (kind > kNullKind || (kind == kScalar && rank != 0)) in.fail("a scalar, simple or null dataspace");
  } else {
    in.fail("a dataspace of version 1 or 2", version);
  }
  if (rank > kMaxRank) in.fail(core::at_most(kMaxRank, " dimensions"), rank);
  for (std::uint8_t i = 0; i < rank; ++i) out.shape.push_back(in.length());
  out.maximum = out.shape;
  if ((flags & 1U) != 0)
    for (std::uint64_t& maximum : out.maximum) {
      const std::uint64_t size = out.shape[static_cast<std::size_t>(&maximum - out.maximum.data())];
      maximum = in.extent();
      if (maximum < size) in.fail({"a largest extent of at least ", size}, maximum);
    }
  return out;
}

}  // namespace weighbridge::hdf5
