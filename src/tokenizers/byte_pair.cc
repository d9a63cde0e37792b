// SPDX-License-Identifier: Apache-2.0
// The public BytePair: checks the vocabulary, adds BOS, EOS and the leading space, and decodes. Leaves the merging to
// merges.cc.
#include <algorithm>
#include <array>
#include <functional>
#include <iterator>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <utility>

#include "base/checked.h"
#include "base/fail.h"
#include "base/utf8.h"
#include "tokenizers/characters.h"
#include "tokenizers/merges.h"
#include "tokenizers/splitter.h"
#include "weighbridge/tokenize.h"

namespace weighbridge {
namespace {

using tokenizers::SpelledToken;

constexpr std::string_view kMetaspace = "\xE2\x96\x81";  // U+2581
constexpr std::size_t kLongestFound = 256;               // bytes of a token that texts are searched for
constexpr std::uint32_t kByteVocabulary = 260;           // reading M10: bytes, BOS, EOS, PAD, UNK

struct SpecialIds {
  std::uint32_t bos = 0, eos = 0, pad = 0, unk = 0;
  bool operator==(const SpecialIds&) const = default;
};

std::string outside(std::uint64_t id, std::uint32_t size) {
  return std::to_string(id) + ", and the vocabulary has " + std::to_string(size) + " ids";
}

SpecialIds special_ids(const Tokenizer& from) {
  const auto named = [&](std::string_view role) -> std::optional<std::uint32_t> {
    const auto at = std::ranges::find(from.special, role, &std::pair<std::string, std::uint32_t>::first);
    if (at == from.special.end()) return std::nullopt;
    if (at->second >= from.vocab_size)
      base::malformed("tokenizer/special",
                      "the id of \"" + std::string(role) + "\" is " + outside(at->second, from.vocab_size));
    return at->second;
  };
  const auto needed = [&](std::string_view role) {
    if (const auto id = named(role)) return *id;
    base::malformed("tokenizer/special", "the vocabulary names no token for \"" + std::string(role) + "\"");
  };
  SpecialIds out{.bos = needed("bos"), .eos = needed("eos"), .unk = needed("unk")};
  out.pad = named("pad").value_or(out.unk);
  return out;
}

// The tokens sorted by id; views into `tokens`.
std::vector<SpelledToken> by_id(const Texts& tokens, std::span<const std::uint32_t> ids, std::uint32_t size) {
  if (!ids.empty() && ids.size() != tokens.size())
    base::malformed("tokenizer/ids", "the vocabulary has " + std::to_string(tokens.size()) + " tokens and " +
                                         std::to_string(ids.size()) + " ids");
  std::vector<SpelledToken> out;
  out.reserve(tokens.size());
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    const std::uint64_t id = ids.empty() ? i : ids[i];
    if (id >= size) base::malformed("tokenizer/ids", "a token's id is " + outside(id, size));
    if (tokens[i].empty()) base::malformed("tokenizer/tokens", "the token " + std::to_string(id) + " has no bytes");
    out.push_back({tokens[i], static_cast<std::uint32_t>(id)});
  }
  if (!ids.empty()) std::ranges::sort(out, {}, &SpelledToken::id);
  const auto twice = std::ranges::adjacent_find(out, {}, &SpelledToken::id);
  if (twice != out.end()) base::malformed("tokenizer/ids", "two tokens have the id " + std::to_string(twice->id));
  return out;
}

void check_merges(const Tokenizer& from, std::span<const SpelledToken> tokens) {
  for (const Tokenizer::Merge& merge : from.merges) {
    for (const std::uint32_t id : {merge.left, merge.right, merge.output})
      if (id >= from.vocab_size)
        base::malformed("tokenizer/merges", "a merge has the id " + outside(id, from.vocab_size));
    if (tokenizers::find_token(tokens, merge.output) == nullptr)
      base::malformed("tokenizer/merges", "a merge gives the token " + std::to_string(merge.output) +
                                              ", which the vocabulary does not spell");
  }
}

void check(const Tokenizer& from, const SpecialIds& special) {
  if (from.kind == Tokenizer::Kind::byte &&
      (from.vocab_size != kByteVocabulary || special != SpecialIds{256, 257, 258, 259} || from.tokens.size() != 0 ||
       !from.merges.empty()))
    base::malformed(
        "tokenizer/byte",
        "a byte tokenizer has 260 ids, BOS 256, EOS 257, PAD 258 and UNK 259, and neither tokens nor merges");
}

const Tokenizer& of_our_kinds(const Tokenizer& from) {
  if (from.kind == Tokenizer::Kind::wordpiece)
    base::malformed("tokenizer/kind", "the tokenizer is of kind wordpiece, and byte or bpe is needed");
  return from;
}

// Reading M14.
bool is_of_sentencepiece(std::span<const SpelledToken> tokens, const SpecialIds& special) {
  if (special.bos != 1 || special.eos != 2) return false;
  for (std::uint32_t value = 0; value < 256; ++value) {
    const SpelledToken* token = tokenizers::find_token(tokens, 3 + value);
    if (token == nullptr || token->bytes.size() != 1 || static_cast<unsigned char>(token->bytes[0]) != value)
      return false;
  }
  return true;
}

// How many bytes at the end may be the start of an incomplete character.
std::size_t unfinished(std::string_view text) noexcept {
  for (std::size_t back = 1; back <= std::min<std::size_t>(3, text.size()); ++back) {
    const auto first = static_cast<unsigned char>(text[text.size() - back]);
    if ((first & 0xC0U) == 0x80) continue;
    if (first < 0xC2 || first > 0xF4) return 0;
    const tokenizers::DecodedText character = tokenizers::decode_replacing(text, text.size() - back);
    return !character.valid && character.length == back ? back : 0;
  }
  return 0;
}

}  // namespace

struct BytePair::Rep {
  Rep(const Tokenizer& from, const BytePairOptions& options)
      : kind(of_our_kinds(from).kind),
        size(from.vocab_size),
        special(special_ids(from)),
        texts(from.tokens),
        tokens(by_id(texts, from.ids, size)),
        merges(merging(options), checked(from), size, special.unk, options.byte_level),
        adds_bos(options.adds_bos),
        adds_eos(options.adds_eos),
        leftmost(options.leftmost),
        ends(options.ends.begin(), options.ends.end()),
        metaspace(options.metaspace),
        prefix_space(options.prefix_space.value_or(is_of_sentencepiece(tokens, special))) {
    divide(options);
    for (std::uint32_t value = 0; value < 256; ++value)
      every_byte[value] = static_cast<char>(static_cast<unsigned char>(value));
  }

  // The tokens that merges begin with and make.
  std::vector<SpelledToken> merging(const BytePairOptions& options) const {
    const std::set<std::uint32_t> others(options.in_texts.begin(), options.in_texts.end()),
        control(options.control.begin(), options.control.end());
    std::vector<SpelledToken> out;
    // A longer one is not in the alphabet, and what merges make of it is left as it is.
    std::ranges::copy_if(tokens, std::back_inserter(out), [&](const SpelledToken& each) {
      return !others.contains(each.id) && !(each.bytes.size() == 1 && control.contains(each.id));
    });
    return out;
  }

  void divide(const BytePairOptions& options) {
    if (!options.words.empty()) {
      const auto* const named = tokenizers::Splitter::find(options.words);
      if (!named)
        base::unsupported("tokenizer/words", "texts are divided into words as for \"" + options.words +
                                                 "\", which weighbridge does not know");
      splitter.emplace(*named);
    }
    if (options.whole_words) {
      const std::set<std::uint32_t> control(options.control.begin(), options.control.end());
      for (const SpelledToken& each : tokens)
        if (!control.contains(each.id)) whole.insert_or_assign(each.bytes, each.id);
    }
    const auto search = [&](std::uint32_t id, std::uint32_t found) {
      const SpelledToken* const token = tokenizers::find_token(tokens, id);
      if (token == nullptr) return;
      if (token->bytes.size() > kLongestFound)
        base::malformed("tokenizer/token", "a token that texts are searched for has " +
                                               std::to_string(token->bytes.size()) + " bytes, and " +
                                               std::to_string(kLongestFound) + " are the most");
      in_texts.emplace(token->bytes, found);  // of equal texts, the first
      std::vector<std::size_t>& all = lengths[static_cast<unsigned char>(token->bytes[0])];
      if (std::ranges::find(all, token->bytes.size()) == all.end()) all.push_back(token->bytes.size());
    };
    for (const std::uint32_t id : options.in_texts) search(id, id);
    // From left to right, a match that is not taken still hides those inside it.
    if (leftmost && !options.in_texts.empty())
      for (const std::uint32_t id : options.control) search(id, tokenizers::kNoToken);
  }

  // Appends the ids of a text without tokens that are in_texts first.
  void encode_words(std::string_view text, std::uint64_t enough, std::vector<std::uint32_t>& out) const {
    if (!splitter) return merges.encode(text, enough, out);
    std::size_t begin = 0;
    for (const std::uint32_t end : splitter->ends(text)) {
      if (out.size() >= enough) return;
      const std::string_view word = text.substr(begin, end - begin);
      begin = end;
      if (const auto known = whole.find(word); known != whole.end())
        out.push_back(known->second);
      else
        merges.encode(word, enough, out);
    }
  }

  struct Find {
    std::size_t at, length;
    std::uint32_t id;
  };
  // Where tokens of `in_texts` are taken, by their places: the longest at each, from left to right.
  std::map<std::size_t, Find> from_left(std::string_view text) const {
    std::map<std::size_t, Find> taken;
    for (std::size_t at = 0; at < text.size();) {
      Find best{at, 0, tokenizers::kNoToken};
      for (const std::size_t length : lengths[static_cast<unsigned char>(text[at])])
        if (length > best.length && length <= text.size() - at)
          if (const auto token = in_texts.find(text.substr(at, length)); token != in_texts.end())
            best = {at, length, token->second};
      if (best.id != tokenizers::kNoToken) taken.emplace(at, best);
      at += std::max<std::size_t>(best.length, 1);
    }
    return taken;
  }
  // The same, the longest first, wherever they are; of one length, the first ones in the text.
  std::map<std::size_t, Find> longest_first(std::string_view text) const {
    std::vector<Find> places;
    for (std::size_t at = 0; at < text.size(); ++at)
      for (const std::size_t length : lengths[static_cast<unsigned char>(text[at])])
        if (const auto token = length <= text.size() - at ? in_texts.find(text.substr(at, length)) : in_texts.end();
            token != in_texts.end())
          places.push_back({at, length, token->second});
    std::ranges::stable_sort(places, std::greater(), &Find::length);
    std::map<std::size_t, Find> taken;
    for (const Find& place : places) {
      const auto after = taken.lower_bound(place.at);
      const bool free =
          (after == taken.end() || after->first >= place.at + place.length) &&
          (after == taken.begin() || std::prev(after)->first + std::prev(after)->second.length <= place.at);
      if (free) taken.emplace(place.at, place);
    }
    return taken;
  }

  // Appends the ids of a text.
  void encode(std::string_view text, std::uint64_t enough, std::vector<std::uint32_t>& out) const {
    std::map<std::size_t, Find> taken;
    if (!in_texts.empty()) taken = leftmost ? from_left(text) : longest_first(text);
    std::size_t begin = 0;
    const auto rest = [&](std::size_t end) {
      if (begin == end) return;
      std::string spaced(prefix_space ? 1 : 0, ' ');
      std::string_view piece = text.substr(begin, end - begin);
      if (metaspace && piece.find(kMetaspace) != piece.npos) {
        for (std::size_t at = 0; at < piece.size();) {
          const bool space = piece.substr(at).starts_with(kMetaspace);
          spaced += space ? ' ' : piece[at];
          at += space ? kMetaspace.size() : 1;
        }
        piece = spaced;
      } else if (prefix_space) {
        piece = spaced.append(piece);
      }
      encode_words(piece, enough, out);
    };
    for (const auto& [at, place] : taken) {
      rest(at);
      out.push_back(place.id);
      begin = at + place.length;
      if (out.size() >= enough) return;
    }
    rest(text.size());
  }

  std::span<const Tokenizer::Merge> checked(const Tokenizer& from) const {
    check(from, special);
    check_merges(from, tokens);
    return from.merges;
  }

  std::optional<std::string_view> token(std::uint32_t id) const noexcept {
    if (const SpelledToken* found = tokenizers::find_token(tokens, id)) return found->bytes;
    if (id < 256 && id < size) return std::string_view(&every_byte[id], 1);
    return std::nullopt;
  }

  // The text that an id adds. `after_bos`: whether the previous id was BOS; updated for the next call.
  std::string_view piece(std::uint32_t id, bool& after_bos) const {
    if (id >= size) base::misuse("token", "the id " + outside(id, size));
    const bool first = std::exchange(after_bos, id == special.bos);
    if (id == special.bos || id == special.eos) return {};
    if (id == special.unk) return "?";
    if (id == special.pad) return {};
    std::string_view out = token(id).value_or("?");
    if (first && prefix_space && out.starts_with(' ')) out.remove_prefix(1);
    return out;
  }

  const Tokenizer::Kind kind;
  const std::uint32_t size;
  const SpecialIds special;
  const Texts texts;
  const std::vector<SpelledToken> tokens;  // sorted by id; views into texts
  const tokenizers::Merges merges;
  const bool adds_bos, adds_eos, leftmost;
  const std::set<std::uint32_t> ends;  // besides EOS
  const bool metaspace, prefix_space;
  std::optional<tokenizers::Splitter> splitter{};
  std::unordered_map<std::string_view, std::uint32_t> whole{},
      in_texts{};                                       // words that stay; tokens that are found first
  std::array<std::vector<std::size_t>, 256> lengths{};  // of `in_texts`, by their first bytes
  std::array<char, 256> every_byte{};                   // the bytes of ids below 256 without a record
};

BytePair::BytePair(const Tokenizer& from, const BytePairOptions& options)
    : rep_(std::make_shared<const Rep>(from, options)) {}

std::vector<std::uint32_t> BytePair::encode(std::string_view text, const FrameOptions& options) const {
  const bool adds_bos = options.bos && rep_->adds_bos;
  const std::uint64_t room = options.max_length == 0 ? std::numeric_limits<std::uint64_t>::max() : options.max_length;
  const std::uint64_t behind = options.eos ? 1 : 0, around = behind + (adds_bos ? 1 : 0);
  if (room < around)
    base::misuse("max-length", "no room for BOS and EOS: the length is at most " + std::to_string(room));
  if (text.size() >= std::numeric_limits<std::uint32_t>::max())
    base::misuse("text", "a text of " + std::to_string(text.size()) + " bytes, and 4294967294 is the most");
  std::vector<std::uint32_t> out;
  if (adds_bos) out.push_back(rep_->special.bos);
  const std::uint64_t enough = room - behind;
  if (rep_->kind == Tokenizer::Kind::byte) {
    if (rep_->prefix_space && !text.empty() && out.size() < enough) out.push_back(' ');
    text = text.substr(0, static_cast<std::size_t>(std::min<std::uint64_t>(text.size(), enough - out.size())));
    for (const char c : text) out.push_back(static_cast<unsigned char>(c));
  } else {
    rep_->encode(text, enough, out);
    if (out.size() > enough) out.resize(base::to_size(enough));
  }
  if (options.eos) out.push_back(rep_->special.eos);
  return out;
}

std::string BytePair::decode(std::span<const std::uint32_t> ids) const {
  std::string out;
  bool after_bos = false;
  for (const std::uint32_t id : ids) out += rep_->piece(id, after_bos);
  return out;
}

std::optional<std::string_view> BytePair::token(std::uint32_t id) const noexcept { return rep_->token(id); }
std::uint32_t BytePair::size() const noexcept { return rep_->size; }
std::uint32_t BytePair::bos() const noexcept { return rep_->special.bos; }
std::uint32_t BytePair::eos() const noexcept { return rep_->special.eos; }
std::uint32_t BytePair::pad() const noexcept { return rep_->special.pad; }
std::uint32_t BytePair::unk() const noexcept { return rep_->special.unk; }
bool BytePair::prefix_space() const noexcept { return rep_->prefix_space; }
bool BytePair::adds_bos() const noexcept { return rep_->adds_bos; }
bool BytePair::adds_eos() const noexcept { return rep_->adds_eos; }
bool BytePair::ends(std::uint32_t id) const noexcept { return id == rep_->special.eos || rep_->ends.contains(id); }

BytePair::Decoder::Decoder(const BytePair& tokenizer) : rep_(tokenizer.rep_) {}

std::string BytePair::Decoder::push(std::uint32_t id) {
  const std::string_view piece = rep_->piece(id, after_bos_);
  std::string out = std::exchange(kept_, {});
  out += piece;
  kept_.assign(out, out.size() - unfinished(out));
  out.resize(out.size() - kept_.size());
  return out;
}

std::string BytePair::Decoder::finish() {
  after_bos_ = false;
  return std::exchange(kept_, {});
}

}  // namespace weighbridge
