// SPDX-License-Identifier: Apache-2.0
// Builds the table and the trie, and walks the trie.
#include "tokenizers/vocabulary.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <limits>
#include <utility>

#include "base/endian.h"
#include "base/fail.h"
#include "base/utf8.h"

namespace weighbridge::tokenizers {
namespace {

std::pair<std::uint64_t, std::uint64_t> short_key(std::string_view word) {
  char padded[Vocabulary::kShort] = {};
  std::memcpy(padded, word.data(), word.size());
  return {base::load_le<std::uint64_t>(padded), base::load_le<std::uint64_t>(padded + 8)};
}

// The tokens that can match, sorted and without duplicates. Sorts by the first eight bytes as a number where those
// differ: comparing strings would take longer than all other preparation.
std::vector<Vocabulary::Entry> usable(std::span<const Vocabulary::Entry> entries) {
  struct Key {
    std::uint64_t front;
    std::size_t index;
  };
  std::vector<Key> keys;
  keys.reserve(entries.size());
  std::uint64_t bytes = 0;
  for (std::size_t i = 0; i < entries.size(); ++i) {
    const std::string_view token = entries[i].token;
    bytes += token.size();
    if (token.empty() || !base::is_utf8(token)) continue;
    char front[8] = {};
    std::memcpy(front, token.data(), std::min(token.size(), sizeof front));
    keys.push_back({base::byteswap(base::load_le<std::uint64_t>(front)), i});
  }
  if (bytes >= std::numeric_limits<std::uint32_t>::max() - 2)
    base::malformed("tokenizer/size", "the tokens of the vocabulary have more than 4 GiB");
  std::sort(keys.begin(), keys.end(), [&](const Key& a, const Key& b) {
    if (a.front != b.front) return a.front < b.front;
    const int order = entries[a.index].token.compare(entries[b.index].token);
    return order != 0 ? order < 0 : a.index < b.index;
  });
  std::vector<Vocabulary::Entry> sorted;
  sorted.reserve(keys.size());
  for (const Key& key : keys) {
    const Vocabulary::Entry& entry = entries[key.index];
    if (!sorted.empty() && sorted.back().token == entry.token)
      sorted.back() = entry;
    else
      sorted.push_back(entry);
  }
  return sorted;
}

}  // namespace

Vocabulary::Vocabulary(std::span<const Entry> entries, std::string_view prefix) {
  const std::vector<Entry> sorted = usable(entries);
  grow_trie(sorted, prefix);
  fill_table(sorted);
}

void Vocabulary::fill_table(std::span<const Entry> sorted) {
  const std::size_t places = std::bit_ceil(2 * sorted.size() + 2);
  shift_ = 64 - static_cast<unsigned>(std::countr_zero(places));
  slots_.resize(places + kProbes);  // a search from the last place needs no wrap-around
  for (const Entry& entry : sorted) {
    const std::string_view token = entry.token;
    if (token.size() > kShort || token.starts_with(kPrefix) || token.find('\0') != std::string_view::npos) continue;
    const auto [low, high] = short_key(token);
    Slot* const first = &slots_[static_cast<std::size_t>(hash(low, high) >> shift_)];
    Slot* const slot = std::find_if(first, first + kProbes, [](const Slot& at) { return at.low == 0; });
    if (slot != first + kProbes) *slot = {low, high, entry.id};  // tokens without a slot are found in the trie
  }
}

void Vocabulary::grow_trie(std::span<const Entry> sorted, std::string_view prefix) {
  // A token adds one node for each byte after the prefix that it shares with the previous token. Nodes are numbered by
  // depth, and within a depth in the order of the tokens; so are the edges that lead to them.
  std::vector<std::uint32_t> shared(sorted.size());
  std::vector<std::uint32_t> next(1, 1);  // by depth: first the number of nodes, later the next node's number
  for (std::size_t i = 0; i < sorted.size(); ++i) {
    const std::string_view token = sorted[i].token, before = i == 0 ? std::string_view{} : sorted[i - 1].token;
    const auto [differs, _] = std::mismatch(token.begin(), token.end(), before.begin(), before.end());
    shared[i] = static_cast<std::uint32_t>(differs - token.begin());
    if (next.size() <= token.size()) next.resize(token.size() + 1);
    for (std::size_t depth = shared[i] + 1; depth <= token.size(); ++depth) ++next[depth];
  }
  std::uint32_t nodes = 0;
  for (std::uint32_t& of_depth : next) nodes += std::exchange(of_depth, nodes);
  next[0] = 1;  // the root exists already

  first_edge_.assign(nodes + 1, kNone);
  labels_.resize(nodes - 1);
  values_.resize(nodes);
  for (std::size_t i = 0; i < sorted.size(); ++i) {
    const std::string_view token = sorted[i].token;
    for (std::size_t depth = shared[i] + 1; depth <= token.size(); ++depth) {
      const std::uint32_t node = next[depth]++, parent = next[depth - 1] - 1;
      labels_[node - 1] = static_cast<unsigned char>(token[depth - 1]);
      if (first_edge_[parent] == kNone) first_edge_[parent] = node - 1;
    }
    values_[next[token.size()] - 1] = {sorted[i].id, true};
  }
  first_edge_[nodes] = nodes - 1;
  for (std::uint32_t node = nodes; node-- > 0;)
    if (first_edge_[node] == kNone) first_edge_[node] = first_edge_[node + 1];

  continuation_ = 0;
  for (const char c : prefix)
    if (continuation_ != kNone) continuation_ = child(continuation_, static_cast<unsigned char>(c));
}

std::uint32_t Vocabulary::child(std::uint32_t node, unsigned char byte) const noexcept {
  const unsigned char* low = labels_.data() + first_edge_[node];
  const unsigned char* const high = labels_.data() + first_edge_[node + 1];
  auto length = static_cast<std::size_t>(high - low);
  while (length > 1) {  // finds the last label not above the byte; compilers make this a conditional move
    const std::size_t half = length / 2;
    low = low[half] <= byte ? low + half : low;
    length -= half;
  }
  if (length == 0 || *low != byte) return kNone;
  return static_cast<std::uint32_t>(low - labels_.data()) + 1;
}

Vocabulary::Match Vocabulary::longest(std::string_view word, bool continues) const noexcept {
  Match best;
  std::uint32_t node = continues ? continuation_ : 0;
  if (node == kNone) return best;
  for (std::uint32_t i = 0; i < word.size();) {
    node = child(node, static_cast<unsigned char>(word[i]));
    if (node == kNone) break;
    ++i;
    if (values_[node].ends) best = {values_[node].id, i};
  }
  return best;
}

}  // namespace weighbridge::tokenizers
