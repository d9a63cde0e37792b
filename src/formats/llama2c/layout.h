// SPDX-License-Identifier: Apache-2.0
// The legacy layout of a llama2.c checkpoint (export.py, version 0) and its tokenizer file: sizes, bounds, and the
// order of the tensors. Source: llama2.c's run.c, read_checkpoint() and build_tokenizer(). All integers and floats are
// little-endian.
#pragma once
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/record.h"

namespace weighbridge::llama2c {

// run.c's Config. A negative vocab_size: a separate output matrix comes last.
WB_RECORD(Header, (std::int32_t, dim), (std::int32_t, hidden_dim), (std::int32_t, n_layers), (std::int32_t, n_heads),
          (std::int32_t, n_kv_heads), (std::int32_t, vocab_size), (std::int32_t, seq_len));
inline constexpr std::uint64_t kHeaderSize = 28;
static_assert(base::record_size<Header>() == kHeaderSize);
// Bounds of the fields in their order, that of vocab_size for its magnitude. They are far above those of real models
// and keep the file's length below 2^62.
inline constexpr std::int32_t kMaxFields[] = {1 << 20, 1 << 22, 1 << 12, 1 << 20, 1 << 20, 1 << 24, 1 << 24};

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
inline constexpr std::int32_t kMaxTokenLength = 256;
// Ids that run.c's encode() hard-codes.
inline constexpr std::uint32_t kUnk = 0, kBos = 1, kEos = 2, kFirstByte = 3, kAfterBytes = kFirstByte + 256;
inline constexpr std::string_view kTokenizerExtension = ".tokenizer";  // beside the checkpoint

}  // namespace weighbridge::llama2c
