// SPDX-License-Identifier: Apache-2.0
// The sizes, file names and the one table of dtypes of safetensors. Source: the format's text in the README of
// github.com/huggingface/safetensors, and the published package 0.8 where that text is silent.
#pragma once
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "weighbridge/dtype.h"

namespace weighbridge::safetensors {

inline constexpr std::uint64_t kLengthSize = 8;           // u64 little-endian: bytes of the header
inline constexpr std::uint64_t kMinHeader = 2;            // {}
inline constexpr std::uint64_t kMaxHeader = 100'000'000;  // the package's own bound
inline constexpr std::uint64_t kHeaderAlignment = 8;  // the writer pads to it with spaces; readers do not require it
inline constexpr std::string_view kMetadata = "__metadata__";  // the one root key that is not a tensor
inline constexpr std::size_t kMaxRank = 64;                    // a limit of the object model, not of the format

// File names as huggingface_hub chooses them: a model in one file, or an index that names the shards
// "model-00001-of-00007.safetensors" and so on.
inline constexpr std::string_view kStem = "model", kSuffix = ".safetensors";
inline constexpr std::string_view kIndexSuffix = ".safetensors.index.json", kWholeName = "model.safetensors",
                                  kIndexName = "model.safetensors.index.json";
bool is_index_name(std::string_view) noexcept;
// The index that belongs to a shard of this name; empty if the name is not a shard's.
std::string index_of_shard(std::string_view name);

struct DTypeName {
  std::string_view name;
  DType dtype;
};

// Every dtype of package 0.8 in its order of rank. The writer puts tensors of higher rank first.
inline constexpr DTypeName kDTypes[] = {
    {"BOOL", DType::boolean},
    {"F4", DType::f4},
    {"F6_E2M3", DType::f6_e2m3},
    {"F6_E3M2", DType::f6_e3m2},
    {"U8", DType::u8},
    {"I8", DType::i8},
    {"F8_E5M2", DType::f8_e5m2},
    {"F8_E4M3", DType::f8_e4m3},
    {"F8_E8M0", DType::f8_e8m0},
    {"F8_E4M3FNUZ", DType::f8_e4m3fnuz},
    {"F8_E5M2FNUZ", DType::f8_e5m2fnuz},
    {"I16", DType::i16},
    {"U16", DType::u16},
    {"F16", DType::f16},
    {"BF16", DType::bf16},
    {"I32", DType::i32},
    {"U32", DType::u32},
    {"F32", DType::f32},
    {"C64", DType::complex64},
    {"F64", DType::f64},
    {"I64", DType::i64},
    {"U64", DType::u64},
};
inline constexpr std::size_t kDTypeRanks = sizeof kDTypes / sizeof kDTypes[0];

// The index of a dtype in kDTypes; kDTypeRanks if the format has no such dtype.
constexpr std::size_t dtype_rank(DType dtype) noexcept {
  std::size_t rank = 0;
  while (rank < kDTypeRanks && kDTypes[rank].dtype != dtype) ++rank;
  return rank;
}

}  // namespace weighbridge::safetensors
