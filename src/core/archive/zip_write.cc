// SPDX-License-Identifier: Apache-2.0
// The headers and the directory of an archive that is written.
#include <algorithm>

#include "base/endian.h"
#include "base/utf8.h"
#include "core/archive/zip.h"

namespace weighbridge::core {
namespace {

using namespace zip;

constexpr std::uint16_t kAlignmentField = 0xD935;
// 1980-01-01 00:00, the earliest time that an archive can state.
constexpr std::uint16_t kDate = (1U << 5) | 1U;
constexpr std::uint32_t kMode = 0100644U << 16;

std::uint16_t short_of(std::uint64_t value) noexcept { return static_cast<std::uint16_t>(value); }
std::uint32_t narrow(std::uint64_t value) noexcept {
  return static_cast<std::uint32_t>(std::min<std::uint64_t>(value, kFull32));
}

bool is_ascii(std::string_view text) noexcept {
  return std::ranges::none_of(text, [](char c) { return static_cast<unsigned char>(c) >= 0x80; });
}

// What a local header and an entry of the directory have in common.
template <class Record>
Record record_of(const ZipOut& member, std::uint32_t signature, bool wide, std::uint32_t stored, std::uint32_t size) {
  Record out;
  out.signature = signature;
  out.needed = wide ? 45 : 20;
  out.flags = short_of(member.flags | (is_ascii(member.name) ? 0U : kUtf8));
  out.method = member.method;
  out.date = kDate;
  out.crc32 = member.crc32;
  out.stored = stored;
  out.size = size;
  out.name = short_of(member.name.size());
  return out;
}

}  // namespace

bool is_zip_name(std::string_view name) noexcept {
  return name.size() < kFull16 && base::is_utf8(name) && !leaves_zip(name);
}

std::uint16_t zip_padding(const ZipOut& member) {
  constexpr std::uint64_t kMinPadding = 6;  // id, length, the alignment
  const std::uint64_t end =
      member.header_at + kLocalSize + member.name.size() + (member.large ? 20U : 0U) + kMinPadding;
  return static_cast<std::uint16_t>(kMinPadding + (kZipAlignment - end % kZipAlignment) % kZipAlignment);
}

std::size_t zip_header_size(const ZipOut& member) noexcept {
  return static_cast<std::size_t>(kLocalSize) + member.name.size() + (member.large ? 20U : 0U) + member.padding;
}

std::string zip_local_header(const ZipOut& member) {
  const auto size = [&](std::uint64_t bytes) { return member.large ? kFull32 : static_cast<std::uint32_t>(bytes); };
  auto record = record_of<LocalRecord>(member, kLocalMagic, member.large, size(member.stored), size(member.size));
  record.extra = short_of((member.large ? kLocalZip64 : 0U) + member.padding);
  std::string out = base::store_record(record) + member.name;
  if (member.large) base::append_fields(out, kZip64, std::uint16_t{16}, member.size, member.stored);
  if (member.padding > 0) {
    base::append_fields(out, kAlignmentField, short_of(member.padding - 4U), short_of(kZipAlignment));
    out.append(member.padding - 6U, '\0');
  }
  return out;
}

std::string zip_directory(std::span<const ZipOut> members, std::uint64_t at, std::string_view comment) {
  constexpr std::uint16_t kMadeBy = (3U << 8) | 45U;  // by Unix, for the mode
  std::string out;
  for (const ZipOut& member : members) {
    std::string extra;
    for (const std::uint64_t value : {member.size, member.stored, member.header_at})
      if (value >= kFull32) base::append_field(extra, value);
    auto record = record_of<EntryRecord>(member, kEntryMagic, member.large || !extra.empty(), narrow(member.stored),
                                         narrow(member.size));
    record.made_by = kMadeBy;
    record.extra = short_of(extra.empty() ? 0 : extra.size() + 4);
    record.external = kMode;
    record.header_at = narrow(member.header_at);
    base::append_record(out, record);
    out += member.name;
    if (!extra.empty()) base::append_fields(out, kZip64, short_of(extra.size()));
    out += extra;
  }
  const std::uint64_t size = out.size(), count = members.size();
  if (count >= kFull16 || size >= kFull32 || at >= kFull32) {
    base::append_record(out, End64Record{.signature = kEnd64Magic,
                                         .length = kEnd64Size - 12,
                                         .made_by = kMadeBy,
                                         .needed = 45,
                                         .members_here = count,
                                         .members = count,
                                         .size = size,
                                         .offset = at});
    base::append_record(out, Locator{.signature = kLocatorMagic, .offset = at + size, .disks = 1});
  }
  const std::uint16_t few = short_of(std::min<std::uint64_t>(count, kFull16));
  base::append_record(out, EndRecord{.signature = kEndMagic,
                                     .members_here = few,
                                     .members = few,
                                     .size = narrow(size),
                                     .offset = narrow(at),
                                     .comment = short_of(comment.size())});
  return out += comment;
}

}  // namespace weighbridge::core
