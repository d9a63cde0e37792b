// SPDX-License-Identifier: Apache-2.0
// EMBD to Model: the one walker for open and verify. Reads the header, the footer and the offsets of the sections.
// metadata.h and vocabulary.h read the sections.
//
//   64 bytes of header | metadata, vocabulary, tensor index and tensor data, where the header says | 16 bytes of footer
//   tensor index: descriptors, 32 bytes each | their names. layout.h has the fields of all records.
#include <algorithm>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "base/checked.h"
#include "codecs/checksum.h"
#include "core/reading/rules.h"
#include "core/reading/walker.h"
#include "formats/embd/architecture.h"
#include "formats/embd/format.h"
#include "formats/embd/layout.h"
#include "formats/embd/metadata.h"
#include "formats/embd/vocabulary.h"
#include "io/read.h"

namespace weighbridge::embd {
namespace {

struct Section {
  std::string_view name;
  std::uint64_t offset = 0, size = 0;
  std::uint32_t Header::*field = nullptr;  // states its offset
  bool good = false;                       // lies between header and footer
};

// Reading E11: magic, u32 version 1, u32 tensor count, then records that begin with the length of a name. Version 1.0
// begins with the same eight bytes, but the metadata's offset follows the flags, and the bytes after it are not a name.
bool has_old_layout(std::string_view head, std::string_view tail) {
  constexpr std::string_view kStart("EMBD\x01\0\0\0", 8);
  if (head.size() < 17 || !head.starts_with(kStart)) return false;
  if (tail.size() == kFooterSize && tail.substr(8, 4) == std::string_view(kMagicEnd, 4)) return false;
  const auto names = [&](std::uint64_t length, std::size_t at) {
    if (length == 0 || length > 512 || !base::fits(at, length, head.size())) return false;
    return std::ranges::all_of(head.substr(at, base::to_size(length)), [](char c) { return c > ' ' && c < 0x7F; });
  };
  return names(base::load_le<std::uint32_t>(head.data() + 12), 16) ||
         names(base::load_le<std::uint16_t>(head.data() + 12), 14);
}

class FileWalk : core::Walker {
 public:
  using Walker::Walker;

  void run() {
    draft_.set_format("embd");
    if (!read_header() || !check_flags() || !read_footer()) return;
    note_header();
    place_sections();
    if (!check_limits()) return;
    std::string kept = head_ + foot_;
    const bool indexed = read_index_bytes(kept);
    check_order();
    const auto numbers = read_metadata_section();
    read_vocabulary_section(numbers);
    const std::string_view header = draft_.retain_header(std::move(kept));
    if (indexed && data_.good)
      read_index(header.substr(kHeaderSize + kFooterSize), header_, numbers, findings_, draft_);
  }

 private:
  void append_bytes(std::string& to, std::uint64_t offset, std::uint64_t size) const {
    const std::size_t before = to.size();
    to.resize(before + base::to_size(size));
    if (size > 0) source_.read_at(offset, std::as_writable_bytes(std::span(to).subspan(before)));
  }

  bool read_header() {
    std::string start = io::text_of(source_, 0, std::min<std::uint64_t>(size_, kStart));
    if (!start.starts_with(std::string_view(kMagic, sizeof kMagic)))
      return findings_.fail(rules::kMagicRule, {.offset = 0}, "EMBD");
    foot_ = size_ < kFooterSize ? std::string() : io::text_of(source_, size_ - kFooterSize, kFooterSize);
    if (has_old_layout(start, foot_)) return findings_.fail(rules::kOldLayout, {.offset = 0});
    if (size_ < kHeaderSize + kFooterSize)
      return findings_.fail(rules::kTooShort, {.offset = size_},
                            core::at_least(core::in_bytes(kHeaderSize + kFooterSize)), core::in_bytes(size_));
    head_ = start.substr(0, kHeaderSize);
    findings_.record<Header>(Span::Kind::structure, 0, head_, "header");
    findings_.record<Footer>(Span::Kind::structure, size_ - kFooterSize, foot_, "footer");
    header_ = base::load_record<Header>(head_.data());
    footer_ = base::load_record<Footer>(foot_.data());
    if (header_.version_major == kVersionMajor) return true;
    return findings_.fail(rules::kVersion, core::at_field(&Header::version_major), "1", header_.version_major);
  }

  bool check_flags() {
    if ((header_.flags & kChecksumEnabled) != 0) {
      const std::uint32_t found = codecs::crc32(std::as_bytes(std::span(head_)).first(kHeaderSummed));
      if (found != header_.header_checksum)
        findings_.report(rules::kHeaderChecksum, core::at_field(&Header::header_checksum),
                         crc_text(header_.header_checksum), crc_text(found));
    }
    if (header_.version_minor > kVersionMinor)
      findings_.report(rules::kNewerMinor, core::at_field(&Header::version_minor), {"at most 1.", kVersionMinor},
                       {"1.", header_.version_minor});
    if ((header_.flags & kCompressed) != 0)
      return findings_.fail(rules::kCompressedRule, core::at_field(&Header::flags));
    if ((header_.flags & ~kKnownFlags) != 0)
      return findings_.fail(rules::kUnknownFlag, core::at_field(&Header::flags), "no bit above bit 2",
                            crc_text(header_.flags));
    return true;
  }

  bool read_footer() {
    if (header_.total_file_size > size_)
      return findings_.fail(rules::kTruncated, {.offset = size_, .hint = base::size_hint(header_.total_file_size)},
                            core::in_bytes(header_.total_file_size), core::in_bytes(size_),
                            core::missing_text(header_.total_file_size - size_));
    if (header_.total_file_size < size_)
      return findings_.fail(rules::kFileSize,
                            {.offset = header_.total_file_size, .hint = base::size_hint(header_.total_file_size)},
                            core::in_bytes(header_.total_file_size), core::in_bytes(size_));
    end_ = size_ - kFooterSize;
    if (header_.reserved != 0) report_reserved(core::at_field(&Header::reserved), header_.reserved);
    if (std::memcmp(footer_.magic_end, kMagicEnd, sizeof kMagicEnd) != 0)
      findings_.report(rules::kFooterMagic, core::at_field(&Footer::magic_end, end_), "DBME");
    if (footer_.reserved != 0) report_reserved(core::at_field(&Footer::reserved, end_), footer_.reserved);
    return true;
  }

  void report_reserved(core::At at, std::uint32_t found) {
    findings_.report(rules::kReserved, std::move(at), "0", found);
  }

  // Keeps what the writer needs to reproduce the header, and what inspect shows.
  void note_header() {
    draft_.set_version("1." + std::to_string(header_.version_minor));
    if ((header_.flags & kChecksumEnabled) == 0) return;
    draft_.add_checksum("header", crc_text(header_.header_checksum));
    draft_.add_checksum("data", crc_text(footer_.data_checksum));
    draft_.add_checksum("file", crc_text(footer_.file_checksum));
  }

  bool has_vocabulary() const { return (header_.flags & kVocabEmbedded) != 0; }

  void place_sections() {
    metadata_ = {"metadata", header_.metadata_offset, header_.metadata_size, &Header::metadata_offset};
    vocabulary_ = {"vocabulary", header_.vocab_offset, header_.vocab_size, &Header::vocab_offset};
    index_ = {"tensor index", header_.tensor_index_offset, header_.tensor_index_count * kDescriptorSize,
              &Header::tensor_index_offset};
    data_ = {"tensor data", header_.tensor_data_offset, header_.tensor_data_size, &Header::tensor_data_offset};
    check_bounds(metadata_);
    if (has_vocabulary())
      check_bounds(vocabulary_);
    else if (header_.vocab_offset != 0 || header_.vocab_size != 0)
      findings_.report(rules::kVocabOff, core::at_field(&Header::vocab_offset), "0 and 0",
                       {header_.vocab_offset, " and ", header_.vocab_size});
    check_bounds(index_);
    check_bounds(data_);
  }

  void check_bounds(Section& section) {
    section.good = section.offset >= kHeaderSize && base::fits(section.offset, section.size, end_);
    if (section.good) {
      // Checks the index twice: first without the names after its descriptors, whose length is not known yet.
      findings_.span(Span::Kind::structure, section.offset, section.offset + section.size,
                     &section == &index_ && section.size == header_.tensor_index_count * kDescriptorSize
                         ? "tensor descriptors"
                         : section.name);
      return;
    }
    findings_.report(rules::kSectionBounds, core::at_field(section.field), {kHeaderSize, " to ", end_},
                     {section.offset, " and ", core::in_bytes(section.size)}, section.name);
  }

  // The bytes of everything that is read before payload. Each section lies within the file.
  bool check_limits() {
    std::uint64_t size = kHeaderSize + kFooterSize;
    for (const Section* section : {&metadata_, &vocabulary_, &index_})
      if (section->good) size += section->size;
    return within_limit({.offset = 0}, size) &&
           (!index_.good || few_enough(core::at_field(&Header::tensor_index_count), header_.tensor_index_count));
  }

  // Appends descriptors and names to `to`. False if there is no valid index, which has been reported.
  bool read_index_bytes(std::string& to) {
    if (!index_.good) return false;
    const std::size_t first = to.size();
    append_bytes(to, index_.offset, index_.size);
    const std::uint64_t names = names_size(to.data() + first, header_.tensor_index_count);
    const std::uint64_t at = index_.offset + index_.size;
    index_.size += names;
    check_bounds(index_);
    if (!index_.good) return false;
    if (kHeaderSize + kFooterSize + index_.size > limits_.header)
      return findings_.fail(core::rules::kLimitHeader, {.offset = at}, core::at_most(core::in_bytes(limits_.header)),
                            core::in_bytes(index_.size), index_.name);
    append_bytes(to, at, names);
    return true;
  }

  // Checks overlaps and gaps of the sections in file order. Reports no gaps if the place of some section is wrong.
  void check_order() {
    std::vector<const Section*> sections;
    bool complete = true;
    for (const Section* section : {&metadata_, &vocabulary_, &index_, &data_}) {
      if (section == &vocabulary_ && !has_vocabulary()) continue;
      complete &= section->good;
      if (section->good && section->size > 0) sections.push_back(section);
    }
    std::stable_sort(sections.begin(), sections.end(),
                     [](const Section* a, const Section* b) { return a->offset < b->offset; });
    std::uint64_t reach = kHeaderSize;
    std::string_view before = "header";
    for (const Section* section : sections) {
      if (section->offset < reach)
        findings_.report(rules::kSectionOverlap, {.offset = section->offset}, {"to begin at ", reach, " or after"},
                         section->offset, {before, " and ", section->name});
      if (complete) check_gap(reach, section->offset, section->name);
      if (section->offset + section->size > reach) before = section->name;
      reach = std::max(reach, section->offset + section->size);
    }
    if (complete) check_gap(reach, end_, "footer");
  }

  void check_gap(std::uint64_t begin, std::uint64_t end, std::string_view next) {
    if (end > begin && end - begin > kMaxGap)
      findings_.report(rules::kGap, {.offset = begin}, {}, core::in_bytes(end - begin), {"before the ", next});
  }

  std::optional<Numbers> read_metadata_section() {
    if (!metadata_.good) return std::nullopt;
    auto metadata =
        read_metadata(io::text_of(source_, metadata_.offset, metadata_.size), metadata_.offset, limits_, findings_);
    if (!metadata) return std::nullopt;
    const auto numbers = check_required(*metadata, metadata_.offset, findings_);
    // If the metadata has keys with these names, they take precedence over the header's values.
    const bool has_flags = metadata->find(kFlagsAttribute) < metadata->entries.size();
    const bool has_minor = metadata->find(kMinorAttribute) < metadata->entries.size();
    draft_.set_attributes(std::move(metadata->entries));
    if ((header_.flags | kVocabEmbedded) != kKnownFlags && !has_flags)
      draft_.set_attribute(std::string(kFlagsAttribute), Value::integer(std::uint64_t{header_.flags}, DType::u32));
    if (header_.version_minor != kVersionMinor && !has_minor)
      draft_.set_attribute(std::string(kMinorAttribute),
                           Value::integer(std::uint64_t{header_.version_minor}, DType::u16));
    return numbers;
  }

  void read_vocabulary_section(const std::optional<Numbers>& numbers) {
    if (!has_vocabulary() || !vocabulary_.good) return;
    auto tokenizer = read_vocabulary(io::text_of(source_, vocabulary_.offset, vocabulary_.size), vocabulary_.offset,
                                     limits_, findings_);
    if (!tokenizer) return;
    const std::uint64_t count = tokenizer->vocab_size;
    draft_.set_tokenizer(std::move(tokenizer));
    if (numbers && count != numbers->vocab_size)
      findings_.report(rules::kTokenCount, {.offset = vocabulary_.offset}, numbers->vocab_size, count);
  }

  static constexpr std::uint64_t kStart = 1024;  // enough to recognize the old layout by a name in it

  std::string head_, foot_;
  Header header_{};
  Footer footer_{};
  std::uint64_t end_ = 0;  // where the footer begins
  Section metadata_, vocabulary_, index_, data_;
};

}  // namespace

void read(const Source& source, const Context& context, core::Findings& findings, core::Draft& draft) {
  FileWalk(source, context, findings, draft).run();
}

}  // namespace weighbridge::embd
