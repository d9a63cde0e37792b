// SPDX-License-Identifier: Apache-2.0
// The sizes, header fields, offsets and directory entries of an .slm file. All integers are little-endian. Quoted
// titles are sections of the specification, M numbers are readings of it.
#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

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
inline constexpr std::uint64_t kTensorCountAt = 88, kChecksumAt = 100, kChecksumSize = 8;

// "Header". The fields as stored, without the magic.
struct Header {
  std::uint32_t version = kVersion, header_length = kHeaderSize, model_type = kModelType, flags = 0, vocab_size = 0,
                special_token_count = kMinSpecialTokens, hidden_size = 0, layer_count = 0, head_count = 0,
                kv_head_count = 0, head_dim = 0, ffn_size = 0, max_context = 0;
  float rope_theta = 0, rms_norm_epsilon = 0;
  std::uint64_t tokenizer_offset = 0, tokenizer_length = 0, tensor_directory_offset = 0;
  std::uint32_t tensor_count = 0;
  std::uint64_t tensor_data_offset = 0, checksum = 0;
  bool operator==(const Header&) const = default;
};

// The one list of the header's fields: reading, writing, attributes and messages all use these tables.
struct U32Field {
  std::string_view name;
  std::uint64_t at;
  std::uint32_t Header::*value;
  bool attribute;  // whether the model has it as the attribute "slm.<name>"
  bool nonzero;
};
inline constexpr U32Field kU32Fields[] = {
    {"version", 4, &Header::version, false, false},
    {"header_length", 8, &Header::header_length, false, false},
    {"model_type", 12, &Header::model_type, true, false},
    {"flags", 16, &Header::flags, true, false},
    {"vocab_size", 20, &Header::vocab_size, true, false},
    {"special_token_count", 24, &Header::special_token_count, true, false},
    {"hidden_size", 28, &Header::hidden_size, true, true},
    {"layer_count", 32, &Header::layer_count, true, true},
    {"head_count", 36, &Header::head_count, true, true},
    {"kv_head_count", 40, &Header::kv_head_count, true, true},
    {"head_dim", 44, &Header::head_dim, true, true},
    {"ffn_size", 48, &Header::ffn_size, true, true},
    {"max_context", 52, &Header::max_context, true, true},
    {"tensor_count", kTensorCountAt, &Header::tensor_count, false, false},
};
struct F32Field {
  std::string_view name;
  std::uint64_t at;
  float Header::*value;
};
inline constexpr F32Field kF32Fields[] = {
    {"rope_theta", 56, &Header::rope_theta},
    {"rms_norm_epsilon", 60, &Header::rms_norm_epsilon},
};
struct U64Field {
  std::string_view name;
  std::uint64_t at;  // 92 and 100 are unaligned (M15)
  std::uint64_t Header::*value;
};
inline constexpr U64Field kU64Fields[] = {
    {"tokenizer_offset", 64, &Header::tokenizer_offset},
    {"tokenizer_length", 72, &Header::tokenizer_length},
    {"tensor_directory_offset", 80, &Header::tensor_directory_offset},
    {"tensor_data_offset", 92, &Header::tensor_data_offset},
    {"checksum", kChecksumAt, &Header::checksum},
};
// The offset of a field, for findings. `name` must be in the tables.
consteval std::uint64_t field_at(std::string_view name) {
  for (const U32Field& f : kU32Fields)
    if (f.name == name) return f.at;
  for (const F32Field& f : kF32Fields)
    if (f.name == name) return f.at;
  for (const U64Field& f : kU64Fields)
    if (f.name == name) return f.at;
  throw "no such field";
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

// "Tensor Directory Entry". Bytes 60..63 are written 0 and ignored (M5).
struct Entry {
  std::uint64_t name_hash = 0;
  std::uint32_t dtype = 0, rank = 0;
  std::uint32_t dims[kMaxRank] = {};
  std::uint64_t byte_offset = 0, byte_length = 0, scale_offset = 0;
  std::uint32_t block_size = 0, reserved = 0;
};
inline constexpr std::uint64_t kEntrySize = 64;
static_assert(sizeof(Entry) == kEntrySize && offsetof(Entry, dims) == 16 && offsetof(Entry, byte_offset) == 32 &&
              offsetof(Entry, scale_offset) == 48 && offsetof(Entry, block_size) == 56);

// "Tokenizer Sections", M10, M11.
inline constexpr std::string_view kBtok = "BTOK", kBpe1 = "BPE1";
inline constexpr std::uint32_t kTokenizerVersion = 1;
inline constexpr std::uint64_t kBtokSize = 28, kBpe1HeaderSize = 36, kTokenRecordSize = 8, kMergeRecordSize = 16;
inline constexpr std::uint32_t kBtokVocab = 260, kBtokFirstSpecial = 256;  // BOS, EOS, PAD, UNK
inline constexpr std::string_view kSpecialNames[] = {"bos", "eos", "pad", "unk"};

// Names of attributes and parts in the model.
inline constexpr std::string_view kPrefix = "slm.", kData = "data", kScales = "scales", kType = "type",
                                  kBlockSize = "block_size";
inline constexpr std::string_view kHeaderExtra = "header";  // header bytes past 108 (M15), in the grammar kGrammar
inline constexpr std::string_view kGrammar = "slm";

}  // namespace weighbridge::slm_format
