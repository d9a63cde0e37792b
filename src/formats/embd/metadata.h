// SPDX-License-Identifier: Apache-2.0
// The metadata section: decoding and encoding its entries, the ten required keys, and the numbers among them (readings
// E7, E12, E13). architecture.h relates the numbers to the tensors. Also owns what its writer plans, and how messages
// print metadata and checksums.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "codecs/checksum.h"
#include "core/model/words.h"
#include "core/reading/findings.h"
#include "core/writing/plan_items.h"
#include "formats/embd/layout.h"
#include "weighbridge/context.h"
#include "weighbridge/value.h"

namespace weighbridge::embd {

struct Numbers {
  std::uint64_t embedding_dim = 0, vocab_size = 0, num_layers = 0, num_attention_heads = 0, hidden_size = 0,
                intermediate_size = 0, max_position_emb = 0;
};

inline constexpr std::string_view kModelName = "model_name", kModelVersion = "model_version",
                                  kCreatedAtKey = "created_at";

// "Required Metadata Keys", in the specification's order; `number` is null for keys whose values are text.
struct RequiredKey {
  std::string_view key;
  std::uint64_t Numbers::*number;
};
inline constexpr RequiredKey kRequiredKeys[] = {
    {kModelName, nullptr},
    {kModelVersion, nullptr},
    {"embedding_dim", &Numbers::embedding_dim},
    {"vocab_size", &Numbers::vocab_size},
    {"num_layers", &Numbers::num_layers},
    {"num_attention_heads", &Numbers::num_attention_heads},
    {"hidden_size", &Numbers::hidden_size},
    {"intermediate_size", &Numbers::intermediate_size},
    {"max_position_emb", &Numbers::max_position_emb},
    {kCreatedAtKey, nullptr},
};
const RequiredKey* find_required(std::string_view key) noexcept;  // null: not a required key

// Decimal digits only, above 0 and below 2^64.
std::optional<std::uint64_t> positive_integer(std::string_view text) noexcept;

struct Metadata {
  std::vector<Value::Entry> entries;    // text, in the order of the file, keys unique
  std::vector<std::uint64_t> value_at;  // file offset of each value

  std::size_t find(std::string_view key) const noexcept;  // entries.size(): absent
};

// The entries of a section that begins at `offset` of the file. Unreadable entries are reported and left out; nullopt
// if the rest of the section cannot be read after one.
std::optional<Metadata> read_metadata(std::string_view section, std::uint64_t offset, const Limits&, core::Findings&);

// Reports missing and invalid required keys. Returns the numbers if all of them could be read.
std::optional<Numbers> check_required(const Metadata&, std::uint64_t offset, core::Findings&);

// The section for these entries, whose keys and values have at most kMaxText bytes each; nullopt if it would exceed
// 2^32 - 1 bytes.
std::optional<std::string> encode_metadata(const std::vector<std::pair<std::string, std::string>>& entries);

// How messages of EMBD print checksums, and metadata that may be long.

using core::bytes_text, core::shape_text;

inline std::string crc_text(std::uint32_t crc) { return "0x" + codecs::to_hex(crc); }
inline std::string excerpt(std::string_view text) { return core::excerpt(text, 60); }

// What the metadata half of the writer passes to the tensor half.

struct MetadataPlan {
  std::vector<std::pair<std::string, std::string>> entries;  // the required keys first
  std::optional<Numbers> numbers;                            // nullopt: a key is missing, which has been reported
  std::uint32_t flags = kTensorsAligned | kChecksumEnabled;  // without VOCAB_EMBEDDED
  std::uint16_t version_minor = kVersionMinor;
};

// Throws Error{misuse} for options that the metadata cannot hold.
MetadataPlan plan_metadata(const Model&, const Options&, core::PlanItems);

}  // namespace weighbridge::embd
