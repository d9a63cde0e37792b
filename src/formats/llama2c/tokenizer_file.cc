// SPDX-License-Identifier: Apache-2.0
// Turns records into tokens, and scores into merges.
#include "formats/llama2c/format.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <span>
#include <utility>

#include "base/checked.h"
#include "base/endian.h"
#include "core/model/words.h"
#include "core/reading/rules.h"
#include "io/read.h"
#include "weighbridge/value.h"

namespace weighbridge::llama2c {
namespace {

// "<0x41>"
std::string byte_spelling(std::uint32_t value) {
  constexpr std::string_view kDigits = "0123456789ABCDEF";
  return std::string("<0x") + kDigits[value >> 4] + kDigits[value & 15] + ">";
}

class Reader {
 public:
  Reader(const Source& source, std::uint32_t vocab_size, const Limits& limits, core::Findings& findings)
      : source_(source), vocab_size_(vocab_size), limits_(limits), findings_(findings) {}

  std::optional<Tokenizer> run() {
    if (!load() || !read_tokens() || !check_bytes()) return std::nullopt;
    out_.kind = Tokenizer::Kind::bpe;
    out_.vocab_size = vocab_size_;
    out_.special = {{"unk", kUnk}, {"bos", kBos}, {"eos", kEos}};
    if (!make_merges()) return std::nullopt;
    spell_bytes();
    return std::move(out_);
  }

 private:
  bool fail(const Rule& rule, std::uint64_t at, const core::Said& expected, const core::Said& found,
            const core::Said& detail = {}) {
    return findings_.fail(rule, {.offset = at}, expected, found, detail);
  }

  bool load() {
    const std::uint64_t size = source_.size();
    if (size > limits_.header)
      return fail(core::rules::kLimitHeader, 0, core::at_most(core::in_bytes(limits_.header)), core::in_bytes(size),
                  "the tokenizer file");
    const std::uint64_t minimum = kTokenizerHeaderSize + vocab_size_ * (kTokenRecordSize + 1);
    if (size < minimum)
      return fail(rules::kTokenizerShort, size, core::at_least(core::in_bytes(minimum)), core::in_bytes(size));
    bytes_ = io::text_of(source_);
    return true;
  }

  std::int32_t i32(std::uint64_t at) const noexcept {
    return static_cast<std::int32_t>(base::load_le<std::uint32_t>(bytes_.data() + at));
  }

  // load() has checked that the file is long enough for vocab_size records.
  bool read_tokens() {
    const std::int32_t maximum = std::min(i32(0), kMaxTokenLength);
    std::uint64_t at = kTokenizerHeaderSize;
    scores_.reserve(vocab_size_);
    for (std::uint32_t id = 0; id < vocab_size_; ++id) {
      const std::string which = "token " + std::to_string(id);
      if (!base::fits(at, kTokenRecordSize, bytes_.size()))
        return fail(rules::kTokenizerShort, bytes_.size(), {vocab_size_, " tokens"}, id);
      const float score = std::bit_cast<float>(base::load_le<std::uint32_t>(bytes_.data() + at));
      const std::int32_t length = i32(at + 4);
      if (!std::isfinite(score))
        return fail(rules::kTokenScore, at, {}, Value::real(static_cast<double>(score), DType::f32).to_text(), which);
      if (length < 1 || length > maximum) return fail(rules::kTokenLength, at + 4, {"1 to ", maximum}, length, which);
      at += kTokenRecordSize;
      const auto count = static_cast<std::uint64_t>(length);
      if (!base::fits(at, count, bytes_.size()))
        return fail(rules::kTokenizerShort, bytes_.size(), {vocab_size_, " tokens"}, id);
      out_.tokens.push_back(std::string_view(bytes_).substr(base::to_size(at), base::to_size(count)));
      scores_.push_back(score);
      at += count;
    }
    return at == bytes_.size() ||
           fail(rules::kTokenizerTrailing, at, core::in_bytes(at), core::in_bytes(bytes_.size()));
  }

  bool check_bytes() {
    if (vocab_size_ < kAfterBytes)
      return fail(rules::kTokenizerBytes, 0, core::at_least(kAfterBytes, " tokens"), vocab_size_);
    for (std::uint32_t value = 0; value < 256; ++value)
      if (const std::string_view token = out_.tokens[kFirstByte + value]; token != byte_spelling(value))
        return fail(rules::kTokenizerBytes, 0, byte_spelling(value), core::in_quotes(token),
                    {"token ", kFirstByte + value});
    return true;
  }

  static bool is_byte(std::uint32_t id) noexcept { return id >= kFirstByte && id < kAfterBytes; }

  // M14: every split of a piece into two pieces is a merge, best score first. Equal scores share a rank, so that the
  // leftmost merge wins, as with run.c's strict comparison.
  bool make_merges() {
    std::vector<std::uint32_t> pieces;
    for (std::uint32_t id = 0; id < vocab_size_; ++id)
      if (!is_byte(id)) pieces.push_back(id);
    const auto text = [&](std::uint32_t id) { return out_.tokens[id]; };
    std::vector<std::uint32_t> by_text = pieces;
    std::ranges::stable_sort(by_text, {}, text);
    // The last of equal pieces, which is the one that run.c finds.
    const auto find = [&](std::string_view part) -> std::optional<std::uint32_t> {
      const auto behind = std::ranges::upper_bound(by_text, part, {}, text);
      if (behind == by_text.begin() || text(*(behind - 1)) != part) return std::nullopt;
      return *(behind - 1);
    };
    std::ranges::stable_sort(pieces, [&](std::uint32_t a, std::uint32_t b) { return scores_[a] > scores_[b]; });
    std::uint32_t rank = 0;
    for (std::size_t i = 0; i < pieces.size(); ++i) {
      if (i > 0 && scores_[pieces[i]] < scores_[pieces[i - 1]]) ++rank;
      const std::string_view piece = text(pieces[i]);
      if (find(piece) != pieces[i]) continue;  // only the last of equal pieces counts
      for (std::size_t cut = 1; cut < piece.size(); ++cut) {
        const auto left = find(piece.substr(0, cut));
        const auto right = left ? find(piece.substr(cut)) : std::nullopt;
        if (right) out_.merges.push_back({*left, *right, pieces[i], rank});
      }
      if (out_.merges.size() > limits_.memory / sizeof(Tokenizer::Merge))
        return fail(core::rules::kLimitMemory, 0, core::at_most(core::in_bytes(limits_.memory)), {},
                    "the merges of the tokenizer file");
    }
    return true;
  }

  void spell_bytes() {
    Texts spelled;
    for (std::uint32_t id = 0; id < vocab_size_; ++id) {
      const char byte = static_cast<char>(static_cast<unsigned char>(id - kFirstByte));
      spelled.push_back(is_byte(id) ? std::string_view(&byte, 1) : out_.tokens[id]);
    }
    out_.tokens = std::move(spelled);
  }

  const Source& source_;
  const std::uint32_t vocab_size_;
  const Limits& limits_;
  core::Findings& findings_;
  std::string bytes_;
  std::vector<float> scores_;
  Tokenizer out_;
};

}  // namespace

std::string tokenizer_name(std::string_view checkpoint) {
  std::string name(checkpoint.substr(checkpoint.rfind('/') + 1));
  if (const std::size_t dot = name.rfind('.'); dot != std::string::npos && dot > 0) name.resize(dot);
  return name.append(kTokenizerExtension);
}

std::optional<Tokenizer> read_tokenizer_file(const Source& source, std::uint32_t vocab_size, const Limits& limits,
                                             core::Findings& findings) {
  return Reader(source, vocab_size, limits, findings).run();
}

}  // namespace weighbridge::llama2c
