// SPDX-License-Identifier: Apache-2.0
// The rows. The layouts are those of the libraries that write them: transformers, compressed-tensors, ModelOpt,
// AutoGPTQ and GPTQModel, AutoAWQ, bitsandbytes, HQQ, optimum-quanto, torchao, MLX, ComfyUI.
#include "schemes/table.h"

#include <algorithm>

#include "base/fail.h"

namespace weighbridge::schemes {
namespace {

constexpr Types kE8m0 = type(DType::f8_e8m0), kU8 = type(DType::u8), kI8 = type(DType::i8), kF4 = type(DType::f4);
constexpr Types kExponents = kE8m0 | kU8, kScale = kReal | kE8m0;

constexpr Scheme kSchemes[] = {
    {"fp8", "FP8 with scales", " fp8 fbgemm_fp8 finegrained_fp8 ", "block=RxC"},
    {"mxfp8", "MXFP8", " mxfp8 "},
    {"int8", "int8 with scales", " eetq "},
    {"int4", "int4 with scales", ""},
    {"nvfp4", "NVFP4", " nvfp4 modelopt_fp4 "},
    {"mxfp4", "MXFP4", " mxfp4 "},
    {"mxfp6", "MXFP6", ""},
    {"gptq", "GPTQ", " gptq ", "zeros=auto|v1|v2|planar"},
    {"awq", "AWQ", " awq ", "version=gemm|gemv group=N"},
    {"bitsandbytes-int8", "bitsandbytes int8", " bitsandbytes bitsandbytes_8bit "},
    {"bitsandbytes-nf4", "bitsandbytes nf4", " bitsandbytes bitsandbytes_4bit "},
    {"bitsandbytes-fp4", "bitsandbytes fp4", " bitsandbytes bitsandbytes_4bit "},
    {"bitsandbytes-4bit", "bitsandbytes 4-bit", " bitsandbytes bitsandbytes_4bit "},
    {"hqq", "HQQ", " hqq "},
    {"quanto", "Quanto", " quanto ", "columns=N"},
    {"torchao", "torchao", " torchao "},
    {"mlx", "MLX", " mlx ", "mode=affine|mxfp4|mxfp8|nvfp4 group=N"},
    {"compressed-tensors", "compressed-tensors pack-quantized", " compressed-tensors compressed_tensors ",
     "bits=N packing=dense|padded"},
    {"exl2", "EXL2", " exl2 "},
    {"exl3", "EXL3", " exl3 "},
    {"aqlm", "AQLM", " aqlm "},
    {"vptq", "VPTQ", " vptq "},
    {"marlin", "Marlin", " marlin qqq "},
    {"bitnet", "BitNet", " bitnet "},
    {"higgs", "HIGGS", " higgs "},
    {"quip", "QuIP#", " quip "},
    // A scheme that only a config shows: it is named after the method.
    {"other", "quantized weights", ""},
};

// Methods whose tensors all have one of the forms below. For other methods, unknown tensors count as codes.
constexpr std::string_view kKnownMethods =
    " fp8 fbgemm_fp8 finegrained_fp8 compressed-tensors compressed_tensors modelopt modelopt_fp4 mxfp4 mxfp8 nvfp4 "
    "gptq "
    "awq bitsandbytes bitsandbytes_4bit bitsandbytes_8bit hqq mlx metal quanto eetq ";

constexpr std::string_view kDecodedMethods =
    " fp8 fbgemm_fp8 finegrained_fp8 modelopt modelopt_fp4 compressed-tensors compressed_tensors mxfp4 gptq awq "
    "bitsandbytes bitsandbytes_4bit bitsandbytes_8bit hqq mlx metal quanto auto-round ";

// Scales of activations, caches and other computed values, not of weights. " k_scale " and so on.
constexpr std::string_view kOtherScales =
    " input_scale scale_input input_global_scale k_scale v_scale q_scale kv_scale prob_scale output_scale "
    "output_global_scale activation_scale act_scale logit_scale layer_scale layerscale scale_shift_table attn_scale "
    "softmax_scale lora_scale ";

constexpr Companion kMxBlocks[] = {{"_scales", kExponents}};
constexpr Companion kNf4[] = {{".quant_state.bitsandbytes__nf4", kU8},
                              {".absmax", kReal | kU8, Need::also},
                              {".quant_map", kReal, Need::also},
                              {".nested_absmax", kReal, Need::also},
                              {".nested_quant_map", kReal, Need::also}};
constexpr Companion kFp4[] = {{".quant_state.bitsandbytes__fp4", kU8},
                              {".absmax", kReal | kU8, Need::also},
                              {".quant_map", kReal, Need::also},
                              {".nested_absmax", kReal, Need::also},
                              {".nested_quant_map", kReal, Need::also}};
constexpr Companion kAbsmax[] = {{".absmax", kReal | kU8, Need::any},
                                 {".quant_map", kReal, Need::any},
                                 {".nested_absmax", kReal, Need::also},
                                 {".nested_quant_map", kReal, Need::also}};
constexpr Companion kScb[] = {{".SCB", kReal}, {".weight_format", kAny, Need::also}};
constexpr Companion kOwnScb[] = {{".SCB", kReal}, {"_format", kAny, Need::also}};
constexpr Companion kHqq[] = {{".scale", kAny, Need::any},
                              {".zero", kAny, Need::any},
                              {".scale_q", kAny, Need::any},
                              {".zero_q", kAny, Need::any},
                              {".zero_scale", kAny, Need::any},
                              {".shape", kAny, Need::also},
                              {".axis", kAny, Need::also},
                              {".channel_wise", kAny, Need::also},
                              {".compute_dtype", kAny, Need::also},
                              {".encoded_state_dict", kAny, Need::also},
                              {".group_size", kAny, Need::also},
                              {".nbits", kAny, Need::any},
                              {".offload_meta", kAny, Need::also},
                              {".optimize", kAny, Need::also},
                              {".packing", kAny, Need::any},
                              {".quant_scale", kAny, Need::also},
                              {".quant_zero", kAny, Need::also},
                              {".round_zero", kAny, Need::also},
                              {".stores_quant_config", kAny, Need::also},
                              {".unpack_view_dtype", kAny, Need::also},
                              {".view_as_float", kAny, Need::also}};
constexpr Companion kQuanto[] = {{"._scale", kScale}, {"._shift", kAny, Need::also}};
constexpr Companion kTorchao[] = {{"_scale", kAny, Need::any},
                                  {"_zero_point", kAny, Need::any},
                                  {"_scale_and_zero", kAny, Need::any},
                                  {"_act_pre_scale", kAny, Need::also}};
constexpr Companion kPacked[] = {
    {"_scale", kReal}, {"_shape", kAny, Need::also}, {"_zero_point", kAny, Need::also}, {"_g_idx", kAny, Need::also}};
constexpr Companion kPackedNvfp4[] = {{"_scale", kF8}, {"_global_scale", kReal, Need::also}};
constexpr Companion kPackedMx[] = {{"_scale", kExponents}};
constexpr Companion kGroups[] = {{".scales", kAny, Need::any},
                                 {".qzeros", kAny, Need::any},
                                 {".g_idx", kAny, Need::any},
                                 {".zeros", kAny, Need::also}};
constexpr Companion kGroupsInOrder[] = {{".scales", kAny, Need::any}, {".qzeros", kAny, Need::any}, {".g_idx", kAny}};
constexpr Companion kExl2[] = {{".q_scale", kAny, Need::any},
                               {".q_scale_max", kAny, Need::any},
                               {".q_groups", kAny, Need::any},
                               {".q_invperm", kAny, Need::also},
                               {".q_group_map", kAny, Need::also}};
constexpr Companion kExl3[] = {
    {".suh", kAny, Need::any}, {".svh", kAny, Need::any}, {".su", kAny, Need::any}, {".sv", kAny, Need::any}};
constexpr Companion kAqlm[] = {{".codebooks", kReal}, {".scales", kReal, Need::also}};
constexpr Companion kVptq[] = {{".centroids", kReal, Need::any},
                               {".centroids.weight", kReal, Need::any},
                               {".res_centroids.weight", kReal, Need::also},
                               {".weight_scale", kReal, Need::also},
                               {".weight_bias", kReal, Need::also},
                               {".perm", kAny, Need::also}};
constexpr Companion kMarlin[] = {
    {".s", kReal, Need::any}, {".s_channel", kReal, Need::any}, {".s_group", kReal, Need::also}};
constexpr Companion kHiggs[] = {{".tables", kReal}, {".tables2", kReal, Need::also}, {".scales", kReal, Need::also}};
constexpr Companion kQuip[] = {{".SU", kAny, Need::any}, {".SV", kAny, Need::any}, {".Wscale", kReal, Need::any}};
constexpr Companion kMlx[] = {
    {".scales", kReal | kExponents | kF8}, {".biases", kReal, Need::also}, {".qbiases", kReal, Need::also}};
constexpr Companion kNvfp4[] = {{"_scale", kF8}, {"_scale_2", kReal, Need::also}, {"_global_scale", kReal, Need::also}};
constexpr Companion kMxfp8[] = {{"_scale", kExponents, Need::any}, {"_scale_inv", kExponents, Need::any}};
constexpr Companion kMxfp8Module[] = {{".scale", kExponents}};
constexpr Companion kInt4[] = {{"_scale", kReal}};
// Companions of a tensor NAME: NAME_scale and the like.
constexpr Companion kOwnScale[] = {{"_scale", kScale, Need::any},     {"_scale_inv", kScale, Need::any},
                                   {"_scales", kScale, Need::any},    {"_scale_2", kReal, Need::any},
                                   {"._scale", kScale, Need::any},    {".scale", kScale, Need::any},
                                   {".scale_inv", kScale, Need::any}, {"_qscale", kScale, Need::any},
                                   {"_zero_point", kAny, Need::also}, {"_zeros", kAny, Need::also}};
// Companions of a module's NAME.weight: NAME.scale_weight and the like.
constexpr Companion kModuleScale[] = {{".scale_weight", kScale, Need::any},  {".scale", kScale, Need::any},
                                      {".scales", kScale, Need::any},        {".scale_inv", kScale, Need::any},
                                      {".weights_scale", kScale, Need::any}, {".comfy_quant", kAny, Need::any},
                                      {".weight_scale", kScale, Need::also}, {".weight_scale_2", kReal, Need::also},
                                      {".zero_point", kAny, Need::also},     {".zeros", kAny, Need::also}};
constexpr Companion kActivations[] = {
    {".input_scale", kReal, Need::any}, {".scale_input", kReal, Need::any}, {".input_global_scale", kReal, Need::any}};

std::uint64_t last(const Entry& entry) { return entry.shape.empty() ? 1 : entry.shape.back(); }
std::uint64_t first(const Entry& entry) { return entry.shape.empty() ? 1 : entry.shape.front(); }
bool is_matrix(const Entry* entry) { return entry != nullptr && entry->shape.size() == 2; }

using With = std::span<const Entry* const>;
// 24 bytes hold 32 codes of 6 bits.
bool fits_sixths(const Entry& codes, With with) { return last(codes) % 24 == 0 && last(codes) / 24 == last(*with[0]); }
bool fits_groups_of_32(const Entry& codes, With with) {
  for (const Entry* const scale : with)
    if (scale != nullptr && scale->shape.size() == codes.shape.size() && last(*scale) > 0 &&
        (last(codes) - 1) / 32 + 1 == last(*scale) && first(codes) == first(*scale))
      return true;
  return false;
}
// `qweight` has the rows of `scales` in AWQ's forms for vectors, and its columns in GPTQ's.
bool fits_gptq(const Entry& codes, With with) {
  return is_matrix(&codes) && is_matrix(with[0]) && codes.shape[0] != with[0]->shape[0] &&
         codes.shape[1] == with[0]->shape[1];
}
// Two rows in a byte.
bool fits_pairs_of_rows(const Entry& codes, With with) {
  return is_matrix(&codes) && is_matrix(with[0]) && codes.shape[0] <= UINT64_MAX / 2 &&
         with[0]->shape[0] == 2 * codes.shape[0];
}

constexpr Form kForms[] = {
    {"mxfp4", "_blocks", kU8, kMxBlocks, Count::nibbles, 2},
    {"bitsandbytes-nf4", "", kAny, kNf4, Count::flat_states},
    {"bitsandbytes-fp4", "", kAny, kFp4, Count::flat_states},
    {"bitsandbytes-4bit", "", kAny, kAbsmax, Count::flat_states},
    {"bitsandbytes-int8", ".weight", kI8, kScb},
    {"bitsandbytes-int8", "", kI8, kOwnScb},
    {"hqq", ".W_q", kAny, kHqq, Count::shape},
    {"quanto", "._data._data", kBytes, kQuanto, Count::scale_rows},
    {"quanto", "._data", kBytes | kF8, kQuanto},
    {"torchao", "_qdata", kCodes, kTorchao},
    {"compressed-tensors", "_packed", kWords, kPacked, Count::shape},
    {"nvfp4", "_packed", kU8 | kF4, kPackedNvfp4, Count::nibbles},
    {"mxfp6", "_packed", kU8, kPackedMx, Count::sixths, 0, fits_sixths},
    {"mxfp4", "_packed", kU8 | kF4, kPackedMx, Count::nibbles},
    {"compressed-tensors", "_packed", kBytes, kPacked, Count::shape},
    {"gptq", ".qweight", kWords | kHalfWords | kBytes, kGroupsInOrder, Count::rows_of_words},
    {"gptq", ".qweight", kWords, kGroups, Count::rows_of_words, 0, fits_gptq},
    {"awq", ".qweight", kWords | kHalfWords | kBytes, kGroups, Count::rows_of_words},
    {"exl2", ".q_weight", kWords, kExl2, Count::permuted},
    {"exl3", ".trellis", kHalfWords, kExl3, Count::tiles},
    {"aqlm", ".codes", kBytes | kHalfWords | kWords, kAqlm, Count::codebooks},
    {"vptq", ".indices", kHalfWords | kWords, kVptq},
    {"marlin", ".B", kWords, kMarlin, Count::nibbles},
    {"quip", ".Qidxs", kHalfWords | kWords | type(DType::i64), kQuip},
    {"higgs", ".weight", kBytes | kHalfWords, kHiggs},
    {"mlx", ".weight", type(DType::u32), kMlx, Count::words},
    {"nvfp4", "", kBytes | kF4, kNvfp4, Count::nibbles},
    {"mxfp8", "", kF8, kMxfp8, Count::elements, 0, fits_groups_of_32},
    {"mxfp4", "", kBytes | kF4, kMxfp8, Count::nibbles, 2},
    {"mxfp4", ".weight", kBytes | kF4, kMxfp8Module, Count::nibbles},
    {"int4", "", kU8, kInt4, Count::nibbles, 2, fits_pairs_of_rows},
    {"int8", "", kBytes, kOwnScale, Count::elements, 2},
    {"int8", ".weight", kBytes, kModuleScale, Count::elements, 2},
    {"fp8", "", kF8 | kNarrow, kOwnScale},
    {"fp8", ".weight", kF8 | kNarrow, kModuleScale},
    {"fp8", ".weight", kF8, kActivations},
};

bool is_word_of(std::string_view word, std::string_view words) noexcept {
  if (word.empty()) return false;
  for (std::size_t at = 0; (at = words.find(word, at)) != words.npos; at += word.size())
    if (at > 0 && words[at - 1] == ' ' && at + word.size() < words.size() && words[at + word.size()] == ' ')
      return true;
  return false;
}

}  // namespace

namespace {

// The parts of a text between separators; each is asked for once.
std::string_view next(std::string_view& text, char separator) {
  const std::string_view out = text.substr(0, text.find(separator));
  text.remove_prefix(std::min(text.size(), out.size() + 1));
  return out;
}
bool is_count(std::string_view text) {
  return !text.empty() && text.size() < 10 && text[0] != '0' &&
         std::ranges::all_of(text, [](char c) { return c >= '0' && c <= '9'; });
}
bool answers(std::string_view values, std::string_view given) {
  if (values == "N") return is_count(given);
  if (values == "RxC") {
    const std::string_view rows = next(given, 'x');
    return is_count(rows) && is_count(given);
  }
  while (!values.empty())
    if (next(values, '|') == given) return true;
  return false;
}

}  // namespace

Answer answer_of(std::string_view text) {
  const std::string_view given = text, id = next(text, ':');
  const auto row = std::ranges::find(kSchemes, id, &Scheme::id);
  if (row == std::end(kSchemes) || id == "other") {
    std::string all;
    for (const Scheme& each : kSchemes)
      if (each.id != "other") all.append(all.empty() ? "" : ", ").append(each.id);
    base::misuse("scheme", "'" + std::string(id) + "' is not a quantization scheme: the schemes are " + all);
  }
  Answer out{.id = row->id};
  while (!text.empty()) {
    const std::string_view setting = next(text, ',');
    std::string_view value = setting, questions = row->questions;
    const std::string_view key = next(value, '=');
    bool good = false;
    while (!good && !questions.empty()) {
      std::string_view values = next(questions, ' ');
      good = next(values, '=') == key && answers(values, value);
    }
    if (!good)
      base::misuse("scheme",
                   "'" + std::string(given) + "' says nothing about " + std::string(row->name) + ": " +
                       (row->questions.empty() ? "it leaves nothing open" : "it takes " + std::string(row->questions)));
    out.settings.emplace_back(key, value);
  }
  return out;
}

std::string_view said(std::span<const Answer> all, std::string_view id, std::string_view key) noexcept {
  for (const Answer& each : all)
    for (const auto& [name, value] : each.settings)
      if (each.id == id && name == key) return value;
  return {};
}

std::span<const Scheme> all_schemes() noexcept { return kSchemes; }
const Scheme& scheme(std::string_view id) noexcept {
  const auto* const at = std::ranges::find(kSchemes, id, &Scheme::id);
  return at != std::end(kSchemes) ? *at : std::end(kSchemes)[-1];
}
std::span<const Form> all_forms() noexcept { return kForms; }
bool is_known_method(std::string_view method) noexcept { return is_word_of(method, kKnownMethods); }
bool is_decoded_method(std::string_view method) noexcept { return is_word_of(method, kDecodedMethods); }
bool is_other_scale(std::string_view last) noexcept { return is_word_of(last, kOtherScales); }

}  // namespace weighbridge::schemes
