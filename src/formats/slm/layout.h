// SPDX-License-Identifier: Apache-2.0
// The records and constants of an .slm file. All integers are little-endian. Quoted
// titles are sections of the specification, M numbers are readings of it.
#pragma once
#include <algorithm>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <type_traits>

#include "base/record.h"
#include "weighbridge/block_type.h"

namespace weighbridge::slm_format {

inline constexpr std::string_view kMagic = "SLM1";
inline constexpr std::uint32_t kVersion = 1;
inline constexpr std::uint32_t kModelType = 1;   // "Header": the one supported value
inline constexpr std::uint32_t kTiedOutput = 1;  // flags, bit 0; no other bit is defined (M4)
// "Header": 256 bytes and 4 special tokens.
inline constexpr std::uint32_t kMinVocab = 260, kMinSpecialTokens = 4;
inline constexpr std::uint64_t kHeaderSize = 108;
inline constexpr std::uint64_t kAlignment = 64;  // of directory, data and payloads
inline constexpr std::uint64_t kScaleAlignment = 4;

// "Header". 92 and 100 are unaligned (M15).
WB_RECORD(Header, (char[4], magic), (u32, version), (u32, header_length), (u32, model_type), (u32, flags),
          (u32, vocab_size), (u32, special_token_count), (u32, hidden_size), (u32, layer_count), (u32, head_count),
          (u32, kv_head_count), (u32, head_dim), (u32, ffn_size), (u32, max_context), (float, rope_theta),
          (float, rms_norm_epsilon), (u64, tokenizer_offset), (u64, tokenizer_length), (u64, tensor_directory_offset),
          (u32, tensor_count), (u64, tensor_data_offset), (u64, checksum));
static_assert(base::record_size<Header>() == kHeaderSize);
inline constexpr std::size_t kChecksumAt = base::offset_of(&Header::checksum), kChecksumSize = 8;

// What all headers have in common.
inline constexpr Header kNewHeader = [] {
  Header h;
  std::copy(kMagic.begin(), kMagic.end(), h.magic);
  h.version = kVersion;
  h.header_length = kHeaderSize;
  h.model_type = kModelType;
  h.special_token_count = kMinSpecialTokens;
  return h;
}();

// Calls visit(field, name, offset) with each hyperparameter, u32 or float: the model has it as the attribute
// "slm.<name>".
template <class Visit> void each_hyperparameter(const Header& header, Visit visit) {
  std::size_t at = 0;
  Header::each(header, [&](const auto& field, base::FieldNote note) {
    using T = std::remove_cvref_t<decltype(field)>;
    if constexpr (std::same_as<T, float> || std::same_as<T, std::uint32_t>)
      if (at >= base::offset_of(&Header::model_type) && at < base::offset_of(&Header::tokenizer_offset))
        visit(field, note.name, at);
    at += sizeof field;
  });
}

// "Dtypes".
enum class Stored : std::uint32_t { f32 = 1, q8_0 = 2, q4_0 = 3 };
inline constexpr std::string_view kStoredNames[] = {"f32", "q8_0", "q4_0"};
// The block type that a directory entry's dtype names; null for f32.
inline const BlockTypeInfo* block_type(Stored dtype) noexcept {
  return dtype == Stored::f32 ? nullptr : find_block_type(dtype == Stored::q8_0 ? "slm.q8_0" : "slm.q4_0");
}
// How an .slm stores a tensor of this type: f32 if it has no such blocks.
inline Stored stored_of(const BlockTypeInfo* type) noexcept {
  for (const Stored dtype : {Stored::q8_0, Stored::q4_0})
    if (type == block_type(dtype)) return dtype;
  return Stored::f32;
}
// The dtype for a value of Options::quantize; nullopt for any other value.
inline std::optional<Stored> stored_from_name(std::string_view name) noexcept {
  for (const Stored dtype : {Stored::q8_0, Stored::q4_0})
    if (name == block_type(dtype)->name) return dtype;
  return std::nullopt;
}
inline constexpr bool is_stored(std::uint32_t dtype) noexcept { return dtype >= 1 && dtype <= 3; }
inline constexpr std::string_view stored_name(std::uint32_t dtype) noexcept {
  return is_stored(dtype) ? kStoredNames[dtype - 1] : std::string_view("unknown");
}

inline constexpr std::uint32_t kMaxRank = 4;  // Entry::dims has four

// "Tensor Directory Entry". The last four bytes are written 0 and ignored (M5).
WB_RECORD(Entry, (u64, name_hash, hex), (u32, dtype), (u32, rank), (u32[kMaxRank], dims), (u64, byte_offset),
          (u64, byte_length), (u64, scale_offset), (u32, block_size), (u32, reserved));
inline constexpr std::uint64_t kEntrySize = 64;
static_assert(base::record_size<Entry>() == kEntrySize);

// "Tokenizer Sections", M10, M11.
inline constexpr std::string_view kBtok = "BTOK", kBpe1 = "BPE1";
inline constexpr std::uint32_t kTokenizerVersion = 1;
// BTOK ends before the counts.
WB_RECORD(TokenizerHeader, (char[4], magic), (u32, version), (u32, vocab_size), (u32, bos), (u32, eos), (u32, pad),
          (u32, unk), (u32, token_count), (u32, merge_count));
inline constexpr std::uint64_t kBtokSize = 28, kBpe1HeaderSize = 36, kTokenRecordSize = 8, kMergeRecordSize = 16;
inline constexpr std::uint32_t kBtokVocab = 260, kBtokFirstSpecial = 256;  // BOS, EOS, PAD, UNK
inline constexpr std::string_view kSpecialNames[] = {"bos", "eos", "pad", "unk"};

// Names of attributes and parts in the model.
inline constexpr std::string_view kPrefix = "slm.", kData = "data", kScales = "scales", kType = "type",
                                  kBlockSize = "block_size";
inline constexpr std::string_view kHeaderExtra = "header";  // header bytes past 108 (M15), in the grammar kGrammar
inline constexpr std::string_view kGrammar = "slm";

}  // namespace weighbridge::slm_format
