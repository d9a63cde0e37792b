// SPDX-License-Identifier: Apache-2.0
// The vocabulary section: decoding a wordpiece tokenizer and encoding it (readings E3, E4).
#pragma once
#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/reading/findings.h"
#include "weighbridge/context.h"
#include "weighbridge/model.h"

namespace weighbridge::embd {

// "Special Token Indices", in their order, and the usual text of each special token.
inline constexpr std::array<std::string_view, 5> kSpecial{"pad", "unk", "cls", "sep", "mask"};
inline constexpr std::array<std::string_view, 5> kSpecialTokens{"[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"};

// The tokenizer of a section that begins at `offset` of the file. nullopt if the section is broken; the reasons are
// reported.
std::optional<Tokenizer> read_vocabulary(std::string_view section, std::uint64_t offset, const Limits&,
                                         core::Findings&);

// How the section would store a tokenizer, or why it cannot.
struct VocabularyPlan {
  std::string obstacle;                    // why the section cannot hold the tokenizer; empty if it can
  std::vector<std::uint32_t> order;        // the token of each id
  std::array<std::uint32_t, 5> special{};  // ids, in the order of kSpecial
  std::vector<std::size_t> found;  // indices into kSpecial: tokens that exist, but that the tokenizer does not name
  std::vector<std::string_view> dropped;  // special tokens that the format cannot hold
};
VocabularyPlan plan_vocabulary(const Tokenizer&);

// The section for a plan without an obstacle, to be written at `offset`. nullopt if it would exceed 2^32 - 1.
std::optional<std::string> encode_vocabulary(const Tokenizer&, const VocabularyPlan&, std::uint64_t offset);

}  // namespace weighbridge::embd
