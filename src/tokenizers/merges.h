// SPDX-License-Identifier: Apache-2.0
// Byte-pair merging: the initial tokens of a text, the table of pairs, and the merging. Built once, immutable. Leaves
// checking a vocabulary, BOS and EOS, and decoding to byte_pair.cc.
//
// Hostile tables cost memory in proportion to their records: a lookup probes eight slots and then bisects. Merging uses
// a heap of ranks over a linked list, so every text takes at most O(n log n).
#pragma once
#include <array>
#include <bitset>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "weighbridge/model.h"

namespace weighbridge::tokenizers {

constexpr std::uint32_t kNoToken = 0xFFFFFFFF;  // no vocabulary has this id: the largest has 2^32 - 1 ids

struct SpelledToken {
  std::string_view bytes;
  std::uint32_t id;
};
// The token with this id, or null if there is none; `tokens` must be sorted by id.
const SpelledToken* find_token(std::span<const SpelledToken> tokens, std::uint32_t id) noexcept;

class PairTable {
 public:
  struct Merge {
    std::uint32_t rank = 0, output = kNoToken;  // kNoToken: the pair does not merge
  };
  // If a pair occurs several times, the lowest rank wins, then the first.
  explicit PairTable(std::span<const Tokenizer::Merge>);

  Merge find(std::uint32_t left, std::uint32_t right) const noexcept {
    const std::uint64_t key = pair(left, right);
    auto slot = static_cast<std::size_t>(hash(key) >> shift_);
    for (std::size_t probe = 0; probe < kProbes; ++probe, ++slot) {
      const Slot& at = slots_[slot];
      if (at.merge.output == kNoToken) return {};
      if (at.pair == key) return at.merge;
    }
    return find_crowded(key);
  }

 private:
  static constexpr std::size_t kProbes = 8;
  struct Slot {
    std::uint64_t pair = 0;
    Merge merge;
  };
  static std::uint64_t pair(std::uint32_t left, std::uint32_t right) noexcept {
    return std::uint64_t{left} << 32 | right;
  }
  static std::uint64_t hash(std::uint64_t x) noexcept {
    x = (x ^ (x >> 29)) * 0xFF51AFD7ED558CCDU;
    return (x ^ (x >> 32)) * 0xC4CEB9FE1A85EC53U;
  }
  Merge find_crowded(std::uint64_t pair) const noexcept;

  int shift_;
  std::vector<Slot> slots_;
  std::vector<Slot> crowded_;  // pairs that found no slot, sorted
};

// The initial tokens of the bytes and characters of a text.
class Alphabet {
 public:
  // `tokens` must be sorted by id, all below `size`. A byte that no token spells gets the id equal to its value; if a
  // token has that id, or the vocabulary is too small for it, the byte becomes `unk`.
  // `byte_level`: no character has its own token.
  Alphabet(std::span<const SpelledToken> tokens, std::span<const Tokenizer::Merge> merges, std::uint32_t size,
           std::uint32_t unk, bool byte_level);

  std::uint32_t byte(unsigned char value) const noexcept { return bytes_[value]; }
  // The token of a multi-byte character. kNoToken: the character starts as its bytes.
  std::uint32_t character(char32_t code_point) const noexcept {
    return pages_[(std::size_t{page_of_[code_point >> 8]} << 8) + (code_point & 0xFF)];
  }

 private:
  void set_character(char32_t code_point, std::uint32_t id);

  std::array<std::uint32_t, 256> bytes_;
  std::vector<std::uint16_t> page_of_;  // the page of every 256 code points; page 0 has no tokens
  std::vector<std::uint32_t> pages_;
};

class Merges {
 public:
  // Arguments as for Alphabet. Inputs and outputs of merges are below 2^32 - 1.
  Merges(std::span<const SpelledToken> tokens, std::span<const Tokenizer::Merge> merges, std::uint32_t size,
         std::uint32_t unk, bool byte_level = false);

  // Appends the ids of the text, which has at most 2^32 - 2 bytes. Stops soon after `out` has reached `enough` ids.
  void encode(std::string_view text, std::uint64_t enough, std::vector<std::uint32_t>& out) const;

 private:
  bool joins(char before, char after) const noexcept {
    return joins_[static_cast<unsigned char>(before)][static_cast<unsigned char>(after)];
  }
  void find_joints(std::span<const SpelledToken> tokens, std::span<const Tokenizer::Merge> merges, std::uint32_t unk);
  std::size_t start(std::string_view text, std::size_t at, std::vector<std::uint32_t>& ids) const;

  Alphabet alphabet_;
  PairTable pairs_;
  // joins_[a][b]: some merge may join a token that ends in byte a with one that begins with byte b, or b continues a
  // character. Everywhere else a text is cut into stretches that merge independently.
  std::array<std::bitset<256>, 256> joins_{};
};

}  // namespace weighbridge::tokenizers
