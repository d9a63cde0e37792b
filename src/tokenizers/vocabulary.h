// SPDX-License-Identifier: Apache-2.0
// A vocabulary prepared for longest-match-first lookup: a table of the short whole words that make up most of a text,
// and a trie over bytes for the rest. Built once, immutable. Leaves characters and words to wordpiece.cc.
//
// Hostile vocabularies cost memory in proportion to their bytes, and a match at most eight steps per level of the trie:
// nodes keep their edges sorted, and a table lookup probes at most eight slots.
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
  // Skips empty tokens and those that are not UTF-8, since they can never match. Of equal tokens the last wins. The
  // texts are not kept. Tokens that continue a word begin with the prefix.
  explicit Vocabulary(std::span<const Entry> entries, std::string_view prefix = kPrefix);

  struct Match {
    std::uint32_t id = 0;
    std::uint32_t length = 0;  // bytes; 0: no match
  };
  // The longest token that `word` begins with. If the word `continues`, only tokens with the prefix match.
  Match longest(std::string_view word, bool continues) const noexcept;
  // Looks up a word of 1 to kShort bytes without NUL, given as two little-endian numbers padded with zeros. nullopt
  // does not mean that the word is unknown: the table does not hold all words.
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
    std::uint64_t low = 0, high = 0;  // low is 0 in a free slot: no word begins with NUL
    std::uint32_t id = 0;
  };
  static std::uint64_t hash(std::uint64_t low, std::uint64_t high) noexcept {
    std::uint64_t x = (low ^ (high * 0x9E3779B97F4A7C15U)) * 0xFF51AFD7ED558CCDU;
    x ^= x >> 32;
    return x * 0xC4CEB9FE1A85EC53U;
  }
  void fill_table(std::span<const Entry> sorted);
  void grow_trie(std::span<const Entry> sorted, std::string_view prefix);
  std::uint32_t child(std::uint32_t node, unsigned char byte) const noexcept;

  // Nodes in breadth-first order. One array holds the edges of all nodes, and edge k leads to node k + 1.
  std::vector<std::uint32_t> first_edge_;  // one per node, and one extra at the end
  std::vector<unsigned char> labels_;      // one per edge, ascending within a node
  struct Value {
    std::uint32_t id = 0;
    bool ends = false;
  };
  std::vector<Value> values_;  // one per node
  std::uint32_t continuation_ = kNone;

  std::vector<Slot> slots_;
  unsigned shift_ = 0;
};

}  // namespace weighbridge::tokenizers
