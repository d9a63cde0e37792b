// SPDX-License-Identifier: Apache-2.0
// The names in a checkpoint of PyTorch: members of its archive, types of elements, storages, and the functions that
// rebuild tensors. Source: torch/serialization.py, torch/_utils.py, torch/_tensor.py and
// torch/_weights_only_unpickler.py of PyTorch 2.15, and caffe2/serialize/inline_container.cc.
#pragma once
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "core/archive/pickle_scan.h"
#include "weighbridge/dtype.h"

namespace weighbridge::pytorch {

// Members of the archive, beneath a folder whose name is free.
inline constexpr std::string_view kDataPickle = "data.pkl", kConstantsPickle = "constants.pkl",
                                  kByteOrder = "byteorder", kVersion = "version", kStorages = "data/",
                                  kConstantStorages = "constants/", kCode = "code/", kFormatVersion = ".format_version",
                                  kStorageAlignment = ".storage_alignment";
// Longer names and keys are read as "...": wire/pickle_machine.cc has one window of text in memory at a time.
inline constexpr std::size_t kLongestKey = std::size_t{64} << 10;
inline constexpr std::uint64_t kAlignment = 64;  // of storages, in what PyTorch writes
inline constexpr std::string_view kWrittenVersion = "3";

// The end of the name of an index, which names the shards of a model as those of safetensors are named.
inline constexpr std::string_view kIndexSuffix = ".bin.index.json";

// The form before 1.6: consecutive pickles, the first with this number, the second with the version of the protocol.
inline constexpr std::string_view kMagicPickle = core::kTorchMagicPickle;
inline constexpr std::string_view kMagic{
    "l\xfc\x9c"
    "F\xf9 j\xa8P\x19",
    10};  // little-endian
inline constexpr std::string_view kMagicText = "119547037146038801333356";
inline constexpr std::int64_t kLegacyProtocol = 1001;

// Entries in the __dict__ of a state dict: the versions of its modules, written by PyTorch, and the attributes of a
// model, written by this program (reading P10).
inline constexpr std::string_view kMetadata = "_metadata", kAttributes = "attributes";
// How deep lists and dictionaries nest that become one value.
inline constexpr unsigned kValueDepth = 8;

// The name of a tensor that is the whole content of a checkpoint, and of the value of a pickle alone.
inline constexpr std::string_view kTensor = "tensor", kValue = "value";

// A type of elements. `bytes` is the size of what PyTorch counts as one element: two f4 are one.
struct ElementType {
  std::string_view name;     // in the module torch
  std::string_view storage;  // the class of a storage of it; empty: it has none
  DType dtype;               // unknown: this library has no such type
  std::uint32_t bytes;
  bool quantized = false;
  std::uint32_t packed = 1;      // elements in one of PyTorch's
  DType codes = DType::unknown;  // of a quantized type whose values can be computed
};
inline constexpr ElementType kTypes[] = {
    {"float32", "FloatStorage", DType::f32, 4},
    {"float64", "DoubleStorage", DType::f64, 8},
    {"float16", "HalfStorage", DType::f16, 2},
    {"bfloat16", "BFloat16Storage", DType::bf16, 2},
    {"uint8", "ByteStorage", DType::u8, 1},
    {"int8", "CharStorage", DType::i8, 1},
    {"int16", "ShortStorage", DType::i16, 2},
    {"int32", "IntStorage", DType::i32, 4},
    {"int64", "LongStorage", DType::i64, 8},
    {"bool", "BoolStorage", DType::boolean, 1},
    {"complex64", "ComplexFloatStorage", DType::complex64, 8},
    {"complex128", "ComplexDoubleStorage", DType::complex128, 16},
    {"uint16", "", DType::u16, 2},
    {"uint32", "", DType::u32, 4},
    {"uint64", "", DType::u64, 8},
    {"float8_e4m3fn", "", DType::f8_e4m3, 1},
    {"float8_e5m2", "", DType::f8_e5m2, 1},
    {"float8_e8m0fnu", "", DType::f8_e8m0, 1},
    {"float8_e4m3fnuz", "", DType::f8_e4m3fnuz, 1},
    {"float8_e5m2fnuz", "", DType::f8_e5m2fnuz, 1},
    {"float4_e2m1fn_x2", "", DType::f4, 1, false, 2},
    {"complex32", "ComplexHalfStorage", DType::unknown, 4},
    {"qint8", "QInt8Storage", DType::unknown, 1, true, 1, DType::i8},
    {"quint8", "QUInt8Storage", DType::unknown, 1, true, 1, DType::u8},
    {"qint32", "QInt32Storage", DType::unknown, 4, true, 1, DType::i32},
    {"quint4x2", "QUInt4x2Storage", DType::unknown, 1, true},
    {"quint2x4", "QUInt2x4Storage", DType::unknown, 1, true},
    {"bits8", "", DType::unknown, 1},
    {"bits16", "", DType::unknown, 2},
    {"bits1x8", "", DType::unknown, 1},
    {"bits2x4", "", DType::unknown, 1},
    {"bits4x2", "", DType::unknown, 1},
};
// Other names of some of them.
struct TypeAlias {
  std::string_view alias, name;
};
inline constexpr TypeAlias kTypeAliases[] = {
    {"float", "float32"}, {"double", "float64"},   {"half", "float16"},       {"short", "int16"},    {"int", "int32"},
    {"long", "int64"},    {"cfloat", "complex64"}, {"cdouble", "complex128"}, {"chalf", "complex32"}};
// Storages of bytes: the tensor states the type.
inline constexpr ElementType kUntyped{"uint8", "UntypedStorage", DType::u8, 1};

constexpr const ElementType* type_of(std::string_view name) noexcept {
  for (const TypeAlias& each : kTypeAliases)
    if (each.alias == name) name = each.name;
  for (const ElementType& each : kTypes)
    if (each.name == name) return &each;
  return nullptr;
}
constexpr const ElementType* type_of_storage(std::string_view name) noexcept {
  if (name == kUntyped.storage || name == "TypedStorage") return &kUntyped;
  for (const ElementType& each : kTypes)
    if (!each.storage.empty() && each.storage == name) return &each;
  return nullptr;
}

}  // namespace weighbridge::pytorch
