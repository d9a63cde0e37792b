// SPDX-License-Identifier: Apache-2.0
// KNU words: the table of glyphs, the fields of a word, and the possible errors in one. Source: reading S7.
#include <algorithm>
#include <bit>
#include <charconv>

#include "base/fail.h"
#include "runtime/khlnary/module.h"

namespace weighbridge::khlnary {
using namespace internal;
namespace {

using Id = Glyph::Id;
using Payload = Glyph::Payload;

constexpr Glyph kGlyphs[] = {
    {Id::nop, "NOP", 0, 0, 0, 0, Payload::nothing},
    {Id::const_i8, "CONST_I8", 0, 0, kImm, 0, Payload::constant},
    {Id::add_i32, "ADD_I32", 2, 2, 0, 0, Payload::nothing},
    {Id::ret, "RET", 1, 1, 0, 0, Payload::nothing},
    {Id::ifz_jump8, "IFZ_JUMP8", 1, 1, kImm, 0, Payload::offset},
    {Id::jump8, "JUMP8", 0, 0, kImm, 0, Payload::offset},
    {Id::while_head, "WHILE_HEAD", 0, 0, 0, 0, Payload::nothing},
    {Id::while_tail, "WHILE_TAIL", 0, 0, 0, 0, Payload::nothing},
    {Id::func_def, "FUNC_DEF", 1, 1, kImm, 0, Payload::function},
    {Id::func_end, "FUNC_END", 0, 0, 0, 0, Payload::nothing},
    {Id::call, "CALL", 1, 1, kImm, 0, Payload::function},
    {Id::load_bin_tensor, "LOAD_BIN_TENSOR", 0, 0, kBinRef, kShapeDesc, Payload::tensor},
    {Id::mmap_bin_region, "MMAP_BIN_REGION", 0, 1, kBinRef, 0, Payload::file},
    {Id::prefetch_bin, "PREFETCH_BIN", 0, 0, kBinRef, 0, Payload::file},
};

// The lowest bit of each field. Bit 0 is the parity.
constexpr unsigned kVersionBit = 28, kGlyphBit = 20, kArityBit = 16, kFlagsBit = 12, kPayloadBit = 4, kAuthorityBit = 1;

std::uint32_t field(std::string_view what, std::uint8_t value, unsigned bits, unsigned at) {
  if (value >> bits != 0)
    base::misuse("word", "a word's " + std::string(what) + " has " + std::to_string(bits) + " bits, too few for " +
                             std::to_string(value));
  return std::uint32_t{value} << at;
}

bool even_parity(std::uint32_t word) { return std::popcount(word) % 2 == 0; }

std::string arity_text(const Glyph& glyph) {
  const std::string minimum = std::to_string(glyph.min_arity);
  return glyph.min_arity == glyph.max_arity ? minimum : minimum + " or " + std::to_string(glyph.max_arity);
}

std::string flags_text(const Glyph& glyph) {
  const std::string needed = hex(glyph.flags, 1);
  return glyph.optional_flags == 0 ? needed : needed + " or " + hex(glyph.flags | glyph.optional_flags, 1);
}

std::optional<Finding> check_fields(const Word& word, unsigned authority, std::uint64_t offset) {
  const auto make = [&](const Rule& rule, const core::Said& expected, const core::Said& found,
                        std::string_view detail) {
    const Hint hint = rule.id == rules::kAuthority.id ? base::option_hint("authority") : Hint{};
    return core::Findings::make(rule, {.offset = offset, .hint = hint}, expected, found, detail);
  };
  const Glyph* const glyph = find_glyph(word.glyph);
  if (!glyph) return make(rules::kUnknownGlyph, {}, hex(word.glyph, 2), {});
  if ((glyph->flags & kBinRef) != 0 && (word.flags & kBinRef) == 0)
    return make(rules::kMissingBinRef, flags_text(*glyph), hex(word.flags, 1), glyph->name);
  if (word.arity < glyph->min_arity || word.arity > glyph->max_arity)
    return make(rules::kArity, arity_text(*glyph), word.arity, glyph->name);
  if ((word.flags & ~glyph->optional_flags) != glyph->flags)
    return make(rules::kFlags, flags_text(*glyph), hex(word.flags, 1), glyph->name);
  if (word.authority == 0 || word.authority > authority)
    return make(rules::kAuthority, authority == 1 ? "1" : "1 to " + std::to_string(authority), word.authority,
                glyph->name);
  return std::nullopt;
}

}  // namespace

std::string internal::hex(std::uint32_t value, std::size_t digits) {
  char text[8];
  const auto [end, error] = std::to_chars(text, text + sizeof text, value, 16);
  const auto length = static_cast<std::size_t>(end - text);
  return "0x" + std::string(digits > length ? digits - length : 0, '0') + std::string(text, length);
}

std::span<const Glyph> glyphs() noexcept { return kGlyphs; }

const Glyph* find_glyph(std::uint8_t id) noexcept {
  const auto found = std::ranges::find(kGlyphs, static_cast<Id>(id), &Glyph::id);
  return found == std::end(kGlyphs) ? nullptr : found;
}

const Glyph* find_glyph(std::string_view name) noexcept {
  const auto found = std::ranges::find(kGlyphs, name, &Glyph::name);
  return found == std::end(kGlyphs) ? nullptr : found;
}

std::uint32_t encode(const Word& w) {
  const std::uint32_t word = field("version", w.version, 4, kVersionBit) | field("glyph", w.glyph, 8, kGlyphBit) |
                             field("arity", w.arity, 4, kArityBit) | field("flags", w.flags, 4, kFlagsBit) |
                             field("payload", w.payload, 8, kPayloadBit) |
                             field("authority", w.authority, 3, kAuthorityBit);
  return word | (even_parity(word) ? 0U : 1U);
}

Word fields(std::uint32_t word) noexcept {
  const auto bits = [&](unsigned at, unsigned mask) { return static_cast<std::uint8_t>(word >> at & mask); };
  return {.version = bits(kVersionBit, 0xF),
          .glyph = bits(kGlyphBit, 0xFF),
          .arity = bits(kArityBit, 0xF),
          .flags = bits(kFlagsBit, 0xF),
          .payload = bits(kPayloadBit, 0xFF),
          .authority = bits(kAuthorityBit, 0x7)};
}

std::optional<Finding> check(std::uint32_t word, unsigned authority, std::uint64_t offset) {
  const Word w = fields(word);
  if (w.version != kVersion) return core::Findings::make(rules::kVersion, {.offset = offset}, kVersion, w.version);
  if (!even_parity(word))
    return core::Findings::make(rules::kParity, {.offset = offset}, hex(word ^ 1U, 8), hex(word, 8));
  return check_fields(w, authority, offset);
}

Word decode(std::uint32_t word, unsigned authority) {
  if (auto wrong = check(word, authority)) throw Error(*std::move(wrong));
  return fields(word);
}

std::span<const Rule> module_rules() noexcept { return rules::kAll; }

}  // namespace weighbridge::khlnary

namespace weighbridge::khlnary::internal {
namespace {

bool is_bracket(std::uint32_t word) {
  return glyph_of(word) == Glyph::Id::func_def || glyph_of(word) == Glyph::Id::func_end;
}

}  // namespace

std::vector<std::uint32_t> match_functions(std::span<const std::uint32_t> words) {
  if (std::ranges::none_of(words, is_bracket)) return {};
  std::vector<std::uint32_t> other(words.size(), kNowhere), open;
  for (std::uint32_t i = 0; i < words.size(); ++i) {
    const Glyph::Id glyph = glyph_of(words[i]);
    if (glyph == Glyph::Id::func_def) open.push_back(i);
    if (glyph != Glyph::Id::func_end || open.empty()) continue;
    other[open.back()] = i;
    other[i] = open.back();
    open.pop_back();
  }
  return other;
}

std::optional<std::size_t> jump_target(std::size_t index, std::uint8_t payload, std::size_t count) noexcept {
  const std::int64_t target = static_cast<std::int64_t>(index) + signed_payload(payload);
  if (target < 0 || static_cast<std::uint64_t>(target) >= count) return std::nullopt;
  return static_cast<std::size_t>(target);  // below count
}

}  // namespace weighbridge::khlnary::internal
