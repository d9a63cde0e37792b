// SPDX-License-Identifier: Apache-2.0
// The directory of a zip archive, for containers that are zip archives: npz, .pt and others. Knows nothing about what
// the members hold. A format passes the rules by which errors are reported.
#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/record.h"
#include "core/model/draft.h"
#include "core/model/progress.h"
#include "core/reading/findings.h"
#include "weighbridge/context.h"
#include "weighbridge/model.h"
#include "weighbridge/source.h"

namespace weighbridge::core {

// Bytes that a zip archive begins with: a member, or the end of an empty archive.
inline constexpr std::string_view kZipMember{"PK\x03\x04", 4}, kZipEmpty{"PK\x05\x06", 4};

// The rules of a format for its archive. After an error of the whole file, nothing is read.
struct ZipRules {
  // the whole file
  const Rule& end;        // the end record of the directory is missing, or something follows it
  const Rule& disks;      // one disk of a multi-disk archive
  const Rule& directory;  // the directory is not where its end record says
  const Rule& entry;      // an entry of it is malformed
  const Rule& name;       // a name is not UTF-8
  const Rule& path;       // a name is absolute, or leads out of the folder with ".."
  const Rule& duplicate;  // two members have one name
  const Rule& overlap;    // two members share bytes
  // one member
  const Rule& local;      // the local header is missing, or contradicts the directory
  const Rule& size;       // the stored bytes cannot decode to the stated size
  const Rule& encrypted;  // unsupported
  const Rule& method;     // unsupported
};

// For archives that are checked elsewhere, or not at all.
inline constexpr Rule kQuietRule{"zip/quiet", Rule::Reach::file, Severity::error, "", ""};
inline constexpr ZipRules kQuietZip{.end = kQuietRule,
                                    .disks = kQuietRule,
                                    .directory = kQuietRule,
                                    .entry = kQuietRule,
                                    .name = kQuietRule,
                                    .path = kQuietRule,
                                    .duplicate = kQuietRule,
                                    .overlap = kQuietRule,
                                    .local = kQuietRule,
                                    .size = kQuietRule,
                                    .encrypted = kQuietRule,
                                    .method = kQuietRule};

struct ZipMember {
  std::string_view name{};      // in the directory's text
  std::uint64_t entry_at = 0;   // of its entry in the directory
  std::uint64_t header_at = 0;  // of the local header
  std::uint64_t offset = 0;     // of the stored bytes; 0: of a broken member, and not known
  std::uint64_t stored = 0;     // bytes
  std::uint64_t size = 0;       // bytes once decoded
  std::uint32_t crc32 = 0;      // of the decoded bytes
  Encoding encoding = Encoding::raw;
  const Rule* unreadable = nullptr;  // encrypted, method; null: its bytes can be read
  std::string found{};               // for a finding by that rule
  bool broken = false;               // has been reported
  bool folder_attribute = false;     // the directory says that it is a folder
  bool utf8_flag = false;            // the directory says that its name is UTF-8

  bool is_folder() const noexcept { return size == 0 && name.ends_with('/'); }
};

struct Zip {
  std::string_view directory{};      // its text, which `names` of the members are in
  std::vector<ZipMember> members{};  // in the order of the directory
  std::string comment{};             // of the archive
};

// Reads the directory, which the draft retains as the header, and the local header of each member. The sizes of the
// directory count; those of a local header may be absent. nullopt: it cannot be read, which its errors have been
// reported.
std::optional<Zip> read_zip(const Source&, const Limits&, const ZipRules&, Findings&, Draft&);

// Where the archive begins whose end record is at `end`, by the sizes in it; nullopt: there is none. Programs that look
// for an archive from the end of a file find it after other bytes, too.
std::optional<std::uint64_t> zip_begin(const Source&, std::uint64_t end);

// The names in the first 64 KiB of the directory, for detection. Empty: the file is not an archive, or its directory
// cannot be found.
std::vector<std::string> zip_names(const Source&);

// The name of the member that a file begins with, if `head` has all of it; else empty.
std::string_view first_zip_member(std::string_view head) noexcept;

// The first bytes of a member once decoded, at least `maximum` if it has so many. `fault` is what its decoder says,
// empty if nothing is wrong.
std::string zip_front(const Source&, const ZipMember&, std::size_t maximum, const Context&, std::string& fault);

// [reads] Passes the decoded bytes of a member to the sink. Returns what is wrong with its encoding; empty: nothing.
std::string read_zip_member(const Source&, const ZipMember&, const Context&,
                            const std::function<bool(std::span<const std::byte>)>& sink);

// For checking content: the directory again, without findings, because opening the file reported them. `names` holds
// its text.
Zip read_zip_again(const Source&, const Limits&, const ZipRules&, Draft& names);

// Whether its bytes can be checked: they are readable, and within limits.decoded.
bool can_check(const ZipMember&, const Limits&) noexcept;

// The rules about the bytes of a member.
struct ZipMemberRules {
  const Rule& encoding;  // they cannot be decoded
  const Rule& crc;       // they do not have the CRC-32 of the directory
};
// [reads] Decodes a whole member, reports its stored bytes as progress, and passes each piece to `look`. nullopt:
// nothing is wrong.
std::optional<Finding> check_zip_member(const Source&, const ZipMember&, const ZipMemberRules&, const At&, Progress&,
                                        const std::function<void(std::span<const std::byte>)>& look = {});

// For writing. If a member's data must begin at a multiple of kZipAlignment, an extra field pads its header.
inline constexpr std::uint64_t kZipAlignment = 64;

struct ZipOut {
  std::string name{};
  std::uint64_t header_at = 0;
  std::uint64_t stored = 0, size = 0;
  std::uint32_t crc32 = 0;
  std::uint16_t method = 0;   // of the format: stored
  std::uint16_t flags = 0;    // other than the flag for a name that is not ASCII
  bool large = false;         // with 64-bit sizes in the local header, decided before they are known
  std::uint16_t padding = 0;  // bytes of the extra field that aligns the data; 0: none
};

// The padding of a local header at `header_at` so that what follows it begins at a multiple of kZipAlignment.
std::uint16_t zip_padding(const ZipOut&);
std::size_t zip_header_size(const ZipOut&) noexcept;
std::string zip_local_header(const ZipOut&);
// The directory, which begins at `at`, and its end record. The same members always give the same bytes: time stamps are
// fixed.
std::string zip_directory(std::span<const ZipOut>, std::uint64_t at, std::string_view comment = {});
// Whether a member may have this name.
bool is_zip_name(std::string_view) noexcept;
// Whether a name leads out of the folder into which the archive is unpacked.
bool leaves_zip(std::string_view name) noexcept;

}  // namespace weighbridge::core

namespace weighbridge::core::zip {

// The records of a zip archive, as APPNOTE.TXT 6.3 lays them out: what reading and writing share.

WB_RECORD(EndRecord, (u32, signature, hex), (u16, disk, "number of this disk"),
          (u16, directory_disk, "disk with the directory"), (u16, members_here, "members on this disk"), (u16, members),
          (u32, size, "size of the directory"), (u32, offset, "offset of the directory"),
          (u16, comment, "length of the comment"));
WB_RECORD(Locator, (u32, signature), (u32, disk), (u64, offset), (u32, disks));
WB_RECORD(End64Record, (u32, signature), (u64, length), (u16, made_by), (u16, needed), (u32, disk),
          (u32, directory_disk), (u64, members_here), (u64, members), (u64, size), (u64, offset));
WB_RECORD(EntryRecord, (u32, signature, hex), (u16, made_by, "version made by"), (u16, needed, "version needed"),
          (u16, flags, hex), (u16, method), (u16, time), (u16, date), (u32, crc32, hex, "CRC-32"),
          (u32, stored, "stored size"), (u32, size), (u16, name, "length of the name"),
          (u16, extra, "length of the extra fields"), (u16, comment, "length of the comment"), (u16, disk),
          (u16, internal, hex, "internal attributes"), (u32, external, hex, "external attributes"),
          (u32, header_at, "offset of the local header"));
WB_RECORD(LocalRecord, (u32, signature, hex), (u16, needed, "version needed"), (u16, flags, hex), (u16, method),
          (u16, time), (u16, date), (u32, crc32, hex, "CRC-32"), (u32, stored, "stored size"), (u32, size),
          (u16, name, "length of the name"), (u16, extra, "length of the extra fields"));
inline constexpr std::uint32_t kEndMagic = 0x06054B50, kEntryMagic = 0x02014B50, kLocalMagic = 0x04034B50,
                               kEnd64Magic = 0x06064B50, kLocatorMagic = 0x07064B50;
inline constexpr std::uint64_t kEndSize = 22, kLocatorSize = 20, kEnd64Size = 56, kEntrySize = 46, kLocalSize = 30,
                               kLongestComment = 0xFFFF;
static_assert(base::record_size<EndRecord>() == kEndSize && base::record_size<Locator>() == kLocatorSize &&
              base::record_size<End64Record>() == kEnd64Size && base::record_size<EntryRecord>() == kEntrySize &&
              base::record_size<LocalRecord>() == kLocalSize);
inline constexpr std::uint32_t kFull32 = 0xFFFFFFFF, kFull16 = 0xFFFF;
inline constexpr std::uint16_t kZip64 = 1;
inline constexpr std::uint64_t kLocalZip64 = 20;  // of the extra field with both sizes in 64 bits
inline constexpr std::uint16_t kStored = 0, kDeflated = 8;
inline constexpr std::uint16_t kEncrypted = 1U << 0, kDescriptor = 1U << 3, kUtf8 = 1U << 11;

// Finds the first extra field with numbers of 64 bits. False: a field ends past the others.
bool find_zip64(std::string_view extra, std::string_view& wide, bool& found);

}  // namespace weighbridge::core::zip
