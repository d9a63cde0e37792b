// SPDX-License-Identifier: Apache-2.0
// The quantizations of GGUF files by llama.cpp's names: one type for all, or a mix of types. Source: enum llama_ftype
// of llama.h, and tools/quantize of github.com/ggml-org/llama.cpp.
#pragma once
#include <cstdint>
#include <string_view>

namespace weighbridge::core {

struct FileType {
  std::string_view name;
  std::string_view type;  // of most tensors: a block type of GGML, or a dtype
  std::uint32_t number;   // general.file_type
  bool quantized = true;
};

inline constexpr FileType kFileTypes[] = {
    {"q8_0", "q8_0", 7},        {"q4_0", "q4_0", 2},        {"q4_1", "q4_1", 3},      {"q5_0", "q5_0", 8},
    {"q5_1", "q5_1", 9},        {"q2_k", "q2_k", 10},       {"q2_k_s", "q2_k", 21},   {"q3_k_s", "q3_k", 11},
    {"q3_k_m", "q3_k", 12},     {"q3_k_l", "q3_k", 13},     {"q4_k_s", "q4_k", 14},   {"q4_k_m", "q4_k", 15},
    {"q5_k_s", "q5_k", 16},     {"q5_k_m", "q5_k", 17},     {"q6_k", "q6_k", 18},     {"iq4_nl", "iq4_nl", 25},
    {"iq4_xs", "iq4_xs", 30},   {"iq3_xs", "iq3_s", 22},    {"iq3_s", "iq3_s", 26},   {"iq3_m", "iq3_s", 27},
    {"iq3_xxs", "iq3_xxs", 23}, {"iq2_xxs", "iq2_xxs", 19}, {"iq2_xs", "iq2_xs", 20}, {"iq2_s", "iq2_xs", 28},
    {"iq2_m", "iq2_s", 29},     {"tq1_0", "tq1_0", 36},     {"tq2_0", "tq2_0", 37},   {"mxfp4_moe", "mxfp4", 38},
    {"mxfp4", "mxfp4", 38},     {"f32", "f32", 0, false},   {"f16", "f16", 1, false}, {"bf16", "bf16", 32, false}};

// Words that llama-quantize takes for another one.
struct FileTypeAlias {
  std::string_view word, name;
};
inline constexpr FileTypeAlias kFileTypeAliases[] = {{"q3_k", "q3_k_m"}, {"q4_k", "q4_k_m"}, {"q5_k", "q5_k_m"}};

constexpr const FileType* find_file_type(std::string_view name) noexcept {
  for (const FileTypeAlias& alias : kFileTypeAliases)
    if (alias.word == name) name = alias.name;
  for (const FileType& row : kFileTypes)
    if (row.name == name) return &row;
  return nullptr;
}

}  // namespace weighbridge::core
