// SPDX-License-Identifier: Apache-2.0
// Base64 encoding and strict decoding, which are inverses of each other.
#include "wire/base64.h"

#include <array>
#include <cstdint>

namespace weighbridge::wire {
namespace {

constexpr std::string_view kAlphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

constexpr auto kValues = [] {
  std::array<std::uint8_t, 256> values{};
  values.fill(0xFF);
  for (std::size_t i = 0; i < kAlphabet.size(); ++i)
    values[static_cast<unsigned char>(kAlphabet[i])] = static_cast<std::uint8_t>(i);
  return values;
}();

char symbol(std::uint32_t group, unsigned shift) noexcept { return kAlphabet[(group >> shift) & 63u]; }

}  // namespace

void append_base64(std::string& to, std::span<const std::byte> data) {
  const auto byte = [&](std::size_t i) { return std::to_integer<std::uint32_t>(data[i]); };
  to.reserve(to.size() + (data.size() + 2) / 3 * 4);
  std::size_t at = 0;
  for (; data.size() - at >= 3; at += 3) {
    const std::uint32_t group = byte(at) << 16 | byte(at + 1) << 8 | byte(at + 2);
    for (const unsigned shift : {18u, 12u, 6u, 0u}) to.push_back(symbol(group, shift));
  }
  if (data.size() - at == 1) {
    const std::uint32_t group = byte(at) << 16;
    to.append({symbol(group, 18), symbol(group, 12), '=', '='});
  } else if (data.size() - at == 2) {
    const std::uint32_t group = byte(at) << 16 | byte(at + 1) << 8;
    to.append({symbol(group, 18), symbol(group, 12), symbol(group, 6), '='});
  }
}

std::string encode_base64(std::span<const std::byte> data) {
  std::string text;
  append_base64(text, data);
  return text;
}

std::optional<std::vector<std::byte>> decode_base64(std::string_view text) {
  if (text.size() % 4 != 0) return std::nullopt;
  std::size_t padding = 0;
  while (padding < 2 && text.size() > padding && text[text.size() - 1 - padding] == '=') ++padding;
  text.remove_suffix(padding);
  std::vector<std::byte> out;
  out.reserve(text.size() / 4 * 3 + 2);
  std::uint32_t bits = 0;
  unsigned held = 0;
  for (const char c : text) {
    const std::uint32_t value = kValues[static_cast<unsigned char>(c)];
    if (value == 0xFF) return std::nullopt;
    bits = bits << 6 | value;
    held += 6;
    if (held < 8) continue;
    held -= 8;
    out.push_back(static_cast<std::byte>(bits >> held & 0xFFu));
    bits &= (1u << held) - 1;
  }
  if (bits != 0) return std::nullopt;
  return out;
}

}  // namespace weighbridge::wire
