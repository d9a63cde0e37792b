// SPDX-License-Identifier: Apache-2.0
// An adapter package to Model: the one walker for open and verify. Header and directory are read at once because one
// checksum covers both. content.cc checks the payloads.
//
//   128 bytes of header | directory: entries of 72 bytes | payloads, one or two for each entry, at multiples of 64
//   layout.h has the fields.
#include <algorithm>
#include <array>
#include <string>
#include <vector>

#include "base/checked.h"
#include "base/endian.h"
#include "base/record.h"
#include "codecs/checksum.h"
#include "codecs/indexed_checksum.h"
#include "core/payload/extents.h"
#include "core/reading/rules.h"
#include "core/reading/walker.h"
#include "formats/slm_adapter/format.h"
#include "formats/slm_adapter/layout.h"

namespace weighbridge::slm_adapter {
namespace {

using core::at_field;

struct Wanted {
  std::uint64_t min_count = 1, max_count = 0, first = 0, second = 0;
};

class Walk : core::Walker {
 public:
  using Walker::Walker;

  void run() {
    draft_.set_format(kFormat.info.name);
    if (!read_header() || !read_directory()) return;
    add_attributes();
    for (std::uint32_t i = 0; i < header_.entry_count; ++i) read_entry(i);
    check_duplicates();
    check_overlaps();
  }

 private:
  struct Place {
    std::uint64_t offset, length, at;  // at: offset of the field in the file
    auto operator<=>(const Place&) const = default;
  };

  bool read_header() {
    const std::uint64_t there = std::min(kHeaderSize, source_.size());
    source_.read_at(0, std::span(head_).first(base::to_size(there)));
    header_ = base::load_record<Header>(head_.data());
    const std::string_view magic(header_.magic, sizeof header_.magic);
    const auto known = std::ranges::find(kMagics, magic);
    if (known == std::end(kMagics))
      return findings_.fail(rules::kMagicRule, {.offset = 0}, "ADP1, ASP1 or ALR1", magic);
    if (there < kHeaderSize) return findings_.fail(rules::kTooShort, {.offset = there}, {kHeaderSize, " bytes"}, there);
    findings_.record<Header>(Span::Kind::structure, 0, head_, "header");
    kind_ = static_cast<Kind>(known - std::begin(kMagics));
    draft_.set_version(std::string(magic));
    if (header_.version != kVersion)
      return findings_.fail(rules::kVersionRule, at_field(&Header::version), kVersion, header_.version);
    if (header_.header_length != kHeaderSize)
      findings_.report(rules::kHeaderLength, at_field(&Header::header_length), kHeaderSize, header_.header_length);
    if (header_.entry_count == 0)
      findings_.report(rules::kNoEntries, at_field(&Header::entry_count), "at least 1", "0");
    if (header_.directory_offset != kHeaderSize)
      findings_.report(rules::kDirectoryOffset, at_field(&Header::directory_offset), kHeaderSize,
                       header_.directory_offset);
    if (header_.file_size != source_.size())
      findings_.report(rules::kFileSize, at_field(&Header::file_size), source_.size(), header_.file_size);
    if (source_.size() % kAlignment != 0)
      findings_.report(rules::kUnevenEnd, {.offset = source_.size()}, "a multiple of 64", source_.size());
    return true;
  }

  bool read_directory() {
    const std::uint64_t length = header_.entry_count * kEntrySize;  // u32 x 72 cannot overflow
    if (!base::fits(kHeaderSize, length, source_.size()))
      return findings_.fail(rules::kDirectoryRange, at_field(&Header::entry_count),
                            core::at_most((source_.size() - kHeaderSize) / kEntrySize, " entries"),
                            header_.entry_count);
    if (length > limits_.header)
      return findings_.fail(core::rules::kLimitHeader, at_field(&Header::entry_count),
                            core::at_most(limits_.header, " bytes"), length);
    if (!few_enough(at_field(&Header::entry_count), header_.entry_count)) return false;
    const std::uint64_t data = *base::align_up(kHeaderSize + length, kAlignment);
    if (header_.data_offset != data || data > source_.size())
      return findings_.fail(rules::kDataOffset, at_field(&Header::data_offset), data, header_.data_offset);
    directory_.resize(base::to_size(data - kHeaderSize));
    source_.read_at(kHeaderSize, std::as_writable_bytes(std::span(directory_)));
    findings_.span(Span::Kind::structure, kHeaderSize, kHeaderSize + length, "directory");
    check_head();
    return true;
  }

  void check_head() {
    std::array<std::byte, kHeaderSize> head = head_;
    base::store_le<std::uint64_t>(head.data() + kHeadChecksumAt, 0);
    codecs::IndexedChecksum sum;
    sum.update(head);
    sum.update(std::as_bytes(std::span(directory_)));
    if (sum.value() != header_.head_checksum)
      findings_.report(rules::kHeadChecksum, at_field(&Header::head_checksum),
                       codecs::checksum_text(header_.head_checksum), codecs::checksum_text(sum.value()));
    if (std::ranges::any_of(header_.reserved, [](std::byte byte) { return byte != std::byte{0}; }))
      findings_.report(rules::kReserved, at_field(&Header::reserved));
    draft_.add_checksum("head", codecs::checksum_text(header_.head_checksum));
    draft_.add_checksum("payload", codecs::checksum_text(header_.payload_checksum));
  }

  // Those that identify the base model.
  void add_attributes() {
    Header::each(header_, [&](const auto& field, base::FieldNote note) {
      if constexpr (std::is_integral_v<std::remove_cvref_t<decltype(field)>>)
        if (note.name.starts_with("base_"))
          draft_.set_attribute(std::string(kPrefix).append(note.name),
                               Value::integer(std::uint64_t{field}, sizeof field == 4 ? DType::u32 : DType::u64));
    });
  }

  // `more`: bytes after the beginning of the field.
  template <class T>
  void fail(const Rule& rule, T Entry::*field, const core::Said& expected, const core::Said& found,
            std::uint64_t more = 0) {
    broken_ = true;
    findings_.report(rule, at_field(field, at_ + more, name_), expected, found);
  }

  void read_entry(std::uint32_t i) {
    const auto e = base::load_record<Entry>(directory_.data() + i * kEntrySize);
    at_ = kHeaderSize + i * kEntrySize;
    name_ = "#" + codecs::to_hex(e.name_hash);
    broken_ = false;
    findings_.record<Entry>(Span::Kind::entry, at_,
                            std::string_view(directory_.data(), directory_.size()).substr(i * kEntrySize, kEntrySize),
                            name_);
    const auto shape = check_dims(e);
    if (!shape) return;
    const std::uint64_t rows = e.rank > 1 ? e.dims[0] : 1;
    const std::uint64_t elements = *base::element_count(*shape), columns = elements / rows;
    Wanted wanted;
    if (!check_count(e, elements, rows, columns, wanted)) return;
    check_payload(e, &Entry::first_offset, &Entry::first_length, wanted.first);
    if (wanted.second > 0 || e.second_offset != 0 || e.second_length != 0)
      check_payload(e, &Entry::second_offset, &Entry::second_length, wanted.second);
    if (e.reserved != 0) findings_.report(rules::kEntryReserved, at_field(&Entry::reserved, at_, name_));
    if (broken_) return;
    add(e, *shape, rows, columns);
  }

  std::optional<std::vector<std::uint64_t>> check_dims(const Entry& e) {
    if (e.rank < 1 || e.rank > kMaxRank) {
      fail(rules::kRank, &Entry::rank, "1 to 4", e.rank);
      return std::nullopt;
    }
    const std::vector<std::uint64_t> shape(e.dims, e.dims + e.rank);
    for (std::uint32_t d = 0; d < kMaxRank; ++d) {
      if (d < e.rank && e.dims[d] == 0) fail(rules::kZeroDimension, &Entry::dims, "at least 1", "0", 4 * d);
      if (d >= e.rank && e.dims[d] != 0) fail(rules::kPastRank, &Entry::dims, "0", e.dims[d], 4 * d);
    }
    const auto elements = base::element_count(shape);
    if (!broken_ && (!elements || !base::checked_mul(*elements, std::uint64_t{8})))
      fail(rules::kOverflow, &Entry::dims, "at most 2^64 bytes", "more");
    if (broken_) return std::nullopt;
    return shape;
  }

  // Derives what the payloads must be. `count` x 8 and rows x count x 4 are at most elements x 8, which cannot
  // overflow.
  bool check_count(const Entry& e, std::uint64_t elements, std::uint64_t rows, std::uint64_t columns, Wanted& wanted) {
    wanted.max_count = kind_ == Kind::low_rank ? std::min(rows, columns) : elements;
    wanted.min_count = kind_ == Kind::dense ? elements : 1;
    if (e.count < wanted.min_count || e.count > wanted.max_count) {
      fail(rules::kCount, &Entry::count, {wanted.min_count, " to ", wanted.max_count}, e.count);
      return false;
    }
    switch (kind_) {
      case Kind::dense: wanted.first = elements * 4; break;
      case Kind::sparse:
        wanted.first = e.count * 8;
        wanted.second = e.count * 4;
        break;
      case Kind::low_rank:
        wanted.first = rows * e.count * 4;
        wanted.second = e.count * columns * 4;
        break;
    }
    return true;
  }

  void check_payload(const Entry& e, std::uint64_t Entry::*place, std::uint64_t Entry::*extent, std::uint64_t wanted) {
    const std::uint64_t offset = e.*place, length = e.*extent;
    if (length != wanted) return fail(rules::kLength, extent, wanted, length);
    if (length == 0) {
      if (offset != 0) fail(rules::kRange, place, "0, as there is no second payload", offset);
      return;
    }
    if (offset % kAlignment != 0) fail(rules::kAlignmentRule, place, "a multiple of 64", offset);
    if (offset < header_.data_offset || !base::fits(offset, length, source_.size()))
      return fail(rules::kRange, place, {"within ", header_.data_offset, " and ", source_.size()},
                  {offset, " and ", length, " bytes"});
    places_.push_back({offset, length, at_ + base::offset_of(place)});
  }

  void add(const Entry& e, Shape shape, std::uint64_t rows, std::uint64_t columns) {
    const auto part = [&](std::string_view role, DType dtype, Shape dims, std::uint64_t offset, std::uint64_t length) {
      draft_.add_part(role, dtype, dims, Encoding::raw, {0, offset, length}, length);
    };
    const std::uint32_t tensor =
        draft_.add_tensor(name_, kind_ == Kind::dense ? Layout::dense : Layout::structural, DType::f32, shape);
    const std::uint64_t counts[] = {e.count}, a[] = {rows, e.count}, b[] = {e.count, columns};
    switch (kind_) {
      case Kind::dense: part(kData, DType::f32, shape, e.first_offset, e.first_length); break;
      case Kind::sparse:
        part(kIndices, DType::u64, counts, e.first_offset, e.first_length);
        part(kValues, DType::f32, counts, e.second_offset, e.second_length);
        break;
      case Kind::low_rank:
        part(kA, DType::f32, a, e.first_offset, e.first_length);
        part(kB, DType::f32, b, e.second_offset, e.second_length);
        break;
    }
    auto side = draft_.tensor(tensor).id(e.name_hash);
    if (kind_ != Kind::dense) side.layout_name(kind_ == Kind::sparse ? kSparseLayout : kLowRankLayout);
    entry_of_.push_back(at_);
  }

  void check_duplicates() {
    draft_.drop_same_names([&](std::uint32_t earlier, std::uint32_t later) {
      findings_.report(rules::kDuplicate, {.offset = entry_of_[later], .tensor = draft_.name(later)}, {}, {},
                       {"the first one is at offset ", entry_of_[earlier]});
    });
  }

  // Equal ranges are a shared payload, not an overlap.
  void check_overlaps() {
    std::vector<core::Range> ranges;
    for (std::uint32_t i = 0; i < places_.size(); ++i) ranges.push_back({0, places_[i].offset, places_[i].length, i});
    core::Extents(std::move(ranges))
        .walk([&](const core::Range& range, core::Relation relation, const core::Range* furthest) {
          if (relation == core::Relation::overlap)
            findings_.report(rules::kOverlap, {.offset = places_[range.item].at},
                             {"to begin at ", furthest->end(), " or behind it"}, range.offset);
        });
  }

  std::array<std::byte, kHeaderSize> head_{};
  Header header_;
  Kind kind_ = Kind::dense;
  std::vector<char> directory_;
  std::uint64_t at_ = 0;  // offset of the current entry
  std::string name_;
  bool broken_ = false;
  std::vector<Place> places_;
  std::vector<std::uint64_t> entry_of_;  // offset of the entry of each tensor in the draft
};

}  // namespace

void read(const Source& source, const Context& context, core::Findings& findings, core::Draft& draft) {
  Walk(source, context, findings, draft).run();
}

}  // namespace weighbridge::slm_adapter
