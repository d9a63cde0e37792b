// SPDX-License-Identifier: Apache-2.0
// The types of NumPy: how it and ml_dtypes spell them in files and pickles. Source: numpy/_core/_type_aliases.py,
// numpy/_core/_dtype_ctypes.py and the type strings that numpy.dtype() takes.
#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "weighbridge/dtype.h"
#include "weighbridge/model.h"

namespace weighbridge::core {

// A type of elements as NumPy writes it, little-endian. ml_dtypes saves types that NumPy lacks as void items of the
// same size, so files do not say which type they have.
struct NumpyType {
  std::string_view text;
  DType dtype;
  std::string_view words{};     // other spellings: letters, which may follow a byte order, and names
  std::string_view ml_dtype{};  // the name in ml_dtypes; empty: a type of NumPy itself

  constexpr std::string_view code() const noexcept { return text.substr(1); }  // without the byte order
};
inline constexpr NumpyType kNumpyTypes[] = {
    {"|b1", DType::boolean, "? bool bool_"},
    {"|u1", DType::u8, "B uint8 ubyte"},
    {"|i1", DType::i8, "b int8 byte"},
    {"<u2", DType::u16, "H uint16 ushort"},
    {"<i2", DType::i16, "h int16 short"},
    {"<u4", DType::u32, "I uint32 uintc"},
    {"<i4", DType::i32, "i int32 intc"},
    {"<u8", DType::u64, "L Q N P uint64 uint ulong ulonglong uintp"},
    {"<i8", DType::i64, "l q n p int64 int int_ long longlong intp"},
    {"<f2", DType::f16, "e float16 half"},
    {"<f4", DType::f32, "f float32 single"},
    {"<f8", DType::f64, "d float64 float double"},
    {"<c8", DType::complex64, "F complex64 csingle"},
    {"<c16", DType::complex128, "D complex128 complex cdouble"},
    {"<V2", DType::bf16, "bfloat16", "bfloat16"},
    {"<V1", DType::f8_e4m3, "float8_e4m3fn", "float8_e4m3fn"},
    {"|V1", DType::f8_e5m2, "float8_e5m2", "float8_e5m2"},  // ml_dtypes saves "<f1", which numpy.load() refuses
    {"<V1", DType::f8_e8m0, "float8_e8m0fnu", "float8_e8m0fnu"},
    {"<V1", DType::f8_e4m3fnuz, "float8_e4m3fnuz", "float8_e4m3fnuz"},
    {"<V1", DType::f8_e5m2fnuz, "float8_e5m2fnuz", "float8_e5m2fnuz"},
};
inline constexpr std::size_t kNumpyTypeCount = sizeof kNumpyTypes / sizeof kNumpyTypes[0];

// How NumPy spells this type; null for types smaller than a byte.
const NumpyType* numpy_type(DType) noexcept;

// What a type string says.
struct NumpyWord {
  enum class Holds : std::uint8_t { numbers, texts, objects, times, raw, others };
  Holds holds = Holds::numbers;
  DType dtype = DType::unknown;  // of numbers
  Order order = Order::little;
  std::uint64_t bytes = 0;  // of a text (U counts 4 for each character) or of raw bytes
  bool wide = false;        // characters of 4 bytes
};
// nullopt: numpy.dtype() refuses it, also with ml_dtypes.
std::optional<NumpyWord> read_numpy_word(std::string_view) noexcept;
// One text of such a type in UTF-8, without the zeros that fill it up. nullopt: it is not valid.
std::optional<std::string> numpy_text(std::string_view bytes, const NumpyWord&);

}  // namespace weighbridge::core
