// SPDX-License-Identifier: Apache-2.0
// The architectures of language models whose folders become GGUF with llama.cpp's names: one row each. Sources:
// conversion/ and src/llama-arch.cpp of github.com/ggml-org/llama.cpp (October 2026); defaults of absent settings are
// those of transformers 5.24.
#pragma once
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/model/draft.h"
#include "core/payload/elements.h"

namespace weighbridge::convert {

// How the values of a tensor change.
enum class Arrange : std::uint8_t {
  none,
  query_heads,     // rows i and i + half of each head become neighbors, as llama.cpp rotates them
  key_heads,       // likewise
  plus_one,        // a norm whose stored weight is less 1
  transpose,       // a matrix that is stored by columns
  experts,         // one matrix of each expert, stacked
  halves,          // [experts, 2 rows, columns]: the first half of the rows, the second one under `also`
  even_odd,        // [experts, rows, 2 columns] in columns: the even ones, and the odd ones under `also`
  columns,         // [experts, rows, columns], each transposed
  even_odd_bias,   // [experts, 2 n]
  key_value,       // the keys and values of all heads (kv_b_proj): both apart, the keys of each head transposed
  grouped_qkv,     // the queries, the key and the value of each group of heads: all queries, all keys, all values
  stacked,         // [experts * rows, columns], a matrix for each expert
  stacked_turned,  // likewise, each transposed
  positions,       // without the first rows, which stand for padding
  left_out,        // llama.cpp computes it, or does not need it: `also` says why
  other_part       // of a head that the graph does not have: lost with consent
};

// Names without ".weight" and ".bias". N stands for a layer's number and E for an expert's.
struct TensorRow {
  std::string_view from, to;
  Arrange change = Arrange::none;
  std::string_view also{};
};

enum ArchitectureFlags : unsigned {
  kPermutes = 1U << 0,      // q and k
  kNormsPlusOne = 1U << 1,  // every norm
  kNoRopeBase = 1U << 2,    // the base of the rotation is not stated
  kStatesVocabulary = 1U << 3,
  kStatesRotated = 1U << 4,  // elements of a head that are rotated
  kNoKeyValueHeads = 1U << 5,
  kNoHeadSize = 1U << 6,   // key_length is never stated
  kDropsOutput = 1U << 7,  // the embeddings are the output, whatever is stored
  kExperts = 1U << 8,
  kDeepSeek = 1U << 9,
  kPhi3 = 1U << 10,
  kGelu = 1U << 11,  // logits are near, not equal: llama.cpp's GELU is a table
  kExperimental = 1U << 12,
  kEncoder = 1U << 13,  // no causal attention, and types of tokens
  kNoRotation = 1U << 14,
  kTwoRotations = 1U << 15,  // layers with a window have their own base
  kStatesBiases = 1U << 16   // attention_bias and mlp_bias
};

struct Architecture {
  std::string_view classes;          // of transformers, words
  std::string_view name;             // of llama.cpp
  std::span<const TensorRow> names;  // before those of `family`
  std::span<const TensorRow> family;
  unsigned flags = 0;
  // Words KEY=VALUE: settings that are not in config.json. A word KEY only says how the class spells it.
  std::string_view defaults{};
  // Words KEY=SETTING:TYPE with u (u32), f (f32) or b; "?" behind it: left out if there is no such setting, or it is 0.
  std::string_view keys{};
  // Words SETTING=VALUE|VALUE: all that llama.cpp computes. An absent setting has the first value.
  std::string_view accepts{};
  // Words: beginnings that a name of a tensor may have before a row's name.
  std::string_view prefixes{};
  // The row is that of its classes only if config.json states this setting, and not 0.
  std::string_view when{};
};

std::span<const Architecture> architectures() noexcept;
// The first row for a class of transformers whose `when` holds; null: none.
const Architecture* find_architecture(std::string_view class_name,
                                      const std::function<bool(std::string_view when)>& holds);

// The numbers that every row has, and the settings that say them. Of several spellings, a row's defaults have the one
// that its own config.json uses; else the first.
struct BaseKey {
  std::string_view key, settings;
  bool real = false;
};
inline constexpr BaseKey kBaseKeys[] = {
    {"block_count", "num_hidden_layers n_layer num_layers"},
    {"embedding_length", "hidden_size n_embd d_model"},
    {"context_length", "max_position_embeddings n_ctx n_positions"},
    {"feed_forward_length", "intermediate_size n_inner d_ff ffn_hidden_size"},
    {"attention.head_count", "num_attention_heads n_head num_heads"},
    {"attention.head_count_kv", "num_key_value_heads"},
    {"attention.layer_norm_rms_epsilon", "rms_norm_eps", true},
    {"attention.layer_norm_epsilon", "layer_norm_eps layer_norm_epsilon norm_epsilon norm_eps", true},
    {"expert_count", "num_local_experts num_experts n_routed_experts"},
    {"expert_used_count", "num_experts_per_tok moe_top_k"},
    {"attention.key_length", "head_dim d_kv"},
    {"rope.freq_base", "rope_theta global_rope_theta rotary_emb_base", true},
    {"rope.freq_base_swa", "rope_local_base_freq local_rope_theta", true},
};

constexpr std::string_view settings_of(std::string_view key) {
  for (const BaseKey& each : kBaseKeys)
    if (each.key == key) return each.settings;
  return {};
}

// The words of a text.
std::vector<std::string_view> split(std::string_view text, char at);
// A pattern of a row with its numbers, and `tail` behind it.
std::string spelled(std::string_view pattern, std::uint64_t layer, std::uint64_t expert, std::string_view tail);
// A name as a pattern of a row spells it: its numbers, and what follows the pattern.
struct Named {
  const TensorRow* row = nullptr;
  std::uint64_t layer = 0, expert = 0;
  std::string_view tail{};  // ".weight", ".bias", or nothing
};
std::optional<Named> match(std::string_view pattern, std::string_view name);
// A name without what models of several parts have in the names of their language model.
std::string plain_name(std::string_view);
// The row whose `from` a plain name has.
std::optional<Named> find_row(const Architecture&, std::string_view name);

// What a config.json says of the shapes, with the defaults of its class.
struct Sizes {
  std::uint64_t layers = 0, decoder_layers = 0, hidden = 0, heads = 0, kv_heads = 0, head = 0, experts = 0;
  bool untied = false;  // the output has a matrix of its own
};
// Throws Error{misuse} "misuse/naming" for what is missing.
Sizes sizes_of(const Model&, const Architecture&);

// Arrange::query_heads: the row of a head that becomes this one, and the way back.
std::uint64_t paired_row(std::uint64_t row, std::uint64_t head);
std::uint64_t unpaired_row(std::uint64_t row, std::uint64_t head);

// Elements whose rows of `columns` come from rows and columns of others.
struct Line {
  std::size_t input = 0;
  std::uint64_t first = 0, step = 1;  // elements of the input
};
core::ElementsPtr arranged(std::vector<core::ElementsPtr> inputs, std::uint64_t rows, std::uint64_t columns,
                           std::function<Line(std::uint64_t row)> line);
// The values of a norm plus this, as f32; f16 is added in half precision, as the converter of llama.cpp does.
core::ElementsPtr added_to(const Tensor&, float);
// `like`: a tensor that the values are from, whose dtype in the output (core::write_as()) they keep.
void add_dense(core::Draft&, const std::string& name, std::vector<std::uint64_t> shape, core::ElementsPtr values,
               const Tensor& like);

}  // namespace weighbridge::convert
