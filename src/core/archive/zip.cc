// SPDX-License-Identifier: Apache-2.0
// Reads the directory of a zip archive from its end, as APPNOTE.TXT 6.3 lays it out, and compares it with the local
// headers. One file, because each check needs what the walk has read of all members.
#include "core/archive/zip.h"

#include <algorithm>
#include <utility>

#include "base/checked.h"
#include "base/endian.h"
#include "base/order.h"
#include "base/utf8.h"
#include "codecs/checksum.h"
#include "core/model/words.h"
#include "core/payload/payload.h"
#include "core/reading/rules.h"
#include "io/read.h"

namespace weighbridge::core {
namespace {

using namespace zip;

constexpr std::uint16_t kStrong = 1U << 6, kMasked = 1U << 13;
constexpr std::uint32_t kFolderAttribute = 0x10;  // of MS-DOS, in the external attributes
// No deflate data decodes to more than this many times its bytes.
constexpr std::uint64_t kMaxExpansion = 1032;

template <class Number> Number at(std::string_view bytes, std::size_t place) {
  return base::load_le<Number>(bytes.data() + place);
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

  // The names of the first entries.
  std::vector<std::string> names() {
    constexpr std::uint64_t kMaxRead = std::uint64_t{64} << 10;  // some hundred names, enough to recognize a format
    std::vector<std::string> out;
    const auto end = find_end();
    if (!end) return out;
    const std::string text = io::text_of(source_, end->offset, std::min(end->size, kMaxRead));
    std::size_t place = 0;
    while (read_entry(text, place, end->offset)) out.emplace_back(zip_.members.back().name);
    return out;
  }

  std::optional<Zip> run() {
    const auto end = find_end();
    if (!end || !read_directory(*end) || !check_names() || !check_overlaps(end->offset)) return std::nullopt;
    check_local_headers();
    for (ZipMember& member : zip_.members)
      if (!member.broken) judge(member);
    return std::move(zip_);
  }

 private:
  bool fail(const Rule& rule, std::uint64_t offset, const Said& expected = {}, const Said& found = {}) {
    return findings_.fail(rule, {.offset = offset}, expected, found);
  }

  std::optional<End> find_end() {
    const std::uint64_t size = source_.size(), length = std::min(size, kEndSize + kLongestComment);
    const std::string tail = io::text_of(source_, size - length, length);
    constexpr std::string_view kMagic("PK\x05\x06", 4);
    const std::size_t found = length < kEndSize ? std::string::npos : tail.rfind(kMagic, tail.size() - kEndSize);
    if (found == std::string::npos) {
      fail(rules_.end, size);
      return std::nullopt;
    }
    const std::uint64_t at_file = size - length + found;
    const std::string_view bytes = std::string_view(tail).substr(found);
    findings_.record<EndRecord>(Span::Kind::structure, at_file, bytes, "end of the directory");
    const auto record = base::load_record<EndRecord>(bytes.data());
    if (const std::uint64_t whole = kEndSize + record.comment; whole != bytes.size()) {
      fail(rules_.end, at_file, {"a file of ", in_bytes(at_file + whole)}, in_bytes(size));
      return std::nullopt;
    }
    zip_.comment = bytes.substr(kEndSize);
    End end{record.members, record.size, record.offset, at_file};
    bool several = record.disk != 0 || record.directory_disk != 0 || record.members_here != record.members;
    if (at_file >= kLocatorSize) {
      const auto locator = io::record_of<Locator>(source_, at_file - kLocatorSize);
      if (locator.signature == kLocatorMagic && !read_end64(locator, record, end, several)) return std::nullopt;
    }
    if (several) {
      fail(rules_.disks, at_file);
      return std::nullopt;
    }
    if (!base::fits(end.offset, end.size, end.at) || end.offset + end.size != end.at) {
      fail(rules_.directory, at_file, {"the ", in_bytes(end.size), " before offset ", end.at}, {"offset ", end.offset});
      return std::nullopt;
    }
    return end;
  }

  // The record with 64 bits, to which the locator before the record points.
  bool read_end64(const Locator& locator, const EndRecord& record, End& end, bool& several) {
    const std::uint64_t offset = locator.offset, locator_at = end.at - kLocatorSize;
    if (!base::fits(offset, kEnd64Size, locator_at)) return fail(rules_.directory, locator_at);
    const auto wide = io::record_of<End64Record>(source_, offset);
    findings_.span(Span::Kind::structure, offset, locator_at, "end of the directory, 64 bits");
    findings_.span(Span::Kind::structure, locator_at, end.at, "locator of the end, 64 bits");
    if (wide.signature != kEnd64Magic || wide.length < kEnd64Size - 12 || wide.length != locator_at - offset - 12)
      return fail(rules_.directory, offset);
    End out{wide.members, wide.size, wide.offset, offset};
    // The narrow fields are full, or say the same.
    const auto agrees = [](std::uint64_t narrow, std::uint64_t full, std::uint64_t value) {
      return narrow == full || narrow == value;
    };
    if (!agrees(end.members, kFull16, out.members) || !agrees(end.size, kFull32, out.size) ||
        !agrees(end.offset, kFull32, out.offset))
      return fail(rules_.directory, offset, {"the same as the record at ", end.at});
    const auto disk = [](std::uint64_t value) { return value != 0 && value != kFull16; };
    several = disk(record.disk) || disk(record.directory_disk) || wide.disk != 0 || wide.directory_disk != 0 ||
              wide.members_here != wide.members || locator.disk != 0 || locator.disks > 1;
    end = out;
    return true;
  }

  bool read_directory(const End& end) {
    if (end.size > limits_.header)
      return fail(rules::kLimitHeader, end.offset, at_most(in_bytes(limits_.header)), in_bytes(end.size));
    if (end.members > limits_.tensors)
      return fail(rules::kLimitTensors, end.offset, at_most(limits_.tensors), end.members);
    if (end.members > end.size / kEntrySize)
      return fail(rules_.directory, end.offset, {end.members, " members"}, in_bytes(end.size));
    const std::string_view text = zip_.directory = draft_.retain_header(io::text_of(source_, end.offset, end.size));
    findings_.span(Span::Kind::structure, end.offset, end.at, "directory");
    zip_.members.reserve(base::to_size(end.members));
    std::size_t place = 0;
    for (std::uint64_t i = 0; i < end.members; ++i)
      if (!read_entry(text, place, end.offset)) return false;
    if (place != text.size())
      return fail(rules_.directory, end.offset + place, {end.members, " members"},
                  {in_bytes(text.size() - place), " after them"});
    return true;
  }

  bool read_entry(std::string_view text, std::size_t& place, std::uint64_t directory) {
    const std::uint64_t at_file = directory + place;
    const std::string_view rest = text.substr(place);
    if (rest.size() < kEntrySize) return fail(rules_.entry, at_file);
    const auto record = base::load_record<EntryRecord>(rest.data());
    if (record.signature != kEntryMagic) return fail(rules_.entry, at_file);
    const std::size_t whole = std::size_t{kEntrySize} + record.name + record.extra + record.comment;
    if (rest.size() < whole) return fail(rules_.entry, at_file, {}, "it ends past the directory");
    ZipMember member;
    member.entry_at = at_file;
    member.name = rest.substr(kEntrySize, record.name);
    if (findings_.wanted(at_file, at_file + whole)) {
      findings_.record<EntryRecord>(Span::Kind::entry, at_file, rest.substr(0, whole), member.name);
      report_variable(at_file + kEntrySize, member.name, record.extra, record.comment);
    }
    member.crc32 = record.crc32;
    member.stored = record.stored;
    member.size = record.size;
    member.header_at = record.header_at;
    member.folder_attribute = (record.external & kFolderAttribute) != 0;
    std::uint32_t disk = record.disk;
    if (!read_zip64(rest.substr(kEntrySize + record.name, record.extra), member, disk))
      return fail(rules_.entry, at_file, {}, "an extra field that ends past the extra fields, or lacks a size");
    if (disk != 0) return fail(rules_.disks, at_file);
    const auto flags = record.flags, method = record.method;
    member.encoding = method == kStored ? Encoding::raw : method == kDeflated ? Encoding::deflate : Encoding::unknown;
    member.utf8_flag = (flags & kUtf8) != 0;
    if ((flags & (kEncrypted | kStrong)) != 0) {
      member.unreadable = &rules_.encrypted;
    } else if (member.encoding == Encoding::unknown) {
      member.unreadable = &rules_.method;
      member.found = method_name(method);
      if (member.found.empty()) member.found = "method " + std::to_string(method);
    }
    // It goes with an encrypted directory, which this is not. Python reads such a member, and other readers do not.
    if ((flags & kMasked) != 0 && member.unreadable != &rules_.encrypted)
      return fail(rules_.entry, at_file, {}, "a flag that hides local headers, of a member that is not encrypted");
    flags_.push_back(flags);
    methods_.push_back(method);
    zip_.members.push_back(std::move(member));
    place += whole;
    return true;
  }

  void report_variable(std::uint64_t at_file, std::string_view name, std::uint64_t extra, std::uint64_t comment) const {
    const std::uint64_t extra_at = at_file + name.size();
    findings_.span(Span::Kind::field, at_file, extra_at, "name", name);
    findings_.span(Span::Kind::field, extra_at, extra_at + extra, "extra fields");
    findings_.span(Span::Kind::field, extra_at + extra, extra_at + extra + comment, "comment");
  }

  // Takes the values that do not fit the entry's own fields from its extra fields.
  static bool read_zip64(std::string_view extra, ZipMember& member, std::uint32_t& disk) {
    std::string_view wide;
    bool found = false;
    if (!find_zip64(extra, wide, found)) return false;
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
    for (const ZipMember& member : zip_.members) {
      if (!base::is_utf8(member.name)) return fail(rules_.name, member.entry_at);
      if (leaves_zip(member.name)) return fail(rules_.path, member.entry_at, {}, in_quotes(member.name));
    }
    const auto order =
        base::order_by(zip_.members.size(), [&](std::uint32_t i) { return std::string_view(zip_.members[i].name); });
    for (std::size_t i = 1; i < order.size(); ++i) {
      const ZipMember &first = zip_.members[order[i - 1]], &second = zip_.members[order[i]];
      if (first.name == second.name) return fail(rules_.duplicate, second.entry_at, {}, in_quotes(second.name));
    }
    return true;
  }

  // Each member lies between the local header that the directory names and the directory. How long a local header is
  // only the file says, so the shortest counts until it has been read.
  bool check_overlaps(std::uint64_t directory) {
    const auto order = base::order_by(zip_.members.size(), [&](std::uint32_t i) { return zip_.members[i].header_at; });
    end_of_.assign(zip_.members.size(), directory);
    std::uint64_t end = 0;
    for (std::size_t i = 0; i < order.size(); ++i) {
      const ZipMember& member = zip_.members[order[i]];
      const auto after = base::checked_add(member.stored, kLocalSize + member.name.size());
      if (!after || !base::fits(member.header_at, *after, directory))
        return fail(rules_.entry, member.entry_at, "to end before the directory",
                    {in_bytes(member.stored), " at offset ", member.header_at});
      if (member.header_at < end) return fail(rules_.overlap, member.entry_at, {}, in_quotes(member.name));
      end = member.header_at + *after;
      if (i > 0) end_of_[order[i - 1]] = member.header_at;
    }
    return true;
  }

  // Of a member: its local header, its name, and the extra field with sizes of 64 bits if that comes first. The record
  // of the directory's end is longer than that field, so the file has these bytes.
  std::size_t local_bytes(std::size_t i) const {
    return base::to_size(kLocalSize + zip_.members[i].name.size() + kLocalZip64);
  }

  void check_local_headers() {
    constexpr std::uint64_t kTogether = std::uint64_t{1} << 20;
    std::vector<ReadRange> ranges;
    for (std::size_t first = 0; first < zip_.members.size();) {
      std::uint64_t total = 0;
      std::size_t last = first;
      for (; last < zip_.members.size() && (last == first || total < kTogether); ++last) total += local_bytes(last);
      std::string bytes(base::to_size(total), '\0');
      ranges.clear();
      std::size_t place = 0;
      for (std::size_t i = first; i < last; place += local_bytes(i++))
        ranges.push_back(
            {zip_.members[i].header_at, std::as_writable_bytes(std::span(bytes)).subspan(place, local_bytes(i))});
      source_.read(ranges);
      place = 0;
      for (; first < last; place += local_bytes(first++))
        check_local(first, std::string_view(bytes).substr(place, local_bytes(first)));
    }
  }

  void check_local(std::size_t i, std::string_view header) {
    ZipMember& member = zip_.members[i];
    const auto wrong = [&](const Said& expected, const Said& found) {
      member.broken = true;
      findings_.report(rules_.local, {.offset = member.header_at, .tensor = member.name}, expected, found);
    };
    const auto record = base::load_record<LocalRecord>(header.data());
    if (record.signature != kLocalMagic) return wrong("a local header", "other bytes");
    const std::uint16_t flags = record.flags, name = record.name, extra = record.extra;
    const std::uint64_t data = member.header_at + kLocalSize + name + extra;
    const bool inside = base::fits(data, member.stored, end_of_[i]);
    if (inside) member.offset = data;
    if (const std::uint64_t end = data + (inside ? member.stored : 0); findings_.wanted(member.header_at, end_of_[i])) {
      findings_.span(Span::Kind::entry, member.header_at, end, member.name,
                     member.encoding == Encoding::deflate ? "a member, compressed by deflate" : "a member");
      findings_.record<LocalRecord>(Span::Kind::entry, member.header_at, header.substr(0, kLocalSize), "local header");
      report_variable(member.header_at + kLocalSize, member.name, extra, 0);
      // What a writer that cannot seek puts after the data: CRC-32 and sizes, with a signature or without.
      if ((flags & kDescriptor) != 0)
        findings_.span(Span::Kind::entry, end, std::min(end + 24, end_of_[i]), "data descriptor", member.name);
    }
    if (name != member.name.size() || header.substr(kLocalSize, name) != member.name)
      return wrong("the same name", "another");
    if (record.method != methods_[i] || ((flags ^ flags_[i]) & kEncrypted) != 0)
      return wrong("the same method and encryption", "others");
    if (!inside)
      return wrong({"to end at offset ", end_of_[i], " or before"}, {in_bytes(member.stored), " at offset ", data});
    std::uint64_t stored = record.stored, size = record.size;
    if ((stored == kFull32 || size == kFull32) &&
        !read_local_zip64(member, header.substr(kLocalSize + name), extra, stored, size))
      return wrong("an extra field with the sizes in 64 bits", "none, or one that ends past the extra fields");
    // A writer that cannot seek puts crc and sizes after the data.
    const bool behind = (flags & kDescriptor) != 0;
    const auto differs = [&](std::uint64_t local, std::uint64_t value) {
      return local != value && !(behind && local == 0);
    };
    if (differs(stored, member.stored) || differs(size, member.size) || differs(record.crc32, member.crc32))
      return wrong("the sizes and the CRC-32 of the directory", "others");
  }

  // Sizes that fill their fields in a local header are in an extra field: both of them, or only those that are full.
  // Without such a field, the number is meant as it is. `first` are the first kLocalZip64 bytes after the name.
  bool read_local_zip64(const ZipMember& member, std::string_view first, std::uint16_t length, std::uint64_t& stored,
                        std::uint64_t& size) const {
    std::string whole;
    if (length > kLocalZip64) {
      whole = io::text_of(source_, member.offset - length, length);
      first = whole;
    }
    std::string_view wide;
    bool found = false;
    if (!find_zip64(first.substr(0, length), wide, found)) return false;
    if (!found) return true;
    const bool both = wide.size() >= 16;
    for (std::uint64_t* const field : {&size, &stored}) {
      if (*field != kFull32 && !both) continue;
      if (wide.size() < 8) return false;
      if (*field == kFull32) *field = at<std::uint64_t>(wide, 0);
      wide.remove_prefix(8);
    }
    return true;
  }

  void judge(ZipMember& member) {
    if (member.unreadable != nullptr) return;
    const bool possible = member.encoding == Encoding::raw
                              ? member.size == member.stored
                              : member.size / kMaxExpansion <= member.stored && (member.size == 0 || member.stored > 0);
    if (possible) return;
    member.broken = true;
    findings_.report(rules_.size, {.offset = member.entry_at, .tensor = member.name}, {},
                     {in_bytes(member.stored), " for ", member.size});
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

std::optional<Zip> read_zip(const Source& source, const Limits& limits, const ZipRules& rules, Findings& findings,
                            Draft& draft) {
  return Walk(source, limits, rules, findings, draft).run();
}

std::optional<std::uint64_t> zip_begin(const Source& source, std::uint64_t at) {
  if (!base::fits(at, kEndSize, source.size())) return std::nullopt;
  const auto end = io::record_of<EndRecord>(source, at);
  const std::uint64_t directory = std::uint64_t{end.size} + end.offset;
  constexpr std::uint64_t kLarge = kEnd64Size + kLocatorSize;  // with sizes of 64 bits
  const bool large = at > kLarge && io::text_of(source, at - kLocatorSize, 4) == "PK\x06\x07";
  const std::uint64_t until = large ? at - kLarge : at;
  return end.offset == kFull32 || directory >= until || end.size < kEntrySize ||
                 io::text_of(source, until - end.size, 4) != "PK\x01\x02"
             ? std::nullopt
             : std::optional(until - directory);
}

std::vector<std::string> zip_names(const Source& source) {
  Report ignored;
  Findings findings(ignored, Findings::Mode::all);
  Draft draft;
  return Walk(source, Limits(), kQuietZip, findings, draft).names();
}

std::string_view first_zip_member(std::string_view head) noexcept {
  if (head.size() < kLocalSize || !head.starts_with(kZipMember)) return {};
  const std::size_t name = base::load_record<LocalRecord>(head.data()).name;
  return head.size() - kLocalSize < name ? std::string_view() : head.substr(kLocalSize, name);
}

bool zip::find_zip64(std::string_view extra, std::string_view& wide, bool& found) {
  while (extra.size() >= 4) {
    const std::uint16_t id = at<std::uint16_t>(extra, 0), length = at<std::uint16_t>(extra, 2);
    if (extra.size() - 4 < length) return false;
    if (id == kZip64 && !std::exchange(found, true)) wide = extra.substr(4, length);
    extra.remove_prefix(4U + length);
  }
  return true;
}

std::string zip_front(const Source& source, const ZipMember& member, std::size_t maximum, const Context& context,
                      std::string& fault) {
  if (member.encoding == Encoding::raw)
    return io::text_of(source, member.offset, std::min<std::uint64_t>(maximum, member.stored));
  std::string out;
  fault = read_zip_member(source, member, context, [&](std::span<const std::byte> piece) {
    const std::size_t n = std::min(piece.size(), maximum - out.size());
    out.append(reinterpret_cast<const char*>(piece.data()), n);
    return out.size() < maximum;
  });
  return out;
}

Zip read_zip_again(const Source& source, const Limits& limits, const ZipRules& rules, Draft& names) {
  Report report;
  Findings ignored(report, Findings::Mode::all);
  return read_zip(source, limits, rules, ignored, names).value_or(Zip{});
}

bool can_check(const ZipMember& member, const Limits& limits) noexcept {
  return !member.broken && member.unreadable == nullptr && member.size <= limits.decoded;
}

std::optional<Finding> check_zip_member(const Source& source, const ZipMember& member, const ZipMemberRules& rules,
                                        const At& at, Progress& progress,
                                        const std::function<void(std::span<const std::byte>)>& look) {
  const bool raw = member.encoding == Encoding::raw;
  std::uint32_t crc = 0;
  const std::string fault = read_zip_member(source, member, progress.inner(), [&](std::span<const std::byte> piece) {
    crc = codecs::crc32(piece, crc);
    if (look) look(piece);
    progress.add(raw ? piece.size() : 0);
    return true;
  });
  if (!raw) progress.add(member.stored);
  if (!fault.empty()) return Findings::make(rules.encoding, at, {}, {}, fault);
  if (crc == member.crc32) return std::nullopt;
  return Findings::make(rules.crc, at, codecs::to_hex(member.crc32), codecs::to_hex(crc));
}

std::string read_zip_member(const Source& source, const ZipMember& member, const Context& context,
                            const std::function<bool(std::span<const std::byte>)>& sink) {
  const codecs::LentDecoder decoder(*codec_of(member.encoding));
  const codecs::DecodeResult result =
      decoder->decode(member.size, context.limits.memory, io::StoredBytes(source, member.offset, member.stored), sink);
  return result.ok() || result.fault == codecs::DecodeFault::stopped ? std::string() : result.sentence;
}

}  // namespace weighbridge::core
