// SPDX-License-Identifier: Apache-2.0
// Walks from member to member as APPNOTE.TXT 6.3 lays them out (4.3.7, 4.3.9), whose sizes are before the data or after
// it.
#include "doctor/damage.h"

#include <string_view>

#include "base/endian.h"
#include "core/archive/zip.h"
#include "io/read.h"

namespace weighbridge::doctor {
namespace {

using namespace core::zip;

constexpr std::string_view kDescriptorMagic("PK\x07\x08", 4);
constexpr std::uint64_t kMaxDescriptor = 28;  // with the magic number of what follows
constexpr std::size_t kSearchPiece = std::size_t{1} << 20;

template <class Number> Number at(std::string_view bytes, std::size_t place) {
  return base::load_le<Number>(bytes.data() + place);
}

class Walk {
 public:
  Walk(const Source& source, const Limits& limits) : source_(source), limits_(limits) {}

  std::optional<std::uint64_t> run() {
    std::uint64_t place = 0;
    while (const auto next = member(place)) {
      place = *next;
      directory_size_ += kEntrySize + members_.back().name.size() + 28;
      if (members_.size() > limits_.tensors || directory_size_ > limits_.header) return std::nullopt;
    }
    return members_.empty() ? std::nullopt : std::optional(place);
  }

  const std::vector<core::ZipOut>& members() const noexcept { return members_; }

 private:
  // Adds the member at `place`, and returns where it ends; nullopt if it is not there, or not whole.
  std::optional<std::uint64_t> member(std::uint64_t place) {
    if (!base::fits(place, kLocalSize, source_.size())) return std::nullopt;
    const auto record = io::record_of<LocalRecord>(source_, place);
    if (record.signature != kLocalMagic) return std::nullopt;
    core::ZipOut out{.header_at = place,
                     .stored = record.stored,
                     .size = record.size,
                     .crc32 = record.crc32,
                     .method = record.method,
                     .flags = record.flags};
    const std::uint64_t name = record.name, extra = record.extra;
    if (!base::fits(place + kLocalSize, name + extra, source_.size())) return std::nullopt;
    const std::string text = io::text_of(source_, place + kLocalSize, name + extra);
    out.name = text.substr(0, base::to_size(name));
    if (!read_zip64(std::string_view(text).substr(base::to_size(name)), out)) return std::nullopt;
    const std::uint64_t data = place + kLocalSize + name + extra;
    if ((out.flags & kDescriptor) != 0) return with_descriptor(data, std::move(out));
    if (!base::fits(data, out.stored, source_.size())) return std::nullopt;
    const std::uint64_t end = data + out.stored;
    members_.push_back(std::move(out));
    return end;
  }

  static bool read_zip64(std::string_view extra, core::ZipOut& member) {
    std::string_view wide;
    bool found = false;
    if (!find_zip64(extra, wide, found)) return false;
    for (std::uint64_t* const field : {&member.size, &member.stored}) {
      if (*field != kFull32) continue;
      if (wide.size() < 8) return false;
      *field = at<std::uint64_t>(wide, 0);
      wide.remove_prefix(8);
    }
    return true;
  }

  // The descriptor after the data states the size that the data then has; bytes that only look like a descriptor do
  // not.
  std::optional<std::uint64_t> with_descriptor(std::uint64_t data, core::ZipOut member) {
    std::string piece;
    for (std::uint64_t begin = data; base::fits(begin, 16, source_.size());) {
      piece = io::text_of(source_, begin, std::min<std::uint64_t>(kSearchPiece, source_.size() - begin));
      for (std::size_t found = piece.find(kDescriptorMagic); found != piece.npos;
           found = piece.find(kDescriptorMagic, found + 1))
        if (const auto end = descriptor(begin + found, data, member, std::string_view(piece).substr(found))) {
          members_.push_back(std::move(member));
          return end;
        }
      if (piece.size() < kSearchPiece) break;
      begin += piece.size() - kDescriptorMagic.size() + 1;
    }
    return std::nullopt;
  }

  // Where the descriptor at `place` ends, if it is one: with sizes of 64 or of 32 bits.
  // `text` is what was read from there on.
  std::optional<std::uint64_t> descriptor(std::uint64_t place, std::uint64_t data, core::ZipOut& member,
                                          std::string_view text) const {
    const auto length = base::to_size(std::min<std::uint64_t>(kMaxDescriptor, source_.size() - place));
    std::string longer;
    if (text.size() < length) text = longer = io::text_of(source_, place, length);
    text = text.substr(0, length);
    const auto follows = [&](std::size_t end) {
      if (text.size() == end) return place + end == source_.size();
      if (text.size() < end + 4) return false;
      const auto magic = at<std::uint32_t>(text, end);
      return magic == kLocalMagic || magic == kEntryMagic;
    };
    const auto take = [&](std::uint64_t stored, std::uint64_t size, std::size_t end) {
      if (stored != place - data || !follows(end)) return false;
      member.crc32 = at<std::uint32_t>(text, 4);
      member.stored = stored;
      member.size = size;
      return true;
    };
    if (text.size() >= 24 && take(at<std::uint64_t>(text, 8), at<std::uint64_t>(text, 16), 24)) return place + 24;
    if (text.size() >= 16 && take(at<std::uint32_t>(text, 8), at<std::uint32_t>(text, 12), 16)) return place + 16;
    return std::nullopt;
  }

  const Source& source_;
  const Limits& limits_;
  std::vector<core::ZipOut> members_;
  std::uint64_t directory_size_ = 0;
};

}  // namespace

std::shared_ptr<const Source> with_new_directory(std::shared_ptr<const Source> file, const Limits& limits) {
  Walk walk(*file, limits);
  const auto end = walk.run();
  if (!end) return nullptr;
  std::string directory = core::zip_directory(walk.members(), *end);
  const std::uint64_t size = *end + directory.size();
  return std::make_shared<const Continued>(std::move(file), ByteRange{0, *end}, std::move(directory), size);
}

}  // namespace weighbridge::doctor
