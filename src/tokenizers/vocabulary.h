// SPDX-License-Identifier: Apache-2.0
// The tokens of a vocabulary, made ready for the longest match first: a table of the short whole words, which most of a
// text is made of, and a trie over bytes for all else. Built once, immutable. Leaves characters and words to others.
//
// Hostile vocabularies cost memory in proportion to their bytes, and a match at most the depth of the trie times eight
// steps: nodes hold their edges in sorted order, and a slot of the table is looked for in eight places at most.
#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

namespace weighbridge::tokenizers {

class Vocabulary {
 public:
  static constexpr std::size_t kShort = 16;  // bytes of the longest word in the table
  static constexpr std::string_view kPrefix = "##";

  struct Entry {
    std::string_view token;
    std::uint32_t id;
  };
  // Tokens that are not UTF-8 can match nothing and are left out, as is the empty one; of equal tokens the last counts.
  // The texts are not kept.
  explicit Vocabulary(std::span<const Entry> entries);

  struct Match {
    std::uint32_t id = 0;
    std::uint32_t length = 0;  // bytes; 0: no match
  };
  // The longest token that `word` begins with; of those with the prefix where the word goes on.
  Match longest(std::string_view word, bool continues) const noexcept;
  // Of a word of 1 to kShort bytes without NUL, in two little-endian numbers with zeros behind: its id. Nothing says
  // little: not all words are in the table.
  std::optional<std::uint32_t> find_short(std::uint64_t low, std::uint64_t high) const noexcept {
    auto slot = static_cast<std::size_t>(hash(low, high) >> shift_);
    for (std::size_t probe = 0; probe < kProbes; ++probe, ++slot) {
      const Slot& at = slots_[slot];
      if (at.low == low && at.high == high) return at.id;
      if (at.low == 0) break;
    }
    return std::nullopt;
  }

 private:
  static constexpr std::size_t kProbes = 8;
  static constexpr std::uint32_t kNone = 0xFFFFFFFF;
  struct Slot {
    std::uint64_t low = 0, high = 0;  // low is 0 in a free one: no word begins with NUL
    std::uint32_t id = 0;
  };
  static std::uint64_t hash(std::uint64_t low, std::uint64_t high) noexcept {
    std::uint64_t x = (low ^ (high * 0x9E3779B97F4A7C15U)) * 0xFF51AFD7ED558CCDU;
    x ^= x >> 32;
    return x * 0xC4CEB9FE1A85EC53U;
  }
  void fill_table(std::span<const Entry> sorted);
  void grow_trie(std::span<const Entry> sorted);
  std::uint32_t child(std::uint32_t node, unsigned char byte) const noexcept;

  // Nodes in breadth-first order: the edges of all nodes stand in one row, and the edge at place k leads to node k + 1.
  std::vector<std::uint32_t> first_edge_;  // of each node, and one more behind the last
  std::vector<unsigned char> labels_;      // of each edge, ascending within a node
  struct Value {
    std::uint32_t id = 0;
    bool ends = false;
  };
  std::vector<Value> values_;  // of each node
  std::uint32_t continuation_ = kNone;

  std::vector<Slot> slots_;
  unsigned shift_ = 0;
};

}  // namespace weighbridge::tokenizers
