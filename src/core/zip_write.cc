// SPDX-License-Identifier: Apache-2.0
// The headers and the directory of an archive that is written.
#include <algorithm>

#include "base/endian.h"
#include "base/utf8.h"
#include "core/zip.h"

namespace weighbridge::core {
namespace {

using namespace zip;

constexpr std::uint16_t kAlignmentField = 0xD935;
// 1980-01-01 00:00, the earliest time that an archive can state.
constexpr std::uint16_t kDate = (1U << 5) | 1U;
constexpr std::uint32_t kMode = 0100644U << 16;

void put16(std::string& to, std::uint64_t value) {
  to.resize(to.size() + 2);
  base::store_le(to.data() + to.size() - 2, static_cast<std::uint16_t>(value));
}
void put32(std::string& to, std::uint64_t value) {
  to.resize(to.size() + 4);
  base::store_le(to.data() + to.size() - 4, static_cast<std::uint32_t>(value));
}
void put64(std::string& to, std::uint64_t value) {
  to.resize(to.size() + 8);
  base::store_le(to.data() + to.size() - 8, value);
}

std::uint64_t narrow(std::uint64_t value) noexcept { return std::min<std::uint64_t>(value, kFull32); }

bool is_ascii(std::string_view text) noexcept {
  return std::ranges::none_of(text, [](char c) { return static_cast<unsigned char>(c) >= 0x80; });
}

// What a local header and an entry of the directory have in common, from the version on.
void put_common(std::string& to, const ZipOut& member, bool wide, std::uint64_t stored, std::uint64_t size) {
  put16(to, wide ? 45 : 20);
  put16(to, member.flags | (is_ascii(member.name) ? 0U : kUtf8));
  put16(to, member.method);
  put16(to, 0);
  put16(to, kDate);
  put32(to, member.crc32);
  put32(to, stored);
  put32(to, size);
  put16(to, member.name.size());
}

}  // namespace

bool is_zip_name(std::string_view name) noexcept {
  return name.size() < kFull16 && base::is_utf8(name) && !leaves_zip(name);
}

std::uint16_t zip_padding(const ZipOut& member) {
  constexpr std::uint64_t kLeast = 6;  // id, length, the alignment
  const std::uint64_t end = member.header_at + kLocalSize + member.name.size() + (member.large ? 20U : 0U) + kLeast;
  return static_cast<std::uint16_t>(kLeast + (kZipAlignment - end % kZipAlignment) % kZipAlignment);
}

std::size_t zip_header_size(const ZipOut& member) noexcept {
  return static_cast<std::size_t>(kLocalSize) + member.name.size() + (member.large ? 20U : 0U) + member.padding;
}

std::string zip_local_header(const ZipOut& member) {
  std::string out;
  put32(out, kLocalMagic);
  put_common(out, member, member.large, member.large ? kFull32 : member.stored, member.large ? kFull32 : member.size);
  put16(out, (member.large ? 20U : 0U) + member.padding);
  out += member.name;
  if (member.large) {
    put16(out, kZip64);
    put16(out, 16);
    put64(out, member.size);
    put64(out, member.stored);
  }
  if (member.padding > 0) {
    put16(out, kAlignmentField);
    put16(out, member.padding - 4U);
    put16(out, kZipAlignment);
    out.append(member.padding - 6U, '\0');
  }
  return out;
}

std::string zip_directory(std::span<const ZipOut> members, std::uint64_t at) {
  std::string out;
  for (const ZipOut& member : members) {
    std::string extra;
    for (const std::uint64_t value : {member.size, member.stored, member.header_at})
      if (value >= kFull32) put64(extra, value);
    put32(out, kEntryMagic);
    put16(out, (3U << 8) | 45U);  // made by Unix, for the mode
    put_common(out, member, member.large || !extra.empty(), narrow(member.stored), narrow(member.size));
    put16(out, extra.empty() ? 0 : extra.size() + 4);
    put16(out, 0);
    put16(out, 0);
    put16(out, 0);
    put32(out, kMode);
    put32(out, narrow(member.header_at));
    out += member.name;
    if (extra.empty()) continue;
    put16(out, kZip64);
    put16(out, extra.size());
    out += extra;
  }
  const std::uint64_t size = out.size();
  if (members.size() >= kFull16 || size >= kFull32 || at >= kFull32) {
    put32(out, kEnd64Magic);
    put64(out, kEnd64Size - 12);
    put16(out, (3U << 8) | 45U);
    put16(out, 45);
    put32(out, 0);
    put32(out, 0);
    put64(out, members.size());
    put64(out, members.size());
    put64(out, size);
    put64(out, at);
    put32(out, kLocatorMagic);
    put32(out, 0);
    put64(out, at + size);
    put32(out, 1);
  }
  put32(out, kEndMagic);
  put16(out, 0);
  put16(out, 0);
  put16(out, std::min<std::uint64_t>(members.size(), kFull16));
  put16(out, std::min<std::uint64_t>(members.size(), kFull16));
  put32(out, narrow(size));
  put32(out, narrow(at));
  put16(out, 0);
  return out;
}

}  // namespace weighbridge::core
