// SPDX-License-Identifier: Apache-2.0
// The numbers of GGUF: magic, versions, types of metadata values, and the one table of element types. Source:
// docs/gguf.md of github.com/ggml-org/ggml, and ggml/include/ggml.h and gguf.h of github.com/ggml-org/llama.cpp where
// that text is silent.
//
//   "GGUF" | u32 version | u64 tensors | u64 values | values | tensor infos | padding | data
//   value: text key | u32 type | value            text: u64 length | bytes
//   array: u32 type of its elements | u64 count | elements
//   info:  text name | u32 rank | u64 dimension, fastest first | u32 element type | u64 offset in data
#pragma once
#include <cstdint>
#include <string_view>

#include "weighbridge/dtype.h"

namespace weighbridge::gguf {

inline constexpr std::string_view kMagic = "GGUF";
inline constexpr std::uint64_t kHeaderSize = 24;
inline constexpr std::uint32_t kOldestVersion = 2, kVersion = 3;
inline constexpr std::uint64_t kDefaultAlignment = 32;
// Written; more padding would outgrow the data. Read is any u32 (U5).
inline constexpr std::uint64_t kMaxAlignment = std::uint64_t{1} << 20;
inline constexpr std::uint32_t kMaxRank = 4;   // GGML_MAX_DIMS
inline constexpr std::uint64_t kMaxName = 63;  // GGML_MAX_NAME less its 0
// Bytes of a text, and elements of an array: GGUF_MAX_STRING_LENGTH and GGUF_MAX_ARRAY_ELEMENTS.
inline constexpr std::uint64_t kMaxLength = 1U << 30;
// No value and no tensor info is shorter, so the size of the file bounds their counts.
inline constexpr std::uint64_t kShortestValue = 13, kShortestInfo = 24;

inline constexpr std::string_view kAlignment = "general.alignment";
// This project's own key: spaces that leave room for later edits. It is not an attribute of the model. With an
// alignment of 32 or more, the key is short enough to fill any room that zeros before the data cannot fill.
inline constexpr std::string_view kPadding = "wb.padding";
// The file names in a folder: of a single file, and of a split model, "model-00001-of-00003.gguf".
inline constexpr std::string_view kStem = "model", kWholeName = "model.gguf";
inline constexpr std::string_view kSuffix = ".gguf", kSplitPrefix = "split.";
inline constexpr std::string_view kSplitNumber = "split.no", kSplitCount = "split.count",
                                  kSplitTensors = "split.tensors.count";

// Types of metadata values.
enum class ValueType : std::uint32_t { u8, i8, u16, i16, u32, i32, f32, boolean, text, array, u64, i64, f64 };
inline constexpr std::uint32_t kValueTypes = 13;
// The dtype of a number or boolean; unknown for text and array.
inline constexpr DType kValueDTypes[kValueTypes] = {
    DType::u8,      DType::i8,      DType::u16,     DType::i16, DType::u32, DType::i32, DType::f32,
    DType::boolean, DType::unknown, DType::unknown, DType::u64, DType::i64, DType::f64};

struct ElementType {
  std::uint32_t number;
  std::string_view name;   // as ggml writes it
  DType dtype;             // unknown: blocks
  std::string_view block;  // the id of its block type; empty for a scalar
};

// Every element type of ggml.h in October 2026. Numbers that are missing were removed.
inline constexpr ElementType kElementTypes[] = {
    {0, "f32", DType::f32, {}},
    {1, "f16", DType::f16, {}},
    {2, "q4_0", DType::unknown, "ggml.q4_0"},
    {3, "q4_1", DType::unknown, "ggml.q4_1"},
    {6, "q5_0", DType::unknown, "ggml.q5_0"},
    {7, "q5_1", DType::unknown, "ggml.q5_1"},
    {8, "q8_0", DType::unknown, "ggml.q8_0"},
    {9, "q8_1", DType::unknown, "ggml.q8_1"},
    {10, "q2_k", DType::unknown, "ggml.q2_k"},
    {11, "q3_k", DType::unknown, "ggml.q3_k"},
    {12, "q4_k", DType::unknown, "ggml.q4_k"},
    {13, "q5_k", DType::unknown, "ggml.q5_k"},
    {14, "q6_k", DType::unknown, "ggml.q6_k"},
    {15, "q8_k", DType::unknown, "ggml.q8_k"},
    {16, "iq2_xxs", DType::unknown, "ggml.iq2_xxs"},
    {17, "iq2_xs", DType::unknown, "ggml.iq2_xs"},
    {18, "iq3_xxs", DType::unknown, "ggml.iq3_xxs"},
    {19, "iq1_s", DType::unknown, "ggml.iq1_s"},
    {20, "iq4_nl", DType::unknown, "ggml.iq4_nl"},
    {21, "iq3_s", DType::unknown, "ggml.iq3_s"},
    {22, "iq2_s", DType::unknown, "ggml.iq2_s"},
    {23, "iq4_xs", DType::unknown, "ggml.iq4_xs"},
    {24, "i8", DType::i8, {}},
    {25, "i16", DType::i16, {}},
    {26, "i32", DType::i32, {}},
    {27, "i64", DType::i64, {}},
    {28, "f64", DType::f64, {}},
    {29, "iq1_m", DType::unknown, "ggml.iq1_m"},
    {30, "bf16", DType::bf16, {}},
    {34, "tq1_0", DType::unknown, "ggml.tq1_0"},
    {35, "tq2_0", DType::unknown, "ggml.tq2_0"},
    {39, "mxfp4", DType::unknown, "ggml.mxfp4"},
    {40, "nvfp4", DType::unknown, "ggml.nvfp4"},
    {41, "q1_0", DType::unknown, "ggml.q1_0"},
    {42, "q2_0", DType::unknown, "ggml.q2_0"},
};
constexpr const ElementType* find_element_type(std::uint32_t number) noexcept {
  for (const ElementType& row : kElementTypes)
    if (row.number == number) return &row;
  return nullptr;
}

}  // namespace weighbridge::gguf
