// SPDX-License-Identifier: Apache-2.0
// Reads the directory of a zip archive from its end, as APPNOTE.TXT 6.3 lays it out, and compares it with the local
// headers.
#include "core/zip.h"

#include <algorithm>
#include <array>
#include <utility>

#include "base/checked.h"
#include "base/endian.h"
#include "base/utf8.h"
#include "core/common_rules.h"
#include "core/encoding.h"
#include "core/words.h"

namespace weighbridge::core {
namespace {

constexpr std::uint32_t kEndMagic = 0x06054B50, kEntryMagic = 0x02014B50, kLocalMagic = 0x04034B50,
                        kEnd64Magic = 0x06064B50, kLocatorMagic = 0x07064B50;
constexpr std::uint64_t kEndSize = 22, kLocatorSize = 20, kEnd64Size = 56, kEntrySize = 46, kLocalSize = 30;
constexpr std::uint64_t kLongestComment = 0xFFFF;
constexpr std::uint32_t kFull32 = 0xFFFFFFFF, kFull16 = 0xFFFF;
constexpr std::uint16_t kZip64 = 1, kAlignmentField = 0xD935;
constexpr std::uint16_t kEncrypted = 1U << 0, kDescriptor = 1U << 3, kStrong = 1U << 6, kUtf8 = 1U << 11,
                        kMasked = 1U << 13;
constexpr std::uint16_t kStored = 0, kDeflated = 8;
// No deflate data decodes to more than this many times its bytes.
constexpr std::uint64_t kMostExpansion = 1032;
// 1980-01-01 00:00, the earliest time that an archive can state.
constexpr std::uint16_t kDate = (1U << 5) | 1U;
constexpr std::uint32_t kMode = 0100644U << 16;

template <class Number> Number at(std::string_view bytes, std::size_t place) {
  return base::load_le<Number>(bytes.data() + place);
}

std::string read(const Source& source, std::uint64_t offset, std::uint64_t length) {
  std::string out(base::to_size(length), '\0');
  if (!out.empty()) source.read_at(offset, std::as_writable_bytes(std::span(out)));
  return out;
}

std::string_view method_name(std::uint16_t method) noexcept {
  switch (method) {
    case 1: return "shrink";
    case 6: return "implode";
    case 9: return "deflate64";
    case 12: return "bzip2";
    case 14: return "lzma";
    case 93: return "zstd";
    case 95: return "xz";
    case 99: return "AES";
    default: return "";
  }
}

// What the end of an archive says about its directory.
struct End {
  std::uint64_t members = 0, size = 0, offset = 0;
  std::uint64_t at = 0;  // of the record, or of that with 64 bits
};

class Walk {
 public:
  Walk(const Source& source, const Limits& limits, const ZipRules& rules, Findings& findings, Draft& draft)
      : source_(source), limits_(limits), rules_(rules), findings_(findings), draft_(draft) {}

  std::optional<Zip> run() {
    const auto end = find_end();
    if (!end || !read_directory(*end) || !check_names() || !check_overlaps(end->offset)) return std::nullopt;
    check_local_headers();
    for (ZipMember& member : zip_.members)
      if (!member.broken) judge(member);
    return std::move(zip_);
  }

 private:
  bool fail(const Rule& rule, std::uint64_t offset, std::string expected = {}, std::string found = {}) {
    findings_.report(rule, {.offset = offset}, std::move(expected), std::move(found));
    return false;
  }

  std::optional<End> find_end() {
    const std::uint64_t size = source_.size(), length = std::min(size, kEndSize + kLongestComment);
    const std::string tail = read(source_, size - length, length);
    constexpr std::string_view kMagic("PK\x05\x06", 4);
    const std::size_t found = length < kEndSize ? std::string::npos : tail.rfind(kMagic, tail.size() - kEndSize);
    if (found == std::string::npos) {
      fail(rules_.end, size);
      return std::nullopt;
    }
    const std::uint64_t at_file = size - length + found;
    const std::string_view record = std::string_view(tail).substr(found);
    if (const std::uint64_t whole = kEndSize + at<std::uint16_t>(record, 20); whole != record.size()) {
      fail(rules_.end, at_file, "a file of " + bytes_text(at_file + whole), bytes_text(size));
      return std::nullopt;
    }
    End end{at<std::uint16_t>(record, 10), at<std::uint32_t>(record, 12), at<std::uint32_t>(record, 16), at_file};
    bool several = at<std::uint16_t>(record, 4) != 0 || at<std::uint16_t>(record, 6) != 0 ||
                   at<std::uint16_t>(record, 8) != at<std::uint16_t>(record, 10);
    if (at_file >= kLocatorSize) {
      const std::string locator = read(source_, at_file - kLocatorSize, kLocatorSize);
      if (at<std::uint32_t>(locator, 0) == kLocatorMagic && !read_end64(locator, record, end, several))
        return std::nullopt;
    }
    if (several) {
      fail(rules_.disks, at_file);
      return std::nullopt;
    }
    if (!base::fits(end.offset, end.size, end.at) || end.offset + end.size != end.at) {
      fail(rules_.directory, at_file, "the " + bytes_text(end.size) + " before offset " + std::to_string(end.at),
           "offset " + std::to_string(end.offset));
      return std::nullopt;
    }
    return end;
  }

  // The record with 64 bits, to which the locator before the record points.
  bool read_end64(std::string_view locator, std::string_view record, End& end, bool& several) {
    const std::uint64_t offset = at<std::uint64_t>(locator, 8), locator_at = end.at - kLocatorSize;
    if (!base::fits(offset, kEnd64Size, locator_at)) return fail(rules_.directory, locator_at);
    const std::string wide = read(source_, offset, kEnd64Size);
    const std::uint64_t length = at<std::uint64_t>(wide, 4);
    if (at<std::uint32_t>(wide, 0) != kEnd64Magic || length < kEnd64Size - 12 || length != locator_at - offset - 12)
      return fail(rules_.directory, offset);
    End out{at<std::uint64_t>(wide, 32), at<std::uint64_t>(wide, 40), at<std::uint64_t>(wide, 48), offset};
    // The narrow fields are full, or say the same.
    const auto agrees = [](std::uint64_t narrow, std::uint64_t full, std::uint64_t value) {
      return narrow == full || narrow == value;
    };
    if (!agrees(end.members, kFull16, out.members) || !agrees(end.size, kFull32, out.size) ||
        !agrees(end.offset, kFull32, out.offset))
      return fail(rules_.directory, offset, "the same as the record at " + std::to_string(end.at));
    const auto disk = [](std::uint64_t value) { return value != 0 && value != kFull16; };
    several = disk(at<std::uint16_t>(record, 4)) || disk(at<std::uint16_t>(record, 6)) ||
              at<std::uint32_t>(wide, 16) != 0 || at<std::uint32_t>(wide, 20) != 0 ||
              at<std::uint64_t>(wide, 24) != out.members || at<std::uint32_t>(locator, 4) != 0 ||
              at<std::uint32_t>(locator, 16) > 1;
    end = out;
    return true;
  }

  bool read_directory(const End& end) {
    if (end.size > limits_.header)
      return fail(rules::kLimitHeader, end.offset, "at most " + bytes_text(limits_.header), bytes_text(end.size));
    if (end.members > limits_.tensors)
      return fail(rules::kLimitTensors, end.offset, "at most " + std::to_string(limits_.tensors),
                  std::to_string(end.members));
    if (end.members > end.size / kEntrySize)
      return fail(rules_.directory, end.offset, std::to_string(end.members) + " members", bytes_text(end.size));
    const std::string_view text = zip_.directory = draft_.retain_header(read(source_, end.offset, end.size));
    zip_.members.reserve(base::to_size(end.members));
    std::size_t place = 0;
    for (std::uint64_t i = 0; i < end.members; ++i)
      if (!read_entry(text, place, end.offset)) return false;
    if (place != text.size())
      return fail(rules_.directory, end.offset + place, std::to_string(end.members) + " members",
                  bytes_text(text.size() - place) + " after them");
    return true;
  }

  bool read_entry(std::string_view text, std::size_t& place, std::uint64_t directory) {
    const std::uint64_t at_file = directory + place;
    const std::string_view rest = text.substr(place);
    if (rest.size() < kEntrySize || at<std::uint32_t>(rest, 0) != kEntryMagic) return fail(rules_.entry, at_file);
    const std::size_t name = at<std::uint16_t>(rest, 28), extra = at<std::uint16_t>(rest, 30),
                      comment = at<std::uint16_t>(rest, 32);
    if (rest.size() - kEntrySize < name + extra + comment)
      return fail(rules_.entry, at_file, {}, "it ends past the directory");
    ZipMember member;
    member.entry_at = at_file;
    member.name = rest.substr(kEntrySize, name);
    member.crc32 = at<std::uint32_t>(rest, 16);
    member.stored = at<std::uint32_t>(rest, 20);
    member.size = at<std::uint32_t>(rest, 24);
    member.header_at = at<std::uint32_t>(rest, 42);
    std::uint32_t disk = at<std::uint16_t>(rest, 34);
    if (!read_zip64(rest.substr(kEntrySize + name, extra), member, disk))
      return fail(rules_.entry, at_file, {}, "an extra field that ends past the extra fields, or lacks a size");
    if (disk != 0) return fail(rules_.disks, at_file);
    const std::uint16_t flags = at<std::uint16_t>(rest, 8), method = at<std::uint16_t>(rest, 10);
    member.encoding = method == kStored ? Encoding::raw : method == kDeflated ? Encoding::deflate : Encoding::unknown;
    if ((flags & (kEncrypted | kStrong | kMasked)) != 0) {
      member.unreadable = &rules_.encrypted;
    } else if (member.encoding == Encoding::unknown) {
      member.unreadable = &rules_.method;
      member.found = method_name(method);
      if (member.found.empty()) member.found = "method " + std::to_string(method);
    }
    flags_.push_back(flags);
    methods_.push_back(method);
    zip_.members.push_back(std::move(member));
    place += kEntrySize + name + extra + comment;
    return true;
  }

  // Takes the values that do not fit the entry's own fields from its extra fields.
  static bool read_zip64(std::string_view extra, ZipMember& member, std::uint32_t& disk) {
    std::string_view wide;
    bool found = false;
    while (extra.size() >= 4) {
      const std::uint16_t id = at<std::uint16_t>(extra, 0), length = at<std::uint16_t>(extra, 2);
      if (extra.size() - 4 < length) return false;
      if (id == kZip64 && !std::exchange(found, true)) wide = extra.substr(4, length);
      extra.remove_prefix(4U + length);
    }
    for (std::uint64_t* const field : {&member.size, &member.stored, &member.header_at}) {
      if (*field != kFull32) continue;
      if (!found) continue;  // the value itself
      if (wide.size() < 8) return false;
      *field = at<std::uint64_t>(wide, 0);
      wide.remove_prefix(8);
    }
    if (disk == kFull16 && found) {
      if (wide.size() < 4) return false;
      disk = at<std::uint32_t>(wide, 0);
    }
    return true;
  }

  bool check_names() {
    std::vector<std::uint32_t> order(zip_.members.size());
    for (std::uint32_t i = 0; i < order.size(); ++i) {
      order[i] = i;
      const ZipMember& member = zip_.members[i];
      if (!base::is_utf8(member.name)) return fail(rules_.name, member.entry_at);
      if (leaves_zip(member.name)) return fail(rules_.path, member.entry_at, {}, quoted(excerpt(member.name)));
    }
    std::sort(order.begin(), order.end(), [&](std::uint32_t a, std::uint32_t b) {
      return std::tie(zip_.members[a].name, a) < std::tie(zip_.members[b].name, b);
    });
    for (std::size_t i = 1; i < order.size(); ++i) {
      const ZipMember &first = zip_.members[order[i - 1]], &second = zip_.members[order[i]];
      if (first.name == second.name) return fail(rules_.duplicate, second.entry_at, {}, quoted(excerpt(second.name)));
    }
    return true;
  }

  // Each member lies between the local header that the directory names and the directory. How long a local header is
  // only the file says, so the shortest counts until it has been read.
  bool check_overlaps(std::uint64_t directory) {
    std::vector<std::uint32_t> order(zip_.members.size());
    for (std::uint32_t i = 0; i < order.size(); ++i) order[i] = i;
    std::sort(order.begin(), order.end(), [&](std::uint32_t a, std::uint32_t b) {
      return std::tie(zip_.members[a].header_at, a) < std::tie(zip_.members[b].header_at, b);
    });
    end_of_.assign(zip_.members.size(), directory);
    std::uint64_t end = 0;
    for (std::size_t i = 0; i < order.size(); ++i) {
      const ZipMember& member = zip_.members[order[i]];
      const auto after = base::checked_add(member.stored, kLocalSize + member.name.size());
      if (!after || !base::fits(member.header_at, *after, directory))
        return fail(rules_.entry, member.entry_at, "to end before the directory",
                    bytes_text(member.stored) + " at offset " + std::to_string(member.header_at));
      if (member.header_at < end) return fail(rules_.overlap, member.entry_at, {}, quoted(excerpt(member.name)));
      end = member.header_at + *after;
      if (i > 0) end_of_[order[i - 1]] = member.header_at;
    }
    return true;
  }

  void check_local_headers() {
    constexpr std::uint64_t kTogether = std::uint64_t{1} << 20;
    std::vector<ReadRange> ranges;
    for (std::size_t first = 0; first < zip_.members.size();) {
      std::uint64_t total = 0;
      std::size_t last = first;
      for (; last < zip_.members.size() && (last == first || total < kTogether); ++last)
        total += kLocalSize + zip_.members[last].name.size();
      std::string bytes(base::to_size(total), '\0');
      ranges.clear();
      std::size_t place = 0;
      for (std::size_t i = first; i < last; ++i) {
        const std::size_t length = base::to_size(kLocalSize + zip_.members[i].name.size());
        ranges.push_back({zip_.members[i].header_at, std::as_writable_bytes(std::span(bytes)).subspan(place, length)});
        place += length;
      }
      source_.read(ranges);
      place = 0;
      for (; first < last; ++first) {
        const std::size_t length = base::to_size(kLocalSize + zip_.members[first].name.size());
        check_local(first, std::string_view(bytes).substr(place, length));
        place += length;
      }
    }
  }

  void check_local(std::size_t i, std::string_view header) {
    ZipMember& member = zip_.members[i];
    const auto wrong = [&](std::string expected, std::string found) {
      member.broken = true;
      findings_.report(rules_.local, {.offset = member.header_at, .tensor = member.name}, std::move(expected),
                       std::move(found));
    };
    if (at<std::uint32_t>(header, 0) != kLocalMagic) return wrong("a local header", "other bytes");
    const std::uint16_t flags = at<std::uint16_t>(header, 6), name = at<std::uint16_t>(header, 26),
                        extra = at<std::uint16_t>(header, 28);
    if (name != member.name.size() || header.substr(kLocalSize) != member.name)
      return wrong("the same name", "another");
    if (at<std::uint16_t>(header, 8) != methods_[i] || ((flags ^ flags_[i]) & kEncrypted) != 0)
      return wrong("the same method and encryption", "others");
    // A writer that cannot seek puts crc and sizes behind the data, and a large size is in an extra field.
    const std::uint32_t crc = at<std::uint32_t>(header, 14), stored = at<std::uint32_t>(header, 18),
                        size = at<std::uint32_t>(header, 22);
    const auto differs = [&](std::uint32_t local, std::uint64_t value) {
      return local != value && local != kFull32 && !((flags & kDescriptor) != 0 && local == 0);
    };
    if (differs(stored, member.stored) || differs(size, member.size) ||
        (crc != member.crc32 && !((flags & kDescriptor) != 0 && crc == 0)))
      return wrong("the sizes and the CRC-32 of the directory", "others");
    member.offset = member.header_at + kLocalSize + name + extra;
    if (!base::fits(member.offset, member.stored, end_of_[i]))
      return wrong("to end at offset " + std::to_string(end_of_[i]) + " or before",
                   bytes_text(member.stored) + " at offset " + std::to_string(member.offset));
  }

  void judge(ZipMember& member) {
    if (member.unreadable != nullptr) return;
    const bool possible = member.encoding == Encoding::raw ? member.size == member.stored
                                                           : member.size / kMostExpansion <= member.stored &&
                                                                 (member.size == 0 || member.stored > 0);
    if (possible) return;
    member.broken = true;
    findings_.report(rules_.size, {.offset = member.entry_at, .tensor = member.name}, {},
                     bytes_text(member.stored) + " for " + std::to_string(member.size));
  }

  const Source& source_;
  const Limits& limits_;
  const ZipRules& rules_;
  Findings& findings_;
  Draft& draft_;
  Zip zip_;
  std::vector<std::uint16_t> flags_, methods_;  // of the members
  std::vector<std::uint64_t> end_of_;           // where each must end
};

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
  put16(to, is_ascii(member.name) ? 0 : kUtf8);
  put16(to, member.deflated ? kDeflated : kStored);
  put16(to, 0);
  put16(to, kDate);
  put32(to, member.crc32);
  put32(to, stored);
  put32(to, size);
  put16(to, member.name.size());
}

}  // namespace

bool leaves_zip(std::string_view name) noexcept {
  if (name.empty() || name.front() == '/' || name.find_first_of(std::string_view("\\\0", 2)) != name.npos) return true;
  if (name.size() > 1 && name[1] == ':') return true;
  while (!name.empty()) {
    const std::size_t end = std::min(name.find('/'), name.size());
    if (name.substr(0, end) == "..") return true;
    name.remove_prefix(std::min(end + 1, name.size()));
  }
  return false;
}

bool is_zip_name(std::string_view name) noexcept {
  return name.size() < kFull16 && base::is_utf8(name) && !leaves_zip(name);
}

std::optional<Zip> read_zip(const Source& source, const Limits& limits, const ZipRules& rules, Findings& findings,
                            Draft& draft) {
  return Walk(source, limits, rules, findings, draft).run();
}

std::string_view first_zip_member(std::string_view head) noexcept {
  if (head.size() < kLocalSize || !head.starts_with(kZipMember)) return {};
  const std::size_t name = at<std::uint16_t>(head, 26);
  return head.size() - kLocalSize < name ? std::string_view() : head.substr(kLocalSize, name);
}

std::string zip_front(const Source& source, const ZipMember& member, std::size_t most, const Context& context,
                      std::string& fault) {
  if (member.encoding == Encoding::raw)
    return read(source, member.offset, std::min<std::uint64_t>(most, member.stored));
  std::string out;
  fault = read_zip_member(source, member, context, [&](std::span<const std::byte> piece) {
    const std::size_t n = std::min(piece.size(), most - out.size());
    out.append(reinterpret_cast<const char*>(piece.data()), n);
    return out.size() < most;
  });
  return out;
}

std::string read_zip_member(const Source& source, const ZipMember& member, const Context& context,
                            const std::function<bool(std::span<const std::byte>)>& sink) {
  std::uint64_t taken = 0;
  const auto pull = [&](std::span<std::byte> room) -> std::size_t {
    const auto n = static_cast<std::size_t>(std::min<std::uint64_t>(room.size(), member.stored - taken));
    if (n > 0) source.read_at(member.offset + taken, room.first(n));
    taken += n;
    return n;
  };
  const codecs::LentDecoder decoder(*codec_of(member.encoding));
  const codecs::DecodeResult result = decoder->decode(member.size, context.limits.memory, pull, sink);
  return result.ok() || result.fault == codecs::DecodeFault::stopped ? std::string() : result.sentence;
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
