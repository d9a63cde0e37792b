// SPDX-License-Identifier: Apache-2.0
// Finds and reads the superblock and its extension.
#include "formats/hdf5/file.h"

#include <algorithm>

#include "core/model/words.h"
#include "formats/hdf5/object_header.h"
#include "io/read.h"

namespace weighbridge::hdf5 {
namespace {

class SuperblockReader {
 public:
  SuperblockReader(File& file, core::Findings& findings) : file_(file), findings_(findings) {}

  Superblock run() {
    const std::uint64_t at = find();
    file_.base = at;
    const std::string text = io::text_of(file_.source(), at, std::min<std::uint64_t>(kLongest, file_.end() - at));
    Cursor in(file_, text, at, file_.rules.kSuperblock);
    Superblock out;
    out.version = in.record<SuperblockStart>().version;
    if (out.version > kNewestSuperblock) throw Broken{file_.rules.kVersion, at, "0 to 3", out.version};
    std::uint64_t extension = kUndefined, end = 0, driver = kUndefined, stated_base = 0;
    std::uint32_t flags = 0;
    if (out.version < 2) {
      in.record<SuperblockVersions>();
      take_widths(in);
      flags = in.record<SuperblockTrees>().flags;
      if (out.version == 1) in.skip(4);
      stated_base = in.address();
      in.address();
      end = in.address();
      driver = in.address();
      in.address();
      out.root = in.address();
    } else {
      take_widths(in);
      flags = in.record<SuperblockFlags>().flags;
      stated_base = in.address();
      extension = in.address();
      end = in.address();
      out.root = in.address();
      const std::size_t size = in.place();
      in.u32();
      const std::string_view whole = std::string_view(text).substr(0, size + 4);
      const auto stated = base::load_le<std::uint32_t>(whole.data() + size);
      if (const std::uint32_t found = lookup3(whole.substr(0, size)); found != stated)
        throw Broken{file_.rules.kSuperblockChecksum, at, stated, found};
    }
    findings_.span(Span::Kind::structure, at, at + in.place(), "superblock",
                   [&] { return "version " + std::to_string(out.version); });
    take_end(stated_base, end);
    if (flags != 0) findings_.report(file_.rules.kOpenForWriting, {.offset = at});
    if (driver != kUndefined) throw Broken{file_.rules.kDriver, at};
    if (extension != kUndefined) read_extension(extension);
    return out;
  }

 private:
  static constexpr std::uint64_t kLongest = 128;

  std::uint64_t find() const {
    const std::uint64_t size = file_.end() - file_.begin();
    for (std::uint64_t at = 0; base::fits(at, kSignature.size(), size); at = at == 0 ? kFirstUserblock : 2 * at)
      if (io::text_of(file_.source(), file_.begin() + at, kSignature.size()) == kSignature) return file_.begin() + at;
    throw Broken{file_.rules.kSignatureRule, file_.begin()};
  }

  void take_widths(Cursor& in) {
    const auto valid = [](std::uint8_t width) { return width == 2 || width == 4 || width == 8; };
    const auto widths = in.record<SuperblockWidths>();
    file_.offset_size = widths.offset_size;
    file_.length_size = widths.length_size;
    if (!valid(file_.offset_size) || !valid(file_.length_size))
      in.fail("2, 4 or 8 bytes", {file_.offset_size, " and ", file_.length_size});
  }

  // The end counts from the beginning of the file as it was written: if bytes were prepended to the file since, it has
  // moved.
  void take_end(std::uint64_t stated_base, std::uint64_t stated_end) {
    const std::uint64_t there = file_.end() - file_.base;
    if (stated_end == kUndefined || stated_end < stated_base || stated_end - stated_base > there)
      throw Broken{
          file_.rules.kTruncated, file_.end(),
          core::in_bytes(stated_end == kUndefined || stated_end < stated_base ? stated_end : stated_end - stated_base),
          core::in_bytes(there)};
    const std::uint64_t end = file_.base + (stated_end - stated_base);
    if (end < file_.end()) {
      findings_.report(file_.rules.kTrailing, {.offset = end}, {}, core::in_bytes(file_.end() - end));
      core::report_second_beginning(findings_, file_.source(), file_.end() - end);
    }
    file_.set_end(end);
  }

  void read_extension(std::uint64_t address) {
    const ObjectHeader header = read_object_header(file_, address);
    if (const HeaderMessage* const found = header.find(Message::driver_info))
      throw Broken{file_.rules.kDriver, found->at};
    if (const HeaderMessage* const found = header.find(Message::cache_image))
      throw Broken{file_.rules.kCacheImage, found->at};
  }

  File& file_;
  core::Findings& findings_;
};

}  // namespace

Superblock read_superblock(File& file, core::Findings& findings) { return SuperblockReader(file, findings).run(); }

bool has_superblock(std::span<const std::byte> head) noexcept {
  const std::string_view text{reinterpret_cast<const char*>(head.data()), head.size()};
  for (std::size_t at = 0; at < text.size(); at = at == 0 ? static_cast<std::size_t>(kFirstUserblock) : 2 * at)
    if (text.substr(at).starts_with(kSignature)) return true;
  return false;
}

}  // namespace weighbridge::hdf5
