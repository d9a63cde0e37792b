// SPDX-License-Identifier: Apache-2.0
// The signatures of packed bytes, and those that can be unpacked: zlib (RFC 1950), gzip (RFC 1952) and base64.
#include "core/archive/pickle_scan.h"

#include <algorithm>
#include <iterator>
#include <span>
#include <utility>

#include "base/checked.h"
#include "base/endian.h"
#include "codecs/codec.h"
#include "wire/base64.h"

namespace weighbridge::core {
namespace {

using namespace std::string_view_literals;

constexpr std::string_view kZlib = "zlib", kGzip = "gzip";

struct Signature {
  std::string_view bytes, name;
  bool readable = false;
};
constexpr Signature kSignatures[] = {
    {"\x1f\x8b\x08"sv, kGzip, true},
    {"\x28\xb5\x2f\xfd"sv, "zstd"},
    {"\xfd"
     "7zXZ\0"sv,
     "xz"},
    {"\x04\x22\x4d\x18"sv, "lz4"},
};

// Two bytes that 31 divides, of which the first states deflate and a window; no dictionary.
bool is_zlib(std::string_view first) noexcept {
  if (first.size() < 8) return false;
  const auto method = static_cast<unsigned char>(first[0]), flags = static_cast<unsigned char>(first[1]);
  return (method & 0x0FU) == 8 && (method >> 4) <= 7 && (method * 256U + flags) % 31 == 0 && (flags & 0x20U) == 0;
}

// A level, then the magic number of a block, or that of the end of empty data.
bool is_bzip2(std::string_view first) noexcept {
  return first.size() >= 10 && first.starts_with("BZh") && first[3] >= '1' && first[3] <= '9' &&
         (first.substr(4, 6) == "1AY&SY" || first.substr(4, 6) == "\x17\x72\x45\x38\x50\x90"sv);
}

// The properties that every encoder writes, a dictionary of a power of two, and a size that is unknown or plausible.
bool is_lzma(std::string_view first) noexcept {
  if (first.size() < 13 || first[0] != '\x5d') return false;
  const auto dictionary = base::load_le<std::uint32_t>(first.data() + 1);
  const auto size = base::load_le<std::uint64_t>(first.data() + 5);
  return dictionary >= 4096 && (dictionary & (dictionary - 1)) == 0 &&
         (size == UINT64_MAX || size < std::uint64_t{1} << 38);
}

// Whether the whole beginning consists of base64 characters, which is rare in other texts.
bool is_base64(std::string_view first) noexcept {
  return first.size() >= 12 && std::ranges::all_of(first, [](char c) {
           return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '+' || c == '/' ||
                  c == '=' || c == '\n' || c == '\r';
         });
}

// The length of the gzip header before the deflate data; nullopt: it is not a gzip header.
std::optional<std::size_t> gzip_header(std::string_view bytes) noexcept {
  constexpr std::size_t kFixed = 10;
  enum : unsigned { kCheck = 2, kExtra = 4, kName = 8, kComment = 16, kReserved = 0xE0 };
  if (bytes.size() < kFixed) return std::nullopt;
  const auto flags = static_cast<unsigned char>(bytes[3]);
  std::size_t at = kFixed;
  if ((flags & kReserved) != 0) return std::nullopt;
  if ((flags & kExtra) != 0) {
    if (bytes.size() < at + 2) return std::nullopt;
    at += std::size_t{2} + base::load_le<std::uint16_t>(bytes.data() + at);
  }
  for (const unsigned text : {unsigned{kName}, unsigned{kComment}})
    if ((flags & text) != 0) {
      const std::size_t end = bytes.find('\0', std::min(at, bytes.size()));
      if (end == bytes.npos) return std::nullopt;
      at = end + 1;
    }
  if ((flags & kCheck) != 0) at += 2;
  return at < bytes.size() ? std::optional(at) : std::nullopt;
}

std::optional<std::string> inflate(std::string_view bytes, Budget& budget) {
  std::string out;
  std::size_t taken = 0;
  const codecs::LentDecoder decoder(codecs::kDeflate);
  const auto result = decoder->decode(
      budget.left(), UINT64_MAX,
      [&](std::span<std::byte> room) {
        const std::size_t n = std::min(room.size(), bytes.size() - taken);
        std::ranges::copy(std::as_bytes(std::span(bytes)).subspan(taken, n), room.begin());
        taken += n;
        return n;
      },
      [&](std::span<const std::byte> piece) {
        out.append(reinterpret_cast<const char*>(piece.data()), piece.size());
        return true;
      });
  if (result.fault == codecs::DecodeFault::too_long || !budget.take(out.size())) budget.take_all();
  // It may give fewer bytes than are left, and a checksum follows.
  const bool good =
      result.ok() || result.fault == codecs::DecodeFault::too_short || result.fault == codecs::DecodeFault::trailing;
  return good ? std::optional(std::move(out)) : std::nullopt;
}

}  // namespace

Packing packing_of(std::string_view first) noexcept {
  for (const Signature& each : kSignatures)
    if (first.starts_with(each.bytes)) return {each.name, each.readable};
  if (is_bzip2(first)) return {"bzip2"};
  if (is_lzma(first)) return {"lzma"};
  if (is_zlib(first)) return {kZlib, true};
  if (is_base64(first.substr(0, kPackingHead))) return {kBase64, true};
  return {};
}

std::optional<std::string> unpack(const Packing& packing, std::string_view bytes, Budget& budget) {
  if (packing.name == kBase64) {
    if (!budget.take(bytes.size() / 4, 3)) return budget.take_all(), std::nullopt;
    std::string lines;
    std::ranges::copy_if(bytes, std::back_inserter(lines), [](char c) { return c != '\n' && c != '\r'; });
    while (lines.size() % 4 != 0) lines += '=';
    const auto decoded = wire::decode_base64(lines);
    if (!decoded) return std::nullopt;
    return std::string(reinterpret_cast<const char*>(decoded->data()), decoded->size());
  }
  constexpr std::size_t kZlibHeader = 2;
  const auto header = packing.name == kGzip ? gzip_header(bytes) : std::optional(kZlibHeader);
  return header ? inflate(bytes.substr(*header), budget) : std::nullopt;
}

}  // namespace weighbridge::core
