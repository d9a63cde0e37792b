// SPDX-License-Identifier: Apache-2.0
// llama.cpp's conventions for a Llama and a BERT: names of tensors, order of rows, scaling of the rotation. Sources:
// src/llama-arch.cpp and convert_hf_to_gguf.py of github.com/ggml-org/llama.cpp; modeling_rope_utils.py of
// transformers.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/model/draft.h"

namespace weighbridge::convert {

// A Llama's, by slm_format::Role: "token_embd.weight", and in a layer "blk.3.attn_q.weight".
inline constexpr std::string_view kLlamaNames[] = {"token_embd",  "output_norm", "output",   "attn_norm",
                                                   "ffn_norm",    "attn_q",      "attn_k",   "attn_v",
                                                   "attn_output", "ffn_gate",    "ffn_down", "ffn_up"};

// A BERT's: the names of Hugging Face, and those of llama.cpp.
struct Respelling {
  std::string_view folder, gguf;
};
inline constexpr std::string_view kBertLayer = "encoder.layer.";
inline constexpr Respelling kBertNames[] = {{"embeddings.word_embeddings", "token_embd"},
                                            {"embeddings.position_embeddings", "position_embd"},
                                            {"embeddings.token_type_embeddings", "token_types"},
                                            {"embeddings.LayerNorm", "token_embd_norm"}};
// After kBertLayer and a number, and after "blk." and a number.
inline constexpr Respelling kBertLayerNames[] = {{"attention.self.query", "attn_q"},
                                                 {"attention.self.key", "attn_k"},
                                                 {"attention.self.value", "attn_v"},
                                                 {"attention.output.dense", "attn_output"},
                                                 {"attention.output.LayerNorm", "attn_output_norm"},
                                                 {"intermediate.dense", "ffn_up"},
                                                 {"output.dense", "ffn_down"},
                                                 {"output.LayerNorm", "layer_output_norm"}};
inline constexpr std::string_view kWeight = ".weight", kBias = ".bias";
inline constexpr std::string_view kRopeFactors = "rope_freqs.weight";

// "blk.3.attn_q.weight".
std::string in_block(std::uint64_t layer, std::string_view name, std::string_view tail);

// rope_scaling or rope_parameters of a config.json.
struct RopeScaling {
  enum class Kind : std::uint8_t { none, linear, llama3, other };
  Kind kind = Kind::other;
  double factor = 1, low = 1, high = 4, original = 8192;
  std::optional<double> theta{};
  std::string value_text{};  // the value, for a message
};
RopeScaling parse_rope_scaling(const std::string& json);
// transformers reads either key, and prefers the first; releases before 5 read only the first.
inline constexpr std::string_view kRotations[] = {"hf.rope_scaling", "hf.rope_parameters"};
// What a config.json says about the rotation. Its theta is `otherwise` if none stands beside the scaling. nullopt if
// neither key is there; kind `other` if the two keys contradict each other.
std::optional<RopeScaling> stated_rotation(const Model&, double otherwise);
// Llama 3's divisor of the frequency, for each pair of a head's elements.
std::vector<float> rope_factors(const RopeScaling&, double theta, std::uint64_t head);
// A vector of f32 that is held in memory.
void add_values(core::Draft&, std::string_view name, const std::vector<float>&);

// Whether the tensor is a matrix whose rows are whole heads and can be reordered.
bool has_rows_to_pair(const Tensor&, std::uint64_t head);
// Adds the tensor with the rows of each head in another order: row j x half + i, j 0 or 1, becomes row 2i + j, so that
// the two rows of a rotation are neighbors.
void add_paired_rows(core::Draft&, const std::string& name, const Tensor&, std::uint64_t head);

}  // namespace weighbridge::convert
