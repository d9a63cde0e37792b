// SPDX-License-Identifier: Apache-2.0
// The NumPy header, as numpy.lib.format describes it.
#include "weighbridge/npy.h"

namespace weighbridge {

std::string_view npy_type(DType dtype) noexcept {
  switch (dtype) {
    case DType::boolean: return "|b1";
    case DType::u8: return "|u1";
    case DType::i8: return "|i1";
    case DType::u16: return "<u2";
    case DType::i16: return "<i2";
    case DType::u32: return "<u4";
    case DType::i32: return "<i4";
    case DType::u64: return "<u8";
    case DType::i64: return "<i8";
    case DType::f16: return "<f2";
    case DType::f32: return "<f4";
    case DType::f64: return "<f8";
    case DType::complex64: return "<c8";
    case DType::complex128: return "<c16";
    case DType::bf16: return "<V2";
    case DType::f8_e4m3:
    case DType::f8_e5m2:
    case DType::f8_e8m0:
    case DType::f8_e4m3fnuz:
    case DType::f8_e5m2fnuz: return "|V1";
    case DType::unknown:
    case DType::f6_e2m3:
    case DType::f6_e3m2:
    case DType::f4:
    case DType::i4:
    case DType::u4:
    case DType::i2:
    case DType::u2: break;
  }
  return {};
}

std::string_view ml_dtype(DType dtype) noexcept {
  switch (dtype) {
    case DType::bf16: return "bfloat16";
    case DType::f8_e4m3: return "float8_e4m3fn";
    case DType::f8_e5m2: return "float8_e5m2";
    case DType::f8_e8m0: return "float8_e8m0fnu";
    case DType::f8_e4m3fnuz: return "float8_e4m3fnuz";
    case DType::f8_e5m2fnuz: return "float8_e5m2fnuz";
    default: return {};
  }
}

std::string npy_header(std::string_view type, std::span<const std::uint64_t> shape) {
  constexpr std::size_t kPreamble = 10, kAlignment = 64;
  std::string dictionary = "{'descr': '" + std::string(type) + "', 'fortran_order': False, 'shape': (";
  for (std::size_t i = 0; i < shape.size(); ++i) dictionary += (i == 0 ? "" : ", ") + std::to_string(shape[i]);
  dictionary += shape.size() == 1 ? ",), }" : "), }";
  dictionary.append(kAlignment - 1 - (kPreamble + dictionary.size()) % kAlignment, ' ');
  dictionary += '\n';
  std::string header("\x93NUMPY\x01\x00", 8);  // rank is at most 64: the dictionary stays below 64 KiB
  header += static_cast<char>(dictionary.size() & 0xFFU);
  header += static_cast<char>(dictionary.size() >> 8);
  return header + dictionary;
}

}  // namespace weighbridge
