// SPDX-License-Identifier: Apache-2.0
// The metadata section: decoding and encoding its entries, the ten required keys, and the numbers among them (readings
// E7, E12, E13). architecture.h relates the numbers to the tensors.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/findings.h"
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

}  // namespace weighbridge::embd
