// SPDX-License-Identifier: Apache-2.0
// Builds the tables, cuts a text wherever no merge can join the two sides, and merges each stretch.
#include "tokenizers/merges.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <functional>
#include <optional>

#include "base/utf8.h"

namespace weighbridge::tokenizers {
namespace {

constexpr std::uint64_t kNoKey = 0xFFFFFFFFFFFFFFFF;
constexpr std::size_t kShort = 24;  // up to this size scanning all keys is faster than a heap

// A stretch of tokens that may merge with each other. Pending merges are ordered by rank, then by position, so that the
// leftmost of equal ranks goes first.
class Stretch {
 public:
  explicit Stretch(const PairTable& pairs) : pairs_(pairs) {}

  void merge(std::span<const std::uint32_t> ids, std::vector<std::uint32_t>& out) {
    link(ids);
    ids.size() <= kShort ? merge_short() : merge_long();
    for (std::uint32_t i = 0; i != end_; i = nodes_[i].next) out.push_back(nodes_[i].id);
  }

 private:
  struct Node {
    std::uint32_t id, output;  // output: of the merge with the next node, if keys_ has one
    std::uint32_t previous, next;
  };

  void link(std::span<const std::uint32_t> ids) {
    end_ = static_cast<std::uint32_t>(ids.size());
    if (nodes_.size() < ids.size()) {
      nodes_.resize(ids.size());
      keys_.resize(ids.size());
    }
    for (std::uint32_t i = 0; i < end_; ++i) nodes_[i] = {ids[i], kNoToken, i - 1, i + 1};
    for (std::uint32_t i = 0; i < end_; ++i) look(i);
  }

  // Looks up the merge of a node with the next one.
  void look(std::uint32_t i) {
    keys_[i] = kNoKey;
    const std::uint32_t next = nodes_[i].next;
    if (next == end_) return;
    const PairTable::Merge merge = pairs_.find(nodes_[i].id, nodes_[next].id);
    if (merge.output == kNoToken) return;
    nodes_[i].output = merge.output;
    keys_[i] = std::uint64_t{merge.rank} << 32 | i;
  }

  // Merges a node with the next one and looks up the merges that become possible.
  void join(std::uint32_t i) {
    Node& node = nodes_[i];
    keys_[node.next] = kNoKey;
    node.id = node.output;
    node.next = nodes_[node.next].next;
    if (node.next != end_) nodes_[node.next].previous = i;
    look(i);
    if (i != 0) look(node.previous);
  }

  void merge_short() {
    for (;;) {
      std::uint64_t minimum = kNoKey;
      for (std::uint32_t i = 0; i < end_; ++i) minimum = std::min(minimum, keys_[i]);
      if (minimum == kNoKey) return;
      join(static_cast<std::uint32_t>(minimum));
    }
  }

  void merge_long() {
    heap_.clear();
    for (std::uint32_t i = 0; i < end_; ++i)
      if (keys_[i] != kNoKey) heap_.push_back(keys_[i]);
    std::make_heap(heap_.begin(), heap_.end(), std::greater<>());
    while (!heap_.empty()) {
      std::pop_heap(heap_.begin(), heap_.end(), std::greater<>());
      const std::uint64_t key = heap_.back();
      heap_.pop_back();
      const auto i = static_cast<std::uint32_t>(key);
      if (keys_[i] != key) continue;  // this merge is outdated
      join(i);
      push(i);
      if (i != 0) push(nodes_[i].previous);
    }
  }

  void push(std::uint32_t i) {
    if (keys_[i] == kNoKey) return;
    heap_.push_back(keys_[i]);
    std::push_heap(heap_.begin(), heap_.end(), std::greater<>());
  }

  const PairTable& pairs_;
  std::uint32_t end_ = 0;
  std::vector<Node> nodes_;
  std::vector<std::uint64_t> keys_;  // each node's merge with the next one
  std::vector<std::uint64_t> heap_;  // may hold outdated keys
};

// Caches the ids of recent short stretches, since a long text consists of few distinct words. A slot keeps the last
// stretch that maps to it.
class Recent {
 public:
  explicit Recent(std::size_t text_bytes) : slots_(text_bytes < kWorthwhile ? 0 : kSlots) {}

  bool append(std::string_view stretch, std::vector<std::uint32_t>& out) const {
    if (slots_.empty() || stretch.size() > kBytes) return false;
    const Key key = key_of(stretch);
    const Slot& slot = slots_[place(key)];
    if (slot.length != stretch.size() || slot.key != key) return false;
    out.insert(out.end(), slot.ids.begin(), slot.ids.begin() + slot.count);
    return true;
  }

  void keep(std::string_view stretch, std::span<const std::uint32_t> ids) {
    if (slots_.empty() || stretch.size() > kBytes || ids.size() > kIds) return;
    const Key key = key_of(stretch);
    Slot& slot = slots_[place(key)];
    slot = {key, static_cast<std::uint8_t>(stretch.size()), static_cast<std::uint8_t>(ids.size()), {}};
    std::ranges::copy(ids, slot.ids.begin());
  }

 private:
  static constexpr std::size_t kWorthwhile = 16 << 10, kBytes = 16, kIds = 6;
  static constexpr int kSlotBits = 12;
  static constexpr std::size_t kSlots = std::size_t{1} << kSlotBits;
  using Key = std::array<std::uint64_t, 2>;  // the bytes, padded with zeros
  struct Slot {
    Key key{};
    std::uint8_t length = 0, count = 0;  // length 0: free
    std::array<std::uint32_t, kIds> ids{};
  };

  static Key key_of(std::string_view stretch) noexcept {
    Key key{};
    std::memcpy(key.data(), stretch.data(), stretch.size());
    return key;
  }
  static std::size_t place(const Key& key) noexcept {
    const std::uint64_t x = (key[0] ^ (key[1] * 0x9E3779B97F4A7C15U)) * 0xFF51AFD7ED558CCDU;
    return static_cast<std::size_t>(((x ^ (x >> 32)) * 0xC4CEB9FE1A85EC53U) >> (64 - kSlotBits));
  }

  std::vector<Slot> slots_;
};

// The code point, if the bytes are exactly one multi-byte character; else nullopt.
std::optional<char32_t> character_of(std::string_view bytes) noexcept {
  if (bytes.size() < 2 || bytes.size() > 4) return std::nullopt;
  const base::Decoded character = base::decode_utf8(bytes, 0);
  if (!character.valid || character.length != bytes.size()) return std::nullopt;
  return character.code_point;
}

// The bytes that a token spells; nullopt if it can occur nowhere.
std::optional<std::string_view> spelling(std::span<const SpelledToken> tokens, std::uint32_t id,
                                         const std::array<char, 256>& every_byte) {
  if (const SpelledToken* token = find_token(tokens, id)) return token->bytes;
  if (id < 256) return std::string_view(&every_byte[id], 1);
  return std::nullopt;
}

}  // namespace

const SpelledToken* find_token(std::span<const SpelledToken> tokens, std::uint32_t id) noexcept {
  if (id < tokens.size() && tokens[id].id == id) return &tokens[id];  // most vocabularies have all ids from 0
  const auto at = std::ranges::lower_bound(tokens, id, {}, &SpelledToken::id);
  return at != tokens.end() && at->id == id ? &*at : nullptr;
}

PairTable::PairTable(std::span<const Tokenizer::Merge> merges) {
  const std::size_t size = std::bit_ceil(std::max<std::size_t>(2 * merges.size(), 2));
  shift_ = 64 - std::countr_zero(size);
  slots_.resize(size + kProbes);
  for (const Tokenizer::Merge& merge : merges) {
    const Slot wanted{pair(merge.left, merge.right), {merge.rank, merge.output}};
    Slot* slot = &slots_[static_cast<std::size_t>(hash(wanted.pair) >> shift_)];
    Slot* const last = slot + kProbes;
    while (slot != last && slot->merge.output != kNoToken && slot->pair != wanted.pair) ++slot;
    if (slot == last) {
      crowded_.push_back(wanted);
    } else if (slot->merge.output == kNoToken || wanted.merge.rank < slot->merge.rank) {
      *slot = wanted;
    }
  }
  std::ranges::stable_sort(crowded_, [](const Slot& a, const Slot& b) {
    return a.pair != b.pair ? a.pair < b.pair : a.merge.rank < b.merge.rank;
  });
}

PairTable::Merge PairTable::find_crowded(std::uint64_t pair) const noexcept {
  const auto at = std::ranges::lower_bound(crowded_, pair, {}, &Slot::pair);
  return at != crowded_.end() && at->pair == pair ? at->merge : Merge{};
}

Alphabet::Alphabet(std::span<const SpelledToken> tokens, std::span<const Tokenizer::Merge> merges, std::uint32_t size,
                   std::uint32_t unk, bool byte_level)
    : page_of_(0x110000 >> 8, 0), pages_(256, kNoToken) {
  for (std::uint32_t value = 0; value < 256; ++value)
    bytes_[value] = value >= size || find_token(tokens, value) ? unk : value;
  for (const SpelledToken& token : tokens) {
    if (token.bytes.size() == 1) {
      bytes_[static_cast<unsigned char>(token.bytes[0])] = token.id;
    } else if (const auto code_point = byte_level ? std::nullopt : character_of(token.bytes)) {
      set_character(*code_point, token.id);
    }
  }
  for (const Tokenizer::Merge& merge : merges) {
    const SpelledToken* token = find_token(tokens, merge.output);
    const auto code_point = token ? character_of(token->bytes) : std::nullopt;
    if (code_point && character(*code_point) == merge.output) set_character(*code_point, kNoToken);
  }
}

void Alphabet::set_character(char32_t code_point, std::uint32_t id) {
  std::uint16_t& page = page_of_[code_point >> 8];
  if (page == 0) {
    page = static_cast<std::uint16_t>(pages_.size() >> 8);
    pages_.resize(pages_.size() + 256, kNoToken);
  }
  pages_[(std::size_t{page} << 8) + (code_point & 0xFF)] = id;
}

Merges::Merges(std::span<const SpelledToken> tokens, std::span<const Tokenizer::Merge> merges, std::uint32_t size,
               std::uint32_t unk, bool byte_level)
    : alphabet_(tokens, merges, size, unk, byte_level), pairs_(merges) {
  find_joints(tokens, merges, unk);
}

// If the output of every merge spells its two inputs, tokens equal the bytes of the text, so only the byte pairs where
// a merge meets can join. In other tables anything may join. No stretch begins inside a character.
void Merges::find_joints(std::span<const SpelledToken> tokens, std::span<const Tokenizer::Merge> merges,
                         std::uint32_t unk) {
  std::array<char, 256> every_byte;
  bool plain = true, unknown = false;
  for (std::uint32_t value = 0; value < 256; ++value) {
    every_byte[value] = static_cast<char>(static_cast<unsigned char>(value));
    unknown |= alphabet_.byte(static_cast<unsigned char>(value)) == unk;
  }
  for (const Tokenizer::Merge& merge : merges) {
    if (unknown && (merge.left == unk || merge.right == unk)) plain = false;
    const auto left = spelling(tokens, merge.left, every_byte), right = spelling(tokens, merge.right, every_byte);
    if (!left || !right) continue;
    const auto whole = spelling(tokens, merge.output, every_byte);
    plain &=
        whole && whole->size() == left->size() + right->size() && whole->starts_with(*left) && whole->ends_with(*right);
    joins_[static_cast<unsigned char>(left->back())].set(static_cast<unsigned char>(right->front()));
  }
  for (auto& behind : joins_)
    for (std::size_t value = 0; value < 256; ++value)
      if (!plain || (value & 0xC0U) == 0x80) behind.set(value);
}

// Appends the initial tokens of the character at text[at] and returns the position of the next character.
std::size_t Merges::start(std::string_view text, std::size_t at, std::vector<std::uint32_t>& ids) const {
  const auto first = static_cast<unsigned char>(text[at]);
  if (first < 0x80) {
    ids.push_back(alphabet_.byte(first));
    return at + 1;
  }
  const base::Decoded character = base::decode_utf8(text, at);
  const std::uint32_t whole = character.valid ? alphabet_.character(character.code_point) : kNoToken;
  if (whole != kNoToken) {
    ids.push_back(whole);
  } else {
    for (const char c : text.substr(at, character.length)) ids.push_back(alphabet_.byte(static_cast<unsigned char>(c)));
  }
  return at + character.length;
}

void Merges::encode(std::string_view text, std::uint64_t enough, std::vector<std::uint32_t>& out) const {
  Stretch merging(pairs_);
  Recent recent(text.size());
  std::vector<std::uint32_t> ids;
  for (std::size_t at = 0; at < text.size() && out.size() < enough;) {
    const std::size_t begin = at++;
    while (at < text.size() && joins(text[at - 1], text[at])) ++at;
    const std::string_view stretch = text.substr(begin, at - begin);
    if (stretch.size() == 1) {
      out.push_back(alphabet_.byte(static_cast<unsigned char>(stretch[0])));
    } else if (!recent.append(stretch, out)) {
      ids.clear();
      for (std::size_t i = 0; i < stretch.size();) i = start(stretch, i, ids);
      const std::size_t before = out.size();
      merging.merge(ids, out);
      recent.keep(stretch, std::span(out).subspan(before));
    }
  }
}

}  // namespace weighbridge::tokenizers
