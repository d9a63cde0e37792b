// SPDX-License-Identifier: Apache-2.0
// The legacy layout of a llama2.c checkpoint (export.py, version 0) and its tokenizer file: sizes, bounds, and the
// order of the tensors. Source: llama2.c's run.c, read_checkpoint() and build_tokenizer(). All integers and floats are
// little-endian.
#pragma once
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace weighbridge::llama2c {

// run.c's Config.
struct Header {
  std::int32_t dim = 0, hidden_dim = 0, n_layers = 0, n_heads = 0, n_kv_heads = 0;
  std::int32_t vocab_size = 0;  // negative: a separate output matrix comes last
  std::int32_t seq_len = 0;
};
inline constexpr std::uint64_t kHeaderSize = 28;

// The one list of the header's fields, in file order. The bounds are far above those of real models and keep the file's
// length below 2^62. For vocab_size, `most` bounds the magnitude.
struct Field {
  std::string_view name;
  std::int32_t Header::*value;
  std::int32_t most;
};
inline constexpr Field kFields[] = {
    {"dim", &Header::dim, 1 << 20},
    {"hidden_dim", &Header::hidden_dim, 1 << 22},
    {"n_layers", &Header::n_layers, 1 << 12},
    {"n_heads", &Header::n_heads, 1 << 20},
    {"n_kv_heads", &Header::n_kv_heads, 1 << 20},
    {"vocab_size", &Header::vocab_size, 1 << 24},
    {"seq_len", &Header::seq_len, 1 << 24},
};
static_assert(sizeof kFields / sizeof kFields[0] * 4 == kHeaderSize && sizeof(Header) == kHeaderSize);
constexpr std::uint64_t field_at(std::int32_t Header::*value) noexcept {
  for (std::size_t i = 0; i < sizeof kFields / sizeof kFields[0]; ++i)
    if (kFields[i].value == value) return 4 * i;
  return kHeaderSize;
}

// The magic of versions 1 and later, "ak42" as an integer.
inline constexpr std::uint32_t kLaterMagic = 0x616b3432;

// A run of tensors of one kind: one tensor, or one per layer, in file order. Names are those of Meta's own checkpoints
// and of .slm files.
struct Run {
  std::string_view name;
  bool layered;
};
inline constexpr Run kRuns[] = {
    {"tok_embeddings", false},
    {"attention_norm", true},
    {"wq", true},
    {"wk", true},
    {"wv", true},
    {"wo", true},
    {"ffn_norm", true},
    {"w1", true},
    {"w2", true},
    {"w3", true},
    {"norm", false},
};
// Tables of the rotation, which run.c skips and recomputes.
inline constexpr std::string_view kRopeTables[] = {"freq_cis_real", "freq_cis_imag"};

// Constants of run.c, which the checkpoint does not state.
inline constexpr float kRopeTheta = 10000.0F, kNormEpsilon = 1e-5F;

// The tokenizer file: i32 max_token_length, then for each token f32 score, i32 length and the bytes.
inline constexpr std::uint64_t kTokenizerHeaderSize = 4, kTokenRecordSize = 8;
// Longer than any token of real vocabularies. M14 tries every split of a token.
inline constexpr std::int32_t kMostTokenLength = 256;
// Ids that run.c's encode() hard-codes.
inline constexpr std::uint32_t kUnk = 0, kBos = 1, kEos = 2, kFirstByte = 3, kAfterBytes = kFirstByte + 256;
inline constexpr std::string_view kTokenizerExtension = ".tokenizer";  // beside the checkpoint

}  // namespace weighbridge::llama2c
