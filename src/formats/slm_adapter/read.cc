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
#include "core/extents.h"
#include "core/rules.h"
#include "formats/slm_adapter/format.h"
#include "formats/slm_adapter/layout.h"

namespace weighbridge::slm_adapter {
namespace {

constexpr core::FieldRow kHeaderRows[] = {{"magic", 4, core::FieldForm::text},
                                          {"version", 4},
                                          {"header_length", 4},
                                          {"entry_count", 4},
                                          {"base_flags", 4},
                                          {"base_tensor_count", 4},
                                          {"base_parameter_count", 8},
                                          {"base_tensor_layout_checksum", 8, core::FieldForm::hex},
                                          {"base_tokenizer_checksum", 8, core::FieldForm::hex},
                                          {"base_directory_identity", 8, core::FieldForm::hex},
                                          {"directory_offset", 8},
                                          {"data_offset", 8},
                                          {"file_size", 8},
                                          {"payload_checksum", 8, core::FieldForm::hex},
                                          {"head_checksum", 8, core::FieldForm::hex},
                                          {"reserved", 32}};
constexpr core::FieldRow kEntryRows[] = {{"name_hash", 8, core::FieldForm::hex},
                                         {"rank", 4},
                                         {"reserved", 4},
                                         {"dims[0]", 4},
                                         {"dims[1]", 4},
                                         {"dims[2]", 4},
                                         {"dims[3]", 4},
                                         {"count", 8},
                                         {"first_offset", 8},
                                         {"first_length", 8},
                                         {"second_offset", 8},
                                         {"second_length", 8}};

struct Wanted {
  std::uint64_t count_least = 1, count_most = 0, first = 0, second = 0;
};

class Walk {
 public:
  Walk(const Source& source, const Context& context, core::Findings& findings, core::Draft& draft)
      : source_(source), limits_(context.limits), findings_(findings), draft_(draft) {}

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

  static std::string number(std::uint64_t n) { return std::to_string(n); }
  void file(const Rule& rule, std::uint64_t offset, core::Said expected, core::Said found) {
    findings_.report(rule, {.offset = offset}, std::move(expected), std::move(found));
  }

  bool read_header() {
    const std::uint64_t there = std::min(kHeaderSize, source_.size());
    source_.read_at(0, std::span(head_).first(base::to_size(there)));
    header_ = base::load_record<Header>(head_.data());
    const std::string_view magic(header_.magic, sizeof header_.magic);
    const auto known = std::ranges::find(kMagics, magic);
    if (known == std::end(kMagics)) {
      file(rules::kMagicRule, 0, "ADP1, ASP1 or ALR1", std::string(magic));
      return false;
    }
    if (there < kHeaderSize) {
      file(rules::kTooShort, there, number(kHeaderSize) + " bytes", number(there));
      return false;
    }
    findings_.fields(Span::Kind::structure, 0, head_, "header", kHeaderRows);
    kind_ = static_cast<Kind>(known - std::begin(kMagics));
    draft_.set_version(std::string(magic));
    if (header_.version != kVersion) {
      file(rules::kVersionRule, 4, number(kVersion), number(header_.version));
      return false;
    }
    if (header_.header_length != kHeaderSize)
      file(rules::kHeaderLength, 8, number(kHeaderSize), number(header_.header_length));
    if (header_.entry_count == 0) file(rules::kNoEntries, 12, "at least 1", "0");
    if (header_.directory_offset != kHeaderSize)
      file(rules::kDirectoryOffset, 56, number(kHeaderSize), number(header_.directory_offset));
    if (header_.file_size != source_.size())
      file(rules::kFileSize, 72, number(source_.size()), number(header_.file_size));
    if (source_.size() % kAlignment != 0)
      file(rules::kUnevenEnd, source_.size(), "a multiple of 64", number(source_.size()));
    return true;
  }

  bool read_directory() {
    const std::uint64_t length = header_.entry_count * kEntrySize;  // u32 x 72 cannot overflow
    if (!base::fits(kHeaderSize, length, source_.size())) {
      file(rules::kDirectoryRange, 12, "at most " + number((source_.size() - kHeaderSize) / kEntrySize) + " entries",
           number(header_.entry_count));
      return false;
    }
    if (length > limits_.header) {
      file(core::rules::kLimitHeader, 12, "at most " + number(limits_.header) + " bytes", number(length));
      return false;
    }
    if (header_.entry_count > limits_.tensors) {
      file(core::rules::kLimitTensors, 12, "at most " + number(limits_.tensors), number(header_.entry_count));
      return false;
    }
    const std::uint64_t data = *base::align_up(kHeaderSize + length, kAlignment);
    if (header_.data_offset != data || data > source_.size()) {
      file(rules::kDataOffset, 64, number(data), number(header_.data_offset));
      return false;
    }
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
      file(rules::kHeadChecksum, kHeadChecksumAt, codecs::checksum_text(header_.head_checksum),
           codecs::checksum_text(sum.value()));
    if (std::ranges::any_of(header_.reserved, [](std::uint64_t word) { return word != 0; }))
      findings_.report(rules::kReserved, {.offset = kReservedAt});
    draft_.add_checksum("head", codecs::checksum_text(header_.head_checksum));
    draft_.add_checksum("payload", codecs::checksum_text(header_.payload_checksum));
  }

  void add_attributes() {
    const auto add = [&](std::string_view key, std::uint64_t value, DType type) {
      draft_.set_attribute(std::string(kPrefix) + std::string(key), Value::integer(value, type));
    };
    add("base_flags", header_.base_flags, DType::u32);
    add("base_tensor_count", header_.base_tensor_count, DType::u32);
    add("base_parameter_count", header_.base_parameter_count, DType::u64);
    add("base_tensor_layout_checksum", header_.base_tensor_layout_checksum, DType::u64);
    add("base_tokenizer_checksum", header_.base_tokenizer_checksum, DType::u64);
    add("base_directory_identity", header_.base_directory_identity, DType::u64);
  }

  void fail(const Rule& rule, std::uint64_t field, core::Said expected, core::Said found) {
    broken_ = true;
    findings_.report(rule, {.offset = at_ + field, .tensor = name_}, std::move(expected), std::move(found));
  }

  void read_entry(std::uint32_t i) {
    const auto e = base::load_record<Entry>(directory_.data() + i * kEntrySize);
    at_ = kHeaderSize + i * kEntrySize;
    name_ = "#" + codecs::to_hex(e.name_hash);
    broken_ = false;
    findings_.fields(Span::Kind::entry, at_, std::as_bytes(std::span(&e, 1)), name_, kEntryRows);
    const auto shape = check_dims(e);
    if (!shape) return;
    const std::uint64_t rows = e.rank > 1 ? e.dims[0] : 1;
    const std::uint64_t elements = *base::element_count(*shape), columns = elements / rows;
    Wanted wanted;
    if (!judge_count(e, elements, rows, columns, wanted)) return;
    check_payload(e.first_offset, e.first_length, wanted.first, 40);
    if (wanted.second > 0 || e.second_offset != 0 || e.second_length != 0)
      check_payload(e.second_offset, e.second_length, wanted.second, 56);
    if (e.reserved != 0) findings_.report(rules::kEntryReserved, {.offset = at_ + 12, .tensor = name_});
    if (broken_) return;
    add(e, *shape, rows, columns);
  }

  std::optional<std::vector<std::uint64_t>> check_dims(const Entry& e) {
    if (e.rank < 1 || e.rank > kMaxRank) {
      fail(rules::kRank, 8, "1 to 4", number(e.rank));
      return std::nullopt;
    }
    const std::vector<std::uint64_t> shape(e.dims, e.dims + e.rank);
    for (std::uint32_t d = 0; d < kMaxRank; ++d) {
      if (d < e.rank && e.dims[d] == 0) fail(rules::kZeroDimension, 16 + 4 * d, "at least 1", "0");
      if (d >= e.rank && e.dims[d] != 0) fail(rules::kPastRank, 16 + 4 * d, "0", number(e.dims[d]));
    }
    const auto elements = base::element_count(shape);
    if (!broken_ && (!elements || !base::checked_mul(*elements, std::uint64_t{8})))
      fail(rules::kOverflow, 16, "at most 2^64 bytes", "more");
    if (broken_) return std::nullopt;
    return shape;
  }

  // Derives what the payloads must be. `count` x 8 and rows x count x 4 are at most elements x 8, which cannot
  // overflow.
  bool judge_count(const Entry& e, std::uint64_t elements, std::uint64_t rows, std::uint64_t columns, Wanted& wanted) {
    wanted.count_most = kind_ == Kind::low_rank ? std::min(rows, columns) : elements;
    wanted.count_least = kind_ == Kind::dense ? elements : 1;
    if (e.count < wanted.count_least || e.count > wanted.count_most) {
      fail(rules::kCount, 32, number(wanted.count_least) + " to " + number(wanted.count_most), number(e.count));
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

  void check_payload(std::uint64_t offset, std::uint64_t length, std::uint64_t wanted, std::uint64_t field) {
    if (length != wanted) return fail(rules::kLength, field + 8, number(wanted), number(length));
    if (length == 0) {
      if (offset != 0) fail(rules::kRange, field, "0, as there is no second payload", number(offset));
      return;
    }
    if (offset % kAlignment != 0) fail(rules::kAlignmentRule, field, "a multiple of 64", number(offset));
    if (offset < header_.data_offset || !base::fits(offset, length, source_.size()))
      return fail(rules::kRange, field, "within " + number(header_.data_offset) + " and " + number(source_.size()),
                  number(offset) + " and " + number(length) + " bytes");
    places_.push_back({offset, length, at_ + field});
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
                       "the first one is at offset " + number(entry_of_[earlier]));
    });
  }

  // Equal ranges are a shared payload, not an overlap.
  void check_overlaps() {
    std::vector<core::Range> ranges;
    for (std::uint32_t i = 0; i < places_.size(); ++i) ranges.push_back({0, places_[i].offset, places_[i].length, i});
    core::Extents(std::move(ranges))
        .walk([&](const core::Range& range, core::Meeting meeting, const core::Range* widest) {
          if (meeting == core::Meeting::overlap)
            findings_.report(rules::kOverlap, {.offset = places_[range.item].at},
                             "to begin at " + number(widest->end()) + " or behind it", number(range.offset));
        });
  }

  const Source& source_;
  const Limits& limits_;
  core::Findings& findings_;
  core::Draft& draft_;
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
