// SPDX-License-Identifier: Apache-2.0
// The vocabulary section: a wordpiece tokenizer out of its bytes and back (readings E3, E4).
#pragma once
#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/findings.h"
#include "weighbridge/context.h"
#include "weighbridge/model.h"

namespace weighbridge::embd {

// "Special Token Indices", in their order, with the tokens that usually stand for them.
inline constexpr std::array<std::string_view, 5> kSpecial{"pad", "unk", "cls", "sep", "mask"};
inline constexpr std::array<std::string_view, 5> kSpecialTokens{"[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"};

// The tokenizer of a section that begins at `offset` of the file; nullopt, with the reasons reported, where it has
// none.
std::optional<Tokenizer> read_vocabulary(std::string_view section, std::uint64_t offset, const Limits&,
                                         core::Findings&);

// What the section would be, for a tokenizer that the format can hold.
struct VocabularyPlan {
  std::string obstacle;                    // why it cannot hold it; empty: it can
  std::vector<std::uint32_t> order;        // the token of each id
  std::array<std::uint32_t, 5> special{};  // ids, as kSpecial
  std::vector<std::size_t> found;          // of kSpecial: not named by the tokenizer, but there as a token
  std::vector<std::string_view> dropped;   // special tokens that the format has no place for
};
VocabularyPlan plan_vocabulary(const Tokenizer&);

// The section as it stands at `offset`; the plan has no obstacle. nullopt: it would pass 2^32 - 1.
std::optional<std::string> encode_vocabulary(const Tokenizer&, const VocabularyPlan&, std::uint64_t offset);

}  // namespace weighbridge::embd
